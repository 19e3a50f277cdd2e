"""RecordedCall replies for the tests: a loopback server that plays one, events cut anywhere, text cut anywhere."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any, cast

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

from agentkit import Msg, StreamEvent
from agentkit.provider_kit import StreamParserBase

__all__ = ["cut", "cuts", "fed", "mangled", "sse"]


def sse(events: Iterable[dict[str, Any]], *, named: bool) -> bytes:
    """Events as the server sends them, with or without an `event:` line."""
    lines = (
        (f"event: {event.get('type')}\n" if named else "") + f"data: {json.dumps(event, ensure_ascii=False)}\n\n"
        for event in events
    )
    return "".join(lines).encode()


def fed(parser: StreamParserBase, chunks: Iterable[object]) -> tuple[Msg, list[StreamEvent]]:
    """The message and the events of a stream."""
    events = [event for chunk in chunks for event in parser.feed(chunk)]
    reply = parser.finish()
    return reply, [*events, *parser.drain()]


@st.composite
def cuts(draw: DrawFn, most: int = 6) -> list[float]:
    """Places to cut something at, as fractions of its length."""
    return sorted(draw(st.lists(st.floats(0, 1), max_size=most)))


def cut(whole: Any, places: Sequence[float]) -> list[Any]:
    """A text, or bytes, in pieces."""
    at = [0, *(int(place * len(whole)) for place in places), len(whole)]
    return [whole[start:stop] for start, stop in pairwise(at)]


_JUNK: tuple[Any, ...] = (
    None, True, 0, -1, 7, 1.5, float("nan"), float("inf"), 10**30, "", "x", "\ud800", "\udc00y", [], {}, [None],
    [[]], {"type": "text"}, {"": None}, "tool_use", {"a": {"b": float("nan")}}, ["\ud800"],
)  # fmt: skip


@st.composite
def mangled(draw: DrawFn, whole: Any) -> Any:
    """A JSON value in which something was put in the place of something else, taken away, or doubled."""
    if isinstance(whole, dict) and whole and draw(st.integers(0, 3)):
        found = cast("dict[str, Any]", whole)
        key = draw(st.sampled_from(sorted(found)))
        what = draw(st.sampled_from(("inside", "inside", "inside", "gone", "added")))
        if what == "gone":
            return {name: item for name, item in found.items() if name != key}
        if what == "added":
            return {**found, draw(st.sampled_from(("new", "\ud800", key))): draw(st.sampled_from(_JUNK))}
        return {**found, key: draw(mangled(found[key]))}
    if isinstance(whole, list) and whole and draw(st.integers(0, 3)):
        items = cast("list[Any]", whole)
        at = draw(st.integers(0, len(items) - 1))
        if draw(st.booleans()):
            return [*items[:at], draw(mangled(items[at])), *items[at + 1 :]]
        return draw(st.sampled_from(([*items, items[at]], items[:at], items[::-1])))
    return draw(st.sampled_from(_JUNK))
