"""`ResponseSplitter`: splits the text of a reply at markers such as `<think>`, while the text arrives.

Idea
    Most characters cannot start a marker. The subclass receives text of such characters immediately. If a
    character can start a marker, the parser buffers the text from this character on, until it is certain whether a
    marker starts there.

Invariants
    - A marker counts only if no further text can change the match. So the regions do not depend on the pieces in
      which the reply arrives.
    - The buffered text is searched again only after its length has grown by an eighth. This keeps the time
      proportional to the length of the text.
    - A marker can match an empty text. At each index, at most one such match counts, so that the parser always
      ends.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Final

from agentkit.chat_templates.responses.response_fields import ResponseField, ResponseFields
from agentkit.chat_templates.responses.response_markers import MarkerMatch
from agentkit.chat_templates.responses.response_regions import Region

__all__ = ["ResponseSplitter"]

_CONTEXT: Final = 1_000  # number of earlier characters that a marker may depend on


class ResponseSplitter(ABC):
    """Base class of a parser that splits the text of one reply into regions.

    A subclass implements `open_region`, which returns the region that receives the next text.

    Attributes:
        consumed: Pieces of the text that were processed. The subclass may empty the list.
        outside: Pieces of text that belong to no field.
        text_after_end: Pieces of text after the marker that ends the reply.
        has_ended: True after the marker that ends the reply.
        is_cut_off: True if the last region that closed was cut off (see `Region.is_cut_off`).
    """

    def __init__(self, fields: ResponseFields) -> None:
        self._fields = fields
        self._field: ResponseField | None = fields.outside_field
        self._region: Region | None = None  # None until text arrives, if no marker precedes the text
        self._finder = fields.finders[self._field]
        self._buffer: list[str] = []
        self._length = 0  # number of characters in `_buffer`
        self._next_search = 0  # value of `_length` at which the buffered text is searched again
        self._context: str = ""
        self._skips_empty = False  # True after an empty match of a marker, until further text is processed
        self.consumed: list[str] = []
        self.outside: list[str] = []
        self.text_after_end: list[str] = []
        self.has_ended = False
        self.is_cut_off = False

    @abstractmethod
    def open_region(self, field: ResponseField, captures: Mapping[str, str], marker: str) -> Region:
        """Returns a new region for the text of a field.

        Args:
            field: The field.
            captures: Named groups of the marker before the text.
            marker: Text of this marker. Empty if there is none.
        """

    def feed(self, text: str) -> None:
        """Processes the next piece of the text."""
        if self.has_ended:
            self.text_after_end.append(text)
        elif self._buffer:
            self._buffer.append(text)
            self._length += len(text)
            if self._length >= self._next_search:
                self._read("".join(self._buffer))
        elif self._finder.is_plain(text):
            if text:
                self._emit(text)
        else:
            self._read(text)

    def finish(self) -> None:
        """Processes the end of the text, and ends the open region."""
        if not self.has_ended:
            self._read("".join(self._buffer), True)
            self._close({}, "")

    def _read(self, text: str, is_end: bool = False) -> None:
        """Processes all markers in a text, and buffers the text from the start of a possible marker on."""
        index, text = len(self._context), self._context + text
        while index < len(text) or is_end:
            marker, count = self._finder.search(text, index, is_end, self._skips_empty)
            if count:
                self._emit(text[index : index + count])
                index += count
            if marker is None:
                break
            index += self._pass_marker(marker)
            if self.has_ended:
                self.text_after_end.append(text[index:])
                return
        if self._fields.needs_context:
            self._context = text[max(0, index - _CONTEXT) : index]
        self._length = length = len(text) - index
        self._buffer = [text[index:]] if length else []
        self._next_search = length + length // 8

    def _emit(self, text: str) -> None:
        self._skips_empty = False
        self.consumed.append(text)
        if self._region is not None:
            self._region.add(text)
        elif self._field is None:
            self.outside.append(text)
        else:
            self._region = self.open_region(self._field, {}, "")
            self._region.add(text)

    def _pass_marker(self, match: MarkerMatch) -> int:
        """Opens or closes the region of a field at a marker. Returns the length of the marker."""
        side, field, marker, captures = match
        self.consumed.append(marker)
        self._skips_empty = not marker
        if side == "open":
            self._close({}, "")
            self._field = field
            self._region = self.open_region(field, captures, marker)
        else:
            outside_field = self._fields.outside_field
            self.has_ended = bool(marker) and self._field is outside_field
            self._close(captures, marker)
            self._field = outside_field
        self._finder = self._fields.finders[self._field]
        return len(marker)

    def _close(self, captures: Mapping[str, str], marker: str) -> None:
        region, self._region = self._region, None
        if region is not None:
            region.close(captures, marker)
            self.is_cut_off = region.is_cut_off
