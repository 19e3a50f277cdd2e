"""Writes the declarations of tools in requests."""

from __future__ import annotations

from typing import Any

from agentkit.json_values import copy_json
from agentkit.tools.tool import Tool

__all__ = ["declare_tool"]


def declare_tool(tool: Tool, schema_key: str | None) -> dict[str, Any]:
    """Writes the declaration of a tool for a request, with a copy of the schema.

    An empty description is omitted. If `schema_key` is None, the schema is omitted.
    """
    declaration: dict[str, Any] = {"name": tool.name}
    if tool.description:
        declaration["description"] = tool.description
    if schema_key:
        declaration[schema_key] = copy_json(tool.parameters)
    return declaration
