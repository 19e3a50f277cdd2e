"""OpenAI's own count, for Responses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from agentkit.provider_kit import (
    InputError,
    RemoteTokenCounter,
    TokenCount,
    WireLayout,
)
from agentkit_openai.responses.capabilities import LAYOUT

__all__ = ["OpenAITokenCounter"]

# The parameters of responses.input_tokens.count (SDK: InputTokenCountParams).
_TAKEN = (
    "input",
    "instructions",
    "tools",
    "tool_choice",
    "text",
    "reasoning",
    "truncation",
    "parallel_tool_calls",
    "conversation",
    "previous_response_id",
    "personality",
)


class OpenAITokenCounter(RemoteTokenCounter):
    """`OpenAITokenCounter(client.responses.input_tokens.count, model=…)`, with `client = AsyncOpenAI()`.

    For requests of the Responses API, which it counts whole, pictures and files included. There is no such
    endpoint for Chat Completions: `TiktokenCounter` counts those.
    """

    layout: ClassVar[WireLayout] = LAYOUT

    async def count(self, request: Mapping[str, Any]) -> TokenCount:
        """The input tokens of `responses.create(**request)`. Raises InputError for a request without input."""
        if "input" not in request:
            advice = "Use TiktokenCounter for Chat Completions."
            raise InputError("request", "expected a Responses request with the key `input`", advice)
        sent = {key: request[key] for key in _TAKEN if request.get(key) is not None}
        answer = await self.ask(model=self.model, **sent)
        return TokenCount(self.read_count(answer, "input_tokens"))
