"""The ledger: a record of the outcome of every input block, and where each block of a request comes from.

Input: the caller's messages, and the notes of the pipeline stages. Output: a `Ledger` and a `Plan`. The stages
pass a `TracedConversation` on, which has the origin of every block in the caller's messages.

Read `ledger` first, then `provenance`.
"""

from __future__ import annotations

__all__: list[str] = []
