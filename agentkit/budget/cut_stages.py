"""`CutStage`: the edits of one strategy, the tokens that they save, and the edits after which a cut may end."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from agentkit.budget.cut_grid import round_up
from agentkit.budget.strategies import CutStrategy
from agentkit.budget.units import EditCount, TokenWeight, UnitNumber, Units, calls_any
from agentkit.messages.message import Msg

__all__ = ["CutStage", "Remainder", "split_order"]

Remainder: TypeAlias = tuple[Msg, ...]
"""Messages of a unit that remain after an edit. Empty if the edit drops the unit.

A unit is one message, or one assistant turn with tool calls and all their results.
"""


@dataclass(slots=True)
class CutStage:
    """Part of a cut plan that contains edits of one strategy. Each entry of `order` is one edit.

    The methods count edits from the start of this part, which is called a stage.

    Attributes:
        order: Indexes of the units that the edits change, in the order of the edits.
        step: Distance in tokens between the points of the history at which a cut may end. 0 allows a cut to end
            after any edit.
        saved: `saved[n]` is the number of tokens that the first n edits save. None if the edits drop consecutive
            units, because the savings can then be computed from `units.sums`.
        remainders: Messages that remain after each edit. The list is empty if every edit drops its unit.
    """

    strategy: CutStrategy
    order: Sequence[UnitNumber]
    step: int
    units: Units
    saved: list[TokenWeight] | None = None
    remainders: list[Remainder] = field(default_factory=list[Remainder])

    def saving(self, count: int) -> TokenWeight:
        """Returns the estimated number of tokens that the first `count` edits save."""
        if self.saved is not None:
            return self.saved[count]
        sums = self.units.sums
        return TokenWeight(sums[self.order[0] + count] - sums[self.order[0]])

    def count_for(self, saving: int) -> EditCount:
        """Returns the smallest number of edits that save at least `saving` tokens.

        Returns the number of all edits if all edits together save less.
        """
        if self.saved is not None:
            return EditCount(bisect_left(self.saved, saving, hi=len(self.order)))
        first, sums = self.order[0], self.units.sums
        last = first + len(self.order)
        return EditCount(bisect_left(sums, sums[first] + saving, first, last) - first)

    def position_from(self, count: int) -> EditCount:
        """Returns the smallest number of edits that is at least `count` and after which a cut may end.

        Edits are counted from the start of this stage, which is a part of the cut plan. `count` must be at least
        1. If `step` is not 0, a cut may end only at a multiple of `step` tokens, counted from the start of the
        history. Such a cut includes each edit of the stage whose unit ends at or before the multiple.
        """
        if not self.step:
            return EditCount(count)
        line = round_up(self.units.end(self.order[count - 1]), self.step)
        return EditCount(bisect_right(self.order, line, count, key=self.units.end))

    def position_before(self, count: int) -> EditCount:
        """Returns the largest number of edits that is less than `count` and after which a cut may end.

        Edits are counted from the start of this stage, which is a part of the cut plan. `count` must be at least
        1.
        """
        if not self.step:
            return EditCount(count - 1)
        line = round_up(self.units.end(self.order[count - 1]), self.step) - self.step
        return EditCount(bisect_right(self.order, line, hi=count, key=self.units.end))


def split_order(
    order: Sequence[UnitNumber], units: Units, cut_first: frozenset[str], line: int | None
) -> tuple[Sequence[UnitNumber], ...]:
    """Splits the list of units that a strategy edits into two lists, the first of which is edited first.

    The first list contains the units that call a tool in `cut_first`. If `line` is not None, these units must also
    end at most `line` tokens after the start of the history. The second list contains all other units. If
    `cut_first` is empty, the result is one list of all units.
    """
    if not cut_first:
        return (order,)
    early = [number for number in order if calls_any(units.msgs[units.starts[number]], cut_first)]
    if line is not None:
        early = [number for number in early if units.end(number) <= line]
    early_numbers = {*early}
    return (early, [number for number in order if number not in early_numbers])
