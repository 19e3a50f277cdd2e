"""Ollama's own messages, or a whole request, as messages (ollama: api/types.go, `Message`)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final, cast

from agentkit.provider_kit import (
    Block,
    InvalidBlock,
    MessageError,
    Msg,
    OpaqueState,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
    as_list,
    as_object,
    as_text,
    check_log_message,
    check_log_request,
    describe_log_format,
    make_json_safe,
    read_arguments,
    short_hash,
)
from agentkit_ollama._native_values import medium, unwrapped

__all__ = ["load_native"]

_KNOWN: Final = frozenset({"role", "content", "thinking", "images", "tool_calls", "tool_name", "tool_call_id"})
_CONTENT: Final = ("content", "thinking", "images", "tool_calls")
_ERROR: Final = "[error]"


def load_native(found: object) -> list[Msg]:
    """A conversation from its messages, or from a request: the arguments of `chat`, or its JSON body.

    SDK objects may stand anywhere in it; no file that a picture's text names is opened. A result without an id
    goes with the first open call of its tool's name. Pictures stand where a mark of ours says that they stood,
    else before the text. Keys of a message that the wire does not know are metadata; what cannot be read is kept
    as InvalidBlock. Raises MessageError for what is no conversation of Ollama's.
    """
    request: Any = make_json_safe(found, "log", unwrapped)
    if isinstance(request, list):
        request = {"messages": cast("list[Any]", request)}
    held = as_object(request)
    messages = [held] if "role" in held and "messages" not in held else held.get("messages")
    if not isinstance(messages, list):
        raise MessageError("messages", "there is no list of messages", describe_log_format(request))
    if "messages" in held:
        check_log_request(held, ("messages",))
    log = _Log()
    return [log.message(one, f"messages[{at}]") for at, one in enumerate(cast("list[Any]", messages))]


class _Log:
    """One conversation as it is read."""

    def __init__(self) -> None:
        self.open: list[ToolUseBlock] = []
        """The calls that wait for their results."""

    def message(self, found: Any, place: str) -> Msg:
        """One message: none is left out, and none becomes two."""
        if not isinstance(found, dict):
            return Msg("user", (InvalidBlock(found, "it is no message", place),), "user")
        message = cast("dict[str, Any]", found)
        check_log_message(message, place, _CONTENT, (), "ollama", "")
        rest = {key: item for key, item in message.items() if key not in _KNOWN} or None
        role = as_text(message.get("role")).lower()
        if role == "tool":
            return Msg("system", (self._result(message, place),), "system", metadata=rest)
        blocks = (*_thoughts(message), *_said(message, place), *self._calls(message, place))
        content: Any = blocks[0].text if len(blocks) == 1 and isinstance(blocks[0], TextBlock) else blocks
        if role in ("system", "user", "assistant"):
            return Msg(role, content, cast("Any", role), metadata=rest)
        return Msg(role or "user", content, "user", metadata=rest)  # the server checks no role

    def _calls(self, message: dict[str, Any], place: str) -> Iterator[Block]:
        calls = as_list(message.get("tool_calls"))
        if calls:
            self.open = []
        for at, call in enumerate(calls):
            block = _call(as_object(call), call, f"{place}.tool_calls[{at}]")
            if isinstance(block, ToolUseBlock):
                self.open.append(block)
            yield block

    def _result(self, message: dict[str, Any], place: str) -> ToolResultBlock:
        id, name = as_text(message.get("tool_call_id")), as_text(message.get("tool_name") or message.get("name"))
        call = self._answered(id, name)
        text, is_error = _without_error(as_text(message.get("content")))
        media = [_medium(item, f"{place}.images[{at}]") for at, item in _numbered(message.get("images"))]
        media = [*_unread(message.get("content"), place), *media]
        output: Any = (*([TextBlock(text)] if text else []), *media) if media else text
        made_up = f"call_{short_hash(f'{place}{name}', 24)}"
        return ToolResultBlock(
            id or (call.id if call else made_up), name or (call.name if call else ""), output, is_error
        )

    def _answered(self, id: str, name: str) -> ToolUseBlock | None:
        """The call that a result is of: the one of its id, else the first open one of its name, else the first."""
        if id:
            named = [call for call in self.open if call.id == id]
        else:
            named = [call for call in self.open if call.name == name] or ([] if name else self.open[:1])
        if named:
            self.open.remove(named[0])
        return named[0] if named else None


def _thoughts(message: dict[str, Any]) -> list[Block]:
    thinking = message.get("thinking")
    return [ThinkingBlock(thinking, OpaqueState("ollama"))] if isinstance(thinking, str) else []


def _said(message: dict[str, Any], place: str) -> Iterator[Block]:
    """The text, and each picture where its mark `[image 1]` stands on a line of its own."""
    content = message.get("content")
    yield from _unread(content, place)
    media = [_medium(item, f"{place}.images[{at}]") for at, item in _numbered(message.get("images"))]
    yield from _placed(as_text(content), media)


def _unread(content: object, place: str) -> Iterator[Block]:
    """Yields content that is no text as an InvalidBlock."""
    if content is not None and not isinstance(content, str):
        yield InvalidBlock(content, f"expected text, got {type(content).__name__}", f"{place}.content")


def _placed(text: str, media: list[Block]) -> list[Block]:
    said: list[Block] = []
    rest = f"\n{text}\n"
    for number, block in enumerate(media, 1):
        head, mark, tail = rest.partition(f"\n[{block.type} {number}]\n")
        if not mark:
            return [*media, *([TextBlock(text)] if text else [])]
        said += [*_text(head), block]
        rest = f"\n{tail}"
    return [*said, *_text(rest.removesuffix("\n"))]


def _text(found: str) -> list[Block]:
    """What stands between two marks, less the line break that led to it."""
    text = found.removeprefix("\n")
    return [TextBlock(text)] if text else []


def _numbered(found: object) -> list[tuple[int, Any]]:
    return list(enumerate(as_list(found)))


def _medium(found: Any, place: str) -> Block:
    return medium(found) or InvalidBlock(found, "its bytes are no picture or sound that is known", place)


def _call(call: dict[str, Any], found: Any, place: str) -> Block:
    """A call; the server gives ids and the SDK loses them, so one may have to be made up from its place."""
    function = as_object(call.get("function"))
    name, given = as_text(function.get("name")), function.get("arguments")
    if not function:
        return InvalidBlock(found, "it is no call of a function", place)
    id = as_text(call.get("id")) or f"call_{short_hash(f'{place}{name}', 24)}"
    return ToolUseBlock(id, name, *read_arguments(given))


_MARKED: Final = re.compile(rf"{re.escape(_ERROR)}(?: (.+))?", re.DOTALL)


def _without_error(text: str) -> tuple[str, bool]:
    """A result's text without the mark that our formatter sets before an error's, and whether it was there."""
    found = _MARKED.fullmatch(text)
    return (found[1] or "", True) if found else (text, False)
