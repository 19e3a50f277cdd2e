"""Anthropic's own count."""

from __future__ import annotations

from collections.abc import Mapping
from operator import is_
from typing import Any, ClassVar, cast

from agentkit.provider_kit import (
    RemoteTokenCounter,
    TokenCount,
    WireLayout,
    as_object,
)
from agentkit_anthropic.capabilities import LAYOUT

__all__ = ["AnthropicTokenCounter"]

# The parameters of messages.count_tokens (SDK: MessageCountTokensParams) that a request may have.
_TAKEN = (
    "messages",
    "system",
    "tools",
    "tool_choice",
    "thinking",
    "output_config",
    "cache_control",
    "speed",
)
_REFUSED_SOURCES = frozenset({"url", "file"})  # a 400 for images and documents (token-counting)
_STAND_IN = {"type": "text", "text": "."}


class AnthropicTokenCounter(RemoteTokenCounter):
    """`AnthropicTokenCounter(client.messages.count_tokens, model=…)`, with `client = AsyncAnthropic()`.

    The endpoint takes the very request, but for images and documents by URL or file id, and server tools: those
    are left out and estimated. It checks a request as a real call does, and raises the SDK's errors.
    """

    layout: ClassVar[WireLayout] = LAYOUT
    media_tokens: ClassVar[int] = 4_784  # what the largest picture costs the newest models (token-counting)

    async def count(self, request: Mapping[str, Any]) -> TokenCount:
        """The prompt tokens of `messages.create(**request)`."""
        left_out: list[Any] = []
        sent = {key: request[key] for key in _TAKEN if request.get(key) is not None}
        sent["messages"] = [_message(message, left_out) for message in self.part(request, "messages")]
        media = bool(left_out)
        tools = [tool for tool in sent.get("tools", []) if not _refused_tool(tool)]
        served = [tool for tool in sent.get("tools", []) if _refused_tool(tool)]
        if served:
            sent["tools"] = tools
        if not tools:
            sent.pop("tools", None)
        named = as_object(sent.get("tool_choice")).get("name")
        if not tools or (named is not None and all(named != tool.get("name") for tool in tools)):
            sent.pop("tool_choice", None)
        answer = await self.ask(model=self.model, **sent)
        spare = await self.estimate(left_out)
        spare += await self.estimate_request({"tools": served}) if served else 0
        reasons = [_MEDIA] * media + [_TOOLS] * bool(served)
        return TokenCount(self.read_count(answer, "input_tokens") + spare, reasons)


_MEDIA = "the endpoint takes no image or document by URL: estimated"
_TOOLS = "the endpoint takes no server tools: estimated"


def _refused_tool(tool: Mapping[str, Any]) -> bool:
    """Server tools have a type and no schema; the advisor alone is counted."""
    kind = str(tool.get("type") or "custom")
    return kind != "custom" and "input_schema" not in tool and not kind.startswith("advisor")


def _message(message: Mapping[str, Any], left_out: list[Any]) -> Mapping[str, Any]:
    """The message without what the endpoint refuses, which goes into `left_out`; itself if there is nothing."""
    content = message.get("content")
    if not isinstance(content, list):
        return message
    blocks = cast("list[Any]", content)
    kept = [_block(block, left_out) for block in blocks]
    return message if all(map(is_, kept, blocks)) else {**message, "content": kept}


def _block(block: Any, left_out: list[Any]) -> Any:
    if not isinstance(block, dict):
        return block
    found = cast("dict[str, Any]", block)
    source = found.get("source")
    if isinstance(source, dict) and cast("dict[str, Any]", source).get("type") in _REFUSED_SOURCES:
        left_out.append(found)
        return _STAND_IN.copy()
    return _message(found, left_out) if found.get("type") == "tool_result" else found
