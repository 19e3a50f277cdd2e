"""Tests of the search for a cut: it finds the smallest cut, and measures few requests."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from agentkit import OldestFirst, Units
from agentkit.budget.cut_plan import CutPlan
from agentkit.budget.units import EditCount
from agentkit.formatting.cut_search import CutSearch
from tests.cases import each_case
from tests.conftest import text_msg


class Requests:
    """Requests of a conversation of equal units, which fit after a number of edits.

    Args:
        units: Number of units. All but the newest unit may be dropped.
        enough: Smallest number of edits after which the request fits.
        weight: Estimated tokens of a unit. A request has one token for each unit.
        known: True to pass the measured sizes to the search, and the size after all edits from the start.
    """

    def __init__(self, units: int, enough: int, *, weight: int = 1, step: int = 0, known: bool = False) -> None:
        conversation = Units()
        conversation.extend([text_msg("Bob", "Hi.")] * units, lambda msg: weight, frozenset())
        self.plan = CutPlan([OldestFirst(step=step)], conversation, 1, lambda msg: weight)
        self.units = units
        self.enough = enough
        self.measured: list[int] = []
        self.sizes: dict[EditCount, Any] = {self.plan.end: (None, self._measure(self.plan.end))} if known else {}
        self.known = known

    def _measure(self, count: int) -> int:
        return 3 * (self.units - count) + 40

    async def fits(self, count: EditCount) -> bool:
        if count not in self.measured:
            self.measured.append(count)
        if self.known:
            self.sizes[count] = (None, self._measure(count))
        return count >= self.enough

    def search(self, guess: int, too_large: int = -1) -> int:
        search = CutSearch(self.plan, self._measure(self.enough), self.fits, self.sizes)
        return anyio.run(search.find_first, EditCount(guess), EditCount(too_large))


@pytest.mark.parametrize("known", [False, True])
@pytest.mark.parametrize("step", [0, 4])
def test_the_smallest_sufficient_cut_is_found_from_each_guess(step: int, *, known: bool) -> None:
    positions = [0, 4, 8, 11] if step else range(12)
    for enough in range(13):
        first = next((count for count in positions if count >= enough), 11)
        for guess in positions:
            requests = Requests(12, enough, step=step, known=known)
            assert requests.search(guess) == first
            assert {*requests.measured} <= {*positions}
            for too_large in (count for count in positions if count < min(enough, guess)):
                requests = Requests(12, enough, step=step, known=known)
                assert requests.search(guess, too_large) == first
                assert min(requests.measured) > too_large


@each_case(
    ("enough", "guess", "measured"),
    [
        (100, 100, [100, 99]),
        (0, 0, [0]),
        (0, 1, [1, 0]),
        (199, 199, [199, 198]),
        (101, 100, [100, 101]),
        (500, 31, [31, 32, 36, 52, 116, 199]),
        (100, 10, [10, 11, 15, 31, 95, 199, 198, 194, 178, 114, 96, 105, 100, 98, 99]),
        (100, 190, [190, 189, 185, 169, 105, 0, 52, 78, 91, 98, 101, 99, 100]),
    ],
)
@each_case("weight", [1, 0])
def test_the_search_moves_away_from_the_guess_in_growing_steps(
    enough: int, guess: int, measured: list[int], weight: int
) -> None:
    """Without usable estimates, the steps are 1, 4, 16 and so on. Then the search halves the remaining range."""
    requests = Requests(200, enough, weight=weight, known=weight == 0)
    requests.search(guess)
    assert requests.measured == measured


@pytest.mark.parametrize(
    ("guess", "measured"), [(100, [100, 99]), (10, [10, 100, 99]), (190, [190, 100, 96, 98, 99])]
)
def test_the_search_continues_at_the_estimate_from_two_measured_requests(guess: int, measured: list[int]) -> None:
    requests = Requests(200, 100, known=True)
    assert requests.search(guess) == 100
    assert requests.measured == measured


@pytest.mark.parametrize(
    ("guess", "measured"),
    [(10, [10, 20, 60, 199, 190, 150, 70, 110, 90, 100]), (190, [190, 180, 140, 0, 70, 100, 80, 90])],
)
def test_a_search_on_a_grid_moves_by_positions_of_the_grid(guess: int, measured: list[int]) -> None:
    requests = Requests(200, 95, step=10)
    assert requests.search(guess) == 100
    assert requests.measured == measured
