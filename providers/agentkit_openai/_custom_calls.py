"""Calls of custom tools. Their input is text, which becomes the only argument of a `ToolUseBlock`."""

from __future__ import annotations

from typing import Any

from agentkit.provider_kit import ToolUseBlock, get_state_fields

__all__ = ["CUSTOM_CALL", "custom_input", "custom_text"]

CUSTOM_CALL: dict[str, Any] = {"type": "custom"}
"""State fields of a call of a custom tool. Other targets write it as a call of a function."""


def custom_input(text: str) -> dict[str, Any]:
    """Returns the arguments for the input of a custom tool."""
    return {"input": text}


def custom_text(block: ToolUseBlock) -> str | None:
    """Returns the input of a custom tool, or None for a call of a function."""
    text = block.input.get("input")
    is_custom = get_state_fields(block.state).get("type") == "custom"
    if is_custom and len(block.input) == 1 and isinstance(text, str):
        return text
    return None
