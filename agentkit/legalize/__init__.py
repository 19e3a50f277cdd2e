"""Legalization: rewrites a conversation until the capabilities of a target hold.

Input: a conversation in normal form and the target's capabilities. Output: a `LegalConversation`, with every
change in the ledger. The stages of `agentkit.formatting.pipeline` call these modules in order.

Read `conversation` first, then `blocks`, `media` and `turns`.
"""

from __future__ import annotations

__all__: list[str] = []
