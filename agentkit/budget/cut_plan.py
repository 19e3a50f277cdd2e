"""`CutPlan`: the edits that a budget's strategies allow in one conversation, and the tokens that the edits save.

Idea
    A unit is one message, or one assistant turn with tool calls and all their results. An edit drops or shortens
    one unit. A cut applies the first n edits of the plan, so that n alone identifies the cut. The plan lists the
    edits of the first strategy, followed by the edits of the next strategies.

    A local counter estimates the tokens that the first n edits save. The budget fitter uses the estimates to find
    the smallest sufficient n. The fitter therefore builds and measures only a few requests.

    If the `step` of a strategy is not 0, a cut may end only at multiples of `step`, or after the last edit. These
    multiples are counted in tokens from the start of the history. While the conversation grows, the cut ends at
    the same point until the request exceeds the limit. Until then, the prefix of the prompt is unchanged, and the
    provider's prompt cache remains valid.

Invariants
    - More edits never increase the estimated number of tokens (weight), because the estimated saving of each edit
      is at least 0.
    - The order of edits depends on the strategies and the conversation. The limit only sets the default step. With
      equal steps, a larger limit therefore keeps everything that a smaller limit keeps.
    - No edit changes the system prompt or a pinned unit, with one exception: summaries are pinned but may be
      dropped.
    - Examples of the task (`EXAMPLE_MARK`) are dropped after all other edits.
    - No unit is dropped twice, and no strategy edits a unit that an earlier strategy dropped.
    - The plan calls `order` of a strategy only if the edits of the earlier strategies are not enough.

Cost
    The plan calls `order` at most once for each strategy. This call takes O(n) time for n units. Each later search
    for a number of edits takes O(log n) time. For a strategy that shortens units, the plan also calls `edit` once
    for each edit.

Example:
    The conversation has eight units of ten tokens each. The strategy keeps the first unit, which is the task, and
    the newest unit, and may drop the six other units. With a step of 20 tokens, a cut may drop 1, 3 or 5 units.
    The last dropped unit then ends at 20, 40 or 60 tokens. A cut may also drop all six units.

    >>> from agentkit import Msg, OldestFirstInSteps
    >>> from agentkit.budget.units import Units
    >>> units = Units()
    >>> units.extend([Msg("Bob", str(number), "user") for number in range(8)], lambda msg: 10, frozenset())
    >>> plan = CutPlan([OldestFirstInSteps(step=20)], units, limit=50, weigh=lambda msg: 10)
    >>> [plan.weight(count) for count in range(plan.end + 1)]
    [80, 70, 60, 50, 40, 30, 20]
    >>> sorted({plan.position_from(count) for count in range(plan.end + 1)})
    [0, 1, 3, 5, 6]

    Three edits are necessary so that at most 50 tokens remain. These edits drop units 1 to 3:

    >>> plan.position_from(plan.count_for(50))
    3
    >>> plan.changes(3)
    [UnitChange(first=1, stop=4, remainder=())]

"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate
from operator import is_
from typing import NamedTuple, cast

from agentkit.budget.cut_grid import get_grid_step, round_down
from agentkit.budget.cut_stages import CutStage, Remainder, split_order
from agentkit.budget.strategies import CutStrategy, DropExamples
from agentkit.budget.strategy_checks import edit_unit, get_order, get_recent, is_dropping, refuse_descending
from agentkit.budget.units import EditCount, TokenWeight, UnitNumber, Units
from agentkit.messages.message import Msg

__all__ = ["CutPlan", "NO_EDITS", "UnitChange"]

NO_EDITS = EditCount(0)
"""Number of edits of a cut that changes nothing."""


class UnitChange(NamedTuple):
    """Change that a cut makes to the units from `first` up to, but not including, `stop`.

    A unit is one message, or one assistant turn with tool calls and all their results.

    `remainder` contains the messages of the units that remain after the change. If `remainder` is empty, the
    change drops all these units. Otherwise, the change affects only the unit `first`.
    """

    first: UnitNumber
    stop: UnitNumber
    remainder: Remainder


class CutPlan:
    """List of all edits that the strategies allow in one conversation, with the tokens that the edits save.

    An edit drops or shortens one unit of the conversation. A cut applies the first n edits of the list.

    Attributes:
        steps: For each strategy, the distance in tokens between the points of the history at which a cut may end.
            0 allows a cut to end after any edit.
        is_exact: True if all steps are 0, so that a cut may end after any edit.
        order_is_stable: True if new messages only add edits at the end of the list.
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
        if units.examples and not isinstance(strategies[-1], DropExamples):
            strategies = (*strategies, DropExamples())
        self.steps = [get_grid_step(strategy, units, limit) for strategy in strategies]
        self.is_exact = not any(self.steps)
        self.order_is_stable = len(strategies) == 1 and strategies[0].order_is_stable and not cut_first
        self._strategies = strategies
        self._weigh = weigh
        self._cut_first = cut_first
        # Maps the index of each edited unit to the messages that remain of the unit after the planned edits.
        self._remainders: dict[UnitNumber, Remainder] = {}
        self._created: list[CutStage] = []
        self._pending = self._create_stages()

    def with_limit(self, limit: int) -> CutPlan:
        """Returns a new plan for another token limit, with the same strategies and units."""
        return CutPlan(self._strategies, self.units, limit, self._weigh, self._cut_first)

    @property
    def stages(self) -> Iterator[CutStage]:
        """Parts of the plan in order, each with edits of one strategy. A part is created on first access."""
        yield from self._created
        for stage in self._pending:
            self._created.append(stage)
            yield stage

    # -- numbers of edits, and what they save or change ------------------------------------------------------

    @property
    def end(self) -> EditCount:
        """Number of edits in the whole plan."""
        return EditCount(sum(len(stage.order) for stage in self.stages))

    def weight(self, count: EditCount) -> TokenWeight:
        """Returns the estimated number of tokens after `count` edits, without the tokens of the system prompt."""
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
        """Returns the smallest number of edits after which the history has at most `weight` tokens.

        Returns the number of all edits if all edits together do not save enough tokens.
        """
        excess = self.weight(NO_EDITS) - weight
        count = 0
        for stage in self.stages if excess > 0 else ():
            count += stage.count_for(excess)
            excess -= stage.saving(len(stage.order))
            if excess <= 0:
                break
        return EditCount(count)

    def position_from(self, count: EditCount) -> EditCount:
        """Returns the smallest number of edits that is at least `count` and after which a cut may end.

        Returns the number of all edits if there is no such number.
        """
        start = 0
        for stage in self.stages if count else ():
            if count <= start + len(stage.order):
                return EditCount(start + stage.position_from(count - start))
            start += len(stage.order)
        return EditCount(start)

    def position_after(self, count: EditCount) -> EditCount:
        """Returns the smallest number of edits that is greater than `count` and after which a cut may end.

        Returns the number of all edits if there is no such number.
        """
        return self.position_from(EditCount(count + 1))

    def position_before(self, count: EditCount) -> EditCount:
        """Returns the largest number of edits that is less than `count` and after which a cut may end.

        Returns -1 if `count` is 0. `count` must be at most the number of all edits.
        """
        start = 0
        for stage in self.stages if count else ():
            if start < count <= start + len(stage.order):
                return EditCount(start + stage.position_before(count - start))
            start += len(stage.order)
        return EditCount(-1)

    def changes(self, count: EditCount) -> list[UnitChange]:
        """Returns how the first `count` edits change the units, in the order of the conversation.

        Units that the edits leave unchanged are omitted.
        """
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
                continue  # the edits left all messages of the unit unchanged
            stop = UnitNumber(number + 1)
            if changes and not remainder and not changes[-1].remainder and changes[-1].stop == number:
                changes[-1] = changes[-1]._replace(stop=stop)
            else:
                changes.append(UnitChange(number, stop, remainder))
        return changes

    def dropped_by(self, count: EditCount, strategy: CutStrategy) -> list[UnitNumber]:
        """Returns the ascending indexes of the units that `strategy` drops with the first `count` edits."""
        return sorted(
            number for stage, edited in self._edited(count) if stage.strategy is strategy for number in edited
        )

    def _edited(self, count: EditCount) -> Iterator[tuple[CutStage, Sequence[UnitNumber]]]:
        """Yields each stage that contains some of the first `count` edits, with the units that these edits change.

        A stage is a part of the plan with edits of one strategy. A unit is identified by its index.
        """
        remaining = int(count)
        for stage in self.stages:
            edited = stage.order[:remaining]
            yield stage, edited
            remaining -= len(edited)
            if not remaining:
                return

    # -- creation of stages, the parts of the plan -----------------------------------------------------------

    def _create_stages(self) -> Iterator[CutStage]:
        last = len(self._strategies) - 1
        for index, strategy in enumerate(self._strategies if len(self.units) else ()):
            order, step, line = self._without_dropped(get_order(strategy, self.units)), self.steps[index], None
            if step:
                refuse_descending(strategy, order)
                line = round_down(self.units.start(get_recent(strategy, self.units)), step)
                if not is_dropping(strategy) and index < last:
                    order = [number for number in order if self.units.end(number) <= line]
            for part in split_order(order, self.units, self._cut_first, line):
                if part:
                    yield self._create_stage(strategy, part, step)

    def _without_dropped(self, order: Sequence[UnitNumber]) -> Sequence[UnitNumber]:
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
