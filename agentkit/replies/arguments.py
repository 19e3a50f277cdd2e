"""The arguments of a call as they come: their text, and what can be read of it so far."""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from typing import Any, cast

from pydantic_core import from_json, to_json

__all__ = ["ArgumentBuffer", "objects_in"]

_MARKS = re.compile(r'["{}\[\]]')
_IN_STRING = re.compile(r'["\\]')

_EAGER = 250
"""Characters up to which every delta is read anew. Beyond, as many more are read a delta, on average."""


class ArgumentBuffer:
    """The argument text of one call, and the object that it begins to be."""

    __slots__ = ("_ends", "_is_object", "_next", "_pieces", "_read", "_reads", "_scan", "_scanned", "length")

    def __init__(self) -> None:
        self.length = 0
        self._pieces: list[str] = []
        self._next = 1  # the length from which on the text is read anew
        self._reads: list[int] = [0]  # the lengths at which it was, or would have been
        self._read: tuple[int, dict[str, Any]] = (0, {})
        self._scan: _Scan | None = None
        self._scanned = 0  # pieces
        self._is_object: bool | None = None

    def add(self, piece: str) -> None:
        """Take one more piece."""
        self._pieces.append(piece)
        self.length += len(piece)
        if self.length >= self._next:
            self._reads.append(self.length)
            self._next = self.length + max(1, len(piece) * (self.length // _EAGER))

    @property
    def text(self) -> str:
        """All of it."""
        if len(self._pieces) > 1:
            if self._scan is not None:
                self._advance(self._scan)
                self._scanned = 1
            self._pieces = ["".join(self._pieces)]
        return self._pieces[0] if self._pieces else ""

    @property
    def is_object(self) -> bool:
        """True if the text so far is one whole JSON object. Each character is read once."""
        self._scan = self._scan or _Scan()
        self._advance(self._scan)
        if not self._scan.is_closed:
            return False
        if self._is_object is None:
            try:
                self._is_object = isinstance(from_json(self.text.encode("utf-8", "replace")), dict)
            except ValueError:
                self._is_object = False
        return self._is_object

    def _advance(self, scan: _Scan) -> None:
        for at in range(self._scanned, len(self._pieces)):
            scan.take(self._pieces[at])
        self._scanned = len(self._pieces)

    def partial(self, length: int) -> dict[str, Any]:
        """The object that the first `length` characters begin to be, as of the last time that they were read."""
        reads = self._reads
        at = reads[-1]
        if at > length:  # asked for an event that is past
            at = reads[bisect_right(reads, length) - 1]
        if self._read[0] != at:
            self._read = (at, _begun(self.text[:at]))
        return self._read[1]


class _Scan:
    """Finds the end of the JSON value that a text in pieces begins with."""

    __slots__ = ("_depth", "_escaped", "_in_string", "_is_broken", "_is_over")

    def __init__(self) -> None:
        self._depth = 0
        self._in_string = False
        self._escaped = False
        self._is_over = False
        self._is_broken = False

    @property
    def is_closed(self) -> bool:
        """True if the value is at its end and nothing but white space came after it."""
        return self._is_over and not self._is_broken

    def take(self, piece: str) -> None:
        """Look at one more piece."""
        if self._is_over:
            self._is_broken = self._is_broken or bool(piece.strip())
            return
        at = int(self._escaped)
        self._escaped = self._escaped and not piece
        while found := (_IN_STRING if self._in_string else _MARKS).search(piece, at):
            mark, at = found[0], found.end()
            if mark == '"':
                self._in_string = not self._in_string
            elif mark == "\\":
                self._escaped = at == len(piece)
                at += 1
            else:
                self._depth += 1 if mark in "[{" else -1
                if self._depth <= 0:
                    self._is_over, self._is_broken = True, bool(piece[at:].strip())
                    return


def _begun(text: str) -> dict[str, Any]:
    try:
        found: object = from_json(text, allow_partial="trailing-strings", cache_strings="keys")
    except ValueError:
        return {}
    return cast("dict[str, Any]", found) if isinstance(found, dict) else {}


def objects_in(text: str) -> list[tuple[dict[str, Any], str]]:
    """The objects that stand one behind the other in a text, each with its own text; none if anything else does.

    >>> [found for found, _ in objects_in('{"a": 1}{"a": 2}')]
    [{'a': 1}, {'a': 2}]
    """
    found: list[tuple[dict[str, Any], str]] = []
    decoder, at, text = json.JSONDecoder(), 0, text.strip()
    while at < len(text):
        try:
            item, stop = decoder.raw_decode(text, at)
            to_json(item, inf_nan_mode="constants")
        except (ValueError, RecursionError):
            return []
        if not isinstance(item, dict):
            return []
        found.append((cast("dict[str, Any]", item), text[at:stop]))
        at = stop
        while at < len(text) and text[at].isspace():
            at += 1
    return found
