"""Token counts of OpenAI's counting endpoint, for requests of the Responses API."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from agentkit.provider_kit import InputError, RemoteTokenCounter, TokenCount, WireLayout
from agentkit_openai.responses.capabilities import LAYOUT

__all__ = ["OpenAITokenCounter"]

# Parameters of the endpoint (openai-python: InputTokenCountParams).
_PARAMETERS = (
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
    """Token counter for requests of the Responses API.

    Example: `OpenAITokenCounter(client.responses.input_tokens.count, model="gpt-6")`.

    `client` is an `AsyncOpenAI`, and `model=` is required. The endpoint counts the complete request, with images
    and files. Chat Completions has no such endpoint: use `TiktokenCounter` for its requests.
    """

    layout: ClassVar[WireLayout] = LAYOUT

    async def count(self, request: Mapping[str, Any]) -> TokenCount:
        """Returns the input tokens of `responses.create(**request)`.

        Raises:
            InputError: The request has no `input`.
            ModelError: The reply has no token count.
            Exception: Any error of the SDK.
        """
        if "input" not in request:
            advice = "Use TiktokenCounter for Chat Completions."
            raise InputError("request", "expected a Responses request with the key `input`", advice)
        parameters = {key: request[key] for key in _PARAMETERS if request.get(key) is not None}
        reply = await self.ask(model=self.model, **parameters)
        return TokenCount(self.read_count(reply, "input_tokens"))
