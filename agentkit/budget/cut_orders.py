"""Checks of the values that cut strategies return, such as the order of units and the edited messages."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise, starmap
from operator import gt
from typing import NoReturn, cast

from agentkit.budget.cut_stages import Remainder
from agentkit.budget.strategies import CutStrategy, check_number
from agentkit.budget.units import UnitNumber, Units, calls_any
from agentkit.errors import OptionError
from agentkit.messages.message import Msg
from agentkit.reprs import shorten_repr

__all__ = [
    "edit_unit",
    "get_grid_step",
    "get_order",
    "get_recent",
    "is_dropping",
    "refuse_descending",
    "split_order",
]

# Four, because with five steps per budget a cut moves so often that even prompts of constant length miss the
# prompt cache.
_STEPS_PER_BUDGET = 4


def get_grid_step(strategy: CutStrategy, units: Units, limit: int) -> int:
    """Returns the distance in tokens between allowed positions of a cut, or 0 if every position is allowed."""
    check_number("step", strategy.step)
    if strategy.step is not None:
        return strategy.step
    return max(1, (limit - units.sums[units.system]) // _STEPS_PER_BUDGET)


def get_recent(strategy: CutStrategy, units: Units) -> UnitNumber:
    """Returns the index of the first unit that is too new for a strategy to change.

    Raises:
        OptionError: If the strategy returns a value that is not a unit number.
    """
    recent: object = strategy.recent(units)
    if not isinstance(recent, int) or not 0 <= recent <= len(units):
        reason = f"recent() must return an integer from 0 to {len(units)}, got {shorten_repr(recent, 60)}"
        _refuse(strategy, reason, "Return the number of the first unit to keep.")
    return UnitNumber(recent)


def get_order(strategy: CutStrategy, units: Units) -> Sequence[UnitNumber]:
    """Returns the indexes of the units that a strategy wants to edit, in the order of the edits.

    A `range` of neighboring units is returned as a `range`, because later steps handle ranges faster.

    Raises:
        OptionError: If the order contains an unknown or protected unit, or repeats a unit although `repeats` is
            False.
    """
    returned: object = strategy.order(units)
    if isinstance(returned, range) and returned.step == 1:
        order: Sequence[int] = returned
        numbers: range | set[int] = returned
        in_range = not returned or (returned[0] >= 0 and returned[-1] < len(units))
    else:
        if not isinstance(returned, list | tuple | range):
            reason = f"order() must return a list, got {type(returned).__name__}"
            _refuse(strategy, reason, "Return a list of unit numbers.")
        order = list(cast("Sequence[int]", returned))
        if not all(type(number) is int for number in order):
            reason = f"order() must return integers, got {shorten_repr(order[:5], 60)}"
            _refuse(strategy, reason, "Return a list of unit numbers.")
        numbers = {*order}
        in_range = not numbers or (min(numbers) >= 0 and max(numbers) < len(units))
    protected = [number for number in _untouchable(strategy, units) if number in numbers]
    is_repeated = len(numbers) < len(order) and not strategy.repeats
    if is_repeated or protected or not in_range:
        invalid = "protected units" if protected else "unknown or repeated units"
        reason = f"order() contains {invalid}: {shorten_repr(protected or [*order][:5], 60)}"
        _refuse(
            strategy,
            reason,
            "Omit the units that self.protected(units) returns, and list each of the other units once.",
        )
    return cast("Sequence[UnitNumber]", order)


def refuse_descending(strategy: CutStrategy, order: Sequence[UnitNumber]) -> None:
    """Raises OptionError if unit numbers are not in ascending order, which a strategy with a step requires."""
    if not isinstance(order, range) and any(starmap(gt, pairwise(order))):
        reason = "order() must be ascending unless `step` is 0, but a unit number is smaller than the previous one"
        _refuse(strategy, reason, "Sort the unit numbers, or use step=0.")


def _untouchable(strategy: CutStrategy, units: Units) -> set[UnitNumber]:
    """Returns the units that a strategy must not change. Strategies that drop whole units may drop summaries."""
    if is_dropping(strategy):
        return units.protected() - {*units.summaries}
    return {*units.numbers[: units.system], *units.pinned}


def is_dropping(strategy: CutStrategy) -> bool:
    """Returns True if a strategy drops whole units."""
    return type(strategy).edit is CutStrategy.edit


def edit_unit(strategy: CutStrategy, unit: Remainder, is_newest: bool) -> Remainder:
    """Returns the messages of a unit that are left after a strategy edits the unit.

    Raises:
        OptionError: If the strategy returns an invalid value.
    """
    returned: object = strategy.edit(unit, is_newest)
    if not isinstance(returned, list | tuple):
        reason = f"edit() must return a list, got {type(returned).__name__}"
        _refuse(strategy, reason, "Return a list of Msg.")
    remainder = tuple(cast("Sequence[Msg]", returned))
    if not all(isinstance(msg, Msg) for msg in remainder) or (remainder and len(remainder) != len(unit)):
        types = sorted({type(msg).__name__ for msg in remainder})
        reason = (
            f"edit() must return {len(unit)} Msg or an empty list, got {len(remainder)} of type {', '.join(types)}"
        )
        _refuse(strategy, reason, "Return an empty list, or one Msg for each message of the unit.")
    return remainder


def split_order(
    order: Sequence[UnitNumber], units: Units, cut_first: frozenset[str], line: int | None
) -> tuple[Sequence[UnitNumber], ...]:
    """Splits an order so that the units with calls of the tools in `cut_first` are edited first.

    `line` is a position in the history, in tokens from its start. Units that end after this position keep their
    places in the order. None allows all units to move.
    """
    if not cut_first:
        return (order,)
    early = [number for number in order if calls_any(units.msgs[units.starts[number]], cut_first)]
    if line is not None:
        early = [number for number in early if units.end(number) <= line]
    early_numbers = {*early}
    return (early, [number for number in order if number not in early_numbers])


def _refuse(strategy: CutStrategy, reason: str, advice: str) -> NoReturn:
    raise OptionError("budget.strategy", f"{type(strategy).__name__}.{reason}", advice)
