"""Legalization: rewrites a conversation so that it obeys the rules of a target.

A target is the provider, API and model of a request. Its rules are a `Capabilities` object. The input is a
conversation in which each tool call has exactly one result. The output is a `LegalConversation`. The ledger
records every change.

The rules are applied by pipeline stages, which are functions that take and return a conversation. The module
`agentkit.formatting.pipeline` lists all stages in order.

Read `conversation` first, then `rewritten_messages`, `block_rules`, `media` and `alternating_turns`.
"""

from __future__ import annotations

__all__: list[str] = []
