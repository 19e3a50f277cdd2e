"""Functions that loaders use to parse logs: the text of a log, its entries, and tool calls."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, cast

from agentkit.errors import MessageError
from agentkit.json_values import as_object, as_text, parse_json, read_arguments
from agentkit.messages.blocks import InvalidBlock, ToolUseBlock
from agentkit.messages.log_checks import check_log_request, describe_log_format
from agentkit.replies.missing_call_ids import derive_call_id
from agentkit.reprs import shorten_repr

__all__ = ["parse_function_call", "parse_log_text", "read_log_entries"]


def read_log_entries(
    log: object,
    name: str = "messages",
    entry_keys: Collection[str] = ("role",),
    *,
    other_names: tuple[str, ...] = (),
    stored_keys: Collection[str] = (),
    place: str = "log",
) -> list[Any]:
    """Returns the entries of a log, such as its messages.

    Args:
        log: List of entries, a request that contains the list, or a single entry, as JSON values.
        name: Key of the list of entries in a request.
        entry_keys: Keys by which an entry is recognized. At least one entry must have one of these keys.
        other_names: Other keys of a request under which the loader reads messages, such as `system`.
        stored_keys: Keys whose values identify messages that are stored on the server.
        place: Place of the log in errors.

    Raises:
        MessageError: `log` has another format, no entry has one of `entry_keys`, or a request has messages under
            keys that the loader does not read.
    """
    request, value = as_object(log), log
    if name not in request and any(key in request for key in entry_keys):
        value = [request]
    elif any(key in request for key in (name, *stored_keys)):
        check_log_request(request, (name, *other_names), stored_keys)
        value = request.get(name)
    if not isinstance(value, list):
        reason = f"expected the list `{name}` or a request with this list, got {shorten_repr(value, 60)}"
        raise MessageError(place, reason, describe_log_format(log))
    entries = cast("list[Any]", value)
    if entries and not any(key in as_object(entry) for entry in entries for key in entry_keys):
        keys = " or ".join(map(repr, entry_keys))
        reason = f"expected the list `{name}`, got a list in which no entry has the key {keys}"
        raise MessageError(place, reason, describe_log_format(entries))
    return entries


def parse_log_text(log: object) -> object:
    """Parses a log that is the JSON text of a list or an object. Returns any other log unchanged."""
    if not isinstance(log, str | bytes | bytearray):
        return log
    try:
        value: Any = parse_json(log)
    except MessageError:
        return log
    return cast("object", value) if isinstance(value, list | dict) else log


def parse_function_call(entry: object, place: str) -> ToolUseBlock | InvalidBlock:
    """Parses a tool call from a log. If the call has no id, an id is derived from the place and the tool name.

    Args:
        entry: Tool call, such as `{"id": "c1", "function": {"name": "add", "arguments": {}}}`.
        place: Place of the tool call in the log.

    Returns:
        The tool call, or an `InvalidBlock` if the entry has no object `function`.

    """
    call = as_object(entry)
    function = as_object(call.get("function"))
    if not function:
        return InvalidBlock(entry, "expected a `function` object in the tool call", place)
    name = as_text(function.get("name"))
    id = as_text(call.get("id")) or derive_call_id(f"{place}{name}")
    return ToolUseBlock(id, name, *read_arguments(function.get("arguments")))
