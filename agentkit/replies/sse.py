"""Events in the raw bytes of a stream."""

from __future__ import annotations

import re

from agentkit.errors import MessageError

__all__ = ["EventArray", "EventBytes", "MAX_EVENT_BYTES", "check_event_size"]

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
