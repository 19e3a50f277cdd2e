"""Counts of texts, each distinct text counted once."""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock

__all__ = ["TextCounts"]

_ENTRY = 100  # characters that an entry costs beside its text


class TextCounts(dict[str, int]):
    """What each text counts, worked out when it is first asked for: `counts[text]`.

    The texts of a request are the very strings of its messages, whose hash Python keeps: a text that was
    counted before costs one look-up. At most `limit` characters are kept, the oldest go first.
    """

    __slots__ = ("_count", "_kept", "_limit", "_lock")

    def __init__(self, count: Callable[[str], int], limit: int = 16_000_000) -> None:
        super().__init__()
        self._count = count
        self._limit = limit
        self._kept = 0
        self._lock = Lock()

    def __missing__(self, text: str) -> int:
        found = self._count(text)
        size = len(text) + _ENTRY
        if size <= self._limit // 4:
            with self._lock:  # another thread may have counted it meanwhile
                self._kept += 0 if text in self else size
                self[text] = found
                while self._kept > self._limit:
                    oldest = next(iter(self))
                    self._kept -= len(oldest) + _ENTRY
                    del self[oldest]
        return found

    def __reduce__(self) -> tuple[type[TextCounts], tuple[Callable[[str], int], int]]:
        """A copy counts anew."""
        return (TextCounts, (self._count, self._limit))
