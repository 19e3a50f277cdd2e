"""`CutSearch`: finds the smallest number of edits after which the request fits the budget."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

from agentkit.budget.cut_plan import CutPlan
from agentkit.budget.units import EditCount
from agentkit.formatting.request_builder import BuiltRequest

__all__ = ["CutSearch", "search_cut"]


@dataclass(slots=True)
class CutSearch:
    """Search for the smallest number of edits after which the request fits the budget.

    A cut applies the first n edits of a cut plan. A position is a number of edits after which the cut may end. The
    search starts at a guess and moves away from the guess in growing steps. If the guess is right, the search
    measures only the requests at the guess and at the position before the guess. At worst, the search measures
    O(log n) requests.

    Attributes:
        limit: Maximum number of tokens of a request after a cut.
        fits: Async predicate that returns True if the request fits after a number of edits.
        sizes: Maps each measured number of edits to the request after these edits, and its token count.
    """

    plan: CutPlan
    limit: int
    fits: Callable[[EditCount], Awaitable[bool]]
    sizes: Mapping[EditCount, tuple[BuiltRequest, int]]

    async def find_first(self, guess: EditCount, too_large: EditCount) -> EditCount:
        """Returns the smallest allowed number of edits after which the request fits the budget.

        Returns the number of all edits if the request never fits. The search starts at `guess`. `too_large` is a
        number of edits after which the request does not fit, or -1 if no such number is known.
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
        """Returns the largest measured number of edits that is too small, and a larger number that is sufficient.

        If the request never fits, both values are the number of all edits.
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
        """Returns a number of edits that is too small, and a larger number that is sufficient.

        The second value is at most `fitting`.
        """
        steps = 1
        while self.plan.position_before(fitting) > too_large:
            earlier = min(self._estimate(fitting), self._move_back(fitting, steps))
            count = max(earlier, self.move_on(too_large))
            if not await self.fits(count):
                return count, fitting
            fitting, steps = count, steps * 4
        return too_large, fitting

    def _estimate(self, count: EditCount) -> EditCount:
        """Returns the number of edits after which the request should fit the budget.

        The number is interpolated linearly between the sizes of two requests: the request after `count` edits, and
        the request after all edits. Returns `count` if the request after all edits is not measured or not smaller.
        """
        end = self.plan.end
        if end not in self.sizes:
            return count
        tokens, end_tokens = self.sizes[count][1], self.sizes[end][1]
        weight, end_weight = self.plan.weight(count), self.plan.weight(end)
        if tokens <= end_tokens or weight <= end_weight:
            return count
        free = (self.limit - tokens) * (weight - end_weight) // (tokens - end_tokens)
        return self.plan.position_from(self.plan.count_for(weight + free))

    def move_on(self, count: EditCount, steps: int = 1) -> EditCount:
        """Returns the position that is `steps` positions after `count`.

        A position is a number of edits after which the cut may end. Returns the number of all edits if there are
        not enough positions.
        """
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


async def search_cut(fits: Callable[[EditCount], Awaitable[bool]], low: int, high: int) -> EditCount:
    """Returns the smallest number of edits after which a request fits, by binary search between `low` and `high`.

    The request must be too large after `low` edits, and must fit after `high` edits. If every search
    starts with the same `low` and `high`, a larger token limit never leads to more edits than a smaller limit.
    """
    while high - low > 1:
        middle = (low + high) // 2
        if await fits(EditCount(middle)):
            high = middle
        else:
            low = middle
    return EditCount(high)
