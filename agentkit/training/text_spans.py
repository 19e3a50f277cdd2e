"""Functions for spans of a text (start and end)."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final, TypeAlias, cast

__all__ = ["Span", "intersect_spans", "merge_spans", "skip_space", "subtract_spans"]

_SPACE: Final = re.compile(r"\s*")

Span: TypeAlias = tuple[int, int]
"""Start and end (exclusive) of a part, as indexes of a text or of a list of tokens."""


def merge_spans(spans: Iterable[Span]) -> list[Span]:
    """Returns spans in order. Overlapping and adjacent spans are merged, and empty spans are omitted."""
    merged: list[Span] = []
    for start, end in sorted(spans):
        if merged and start <= merged[-1][1]:
            merged[-1] = merged[-1][0], max(end, merged[-1][1])
        elif start < end:
            merged.append((start, end))
    return merged


def subtract_spans(spans: Iterable[Span], excluded: Iterable[Span]) -> list[Span]:
    """Returns the parts of `spans` that are outside of all spans in `excluded`, in order."""
    remaining: list[Span] = []
    removed = merge_spans(excluded)
    index = 0
    for start, end in merge_spans(spans):
        while index < len(removed) and removed[index][1] <= start:
            index += 1
        following = index
        while following < len(removed) and removed[following][0] < end:
            first, last = removed[following]
            if start < first:
                remaining.append((start, first))
            start = last
            following += 1
        if start < end:
            remaining.append((start, end))
    return remaining


def intersect_spans(spans: Iterable[Span], others: Iterable[Span]) -> list[Span]:
    """Returns the parts of `spans` that are also in `others`, in order."""
    merged = merge_spans(spans)
    return subtract_spans(merged, subtract_spans(merged, others))


def skip_space(text: str, position: int) -> int:
    """Returns the position after any white space at `position`. This can be the end of the text."""
    return cast("re.Match[str]", _SPACE.match(text, position)).end()
