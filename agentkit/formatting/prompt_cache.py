"""Prompt caches: finds blocks that the next request repeats, and positions for cache markers.

A provider's cache stores the request up to a marked block. A later request reads the stored part if the later
request has a marker on this block, or a limited number of blocks after it. The code that places markers does not
know the earlier requests. The code therefore spreads the markers, so that a marker comes shortly after the last
marker of any earlier request.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import Literal, TypeAlias

from agentkit.ledger.provenance import TracedConversation
from agentkit.messages.message import Msg

__all__ = ["CacheBreakpoints", "place_cache_breakpoints", "stable_blocks"]

CacheBreakpoints: TypeAlias = Literal["off", "auto", "auto-1h"]
"""Option of formatters. `auto` adds markers for the provider's prompt cache, and `off` adds no markers.

`auto-1h` is an option of Anthropic's formatters only.
"""

_TRANSIENT = frozenset({"filler turn", "tool choice", "output instruction", "frame", "interrupted"})
"""Names of added texts that the next request omits or has in another position."""


def stable_blocks(conversation: TracedConversation) -> Iterator[tuple[Msg, tuple[bool, ...]]]:
    """Yields each message with one boolean per block: True if the next request repeats the block.

    False means that the next request omits the block or has it in another position. Examples are filler
    turns, texts about a tool choice or an output schema, and tags of a history frame.
    """
    for traced in conversation:
        origins = traced.block_origins
        yield traced.msg, tuple([not isinstance(origin, str) or origin not in _TRANSIENT for origin in origins])


def place_cache_breakpoints(
    candidates: Sequence[int], limit: int, *, reach: int, turn: int | None = None
) -> list[int]:
    """Returns the positions for at most `limit` cache markers.

    A marker covers a position if the marker is at this position or fewer than `reach` positions after it. A
    request reads from the cache if one of its markers covers the last marker of an earlier request. The markers
    are placed in this order:

    1. On the last candidate, for the next request.
    2. On the last candidate before the last assistant turn. The request for that turn had its last marker on this
       candidate. The new request therefore reads from the cache, however many positions follow the candidate.
    3. On the newest candidate that no marker covers, until `limit` markers are placed. A request without a new
       assistant turn may therefore add `reach` * (`limit` - 1) - 1 positions and still read from the cache.

    If the exact positions are unknown, the caller must overestimate the distances between candidates. The markers
    are then closer together than necessary.

    Args:
        candidates: The ascending positions that may have a marker. The last marker of each request for a shorter
            history was on one of these positions.
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
