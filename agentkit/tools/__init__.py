"""Tools: their definitions, the choice among them, JSON schemas, and the execution of tool calls.

Input: tools as functions, dicts or `Tool`; tool calls of a reply. Output: `Tool` values with JSON schemas, and
`ToolResultBlock` values. Read `tool` first. `calls` runs the tool calls of a reply.
"""

from __future__ import annotations

__all__: list[str] = []
