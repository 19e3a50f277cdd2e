"""Messages of DashScope's own wire, or a whole request, as messages (model-studio, API reference)."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import replace
from typing import Any, Final, cast

from agentkit.provider_kit import (
    AudioBlock,
    Block,
    ImageBlock,
    InvalidBlock,
    MessageError,
    Msg,
    OpaqueBlock,
    OpaqueState,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
    VideoBlock,
    as_list,
    as_object,
    as_text,
    check_log_message,
    check_log_request,
    describe_log_format,
    make_json_safe,
    read_arguments,
    short_hash,
    source_from_url,
)
from agentkit_dashscope._path_guard import guard_text

__all__ = ["load_native"]

_KNOWN: Final = frozenset({"role", "content", "reasoning_content", "tool_calls", "tool_call_id", "name"})
_CONTENT: Final = ("content", "reasoning_content", "tool_calls")
_HELD: Final = ("session_id", "memory_id")
"""Keys that name messages which the service stores (model-studio: application calls)."""
_KINDS: Final[dict[str, type[ImageBlock | AudioBlock | VideoBlock]]] = {
    "image": ImageBlock,
    "audio": AudioBlock,
    "video": VideoBlock,
}


def load_native(found: object) -> list[Msg]:
    """A conversation from its messages, or from a request: the arguments of a call, or the body that is sent.

    Objects of either SDK may stand anywhere in it. The line break that keeps a user's text from being taken for a
    file is taken off. Further keys of a part (`fps`, `min_pixels`) and the `partial` of a message are opaque
    state, which goes back with it; a film of frames and a part that is not known are OpaqueBlocks; further keys
    of a message are its metadata. Cache markers are left off; what cannot be read is kept as InvalidBlock. Raises
    MessageError for what is no conversation of DashScope's.
    """
    request: Any = make_json_safe(found, "log", _dumped)
    if isinstance(request, list):
        request = {"messages": cast("list[Any]", request)}
    held = as_object(as_object(request).get("input")) or as_object(request)
    messages = [held] if "role" in held and "messages" not in held else held.get("messages")
    if not isinstance(messages, list):
        raise MessageError("messages", "expected a list of messages", describe_log_format(request))
    if "messages" in held:
        check_log_request({**as_object(request), "input": None, **held}, ("messages",), _HELD)
    return [_message(one, f"messages[{at}]") for at, one in enumerate(cast("list[Any]", messages))]


def _dumped(found: Any) -> Any:
    """An object of `dashscope.v2` as a dict of what was set in it, and of the `type` that tells a part's kind."""
    known: Any = getattr(found, "model_fields_set", None)
    if isinstance(known, set):
        names = [name for name in cast("Any", type(found)).model_fields if name == "type" or name in known]
        fields = {str(name): getattr(found, name) for name in names}
        return {**fields, **as_object(getattr(found, "model_extra", None))}
    return found


def _message(found: Any, place: str) -> Msg:
    """One message: none is left out, and none becomes two."""
    if not isinstance(found, dict):
        return Msg("user", (InvalidBlock(found, "expected a message object", place),), "user")
    message = cast("dict[str, Any]", found)
    check_log_message(message, place, _CONTENT, (), "dashscope")
    rest = {key: item for key, item in message.items() if key not in _KNOWN} or None
    role = as_text(message.get("role")).lower()
    if role == "tool":
        return Msg("system", (_result(message, place),), "system", metadata=rest)
    said = _content(message.get("content"), f"{place}.content", guard=role == "user")
    if message.get("partial") is True and role == "assistant" and said and isinstance(said[-1], TextBlock):
        rest = _without(rest or {}, {"partial"}) or None
        said[-1] = replace(said[-1], state=_state({**_fields(said[-1]), "partial": True}))
    calls = enumerate(as_list(message.get("tool_calls")))
    made = [_call(as_object(call), call, f"{place}.tool_calls[{at}]") for at, call in calls]
    blocks = (*_thoughts(message), *said, *made)
    only = blocks[0] if len(blocks) == 1 else None
    content: Any = only.text if isinstance(only, TextBlock) and only.state is None else blocks
    known = role if role in ("system", "user", "assistant") else "user"
    return Msg(as_text(message.get("name")) or role or "user", content, cast("Any", known), metadata=rest)


def _result(message: dict[str, Any], place: str) -> ToolResultBlock:
    """A result. The name of its tool may be left out: pairing finds it."""
    id, name = as_text(message.get("tool_call_id")), as_text(message.get("name"))
    blocks = _content(message.get("content"), f"{place}.content", guard=False)
    only = blocks[0] if len(blocks) == 1 else None
    if blocks and not (isinstance(only, TextBlock) and only.state is None):
        return ToolResultBlock(id, name, cast("Any", tuple(blocks)))
    text, is_error = _without_error(only.text if isinstance(only, TextBlock) else "")
    return ToolResultBlock(id, name, text, is_error)


def _thoughts(message: dict[str, Any]) -> list[Block]:
    thinking = message.get("reasoning_content")
    return [ThinkingBlock(thinking, OpaqueState("dashscope"))] if isinstance(thinking, str) else []


def _content(content: object, place: str, *, guard: bool) -> list[Block]:
    """A string, or parts of one key each."""
    if isinstance(content, str):
        return [TextBlock(content)] if content else []
    if content is None:
        return []
    if not isinstance(content, list):
        return [InvalidBlock(content, "it is neither text nor a list of parts", place)]
    parts = enumerate(cast("list[Any]", content))
    return [_part(one, f"{place}[{at}]", guard) for at, part in parts for one in _singles(part)]


def _singles(part: Any) -> list[Any]:
    """A part; one that says several things as several."""
    held = as_object(part)
    said = [kind for kind in ("text", *_KINDS) if kind in held]
    return [{kind: held[kind]} for kind in said] if len(said) > 1 else [part]


def _part(found: Any, place: str, guard: bool) -> Block:
    """A part: its kind is its key, or (`dashscope.v2`) its `type`. What has none goes back as it is."""
    part = {"text": found} if isinstance(found, str) else as_object(found)
    kind = next((kind for kind in ("text", *_KINDS) if kind in (*part, part.get("type"))), None)
    if not part:
        return InvalidBlock(found, "it is no part", place)
    if kind is None:
        return OpaqueBlock("dashscope", _without_marker(part))
    said = part.get(kind)
    if kind == "video" and (frames := as_list(said) or as_list(part.get("frames"))):
        return _film(frames, _without_marker(part), place)
    state = _state(_without(part, {*_SAID, kind}))
    if kind != "text":
        return _medium(kind, said if said is not None else _url(part), state, place)
    if not isinstance(said, str):
        return InvalidBlock(found, "there is no text in it", place)
    return TextBlock(_unguarded(said) if guard else said, state=state)


def _film(frames: list[Any], part: dict[str, Any], place: str) -> Block:
    """A film of frames, which no other wire has (`dashscope.v2`: `VideoPart.frames`).

    A frame that is the path of a file would be uploaded by the SDK's multimodal classes: it is refused.
    """
    if not all(isinstance(frame, str) and _OPEN.match(frame) for frame in frames):
        return InvalidBlock(part, "a frame is no URL that DashScope opens", place)
    return OpaqueBlock("dashscope", {"video": frames, **_without(part, {*_SAID, "video"})})


_OPEN: Final = re.compile(r"(https?|oss)://|data:", re.IGNORECASE)


def _without_marker(part: dict[str, Any]) -> dict[str, Any]:
    return _without(part, {"cache_control"})


def _without(part: dict[str, Any], keys: Collection[str]) -> dict[str, Any]:
    return {key: item for key, item in part.items() if key not in keys}


def _state(fields: dict[str, Any]) -> OpaqueState | None:
    """What a part came with besides its content."""
    return OpaqueState("dashscope", fields=fields) if fields else None


def _fields(block: TextBlock) -> dict[str, Any]:
    return block.state.fields or {} if block.state else {}


_SAID: Final = frozenset({"type", "cache_control", "url", "data", "format", "frames"})


def _url(part: dict[str, Any]) -> object:
    """`dashscope.v2`: the URL, or a sound's data and format (`AudioPart`)."""
    if part.get("url") is not None or part.get("data") is None:
        return part.get("url")
    return f"data:audio/{as_text(part.get('format')) or 'wav'};base64,{as_text(part['data'])}"


def _medium(kind: str, url: object, state: OpaqueState | None, place: str) -> Block:
    source = source_from_url(url)
    if source is None:
        return InvalidBlock(make_json_safe(url), f"it is no URL of {kind}", place)
    return _KINDS[kind](source, state=state)


def _unguarded(text: str) -> str:
    """The text without the line break that `guard_text` put before it."""
    bare = text[1:]
    return bare if text.startswith("\n") and bare.strip() and guard_text(bare) == text else text


def _call(call: dict[str, Any], found: Any, place: str) -> Block:
    function = as_object(call.get("function"))
    if not function:
        return InvalidBlock(found, "it is no call of a function", place)
    name, given = as_text(function.get("name")), function.get("arguments")
    id = as_text(call.get("id")) or f"call_{short_hash(f'{place}{name}', 24)}"
    return ToolUseBlock(id, name, *read_arguments(given))


_MARKED: Final = re.compile(r"\[error\](?: (.+))?", re.DOTALL)


def _without_error(text: str) -> tuple[str, bool]:
    """A result's text without the mark that our formatter sets before an error's, and whether it was there."""
    found = _MARKED.fullmatch(text)
    return (found[1] or "", True) if found else (text, False)
