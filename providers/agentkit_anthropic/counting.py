"""Token counter that uses Anthropic's token-counting API."""

from __future__ import annotations

from collections.abc import Mapping
from operator import is_
from typing import Any, cast

from agentkit.provider_kit import RemoteTokenCounter, TokenCount, as_object
from agentkit_anthropic.capabilities import LAYOUT

__all__ = ["AnthropicTokenCounter"]

_PARAMETERS = ("messages", "system", "tools", "tool_choice", "thinking", "output_config", "cache_control", "speed")
"""Keys of a request that `messages.count_tokens` accepts (Anthropic SDK: MessageCountTokensParams)."""
# The token-counting API refuses images and documents with these source types (Anthropic docs: token-counting).
_REFUSED_SOURCES = frozenset({"url", "file"})
_PLACEHOLDER = {"type": "text", "text": "."}


class AnthropicTokenCounter(RemoteTokenCounter):
    """Token counter that calls Anthropic's token-counting API.

    Create the counter with `AnthropicTokenCounter(client.messages.count_tokens, model=…)`, where `client` is an
    `AsyncAnthropic()`. The API does not count the tokens of server tools, or of images and documents with a URL
    or a file id. The counter estimates these tokens. If the API refuses a request, the SDK raises an error.
    """

    layout = LAYOUT
    media_tokens = 4_784  # tokens of the largest image on the newest models (Anthropic docs)

    async def count(self, request: Mapping[str, Any]) -> TokenCount:
        """Returns the number of prompt tokens of `messages.create(**request)`.

        The field `estimated` of the result contains a reason for each kind of content whose tokens are estimated.
        """
        media: list[Any] = []
        sent = {key: request[key] for key in _PARAMETERS if request.get(key) is not None}
        sent["messages"] = [_replace_media(message, media) for message in self.part(request, "messages")]
        tools = [tool for tool in sent.get("tools", []) if not _is_refused_tool(tool)]
        server_tools = [tool for tool in sent.get("tools", []) if _is_refused_tool(tool)]
        sent["tools"] = tools
        if not tools:
            del sent["tools"]
        name = as_object(sent.get("tool_choice")).get("name")
        if not tools or (name is not None and all(name != tool.get("name") for tool in tools)):
            sent.pop("tool_choice", None)
        answer = await self.ask(model=self.model, **sent)
        estimate = await self.estimate(media)
        estimate += await self.estimate_request({"tools": server_tools}) if server_tools else 0
        reasons = [_MEDIA_REASON] * bool(media) + [_TOOLS_REASON] * bool(server_tools)
        return TokenCount(self.read_count(answer, "input_tokens") + estimate, reasons)


_MEDIA_REASON = (
    "tokens of images and documents with a URL or file id are estimated, because the API does not count them"
)
_TOOLS_REASON = "tokens of server tools are estimated, because the API does not count them"


def _is_refused_tool(tool: Mapping[str, Any]) -> bool:
    """Returns True if the token-counting API refuses a tool.

    The API refuses all server tools except the advisor tool. A server tool has a type other than `custom`, and no
    schema.
    """
    tool_type = str(tool.get("type") or "custom")
    return tool_type != "custom" and "input_schema" not in tool and not tool_type.startswith("advisor")


def _replace_media(message: Mapping[str, Any], media: list[Any]) -> Mapping[str, Any]:
    """Replaces images and documents that the token-counting API refuses. Returns a copy of the message.

    Appends the replaced images and documents to `media`. If nothing is replaced, returns the message itself.
    """
    content = message.get("content")
    if not isinstance(content, list):
        return message
    blocks = cast("list[Any]", content)
    replaced = [_replace_block(block, media) for block in blocks]
    return message if all(map(is_, replaced, blocks)) else {**message, "content": replaced}


def _replace_block(block: Any, media: list[Any]) -> Any:
    if not isinstance(block, dict):
        return block
    fields = cast("dict[str, Any]", block)
    source = fields.get("source")
    if isinstance(source, dict) and cast("dict[str, Any]", source).get("type") in _REFUSED_SOURCES:
        media.append(fields)
        return _PLACEHOLDER.copy()
    return _replace_media(fields, media) if fields.get("type") == "tool_result" else fields
