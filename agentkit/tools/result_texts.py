"""Writes tool calls and their results as text, for APIs without tool roles and for tool calls of other agents."""

from __future__ import annotations

from agentkit.messages.blocks import ToolResultBlock, ToolUseBlock

__all__ = [
    "CALL_TEXT",
    "ERROR_TEXT",
    "RESULT_TEXT",
    "call_text",
    "result_text",
]

CALL_TEXT = "(calls {name} with {arguments})"
"""Text that replaces the tool call of another agent, or every tool call if the target has no tool role."""

RESULT_TEXT = "(result of {name}) {text}"
ERROR_TEXT = "(result of {name}, an error) {text}"
"""Text that replaces a failed tool result of another agent, or every failed result if there is no tool role."""


def call_text(call: ToolUseBlock) -> str:
    """Returns a text with the tool name and the arguments of a tool call."""
    return CALL_TEXT.format(name=call.name, arguments=call.arguments)


def result_text(result: ToolResultBlock, name: str) -> str:
    """Returns a text with the tool name and the text of a tool result. The text omits media."""
    return (ERROR_TEXT if result.is_error else RESULT_TEXT).format(name=name or "a tool", text=result.text)
