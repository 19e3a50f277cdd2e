"""`StreamOpening`: buffers the first bytes of a stream, to detect whether the stream is one JSON object."""

from __future__ import annotations

from agentkit.errors import MessageError
from agentkit.json_values import parse_json
from agentkit.replies.error_bodies import parse_failure
from agentkit.replies.sse import check_event_size

__all__ = ["StreamOpening"]

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class StreamOpening:
    """Buffer for the first bytes of a stream, used until the format of the stream is known.

    If a stream is requested, some servers send one JSON object instead: an error, or a complete reply. Such an
    object can look like the first event of a stream of JSON lines. Then more bytes are necessary to recognize the
    format.

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
        self._has_line = False  # True if one line with a JSON value, and no second line, has arrived

    @property
    def pending(self) -> bytes:
        """The buffered first bytes of the stream."""
        return b"".join(self._pieces)

    def feed(self, piece: bytes) -> bytes:
        """Adds a piece. Returns all buffered bytes if the stream is recognized as events, otherwise no bytes."""
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
