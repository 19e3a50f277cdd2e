"""Bounded representations: what a debugger, a log or an error shows of a value, however large the value is."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import MISSING, Field, fields, is_dataclass
from enum import Enum
from typing import Any, Final, cast

__all__ = ["bounded_repr", "brief", "one_line", "shorten"]

_ROOM: Final = 1_000  # characters
_LEAST: Final = 40  # characters: with fewer a container shows its size alone
_ENDS: Final = 12  # characters of any text that is cut


def bounded_repr(self: Any) -> str:
    """`__repr__` of a dataclass: its fields that differ from their defaults, each cut to its share of the room."""
    return _fields(self, _ROOM)


def brief(found: object, room: int = _ROOM) -> str:
    """Returns the repr of any value, cut to about `room` characters."""
    room = max(room, _ENDS)
    if isinstance(found, str | bytes | bytearray):
        return _text(found, room)
    if is_dataclass(found) and type(found).__repr__ is bounded_repr:
        return _fields(found, room)
    if type(found) in (list, tuple, set, frozenset, dict):
        return _items(cast("Any", found), room)
    if isinstance(found, Enum):
        return f"{type(found).__name__}.{found.name}"
    return shorten(_safe(found), room)


def shorten(text: str, room: int) -> str:
    """Returns a text with its middle left out where it is longer than `room` characters."""
    if len(text) <= room:
        return text
    return f"{text[: room - room // 4]} … ({len(text):,} characters) … {text[len(text) - room // 4 :]}"


def one_line(text: str) -> str:
    """Returns a text on one line, without the characters that command a terminal."""
    return "".join(one if one.isprintable() else "\N{REPLACEMENT CHARACTER}" for one in " ".join(text.split()))


def _safe(found: object) -> str:
    try:
        return repr(found)
    except Exception as error:  # a repr of the caller's own, or a number of too many digits
        return f"<{type(found).__name__}: {type(error).__name__}>"


def _text(found: str | bytes | bytearray, room: int) -> str:
    if len(found) <= room and len(whole := repr(found)) <= room + 2:
        return whole
    unit = "characters" if isinstance(found, str) else "bytes"
    room = max(room - 30, _ENDS)  # less the size
    return f"{repr(found[:room])[:room]}… ({len(found):,} {unit})"


def _fields(found: Any, room: int) -> str:
    name = type(found).__name__
    known = [one for one in fields(found) if one.repr and not _is_default(one, getattr(found, one.name, None))]
    if room < _LEAST and known:
        return f"{name}(…)"
    shown: list[str] = []
    room -= len(name)
    for at, one in enumerate(known):
        if room < 0:
            shown.append(f"… {len(known) - at} more")
            break
        part = f"{one.name}={brief(getattr(found, one.name, None), room // (len(known) - at) - len(one.name))}"
        room -= len(part)
        shown.append(part)
    return f"{name}({', '.join(shown)})"


def _is_default(known: Field[Any], value: object) -> bool:
    if known.default is MISSING:
        return callable(known.default_factory) and isinstance(value, (*_SIZED, dict)) and not value
    return value is known.default or (type(value) in (str, int, tuple) and bool(value == known.default))


_SIZED = (list, tuple, set, frozenset)


def _items(found: Any, room: int) -> str:
    start, end = _BRACKETS[type(found)]
    if room < _LEAST and found:
        return f"{start}… {len(found):,}{end}"
    if not found and start == "{" and not hasattr(found, "items"):
        return "set()"
    shown: list[str] = []
    for part in _parts(found, room):
        room -= len(part) + 2
        if room < 0:
            shown.append(f"… {len(found) - len(shown):,} more")
            break
        shown.append(part)
    comma = "," if len(found) == 1 and start == "(" else ""
    return f"{start}{', '.join(shown)}{comma}{end}"


_BRACKETS: Final[dict[Any, Any]] = {
    list: "[]",
    tuple: "()",
    dict: "{}",
    set: "{}",
    frozenset: ("frozenset({", "})"),
}


def _parts(found: Any, room: int) -> Iterator[str]:
    """Yields each item in half of the room that is left, an only one in most of it."""
    named = hasattr(found, "items")
    pairs: Any = found.items() if named else ((None, item) for item in found)
    for key, item in pairs:
        name = f"{brief(key, min(room // 4, 60))}: " if named else ""
        part = f"{name}{brief(item, room // 2 if len(found) > 1 else room * 3 // 4)}"
        yield part
        room -= len(part) + 2
