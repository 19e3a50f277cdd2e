"""Cut strategies: which units of a conversation a cut may change, in which order, and how.

`CutStrategy` is the base class. `OldestFirst` and `OldestFirstInSteps`, the default, drop whole units. The
strategies that keep a part of a unit have modules of their own: `result_strategies` and `media_strategies`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import ClassVar, TypeVar, cast

from agentkit.budget.units import UnitNumber, Units
from agentkit.errors import OptionError
from agentkit.messages.blocks import Block
from agentkit.messages.message import Msg, build_part, get_cached, set_cached
from agentkit.reprs import bounded_repr

__all__ = [
    "CutStrategy",
    "OldestFirst",
    "OldestFirstInSteps",
    "check_number",
    "edit_once",
    "find_newest",
]

_Strategy = TypeVar("_Strategy", bound="CutStrategy")


class CutStrategy:
    """Base class of cut strategies. The base drops every unit that is not protected, the oldest first.

    A subclass overrides `order`, and also `edit` if a part of each unit remains. The cut applies one edit after
    another until the request fits.

    Attributes:
        step: Distance of the cut grid, in tokens from the start of the history. With a grid, the prefix of the
            prompt stays unchanged between two steps, and `order` must be ascending. 0: a cut may end after any
            edit, and makes as few edits as possible. None: a quarter of the budget without the system prompt.
        order_is_stable: True if the order of a longer conversation starts with the order of a shorter one. A cut
            that did not fit then never fits a longer conversation.
        repeats: True if `order` may name a unit several times. Each `edit` then removes more of the unit.

    """

    step: int | None = 0
    order_is_stable: ClassVar[bool] = False
    repeats: bool = False

    def order(self, units: Units) -> Sequence[int]:
        """Returns the numbers of the units to edit, in order, without those of `self.protected(units)`."""
        protected = self.protected(units)
        return [number for number in units.numbers if number not in protected]

    def protected(self, units: Units) -> AbstractSet[int]:
        """Returns the units that this strategy must not change."""
        return units.protected()

    def recent(self, units: Units) -> int:
        """Returns the first unit that is too new for this strategy, as are all units after it."""
        return len(units) - 1

    def edit(self, unit: tuple[Msg, ...], newest: bool = False) -> Sequence[Msg]:
        """Returns the messages that remain of a unit.

        Args:
            unit: Messages of the unit.
            newest: True for the newest unit of the conversation.

        Returns:
            No messages, or as many messages as the unit has, each with as many blocks as before.

        """
        return ()


@dataclass(frozen=True)
class OldestFirst(CutStrategy):
    """Drops the oldest units. The system prompt, pinned units and the newest unit remain.

    The cut drops as few units as possible, so it moves with almost every message. Each move makes the prompt
    cache of the provider miss. `OldestFirstInSteps` avoids this.

    Attributes:
        keep_task: True keeps the first user message.
        step: Distance of the cut grid in tokens: see CutStrategy.

    """

    keep_task: bool = False
    step: int | None = 0
    order_is_stable: ClassVar[bool] = True

    __repr__ = bounded_repr

    def __post_init__(self) -> None:
        check_number("step", self.step)

    def order(self, units: Units) -> Sequence[int]:
        """Returns the units that may be dropped, the oldest first."""
        task = units.task if self.keep_task else None
        if not units.pinned and units.newest_visible is None and task in (None, units.system):
            return range(units.system + (task is not None), max(units.system, len(units) - 1))
        protected = units.protected(self.keep_task)
        return [number for number in units.numbers[units.system :] if number not in protected]


@dataclass(frozen=True)
class OldestFirstInSteps(OldestFirst):
    """Drops the oldest units in steps, so that the prefix of the prompt stays unchanged between two steps.

    The cut lies on a grid of `step` tokens from the start of the history. The same history gives the same cut in
    every process. The cut moves at most once in `step` tokens of new conversation. A cut that moves every turn
    costs more than no cut: each move makes the prompt cache miss all later messages.

    Attributes:
        keep_task: True keeps the first user message.
        step: Distance of the cut grid in tokens. None: a quarter of the budget without the system prompt.

    """

    keep_task: bool = True
    step: int | None = None

    __repr__ = bounded_repr


def check_number(option: str, value: int | None) -> None:
    """Raises OptionError unless an option of a strategy is an integer of at least 0. `step` may be None."""
    if (value is None and option == "step") or (type(value) is int and value >= 0):
        return
    raise OptionError(
        f"strategy.{option}", f"must be a non-negative integer, got {value!r}", "Pass 0 or a larger integer."
    )


def find_newest(numbers: Sequence[UnitNumber], count: int, units: Units) -> int:
    """Returns the first of the `count` newest units among `numbers`.

    Returns the newest unit of all if `count` is 0 or there are no numbers, and 0 if there are fewer than `count`.
    """
    newest = len(units) - 1
    if not count or not numbers:
        return newest
    return min(numbers[-count], newest) if count <= len(numbers) else 0


def edit_once(strategy: _Strategy, msg: Msg, edit: Callable[[_Strategy, Block], Block]) -> Msg:
    """Returns a message with edited blocks. The result is cached on the message.

    The same edited message comes back each time, together with everything that is cached on it.
    """
    key = (edit, strategy)
    cached = get_cached(msg, key)
    if cached is None:
        blocks = tuple(edit(strategy, block) for block in msg.blocks)
        is_same = all(new is old for new, old in zip(blocks, msg.blocks, strict=True))
        cached = set_cached(msg, key, _UNCHANGED if is_same else build_part(msg, blocks, msg.role))
    return msg if cached is _UNCHANGED else cast("Msg", cached)


_UNCHANGED = "unchanged"
"""Cached in place of an edited message that equals the original. The message itself would be a cycle."""
