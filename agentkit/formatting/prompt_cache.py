"""Prompt caches: finds blocks that the next request repeats, and positions for cache markers.

A provider's cache stores the request up to a marked block. A later request finds the stored part if it has a
marker on the same block, or on a block at most a fixed number of blocks later. The code that places markers
does not know the previous request. So each history gets markers within that number of blocks after the markers of
every shorter history.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import Literal, TypeAlias

from agentkit.errors import OptionError
from agentkit.ledger.provenance import TracedConversation
from agentkit.messages.message import Msg

__all__ = ["CacheBreakpoints", "check_cache_breakpoints", "place_cache_breakpoints", "stable_blocks"]

CacheBreakpoints: TypeAlias = Literal["off", "auto"]
"""Option of formatters: `auto` adds markers for the provider's prompt cache."""

_TRANSIENT = frozenset({"filler turn", "tool choice", "output instruction", "frame", "interrupted"})
"""Names of added texts that the next request has in another position or not at all."""


def check_cache_breakpoints(value: str, *more: str) -> None:
    """Raises OptionError for a value that is neither `off`, `auto` nor one of `more`."""
    allowed = ("off", "auto", *more)
    if value not in allowed:
        advice = f"Use {', '.join(allowed[:-1])} or {allowed[-1]}."
        raise OptionError("cache_breakpoints", f"{value!r} is unknown", advice)


def stable_blocks(conversation: TracedConversation) -> Iterator[tuple[Msg, tuple[bool, ...]]]:
    """Yields each message with a tuple that has True for each block that the next request repeats.

    The tuple has False for texts that only this request contains. Examples are added turns, texts about a tool
    choice or an output schema, tags of a history frame, and the error result for an interrupted tool call.
    """
    for traced in conversation:
        origins = traced.block_origins
        yield traced.msg, tuple([not isinstance(origin, str) or origin not in _TRANSIENT for origin in origins])


def place_cache_breakpoints(
    candidates: Sequence[int], limit: int, *, reach: int, turn: int | None = None
) -> list[int]:
    """Returns the positions for at most `limit` cache markers.

    The next request must find the marker on the last candidate. One of its markers reaches that position:

    - the marker before the last assistant turn, because the last candidate was there when that turn was requested.
      So one step of a dialogue, or of a tool loop, may add any number of positions;
    - the marker on the last candidate of all, and then each marker on the newest candidate that no marker reaches
      yet. So a request may add `reach` * (`limit` - 1) - 1 positions without an assistant turn.

    Positions may be overestimated, never underestimated: markers are then closer together than necessary.

    Args:
        candidates: The positions that may have a marker, ascending. Any request for a shorter history had its last
            marker on one of them.
        limit: The maximum number of markers.
        reach: The number of positions that a cache looks back from a marker.
        turn: The position at which the last assistant turn starts. None if there is no assistant turn.

    Example:
        >>> place_cache_breakpoints(range(50), 3, reach=20)
        [9, 29, 49]
        >>> place_cache_breakpoints(range(50), 3, reach=20, turn=5)
        [4, 29, 49]
    """
    chosen = list(candidates[-1:])
    if turn is not None and (before := bisect_left(candidates, turn)):
        chosen.append(candidates[before - 1])
    while len({*chosen}) < limit:
        unreached = (
            candidate
            for candidate in reversed(candidates)
            if not any(0 <= marker - candidate < reach for marker in chosen)
        )
        newest = next(unreached, None)
        if newest is None:
            break
        chosen.append(newest)
    return sorted({*chosen})[-limit:]
