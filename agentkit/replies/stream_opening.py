"""`StreamOpening`: the first bytes of a stream, buffered until they are recognized as events."""

from __future__ import annotations

from agentkit.errors import MessageError
from agentkit.json_values import parse_json
from agentkit.replies.error_bodies import parse_failure
from agentkit.replies.sse import check_event_size

__all__ = ["StreamOpening"]

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class StreamOpening:
    """First bytes of a stream, which may turn out to be one JSON object.

    A server may answer a request for a stream with one JSON object: an error, or a complete reply. The object may
    span several lines, or one line that looks like the first of many events.

    Attributes:
        is_over: True after the bytes were recognized as events.

    """

    def __init__(self, *, json_lines: bool) -> None:
        self.is_over = False
        self._json_lines = json_lines
        self._pieces: list[bytes] = []
        self._size = 0
        self._is_json = False  # True if the first bytes begin like JSON
        self._is_body = False  # True if the first line is not an event
        self._has_line = False  # True if the first line is a JSON value, and only white space follows

    @property
    def pending(self) -> bytes:
        """Bytes so far."""
        return b"".join(self._pieces)

    def feed(self, piece: bytes) -> bytes:
        """Returns all bytes so far if they are recognized as events. Returns no bytes before."""
        self._pieces.append(piece)
        self._size += len(piece)
        check_event_size(self._size)
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
        """Returns True if a text that begins like JSON is a sequence of events, as far as its first line shows."""
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
