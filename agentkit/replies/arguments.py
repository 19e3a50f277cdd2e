"""`ArgumentBuffer`: collects the argument text of a tool call piece by piece, and parses the incomplete text."""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from typing import Any, cast

from pydantic_core import from_json, to_json

__all__ = ["ArgumentBuffer", "split_objects"]

_MARKS = re.compile(r'["{}\[\]]')
_MARKS_IN_STRING = re.compile(r'["\\]')

_EAGER_LENGTH = 250
"""Maximum length, in characters, of an argument text that is parsed again after every piece."""


class ArgumentBuffer:
    """Argument text of one tool call, which arrives in pieces. The incomplete text can be parsed at any time.

    Attributes:
        length: Number of received characters.
    """

    __slots__ = (
        "_checkpoints",
        "_is_object",
        "_next_checkpoint",
        "_parsed",
        "_pieces",
        "_scan",
        "_scanned_pieces",
        "length",
    )

    def __init__(self) -> None:
        self.length = 0
        self._pieces: list[str] = []
        self._next_checkpoint = 1
        self._checkpoints: list[int] = [0]  # incomplete arguments are parsed only at these text lengths
        # Result of the most recent parsing: the number of parsed characters, and the parsed value.
        self._parsed: tuple[int, dict[str, Any]] = (0, {})
        self._scan: _Scan | None = None
        self._scanned_pieces = 0
        self._is_object: bool | None = None

    def add(self, piece: str) -> None:
        """Appends a piece to the argument text."""
        self._pieces.append(piece)
        self.length += len(piece)
        if self.length >= self._next_checkpoint:
            self._checkpoints.append(self.length)
            self._next_checkpoint = self.length + (len(piece) * (self.length // _EAGER_LENGTH) or 1)

    @property
    def text(self) -> str:
        """The part of the argument text that has arrived."""
        if len(self._pieces) > 1:
            if self._scan is not None:
                self._advance(self._scan)
                self._scanned_pieces = 1
            self._pieces = ["".join(self._pieces)]
        return self._pieces[0] if self._pieces else ""

    @property
    def is_object(self) -> bool:
        """True if the received text is one complete JSON object.

        Each character is scanned only once, even if the property is read many times.
        """
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
        for index in range(self._scanned_pieces, len(self._pieces)):
            scan.feed(self._pieces[index])
        self._scanned_pieces = len(self._pieces)

    def partial(self, length: int) -> dict[str, Any]:
        """Returns the arguments that can be parsed from the first `length` characters of the text.

        A long text is not parsed after every piece, so the result can lack values at the end of these characters.
        """
        checkpoints = self._checkpoints
        end = checkpoints[-1]
        if end > length:  # an earlier event, whose argument text was shorter, requests its arguments
            end = checkpoints[bisect_right(checkpoints, length) - 1]
        if self._parsed[0] != end:
            self._parsed = (end, _parse_beginning(self.text[:end]))
        return self._parsed[1]


class _Scan:
    """Incremental search for the end of the JSON value at the beginning of a text."""

    __slots__ = ("_depth", "_escaped", "_has_suffix", "_in_string", "_is_over")

    def __init__(self) -> None:
        self._depth = 0
        self._in_string = False
        self._escaped = False
        self._is_over = False
        self._has_suffix = False

    @property
    def is_closed(self) -> bool:
        """True if the JSON value is complete and only white space follows the value."""
        return self._is_over and not self._has_suffix

    def feed(self, piece: str) -> None:
        if self._is_over:
            self._has_suffix = self._has_suffix or bool(piece.strip())
            return
        position = int(self._escaped)
        self._escaped = self._escaped and not piece
        while match := (_MARKS_IN_STRING if self._in_string else _MARKS).search(piece, position):
            mark, position = match[0], match.end()
            if mark == '"':
                self._in_string = not self._in_string
            elif mark == "\\":
                self._escaped = position == len(piece)
                position += 1
            else:
                self._depth += 1 if mark in "[{" else -1
                if self._depth <= 0:
                    self._is_over, self._has_suffix = True, bool(piece[position:].strip())
                    return


def _parse_beginning(text: str) -> dict[str, Any]:
    try:
        value: object = from_json(text, allow_partial="trailing-strings", cache_strings="keys")
    except ValueError:
        return {}
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def split_objects(text: str) -> list[tuple[dict[str, Any], str]]:
    """Splits a text of consecutive JSON objects. Returns each object together with its JSON text.

    Returns an empty list if the text contains anything other than JSON objects and white space.

    Example:
        >>> [value for value, _ in split_objects('{"a": 1}{"a": 2}')]
        [{'a': 1}, {'a': 2}]
    """
    objects: list[tuple[dict[str, Any], str]] = []
    decoder, position, text = json.JSONDecoder(), 0, text.strip()
    while position < len(text):
        try:
            value, end = decoder.raw_decode(text, position)
            to_json(value, inf_nan_mode="constants")
        except (ValueError, RecursionError):
            return []
        if not isinstance(value, dict):
            return []
        objects.append((cast("dict[str, Any]", value), text[position:end]))
        position = end
        while position < len(text) and text[position].isspace():
            position += 1
    return objects
