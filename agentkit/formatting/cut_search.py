"""`CutSearch`: finds the smallest number of edits after which the request fits the budget."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

from agentkit.budget.cut_plan import CutPlan, search_cut
from agentkit.budget.units import EditCount
from agentkit.formatting.lowering import Lowered

__all__ = ["CutSearch"]


@dataclass(slots=True)
class CutSearch:
    """Search for the first position of a cut plan at which the request fits.

    A position is a number of edits at which a cut may end. The search starts at a guess and moves away from the
    guess in growing steps. If the guess is right, the search measures the guess and the position before it. At
    worst, it measures O(log n) positions.

    Attributes:
        limit: Maximum number of tokens of a request after a cut.
        fits: Async predicate that returns True if the request fits after a number of edits.
        sizes: The requests that `fits` measured and their numbers of tokens, by the number of edits.
    """

    plan: CutPlan
    limit: int
    fits: Callable[[EditCount], Awaitable[bool]]
    sizes: Mapping[EditCount, tuple[Lowered, int]]

    async def find_first(self, guess: EditCount, too_large: EditCount) -> EditCount:
        """Returns the first position that fits. Returns the end of the plan if no position fits.

        The request does not fit at `too_large`, which is -1 if no such position is known.
        """
        too_large, fitting = await self._search_up(guess, too_large)
        if too_large == fitting:
            return fitting
        too_large, fitting = await self._search_down(fitting, too_large)
        positions = [too_large, *self._list_positions(too_large, fitting)]

        async def fits_at(index: int) -> bool:
            return await self.fits(positions[index])

        return positions[await search_cut(fits_at, 0, len(positions) - 1)]

    async def _search_up(self, count: EditCount, too_large: EditCount) -> tuple[EditCount, EditCount]:
        """Returns the last measured position that is too large, and a later position that fits.

        Returns the end of the plan twice if no position fits.
        """
        steps = 1
        while not await self.fits(count):
            too_large = count
            if count >= self.plan.end:
                return count, count
            count = max(self.move_on(count, steps), self._estimate(count))
            steps *= 4
        return too_large, count

    async def _search_down(self, fitting: EditCount, too_large: EditCount) -> tuple[EditCount, EditCount]:
        """Returns a position that does not fit, and a later one that fits, at or before `fitting`."""
        steps = 1
        while self.plan.position_before(fitting) > too_large:
            earlier = min(self._estimate(fitting), self._move_back(fitting, steps))
            count = max(earlier, self.move_on(too_large))
            if count >= fitting:
                break
            if not await self.fits(count):
                return count, fitting
            fitting, steps = count, steps * 4
        return too_large, fitting

    def _estimate(self, count: EditCount) -> EditCount:
        """Returns the position at which the request should fit, by linear interpolation of tokens over weights.

        The two points are `count` and the end of the plan. Returns `count` if one of them is not measured.
        """
        end = self.plan.end
        if count not in self.sizes or end not in self.sizes:
            return count
        tokens, end_tokens = self.sizes[count][1], self.sizes[end][1]
        weight, end_weight = self.plan.weight(count), self.plan.weight(end)
        if tokens <= end_tokens or weight <= end_weight:
            return count
        free = (self.limit - tokens) * (weight - end_weight) // (tokens - end_tokens)
        return self.plan.position_from(self.plan.count_for(weight + free))

    def move_on(self, count: EditCount, steps: int = 1) -> EditCount:
        """Returns the position that is `steps` positions after `count`."""
        for _ in range(steps):
            count = self.plan.position_after(count)
        return count

    def _move_back(self, count: EditCount, steps: int) -> EditCount:
        while steps and count >= 0:
            count = self.plan.position_before(count)
            steps -= 1
        return count

    def _list_positions(self, after: EditCount, last: EditCount) -> list[EditCount]:
        positions: list[EditCount] = []
        while after < last:
            after = min(self.move_on(after), last)
            positions.append(after)
        return positions
