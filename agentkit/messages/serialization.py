"""Conversion of conversations to JSON and back.

The JSON format is `{"agentkit": 1, "messages": […]}`. Version 0 of the format is a list of messages. A block that
cannot be read becomes an InvalidBlock with the stored data, so that the rest of the conversation can be loaded.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from typing import Any, cast

from pydantic import ConfigDict, TypeAdapter, ValidationError

from agentkit.errors import MessageError, VersionError
from agentkit.json_values import is_encodable, replace_surrogates
from agentkit.messages.blocks import (
    Block,
    InvalidBlock,
    OpaqueState,
    ResultItem,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
    build_trusted_text,
)
from agentkit.messages.foreign_block_dicts import adopt_block, adopt_extra
from agentkit.messages.log_checks import check_log_message, describe_log_format
from agentkit.messages.message import Msg
from agentkit.messages.validation import ORDINARY_BUILDERS, is_text
from agentkit.messages.validation_errors import to_message_error
from agentkit.reprs import describe_value, shorten_repr

__all__ = ["FORMAT_VERSION", "dump_messages", "load_messages"]

FORMAT_VERSION = 1
"""Version of the JSON format. Version 0 is a list of messages without a version key, as in AgentScope."""

_MESSAGE_KEYS = frozenset({"name", "content", "role", "id", "timestamp", "metadata", "pinned"})

_LOG_FORMATS = "agentkit agentscope anthropic langchain openai openai-responses"
"""Log formats whose messages `load_message` accepts. Unreadable blocks become InvalidBlocks."""

# In pydantic, a union does not inherit the configuration of its members, so the configuration is passed again.
_FINITE = ConfigDict(allow_inf_nan=False)
_block_reader: TypeAdapter[Block] = TypeAdapter(Block, config=_FINITE)
_item_reader: TypeAdapter[ResultItem] = TypeAdapter(ResultItem, config=_FINITE)


def dump_messages(msgs: Iterable[Msg]) -> dict[str, Any]:
    """Converts a conversation to JSON values for `json.dump`. `load_messages` converts the values back.

    Raises:
        MessageError: If `msgs` is not a list of messages.

    """
    value: object = msgs
    if isinstance(value, str | bytes | Mapping) or not isinstance(value, Iterable):
        raise MessageError(
            "msgs", f"expected a list of Msg, got {describe_value(cast('object', value))}", "Pass a list of Msg."
        )
    stored = [_dump(f"msgs[{index}]", msg) for index, msg in enumerate(msgs)]
    return {"agentkit": FORMAT_VERSION, "messages": stored}


def _dump(place: str, msg: object) -> dict[str, Any]:
    if not isinstance(msg, Msg):
        raise MessageError(
            place,
            f"expected a Msg, got {describe_value(msg)}",
            "Pass a list of Msg. Use Msg.from_dict to convert dicts.",
        )
    return dump_message(msg)


def load_messages(data: object) -> list[Msg]:
    """Loads messages from JSON text or from parsed JSON.

    A block that cannot be read becomes an InvalidBlock, which states the reason and the path of the block.

    Args:
        data: JSON that `dump_messages` wrote, or a list of message dicts.

    Raises:
        MessageError: If the data is not a conversation.
        VersionError: If a newer version of agentkit wrote the data.

    """
    if isinstance(data, str | bytes | bytearray):
        data = _parse(data)
    if isinstance(data, Mapping):
        data = _unwrap(cast("Mapping[str, object]", data))
    if isinstance(data, str | bytes) or not isinstance(data, Sequence):
        raise MessageError("messages", f"expected a list, got {describe_value(data)}", "Pass a list of messages.")
    items = enumerate(cast("Sequence[Any]", data))
    return [_build_ordinary(item) or _load_checked(item, f"messages[{index}]") for index, item in items]


def _parse(text: str | bytes | bytearray) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise MessageError(
            "input", f"expected JSON text, but parsing failed ({error})", "Pass the complete JSON text."
        ) from None


def _unwrap(data: Mapping[str, object]) -> object:
    version = data.get("agentkit", 0)
    if not isinstance(version, int) or isinstance(version, bool) or not 0 <= version < 1_000_000:
        reason = f"must be an integer format version from 0 to {FORMAT_VERSION}, got {shorten_repr(version, 60)}"
        raise MessageError("agentkit", reason, "Pass JSON that dump_messages wrote.")
    if version > FORMAT_VERSION:
        raise VersionError("agentkit", version, FORMAT_VERSION)
    if "messages" not in data:
        reason = f"expected an object with the key 'messages', got {shorten_repr(dict(data), 60)}"
        raise MessageError("messages", reason, describe_log_format(data))
    return data["messages"]


def load_message(stored: object, place: str = "message") -> Msg:
    """Loads a message from a dict. Unknown keys of the dict are moved to `metadata`.

    Args:
        stored: Message as a dict. A `Msg` is returned unchanged.
        place: Path of the message for error texts, such as `messages[3]`.

    Raises:
        MessageError: If the value is not a message.

    """
    return _build_ordinary(stored) or _load_checked(stored, place)


def _load_checked(stored: object, place: str) -> Msg:
    """Loads a message as `load_message` does, and checks and converts each part."""
    if isinstance(stored, Msg):
        return stored
    stored = replace_surrogates(stored, place)
    if not isinstance(stored, Mapping):
        raise MessageError(
            place, f"expected a message dict, got {describe_value(stored)}", "Pass a dict or a Msg."
        )
    data = dict(cast("Mapping[str, Any]", stored))
    for key in ("name", "role", "content"):
        if key not in data:
            reason = "the key is missing, but each message needs the keys 'name', 'role' and 'content'"
            raise MessageError(f"{place}.{key}", reason, describe_log_format(data))
    check_log_message(data, place, ("content",), (), _LOG_FORMATS)
    extra = {key: data.pop(key) for key in list(data) if key not in _MESSAGE_KEYS}
    adopt_extra(data, extra)
    data["content"] = _load_content(data["content"], f"{place}.content")
    try:
        return Msg(**data)
    except MessageError as error:
        inner = error.place.removeprefix("Msg").lstrip(".")
        raise MessageError(f"{place}.{inner}", error.reason, error.advice) from None


def _build_ordinary(stored: object) -> Msg | None:
    """Builds a message directly from a dict with the keys and types that `dump_message` writes, to save time.

    Returns None if a part of the dict may be invalid, or may have to be converted. Use `_load_checked` then.
    """
    if type(stored) is not dict:
        return None
    fields: dict[str, Any] = stored  # pyright: ignore[reportUnknownVariableType] - a cast takes time
    try:
        content = fields["content"]
        if type(content) is list:
            content = tuple([_build_block(block) for block in content])  # pyright: ignore[reportUnknownVariableType]
        msg: Msg | None
        if len(fields) == 3:
            msg = _build_msg(fields["name"], content, fields["role"])
        else:
            msg = _build_msg(**{**fields, "content": content})
        return msg
    except (KeyError, TypeError, MessageError, RecursionError):
        return None


def _build_block(stored: Any) -> object:
    """Builds a block for `_build_ordinary`. Returns None or raises an error if the block needs further checks."""
    if type(stored) is not dict:
        return None
    fields: dict[str, Any] = stored.copy()  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]
    block_type = fields.pop("type")
    if block_type == "text" and len(fields) == 1:  # fast path
        text = fields["text"]
        return build_trusted_text(text) if is_text(text) else None
    build = _BLOCK_BUILDERS[block_type]
    state, output = fields.get("state"), fields.get("output")
    if type(state) is dict:
        fields["state"] = OpaqueState(**cast("dict[str, Any]", state))
    if type(output) is list:
        fields["output"] = [_build_block(item) for item in cast("list[Any]", output)]
    return build(**fields)


_build_msg = ORDINARY_BUILDERS[Msg]
_BLOCK_BUILDERS = {
    "text": ORDINARY_BUILDERS[TextBlock],
    "thinking": ORDINARY_BUILDERS[ThinkingBlock],
    "tool_use": ORDINARY_BUILDERS[ToolUseBlock],
    "tool_result": ORDINARY_BUILDERS[ToolResultBlock],
}
"""Maps block types to functions that build a block of the type without pydantic."""


def _load_content(content: object, place: str) -> object:
    if content is None:
        return ()
    if not isinstance(content, list | tuple):
        return content
    blocks = enumerate(cast("Iterable[object]", content))
    return tuple(_load_block(block, f"{place}[{index}]") for index, block in blocks)


def _load_block(stored: object, place: str) -> object:
    """Loads a block. An invalid item of a tool result does not affect the other items."""
    block = adopt_block(stored)
    if isinstance(block, dict):
        parts = cast("dict[str, Any]", block)
        if parts.get("type") == "invalid" and isinstance(parts.get("data"), dict):
            return _reload_block(parts, place)
        output = parts.get("output")
        if isinstance(output, list):
            items = enumerate(cast("list[object]", output))
            loaded = [_load_item(item, f"{place}.output[{index}]") for index, item in items]
            return _read(_block_reader, {**parts, "output": loaded}, place, stored)
    return _read(_block_reader, cast("object", block), place, stored)


def _load_item(item: object, place: str) -> object:
    """Loads an item of a tool result. If the item is a stored InvalidBlock, tries to load its data again."""
    block = _read(_item_reader, item, place)
    data: object = block.data if isinstance(block, InvalidBlock) else None
    if not isinstance(data, dict):
        return block
    reloaded = _read(_item_reader, adopt_block(cast("object", data)), place)
    return block if isinstance(reloaded, InvalidBlock) else reloaded


def _reload_block(stored: dict[str, Any], place: str) -> object:
    """Tries to load the data of an InvalidBlock again. Returns the InvalidBlock if the data is still invalid."""
    block = _read(_block_reader, stored, place)
    reloaded = _load_block(block.data, place) if isinstance(block, InvalidBlock) else block
    return block if isinstance(reloaded, InvalidBlock) else reloaded


def _read(reader: TypeAdapter[Any], block: object, place: str, stored: object = None) -> object:
    """Validates a block. Returns an InvalidBlock if the block is invalid.

    The InvalidBlock contains `stored`, or `block` if `stored` is None.
    """
    try:
        return reader.validate_python(block)
    except (ValidationError, MessageError) as error:
        return _build_invalid(block if stored is None else stored, _describe_error(error), place)


def _build_invalid(stored: object, reason: str, place: str) -> InvalidBlock:
    """Returns an InvalidBlock with the stored value, or with its repr if JSON cannot represent the value."""
    reason = ascii(reason)[1:-1] if not is_encodable(reason) else reason
    try:
        data = json.loads(json.dumps(stored, allow_nan=False, ensure_ascii=False).encode())
        return InvalidBlock(data, reason, place)
    except (TypeError, ValueError, RecursionError):
        return InvalidBlock(_ascii_repr(stored), reason, place)


def _ascii_repr(value: object) -> str:
    try:
        return ascii(value)
    except RecursionError:
        return "nested too deeply to be shown"


def _describe_error(error: ValidationError | MessageError) -> str:
    """Returns the reason of an error, preceded by the path of the invalid value inside the block."""
    error = to_message_error("", error, []) if isinstance(error, ValidationError) else error
    place = _BLOCK_TYPE.sub("", error.place)
    return f"{place}: {error.reason}" if place else error.reason


_BLOCK_TYPE = re.compile(r"^\.?(text|thinking|tool_use|tool_result|image|audio|video|document|opaque)\b\.?")
"""Pattern for a block type that pydantic inserts before a field name in the path of an error."""


def dump_message(msg: Msg) -> dict[str, Any]:
    """Converts a message to a dict of JSON values. Fields with their default value are omitted."""
    return cast("dict[str, Any]", _to_json(msg))


def _to_json(value: Any) -> Any:
    if isinstance(value, tuple | list):
        return [_to_json(item) for item in cast("Iterable[Any]", value)]
    if isinstance(value, dict):
        return {key: _to_json(item) for key, item in cast("dict[str, Any]", value).items()}
    if value is None or isinstance(value, str | int | float):
        return value
    return {
        field.name: _to_json(item)
        for field in fields(value)
        for item in [getattr(value, field.name)]
        if field.name == "type" or item != field.default
    }
