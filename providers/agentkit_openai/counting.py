"""Token counter that asks OpenAI for the token count of a request to the Responses API."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agentkit.provider_kit import RemoteTokenCounter, TokenCount
from agentkit_openai.responses.capabilities import LAYOUT

__all__ = ["OpenAITokenCounter"]

# Parameters that the counting endpoint accepts (openai-python: InputTokenCountParams).
_PARAMETERS = (
    *("input", "instructions", "tools", "tool_choice", "text", "reasoning", "truncation", "parallel_tool_calls"),
    *("conversation", "previous_response_id", "personality"),
)


class OpenAITokenCounter(RemoteTokenCounter):
    """Token counter that asks OpenAI for the token count of a request to the Responses API.

    Example: `OpenAITokenCounter(client.responses.input_tokens.count, model="gpt-6")`.

    `client` is an `AsyncOpenAI`. The argument `model` is required. OpenAI counts the complete request, including
    images and files. OpenAI cannot count requests to Chat Completions. Use `TiktokenCounter` for such requests.
    """

    layout = LAYOUT

    async def count(self, request: Mapping[str, Any]) -> TokenCount:
        """Returns the number of input tokens of `responses.create(**request)`.

        Raises:
            InputError: The request has no `input`.
            ModelError: The reply has no token count.
            Exception: Any error of the SDK, with the credentials of the client redacted.
        """
        self.part(request, "input", "For a request to Chat Completions, use `TiktokenCounter`.")
        parameters = {key: request[key] for key in _PARAMETERS if request.get(key) is not None}
        reply = await self.ask(model=self.model, **parameters)
        return TokenCount(self.read_count(reply, "input_tokens"))
