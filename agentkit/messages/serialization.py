"""Serialization of messages: `{"agentkit": 1, "messages": […]}`, or a list of messages (version 0)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from typing import Any, cast

from pydantic import ConfigDict, TypeAdapter, ValidationError

from agentkit.errors import MessageError, VersionError
from agentkit.json_values import is_encodable, replace_surrogates
from agentkit.messages.blocks import Block, InvalidBlock, ResultItem
from agentkit.messages.coercion import adopt_block, adopt_extra
from agentkit.messages.log_formats import check_log_message, describe_log_format
from agentkit.messages.message import Msg
from agentkit.messages.validation import to_message_error

__all__ = ["FORMAT_VERSION", "dump_messages", "load_messages"]

FORMAT_VERSION = 1
"""Version of the JSON format. Version 0, which has no version key, is a list of messages, also of AgentScope."""

_MESSAGE_KEYS = frozenset({"name", "content", "role", "id", "timestamp", "metadata", "pinned"})

_FORMS = "agentkit agentscope anthropic langchain openai openai-responses"
"""Forms whose content blocks are read, or kept as InvalidBlock with their data."""

# A union's own schema does not take over the settings of its members.
_FINITE = ConfigDict(allow_inf_nan=False)
_block_reader: TypeAdapter[Block] = TypeAdapter(Block, config=_FINITE)
_item_reader: TypeAdapter[ResultItem] = TypeAdapter(ResultItem, config=_FINITE)


def dump_messages(msgs: Iterable[Msg]) -> dict[str, Any]:
    """Returns a conversation as JSON values, for `json.dump`. `load_messages` loads equal messages.

    Raises:
        MessageError: `msgs` is not a list of messages.

    """
    given: object = msgs
    if isinstance(given, str | bytes | Mapping) or not isinstance(given, Iterable):
        kind = type(cast("object", given)).__name__
        raise MessageError("msgs", f"expected a list of Msg, got {kind}", "Pass a list.")
    return {"agentkit": FORMAT_VERSION, "messages": [_dump(f"msgs[{at}]", msg) for at, msg in enumerate(msgs)]}


def _dump(place: str, msg: object) -> dict[str, Any]:
    if not isinstance(msg, Msg):
        raise MessageError(place, f"expected a Msg, got {type(msg).__name__}", "Pass messages, not their dicts.")
    return dump_message(msg)


def load_messages(data: object) -> list[Msg]:
    """Loads messages from JSON text or from parsed JSON.

    An unreadable block becomes an InvalidBlock with its place and the reason.

    Args:
        data: JSON of `dump_messages`, or a list of message dicts.

    Raises:
        MessageError: The data is not a conversation.
        VersionError: The data has the format of a newer agentkit.

    """
    if isinstance(data, str | bytes | bytearray):
        data = _parse(data)
    if isinstance(data, Mapping):
        data = _unwrap(cast("Mapping[str, object]", data))
    if isinstance(data, str | bytes) or not isinstance(data, Sequence):
        raise MessageError("messages", f"expected a list, found {type(data).__name__}", "Give a JSON list.")
    return [load_message(found, f"messages[{at}]") for at, found in enumerate(cast("Sequence[Any]", data))]


def _parse(text: str | bytes | bytearray) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise MessageError("input", f"this is not JSON ({error})", "Mend the JSON.") from None


def _unwrap(data: Mapping[str, object]) -> object:
    version = data.get("agentkit", 0)
    if not isinstance(version, int) or isinstance(version, bool) or not 0 <= version < 1_000_000:
        huge = isinstance(version, int) and abs(version) >= 1_000_000
        shown = "huge" if huge else repr(version)[:60]
        raise MessageError("agentkit", f"the format version is {shown}", f"It is {FORMAT_VERSION} at most.")
    if version > FORMAT_VERSION:
        raise VersionError("agentkit", version, FORMAT_VERSION)
    if "messages" not in data:
        raise MessageError("messages", "the object has no messages", describe_log_format(data))
    return data["messages"]


def load_message(found: object, place: str = "message") -> Msg:
    """Loads a message from its dict. Keys without a field move into `metadata`."""
    if isinstance(found, Msg):
        return found
    found = replace_surrogates(found, place)
    if not isinstance(found, Mapping):
        raise MessageError(place, f"expected an object, found {type(found).__name__}", "Give a message.")
    data = dict(cast("Mapping[str, Any]", found))
    for key in ("name", "role", "content"):
        if key not in data:
            advice = f"A message has name, role and content. {describe_log_format(data)}"
            raise MessageError(f"{place}.{key}", "it is missing", advice)
    check_log_message(data, place, ("content",), (), _FORMS)
    extra = {key: data.pop(key) for key in list(data) if key not in _MESSAGE_KEYS}
    adopt_extra(data, extra)
    data["content"] = _load_content(data["content"], f"{place}.content")
    try:
        return Msg(**data)
    except MessageError as error:
        inner = error.place.removeprefix("Msg").lstrip(".")
        raise MessageError(f"{place}.{inner}", error.reason, error.advice) from None


def _load_content(content: object, place: str) -> object:
    if content is None:
        return ()
    if not isinstance(content, list | tuple):
        return content
    return tuple(
        _load_block(found, f"{place}[{at}]") for at, found in enumerate(cast("Iterable[object]", content))
    )


def _load_block(found: object, place: str) -> object:
    """Loads a block. Each item of a result is loaded alone: an unreadable item does not affect others."""
    block = adopt_block(found)
    if isinstance(block, dict):
        parts = cast("dict[str, Any]", block)
        if parts.get("type") == "invalid" and isinstance(parts.get("data"), dict):
            return _reload_block(parts, place)
        output = parts.get("output")
        if isinstance(output, list):
            items = enumerate(cast("list[object]", output))
            read = [_load_item(item, f"{place}.output[{at}]") for at, item in items]
            return _read(_block_reader, {**parts, "output": read}, place, found)
    return _read(_block_reader, cast("object", block), place, found)


def _load_item(item: object, place: str) -> object:
    """Loads an item of a result. An item that an earlier version could not read is tried again."""
    kept = _read(_item_reader, item, place)
    data: object = kept.data if isinstance(kept, InvalidBlock) else None
    if not isinstance(data, dict):
        return kept
    again = _read(_item_reader, adopt_block(cast("object", data)), place)
    return kept if isinstance(again, InvalidBlock) else again


def _reload_block(stored: dict[str, Any], place: str) -> object:
    """Loads a block that an earlier version could not read. Returns the InvalidBlock if it is still unreadable."""
    kept = _read(_block_reader, stored, place)
    block = _load_block(kept.data, place) if isinstance(kept, InvalidBlock) else kept
    return kept if isinstance(block, InvalidBlock) else block


def _read(reader: TypeAdapter[Any], block: object, place: str, found: object = None) -> object:
    try:
        return reader.validate_python(block)
    except (ValidationError, MessageError) as error:
        return _keep_invalid(block if found is None else found, _why(error), place)


def _keep_invalid(found: object, reason: str, place: str) -> InvalidBlock:
    """Returns an InvalidBlock with the stored block, or with its text if it is not a JSON value."""
    reason = ascii(reason)[1:-1] if not is_encodable(reason) else reason
    try:
        data = json.loads(json.dumps(found, allow_nan=False, ensure_ascii=False).encode())
        return InvalidBlock(data, reason, place)
    except (TypeError, ValueError, RecursionError):
        return InvalidBlock(_in_ascii(found), reason, place)


def _in_ascii(found: object) -> str:
    try:
        return ascii(found)
    except RecursionError:
        return "nested too deeply to be shown"


def _why(error: ValidationError | MessageError) -> str:
    """Returns the reason of an error, with its place inside the block."""
    found = to_message_error("", error, []) if isinstance(error, ValidationError) else error
    where = re.sub(
        r"^\.?(text|thinking|tool_use|tool_result|image|audio|video|document|opaque)\b\.?", "", found.place
    )
    return f"{where}: {found.reason}" if where else found.reason


def dump_message(msg: Msg) -> dict[str, Any]:
    """Returns a message as JSON values, without fields that have their default."""
    return cast("dict[str, Any]", _plain(msg))


def _plain(found: Any) -> Any:
    if isinstance(found, tuple | list):
        return [_plain(item) for item in cast("Iterable[Any]", found)]
    if isinstance(found, dict):
        return {key: _plain(item) for key, item in cast("dict[str, Any]", found).items()}
    if found is None or isinstance(found, str | int | float):
        return found
    return {
        known.name: _plain(item)
        for known in fields(found)
        for item in [getattr(found, known.name)]
        if known.name == "type" or item != known.default
    }
