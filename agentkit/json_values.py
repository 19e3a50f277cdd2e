"""A provider's own values as plain JSON values: SDK objects, dicts, raw bytes of a stream."""

from __future__ import annotations

import base64
import json
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias, cast

from pydantic_core import from_json, to_json

from agentkit.errors import MessageError
from agentkit.loggers import get_logger

__all__ = [
    "EventArray",
    "EventBytes",
    "MAX_EVENT_BYTES",
    "check_event_size",
    "is_encodable",
    "items_of",
    "mapping_of",
    "parsed",
    "plain",
    "plain_reply",
    "plain_values",
    "text_of",
]


def plain(found: object) -> Any:
    """A reply, or an event of a stream, as JSON values: from the SDK's object, its dict, or JSON text.

    The objects of all SDKs are pydantic models or dicts; nothing of an SDK is imported to read them. Raises
    MessageError for what is neither.
    """
    if type(found) is dict:
        return cast("dict[str, Any]", found)
    if isinstance(found, str | bytes | bytearray):
        return parsed(found)
    if isinstance(found, Mapping):
        return {str(key): item for key, item in cast("Mapping[Any, Any]", found).items()}
    dump = getattr(found, "model_dump", None)
    if callable(dump):
        try:
            return dump(mode="json", by_alias=True, exclude_unset=True, warnings=False)
        except ValueError:  # a lone surrogate
            return plain_values(dump(by_alias=True, exclude_unset=True, warnings=False))
    reason = f"a {type(found).__name__} is no reply"
    raise MessageError("reply", reason, "Give the SDK's object, its dict, or the JSON text.")


def plain_reply(found: object) -> Any:
    """A whole reply as `plain` reads it; lone surrogates become U+FFFD, which is logged with the place.

    A text that pydantic parses has no lone surrogate, so most replies are not searched for one.
    """
    if isinstance(found, str | bytes | bytearray):
        try:
            return from_json(found, cache_strings="keys")
        except (ValueError, TypeError):
            pass
    return replace_surrogates(plain(found), "reply")


def parsed(text: str | bytes | bytearray) -> Any:
    """JSON text as its value. Raises MessageError for what is none."""
    try:
        return from_json(text, cache_strings="keys")  # texts do not come twice
    except (ValueError, TypeError):  # a text with a lone surrogate is no text to it
        pass
    try:
        return json.loads(text)  # takes the halves of a surrogate pair, which some servers write
    except (ValueError, RecursionError) as error:
        raise MessageError("reply", f"this is not JSON ({error})", "Mend the JSON.") from None


def mapping_of(found: object) -> dict[str, Any]:
    """An object of the wire; an empty one for anything else."""
    return found if isinstance(found, dict) else {}  # pyright: ignore[reportUnknownVariableType] - no cast: it costs


def items_of(found: object) -> list[Any]:
    """A list of the wire; an empty one for anything else."""
    return found if isinstance(found, list) else []  # pyright: ignore[reportUnknownVariableType]


def text_of(found: object, place: str = "") -> str:
    """A string of the wire that UTF-8 can carry; an empty one for anything else.

    Lone surrogates become U+FFFD, which is logged with the place.
    """
    if not isinstance(found, str):
        return ""
    if not found.isascii():
        try:
            found.encode()
        except UnicodeEncodeError:
            whole = found.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
            if whole.count("\ufffd") > found.count("\ufffd"):  # else the halves of a pair found each other
                _LOG.warning("%s: lone surrogates replaced by U+FFFD", place or "a text")
            return whole
    return found


_LOG = get_logger()
_DEEPEST = 200
"""Levels of nesting: pydantic reads some 250."""


def plain_values(found: object, place: str = "", dump: Callable[[Any], object] | None = None) -> Any:
    """Any value as JSON values that can be written and read again, whatever is in it.

    SDK objects inside are read as `plain` reads them, or first by `dump`, which returns what it does not know
    unchanged; bytes become base64 text. What JSON cannot say is replaced: a lone surrogate by U+FFFD (logged with
    its path, which begins with `place`), NaN and the infinities by null, what is nested too deeply by the texts in
    it, what is no JSON value by a short text.
    """
    return _plain(found, 0, (None, place), dump)


_Path: TypeAlias = "tuple[_Path | None, object]"


def _plain(found: object, depth: int, path: _Path, dump: Callable[[Any], object] | None) -> Any:
    if isinstance(found, str):
        return found if is_encodable(found) else text_of(found, _spelled(path))
    if found is None or isinstance(found, bool):
        return found
    if isinstance(found, int):
        return int(found) if found.bit_length() <= _LONGEST else None
    if isinstance(found, float):
        return found if math.isfinite(found) else None
    if isinstance(found, bytes | bytearray | memoryview):
        return base64.b64encode(cast("bytes", found)).decode("ascii")
    if depth >= _DEEPEST:
        _LOG.warning("%s: nested too deeply, only its texts are kept", _spelled(path))
        return " ".join(("(nested too deeply)", *_texts(found)))
    if isinstance(found, Mapping):
        held: dict[str, Any] = {}
        for key, item in cast("Mapping[Any, Any]", found).items():
            held[text_of(str(key), _spelled(path))] = _plain(item, depth + 1, (path, key), dump)
        return held
    if isinstance(found, list | tuple):
        items: list[Any] = []
        for at, item in enumerate(cast("Sequence[Any]", found)):
            items.append(_plain(item, depth + 1, (path, at), dump))
        return items
    opened = found if dump is None else dump(found)
    if opened is found:
        opened = plain(found) if callable(getattr(found, "model_dump", None)) else f"({type(found).__name__})"
    return _plain(opened, depth + 1, path, dump)


_LONGEST = 1_024
"""Bits of a whole number: what a float can reach."""


def is_encodable(text: str) -> bool:
    """Returns True if UTF-8 can carry a text: it has no lone surrogate."""
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _spelled(path: _Path) -> str:
    """A path as text: `messages[3].content[1]`; of a long one the beginning and the end."""
    steps: list[str] = []
    before, step = path
    while before is not None:
        named = isinstance(step, str) and step.isidentifier() and len(step) < 40  # any other key may be content
        steps.append(f"[{step}]" if isinstance(step, int) else f".{step}" if named else "[…]")
        before, step = before
    steps.reverse()
    if len(steps) > _MOST_STEPS:
        steps[_MOST_STEPS // 2 : -_MOST_STEPS // 2] = ["…"]
    return f"{step}{''.join(steps)}".removeprefix(".")


_MOST_STEPS = 16


def _texts(found: object, read: Callable[[str], str] = text_of) -> Iterator[str]:
    """The texts in a value of any depth, keys included, in order."""
    waiting, known = [found], set[int]()
    while waiting:
        item = waiting.pop()
        if isinstance(item, str):
            yield read(item)
        elif isinstance(item, Mapping | list | tuple) and id(cast("object", item)) not in known:
            known.add(id(cast("object", item)))
            inner: list[object] = []
            if isinstance(item, Mapping):
                for pair in cast("Mapping[object, object]", item).items():
                    inner += pair
            else:
                inner += cast("Sequence[object]", item)
            waiting += reversed(inner)


def replace_surrogates(found: Any, place: str) -> Any:
    """The value, its lone surrogates replaced by U+FFFD, which is logged; the same value if it has none.

    Objects in it, and what is nested too deeply, stay as they are.
    """
    try:
        to_json(found)  # the fastest search
    except ValueError:  # a lone surrogate, or a value that JSON cannot say
        return found if all(map(is_encodable, _texts(found, str))) else _replaced(found, 0, (None, place))
    return found


def _replaced(found: Any, depth: int, path: _Path) -> Any:
    if isinstance(found, str):
        return text_of(found, _spelled(path))
    if depth < _DEEPEST and isinstance(found, Mapping):
        pairs = cast("Mapping[Any, Any]", found).items()
        return {_replaced(key, depth, path): _replaced(item, depth + 1, (path, key)) for key, item in pairs}
    if depth < _DEEPEST and isinstance(found, list | tuple):
        items = enumerate(cast("Sequence[Any]", found))
        return [_replaced(item, depth + 1, (path, at)) for at, item in items]
    return found


_MARK = b"\xef\xbb\xbf"  # the byte order mark that a stream may begin with
_VALUES = frozenset((b"{", b"["))  # what the values that are events begin with


MAX_EVENT_BYTES = 1 << 27
"""Bytes of one event of a stream: an image or a sound in base64 has some 30 million."""


def check_event_size(size: int) -> None:
    """Refuse an event that does not end. Raises MessageError."""
    if size > MAX_EVENT_BYTES:
        reason = f"an event of the stream has more than {MAX_EVENT_BYTES:,} bytes"
        raise MessageError("reply", reason, "Check the server: it sends no line breaks.")


class EventBytes:
    """The events in the raw bytes of a stream: server-sent events, or one JSON value a line.

    Split as they come, by any transport: a character, a line and an event may be cut anywhere. (HTML, 9.2.6
    Interpreting an event stream; comments, ids and retry times are passed over.)
    """

    def __init__(self) -> None:
        self._rest: list[bytes] = []
        self._data: list[bytes] = []
        self._size = 0  # of the event that goes on
        self._started = False

    def feed(self, piece: bytes) -> list[bytes]:
        """The data of the events that are complete with this piece. Raises MessageError for one without an end."""
        self._size += len(piece)
        events = self._split(piece)
        if events or not (self._rest or self._data):
            self._size = sum(map(len, self._rest))
        else:
            check_event_size(self._size)
        return events

    def _split(self, piece: bytes) -> list[bytes]:
        if not self._started:
            piece = self._begin(piece)
        if self._rest:
            if b"\n" not in piece and b"\r" not in piece and not self._rest[-1].endswith(b"\r"):
                self._rest.append(piece)  # joined once, when the line ends
                return []
            piece = b"".join((*self._rest, piece))
            self._rest = []
        lines = piece.splitlines()  # of bytes: at \n, \r and \r\n alone
        if lines and not piece.endswith(b"\n"):  # a return at the very end may be the first half of a line break
            self._rest = [lines.pop() + (b"\r" if piece.endswith(b"\r") else b"")]
        events: list[bytes] = []
        data = self._data
        for line in lines:
            if line.startswith(b"data:"):
                data.append(line[6:] if line.startswith(b"data: ") else line[5:])
            elif not line:
                if data:
                    events.append(data[0] if len(data) == 1 else b"\n".join(data))
                    data.clear()
            elif line.lstrip()[:1] in _VALUES:  # by itself: newline-delimited JSON
                events.append(line)
        return events

    def finish(self) -> list[bytes]:
        """The event that was left without its blank line, if there is one."""
        rest, self._rest = b"".join(self._rest).rstrip(b"\r"), []
        self._started = True
        return self.feed(rest + b"\n\n")

    def _begin(self, piece: bytes) -> bytes:
        """The first bytes without the mark; none as long as they may be the first of it."""
        piece, self._rest = b"".join((*self._rest, piece)), []
        if len(piece) < len(_MARK) and _MARK.startswith(piece):
            self._rest = [piece]
            return b""
        self._started = True
        return piece.removeprefix(_MARK)


_MARKS = re.compile(rb'["\[\]{},]')
_IN_STRING = re.compile(rb'["\\]')


class EventArray:
    """The events in the raw bytes of a stream that is one JSON array: its items, each as soon as it is complete.

    Split as they come: an item, a string and an escape may be cut anywhere.
    """

    def __init__(self) -> None:
        self._rest: list[bytes] = []  # of the item that goes on
        self._size = 0
        self._depth = 0
        self._in_string = False
        self._escaped = False

    def feed(self, piece: bytes) -> list[bytes]:
        """The items that are complete with this piece."""
        events: list[bytes] = []
        start, at = 0, int(self._escaped)
        self._escaped = self._escaped and not piece
        while found := (_IN_STRING if self._in_string else _MARKS).search(piece, at):
            mark, at = found[0], found.end()
            if mark == b'"':
                self._in_string = not self._in_string
            elif mark == b"\\":
                self._escaped = at == len(piece)
                at += 1
            elif self._ends(mark):
                whole = self._depth == 1 and mark != b","
                self._rest.append(piece[start : at if whole else at - 1])
                events += self._item()
                start = at
            elif mark in b"[{" and self._depth == 1:
                start = at  # behind the bracket of the array itself
        self._rest.append(piece[start:])
        self._size = len(piece) - start if events else self._size + len(piece)
        check_event_size(self._size)
        return events

    def finish(self) -> list[bytes]:
        """The item that was cut off, if there is one."""
        return self._item()

    def _ends(self, mark: bytes) -> bool:
        """Whether an item of the array, or the array, ends with a mark, which counts."""
        if mark == b",":
            return self._depth == 1
        self._depth = max(0, self._depth + (1 if mark in b"[{" else -1))
        return mark in b"]}" and self._depth < 2

    def _item(self) -> list[bytes]:
        item, self._rest = b"".join(self._rest).strip(), []
        return [item] if item else []
