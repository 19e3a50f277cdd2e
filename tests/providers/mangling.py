"""Hypothesis strategies for damaged JSON values and streams."""

from __future__ import annotations

from typing import Any, cast

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

__all__ = ["mangled", "mangled_events", "odd_values"]


def _nested(depth: int) -> Any:
    value: Any = {}
    for _ in range(depth):
        value = {"a": [value]}
    return value


odd_values: SearchStrategy[Any] = st.sampled_from(
    (
        None, True, False, 0, -1, 7, 3.5, 10**30, 10**400, float("nan"), float("inf"), "", " ", "x", "\ud800",
        "a\udc00b", "null", "tool_use", "漢字\ud83d", [], {}, [None], [[]], [3], [{}], ["\ud800"], {"a": {}},
        {"\ud800": "\ud800"}, {"text": None}, {"a": {"b": float("nan")}}, _nested(180), _nested(400), "x" * 3_000,
        {"": ""}, {"": None}, b"bytes", {"type": "hologram"}, {"type": "text"}, [{"type": 3}], "[DONE]",
    )
)  # fmt: skip
"""Values that replace others: of wrong types, or extreme."""


@st.composite
def mangled(draw: DrawFn, value: Any) -> Any:
    """Strategy for a JSON value with up to three values, at any depth, lost, replaced, added or repeated.

    An object stays an object.
    """
    changed = value
    for _ in range(draw(st.integers(0, 3))):
        changed = _change(draw, changed)
    if isinstance(value, dict) and not isinstance(changed, dict):
        return {"odd": changed}
    return cast("Any", changed)


@st.composite
def mangled_events(draw: DrawFn, events: list[Any]) -> list[Any]:
    """Strategy for the events of a stream: some damaged, perhaps one repeated elsewhere, and one lost."""
    changed: list[Any] = [draw(mangled(event)) if draw(st.integers(0, 3)) == 0 else event for event in events]
    if draw(st.booleans()) and changed:
        changed.insert(draw(st.integers(0, len(changed))), draw(st.sampled_from(changed)))
    if draw(st.booleans()) and changed:
        changed.pop(draw(st.integers(0, len(changed) - 1)))
    return changed


def _change(draw: DrawFn, value: Any) -> Any:
    if isinstance(value, dict) and value and draw(st.integers(0, 4)):
        return _change_object(draw, cast("dict[str, Any]", value))
    if isinstance(value, list) and value and draw(st.integers(0, 4)):
        return _change_list(draw, cast("list[Any]", value))
    return draw(odd_values)


def _change_object(draw: DrawFn, value: dict[str, Any]) -> dict[str, Any]:
    key = draw(st.sampled_from(sorted(value, key=repr)))
    change = draw(st.sampled_from(("inside", "inside", "inside", "lose", "add")))
    if change == "lose":
        return {name: item for name, item in value.items() if name != key}
    if change == "add":
        return {**value, draw(st.sampled_from(("error", "new", "type", "index"))): draw(odd_values)}
    return {**value, key: _change(draw, value[key])}


def _change_list(draw: DrawFn, value: list[Any]) -> list[Any]:
    index = draw(st.integers(0, len(value) - 1))
    if draw(st.integers(0, 3)) == 0:
        return [*value, value[index]]
    return [*value[:index], _change(draw, value[index]), *value[index + 1 :]]
