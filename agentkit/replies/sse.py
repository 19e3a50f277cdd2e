"""`EventBytes` splits a stream into events. `StreamOpening` detects a reply that is one JSON object instead."""

from __future__ import annotations

from agentkit.errors import MessageError
from agentkit.json_values import parse_json
from agentkit.replies.error_bodies import parse_failure

__all__ = ["EventBytes", "MAX_EVENT_BYTES", "StreamOpening"]

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"

_JSON_STARTS = frozenset((b"{", b"["))

MAX_EVENT_BYTES = 1 << 27
"""Maximum size of one event in bytes. The limit allows base64 media, which can have about 30 million bytes."""


def _check_event_size(size: int) -> None:
    """Raises `MessageError` if the size of an event exceeds `MAX_EVENT_BYTES`."""
    if size > MAX_EVENT_BYTES:
        reason = f"an event of the stream has more than {MAX_EVENT_BYTES:,} bytes"
        raise MessageError("reply", reason, "Check that the server ends each event with a line break.")


class EventBytes:
    r"""Incremental decoder of a stream of server-sent events or of newline-delimited JSON.

    The stream may be split anywhere, even within a character or a line. The decoder ignores comments, ids and
    retry times (HTML Standard, 9.2.6: Interpreting an event stream).

    Example:
        >>> decoder = EventBytes()
        >>> decoder.feed(b'data: {"a"'), decoder.feed(b': 1}\n\n')
        ([], [b'{"a": 1}'])
    """

    def __init__(self) -> None:
        self._incomplete: list[bytes] = []  # pieces of the current line, whose end has not arrived
        self._data: list[bytes] = []  # data lines of the current event
        self._size = 0  # size of the current event in bytes
        self._started = False

    def feed(self, piece: bytes) -> list[bytes]:
        """Returns the data of each event that is complete after this piece of the stream.

        Raises:
            MessageError: If an event has more than `MAX_EVENT_BYTES` bytes.
        """
        self._size += len(piece)
        events = self._split(piece)
        if events or not (self._incomplete or self._data):
            self._size = sum(map(len, self._incomplete))
        else:
            _check_event_size(self._size)
        return events

    def _split(self, piece: bytes) -> list[bytes]:
        if not self._started:
            piece = self._skip_mark(piece)
        if self._incomplete:
            if b"\n" not in piece and b"\r" not in piece and not self._incomplete[-1].endswith(b"\r"):
                self._incomplete.append(piece)  # the pieces of a line are joined once, when the line ends
                return []
            piece = b"".join((*self._incomplete, piece))
            self._incomplete = []
        lines = piece.splitlines()  # `bytes.splitlines` splits only at \n, \r and \r\n
        if lines and not piece.endswith(b"\n"):  # a \r at the end may be the first half of \r\n
            self._incomplete = [lines.pop() + (b"\r" if piece.endswith(b"\r") else b"")]
        events: list[bytes] = []
        data = self._data
        for line in lines:
            if line.startswith(b"data:"):
                data.append(line[6:] if line.startswith(b"data: ") else line[5:])
            elif not line:
                if data:
                    events.append(data[0] if len(data) == 1 else b"\n".join(data))
                    data.clear()
            elif line.lstrip()[:1] in _JSON_STARTS:  # a line of newline-delimited JSON
                events.append(line)
        return events

    def finish(self) -> list[bytes]:
        """Processes the end of the stream.

        Returns the data of the last event if the blank line after this event is missing. Otherwise, returns an
        empty list.
        """
        incomplete, self._incomplete = b"".join(self._incomplete).rstrip(b"\r"), []
        self._started = True
        return self.feed(incomplete + b"\n\n")

    def _skip_mark(self, piece: bytes) -> bytes:
        """Returns the first bytes of the stream without a byte order mark.

        If the received bytes may be an incomplete byte order mark, the method stores them and returns no bytes.
        """
        piece, self._incomplete = b"".join((*self._incomplete, piece)), []
        if len(piece) < len(_BYTE_ORDER_MARK) and _BYTE_ORDER_MARK.startswith(piece):
            self._incomplete = [piece]
            return b""
        self._started = True
        return piece.removeprefix(_BYTE_ORDER_MARK)


class StreamOpening:
    """Buffer for the first bytes of a stream, used until the format of the stream is known.

    If a stream is requested, some servers send one JSON object instead: an error, or a complete reply. Such an
    object can look like the first event of a stream of JSON lines. The buffer then waits for more bytes to
    recognize the format.

    Attributes:
        is_over: True after the buffered bytes were recognized as events.
    """

    def __init__(self, *, json_lines: bool) -> None:
        self.is_over = False
        self._json_lines = json_lines
        self._pieces: list[bytes] = []
        self._size = 0
        self._is_json = False  # True if the stream begins with { or [
        self._is_body = False  # True if the first line is not an event: the complete body is then one JSON object
        self._has_line = False  # True if the first line has arrived and is JSON, but no second line has arrived

    @property
    def pending(self) -> bytes:
        """The buffered first bytes of the stream."""
        return b"".join(self._pieces)

    def feed(self, piece: bytes) -> bytes:
        """Adds a piece of the stream.

        Returns all buffered bytes if they are recognized as events. Otherwise, returns no bytes.
        """
        self._pieces.append(piece)
        self._size += len(piece)
        _check_event_size(self._size)
        if self._has_line:
            self.is_over = bool(piece.strip())
            return self.pending if self.is_over else b""
        if self._is_body or (self._is_json and b"\n" not in piece):
            return b""
        text = self.pending.removeprefix(_BYTE_ORDER_MARK).lstrip()
        self._pieces = [text]
        self._is_json = text.startswith((b"{", b"["))
        self.is_over = self._is_events(text) if self._is_json else len(text) > len(_BYTE_ORDER_MARK)
        return text if self.is_over else b""

    def _is_events(self, text: bytes) -> bool:
        """Returns True if the first line shows that the text is a sequence of events, with JSON on each line."""
        line, line_break, suffix = text.partition(b"\n")
        try:
            event = parse_json(line)
        except MessageError:
            self._is_body = bool(line_break)
            return False
        if not line_break:
            return False
        if self._json_lines:
            self._is_body = parse_failure(event) is not None
            return not self._is_body
        self._has_line = True
        return bool(suffix.strip())
