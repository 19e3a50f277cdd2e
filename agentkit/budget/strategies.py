"""Cut strategies, which decide what a budget removes from a conversation, and in which order.

A unit is one message, or one assistant turn with tool calls and all their results. `CutStrategy` is the base
class. `OldestFirst` and `OldestFirstInSteps`, the default, drop whole units. The modules `result_strategies` and
`media_strategies` have strategies that keep a part of each unit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from operator import is_
from typing import ClassVar, TypeVar, cast

from agentkit.budget.protected_units import find_protected_units, find_task
from agentkit.budget.units import UnitNumber, Units
from agentkit.errors import OptionError
from agentkit.messages.blocks import Block
from agentkit.messages.message import Msg, build_part, get_cached, set_cached
from agentkit.reprs import bounded_repr, shorten_repr

__all__ = [
    "CutStrategy",
    "DropExamples",
    "OldestFirst",
    "OldestFirstInSteps",
    "check_number",
    "edit_once",
    "find_newest",
    "shorten_middle",
]

_Strategy = TypeVar("_Strategy", bound="CutStrategy")


class CutStrategy:
    """Base class of cut strategies.

    The base class drops all units that are not protected, the oldest first. A unit is one message, or one
    assistant turn with tool calls and all their results. An edit drops or shortens one unit. A cut applies edits
    one by one until the request fits the budget.

    A subclass overrides `order`. A subclass that keeps a part of each unit also overrides `edit`.

    Attributes:
        step: Distance in tokens between the points of the history at which a cut may end. The prefix of the prompt
            is unchanged until the cut moves to the next point. 0 lets a cut end after any edit. None means a
            quarter of the tokens that the budget leaves for messages after the system prompt. If `step` is not 0,
            `order` must return ascending indexes.
        order_is_stable: True if new messages only add units at the end of `order`. If n edits do not save enough
            tokens, n edits also do not save enough tokens after new messages.
        repeats: True if `order` may contain a unit several times. Each call of `edit` then removes more of the
            unit.
    """

    step: int | None = 0
    order_is_stable: ClassVar[bool] = False
    repeats: bool = False

    def order(self, units: Units) -> Sequence[int]:
        """Returns the indexes of the units to edit, in the order of the edits. Omits protected units."""
        protected = self.protected(units)
        return [number for number in units.numbers if number not in protected]

    def protected(self, units: Units) -> AbstractSet[int]:
        """Returns the indexes of the units that this strategy must not change."""
        return find_protected_units(units)

    def recent(self, units: Units) -> int:
        """Returns the index of the first unit that is too new to change.

        All later units stay unchanged, too. If no unit is too new, the result is the number of units.
        """
        return len(units) - 1

    def edit(self, unit: tuple[Msg, ...], newest: bool = False) -> Sequence[Msg]:
        """Returns the messages of a unit that remain after one edit.

        Args:
            unit: Messages of the unit.
            newest: True for the newest unit of the conversation.

        Returns:
            An empty sequence to drop the unit. Otherwise one message for each message of the unit, with the same
            number of blocks.
        """
        return ()


@dataclass(frozen=True)
class OldestFirst(CutStrategy):
    """Cut strategy that drops the oldest messages first.

    The system prompt, pinned messages and the newest message remain.

    Tool calls are dropped together with their results. By default, the cut drops as little as possible. After
    almost every new message, the cut therefore drops more, so that the start of the history changes. The request
    then misses the provider's prompt cache. `OldestFirstInSteps` avoids most of these cache misses.

    Attributes:
        keep_task: True to keep the first user message.
        step: Distance in tokens between the points of the history at which a cut may end. See `CutStrategy.step`.
    """

    keep_task: bool = False
    step: int | None = 0
    order_is_stable: ClassVar[bool] = True

    __repr__ = bounded_repr

    def __post_init__(self) -> None:
        check_number("step", self.step)

    def order(self, units: Units) -> Sequence[int]:
        """Returns the indexes of the units that may be dropped, the oldest unit first."""
        task = find_task(units) if self.keep_task else None
        has_fixed_units = units.pinned or units.examples or units.newest_visible is not None
        if not has_fixed_units and task in (None, units.system):
            return range(units.system + (task is not None), max(units.system, len(units) - 1))
        protected = find_protected_units(units, self.keep_task)
        return [number for number in units.numbers[units.system :] if number not in protected]


@dataclass(frozen=True)
class OldestFirstInSteps(OldestFirst):
    """Cut strategy that drops the oldest messages in steps, to keep the provider's prompt cache valid longer.

    A cut drops the messages that end at or before a multiple of `step` tokens, counted from the start of the
    history. The cut moves at most once for each `step` tokens of new messages. Every process computes the same
    cut for the same conversation. A cut that moves in every turn may cost more than no cut. After each move, the
    prefix of all remaining messages is new, and these messages miss the cache.

    Attributes:
        keep_task: True to keep the first user message.
        step: Distance in tokens between the points of the history at which a cut may end. None means a
            quarter of the tokens that the budget leaves for messages after the system prompt.
    """

    keep_task: bool = True
    step: int | None = None

    __repr__ = bounded_repr


class DropExamples(CutStrategy):
    """Cut strategy that drops the examples of the task, the oldest first.

    A cut applies this strategy after all strategies of the budget, if the conversation has examples.
    """

    def order(self, units: Units) -> Sequence[int]:
        """Returns the indexes of the units with examples, the oldest first.

        Omits pinned examples, and an example that is the newest unit of the conversation.
        """
        protected = self.protected(units)
        return [number for number in units.examples if number not in protected]

    def protected(self, units: Units) -> AbstractSet[int]:
        """Returns the indexes of the units that a cut must not drop.

        These are all units without examples, the pinned examples, and the newest unit of the conversation.
        """
        return {*units.numbers} - ({*units.examples} - {*units.pinned, *units.numbers[-1:]})


def check_number(option: str, value: int | None) -> None:
    """Raises OptionError unless the value of a strategy's option is an integer of at least 0.

    The value of the option `step` may also be None.
    """
    if (value is None and option == "step") or (type(value) is int and value >= 0):
        return
    reason = f"must be a non-negative integer, got {shorten_repr(value, 60)}"
    raise OptionError(f"strategy.{option}", reason, "Pass 0 or a larger integer.")


def find_newest(numbers: Sequence[UnitNumber], count: int, units: Units) -> int:
    """Returns the index of the oldest among the `count` newest units in `numbers`.

    `numbers` must be ascending.

    Returns the index of the newest unit of the conversation if `count` is 0 or `numbers` is empty. Returns 0 if
    `numbers` has at least one item, but fewer than `count` items.
    """
    if not count or not numbers:
        return len(units) - 1
    return numbers[-count] if count <= len(numbers) else 0


def edit_once(strategy: _Strategy, msg: Msg, edit: Callable[[_Strategy, Block], Block]) -> Msg:
    """Applies `edit` to each block of a message, and returns the edited message.

    The edited message is cached on the original message. Later calls return the same object, so that values cached
    on the edited message, such as its token estimate, are not computed again.
    """
    key = (edit, strategy)
    cached = get_cached(msg, key)
    if cached is None:
        blocks = tuple(edit(strategy, block) for block in msg.blocks)
        is_same = all(map(is_, blocks, msg.blocks))
        cached = set_cached(msg, key, _UNCHANGED if is_same else build_part(msg, blocks, msg.role))
    return msg if cached is _UNCHANGED else cast("Msg", cached)


_UNCHANGED = "unchanged"
"""Cached value that stands for an unchanged message. A message that caches itself would be a reference cycle."""


def shorten_middle(text: str, characters: int, mark: str) -> str:
    r"""Returns a text with a note in place of its middle.

    `text` must have more than `characters` characters. The result has `characters` characters of `text`: half from
    the start and half from the end. `mark` is the note, which becomes a separate line.

    Example:
        >>> shorten_middle("abcdefgh", 4, "…")
        'ab\n…\ngh'
    """
    return f"{text[: characters - characters // 2]}\n{mark}\n{text[len(text) - characters // 2 :]}"
