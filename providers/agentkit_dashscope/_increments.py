"""Texts that a stream brings piece by piece, or whole each time: which of the two, the stream must show."""

from __future__ import annotations

from typing import Generic, TypeVar

__all__ = ["Increments"]

_Key = TypeVar("_Key")

_SURE = 3
"""So many texts in turn that each begin with all that came before are no increments."""


class Increments(Generic[_Key]):
    """What is new in each piece of the texts of one reply.

    `cumulative` is whether each event has the whole text so far; None as long as nobody knows. Until then a piece
    that begins with all that came is taken for the whole so far; the first one that does not shows that they were
    increments, and `mended` gives what the texts are then. (model-studio, `incremental_output`: false by default
    for older models, true for newer ones.)
    """

    def __init__(self, cumulative: bool | None) -> None:
        self.cumulative = cumulative
        self._known: dict[_Key, str] = {}
        self._more: dict[_Key, list[str]] = {}  # what came after `_known`; joined with it when a piece is as long
        self._pieces: dict[_Key, list[str]] = {}
        self._growths = 0

    def new(self, key: _Key, piece: str) -> str:
        """What a piece adds to its text."""
        if self.cumulative is False:
            return piece
        known = self._whole(key, len(piece))
        if not piece.startswith(known):
            return self._differing(key, piece, known)
        self._known[key] = piece
        if self.cumulative is None:
            self._pieces.setdefault(key, []).append(piece)
            self._growths += bool(known) and len(piece) > len(known)
            if self._growths >= _SURE:
                self.cumulative = True
                self._pieces.clear()
        return piece[len(known) :]

    def mended(self) -> dict[_Key, str]:
        """The texts that were taken for whole ones and were increments; each but once."""
        mended = {key: "".join(pieces) for key, pieces in self._pieces.items()} if self.cumulative is False else {}
        if mended:
            self._pieces.clear()
            self._known.clear()
        return mended

    def extends(self, key: _Key, piece: str) -> bool:
        """Whether a piece begins with all that came of its text."""
        return piece.startswith(self._whole(key, len(piece)))

    def end(self) -> None:
        """The last event had no text: whole texts would have been there once more."""
        if self.cumulative is None and self._known:
            self.cumulative = False

    def _differing(self, key: _Key, piece: str, known: str) -> str:
        """A piece that does not begin with what came."""
        if self.cumulative is None:
            self.cumulative = False
            self._pieces[key].append(piece)
            return piece
        if known.startswith(piece):  # an event that came late, or says nothing of this text
            return ""
        self._known.setdefault(key, known)
        self._more.setdefault(key, []).append(piece)
        return piece

    def _whole(self, key: _Key, length: int) -> str:
        """The text so far, or a beginning of it that is longer than `length`."""
        known = self._known.get(key, "")
        if key in self._more and length >= len(known):
            known = self._known[key] = known + "".join(self._more.pop(key))
        return known
