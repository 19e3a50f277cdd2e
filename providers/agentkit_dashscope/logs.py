"""Loader for logged messages and requests of DashScope's native API (Model Studio docs: API reference)."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Any, Final, cast

from agentkit.provider_kit import (
    Block,
    InvalidBlock,
    Msg,
    OpaqueBlock,
    OpaqueState,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    as_list,
    as_object,
    as_text,
    check_log_message,
    describe_value,
    ensure_json_safe,
    get_set_fields,
    parse_function_call,
    read_log_entries,
    source_from_url,
    split_error_mark,
)
from agentkit_dashscope._reply_media import BLOCK_TYPES
from agentkit_dashscope._upload_guard import guard_text
from agentkit_openai import attach_keys

__all__ = ["load_native"]

_MESSAGE_KEYS: Final = frozenset({"role", "content", "reasoning_content", "tool_calls", "tool_call_id", "name"})
_CONTENT_KEYS: Final = ("content", "reasoning_content", "tool_calls")
_STORED_KEYS: Final = ("session_id", "memory_id")
"""Request keys that refer to a conversation stored by the provider (Model Studio docs: application calls)."""


def load_native(log: object) -> list[Msg]:
    """Loads a conversation from messages or from a request.

    A request is a dict with the arguments of the SDK call, or the JSON body of the HTTP request. The log can
    contain objects of the classic SDK or of `dashscope.v2`. The loader removes the line break that the formatter
    adds before a text that can be a path.

    Additional keys of a part (`fps`, `min_pixels`) and the key `partial` of a message become opaque state. Later
    requests contain this state. Other additional keys of a message become metadata. Cache markers are omitted.

    Parts of an unknown kind, and videos that are lists of frames, become OpaqueBlocks. Unreadable parts become
    InvalidBlocks.

    Raises:
        MessageError: The value is not a conversation in DashScope's format.
    """
    request: Any = ensure_json_safe(log, "log", _dump_sdk_object)
    if body := as_object(as_object(request).get("input")):
        request = {**request, "input": None, **body}
    messages = read_log_entries(request, stored_keys=_STORED_KEYS, place="messages")
    return [_parse_message(item, f"messages[{index}]") for index, item in enumerate(messages)]


def _dump_sdk_object(value: Any) -> Any:
    """Returns an object of `dashscope.v2` as a dict with `type` and all fields that are set.

    Returns any other value unchanged.
    """
    fields = get_set_fields(value, ["type"])
    return value if fields is None else {**fields, **as_object(getattr(value, "model_extra", None))}


def _parse_message(value: Any, place: str) -> Msg:
    """Converts one item of the log to a message. An item that is not a dict becomes an InvalidBlock."""
    if not isinstance(value, dict):
        return Msg(
            "user",
            (InvalidBlock(value, f"expected a message object, got {describe_value(value)}", place),),
            "user",
        )
    message = cast("dict[str, Any]", value)
    check_log_message(message, place, _CONTENT_KEYS, (), "dashscope")
    metadata = {key: item for key, item in message.items() if key not in _MESSAGE_KEYS} or None
    role = as_text(message.get("role")).lower()
    if role == "tool":
        return Msg("system", (_parse_result(message, place),), "system", metadata=metadata)
    parts = _parse_content(message.get("content"), f"{place}.content", guard=role == "user")
    if message.get("partial") is True and role == "assistant" and parts and isinstance(parts[-1], TextBlock):
        metadata = _without(metadata or {}, {"partial"}) or None
        parts = attach_keys(parts, {"partial": True}, "dashscope") or parts
    calls = enumerate(as_list(message.get("tool_calls")))
    tool_uses = [parse_function_call(call, f"{place}.tool_calls[{index}]") for index, call in calls]
    thinking = message.get("reasoning_content")
    thoughts = [ThinkingBlock(thinking, OpaqueState("dashscope"))] if isinstance(thinking, str) else []
    blocks = (*thoughts, *parts, *tool_uses)
    only = blocks[0] if len(blocks) == 1 else None
    content: Any = only.text if isinstance(only, TextBlock) and only.state is None else blocks
    msg_role: Any = role if role in ("system", "user", "assistant") else "user"
    return Msg(as_text(message.get("name")) or role or "user", content, msg_role, metadata=metadata)


def _parse_result(message: dict[str, Any], place: str) -> ToolResultBlock:
    """Parses a tool result. The key `name` of the message is optional. Without the key, the tool name is empty."""
    id, name = as_text(message.get("tool_call_id")), as_text(message.get("name"))
    blocks = _parse_content(message.get("content"), f"{place}.content", guard=False)
    only = blocks[0] if len(blocks) == 1 else None
    if blocks and not (isinstance(only, TextBlock) and only.state is None):
        return ToolResultBlock(id, name, cast("Any", tuple(blocks)))
    text, is_error = split_error_mark(only.text if isinstance(only, TextBlock) else "")
    return ToolResultBlock(id, name, text, is_error)


def _parse_content(content: object, place: str, *, guard: bool) -> list[Block]:
    if isinstance(content, str):
        return [TextBlock(content)] if content else []
    if content is None:
        return []
    if not isinstance(content, list):
        reason = f"expected a string or a list of content parts, got {describe_value(content)}"
        return [InvalidBlock(content, reason, place)]
    parts = enumerate(cast("list[Any]", content))
    return [_parse_part(item, f"{place}[{index}]", guard) for index, part in parts for item in _split_part(part)]


def _split_part(part: Any) -> list[Any]:
    """Splits a part with several content keys, such as `text` and `image`, into one part per content key."""
    fields = as_object(part)
    content_keys = [key for key in ("text", *BLOCK_TYPES) if key in fields]
    return [{key: fields[key]} for key in content_keys] if len(content_keys) > 1 else [part]


def _parse_part(value: Any, place: str, guard: bool) -> Block:
    """Converts a content part to a block.

    The kind of a part is its content key, such as `text` or `image`, or its `type` in `dashscope.v2`. A part of an
    unknown kind becomes an OpaqueBlock.
    """
    part = {"text": value} if isinstance(value, str) else as_object(value)
    kind = next((kind for kind in ("text", *BLOCK_TYPES) if kind in (*part, part.get("type"))), None)
    if not part:
        return InvalidBlock(value, f"expected a content part, got {describe_value(value)}", place)
    if kind is None:
        return OpaqueBlock("dashscope", _without(part, {"cache_control"}))
    content = part.get(kind)
    if kind == "video" and (frames := as_list(content) or as_list(part.get("frames"))):
        return _parse_video_frames(frames, _without(part, {"cache_control"}), place)
    state = _create_state(_without(part, {*_NO_STATE_KEYS, kind}))
    if kind != "text":
        return _parse_media(kind, content if content is not None else _get_url(part), state, place)
    if not isinstance(content, str):
        reason = f"expected a part in which `text` is a string, got {describe_value(content)}"
        return InvalidBlock(value, reason, place)
    return TextBlock(_remove_guard(content) if guard else content, state=state)


def _parse_video_frames(frames: list[Any], part: dict[str, Any], place: str) -> Block:
    """Returns an OpaqueBlock for a video that is a list of frames, because only DashScope accepts such videos.

    Returns an InvalidBlock if a frame is not a URL. The SDK would treat the frame as the path of a local file and
    upload the file. Source: `dashscope.v2`, `VideoPart.frames`.
    """
    invalid = [frame for frame in frames if not (isinstance(frame, str) and _OPENABLE_URL.match(frame))]
    if invalid:
        reason = f"expected video frames that are http, https, oss or data URLs, got {describe_value(invalid[0])}"
        return InvalidBlock(part, reason, place)
    return OpaqueBlock("dashscope", {"video": frames, **_without(part, {*_NO_STATE_KEYS, "video"})})


_OPENABLE_URL: Final = re.compile(r"(https?|oss)://|data:", re.IGNORECASE)


def _without(part: dict[str, Any], keys: Collection[str]) -> dict[str, Any]:
    return {key: item for key, item in part.items() if key not in keys}


def _create_state(fields: dict[str, Any]) -> OpaqueState | None:
    return OpaqueState("dashscope", fields=fields) if fields else None


_NO_STATE_KEYS: Final = frozenset({"type", "cache_control", "url", "data", "format", "frames"})
"""Keys of a part that do not become opaque state."""


def _get_url(part: dict[str, Any]) -> object:
    """Returns the URL of a part. Converts audio data to a data URL (source: `dashscope.v2`, `AudioPart`)."""
    if part.get("url") is not None or part.get("data") is None:
        return part.get("url")
    return f"data:audio/{as_text(part.get('format')) or 'wav'};base64,{as_text(part['data'])}"


def _parse_media(media_kind: str, url: object, state: OpaqueState | None, place: str) -> Block:
    source = source_from_url(url)
    if source is None:
        reason = f"expected a URL of the {media_kind}, got {describe_value(url)}"
        return InvalidBlock(ensure_json_safe(url), reason, place)
    return BLOCK_TYPES[media_kind](source, state=state)


def _remove_guard(text: str) -> str:
    """Removes the line break that `guard_text` added. Returns any other text unchanged."""
    bare = text[1:]
    return bare if text.startswith("\n") and bare.strip() and guard_text(bare) == text else text
