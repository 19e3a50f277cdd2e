"""Spans of a text, and the difference between two texts."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from typing import TypeAlias

__all__ = [
    "Span",
    "count_common_end",
    "count_common_start",
    "find_difference",
    "merge_spans",
    "subtract_spans",
]

Span: TypeAlias = tuple[int, int]
"""Start and end of a part, as indexes of a text or of a list of tokens."""


def merge_spans(spans: Iterable[Span]) -> list[Span]:
    """Sorts spans, and merges overlapping and adjacent spans. Empty spans are omitted."""
    merged: list[Span] = []
    for start, end in sorted(spans):
        if merged and start <= merged[-1][1]:
            merged[-1] = merged[-1][0], max(end, merged[-1][1])
        elif start < end:
            merged.append((start, end))
    return merged


def subtract_spans(spans: Iterable[Span], excluded: Iterable[Span]) -> list[Span]:
    """Returns the parts of spans that are in none of the excluded spans."""
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


def count_common_start(text: str, other: str) -> int:
    """Returns the number of characters in the common start of two texts."""
    if other.startswith(text):
        return len(text)
    # A binary search compares slices, which is much faster than a loop over characters.
    lengths = range(1, min(len(text), len(other)) + 1)
    return bisect_left(lengths, True, key=lambda length: text[:length] != other[:length])


def count_common_end(text: str, other: str) -> int:
    """Returns the length of the longest common suffix of two texts."""
    lengths = range(1, min(len(text), len(other)) + 1)
    return bisect_left(lengths, True, key=lambda length: text[-length:] != other[-length:])


def find_difference(text: str, other: str, content: str, floors: Sequence[int]) -> Span | None:
    """Returns the span of the part of `text` that `other` lacks. Returns None if there is no such part.

    A part such as `<b>2</b>` in `<b>1</b><b>2</b><b>3</b>` can begin at several positions. The function chooses
    the first position at which the part contains `content`.

    Args:
        text: Text with the part.
        other: Text without the part.
        content: Text inside the part.
        floors: Positions in `text`, such as the starts of replies. The part does not begin before the last floor
            that is at or before the first difference.
    """
    start = count_common_start(text, other)
    length = len(text) - len(other)
    common_end = min(count_common_end(text, other), len(other) - start)
    if length <= 0 or common_end < len(other) - start:
        end = len(text) - common_end
        return (start, end) if start < end else None
    floor = max((floor for floor in floors if floor <= start), default=0)
    best = start
    while start > floor and text[start - 1] == text[start + length - 1]:
        start -= 1
        if content in text[start : start + length]:
            best = start
    return best, best + length
