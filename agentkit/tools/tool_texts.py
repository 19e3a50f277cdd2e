"""Tool calls and results as text."""

from __future__ import annotations

from agentkit.messages.blocks import ToolResultBlock, ToolUseBlock

__all__ = ["CALL_TEXT", "ERROR_TEXT", "RESULT_TEXT", "call_text", "result_text"]

CALL_TEXT = "(calls {name} with {arguments})"
"""Tool call as text: in a history frame, and in an assistant turn of a target without a tool role."""

RESULT_TEXT = "(result of {name}) {text}"
ERROR_TEXT = "(result of {name}, an error) {text}"
"""Tool result as text: in a history frame, and in a user turn of a target without a tool role."""


def call_text(call: ToolUseBlock) -> str:
    """Returns a tool call as text: its name and arguments."""
    return CALL_TEXT.format(name=call.name, arguments=call.arguments)


def result_text(result: ToolResultBlock, name: str) -> str:
    """Returns a tool result as text, with the name of its tool and without media."""
    return (ERROR_TEXT if result.is_error else RESULT_TEXT).format(name=name or "a tool", text=result.text)
