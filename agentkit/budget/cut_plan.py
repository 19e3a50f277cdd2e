"""The schedule of a cut: everything that strategies may take, in order, with what each step saves."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, pairwise, starmap
from operator import gt, is_
from typing import NoReturn, cast

from agentkit.budget.strategies import CutStrategy, check_number
from agentkit.budget.units import Units, calls_any
from agentkit.errors import OptionError
from agentkit.messages.message import Msg
from agentkit.reprs import shorten_repr

__all__ = ["CutPlan", "CutStage", "search_cut"]

_STEPS = 4  # a budget in so many steps: at a fifth, a prompt in steady state misses the cache too often

Left = tuple[Msg, ...]
"""What an edit leaves of a unit; nothing of a unit that is dropped."""


@dataclass(slots=True)
class CutStage:
    """One strategy's part of a schedule: the units it takes from, in order.

    `saved[k]` is what its first k edits save. A run of neighbours dropped whole needs no list: `saved` is
    None, and the running sums of the units say it.
    """

    strategy: CutStrategy
    order: Sequence[int]
    step: int
    units: Units
    saved: list[int] | None = None
    left: list[Left] = field(default_factory=list[Left])  # what is left behind each edit; none for drops

    def saving(self, count: int) -> int:
        """What the first `count` edits save."""
        if self.saved is not None:
            return self.saved[count]
        return self.units.sums[self.order[0] + count] - self.units.sums[self.order[0]] if count else 0

    def fewest(self, wanted: int) -> int:
        """How many edits save as much as wanted; all of them if none do."""
        if self.saved is not None:
            return min(bisect_left(self.saved, wanted), len(self.order))
        first, sums = self.order[0], self.units.sums
        return min(
            bisect_left(sums, sums[first] + wanted, first, first + len(self.order)) - first, len(self.order)
        )

    def stop(self, count: int) -> int:
        """The first place on the grid that is not before the first `count` edits.

        A cut moves from one multiple of `step`, in tokens from the start of the history, to the next.
        """
        if not self.step or not count:
            return count
        line = -(-self.units.end(self.order[count - 1]) // self.step) * self.step
        return bisect_right(self.order, line, count, key=self.units.end)

    def before(self, count: int) -> int:
        """The last place on the grid before the first `count` edits."""
        if not self.step or not count:
            return count - 1
        line = (-(-self.units.end(self.order[count - 1]) // self.step) - 1) * self.step
        return bisect_right(self.order, line, 0, count - 1, key=self.units.end)


class CutPlan:
    """The edits that a budget's strategies make of one conversation, one strategy after another.

    A cut is a number of edits: 0 leaves the conversation as it is, `len(schedule)` is all that may go.
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
        self.steps = [_step(strategy, units, limit) for strategy in strategies]
        self.exact = not any(self.steps)  # whether cuts may lie behind any edit
        self.grows = len(strategies) == 1 and strategies[0].order_is_stable and not cut_first  # see CutStrategy
        self._strategies = strategies
        self._weigh = weigh
        self._cut_first = cut_first
        self._left: dict[int, Left] = {}  # what the legs so far leave of a unit once they are done
        self._made: list[CutStage] = []
        self._to_make = self._make()

    def at(self, limit: int) -> CutPlan:
        """The schedule of the same strategies for another limit."""
        return CutPlan(self._strategies, self.units, limit, self._weigh, self._cut_first)

    @property
    def legs(self) -> Iterator[CutStage]:
        """The legs in order, each made when it is first asked for."""
        yield from self._made
        for leg in self._to_make:
            self._made.append(leg)
            yield leg

    def _make(self) -> Iterator[CutStage]:
        for at, (strategy, step) in enumerate(zip(self._strategies, self.steps, strict=True)):
            order = self._remaining(checked_order(strategy, self.units))
            if step and not isinstance(order, range) and any(starmap(gt, pairwise(order))):
                _refuse(strategy, "order() goes back, where cuts lie on a grid", "Order the units, or use step=0.")
            line = self.units.start(_recent(strategy, self.units)) // step * step if step else 0
            if step and not drops(strategy) and at < len(self._strategies) - 1:
                order = [number for number in order if self.units.end(number) <= line]
            for part in _parted(order, self.units, self._cut_first, line if step else None):
                if part:
                    yield self._leg(strategy, part, step)

    def __len__(self) -> int:
        return sum(len(leg.order) for leg in self.legs)

    def weight(self, count: int) -> int:
        """The weight of all units behind the system prompt once `count` edits are made."""
        weight = self.units.sums[-1] - self.units.sums[self.units.system]
        for leg in self.legs if count else ():
            weight -= leg.saving(min(count, len(leg.order)))
            count -= min(count, len(leg.order))
            if not count:
                break
        return weight

    def place(self, room: int) -> int:
        """The fewest edits after which the units weigh at most `room`; all of them if none do."""
        wanted = self.weight(0) - room
        count = 0
        for leg in self.legs if wanted > 0 else ():
            count += leg.fewest(wanted)
            wanted -= leg.saving(len(leg.order))
            if wanted <= 0:
                break
        return count

    def stop(self, count: int) -> int:
        """The first number of edits from `count` on at which a cut may lie."""
        if not count:
            return 0
        base = 0
        for leg in self.legs:
            if count <= base + len(leg.order):
                return base + leg.stop(count - base)
            base += len(leg.order)
        return base

    def before(self, count: int) -> int:
        """The last number of edits below `count` at which a cut may lie; -1 below 0."""
        base = 0
        for leg in self.legs if count else ():
            if base < count <= base + len(leg.order):
                return base + leg.before(count - base)
            base += len(leg.order)
        return -1

    def changes(self, count: int) -> list[tuple[int, int, Left]]:
        """What the first `count` edits leave: runs of units (from, to), in order, each with what is left of it.

        Units dropped side by side are one run with nothing left.
        """
        first = next(self.legs, None)
        if first and first.saved is None and 0 < count <= len(first.order):
            return [(first.order[0], first.order[0] + count, ())]
        found: dict[int, Left] = {}
        for leg in self.legs:
            taken = leg.order[: min(count, len(leg.order))]
            found.update(zip(taken, leg.left, strict=False) if leg.left else dict.fromkeys(taken, ()))
            count -= len(taken)
            if not count:
                break
        runs: list[tuple[int, int, Left]] = []
        for number, left in sorted(found.items()):
            if left and all(map(is_, left, self.units.unit(number))):
                continue  # nothing was taken from it
            if runs and not left and not runs[-1][2] and runs[-1][1] == number:
                runs[-1] = (runs[-1][0], number + 1, ())
            else:
                runs.append((number, number + 1, left))
        return runs

    def dropped_by(self, count: int, strategy: CutStrategy) -> list[int]:
        """The units that one strategy drops, in the order of the conversation."""
        found: list[int] = []
        for leg in self.legs:
            taken = leg.order[: min(count, len(leg.order))]
            found.extend(taken if leg.strategy is strategy else ())
            count -= len(taken)
            if not count:
                break
        return sorted(found)

    def _remaining(self, order: Sequence[int]) -> Sequence[int]:
        """An order without the units that the legs so far drop."""
        gone = {number for leg in self._made if not leg.left for number in leg.order}
        return [number for number in order if number not in gone] if gone else order

    def _leg(self, strategy: CutStrategy, order: Sequence[int], step: int) -> CutStage:
        drop = drops(strategy)
        if drop and isinstance(order, range) and not self._left:
            return CutStage(strategy, order, step, self.units)
        savings: list[int] = []
        left: list[Left] = []
        for number in order:
            before = self._left.get(number)
            unit = tuple(self.units.unit(number)) if before is None else before
            after = () if drop else self._edited(strategy, number, unit)
            savings.append(self._weight(unit) - self._weight(after))
            self._left[number] = after
            left.append(after)
        saved = [0, *accumulate(max(0, saving) for saving in savings)]
        return CutStage(strategy, order, step, self.units, saved, [] if drop else left)

    def _edited(self, strategy: CutStrategy, number: int, unit: Left) -> Left:
        made: object = strategy.edit(unit, number == len(self.units) - 1)
        if not isinstance(made, list | tuple):
            _refuse(strategy, f"edit() made {type(made).__name__}", "Return a list of messages.")
        after = tuple(cast("Sequence[Msg]", made))
        if not all(isinstance(msg, Msg) for msg in after) or (after and len(after) != len(unit)):
            reason = f"edit() made {len(after)} things of {len(unit)} messages"
            _refuse(strategy, reason, "Leave nothing of a unit, or as many messages.")
        return after

    def _weight(self, msgs: Left) -> int:
        return sum(map(self._weigh, msgs))


def _step(strategy: CutStrategy, units: Units, limit: int) -> int:
    """A strategy's step in tokens: by default a share of what the limit leaves beside the system prompt."""
    check_number("step", strategy.step)
    if strategy.step is not None:
        return strategy.step
    return max(1, (limit - units.sums[units.system]) // _STEPS)


def _recent(strategy: CutStrategy, units: Units) -> int:
    """The unit from which on all are too new for a strategy."""
    recent: object = strategy.recent(units)
    if not isinstance(recent, int) or not 0 <= recent <= len(units):
        _refuse(strategy, f"recent() gave {shorten_repr(recent, 60)}", "Return the number of a unit.")
    return recent


def drops(strategy: CutStrategy) -> bool:
    """Whether a strategy leaves nothing of what it takes."""
    return type(strategy).edit is CutStrategy.edit


def _parted(
    order: Sequence[int], units: Units, first: frozenset[str], line: int | None
) -> tuple[Sequence[int], ...]:
    """An order in two: the exchanges of tools that are to be cut first, up to a line, and the rest."""
    if not first:
        return (order,)
    early = [number for number in order if calls_any(units.msgs[units.starts[number]], first)]
    if line is not None:
        early = [number for number in early if units.end(number) <= line]
    sooner = {*early}
    return (early, [number for number in order if number not in sooner])


def checked_order(strategy: CutStrategy, units: Units) -> Sequence[int]:
    """The order that a strategy gives, if it names units that may go, each once; neighbours as a range."""
    given: object = strategy.order(units)
    if isinstance(given, range) and given.step == 1:
        order: Sequence[int] = given
        numbers: range | set[int] = given
        known = not given or (given[0] >= 0 and given[-1] < len(units))
    else:
        if not isinstance(given, list | tuple | range):
            _refuse(strategy, f"order() gave {type(given).__name__}", "Return a list of numbers of units.")
        order = list(cast("Sequence[int]", given))
        if not all(type(number) is int for number in order):
            _refuse(strategy, f"order() gave other things than numbers ({order[:5]})", "Name units by number.")
        numbers = {*order}
        known = not numbers or (min(numbers) >= 0 and max(numbers) < len(units))
    broken = [number for number in _untouchable(strategy, units) if number in numbers]
    twice = len(numbers) < len(order) and not strategy.repeats
    if twice or broken or not known:
        reason = f"order() names a unit that is protected, unknown or there twice ({broken or [*order][:5]})"
        _refuse(strategy, reason, "Leave out units.protected(), and name each unit once.")
    return order


def _untouchable(strategy: CutStrategy, units: Units) -> set[int]:
    """What no strategy may touch, whatever it says itself: only summaries of ours may be summarised again."""
    if drops(strategy):
        return units.protected() - {*units.summaries}
    return {*range(units.system), *units.pinned}


def _refuse(strategy: CutStrategy, reason: str, advice: str) -> NoReturn:
    raise OptionError("budget.strategy", f"{type(strategy).__name__}.{reason}", advice)


async def search_cut(fits: Callable[[int], Awaitable[bool]], low: int, high: int) -> int:
    """The fewest edits in (low, high], given that `low` does not fit and `high` does: O(log n) calls.

    Halves a range that is the same for every limit, so that a larger limit never drops more.
    """
    while high - low > 1:
        middle = (low + high) // 2
        if await fits(middle):
            high = middle
        else:
            low = middle
    return high
