"""`Increments` detects whether the events of a stream contain only new text or repeat the whole text so far."""

from __future__ import annotations

from typing import Generic, TypeVar

__all__ = ["Increments"]

_Key = TypeVar("_Key")

_MIN_GROWTHS = 3
"""Number of pieces that must repeat and extend the earlier text before all pieces count as whole texts."""


class Increments(Generic[_Key]):
    """Reader for the pieces of text in one streamed reply. It returns the new text in each piece.

    A piece is an increment (only new text) or the whole text so far. By default, older models send whole texts,
    and newer models send increments (model-studio, `incremental_output`).

    While `cumulative` is None, a piece that begins with the text so far counts as a whole text. A piece that does
    not begin with the text so far proves that all pieces are increments. Earlier pieces may then have been
    misread, and `pop_corrections` returns the correct texts. Example: after the pieces "a" and "ab", the text is
    "ab". A third piece "b" proves that the pieces are increments, and the correct text is "aabb".

    Attributes:
        cumulative: True if each piece is the whole text so far. False if each piece is an increment. None while
            both are possible.
    """

    def __init__(self, cumulative: bool | None) -> None:
        self.cumulative = cumulative
        self._texts: dict[_Key, str] = {}
        self._unjoined: dict[_Key, list[str]] = {}  # pieces to append to `_texts`, joined only when needed
        self._pieces: dict[_Key, list[str]] = {}
        self._growths = 0

    def add(self, key: _Key, piece: str) -> str:
        """Adds a piece to a text, and returns the new text in the piece."""
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
        """Returns the correct texts, by key, if increments were read as whole texts.

        Otherwise returns an empty dict. No text is returned twice.
        """
        if self.cumulative is not False:
            return {}
        corrections = {key: "".join(pieces) for key, pieces in self._pieces.items()}
        if corrections:
            self._pieces.clear()
            self._texts.clear()
        return corrections

    def extends(self, key: _Key, piece: str) -> bool:
        """Returns True if a piece begins with the text that was read so far for the same key."""
        return piece.startswith(self._join(key, len(piece)))

    def end(self) -> None:
        """Handles a last event without text, which proves that the events are increments.

        The last event of a cumulative stream would repeat the whole text.
        """
        if self.cumulative is None and self._texts:
            self.cumulative = False

    def _add_different(self, key: _Key, piece: str, text: str) -> str:
        """Adds a piece that does not begin with the text so far. Returns the new text in the piece."""
        if self.cumulative is None:
            self.cumulative = False
            self._pieces[key].append(piece)
            return piece
        if text.startswith(piece):  # the event is out of order, or has no text for this key
            return ""
        self._texts.setdefault(key, text)
        self._unjoined.setdefault(key, []).append(piece)
        return piece

    def _join(self, key: _Key, length: int) -> str:
        """Returns the text so far, or only a prefix if the prefix is longer than `length`.

        The prefix is enough because the caller compares it with a piece of `length` characters.
        """
        text = self._texts.get(key, "")
        if key in self._unjoined and length >= len(text):
            text = self._texts[key] = text + "".join(self._unjoined.pop(key))
        return text
