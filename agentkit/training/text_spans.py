"""Functions for spans of a text (start and end), and for the difference between two texts."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from typing import Final, TypeAlias, cast

__all__ = [
    "Span",
    "count_common_end",
    "count_common_start",
    "find_difference",
    "merge_spans",
    "skip_space",
    "subtract_spans",
]

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


def skip_space(text: str, position: int) -> int:
    """Returns the position after any white space at `position`. This can be the end of the text."""
    return cast("re.Match[str]", _SPACE.match(text, position)).end()


def count_common_start(text: str, other: str) -> int:
    """Returns the length of the longest common prefix of two texts."""
    if other.startswith(text):
        return len(text)
    # A binary search compares slices, which is much faster than a loop over characters.
    lengths = range(1, min(len(text), len(other)) + 1)
    return bisect_left(lengths, True, key=lambda length: text[:length] != other[:length])


def count_common_end(text: str, other: str) -> int:
    """Returns the length of the longest common suffix of two texts."""
    lengths = range(1, min(len(text), len(other)) + 1)
    return bisect_left(lengths, True, key=lambda length: text[-length:] != other[-length:])


def find_difference(
    text: str, other: str, content: str, start_limits: Sequence[int], previous_span: Span = (0, 0)
) -> Span | None:
    """Returns the span of the part of `text` that is missing or different in `other`.

    Returns None if there is no such part.

    The comparison of the texts can allow several spans. For `<p>1</p><p>2</p>` and `<p>1</p>`, for example, the
    part is `<p>2</p>` or `</p><p>2`. The function returns the first span that contains `content`, or the last span
    if no span contains `content`.

    Args:
        text: Text with the part.
        other: Text without the part.
        content: Text that the part should contain, such as the text of a block.
        start_limits: Positions in `text`, such as the starts of replies. The part does not begin before the last
            of these positions that is at or before the first difference between the texts.
        previous_span: Span of the previous block. The part does not begin before the end of this span, unless
            the template also omits the previous block in `other`. The span is then not included in the result.
    """
    start = count_common_start(text, other)
    length = len(text) - len(other)
    common_end = min(count_common_end(text, other), len(other) - start)
    if length <= 0 or common_end < len(other) - start:
        end = len(text) - common_end
        if previous_span[0] <= start < previous_span[1]:
            start = previous_span[1]
        return (start, end) if start < end else None
    limit = max((limit for limit in start_limits if limit <= start), default=0)
    if previous_span[0] < start:
        limit = max(limit, previous_span[1] if previous_span[1] <= start else previous_span[0])
    best = _cut_previous((start, start + length), previous_span)
    while start > limit and text[start - 1] == text[start + length - 1]:
        start -= 1
        span = _cut_previous((start, start + length), previous_span)
        if content in text[slice(*span)]:
            best = span
    return best if best[0] < best[1] else None


def _cut_previous(span: Span, previous_span: Span) -> Span:
    """Returns the part after `previous_span` of a span that contains it. Returns any other span unchanged."""
    return (previous_span[1], span[1]) if span[0] <= previous_span[0] and previous_span[1] <= span[1] else span
