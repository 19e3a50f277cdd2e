"""`RegionParser`: splits the text of a reply at its markers into regions, while the text arrives.

Idea
    Most characters cannot start a marker. Text of such characters goes on at once. From a character that can start
    a marker, text is held back and searched again after each further character, until it is a marker or is none.

Invariants
    - Decisions depend only on the position in the text, never on how the text is split. So each split of a reply
      results in the same regions. After 64 held characters, the search waits for an eighth more text. This keeps
      the time proportional to the length of the text.
    - At each index, at most one empty match counts, so that the parser always ends.
"""

from __future__ import annotations

from typing import Final, Protocol, cast

from agentkit.chat_templates.response_fields import ResponseField, ResponseFields
from agentkit.chat_templates.response_markers import MarkerMatch, MarkerWatch

__all__ = ["RegionParser", "RegionReceiver"]

_EAGER_LENGTH: Final = 64  # maximum number of held characters that are searched again after every character
_CONTEXT: Final = 1_000  # number of earlier characters that a marker may depend on


class RegionReceiver(Protocol):
    """Object that gets the regions of a reply."""

    def open(self, field: ResponseField, captures: dict[str, str], marker: str) -> None:
        """Begins the region of a field. `captures` are the named groups of its marker."""
        ...

    def add(self, text: str) -> None:
        """Adds a piece of text to the open region. If no region is open, the text belongs to no field."""
        ...

    def close(self, captures: dict[str, str], marker: str) -> None:
        """Ends the open region. `captures` are the named groups of both markers."""
        ...


class RegionParser:
    """Parser of the regions of one reply.

    Attributes:
        consumed: Pieces of the text that were processed. The receiver may empty the list.
        late: Pieces of text after the marker that ends the reply.
        has_ended: True after the marker that ends the reply.
    """

    def __init__(self, fields: ResponseFields, receiver: RegionReceiver) -> None:
        self._fields = fields
        self._receiver = receiver
        self._field: ResponseField | None = fields.implicit
        self._is_open = False  # True if the receiver knows the region. A region without marker opens with its text
        self._captures: dict[str, str] = {}
        self._watch: MarkerWatch = fields.watch(self._field)
        self._held: list[str] = []
        self._length = 0  # number of held characters
        self._next_search = 1  # number of held characters after which they are searched
        self._context = ""
        self._position = 0  # number of processed characters
        self._empty_position = -1  # number of processed characters at the last empty match
        self.consumed: list[str] = []
        self.late: list[str] = []
        self.has_ended = False

    def feed(self, text: str) -> None:
        """Processes the next piece of the text."""
        if not self._length and not self.has_ended and self._watch.is_plain(text):
            self._emit(text)
            return
        index = 0
        while index < len(text) and not self.has_ended:
            if not self._length:
                end = self._watch.find_candidate(text, index)
                if end > index:
                    self._emit(text[index:end])
                    index = end
                    continue
            piece = text[index : index + self._next_search - self._length]
            index += len(piece)
            self._held.append(piece)
            self._length += len(piece)
            if self._length == self._next_search:
                self._search(is_end=False)
        if index < len(text):
            self.late.append(text[index:])

    def finish(self) -> None:
        """Processes the end of the text, and ends the open region."""
        if not self.has_ended:
            self._search(is_end=True)
            self._close({}, "")

    def _search(self, *, is_end: bool) -> None:
        """Processes all markers in the held text, and the text up to the start of a possible marker."""
        text = self._context + "".join(self._held)
        index = first = len(self._context)
        offset = self._position - first
        while True:
            empty = self._empty_position - offset
            found, hold = self._watch.search(text, index, is_end=is_end, empty_end=empty)
            if found is None:
                break
            start, end = cast("tuple[int, int]", found.match.span())
            self._emit(text[index:start])
            self._position += end - start
            self._empty_position = self._position if start == end else self._empty_position
            index = end
            self._pass_marker(found)
            if self.has_ended:
                self.late.append(text[index:])
                self._held, self._length = [], 0
                return
        end = len(text) if is_end else hold
        self._emit(text[index:end])
        self._hold(text, max(index, end))

    def _hold(self, text: str, index: int) -> None:
        self._context = text[max(0, index - _CONTEXT) : index] if self._fields.needs_context else ""
        self._held = [text[index:]]
        self._length = len(text) - index
        is_long = self._length >= _EAGER_LENGTH
        self._next_search = self._length + (self._length // 8 if is_long else 1)

    def _emit(self, text: str) -> None:
        if not text:
            return
        self._position += len(text)
        self.consumed.append(text)
        if not self._is_open and self._field is not None:
            self._is_open = True
            self._receiver.open(self._field, {}, "")
        self._receiver.add(text)

    def _pass_marker(self, found: MarkerMatch) -> None:
        marker = found.match[0]
        self.consumed.append(marker)
        captures = {name: value for name, value in found.match.groupdict().items() if value is not None}
        if found.role == "open":
            self._close({}, "")
            self._enter(found.field)
            self._captures, self._is_open = captures, True
            self._receiver.open(found.field, captures, marker)
        else:
            ends_reply = bool(marker) and self._field is self._fields.implicit
            self._close(captures, marker)
            self._enter(self._fields.implicit)
            self.has_ended = ends_reply

    def _close(self, captures: dict[str, str], marker: str) -> None:
        if self._is_open:
            self._receiver.close({**self._captures, **captures}, marker)
        self._is_open = False
        self._captures = {}

    def _enter(self, field: ResponseField | None) -> None:
        self._field = field
        self._watch = self._fields.watch(field)
