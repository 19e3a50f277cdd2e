"""Collects the findings of provider checks, searches requests for texts, and records I/O."""

from __future__ import annotations

import json
import re
import sys
import threading
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, cast

__all__ = [
    "clear_containers",
    "collect_findings",
    "describe_error",
    "find_marks",
    "find_surroundings",
    "iterate_scalars",
    "json_text",
    "record_io",
    "walk_json",
]


def collect_findings(place: str, findings: Iterable[str]) -> Iterator[str]:
    """Yields each finding as "PLACE: FINDING". An exception of the checked code is also yielded as a finding."""
    try:
        for finding in findings:
            yield f"{place}: {finding}"
    except (GeneratorExit, KeyboardInterrupt):
        raise
    except BaseException as error:
        yield f"{place}: raises {describe_error(error)}"


def describe_error(error: BaseException) -> str:
    """Returns the class name and the text of an exception."""
    try:
        sentence = str(error)
    except Exception:
        sentence = "the method `__str__` of the exception raises another exception"
    return f"{type(error).__name__}: {sentence[:500]}"


def json_text(request: object) -> str:
    """Serializes a request as JSON text. Raises `TypeError` or `ValueError` if JSON cannot represent a value."""
    return json.dumps(request, ensure_ascii=False, allow_nan=False)


def clear_containers(value: object) -> None:
    """Empties every dict and list in a value."""
    for _, _, inner in [*walk_json(value)]:
        if isinstance(inner, dict | list):
            cast("Any", inner).clear()


def walk_json(value: object, path: str = "", key: str = "") -> Iterator[tuple[str, str, Any]]:
    """Yields a JSON value and every value inside it, each with its path and the key under which it is stored.

    An example of a path is `[2].content[0]`. A value comes before the values inside it. The items of a list have
    the key of the list.
    """
    yield path, key, value
    if isinstance(value, Mapping):
        for name, inner in cast("Mapping[Any, Any]", value).items():
            yield from walk_json(inner, f"{path}.{name}", str(name))
    elif isinstance(value, list | tuple):
        for index, inner in enumerate(cast("Sequence[Any]", value)):
            yield from walk_json(inner, f"{path}[{index}]", key)


def iterate_scalars(value: object, key: str = "") -> Iterator[tuple[str, Any]]:
    """Yields each scalar in a JSON value, together with the key under which it is stored."""
    for _, name, inner in walk_json(value, key=key):
        if not isinstance(inner, Mapping | list | tuple):
            yield name, inner


def find_marks(prefix: str, text: str) -> dict[str, list[int]]:
    """Returns the positions of each mark in a text. Only marks that begin with `prefix` are included.

    A mark is a unique word such as `callOne`. The checks find a block in a request by the mark of the block.

    Args:
        prefix: Start of the marks, such as `call`, as a regular expression.
        text: Text to search.
    """
    positions: dict[str, list[int]] = {}
    for match in re.finditer(rf"\b(?:{prefix})[A-Z][A-Za-z]*", text.replace("\\n", "\n ")):
        positions.setdefault(match[0], []).append(match.start())
    return positions


def find_surroundings(value: object, wanted: Sequence[str]) -> dict[str, list[tuple[str, str]]]:
    """Finds the part of a request that belongs to each mark. Returns the keys and scalars of each part.

    A mark is a unique word in a text. The part of a mark is the largest part of the request that contains this
    mark and no other mark.

    If one string contains several marks, the result has no entries for these marks.
    """
    parts: dict[str, list[tuple[str, str]]] = {}
    _divide(value, "", wanted, parts)
    return parts


def _divide(value: object, key: str, wanted: Sequence[str], parts: dict[str, list[tuple[str, str]]]) -> None:
    text = json.dumps(value, ensure_ascii=False)
    marks = [mark for mark in wanted if re.search(rf"\b{mark}\b", text.replace("\\n", "\n "))]
    if len(marks) == 1:
        parts[marks[0]] = [("", key), *((name, str(scalar)) for name, scalar in iterate_scalars(value, key))]
    elif marks and isinstance(value, dict):
        for name, inner in cast("dict[str, Any]", value).items():
            _divide(inner, name, marks, parts)
    elif marks and isinstance(value, list):
        for inner in cast("list[Any]", value):
            _divide(inner, key, marks, parts)


# -- I/O ----------------------------------------------------------------------------------------------------------

_IO_EVENTS = ("open", "os.listdir", "os.scandir", "os.system", "socket.", "subprocess.", "tempfile.", "urllib.")
_watched: dict[int, list[str]] = {}
_hooks: list[object] = []


@contextmanager
def record_io() -> Generator[list[str]]:
    """Records each access of the current thread to files, sockets or processes inside the `with` block.

    Yields a list. For each access, the name of Python's audit event (such as `open`) is added to the list.
    """
    if not _hooks:  # the audit hook is added only once, because Python cannot remove it
        sys.addaudithook(_note_event)
        _hooks.append(_note_event)
    events: list[str] = []
    _watched[threading.get_ident()] = events
    try:
        yield events
    finally:
        del _watched[threading.get_ident()]


def _note_event(event: str, arguments: tuple[object, ...]) -> None:
    if _watched and event.startswith(_IO_EVENTS):
        events = _watched.get(threading.get_ident())
        if events is not None:
            events.append(event)
