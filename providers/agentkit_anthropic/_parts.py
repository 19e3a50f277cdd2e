"""Functions for Anthropic's content blocks, including block types and keys that agentkit does not define.

`ServerPart` collects the pieces of a streamed block that Anthropic's server creates, such as a server tool call.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, cast

from pydantic_core import from_json

from agentkit.provider_kit import as_list, as_object, as_text, copy_json, make_json_safe

__all__ = [
    "CARRIED",
    "ServerPart",
    "carried",
    "content_text",
    "part_pair",
    "part_places",
    "remove_markers",
    "search_text",
]

CARRIED: dict[str, tuple[str, ...]] = {
    "text": ("citations",),
    "tool_use": ("caller", "toolset_name"),
    "image": ("transformations",),
    "document": ("context", "citations"),
}
"""Additional keys of content blocks, by block type. Later requests must contain these keys with their values.

The citations of assistant texts are included, because the API accepts a thinking block only if all content before
the block is unchanged. The API refuses citations in user texts.

Sources: Anthropic SDK, TextBlockParam, ToolUseBlockParam, ImageBlockParam and DocumentBlockParam.
"""


def carried(block_type: str, fields: Mapping[str, Any]) -> dict[str, Any]:
    """Returns copies of those fields of a block that `CARRIED` lists for the block type. Omits empty fields."""
    return {key: copy_json(fields[key]) for key in CARRIED[block_type] if fields.get(key) not in (None, [], "")}


def search_text(result: Mapping[str, Any]) -> str:
    """Returns the title, source and texts of a search result as one text (SDK: SearchResultBlockParam)."""
    texts = [as_object(part).get("text") for part in as_list(result.get("content"))]
    return "\n".join(map(as_text, [result.get("title"), result.get("source"), *texts]))


def content_text(source: Mapping[str, Any]) -> str | None:
    """Returns the content of a document source as one text (Anthropic SDK: ContentBlockSourceParam).

    Returns None if the source has no parts, or if a part is not text.
    """
    content = source.get("content")
    if isinstance(content, str):
        return content
    parts = [as_object(part) for part in as_list(content)]
    if not parts or any(part.get("type") != "text" or not isinstance(part.get("text"), str) for part in parts):
        return None
    return "\n".join(part["text"] for part in parts)


_BLOCK_KEYS = frozenset({"content", "source", "tool_references"})


def remove_markers(value: Any) -> Any:
    """Returns a copy of a block without its cache markers and without the cache markers of nested blocks."""
    if isinstance(value, list):
        return [remove_markers(item) for item in cast("list[Any]", value)]
    if not isinstance(value, dict):
        return value
    pairs = cast("dict[str, Any]", value).items()
    fields = {key: item for key, item in pairs if key != "cache_control"}
    return {key: remove_markers(item) if key in _BLOCK_KEYS else item for key, item in fields.items()}


def part_pair(data: Mapping[str, Any]) -> tuple[Literal["request", "response"], str] | None:
    """Returns `("request", ID)` for a server tool call, and `("response", ID)` for the result of the call.

    ID is the id of the call. Returns None for any other block.

    Sources: Anthropic SDK, ServerToolUseBlock, WebSearchToolResultBlock and similar types, BetaMCPToolUseBlock,
    BetaMCPToolResultBlock.
    """
    block_type, call_id, result_id = data.get("type"), data.get("id"), data.get("tool_use_id")
    if isinstance(result_id, str):
        return "response", result_id
    if isinstance(call_id, str) and isinstance(block_type, str) and block_type.endswith("tool_use"):
        return "request", call_id
    return None


_TURNS = frozenset({"assistant", "user"})
_PLACES = {
    # Source: types of the Anthropic SDK for content of messages (ContentBlockParam, BetaContentBlockParam,
    # SystemMessageParam) and content of tool results (ToolResultBlockParam.content).
    "text": frozenset({"assistant", "user", "system", "result"}),
    "image": frozenset({"user", "result"}),
    # The API refuses "a document block placed directly in an assistant message".
    "document": frozenset({"user", "result"}),
    "search_result": frozenset({"user", "result"}),
    "container_upload": frozenset({"user"}),
    "tool_reference": frozenset({"result"}),
    "browser_state": frozenset({"result"}),
    **dict.fromkeys(("tool_addition", "tool_removal"), frozenset({"system"})),
    **dict.fromkeys(("thinking", "redacted_thinking", "compaction", "fallback"), frozenset({"assistant"})),
}


def part_places(data: Mapping[str, Any]) -> frozenset[str]:
    """Returns the roles whose messages can contain a block, plus "result" if tool results can contain the block.

    For a block of an unknown type, returns "assistant", "user" and "result".
    """
    if part_pair(data) is not None:
        return frozenset({"assistant"})
    return _PLACES.get(as_text(data.get("type")), _TURNS | {"result"})


class ServerPart:
    """Collector for the pieces of a streamed block that Anthropic's server creates.

    Examples of such blocks are server tool calls, and compactions (summaries of earlier messages).
    """

    def __init__(self, data: dict[str, Any]) -> None:
        self.data: dict[str, Any] = make_json_safe(data)
        self.pieces: list[str] = []

    def read(self, delta: Mapping[str, Any]) -> None:
        """Adds a piece of a tool call's arguments, or sets the content of a compaction (a summary of messages).

        Source: Anthropic SDK, InputJSONDelta and BetaCompactionContentBlockDelta.
        """
        if delta.get("type") == "compaction_delta":
            fields = {key: delta.get(key) for key in ("content", "encrypted_content")}
            self.data |= make_json_safe({key: item for key, item in fields.items() if item is not None})
        elif isinstance(piece := delta.get("partial_json"), str):
            self.pieces.append(piece)

    def build(self) -> dict[str, Any] | None:
        """Returns the complete block with parsed arguments, or None if the arguments are not a JSON object.

        If no arguments arrived, returns the block unchanged.
        """
        text = "".join(self.pieces)
        if not text.strip():
            return self.data
        try:
            arguments = make_json_safe(from_json(text.encode("utf-8", "replace")))
        except ValueError:
            return None
        return {**self.data, "input": arguments} if isinstance(arguments, dict) else None

    def build_incomplete(self) -> dict[str, Any]:
        """Returns the block of an interrupted reply, with the incomplete arguments as text in `partial_input`."""
        return {**self.data, "partial_input": "".join(self.pieces)}
