"""Declarations of tools in requests."""

from __future__ import annotations

from typing import Any

from agentkit.json_values import copy_json
from agentkit.tools.tool import Tool

__all__ = ["declare_tool"]


def declare_tool(tool: Tool, schema_key: str | None) -> dict[str, Any]:
    """Returns the declaration of a tool: its name, its description if it has one, and a copy of its schema.

    Args:
        tool: Tool of a request.
        schema_key: Key of the schema in the API. None omits the schema.

    """
    declaration: dict[str, Any] = {"name": tool.name}
    if tool.description:
        declaration["description"] = tool.description
    if schema_key:
        declaration[schema_key] = copy_json(tool.parameters)
    return declaration
