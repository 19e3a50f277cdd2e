"""Prompt caches: which blocks of a request the next one has too, and where a marker on them is of use.

A provider's cache keeps the request up to a marked block, and finds it again from a marker that lies on that
block or not far behind it. Who places the markers knows the conversation alone, not the last request: so they
follow from the history, and a longer history must place them where they reach what a shorter one wrote.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import Literal, TypeAlias

from agentkit.errors import OptionError
from agentkit.ledger.provenance import TracedConversation, block_origins
from agentkit.messages.message import Msg

__all__ = ["CacheBreakpoints", "check_cache_breakpoints", "place_cache_breakpoints", "stable_blocks"]

CacheBreakpoints: TypeAlias = Literal["off", "auto"]
"""Option of formatters: `auto` adds markers for the provider's prompt cache."""

_PASSING = frozenset({"filler turn", "tool choice", "output instruction", "frame", "interrupted"})
"""Syntheses that the next request has in another place or not at all."""


def check_cache_breakpoints(given: str, *more: str) -> None:
    """Raises OptionError for a value that is neither `off`, `auto` nor one of `more`."""
    allowed = ("off", "auto", *more)
    if given not in allowed:
        advice = f"Use {', '.join(allowed[:-1])} or {allowed[-1]}."
        raise OptionError("cache_breakpoints", f"{given!r} is unknown", advice)


def stable_blocks(draft: TracedConversation) -> Iterator[tuple[Msg, tuple[bool, ...]]]:
    """Yields each message, with True for each block that the request of a longer history has too.

    Not settled is what the pipeline put there for this request alone: filler turns, a choice of tool or an
    output schema in words, a frame's tags (a whole frame, where the wire glues it), the stand-in for a missing
    result.
    """
    for msg, whole in zip(draft.msgs, draft.origins, strict=True):
        origins = block_origins(msg, whole)
        yield msg, tuple([not isinstance(origin, str) or origin not in _PASSING for origin in origins])


def place_cache_breakpoints(
    candidates: Sequence[int], limit: int, *, reach: int, turn: int | None = None
) -> list[int]:
    """Where to put at most `limit` markers, for a cache that looks back `reach` positions from each.

    candidates    the positions that a marker may lie on, ascending; any request for a shorter history had its
                  last marker on one of them
    turn          the position at which the assistant's last turn begins

    The marker on the last candidate is the one that the next request is to find. One of its own will reach it:

    - the one before the assistant's last turn, where the last candidate was when the assistant was asked for
      that turn. So a step of a dialogue, or of a loop of tools, may add any number of positions;
    - the one on the last candidate of all, and then each on the newest candidate that no marker reaches yet. So
      anybody may add `reach` * (`limit` - 1) - 1 positions: the marker of the turn takes one of `limit`.

    Positions may be counted too generously, never too sparingly: markers then stand closer than they need to.

    >>> place_cache_breakpoints(range(50), 3, reach=20)
    [9, 29, 49]
    >>> place_cache_breakpoints(range(50), 3, reach=20, turn=5)
    [4, 29, 49]
    """
    chosen = list(candidates[-1:])
    if turn is not None and (before := bisect_left(candidates, turn)):
        chosen.append(candidates[before - 1])
    while len({*chosen}) < limit:
        fresh = next((at for at in reversed(candidates) if not any(0 <= by - at < reach for by in chosen)), None)
        if fresh is None:
            break
        chosen.append(fresh)
    return sorted({*chosen})[-limit:]
