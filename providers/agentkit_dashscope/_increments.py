"""Detection of whether the events of a stream have increments of a text, or the whole text so far."""

from __future__ import annotations

from typing import Generic, TypeVar

__all__ = ["Increments"]

_Key = TypeVar("_Key")

_MIN_GROWTHS = 3
"""Number of pieces in a row that repeat the text before them, which proves that the stream is cumulative."""


class Increments(Generic[_Key]):
    """Reader of the texts of one reply, which finds the new text in each piece.

    While `cumulative` is None, a piece that begins with the text so far counts as the whole text. The first piece
    that does not begin with it proves that the pieces are increments. `pop_corrections` then returns the correct
    texts. `incremental_output` is false by default for older models, and true for newer ones (model-studio).

    The pieces "a", "ab", "b", for example, first look cumulative, with the text "ab". The third piece proves
    increments, and the correct text is "aabb".

    Attributes:
        cumulative: True if each event has the whole text so far; None if that is undecided.
    """

    def __init__(self, cumulative: bool | None) -> None:
        self.cumulative = cumulative
        self._texts: dict[_Key, str] = {}
        self._unjoined: dict[_Key, list[str]] = {}  # pieces after `_texts`; they are joined only when needed
        self._pieces: dict[_Key, list[str]] = {}
        self._growths = 0

    def add(self, key: _Key, piece: str) -> str:
        """Adds a piece to a text. Returns the new text in it."""
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
        """Returns the correct texts if increments were mistaken for whole texts. A later call returns none."""
        if self.cumulative is not False:
            return {}
        corrections = {key: "".join(pieces) for key, pieces in self._pieces.items()}
        if corrections:
            self._pieces.clear()
            self._texts.clear()
        return corrections

    def extends(self, key: _Key, piece: str) -> bool:
        """Returns True if a piece begins with the text so far."""
        return piece.startswith(self._join(key, len(piece)))

    def end(self) -> None:
        """Ends the texts after a last event without text. Such a stream is not cumulative."""
        if self.cumulative is None and self._texts:
            self.cumulative = False

    def _add_different(self, key: _Key, piece: str, text: str) -> str:
        """Adds a piece that does not begin with the text so far. Returns the new text in it."""
        if self.cumulative is None:
            self.cumulative = False
            self._pieces[key].append(piece)
            return piece
        if text.startswith(piece):  # a late event, or an event without this text
            return ""
        self._texts.setdefault(key, text)
        self._unjoined.setdefault(key, []).append(piece)
        return piece

    def _join(self, key: _Key, length: int) -> str:
        """Returns the text so far, or a prefix of it that is longer than `length`."""
        text = self._texts.get(key, "")
        if key in self._unjoined and length >= len(text):
            text = self._texts[key] = text + "".join(self._unjoined.pop(key))
        return text
