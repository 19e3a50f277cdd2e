"""`read_tool_calls`: reads the JSON value of an output for tool calls."""

from __future__ import annotations

from typing import Any, cast

from agentkit.errors import ParseError
from agentkit.json_values import as_object, as_text
from agentkit.messages.blocks import ToolUseBlock
from agentkit.prompts.lenient_json import read_json
from agentkit.replies.missing_call_ids import derive_call_id
from agentkit.reprs import shorten_repr

__all__ = ["read_tool_calls"]


def read_tool_calls(name: str, value: object, *, keep_ids: bool = False) -> list[ToolUseBlock]:
    """Reads tool calls from a list of calls, from one call, or from an object with the key `tool_calls`.

    Args:
        name: Name of the field, for errors and new ids.
        value: JSON value, or JSON text, which may be damaged.
        keep_ids: True to keep the ids of the tool calls. Tool calls without an id get new ids. False to replace
            all ids.

    Raises:
        ParseError: An entry is not a tool call.
    """
    found = read_json(value) if isinstance(value, str) else value
    listed: object = as_object(found).get("tool_calls", found)
    entries = cast("list[object]", listed) if isinstance(listed, list) else [listed]
    calls: list[ToolUseBlock] = []
    for index, entry in enumerate(entries):
        stored = as_object(entry)
        call = as_object(stored.get("function")) or stored
        tool = as_text(call.get("name"))
        arguments = call.get("args", call.get("arguments", {}))
        arguments = read_json(arguments) if isinstance(arguments, str) else arguments
        if not tool or not isinstance(arguments, dict):
            reason = f"expected a tool call with the keys `name` and `args`, got {shorten_repr(entry, 60)}"
            raise ParseError(reason, place=f"{name}[{index}]", text=value if isinstance(value, str) else "")
        values = cast("dict[str, Any]", arguments)
        id = as_text(stored.get("id")) if keep_ids else ""
        calls.append(ToolUseBlock(id or derive_call_id(repr((name, index, tool, values))), tool, values))
    return calls
