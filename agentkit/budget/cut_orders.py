"""Checks of what cut strategies return: the order of units, the step, the newest units, the edited messages."""

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

_STEPS_PER_BUDGET = 4  # with five steps, a prompt of constant length misses the prompt cache too often


def get_grid_step(strategy: CutStrategy, units: Units, limit: int) -> int:
    """Returns the distance of a strategy's cut grid in tokens. 0: no grid."""
    check_number("step", strategy.step)
    if strategy.step is not None:
        return strategy.step
    return max(1, (limit - units.sums[units.system]) // _STEPS_PER_BUDGET)


def get_recent(strategy: CutStrategy, units: Units) -> UnitNumber:
    """Returns the first unit that is too new for a strategy. Raises OptionError for an invalid number."""
    recent: object = strategy.recent(units)
    if not isinstance(recent, int) or not 0 <= recent <= len(units):
        _refuse(strategy, f"recent() returned {shorten_repr(recent, 60)}", "Return the number of a unit.")
    return UnitNumber(recent)


def get_order(strategy: CutStrategy, units: Units) -> Sequence[UnitNumber]:
    """Returns a strategy's order of units; neighboring units stay a range.

    Raises:
        OptionError: If the order names an unknown or protected unit, or one unit twice.

    """
    returned: object = strategy.order(units)
    if isinstance(returned, range) and returned.step == 1:
        order: Sequence[int] = returned
        numbers: range | set[int] = returned
        in_range = not returned or (returned[0] >= 0 and returned[-1] < len(units))
    else:
        if not isinstance(returned, list | tuple | range):
            reason = f"order() returned {type(returned).__name__}"
            _refuse(strategy, reason, "Return a list of unit numbers.")
        order = list(cast("Sequence[int]", returned))
        if not all(type(number) is int for number in order):
            _refuse(strategy, f"order() returned {shorten_repr(order[:5], 60)}", "Return unit numbers (int).")
        numbers = {*order}
        in_range = not numbers or (min(numbers) >= 0 and max(numbers) < len(units))
    protected = [number for number in _untouchable(strategy, units) if number in numbers]
    is_repeated = len(numbers) < len(order) and not strategy.repeats
    if is_repeated or protected or not in_range:
        reason = f"order() names a unit that is protected, unknown or repeated ({protected or [*order][:5]})"
        _refuse(strategy, reason, "Leave out units.protected(), and name each unit once.")
    return cast("Sequence[UnitNumber]", order)


def refuse_descending(strategy: CutStrategy, order: Sequence[UnitNumber]) -> None:
    """Raises OptionError if an order on a cut grid is not ascending."""
    if not isinstance(order, range) and any(starmap(gt, pairwise(order))):
        _refuse(strategy, "order() is not ascending, but step is not 0", "Sort the units, or use step=0.")


def _untouchable(strategy: CutStrategy, units: Units) -> set[UnitNumber]:
    """Returns the units that no strategy may change. Only summaries may be dropped though they are pinned."""
    if is_dropping(strategy):
        return units.protected() - {*units.summaries}
    return {*units.numbers[: units.system], *units.pinned}


def is_dropping(strategy: CutStrategy) -> bool:
    """Returns True if a strategy drops whole units."""
    return type(strategy).edit is CutStrategy.edit


def edit_unit(strategy: CutStrategy, unit: Remainder, is_newest: bool) -> Remainder:
    """Returns what a strategy leaves of a unit. Raises OptionError for an invalid result."""
    returned: object = strategy.edit(unit, is_newest)
    if not isinstance(returned, list | tuple):
        _refuse(strategy, f"edit() returned {type(returned).__name__}", "Return a list of messages.")
    remainder = tuple(cast("Sequence[Msg]", returned))
    if not all(isinstance(msg, Msg) for msg in remainder) or (remainder and len(remainder) != len(unit)):
        reason = f"edit() returned {len(remainder)} items for a unit of {len(unit)} messages"
        _refuse(strategy, reason, "Return an empty list, or as many messages.")
    return remainder


def split_order(
    order: Sequence[UnitNumber], units: Units, cut_first: frozenset[str], line: int | None
) -> tuple[Sequence[UnitNumber], ...]:
    """Splits an order in two: exchanges of the tools in `cut_first`, and the remaining units.

    Args:
        order: Units in a strategy's order.
        units: Units of the conversation.
        cut_first: Names of tools.
        line: Weight of the history up to which exchanges come first. None: all of it.

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
