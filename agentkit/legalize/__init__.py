"""Legalization: rewrites a conversation so that it obeys the rules of a target.

A target is the provider, API and model of a request. Its rules are a `Capabilities` object. In the input, each
tool call has one result. The output is a `LegalConversation`. The ledger records every change. The module
`agentkit.formatting.pipeline` lists all stages in order.

Read `conversation` first, then `messages`, `blocks`, `media` and `alternating_turns`.
"""

from __future__ import annotations

__all__: list[str] = []
