"""`Increments` extracts the new text from stream events. Some streams repeat all earlier text in each event."""

from __future__ import annotations

from typing import Generic, TypeVar

__all__ = ["Increments"]

_Key = TypeVar("_Key")

_MIN_GROWTHS = 3
"""Number of pieces that must repeat and extend the earlier text before a stream is treated as cumulative."""


class Increments(Generic[_Key]):
    """Extractor for the new text in each piece of a streamed reply.

    In an incremental stream, a piece contains only new text. In a cumulative stream, a piece repeats all earlier
    text before the new text. By default, older models send cumulative streams, and newer models send incremental
    streams (Model Studio docs: `incremental_output`).

    If the type of the stream is unknown, a piece that begins with all earlier text is treated as cumulative. A
    piece that does not begin with all earlier text proves that the stream is incremental. Earlier pieces may then
    have been misread, and `pop_corrections` returns the correct texts. Example: after the pieces "a" and "ab", the
    text is "ab". A third piece "b" proves that the stream is incremental, and the correct text is "aabb".

    Attributes:
        cumulative: True for a cumulative stream, False for an incremental stream, None while the type is unknown.
    """

    def __init__(self, cumulative: bool | None) -> None:
        self.cumulative = cumulative
        self._texts: dict[_Key, str] = {}
        self._unjoined: dict[_Key, list[str]] = {}  # pieces that `_join` appends to `_texts` when necessary
        self._pieces: dict[_Key, list[str]] = {}
        self._growths = 0

    def add(self, key: _Key, piece: str) -> str:
        """Adds a piece to the text of the block with the key. Returns only the new text in the piece."""
        if self.cumulative is False:
            return piece
        text = self._join(key, len(piece))
        if not piece.startswith(text):
            return self._add_different(key, piece, text)
        self._texts[key] = piece
        if self.cumulative is None:
            self._pieces.setdefault(key, []).append(piece)
            self._growths += bool(text) and len(piece) > len(text)
            if self._growths >= _MIN_GROWTHS:
                self.cumulative = True
                self._pieces.clear()
        return piece[len(text) :]

    def pop_corrections(self) -> dict[_Key, str]:
        """Returns the correct texts, by key, if pieces of an incremental stream were read as cumulative.

        Returns each correction only once. Returns an empty dict if there are no new corrections.
        """
        if self.cumulative is not False:
            return {}
        corrections = {key: "".join(pieces) for key, pieces in self._pieces.items()}
        if corrections:
            self._pieces.clear()
            self._texts.clear()
        return corrections

    def extends(self, key: _Key, piece: str) -> bool:
        """Returns True if a piece begins with all earlier text of the same key."""
        return piece.startswith(self._join(key, len(piece)))

    def end(self) -> None:
        """Handles a last event without text. Such an event proves that the stream is incremental.

        In a cumulative stream, the last event would repeat all earlier text.
        """
        if self.cumulative is None and self._texts:
            self.cumulative = False

    def _add_different(self, key: _Key, piece: str, text: str) -> str:
        """Adds a piece that does not repeat all earlier text (`text`). Returns the new text of the piece."""
        if self.cumulative is None:
            self.cumulative = False
            self._pieces[key].append(piece)
            return piece
        if text.startswith(piece):  # the piece is empty, or is from an earlier event that arrived late
            return ""
        self._texts.setdefault(key, text)
        self._unjoined.setdefault(key, []).append(piece)
        return piece

    def _join(self, key: _Key, length: int) -> str:
        """Returns the earlier text of a key, to check whether a piece of `length` characters begins with the text.

        If the text is longer than the piece, the check fails in any case. The last part of the text may then be
        missing from the result.
        """
        text = self._texts.get(key, "")
        if key in self._unjoined and length >= len(text):
            text = self._texts[key] = text + "".join(self._unjoined.pop(key))
        return text
