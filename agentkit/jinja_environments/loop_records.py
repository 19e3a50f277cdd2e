"""`LoopRecord`: iterations of a loop over messages, with the values that they read and the text that they print.

A step is an iteration of a loop, or the part of a template between two loops. A step depends on the messages, the
number of messages, and the attributes of namespaces that the step reads. If another rendering has the same values,
the step would do the same again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import accumulate, pairwise
from math import inf
from typing import Any, Final, NamedTuple, TypeAlias

__all__ = ["Attribute", "LENGTH", "LoopRecord", "LoopText", "Step", "ValueRange", "find_range"]

Attribute: TypeAlias = tuple[int, str]
"""Number of a namespace, and the name of one of its attributes."""

LENGTH: Final[Attribute] = (-1, "number of messages")
"""Stands for the number of messages in the conditions of a step."""


class ValueRange(NamedTuple):
    """Range of integers, which includes both limits."""

    low: float
    high: float


class Step:
    """Iteration of a loop, or the part of a template between two loops.

    Attributes:
        known: Attributes that earlier iterations of the loop set.
        conditions: For each attribute that the step read, the value that the attribute must have before the step
            (before the loop for an iteration), or a range of such values. Also the range of the number of
            messages.
        writes: Attributes that the step set, and their values.
        text: Text that the step printed. Empty for an iteration.
    """

    __slots__ = ("conditions", "known", "text", "writes")

    def __init__(self, known: Mapping[Attribute, Any]) -> None:
        self.known = known
        self.conditions: dict[Attribute, Any] = {}
        self.writes: dict[Attribute, Any] = {}
        self.text = ""

    def add_condition(self, key: Attribute, condition: Any) -> None:
        """Adds a condition, unless the step or an earlier iteration of the loop set the attribute."""
        if key not in self.writes and key not in self.known:
            self.conditions[key] = _merge(self.conditions.get(key), condition)


@dataclass(slots=True)
class LoopRecord:
    """Iterations of a loop. The item with index `n` of each list describes the first `n` iterations together.

    Attributes:
        values: Values that the loop can read, as `LoopRecorder` describes them.
        text: Text of all iterations.
        ends: Length of the text that these iterations print.
        conditions: Conditions of these iterations, as in `Step`.
        writes: Attributes that these iterations set, and their values.
    """

    values: tuple[Any, ...]
    text: str = ""
    ends: list[int] = field(default_factory=lambda: [0])
    conditions: list[dict[Attribute, Any]] = field(default_factory=lambda: [{}])
    writes: list[dict[Attribute, Any]] = field(default_factory=lambda: [{}])
    _result: tuple[str | None, int, bool] = (None, 0, False)

    def copy_start(self, count: int) -> LoopRecord:
        """Returns a record of the first `count` iterations."""
        lists = self.ends[: count + 1], self.conditions[: count + 1], self.writes[: count + 1]
        return LoopRecord(self.values, self.text[: self.ends[count]], *lists)

    def add(self, step: Step, size: int) -> None:
        """Adds the next iteration, which printed `size` characters, but not its text."""
        conditions, writes = self.conditions[-1], self.writes[-1]
        for key, condition in step.conditions.items():
            merged = _merge(conditions.get(key), condition)
            if merged != conditions.get(key):
                conditions = {**conditions, key: merged}
        self.ends.append(self.ends[-1] + size)
        self.conditions.append(conditions)
        self.writes.append({**writes, **step.writes} if step.writes else writes)

    def is_in(self, text: str, position: int) -> bool:
        """Returns True if `text` has the text of all iterations at `position`. Stores the last result."""
        if self._result[0] is not text or self._result[1] != position:
            self._result = text, position, text.startswith(self.text, position)
        return self._result[2]


def _merge(condition: Any, other: Any) -> Any:
    """Returns a condition that is true if both conditions are true. If `condition` is None, returns `other`."""
    if isinstance(condition, ValueRange) and isinstance(other, ValueRange):
        return ValueRange(max(condition.low, other.low), min(condition.high, other.high))
    return other if condition is None or isinstance(condition, ValueRange) else condition


def find_range(value: int, other: int) -> ValueRange:
    """Returns the range of all integers on the same side of `other` as `value`.

    If `value` equals `other`, the range contains only `other`.
    """
    if value == other:
        return ValueRange(other, other)
    return ValueRange(other + 1, inf) if value > other else ValueRange(-inf, other - 1)


class LoopText(NamedTuple):
    """Text of a loop. For the first iterations, only the record stores the characters.

    Attributes:
        record: The record.
        first: Index of the first message of the loop.
        length: Number of iterations of the record.
        others: Texts of the other iterations.
    """

    record: LoopRecord
    first: int
    length: int
    others: tuple[str, ...] = ()

    @property
    def size(self) -> int:
        """Number of characters."""
        return self.record.ends[self.length] + sum(map(len, self.others))

    def __str__(self) -> str:
        return "".join((self.record.text[: self.record.ends[self.length]], *self.others))

    def is_in(self, text: str, position: int) -> bool:
        """Returns True if `text` has this text at `position`."""
        if not self.record.is_in(text, position):
            return text.startswith(str(self), position)
        return not self.others or text.startswith("".join(self.others), position + self.record.ends[self.length])

    def list_spans(self, position: int) -> dict[int, tuple[int, int]]:
        """Returns the start and end of the text of each message, by the index of the message.

        Args:
            position: Index at which the text of the loop starts.
        """
        sizes = map(len, self.others)
        ends = [*self.record.ends[: self.length], *accumulate(sizes, initial=self.record.ends[self.length])]
        return dict(enumerate(pairwise(position + end for end in ends), self.first))
