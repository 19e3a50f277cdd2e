"""Streams of OpenAI's APIs as dicts, as raw server-sent events, and as objects of the SDK."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from typing import Any, Final, cast

import httpx2
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy
from openai import OpenAI

from agentkit import Msg, StreamEvent
from agentkit.provider_kit import StreamParserBase

__all__ = ["chopped", "cuts", "mangled", "read", "sdk_events", "sse"]


def sse(events: Iterable[dict[str, Any]], break_: str = "\n") -> bytes:
    """Returns events as the bytes that a server sends."""
    lines = [f"data: {json.dumps(event)}{break_}{break_}" for event in events]
    return "".join((f": keep-alive{break_}{break_}", *lines, f"data: [DONE]{break_}{break_}")).encode()


_body: list[bytes] = [b""]


@cache
def _client() -> OpenAI:
    def answer(request: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(200, headers={"content-type": "text/event-stream"}, content=_body[0])

    return OpenAI(api_key="none", http_client=httpx2.Client(transport=httpx2.MockTransport(answer)))


def sdk_events(api: str, body: bytes) -> Iterator[Any]:
    """Returns the objects that the SDK's client decodes from a body."""
    _body[0] = body
    client = _client()
    if api == "chat":
        yield from client.chat.completions.create(model="m", messages=[], stream=True)
    else:
        yield from client.responses.create(model="m", input="x", stream=True)


def read(parser: StreamParserBase, chunks: Iterable[object]) -> tuple[Msg, list[StreamEvent]]:
    """Returns the message and all events of a stream."""
    events = [event for chunk in chunks for event in parser.feed(chunk)]
    msg = parser.finish()
    return msg, [*events, *parser.drain()]


def chopped(body: bytes, at: Sequence[int]) -> list[bytes]:
    """Returns the body in pieces, divided at these positions."""
    places = [0, *sorted({place % (len(body) + 1) for place in at}), len(body)]
    return [body[start:stop] for start, stop in itertools.pairwise(places)]


cuts: Final[SearchStrategy[list[int]]] = st.lists(st.integers(0, 5_000), max_size=12)

_JUNK: Final[tuple[Any, ...]] = (
    None,
    True,
    0,
    -1,
    1.5,
    "",
    "x",
    "\ud800",
    [],
    [None],
    {},
    {"type": "x"},
    [{}],
    10**30,
    float("nan"),
)


@st.composite
def mangled(draw: DrawFn, events: SearchStrategy[list[dict[str, Any]]]) -> list[dict[str, Any]]:
    """Strategy for damaged events: dropped keys, values of other types, lost, repeated and swapped events."""
    found: list[Any] = [_mangle(draw, event) for event in draw(events)]
    made: list[dict[str, Any]] = [event for event in found if isinstance(event, dict)]
    if draw(st.booleans()) and made:
        made.insert(draw(st.integers(0, len(made))), made[draw(st.integers(0, len(made) - 1))])
    if draw(st.booleans()) and made:
        made.pop(draw(st.integers(0, len(made) - 1)))
    return made


def _mangle(draw: DrawFn, found: Any) -> Any:
    luck = draw(st.integers(0, 40))
    if luck == 0:
        return draw(st.sampled_from(_JUNK))
    if isinstance(found, dict):
        held = cast("dict[str, Any]", found)
        kept = {key: _mangle(draw, item) for key, item in held.items()}
        if kept and luck == 1:
            kept.pop(draw(st.sampled_from(sorted(kept))))
        return kept
    if isinstance(found, list):
        return [_mangle(draw, item) for item in cast("list[Any]", found)]
    return found
