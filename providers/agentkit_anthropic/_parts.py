"""What a block of an Anthropic message holds besides what every provider knows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, cast

from agentkit.provider_kit import as_list, as_object, as_text, copy_json

__all__ = ["CARRIED", "carried", "content_text", "part_pair", "part_places", "search_text", "unmarked"]

CARRIED: dict[str, tuple[str, ...]] = {
    # Keys that a block has and its request form takes (SDK: TextBlockParam, ToolUseBlockParam, ImageBlockParam,
    # DocumentBlockParam). A citation belongs to the text: without it a later thinking block stands behind another
    # prefix. (On a text of the user's the API refuses it.)
    "text": ("citations",),
    "tool_use": ("caller", "toolset_name"),
    "image": ("transformations",),
    "document": ("context", "citations"),
}


def carried(kind: str, found: Mapping[str, Any]) -> dict[str, Any]:
    """The further keys that a block came with, to go back with it."""
    return {key: copy_json(found[key]) for key in CARRIED[kind] if found.get(key) not in (None, [], "")}


def search_text(found: Mapping[str, Any]) -> str:
    """A search result of the caller's as text: its title, its source, its words (SDK: SearchResultBlockParam)."""
    said = [as_object(part).get("text") for part in as_list(found.get("content"))]
    return "\n".join(map(as_text, [found.get("title"), found.get("source"), *said]))


def content_text(source: Mapping[str, Any]) -> str | None:
    """The text of a document of parts; None if they are more than text (SDK: ContentBlockSourceParam)."""
    content = source.get("content")
    if isinstance(content, str):
        return content
    parts = [as_object(part) for part in as_list(content)]
    if not parts or any(part.get("type") != "text" or not isinstance(part.get("text"), str) for part in parts):
        return None
    return "\n".join(part["text"] for part in parts)


_HOLD_BLOCKS = frozenset({"content", "source", "tool_references"})


def unmarked(found: Any) -> Any:
    """A block, and the blocks in its content, without cache markers."""
    if isinstance(found, list):
        return [unmarked(item) for item in cast("list[Any]", found)]
    if not isinstance(found, dict):
        return found
    pairs = cast("dict[str, Any]", found).items()
    kept = {key: item for key, item in pairs if key != "cache_control"}
    return {key: unmarked(item) if key in _HOLD_BLOCKS else item for key, item in kept.items()}


def part_pair(data: Mapping[str, Any]) -> tuple[Literal["request", "response"], str] | None:
    """A server tool's use asks under its id, and its result answers by `tool_use_id` (SDK: ServerToolUseBlock,
    WebSearchToolResultBlock and its siblings, BetaMCPToolUseBlock, BetaMCPToolResultBlock).
    """
    kind, asked, answered = data.get("type"), data.get("id"), data.get("tool_use_id")
    if isinstance(answered, str):
        return "response", answered
    if isinstance(asked, str) and isinstance(kind, str) and kind.endswith("tool_use"):
        return "request", asked
    return None


_TURNS = frozenset({"assistant", "user"})
_PLACES = {
    # By type (SDK: ContentBlockParam, BetaContentBlockParam, ToolResultBlockParam.content, SystemMessageParam).
    "text": frozenset({"assistant", "user", "system", "result"}),
    "image": frozenset({"user", "result"}),
    "document": frozenset({"user", "result"}),  # "a document block placed directly in an assistant message": 400
    "search_result": frozenset({"user", "result"}),
    "container_upload": frozenset({"user"}),
    "tool_reference": frozenset({"result"}),
    "browser_state": frozenset({"result"}),
    **dict.fromkeys(("tool_addition", "tool_removal"), frozenset({"system"})),
    **dict.fromkeys(("thinking", "redacted_thinking", "compaction", "fallback"), frozenset({"assistant"})),
}


def part_places(data: Mapping[str, Any]) -> frozenset[str]:
    """Returns where a block may stand. A type that is not known here may stand in any message, and in a result."""
    if part_pair(data) is not None:
        return frozenset({"assistant"})
    return _PLACES.get(as_text(data.get("type")), _TURNS | {"result"})
