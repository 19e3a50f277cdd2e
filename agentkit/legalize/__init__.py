"""Legalization: rewrites a conversation to obey the rules of a target.

The input is a repaired conversation, in which each tool call has one result, and the `Capabilities` of the target.
The output is a `LegalConversation`. The ledger records every change. The module `agentkit.formatting.pipeline`
lists the stages of these modules in order.

Read `conversation` first, then `messages`, `blocks`, `media` and `turns`.
"""

from __future__ import annotations

__all__: list[str] = []
