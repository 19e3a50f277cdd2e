"""What a block of an Anthropic message holds besides what every provider knows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from agentkit import copied

__all__ = ["CARRIED", "carried", "part_pair"]

CARRIED: dict[str, tuple[str, ...]] = {
    # Keys that a block of a reply has and its request form takes (SDK: TextBlockParam, ToolUseBlockParam).
    # A citation belongs to the text: without it a later thinking block stands behind another prefix.
    "text": ("citations",),
    "tool_use": ("caller", "toolset_name"),
}


def carried(kind: str, found: Mapping[str, Any]) -> dict[str, Any]:
    """The further keys that a block came with, to go back with it."""
    return {key: copied(found[key]) for key in CARRIED[kind] if found.get(key)}


def part_pair(data: Mapping[str, Any]) -> tuple[Literal["asks", "answers"], str] | None:
    """A server tool's use asks under its id, and its result answers by `tool_use_id` (SDK: ServerToolUseBlock,
    WebSearchToolResultBlock and its siblings, BetaMCPToolUseBlock, BetaMCPToolResultBlock).
    """
    kind, asked, answered = data.get("type"), data.get("id"), data.get("tool_use_id")
    if isinstance(answered, str):
        return "answers", answered
    if isinstance(asked, str) and isinstance(kind, str) and kind.endswith("tool_use"):
        return "asks", asked
    return None
