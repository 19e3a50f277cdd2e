"""Functions that read and write the tools of a row of training data."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final, cast

from agentkit.errors import MessageError
from agentkit.json_values import as_object, copy_json
from agentkit.reprs import shorten_repr
from agentkit.tools.tool import Tool, as_tools, declare_tool
from agentkit.training.rows.row_values import check_json, drop_none, has_none, is_missing, parse_if_text, refuse
from agentkit.training.sample import Sample

__all__ = ["TOOL_COLUMNS", "dump_tools", "dump_tools_column", "parse_tools", "read_tools"]

TOOL_COLUMNS: Final = ("tools", "functions")
"""Columns with the tools of a row. `functions` is the older name of OpenAI."""
_MAX_CACHED: Final = 100_000
"""Limit in characters. A JSON text of tools that reaches this limit is not cached."""
_NULLABLE: Final = ("default", "const")
"""Keys of a JSON schema for which None is a valid value. The package `datasets` adds other keys with None."""


def read_tools(row: dict[str, Any]) -> tuple[Tool, ...]:
    """Returns the tools of a row. Returns an empty tuple if the row has no tools.

    The column `tools` or `functions` contains the tools as a list or as JSON text.

    Raises:
        MessageError: The column does not contain tools, or both columns contain tools.
    """
    keys = [key for key in TOOL_COLUMNS if not is_missing(row.get(key))]
    if not keys:
        return ()
    if len(keys) > 1:
        refuse("functions", "the row also has tools in the column 'tools'")
    (key,) = keys
    return parse_tools(row[key], key)


def parse_tools(tools: object, place: str) -> tuple[Tool, ...]:
    """Returns the tools of a list or of a JSON text. `place` is the place of the list or text in the row.

    Raises:
        MessageError: The value is not a list of tools.
    """
    try:
        text = tools if isinstance(tools, str) else json.dumps(tools)
    except (TypeError, ValueError):
        check_json(tools, place)
        raise
    return (_parse_text if len(text) < _MAX_CACHED else _parse_text.__wrapped__)(text, place)


@lru_cache(maxsize=64)  # the rows of a data set often have the same tools
def _parse_text(text: str, place: str) -> tuple[Tool, ...]:
    tools: object = parse_if_text(text, place)
    if is_missing(tools):
        return ()
    if not isinstance(tools, list):
        refuse(place, f"expected a list of tools, got {shorten_repr(tools, 60)}")
    declared = cast("Sequence[Any]", tools)
    check_json(declared, place)
    try:
        return as_tools(drop_none(declared) if has_none(declared, _NULLABLE) else declared)
    except MessageError as error:
        raise MessageError(place + error.place.removeprefix("tools"), error.reason, error.advice) from None


def dump_tools_column(sample: Sample, *, as_text: bool = False) -> dict[str, Any]:
    """Returns a dict with the column `tools` of a row. The dict is empty if the sample has no tools.

    Args:
        sample: The sample.
        as_text: True to write the tools as JSON text, which gives rows with different tools a common schema.
    """
    if not sample.tools:
        return {}
    tools = dump_tools(sample)
    return {"tools": json.dumps(tools, ensure_ascii=False) if as_text else tools}


def dump_tools(sample: Sample) -> list[dict[str, Any]]:
    """Returns the tools of a sample in the format of OpenAI Chat Completions."""
    return [_dump_tool(tool) for tool in as_tools(sample.tools)]


def _dump_tool(tool: Tool) -> dict[str, Any]:
    others = copy_json(tool.metadata or {})
    strict = {} if tool.strict is None else {"strict": tool.strict}
    function = {**as_object(others.get("function")), **declare_tool(tool, "parameters"), **strict}
    return {"type": "function", **others, "function": function}
