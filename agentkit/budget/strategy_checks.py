"""Checks of the values that cut strategies return, such as the list of units to edit and the edited messages.

A unit is one message, or one assistant turn with tool calls and all their results.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import islice, pairwise, starmap
from operator import gt
from typing import NoReturn, cast

from agentkit.budget.cut_stages import Remainder
from agentkit.budget.protected_units import find_protected_units, find_summaries
from agentkit.budget.strategies import CutStrategy
from agentkit.budget.units import UnitNumber, Units
from agentkit.errors import OptionError
from agentkit.messages.message import Msg
from agentkit.reprs import describe_value, shorten_repr

__all__ = [
    "edit_unit",
    "get_order",
    "get_recent",
    "is_dropping",
    "refuse_descending",
]


def get_recent(strategy: CutStrategy, units: Units) -> UnitNumber:
    """Returns the index of the first unit that is too new for a strategy to change.

    Raises:
        OptionError: If `strategy.recent` does not return an integer from 0 to the number of units.
    """
    recent: object = strategy.recent(units)
    if not isinstance(recent, int) or not 0 <= recent <= len(units):
        reason = f"recent() must return an integer from 0 to {len(units)}, got {shorten_repr(recent, 60)}"
        _refuse(strategy, reason, "Return the index of the first unit that must not change.")
    return UnitNumber(recent)


def get_order(strategy: CutStrategy, units: Units) -> Sequence[UnitNumber]:
    """Returns the indexes of the units that a strategy edits, in the order of the edits.

    If `strategy.order` returns a `range` with step 1, the result is the same object, because a `range` is faster
    to process than a list.

    Raises:
        OptionError: If `strategy.order` does not return a list, tuple or range of integers. Also if the result
            contains an unknown or protected unit, or repeats a unit although `strategy.repeats` is False.
    """
    returned: object = strategy.order(units)
    if isinstance(returned, range) and returned.step == 1:
        order: Sequence[int] = returned
        numbers: range | set[int] = returned
        in_range = not returned or (returned[0] >= 0 and returned[-1] < len(units))
    else:
        if not isinstance(returned, list | tuple | range):
            reason = f"order() must return a list, tuple or range, got {describe_value(returned)}"
            _refuse(strategy, reason, "Return a list of unit indexes.")
        order = list(cast("Sequence[int]", returned))
        if not all(type(number) is int for number in order):
            reason = f"order() must return only integers, got {shorten_repr(order[:5], 60)}"
            _refuse(strategy, reason, "Return a list of unit indexes.")
        numbers = {*order}
        in_range = not numbers or (min(numbers) >= 0 and max(numbers) < len(units))
    protected = [number for number in _untouchable(strategy, units) if number in numbers]
    is_repeated = len(numbers) < len(order) and not strategy.repeats
    if is_repeated or protected or not in_range:
        _refuse_units(strategy, order, len(units), protected)
    return cast("Sequence[UnitNumber]", order)


def _refuse_units(
    strategy: CutStrategy, order: Sequence[int], unit_count: int, protected: Sequence[int]
) -> NoReturn:
    unknown = [*islice((number for number in order if not 0 <= number < unit_count), 5)]
    if protected:
        kind, numbers, advice = "protected", protected, "Omit the units that `protected` returns."
    elif unknown:
        kind, numbers, advice = "unknown", unknown, f"Return only indexes from 0 to {unit_count - 1}."
    else:
        repeated = [number for number, count in Counter(order).items() if count > 1]
        kind, numbers, advice = "repeated", repeated, "Return each unit once, or set `repeats` to True."
    _refuse(strategy, f"order() must not return {kind} units, got {shorten_repr(numbers, 60)}", advice)


def refuse_descending(strategy: CutStrategy, order: Sequence[UnitNumber]) -> None:
    """Raises OptionError if the indexes of the units to edit are not ascending.

    A strategy needs ascending indexes if its `step` is not 0.
    """
    if not isinstance(order, range) and any(starmap(gt, pairwise(order))):
        first, second = next(pair for pair in pairwise(order) if gt(*pair))
        reason = f"order() must return ascending indexes unless `step` is 0, but {second} follows {first}"
        _refuse(strategy, reason, "Sort the unit indexes, or use step=0.")


def _untouchable(strategy: CutStrategy, units: Units) -> set[UnitNumber]:
    """Returns the indexes of the units that a strategy must not change.

    A strategy that drops whole units may drop summaries, although summaries are pinned. Such a strategy
    may also drop an example of the task, unless the example is pinned or is the newest unit.
    """
    if is_dropping(strategy):
        examples = {*units.examples} - {*units.pinned, *units.numbers[-1:]}
        return find_protected_units(units) - {*find_summaries(units)} - examples
    return {*units.numbers[: units.system], *units.pinned}


def is_dropping(strategy: CutStrategy) -> bool:
    """Returns True if a strategy drops whole units. Other strategies keep a part of each unit."""
    return type(strategy).edit is CutStrategy.edit


def edit_unit(strategy: CutStrategy, unit: Remainder, is_newest: bool) -> Remainder:
    """Returns the messages of a unit that remain after a strategy edits the unit.

    Raises:
        OptionError: If `strategy.edit` returns neither an empty list nor one Msg for each message of the unit.
    """
    returned: object = strategy.edit(unit, is_newest)
    if not isinstance(returned, list | tuple):
        reason = f"edit() must return a list or tuple, got {describe_value(returned)}"
        _refuse(strategy, reason, "Return a list of Msg.")
    remainder = tuple(cast("Sequence[Msg]", returned))
    if not all(isinstance(msg, Msg) for msg in remainder) or (remainder and len(remainder) != len(unit)):
        types = sorted({type(msg).__name__ for msg in remainder})
        reason = (
            f"edit() must return an empty list or a list of exactly {len(unit)} Msg objects, "
            f"got {len(remainder)} values of the types {', '.join(types)}"
        )
        _refuse(strategy, reason, "Return an empty list, or one Msg for each message of the unit.")
    return remainder


def _refuse(strategy: CutStrategy, reason: str, advice: str) -> NoReturn:
    raise OptionError("budget.strategy", f"{type(strategy).__name__}.{reason}", advice)
