"""Searches requests for marks, which are unique words in the blocks of a conversation."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

__all__ = ["clear_containers", "find_marks", "find_surroundings", "iterate_scalars", "json_text", "walk_json"]


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
