"""`LoopRecord`: iterations of a loop over messages, with the values that they read and the text that they print.

An iteration depends on the messages, the variables and the attributes of namespaces that it reads. If another
rendering has the same values, the iteration would do the same again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from math import inf
from typing import Any, NamedTuple, TypeAlias

__all__ = ["Attribute", "Iteration", "LoopRecord", "LoopText", "ReadAttribute", "ValueRange", "find_range"]

Attribute: TypeAlias = tuple[int, str]
"""Number of a namespace, and the name of one of its attributes."""


class ValueRange(NamedTuple):
    """Range of integers, which includes both limits."""

    low: float
    high: float


@dataclass(slots=True)
class Iteration:
    """Iteration of a loop in the current rendering.

    Attributes:
        known: Attributes that earlier iterations of the loop set.
        last_read: Index of the last message that was read. Infinity after a read of the end of the list.
        conditions: For each attribute that was read, the value that the attribute must have at the start of the
            loop, or a range of such values.
        writes: Attributes that were set, and their values.
        is_repeatable: False if the iteration set an attribute to a value that only this rendering can use.
    """

    known: Mapping[Attribute, Any]
    last_read: float = -1
    conditions: dict[Attribute, Any] = field(default_factory=dict[Attribute, Any])
    writes: dict[Attribute, Any] = field(default_factory=dict[Attribute, Any])
    is_repeatable: bool = True

    def add_condition(self, key: Attribute, condition: Any) -> None:
        """Adds a condition on an attribute."""
        self.conditions[key] = _merge(self.conditions.get(key), condition)


@dataclass(slots=True)
class LoopRecord:
    """Iterations of a loop. The item with index `n` of each list describes the first `n` iterations together.

    Attributes:
        values: Index of the first message of the loop, and the values of the variables that the loop can read, as
            `LoopRecorder._describe` returns them.
        length: Number of messages of the rendering.
        text: Text of all iterations.
        ends: Length of the text that these iterations print.
        last_reads: Index of the last message that was read, as in `Iteration`.
        conditions: Conditions on the attributes at the start of the loop.
        writes: Attributes that were set, and their values.
    """

    values: tuple[Any, ...]
    length: int
    text: str
    ends: list[int]
    last_reads: list[float]
    conditions: list[dict[Attribute, Any]]
    writes: list[dict[Attribute, Any]]

    def copy_start(self, count: int, length: int) -> LoopRecord:
        """Returns a record of the first `count` iterations, for a rendering of `length` messages."""
        end = count + 1
        lists = self.ends[:end], self.last_reads[:end], self.conditions[:end], self.writes[:end]
        return LoopRecord(self.values, length, self.text[: self.ends[count]], *lists)

    def add(self, iteration: Iteration, size: int) -> None:
        """Adds the next iteration, which printed `size` characters."""
        conditions, writes = self.conditions[-1], self.writes[-1]
        for key, condition in iteration.conditions.items():
            merged = _merge(conditions.get(key), condition)
            if merged != conditions.get(key):
                conditions = {**conditions, key: merged}
        self.ends.append(self.ends[-1] + size)
        self.last_reads.append(max(self.last_reads[-1], iteration.last_read))
        self.conditions.append(conditions)
        self.writes.append({**writes, **iteration.writes} if iteration.writes else writes)


def _merge(condition: Any, other: Any) -> Any:
    """Returns a condition that is true if both conditions are true. If `condition` is None, returns `other`."""
    if isinstance(condition, ValueRange) and isinstance(other, ValueRange):
        return ValueRange(max(condition.low, other.low), min(condition.high, other.high))
    return other if condition is None or isinstance(condition, ValueRange) else condition


class LoopText:
    """Text of the first iterations of a record. Only the record stores the characters.

    Attributes:
        record: The record.
        first: Index of the first message of the loop.
        count: Number of iterations.
        conditions: Conditions of these iterations.
        writes: Attributes that these iterations set, and their values.
    """

    __slots__ = ("conditions", "count", "first", "record", "writes")

    def __init__(self, record: LoopRecord, first: int, count: int) -> None:
        self.record = record
        self.first = first
        self.count = count
        self.conditions = record.conditions[count]
        self.writes = record.writes[count]

    def __len__(self) -> int:
        return self.record.ends[self.count]

    def __str__(self) -> str:
        return self.record.text[: self.record.ends[self.count]]

    def list_spans(self, position: int) -> dict[int, tuple[int, int]]:
        """Returns the start and end of the text of each message, by the index of the message.

        Args:
            position: Index at which the text of the loop starts.
        """
        ends = [position + end for end in self.record.ends[: self.count + 1]]
        return dict(enumerate(pairwise(ends), self.first))

    def change_length(self, length: int) -> LoopText | None:
        """Returns the text for `length` messages.

        Returns None if the record does not have the iterations. Also returns None if the iterations read a message
        after the first `length` messages, or the end of the list.
        """
        record, count = self.record, length - self.first
        if not 0 <= count < len(record.ends) or record.last_reads[count] >= length:
            return None
        return LoopText(record, self.first, count)


class ReadAttribute:
    """Empty piece of a text, at which the template read an attribute of a namespace outside of loops.

    Attributes:
        conditions: The attribute, and the value that the attribute must have.
    """

    __slots__ = ("conditions",)

    def __init__(self, key: Attribute, condition: Any) -> None:
        self.conditions = {key: condition}

    def __len__(self) -> int:
        return 0

    def __str__(self) -> str:
        return ""


def find_range(value: int, other: int) -> ValueRange:
    """Returns the range of all integers on the same side of `other` as `value`.

    If `value` equals `other`, the range contains only `other`.
    """
    if value == other:
        return ValueRange(other, other)
    return ValueRange(other + 1, inf) if value > other else ValueRange(-inf, other - 1)
