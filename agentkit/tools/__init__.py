"""Tools that a model may call: definitions, tool choices, JSON schemas, and execution of tool calls.

The inputs are tools as functions, dicts or `Tool` values, and the tool calls of a reply. The outputs are `Tool`
values with JSON schemas, and a `ToolResultBlock` for each tool call. Read `tool` first. `concurrent_calls` runs
the tool calls of a reply, and `error_texts` has the texts that tell the model why a tool call failed.
"""

from __future__ import annotations

__all__: list[str] = []
