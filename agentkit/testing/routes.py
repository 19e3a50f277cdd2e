"""Which path is which wire, and where a provider's SDK is to look for it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from agentkit.testing.anthropic_messages import AnthropicMessages
from agentkit.testing.bedrock import BedrockMessages
from agentkit.testing.chat_completions import DIALECTS, ChatCompletions
from agentkit.testing.dashscope import DashScope
from agentkit.testing.gemini import Gemini
from agentkit.testing.ollama import Ollama
from agentkit.testing.responses import Responses
from agentkit.testing.wire import Wire

__all__ = ["BASES", "Route", "Target", "find_route"]

BASES: Final[dict[str, str]] = {
    "anthropic": "",
    "anthropic-vertex": "/v1",
    "azure": "",
    "bedrock": "",
    "dashscope": "/api/v1",
    "dashscope-compatible": "/compatible-mode/v1",
    "deepseek": "/deepseek",
    "gemini": "",
    "ollama": "",
    "openai": "/v1",
    "openai-responses": "/v1",
    "vllm": "/vllm/v1",
}
"""The base URL of each provider's SDK client, below the server's."""


@dataclass(frozen=True, slots=True)
class Target:
    """What a path asks for: a provider's wire, and the model and the verb that the path itself names."""

    provider: str
    wire: Wire
    model: str | None
    verb: str | None

    @property
    def counts(self) -> bool:
        """Whether tokens are to be counted, and nothing said."""
        return (self.verb or "").endswith(("count_tokens", "countTokens", "input_tokens"))

    def streamed(self, body: Mapping[str, Any], headers: Mapping[str, str]) -> bool:
        """Whether the reply is to come as a stream."""
        if self.verb and self.verb.startswith("stream"):
            return True
        if self.provider == "bedrock":
            return self.verb == "invoke-with-response-stream"
        if self.provider == "dashscope":
            return headers.get("x-dashscope-sse") == "enable"
        return body.get("stream", self.provider == "ollama") is True


@dataclass(frozen=True, slots=True)
class Route:
    """A path, and whose it is."""

    path: re.Pattern[str]
    provider: str
    wire: Wire


def _route(path: str, provider: str, wire: Wire) -> Route:
    return Route(re.compile(path), provider, wire)


_CHATS: Final = {name: ChatCompletions(dialect) for name, dialect in DIALECTS.items()}
_MESSAGES: Final = AnthropicMessages()
_RESPONSES: Final = r"(?:/v1)?/responses(?:/(?P<verb>input_tokens))?"
_GOOGLE: Final = r"/(?:[^:]+/)?models/(?P<model>[^:]+)"

ROUTES: Final = (
    _route(r"(?:/v1)?/chat/completions", "openai", _CHATS["openai"]),
    _route(r"/openai/deployments/(?P<model>[^/]+)/chat/completions", "azure", _CHATS["azure"]),
    _route(r"/deepseek(?:/v1|/beta)?/chat/completions", "deepseek", _CHATS["deepseek"]),
    _route(r"/compatible-mode/v1/chat/completions", "dashscope-compatible", _CHATS["dashscope-compatible"]),
    _route(r"/vllm/v1/chat/completions", "vllm", _CHATS["vllm"]),
    _route(rf"(?:/openai|/compatible-mode|/deepseek|/vllm)?{_RESPONSES}", "openai-responses", Responses()),
    _route(r"/v1/messages(?:/(?P<verb>count_tokens))?", "anthropic", _MESSAGES),
    _route(r"/model/(?P<model>[^/]+)/(?P<verb>invoke(?:-with-response-stream)?)", "bedrock", BedrockMessages()),
    _route(
        rf"/.*/publishers/anthropic{_GOOGLE}:(?P<verb>rawPredict|streamRawPredict)", "anthropic-vertex", _MESSAGES
    ),
    _route(rf"{_GOOGLE}:(?P<verb>generateContent|streamGenerateContent|countTokens)", "gemini", Gemini()),
    _route(r"/api/chat", "ollama", Ollama()),
    _route(r"/api/v1/services/aigc/text-generation/generation", "dashscope", DashScope(parts=False)),
    _route(r"/api/v1/services/aigc/multimodal-generation/generation", "dashscope", DashScope(parts=True)),
)


def find_route(path: str) -> Target | None:
    """What a path asks for; None for one that is no service's."""
    for route in ROUTES:
        if found := route.path.fullmatch(path):
            named = found.groupdict()
            return Target(route.provider, route.wire, named.get("model"), named.get("verb"))
    return None
