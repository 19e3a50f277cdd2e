"""`ClearResults` and `ShrinkResults`: cut strategies that replace or shorten long tool results."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace

from agentkit.budget.strategies import CutStrategy, check_number, edit_once, find_newest, shorten_middle
from agentkit.budget.units import UnitNumber, Units
from agentkit.messages.blocks import Block, MediaBlock, ResultItem, TextBlock, ToolResultBlock
from agentkit.messages.features import Feature
from agentkit.messages.message import Msg, build_part
from agentkit.repair.pairing import INTERRUPTED_RESULT
from agentkit.reprs import bounded_repr

__all__ = ["ClearResults", "ShrinkResults"]

_MEDIA_LENGTH = 1_000  # assumed length of a media item in characters, because a media item has no text
_MAX_PORTIONS = 16  # maximum number of edits that shrink the tool results of one assistant turn
# A text is shrunk only if more than this number of characters can be removed.
# The inserted note has about 100 characters, so a smaller removal would hardly shorten the text.
_MARK_LENGTH = 200


@dataclass(frozen=True)
class ClearResults(CutStrategy):
    """Cut strategy that replaces each long, old tool result with a note about its size. The tool calls remain.

    Pinned messages and the newest message keep their results.

    Attributes:
        keep: Number of assistant turns that keep their tool results, counted from the newest turn with tool calls.
        characters: Length limit in characters. Only tool results above this limit are replaced. A media item in a
            tool result counts as 1,000 characters.
        step: Distance in tokens between the points of the history at which a cut may end. See `CutStrategy.step`.
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
        """Returns the indexes of the units whose tool results may be replaced, the oldest unit first."""
        protected, recent = self.protected(units), self.recent(units)
        return [number for number in _find_exchanges(units) if number not in protected and number < recent]

    def recent(self, units: Units) -> int:
        """Returns the index of the oldest unit that is new enough to keep its tool results."""
        return find_newest(_find_exchanges(units), self.keep, units)

    def edit(self, unit: tuple[Msg, ...], newest: bool = False) -> Sequence[Msg]:
        """Returns the messages of a unit with a short note in place of each long tool result."""
        return [edit_once(self, msg, _clear) if msg.features & Feature.RESULT else msg for msg in unit]


def _find_exchanges(units: Units) -> list[UnitNumber]:
    return [number for number in units.numbers if units.msgs[units.starts[number]].features & Feature.CALL]


def _clear(strategy: ClearResults, block: Block) -> Block:
    """Replaces the output of a long tool result with a note about its size. Returns any other block unchanged."""
    if not isinstance(block, ToolResultBlock) or _length(block) <= strategy.characters:
        return block
    media = Counter(item.type for item in block.items if isinstance(item, MediaBlock))
    sizes = [f"{len(block.text):,} characters", *(f"{number} {kind}" for kind, number in media.items())]
    noun = "error message" if block.is_error else "result"
    note = f"(This {noun} of {', '.join(sizes)} was cleared to save space. Call the tool again if you need it.)"
    return replace(block, output=note) if len(note) < _length(block) else block


def _length(block: ToolResultBlock) -> int:
    return sum(len(item.text) if isinstance(item, TextBlock) else _MEDIA_LENGTH for item in block.items)


@dataclass(frozen=True)
class ShrinkResults(CutStrategy):
    """Cut strategy that removes the middle of long tool results, the oldest first.

    The newest tool result of the conversation remains complete. Use this strategy after `OldestFirstInSteps()` if
    the newest tool calls and their results alone may exceed the budget.

    Attributes:
        characters: Number of characters that remain of a long text: half from the start and half from the end.
        step: Distance in tokens between the points of the history at which a cut may end. See `CutStrategy.step`.
        repeats: True, because several edits may shrink the tool results of one assistant turn.
    """

    characters: int = 2_000
    step: int | None = 0
    repeats: bool = True

    __repr__ = bounded_repr

    def __post_init__(self) -> None:
        check_number("step", self.step)
        check_number("characters", self.characters)

    def protected(self, units: Units) -> AbstractSet[int]:
        """Returns the indexes of the units that must not change: the system prompt and the pinned units.

        The newest unit may change, but `edit` keeps the newest tool result complete.
        """
        return {*units.numbers[: units.system], *units.pinned}

    def order(self, units: Units) -> Sequence[int]:
        """Returns the indexes of the units to shrink, the oldest first.

        A unit with many long results appears several times, because each edit shrinks only some of its results.
        """
        protected, newest = self.protected(units), len(units) - 1
        return [
            number
            for number in _find_exchanges(units)
            if number not in protected
            for _ in range(self._portion_count(units.unit(number), number == newest))
        ]

    def _portion_count(self, unit: Sequence[Msg], newest: bool) -> int:
        return -(-len(_find_long_results(unit, newest, self.characters)) // _portion_size(unit))

    def edit(self, unit: tuple[Msg, ...], newest: bool = False) -> Sequence[Msg]:
        """Returns the messages of a unit without the middle of some long tool results.

        Each call of this method shrinks a limited number of the results that are still long, the oldest first.
        """
        portion = _find_long_results(unit, newest, self.characters)[: _portion_size(unit)]
        changed: dict[int, set[int]] = {}
        for msg_index, block_index in portion:
            changed.setdefault(msg_index, set()).add(block_index)
        return [
            _shrink_blocks(msg, changed[index], self.characters) if index in changed else msg
            for index, msg in enumerate(unit)
        ]


def _find_long_results(unit: Sequence[Msg], newest: bool, characters: int) -> list[tuple[int, int]]:
    """Returns a pair (message index, block index) for each long tool result of a unit, the oldest first.

    If `newest` is True, the result that a tool returned last is not included.
    """
    results = [
        (msg_index, block_index, block)
        for msg_index, msg in enumerate(unit)
        for block_index, block in enumerate(msg.blocks)
        if isinstance(block, ToolResultBlock)
    ]
    if newest:
        # The newest result that a tool returned stays complete.
        # Error results that agentkit added for interrupted tool calls are ignored, because no tool returned them.
        real = [index for index, (*_, block) in enumerate(results) if block.output != INTERRUPTED_RESULT]
        results = results[: real[-1]] if real else []
    return [(msg_index, block_index) for msg_index, block_index, block in results if _is_long(block, characters)]


def _portion_size(unit: Sequence[Msg]) -> int:
    """Returns the maximum number of tool results of a unit that one edit shrinks.

    If each edit shrinks this number of results, `_MAX_PORTIONS` edits shrink all tool results of the unit.
    """
    results = sum(len(msg.tool_ids) for msg in unit if msg.features & Feature.RESULT)
    return max(1, -(-results // _MAX_PORTIONS))


def _is_long(block: ToolResultBlock, characters: int) -> bool:
    return any(_is_long_text(item, characters) for item in block.items)


def _is_long_text(item: ResultItem, characters: int) -> bool:
    return isinstance(item, TextBlock) and len(item.text) > characters + _MARK_LENGTH


def _shrink_blocks(msg: Msg, indices: set[int], characters: int) -> Msg:
    blocks = (_shrink(block, characters) if index in indices else block for index, block in enumerate(msg.blocks))
    return build_part(msg, tuple(blocks), msg.role)


def _shrink(block: Block, characters: int) -> Block:
    if not isinstance(block, ToolResultBlock):
        return block
    if isinstance(block.output, str):
        return replace(block, output=_without_middle(block.output, characters))
    return replace(
        block,
        output=tuple(
            replace(item, text=_without_middle(item.text, characters))
            if isinstance(item, TextBlock) and _is_long_text(item, characters)
            else item
            for item in block.output
        ),
    )


def _without_middle(text: str, characters: int) -> str:
    omitted = len(text) - characters
    mark = f"({omitted:,} characters left out here to save space; the same call gives the same again.)"
    return shorten_middle(text, characters, mark)
