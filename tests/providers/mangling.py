"""Hypothesis strategies: events and replies of a provider to which something happened on the way."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import Any, TypeVar, cast

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

__all__ = ["cut", "mangled", "odd_values"]

_Sequence = TypeVar("_Sequence", str, bytes)


def cut(whole: _Sequence, cuts: Iterable[int]) -> list[_Sequence]:
    """A text, or bytes, in pieces: each number says where, taken modulo the length."""
    places = sorted({0, *(number % (len(whole) + 1) for number in cuts), len(whole)})
    return [whole[start:stop] for start, stop in pairwise(places)]


def _nested(depth: int) -> Any:
    found: Any = {}
    for _ in range(depth):
        found = {"a": [found]}
    return found


odd_values: SearchStrategy[Any] = st.sampled_from(
    (
        None, True, False, 0, -1, 3.5, 10**400, float("nan"), float("inf"), "", " ", "\ud800", "a\udc00b", "null",
        "漢字\ud83d", [], {}, [None], [[]], [3], {"a": {}}, {"\ud800": "\ud800"}, {"text": None}, _nested(180),
        _nested(400), "x" * 3_000, {"": ""}, b"bytes", {"type": "hologram"}, [{"type": 3}], "[DONE]",
    )
)  # fmt: skip
"""What stands where something else is expected."""


@st.composite
def mangled(draw: DrawFn, events: list[Any]) -> Any:
    """One of the events, with up to three of its values, at any depth, lost, replaced or put twice."""
    event = draw(st.sampled_from(events))
    for _ in range(draw(st.integers(0, 3))):
        event = _changed(draw, event)
    return cast("Any", event) if isinstance(event, dict) else {"odd": event}


def _changed(draw: DrawFn, found: Any) -> Any:
    """The value with a change somewhere inside."""
    if isinstance(found, dict) and found and draw(st.integers(0, 4)):
        return _changed_object(draw, cast("dict[str, Any]", found))
    if isinstance(found, list) and found and draw(st.integers(0, 4)):
        return _changed_list(draw, cast("list[Any]", found))
    return draw(odd_values)


def _changed_object(draw: DrawFn, found: dict[str, Any]) -> dict[str, Any]:
    key = draw(st.sampled_from(sorted(found, key=repr)))
    what = draw(st.sampled_from(("inside", "inside", "inside", "lost", "added")))
    if what == "lost":
        return {name: item for name, item in found.items() if name != key}
    if what == "added":
        return {**found, draw(st.sampled_from(("error", "new", "type", "index"))): draw(odd_values)}
    return {**found, key: _changed(draw, found[key])}


def _changed_list(draw: DrawFn, found: list[Any]) -> list[Any]:
    at = draw(st.integers(0, len(found) - 1))
    if draw(st.integers(0, 3)) == 0:
        return [*found, found[at]]
    return [*found[:at], _changed(draw, found[at]), *found[at + 1 :]]
