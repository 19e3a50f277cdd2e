"""Calls of custom tools, whose input is free text: `ToolUseBlock` with that text as its one argument."""

from __future__ import annotations

from typing import Any

from agentkit.provider_kit import ToolUseBlock, get_state_fields

__all__ = ["CUSTOM_CALL", "custom_input", "custom_text"]

CUSTOM_CALL: dict[str, Any] = {"type": "custom"}
"""What the state of such a call has in its `fields`: another target takes it for a call of a function."""


def custom_input(text: str) -> dict[str, Any]:
    """The text as arguments."""
    return {"input": text}


def custom_text(block: ToolUseBlock) -> str | None:
    """The text of a call of a custom tool; None for a call of a function."""
    text = block.input.get("input")
    is_custom = get_state_fields(block.state).get("type") == "custom"
    if is_custom and len(block.input) == 1 and isinstance(text, str):
        return text
    return None
