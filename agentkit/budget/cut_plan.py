"""`CutPlan`: all edits that the strategies of a budget allow in one conversation, in order, with their savings.

Idea
    A cut is one number: how many edits of the plan are made, counted from the start. The plan lists the edits of
    the first strategy, then those of the next one. It knows how many tokens each number of edits saves. So the
    search for a cut is arithmetic on running sums, and no request is built for it. Weights come from a local
    counter and only say where to look. The budget fitter measures the request at the position that it chooses.

    A strategy with a step allows few positions. They lie on a grid, in tokens from the start of the history. While
    the conversation grows, the cut stays at one position of the grid until the limit forces it to the next one.
    The prefix of the prompt, and with it the prompt cache of the provider, stays valid meanwhile.

Invariants
    - More edits never weigh more: each edit saves zero tokens or more.
    - The order of edits depends on the conversation alone. The limit only sets the default step. So with equal
      steps, a larger limit keeps everything that a smaller one keeps.
    - No edit changes the system prompt or a pinned unit. Only `Summarize` may drop its own summaries.
    - No stage drops a unit twice, and no stage edits a unit that an earlier stage dropped.
    - A stage is created when a question reaches it, so the plan never asks an unneeded strategy for edits.

Cost
    One call of `order` for each strategy, O(n) for n units. Afterwards O(log n) for each question about a weight
    or a position. A stage that edits units calls `edit` once for each of its edits.

Example:
    Eight units of ten tokens: a task, which the strategy keeps, six units that may be dropped, and the newest
    unit. The positions lie after the units that end at or before 20, 40 and 60 tokens: 1, 3 and 5 dropped units.
    The end of all edits is the last position.

    >>> from agentkit import Msg, OldestFirstInSteps
    >>> from agentkit.budget.units import Units
    >>> units = Units()
    >>> units.extend([Msg("Bob", str(number), "user") for number in range(8)], lambda msg: 10, frozenset())
    >>> plan = CutPlan([OldestFirstInSteps(step=20)], units, limit=50, weigh=lambda msg: 10)
    >>> [plan.weight(count) for count in range(plan.end + 1)]
    [80, 70, 60, 50, 40, 30, 20]
    >>> sorted({plan.position_from(count) for count in range(plan.end + 1)})
    [0, 1, 3, 5, 6]

    Three edits are the fewest that leave at most 50 tokens. Units 1 to 3 are dropped, unit 4 remains:

    >>> plan.position_from(plan.count_for(50))
    3
    >>> plan.changes(3)
    [UnitChange(first=1, stop=4, remainder=())]

"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from itertools import accumulate
from operator import is_
from typing import NamedTuple, cast

from agentkit.budget.cut_orders import (
    edit_unit,
    get_grid_step,
    get_order,
    get_recent,
    is_dropping,
    refuse_descending,
    split_order,
)
from agentkit.budget.cut_stages import CutStage, Remainder
from agentkit.budget.strategies import CutStrategy
from agentkit.budget.units import EditCount, TokenWeight, UnitNumber, Units
from agentkit.messages.message import Msg

__all__ = ["CutPlan", "NO_EDITS", "UnitChange", "search_cut"]

NO_EDITS = EditCount(0)
"""The cut that leaves a conversation unchanged."""


class UnitChange(NamedTuple):
    """What remains of the units from `first` up to, but not including, `stop`.

    Neighboring units that are dropped are one change with an empty remainder. Any other change is about one unit.
    """

    first: UnitNumber
    stop: UnitNumber
    remainder: Remainder


class CutPlan:
    """All edits that strategies allow in one conversation, and the weight after each number of edits.

    Attributes:
        units: Units of the conversation.
        steps: Distance of the cut grid for each strategy, in tokens. 0: no grid.
        is_exact: True if a cut may end after any edit, because no strategy has a grid.
        order_is_stable: True if the edits of a longer conversation start with those of a shorter one.

    """

    def __init__(
        self,
        strategies: Sequence[CutStrategy],
        units: Units,
        limit: int,
        weigh: Callable[[Msg], int],
        cut_first: frozenset[str] = frozenset(),
    ) -> None:
        self.units = units
        self.steps = [get_grid_step(strategy, units, limit) for strategy in strategies]
        self.is_exact = not any(self.steps)
        self.order_is_stable = len(strategies) == 1 and strategies[0].order_is_stable and not cut_first
        self._strategies = strategies
        self._weigh = weigh
        self._cut_first = cut_first
        self._remainders: dict[UnitNumber, Remainder] = {}  # units after all stages so far
        self._created: list[CutStage] = []
        self._pending = self._create_stages()

    def with_limit(self, limit: int) -> CutPlan:
        """Returns the plan of the same strategies for another limit."""
        return CutPlan(self._strategies, self.units, limit, self._weigh, self._cut_first)

    @property
    def stages(self) -> Iterator[CutStage]:
        """Stages in order, each created at its first use."""
        yield from self._created
        for stage in self._pending:
            self._created.append(stage)
            yield stage

    # -- questions about a number of edits -------------------------------------------------------------------

    @property
    def end(self) -> EditCount:
        """Number of all edits."""
        return EditCount(sum(len(stage.order) for stage in self.stages))

    def weight(self, count: EditCount) -> TokenWeight:
        """Returns the weight of all units after the system prompt, once `count` edits are made."""
        weight = self.units.sums[-1] - self.units.sums[self.units.system]
        remaining = int(count)
        for stage in self.stages if count else ():
            edited = min(remaining, len(stage.order))
            weight -= stage.saving(edited)
            remaining -= edited
            if not remaining:
                break
        return TokenWeight(weight)

    def count_for(self, weight: int) -> EditCount:
        """Returns the fewest edits after which the units weigh at most `weight`, or all edits if none suffice."""
        excess = self.weight(NO_EDITS) - weight
        count = 0
        for stage in self.stages if excess > 0 else ():
            count += stage.count_for(excess)
            excess -= stage.saving(len(stage.order))
            if excess <= 0:
                break
        return EditCount(count)

    def position_from(self, count: EditCount) -> EditCount:
        """Returns the first allowed position of a cut at or after `count` edits."""
        start = 0
        for stage in self.stages if count else ():
            if count <= start + len(stage.order):
                return EditCount(start + stage.position_from(count - start))
            start += len(stage.order)
        return EditCount(start)

    def position_after(self, count: EditCount) -> EditCount:
        """Returns the first allowed position of a cut after `count` edits, or the end of all edits."""
        return self.position_from(EditCount(count + 1))

    def position_before(self, count: EditCount) -> EditCount:
        """Returns the last allowed position of a cut before `count` edits, or -1 if `count` is 0."""
        start = 0
        for stage in self.stages if count else ():
            if start < count <= start + len(stage.order):
                return EditCount(start + stage.position_before(count - start))
            start += len(stage.order)
        return EditCount(-1)

    def changes(self, count: EditCount) -> list[UnitChange]:
        """Returns the changes that the first `count` edits make, in the order of the conversation."""
        first = next(self.stages, None)
        if first and first.saved is None and 0 < count <= len(first.order):
            start = first.order[0]
            return [UnitChange(start, UnitNumber(start + count), ())]
        remainders: dict[UnitNumber, Remainder] = {}
        for stage, edited in self._edited(count):
            if stage.remainders:
                remainders.update(zip(edited, stage.remainders, strict=False))
            else:
                remainders.update(dict.fromkeys(edited, ()))
        changes: list[UnitChange] = []
        for number, remainder in sorted(remainders.items()):
            if remainder and all(map(is_, remainder, self.units.unit(number))):
                continue  # the edit changed nothing
            stop = UnitNumber(number + 1)
            if changes and not remainder and not changes[-1].remainder and changes[-1].stop == number:
                changes[-1] = changes[-1]._replace(stop=stop)
            else:
                changes.append(UnitChange(number, stop, remainder))
        return changes

    def dropped_by(self, count: EditCount, strategy: CutStrategy) -> list[UnitNumber]:
        """Returns the units that one strategy drops within `count` edits, in the order of the conversation."""
        return sorted(
            number for stage, edited in self._edited(count) if stage.strategy is strategy for number in edited
        )

    def _edited(self, count: EditCount) -> Iterator[tuple[CutStage, Sequence[UnitNumber]]]:
        """Yields each stage of the first `count` edits, with the units that it edits."""
        remaining = int(count)
        for stage in self.stages:
            edited = stage.order[:remaining]
            yield stage, edited
            remaining -= len(edited)
            if not remaining:
                return

    # -- stages ----------------------------------------------------------------------------------------------

    def _create_stages(self) -> Iterator[CutStage]:
        last = len(self._strategies) - 1
        for index, (strategy, step) in enumerate(zip(self._strategies, self.steps, strict=True)):
            order = self._without_dropped(get_order(strategy, self.units))
            if step:
                refuse_descending(strategy, order)
            line = self.units.start(get_recent(strategy, self.units)) // step * step if step else 0
            if step and not is_dropping(strategy) and index < last:
                order = [number for number in order if self.units.end(number) <= line]
            for part in split_order(order, self.units, self._cut_first, line if step else None):
                if part:
                    yield self._create_stage(strategy, part, step)

    def _without_dropped(self, order: Sequence[UnitNumber]) -> Sequence[UnitNumber]:
        """Returns an order without the units that the stages so far drop."""
        dropped = {number for stage in self._created if not stage.remainders for number in stage.order}
        return [number for number in order if number not in dropped] if dropped else order

    def _create_stage(self, strategy: CutStrategy, order: Sequence[UnitNumber], step: int) -> CutStage:
        is_dropped = is_dropping(strategy)
        if is_dropped and isinstance(order, range) and not self._remainders:
            return CutStage(strategy, cast("Sequence[UnitNumber]", order), step, self.units)
        savings: list[int] = []
        remainders: list[Remainder] = []
        for number in order:
            earlier = self._remainders.get(number)
            unit = tuple(self.units.unit(number)) if earlier is None else earlier
            remainder = () if is_dropped else edit_unit(strategy, unit, number == len(self.units) - 1)
            savings.append(max(0, self._weight(unit) - self._weight(remainder)))
            self._remainders[number] = remainder
            remainders.append(remainder)
        saved = cast("list[TokenWeight]", [0, *accumulate(savings)])
        return CutStage(strategy, order, step, self.units, saved, [] if is_dropped else remainders)

    def _weight(self, msgs: Remainder) -> int:
        return sum(map(self._weigh, msgs))


async def search_cut(fits: Callable[[EditCount], Awaitable[bool]], low: int, high: int) -> EditCount:
    """Returns the fewest edits in (low, high] that fit, in O(log n) calls.

    The search halves a range that is the same for every limit, so that a larger limit never drops more.

    Args:
        fits: Async predicate that returns True if the request fits after a number of edits.
        low: Number of edits after which the request does not fit.
        high: Number of edits after which the request fits.

    """
    while high - low > 1:
        middle = (low + high) // 2
        if await fits(EditCount(middle)):
            high = middle
        else:
            low = middle
    return EditCount(high)
