"""`LoopRecord`: iterations of a loop over messages, with the values that they read and the text that they print.

An iteration depends on the messages, the number of messages, and the attributes of namespaces that it reads. If
another rendering has the same values, the iteration would do the same again. `loop_recorder` has an example.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from math import inf
from typing import Any, Final, NamedTuple, TypeAlias

__all__ = ["Attribute", "LoopRecord", "LoopText", "Piece", "Trace", "ValueRange", "find_range"]

Attribute: TypeAlias = tuple[int, str]
"""Index of a namespace, and the name of one of its attributes."""


class ValueRange(NamedTuple):
    """Range of integers, which includes both limits."""

    low: float
    high: float

    def intersect(self, other: ValueRange) -> ValueRange:
        """Returns the range of the integers that both ranges contain."""
        return ValueRange(max(self.low, other.low), min(self.high, other.high))


_ALL: Final = ValueRange(-inf, inf)


class Trace:
    """Values that a part of a template, or an iteration of a loop, read and set.

    Attributes:
        earlier_writes: Attributes that earlier iterations of the loop set. The trace has no conditions for them.
        message_counts: Numbers of messages for which the part or iteration would do the same.
        conditions: Maps each attribute that was read to the required value, or to a range of integers. A
            condition of a part applies to the value before the part. A condition of an iteration applies to the
            value before the loop.
        writes: Attributes that were set, and their values.
        text: Text that the part printed. Empty for an iteration, whose text is in the `LoopRecord`.
    """

    __slots__ = ("conditions", "earlier_writes", "message_counts", "text", "writes")

    def __init__(self, earlier_writes: Mapping[Attribute, Any]) -> None:
        self.earlier_writes = earlier_writes
        self.message_counts = _ALL
        self.conditions: dict[Attribute, Any] = {}
        self.writes: dict[Attribute, Any] = {}
        self.text = ""

    def limit_message_counts(self, message_counts: ValueRange) -> None:
        """Adds a condition for the number of messages."""
        self.message_counts = self.message_counts.intersect(message_counts)

    def add_condition(self, key: Attribute, condition: Any) -> None:
        """Adds a condition for an attribute, unless this trace or an earlier iteration set the attribute."""
        if key not in self.writes and key not in self.earlier_writes:
            self.conditions[key] = _merge(self.conditions.get(key), condition)


@dataclass(slots=True)
class LoopRecord:
    """Iterations of a loop. The item with index `n` of each list describes the first `n` iterations together.

    Attributes:
        reuse_key: Values that the loop can read. See `_Loop` in `loop_recorder`.
        text: Text of all iterations.
        ends: Length of the text that these iterations print.
        message_counts: Numbers of messages for which these iterations would do the same.
        conditions: Conditions of these iterations, as in `Trace`.
        writes: Attributes that these iterations set, and their values.
    """

    reuse_key: tuple[Any, ...]
    text: str = ""
    ends: list[int] = field(default_factory=lambda: [0])
    message_counts: list[ValueRange] = field(default_factory=lambda: [_ALL])
    conditions: list[dict[Attribute, Any]] = field(default_factory=lambda: [{}])
    writes: list[dict[Attribute, Any]] = field(default_factory=lambda: [{}])
    _last_match: tuple[str | None, int, bool] = (None, 0, False)

    def copy_start(self, count: int) -> LoopRecord:
        """Returns a record of the first `count` iterations."""
        lists: list[Any] = [self.ends, self.message_counts, self.conditions, self.writes]
        starts = [items[: count + 1] for items in lists]
        return LoopRecord(self.reuse_key, self.text[: self.ends[count]], *starts)

    def add(self, trace: Trace, size: int) -> None:
        """Adds the next iteration, which printed `size` characters. The caller adds the characters to `text`."""
        conditions, writes = self.conditions[-1], self.writes[-1]
        for key, condition in trace.conditions.items():
            merged = _merge(conditions.get(key), condition)
            if merged != conditions.get(key):
                conditions = {**conditions, key: merged}
        self.ends.append(self.ends[-1] + size)
        counts = self.message_counts[-1]
        self.message_counts.append(
            counts if trace.message_counts is _ALL else counts.intersect(trace.message_counts)
        )
        self.conditions.append(conditions)
        self.writes.append({**writes, **trace.writes} if trace.writes else writes)

    def is_in(self, text: str, position: int) -> bool:
        """Returns True if `text` contains the text of all iterations at `position`. Stores the last result."""
        if self._last_match[0] is not text or self._last_match[1] != position:
            self._last_match = text, position, text.startswith(self.text, position)
        return self._last_match[2]


def _merge(condition: Any, other: Any) -> Any:
    """Returns a condition that is true if both conditions are true. If `condition` is None, returns `other`."""
    if isinstance(condition, ValueRange) and isinstance(other, ValueRange):
        return condition.intersect(other)
    return other if condition is None or isinstance(condition, ValueRange) else condition


def find_range(value: int, other: int) -> ValueRange:
    """Returns the range of all integers on the same side of `other` as `value`.

    If `value` equals `other`, the range contains only `other`.
    """
    if value == other:
        return ValueRange(other, other)
    return ValueRange(other + 1, inf) if value > other else ValueRange(-inf, other - 1)


@dataclass(slots=True)
class LoopText:
    """Text that a loop printed. The text is the start of the text in a record.

    Attributes:
        record: Record that stores the text.
        start: Index of the first message of the loop.
        count: Number of iterations. The record can have more iterations.
    """

    record: LoopRecord
    start: int
    count: int

    def __len__(self) -> int:
        return self.record.ends[self.count]

    def __str__(self) -> str:
        return self.record.text[: len(self)]

    def is_in(self, text: str, position: int) -> bool:
        """Returns True if `text` contains the text of the loop at `position`."""
        return self.record.is_in(text, position) or text.startswith(str(self), position)

    def list_spans(self, position: int) -> dict[int, tuple[int, int]]:
        """Returns a dict that maps the index of each message to the start and end of its text.

        Args:
            position: Index at which the text of the loop starts.
        """
        ends = self.record.ends[: self.count + 1]
        return dict(enumerate(pairwise(position + end for end in ends), self.start))


Piece: TypeAlias = str | LoopText
"""Piece of a rendered text: a string, or the text of a loop."""
