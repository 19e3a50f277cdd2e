"""Cut strategies: what may be taken from a conversation that is over its budget, and in which order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, TypeVar

from agentkit.budget.units import Units
from agentkit.errors import OptionError
from agentkit.messages.blocks import Block, MediaBlock, ResultItem, TextBlock, ToolResultBlock
from agentkit.messages.features import Feature
from agentkit.messages.message import Msg, build_part, get_cached, set_cached
from agentkit.repair.pairing import INTERRUPTED_RESULT
from agentkit.reprs import bounded_repr

_Strategy = TypeVar("_Strategy", bound="CutStrategy")
_Item = TypeVar("_Item", Block, ResultItem)

__all__ = [
    "ClearResults",
    "CutStrategy",
    "DropMedia",
    "OldestFirst",
    "OldestFirstInSteps",
    "ShrinkResults",
]


class CutStrategy:
    """What may be taken from a conversation, and in which order.

    One of your own overrides `order`, and `edit` if something is to be left of a unit. What it takes is taken
    one edit after another, until the request fits.

    step     0: a cut may lie behind any edit, and takes the fewest that make the request fit. A number of
             tokens: cuts lie on a grid of so many tokens from the start of the history, so that the prompt's
             prefix stands still between two steps; the units of `order` ascend then. None: a quarter of what
             the budget leaves beside the system prompt
    order_is_stable  True if the order of a longer conversation begins with the order of a shorter one. A cut that
             did not fit then never fits a longer conversation
    repeats  whether `order` may name a unit several times, and `edit` then takes more each time
    """

    step: int | None = 0
    order_is_stable: ClassVar[bool] = False
    repeats: bool = False

    def order(self, units: Units) -> Sequence[int]:
        """The units to take from, by number, in the order in which it is done: none of `self.spared(units)`."""
        spared = self.protected(units)
        return [number for number in range(len(units)) if number not in spared]

    def protected(self, units: Units) -> set[int]:
        """The units that may not be touched."""
        return units.protected()

    def recent(self, units: Units) -> int:
        """The unit from which on all are too new for this strategy."""
        return len(units) - 1

    def edit(self, unit: tuple[Msg, ...], newest: bool = False) -> Sequence[Msg]:
        """What is left of a unit, the newest one or another: nothing, or as many messages of as many blocks."""
        return ()


@dataclass(frozen=True)
class OldestFirst(CutStrategy):
    """Drop the oldest units, exchanges whole; the system prompt, pins and the newest unit stay.

    `keep_task` keeps the first user message too. The fewest units go that make the request fit: the cut moves
    with almost every message, and a provider's prompt cache misses each time (see `Stepped`).
    """

    keep_task: bool = False
    step: int | None = 0
    order_is_stable: ClassVar[bool] = True

    __repr__ = bounded_repr

    def __post_init__(self) -> None:
        check_number("step", self.step)

    def order(self, units: Units) -> Sequence[int]:
        """All that may go, from the oldest on."""
        task = units.task if self.keep_task else None
        if not units.pinned and units.newest_visible is None and task in (None, units.system):
            return range(units.system + (task is not None), max(units.system, len(units) - 1))
        protected = units.protected(self.keep_task)
        return [number for number in range(units.system, len(units)) if number not in protected]


@dataclass(frozen=True)
class OldestFirstInSteps(OldestFirst):
    """Drop the oldest units in steps, so that the prefix of the prompt stands still between two steps.

    The cut lies on a grid of `step` tokens from the start of the history (None: a quarter of the budget): the
    same history gives the same cut, without any memory, and it moves at most once in `step` tokens of new
    conversation. BudgetFitter a little every turn costs more than never cutting: each cut makes the provider's
    prompt cache miss everything behind it.
    """

    keep_task: bool = True
    step: int | None = None

    __repr__ = bounded_repr


@dataclass(frozen=True)
class ClearResults(CutStrategy):
    """Put a note of what it was, and its size, in the place of old tool results; their calls stay.

    `keep` newest exchanges are left alone, and so are pins and results shorter than `characters`.
    """

    keep: int = 3
    characters: int = 200
    step: int | None = None

    __repr__ = bounded_repr

    def __post_init__(self) -> None:
        check_number("step", self.step)
        check_number("keep", self.keep)
        check_number("characters", self.characters)

    def order(self, units: Units) -> Sequence[int]:
        """All exchanges that may be cleared, from the oldest on."""
        spared, recent = self.protected(units), self.recent(units)
        return [number for number in _exchanges(units) if number not in spared and number < recent]

    def recent(self, units: Units) -> int:
        """The first of the exchanges that are left alone."""
        return _nth_last(_exchanges(units), self.keep, units)

    def edit(self, unit: tuple[Msg, ...], newest: bool = False) -> Sequence[Msg]:
        """The exchange with notes in the place of its results."""
        return [_remembered(self, msg, _cleared) if msg.features & Feature.RESULT else msg for msg in unit]


@dataclass(frozen=True)
class ShrinkResults(CutStrategy):
    """Keep the head and the tail of long tool results, the oldest first, the newest result of all never.

    `characters` are kept of each text, half of them at either end. Put it behind `Stepped()` for conversations
    whose newest exchange alone may be over the budget.
    """

    characters: int = 2_000
    step: int | None = 0
    repeats: bool = True

    __repr__ = bounded_repr

    def __post_init__(self) -> None:
        check_number("step", self.step)
        check_number("characters", self.characters)

    def protected(self, units: Units) -> set[int]:
        """The system prompt and pins: the newest exchange may be shrunk, but for its last result."""
        return {*range(units.system), *units.pinned}

    def order(self, units: Units) -> Sequence[int]:
        """Every exchange as often as it has portions of results to shrink."""
        spared, newest = self.protected(units), len(units) - 1
        return [
            number
            for number, start in enumerate(units.starts)
            if units.msgs[start].features & Feature.CALL and number not in spared
            for _ in range(self._portions(units.unit(number), number == newest))
        ]

    def _portions(self, unit: Sequence[Msg], newest: bool) -> int:
        return -(-len(_shrinkable(unit, newest, self.characters)) // _portion(unit))

    def edit(self, unit: tuple[Msg, ...], newest: bool = False) -> Sequence[Msg]:
        """The exchange with its next portion of results shrunk."""
        places = _shrinkable(unit, newest, self.characters)[: _portion(unit)]
        changed: dict[int, set[int]] = {}
        for at, number in places:
            changed.setdefault(at, set()).add(number)
        return [
            build_part(
                msg,
                tuple(_shrunk(b, self.characters) if k in changed[at] else b for k, b in enumerate(msg.blocks)),
                msg.role,
            )
            if at in changed
            else msg
            for at, msg in enumerate(unit)
        ]


@dataclass(frozen=True)
class DropMedia(CutStrategy):
    """Put a short sentence in the place of old media, in messages and in tool results.

    The `keep` newest messages that hold media are left alone, and so are pins and the newest unit.
    """

    keep: int = 1
    step: int | None = None

    __repr__ = bounded_repr

    def __post_init__(self) -> None:
        check_number("step", self.step)
        check_number("keep", self.keep)

    def order(self, units: Units) -> Sequence[int]:
        """All units with media, from the oldest on."""
        spared, recent = self.protected(units), self.recent(units)
        return [number for number in _holding_media(units) if number not in spared and number < recent]

    def recent(self, units: Units) -> int:
        """The first of the units whose media are left alone."""
        return _nth_last(_holding_media(units), self.keep, units)

    def edit(self, unit: tuple[Msg, ...], newest: bool = False) -> Sequence[Msg]:
        """The unit with sentences in the place of its media."""
        mask = Feature.MEDIA | Feature.RESULT_MEDIA
        return [_remembered(self, msg, _without_media) if msg.features & mask else msg for msg in unit]


def check_number(option: str, given: int | None) -> None:
    """Raises OptionError for what is no number of 0 or more; a step may be None."""
    if (given is None and option == "step") or (type(given) is int and given >= 0):
        return
    raise OptionError(f"strategy.{option}", f"{given!r} is no whole number", "Give 0 or more.")


def _exchanges(units: Units) -> list[int]:
    return [at for at, start in enumerate(units.starts) if units.msgs[start].features & Feature.CALL]


def _holding_media(units: Units) -> list[int]:
    mask = Feature.MEDIA | Feature.RESULT_MEDIA
    return [at for at in range(len(units)) if any(msg.features & mask for msg in units.unit(at))]


def _nth_last(found: Sequence[int], keep: int, units: Units) -> int:
    """The first of the last `keep` units found; the newest unit if none are kept, the first if all are."""
    newest = len(units) - 1
    if not keep or not found:
        return newest
    return min(found[-keep], newest) if keep <= len(found) else 0


# -- what is left of a message --------------------------------------------------------------------------------


def _remembered(strategy: _Strategy, msg: Msg, edit: Callable[[_Strategy, Block], Block]) -> Msg:
    """The edited message, made once in the message's life: what is known of it travels with it too."""
    key = (edit, strategy)
    found = get_cached(msg, key)
    if found is None:
        blocks = tuple(edit(strategy, block) for block in msg.blocks)
        same = all(new is old for new, old in zip(blocks, msg.blocks, strict=True))
        found = set_cached(msg, key, "the same" if same else build_part(msg, blocks, msg.role))
    return found if isinstance(found, Msg) else msg


def _cleared(strategy: ClearResults, block: Block) -> Block:
    """A note of what a result was, and its size."""
    if not isinstance(block, ToolResultBlock) or _length(block) <= strategy.characters:
        return block
    media = Counter(item.type for item in block.items if isinstance(item, MediaBlock))
    sizes = [f"{len(block.text):,} characters", *(f"{number} {kind}" for kind, number in media.items())]
    what = "error message" if block.is_error else "result"
    note = f"(This {what} of {', '.join(sizes)} was cleared to save space. Call the tool again if you need it.)"
    return replace(block, output=note) if len(note) < _length(block) else block


def _length(block: ToolResultBlock) -> int:
    """The characters of a result, where a medium counts as many."""
    return sum(len(item.text) if isinstance(item, TextBlock) else 1_000 for item in block.items)


def _without_media(strategy: DropMedia, block: Block) -> Block:
    if isinstance(block, ToolResultBlock) and not isinstance(block.output, str):
        return replace(block, output=tuple(_left_out(item) for item in block.output))
    return _left_out(block) if isinstance(block, MediaBlock) else block


def _left_out(item: _Item) -> _Item | TextBlock:
    return TextBlock(f"[{item.type} left out to save space]") if isinstance(item, MediaBlock) else item


# -- long results ---------------------------------------------------------------------------------------------

_PORTIONS = 16  # an exchange is shrunk in at most so many edits, however many results it has


def _shrinkable(unit: Sequence[Msg], newest: bool, characters: int) -> list[tuple[int, int]]:
    """Where a unit has results that are too long: message and block, the oldest first."""
    results = [
        (at, number, block)
        for at, msg in enumerate(unit)
        for number, block in enumerate(msg.blocks)
        if isinstance(block, ToolResultBlock)
    ]
    if newest:  # what stands in for results that never came is not the newest
        real = [at for at, (_, _, block) in enumerate(results) if block.output != INTERRUPTED_RESULT]
        results = results[: real[-1]] if real else []
    return [(at, number) for at, number, block in results if _is_long(block, characters)]


def _portion(unit: Sequence[Msg]) -> int:
    """How many results one edit shrinks."""
    results = sum(len(msg.tool_ids) for msg in unit if msg.features & Feature.RESULT)
    return max(1, -(-results // _PORTIONS))


def _is_long(block: ToolResultBlock, characters: int) -> bool:
    return any(_is_long_text(item, characters) for item in block.items)


def _is_long_text(item: ResultItem, characters: int) -> bool:
    return isinstance(item, TextBlock) and len(item.text) > characters + 200  # the mark takes about half of that


def _shrunk(block: Block, characters: int) -> Block:
    """A result with the middle of each long text left out."""
    if not isinstance(block, ToolResultBlock):
        return block
    if isinstance(block.output, str):
        return replace(block, output=_middle_out(block.output, characters))
    return replace(
        block,
        output=tuple(
            replace(item, text=_middle_out(item.text, characters))
            if isinstance(item, TextBlock) and _is_long_text(item, characters)
            else item
            for item in block.output
        ),
    )


def _middle_out(text: str, characters: int) -> str:
    mark = (
        f"({len(text) - characters:,} characters left out here to save space; the same call gives the same again.)"
    )
    return head_and_tail(text, characters, mark)


def head_and_tail(text: str, characters: int, mark: str) -> str:
    """So many characters of a text, from either end, with a mark on a line of its own between them."""
    return f"{text[: characters - characters // 2]}\n{mark}\n{text[len(text) - characters // 2 :]}"
