"""Streams for tests of parsers: cut anywhere, encoded, and parsed."""

from __future__ import annotations

import json
from collections.abc import Iterable
from itertools import pairwise
from typing import Any, Final, TypeVar

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from agentkit import Msg, StreamEvent
from agentkit.provider_kit import StreamParserBase

__all__ = ["cut", "cuts", "encode_events", "parse_stream"]

_Sequence = TypeVar("_Sequence", str, bytes)

cuts: Final[SearchStrategy[list[int]]] = st.lists(st.integers(0, 5_000), max_size=12)
"""Positions for `cut`."""


def cut(text: _Sequence, places: Iterable[int]) -> list[_Sequence]:
    """Returns a text, or bytes, in pieces divided at these positions, taken modulo the length."""
    ends = sorted({0, *(place % (len(text) + 1) for place in places), len(text)})
    return [text[start:stop] for start, stop in pairwise(ends)]


def encode_events(events: Iterable[dict[str, Any]], *, named: bool = False) -> bytes:
    """Returns events as the bytes that a server sends, with or without an `event:` line."""
    lines = (
        (f"event: {event.get('type')}\n" if named else "") + f"data: {json.dumps(event, ensure_ascii=False)}\n\n"
        for event in events
    )
    return "".join(lines).encode()


def parse_stream(parser: StreamParserBase, chunks: Iterable[object]) -> tuple[Msg, list[StreamEvent]]:
    """Returns the message and all events of a stream."""
    events = [event for chunk in chunks for event in parser.feed(chunk)]
    msg = parser.finish()
    return msg, [*events, *parser.drain()]
