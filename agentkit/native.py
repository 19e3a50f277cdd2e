"""A provider's own values as plain JSON values: SDK objects, dicts, raw bytes of a stream."""

from __future__ import annotations

import base64
import json
import math
import re
from collections.abc import Mapping
from typing import Any, cast

from pydantic_core import from_json

from agentkit.errors import MessageError

__all__ = ["EventArray", "EventBytes", "items_of", "mapping_of", "parsed", "plain", "plain_values", "text_of"]


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


def text_of(found: object) -> str:
    """A string of the wire that UTF-8 can carry; an empty one for anything else."""
    if not isinstance(found, str):
        return ""
    if not found.isascii():
        try:
            found.encode()
        except UnicodeEncodeError:
            return found.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return found


_DEEPEST = 200
"""Levels of nesting: pydantic reads some 250."""


def plain_values(found: object, depth: int = 0) -> Any:
    """Any value as JSON values that can be written and read again, whatever is in it.

    SDK objects inside are read as `plain` reads them, bytes become base64 text. What JSON cannot say is put by the
    nearest that it can: a lone surrogate by a mark, NaN and the infinities by null, what is nested too deeply or
    is no JSON value by a short text.
    """
    if isinstance(found, str):
        return text_of(found)
    if found is None or isinstance(found, bool):
        return found
    if isinstance(found, int):
        return int(found) if found.bit_length() <= _LONGEST else None
    if isinstance(found, float):
        return found if math.isfinite(found) else None
    if isinstance(found, bytes | bytearray | memoryview):
        return base64.b64encode(cast("bytes", found)).decode("ascii")
    return _plain_container(found, depth)


_LONGEST = 1_024
"""Bits of a whole number: what a float can reach."""


def _plain_container(found: object, depth: int) -> Any:
    if depth >= _DEEPEST:
        return "(nested too deeply)"
    if isinstance(found, Mapping):
        pairs = cast("Mapping[Any, Any]", found).items()
        return {text_of(str(key)): plain_values(item, depth + 1) for key, item in pairs}
    if isinstance(found, list | tuple):
        return [plain_values(item, depth + 1) for item in cast("list[Any]", found)]
    if callable(getattr(found, "model_dump", None)):
        return plain_values(plain(found), depth + 1)
    return f"({type(found).__name__})"


_MARK = b"\xef\xbb\xbf"  # the byte order mark that a stream may begin with
_VALUES = frozenset((b"{", b"["))  # what the values that are events begin with


class EventBytes:
    """The events in the raw bytes of a stream: server-sent events, or one JSON value a line.

    Split as they come, by any transport: a character, a line and an event may be cut anywhere. (HTML, 9.2.6
    Interpreting an event stream; comments, ids and retry times are passed over.)
    """

    def __init__(self) -> None:
        self._rest: list[bytes] = []
        self._data: list[bytes] = []
        self._started = False

    def feed(self, piece: bytes) -> list[bytes]:
        """The data of the events that are complete with this piece."""
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
