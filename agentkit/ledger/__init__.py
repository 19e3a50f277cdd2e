"""The ledger, which records for every input block what happened to the block in the request.

Input: the caller's messages, and the notes that the pipeline stages write about blocks. Output: a `Ledger` and a
`Plan`. Each stage passes a `TracedConversation` to the next stage. A `TracedConversation` stores for every block
which block of the caller's messages it comes from.

Read `ledger` first, then `provenance`.
"""

from __future__ import annotations

__all__: list[str] = []
