"""`find_difference`: finds the part of a text that another text does not contain."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

from agentkit.training.text_spans import Span

__all__ = ["count_common_end", "count_common_start", "find_difference"]


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

    If the characters at the ends of the part repeat, several spans are possible. The function returns the first
    span that contains `content`, or the last span if no span contains `content`.

    Args:
        text: Text with the part.
        other: Text without the part.
        content: Text that the part should contain, such as the text of a block.
        start_limits: Positions in `text`, such as the starts of replies. The part does not begin before the last
            of these positions that is at or before the first difference between the texts.
        previous_span: Span of the previous block. The returned span begins at or after the end of this span. If
            `other` also lacks the previous block, the missing part contains both blocks. The returned span then
            contains only the text after `previous_span`.

    Example:
        >>> text, other = "<p>1</p><p>2</p>", "<p>1</p>"
        >>> start, end = find_difference(text, other, "2", ())
        >>> text[start:end]
        '</p><p>2'
        >>> start, end = find_difference(text, other, "2", (), previous_span=(0, 8))
        >>> text[start:end]
        '<p>2</p>'
    """
    start = count_common_start(text, other)
    removed_length = len(text) - len(other)
    common_end = min(count_common_end(text, other), len(other) - start)
    if removed_length <= 0 or common_end < len(other) - start:
        end = len(text) - common_end
        if previous_span[0] <= start < previous_span[1]:
            start = previous_span[1]
        return (start, end) if start < end else None
    limit = max((limit for limit in start_limits if limit <= start), default=0)
    if previous_span[0] < start:
        other_start = previous_span[0] + removed_length
        is_removed = previous_span[1] < other_start and (
            text[previous_span[0] : start] == text[other_start : start + removed_length]
        )
        limit = max(limit, previous_span[0] if is_removed else min(previous_span[1], start))
    best = _cut_previous((start, start + removed_length), previous_span)
    while start > limit and text[start - 1] == text[start + removed_length - 1]:
        start -= 1
        span = _cut_previous((start, start + removed_length), previous_span)
        if content in text[slice(*span)]:
            best = span
    return best if best[0] < best[1] else None


def _cut_previous(span: Span, previous_span: Span) -> Span:
    """Returns the part after `previous_span` of a span that contains it. Returns any other span unchanged."""
    return (previous_span[1], span[1]) if span[0] <= previous_span[0] and previous_span[1] <= span[1] else span
