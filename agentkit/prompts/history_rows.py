"""`HistoryRow`: row of an input of the type `History`, with its tool calls and their results."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, cast

from pydantic import BaseModel

from agentkit.errors import OptionError, ParseError
from agentkit.json_values import as_object, as_text
from agentkit.messages.blocks import TextBlock, ToolResultBlock, ToolUseBlock
from agentkit.prompts.tool_call_values import read_tool_calls
from agentkit.prompts.value_types import as_json_value
from agentkit.reprs import shorten_repr

__all__ = ["HistoryRow", "RESULTS", "StoredResults", "read_row"]

RESULTS: Final = "tool_call_results"
"""Key of the results in a row, and name of their section in a prompt that describes tools as text."""


class _StoredResult(BaseModel):
    """Tool result as DSPy stores it."""

    call_id: str | None
    name: str
    value: Any
    is_error: bool


class StoredResults(BaseModel):
    """Tool results of a row, as DSPy stores them and as prompts show them."""

    tool_call_results: list[_StoredResult]


@dataclass(frozen=True)
class HistoryRow:
    """Row of a history.

    Attributes:
        values: Values of the fields, by name. The value for tool calls is a list of `ToolUseBlock`.
        calls: Tool calls of the row.
        results: Results of the tool calls.
        stored: The results as prompts show them. None if the row has no results.
    """

    values: Mapping[str, Any]
    calls: Sequence[ToolUseBlock] = ()
    results: Sequence[ToolResultBlock] = ()
    stored: StoredResults | None = None


def read_row(row: Mapping[str, Any], place: str) -> HistoryRow:
    """Reads a row and its tool calls.

    The tool calls are the first value with one of these types:

    - a dict with the key `tool_calls`, and perhaps with the key `tool_call_results`, as DSPy 3.4.1 stores them;
    - a list of `ToolUseBlock`, with the `ToolResultBlock` of each call after them.

    A call without an id gets an id. A result without an id gets the id of the call at its position.

    Raises:
        OptionError: A tool call or a result is invalid.
    """
    for name, value in row.items():
        if isinstance(value, Mapping) and "tool_calls" in value:
            return _read_stored(row, name, cast("Mapping[str, Any]", value), f"{place}.{name}")
        if _is_exchange(value):
            return _read_blocks(row, name, cast("Sequence[object]", value), f"{place}.{name}")
    return HistoryRow(row)


def _is_exchange(value: object) -> bool:
    """Returns True if a value is a list of tool calls and tool results."""
    if not isinstance(value, list | tuple) or not value:
        return False
    return all(isinstance(item, ToolUseBlock | ToolResultBlock) for item in cast("Sequence[object]", value))


def _read_blocks(row: Mapping[str, Any], name: str, blocks: Sequence[object], place: str) -> HistoryRow:
    calls = [block for block in blocks if isinstance(block, ToolUseBlock)]
    results = [block for block in blocks if isinstance(block, ToolResultBlock)]
    entries = [
        _StoredResult(call_id=block.id, name=block.name, value=_get_text(block, place), is_error=block.is_error)
        for block in results
    ]
    return HistoryRow({**row, name: calls}, calls, results, StoredResults(tool_call_results=entries))


def _get_text(block: ToolResultBlock, place: str) -> str:
    if isinstance(block.output, str):
        return block.output
    texts = [item.text for item in block.output if isinstance(item, TextBlock)]
    if len(texts) < len(block.output):
        raise OptionError(place, "a row cannot have a tool result with media", "Pass the messages as history=….")
    return "\n".join(texts)


def _read_stored(row: Mapping[str, Any], name: str, stored: Mapping[str, Any], place: str) -> HistoryRow:
    try:
        calls = read_tool_calls(place, stored["tool_calls"], keep_ids=True)
    except ParseError as error:
        raise OptionError(error.place, error.description, "Pass dicts with the keys `name` and `args`.") from None
    values = {**row, name: calls}
    if stored.get(RESULTS) is None:
        return HistoryRow(values, calls)
    listed: object = as_object(stored[RESULTS]).get(RESULTS, stored[RESULTS])
    entries: list[_StoredResult] = []
    results: list[ToolResultBlock] = []
    for index, entry in enumerate(cast("list[object]", listed) if isinstance(listed, list) else [listed]):
        result = _read_result(entry, f"{place}.{RESULTS}[{index}]")
        text = result.value if isinstance(result.value, str) else json.dumps(result.value, ensure_ascii=False)
        call_id = result.call_id or (calls[index].id if index < len(calls) else "")
        entries.append(result)
        results.append(ToolResultBlock(call_id, result.name, text, result.is_error))
    return HistoryRow(values, calls, results, StoredResults(tool_call_results=entries))


def _read_result(entry: object, place: str) -> _StoredResult:
    result = as_object(entry)
    name = as_text(result.get("name"))
    if not name or "value" not in result:
        reason = f"expected a tool result with `name` and `value`, got {shorten_repr(entry, 60)}"
        raise OptionError(place, reason, "Pass the results that DSPy stored.")
    return _StoredResult(
        call_id=as_text(result.get("call_id")) or None,
        name=name,
        value=as_json_value(result["value"]),
        is_error=bool(result.get("is_error")),
    )
