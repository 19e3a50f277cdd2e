"""`HistoryRow`: one row (an earlier turn) of an input of the type `History`, with its tool calls and results."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, cast

from pydantic import BaseModel

from agentkit.errors import OptionError, ParseError
from agentkit.json_values import as_object, as_text
from agentkit.messages.blocks import TextBlock, ToolResultBlock, ToolUseBlock
from agentkit.messages.message import Msg
from agentkit.prompts.fields import SignatureField
from agentkit.prompts.tool_call_values import read_tool_calls
from agentkit.prompts.type_names import is_tool_calls
from agentkit.prompts.value_types import as_json_value
from agentkit.reprs import shorten_repr

__all__ = ["HistoryRow", "RESULTS", "StoredResults", "read_row"]

RESULTS: Final = "tool_call_results"
"""Key of the tool results in a row of a history.

If a prompt shows the tool calls of a row as text, the section with the results has this name too.
"""


class _StoredResult(BaseModel):
    """Tool result as DSPy stores it."""

    call_id: str | None
    name: str
    value: Any
    is_error: bool


class StoredResults(BaseModel):
    """Tool results in one row of a history, in the format that DSPy stores and prompts show."""

    tool_call_results: list[_StoredResult]

    def __str__(self) -> str:
        return json.dumps(self.model_dump(), ensure_ascii=False)


@dataclass(frozen=True)
class HistoryRow:
    """Row of an input of the type `History`: one earlier turn.

    Attributes:
        values: Values of the row, by name. The value with the tool calls is a list of `ToolUseBlock`.
        calls: Tool calls of the row.
        results: Results of the tool calls.
        stored: The results in the format in which prompts show them. None, or an object without results, if
            `results` is empty.
    """

    values: Mapping[str, Any]
    calls: Sequence[ToolUseBlock] = ()
    results: Sequence[ToolResultBlock] = ()
    stored: StoredResults | None = None


def read_row(row: Mapping[str, Any], place: str, fields: Mapping[str, SignatureField]) -> HistoryRow:
    """Reads a row of a history, and the tool calls and results in the row.

    Fields that the prompt shows are skipped, except fields of the type `list[ToolUseBlock]`. The tool calls are
    read from the first value that is not skipped and has one of these formats:

    - a dict with the key `tool_calls` and optionally the key `tool_call_results`, as DSPy 3.4.1 stores them;
    - a list of tool calls and their results: blocks, dicts as `Msg.to_dict` writes blocks, or dicts with the keys
      `name` and `args`.

    A tool call without an id gets an id. A result that DSPy stored without an id gets the id of the tool call at
    the same position. If another result already has this id, the result without an id gets the id of the first
    tool call without a result.

    Args:
        row: Values of the row, by name.
        place: Place of the row, for errors.
        fields: Fields that the prompt shows, by name.

    Raises:
        OptionError: A tool call or a result is invalid, or the row has results but no calls.
    """
    for name, value in row.items():
        if name in fields and not is_tool_calls(fields[name].type):
            continue
        path = f"{place}.{name}"
        try:
            stored = as_object(value)
            if "tool_calls" in stored:
                found = _read_stored(stored, path)
            elif _is_exchange(value):
                found = _read_blocks(cast("Sequence[object]", value), path)
            else:
                continue
        except RecursionError:
            raise OptionError(path, "the value is nested too deeply", "Pass a value with fewer levels.") from None
        if found.results and not found.calls:
            raise OptionError(
                path, "the value has tool results but no tool calls", "Add the calls, or remove the results."
            )
        return replace(found, values={**row, name: found.calls})
    return HistoryRow(row)


def _is_exchange(value: object) -> bool:
    """Returns True if a value is a list or tuple that begins with a tool call or a tool result."""
    if not isinstance(value, list | tuple) or not value:
        return False
    first = cast("Sequence[object]", value)[0]
    stored = as_object(first)
    is_call = "name" in stored and ("args" in stored or "arguments" in stored)
    is_block = stored.get("type") in ("tool_use", "tool_result")
    return is_call or is_block or "function" in stored or isinstance(first, ToolUseBlock | ToolResultBlock)


def _read_blocks(items: Sequence[object], place: str) -> HistoryRow:
    blocks = [_read_block(item, f"{place}[{index}]") for index, item in enumerate(items)]
    calls = [block for block in blocks if isinstance(block, ToolUseBlock)]
    results = [block for block in blocks if isinstance(block, ToolResultBlock)]
    entries = [
        _StoredResult(call_id=block.id, name=block.name, value=_get_text(block, place), is_error=block.is_error)
        for block in results
    ]
    return HistoryRow({}, calls, results, StoredResults(tool_call_results=entries))


def _read_block(item: object, place: str) -> ToolUseBlock | ToolResultBlock:
    if isinstance(item, ToolUseBlock | ToolResultBlock):
        return item
    stored = as_object(item)
    if stored.get("type") in ("tool_use", "tool_result"):
        (block,) = Msg.from_dict({"name": "row", "role": "assistant", "content": [stored]}).blocks
        if isinstance(block, ToolUseBlock | ToolResultBlock):
            return block
    elif stored:
        return _read_calls([stored], place)[0]
    reason = f"expected a tool call or a tool result, got {shorten_repr(item, 60)}"
    raise OptionError(place, reason, "Pass ToolUseBlock and ToolResultBlock values.")


def _get_text(block: ToolResultBlock, place: str) -> str:
    if isinstance(block.output, str):
        return block.output
    texts = [item.text for item in block.output if isinstance(item, TextBlock)]
    if len(texts) < len(block.output):
        reason = "a tool result in an input of the type History cannot contain media"
        raise OptionError(place, reason, "Pass the messages of the earlier turns as history=….")
    return "\n".join(texts)


def _read_calls(value: object, place: str) -> list[ToolUseBlock]:
    try:
        return read_tool_calls(place, value, keep_ids=True)
    except ParseError as error:
        raise OptionError(error.place, error.description, "Pass dicts with the keys `name` and `args`.") from None


def _read_stored(stored: Mapping[str, Any], place: str) -> HistoryRow:
    calls = _read_calls(stored["tool_calls"], place)
    if stored.get(RESULTS) is None:
        return HistoryRow({}, calls)
    listed: object = as_object(stored[RESULTS]).get(RESULTS, stored[RESULTS])
    entries = [
        _read_result(entry, f"{place}.{RESULTS}[{index}]")
        for index, entry in enumerate(cast("list[object]", listed) if isinstance(listed, list) else [listed])
    ]
    open_ids = [call.id for call in calls if call.id not in {entry.call_id for entry in entries}]
    results: list[ToolResultBlock] = []
    for index, entry in enumerate(entries):
        text = entry.value if isinstance(entry.value, str) else json.dumps(entry.value, ensure_ascii=False)
        id = entry.call_id or (calls[index].id if index < len(calls) else "")
        if entry.call_id is None and id not in open_ids:
            id = open_ids[0] if open_ids else id
        if id in open_ids:
            open_ids.remove(id)
        results.append(ToolResultBlock(id, entry.name, text, entry.is_error))
    return HistoryRow({}, calls, results, StoredResults(tool_call_results=entries))


def _read_result(entry: object, place: str) -> _StoredResult:
    result = as_object(entry)
    name = as_text(result.get("name"))
    if not name or "value" not in result:
        reason = f"expected a tool result with the keys `name` and `value`, got {shorten_repr(entry, 60)}"
        raise OptionError(place, reason, "Pass dicts with the keys `name` and `value`.")
    return _StoredResult(
        call_id=as_text(result.get("call_id")) or None,
        name=name,
        value=as_json_value(result["value"]),
        is_error=result.get("is_error") is True,
    )
