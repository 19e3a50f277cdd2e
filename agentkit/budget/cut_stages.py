"""`CutStage`: the edits of one strategy, with their running savings and the grid positions of a cut."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from agentkit.budget.strategies import CutStrategy
from agentkit.budget.units import EditCount, TokenWeight, UnitNumber, Units
from agentkit.messages.message import Msg

__all__ = ["CutStage", "Remainder"]

Remainder: TypeAlias = tuple[Msg, ...]
"""Messages that remain of a unit after an edit. Empty if the unit is dropped."""


@dataclass(slots=True)
class CutStage:
    """One strategy's part of a cut plan: one edit for each entry of `order`.

    Edit counts within a stage start at 0.

    Attributes:
        strategy: Strategy that makes the edits.
        order: Units that the edits change, in order.
        step: Distance of the cut grid in tokens. 0: a cut may end after any edit.
        units: Units of the conversation.
        saved: Running savings: `saved[n]` is the weight that the first n edits save. None for a run of
            neighboring units that are all dropped: the running weights of the units then give the savings.
        remainders: What remains of the unit after each edit. Empty if all edits drop their unit.

    """

    strategy: CutStrategy
    order: Sequence[UnitNumber]
    step: int
    units: Units
    saved: list[TokenWeight] | None = None
    remainders: list[Remainder] = field(default_factory=list[Remainder])

    def saving(self, count: int) -> TokenWeight:
        """Returns the weight that the first `count` edits save."""
        if self.saved is not None:
            return self.saved[count]
        sums = self.units.sums
        return TokenWeight(sums[self.order[0] + count] - sums[self.order[0]] if count else 0)

    def count_for(self, saving: int) -> EditCount:
        """Returns the fewest edits that save at least `saving` tokens, or all edits if they save less."""
        if self.saved is not None:
            return EditCount(min(bisect_left(self.saved, saving), len(self.order)))
        first, sums = self.order[0], self.units.sums
        last = first + len(self.order)
        return EditCount(min(bisect_left(sums, sums[first] + saving, first, last) - first, len(self.order)))

    def position_from(self, count: int) -> EditCount:
        """Returns the first position of the cut grid at or after `count` edits.

        A cut moves from one multiple of `step`, in tokens from the start of the history, to the next.
        """
        if not self.step or not count:
            return EditCount(count)
        line = -(-self.units.end(self.order[count - 1]) // self.step) * self.step
        return EditCount(bisect_right(self.order, line, count, key=self.units.end))

    def position_before(self, count: int) -> EditCount:
        """Returns the last position of the cut grid before `count` edits. `count` is at least 1."""
        if not self.step:
            return EditCount(count - 1)
        line = (-(-self.units.end(self.order[count - 1]) // self.step) - 1) * self.step
        return EditCount(bisect_right(self.order, line, 0, count - 1, key=self.units.end))
