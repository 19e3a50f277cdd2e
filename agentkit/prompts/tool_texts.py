"""Texts about tools in prompts: the sentence that describes a tool, and the JSON form of tool calls."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from agentkit.messages.blocks import ToolUseBlock
from agentkit.tools.tool import Tool

__all__ = ["as_tool_calls", "describe_tool"]


def as_tool_calls(calls: Sequence[ToolUseBlock]) -> dict[str, Any]:
    """Returns tool calls as the JSON object that prompts show. The object has no ids."""
    return {"tool_calls": [{"name": call.name, "args": call.copy_input()} for call in calls]}


def describe_tool(tool: Tool) -> str:
    """Returns the sentence that describes a tool in a prompt."""
    description = tool.description.replace("\n", "  ")
    whose = f", whose description is <desc>{description}</desc>." if description else "."
    return f"{tool.name}{whose} It takes arguments {_find_arguments(tool)}."


def _find_arguments(tool: Tool) -> dict[str, Any]:
    properties = tool.parameters.get("properties")
    return cast("dict[str, Any]", properties) if isinstance(properties, dict) else {}
