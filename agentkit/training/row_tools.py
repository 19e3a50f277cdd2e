"""Tools in rows of training data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from agentkit.tools.tool import Tool, as_tools, declare_tool
from agentkit.training.row_values import parse_if_text, refuse
from agentkit.training.sample import Sample

__all__ = ["dump_tools", "read_tools"]


def read_tools(row: dict[str, Any]) -> tuple[Tool, ...]:
    """Returns the tools of a row: a list or JSON text in the column `tools`, or OpenAI's older `functions`.

    Raises:
        MessageError: The column does not contain tools.
    """
    key = "tools" if row.get("tools") else "functions"
    tools: object = parse_if_text(row.get(key) or None, key) or []
    if not isinstance(tools, list):
        refuse(key, f"expected a list, got {type(tools).__name__}")
    return as_tools(cast("Sequence[Any]", tools))


def dump_tools(sample: Sample) -> list[dict[str, Any]]:
    """Returns the tools of a sample in the form of OpenAI Chat Completions."""
    return [{"type": "function", "function": _dump_tool(tool)} for tool in as_tools(sample.tools)]


def _dump_tool(tool: Tool) -> dict[str, Any]:
    declared = declare_tool(tool, "parameters")
    return declared if tool.strict is None else {**declared, "strict": tool.strict}
