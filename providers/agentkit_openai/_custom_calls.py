"""Calls of OpenAI's custom tools. A custom tool accepts plain text instead of JSON arguments.

A `ToolUseBlock` stores the text as the argument `input`.
"""

from __future__ import annotations

from typing import Any

from agentkit.provider_kit import ToolUseBlock, get_state_fields

__all__ = ["CUSTOM_CALL", "custom_input", "custom_text"]

CUSTOM_CALL: dict[str, Any] = {"type": "custom"}
"""Fields of the opaque state that mark a call of a custom tool.

For a target without custom tools, the call is written as a function call.
"""


def custom_input(text: str) -> dict[str, Any]:
    """Returns the arguments of a `ToolUseBlock` that calls a custom tool with the input `text`."""
    return {"input": text}


def custom_text(block: ToolUseBlock) -> str | None:
    """Returns the input text of a call of a custom tool.

    Returns None for a function call, and for a custom tool call whose arguments are not exactly one string
    `input`.
    """
    text = block.input.get("input")
    is_custom = get_state_fields(block.state).get("type") == "custom"
    if is_custom and len(block.input) == 1 and isinstance(text, str):
        return text
    return None
