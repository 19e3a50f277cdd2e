"""The ledger, which records for every input block what happened to the block in the request.

Input: the caller's messages, and the notes that the pipeline stages write about blocks. Output: a `Ledger` and a
`Plan`. Each stage passes a `TracedConversation` to the next stage. A `TracedConversation` stores the origin of
each block: the path of a block in the caller's messages, or a name if a stage added the block.

Read `ledger` first, then `provenance`.
"""

from __future__ import annotations

__all__: list[str] = []
