"""`DropMedia`: a cut strategy that replaces old images, audio, videos and documents with a short note."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from agentkit.budget.strategies import CutStrategy, check_number, edit_once, find_newest
from agentkit.budget.units import UnitNumber, Units
from agentkit.messages.blocks import Block, MediaBlock, ResultItem, TextBlock, ToolResultBlock
from agentkit.messages.features import Feature
from agentkit.messages.message import Msg
from agentkit.reprs import bounded_repr

__all__ = ["DropMedia"]

_Item = TypeVar("_Item", Block, ResultItem)

_MEDIA = Feature.MEDIA | Feature.RESULT_MEDIA


@dataclass(frozen=True)
class DropMedia(CutStrategy):
    """Cut strategy that replaces old media in messages and tool results with a short note.

    Pinned messages and the newest message keep their media.

    Attributes:
        keep: Number of units that keep their media, counted from the newest unit with media. A unit is one
            message, or one assistant turn with tool calls and all their results.
        step: Distance in tokens between the points of the history at which a cut may end. See `CutStrategy.step`.
    """

    keep: int = 1
    step: int | None = None

    __repr__ = bounded_repr

    def __post_init__(self) -> None:
        check_number("step", self.step)
        check_number("keep", self.keep)

    def order(self, units: Units) -> Sequence[int]:
        """Returns the indexes of the units whose media may be replaced, the oldest unit first."""
        protected, recent = self.protected(units), self.recent(units)
        return [number for number in _find_media(units) if number not in protected and number < recent]

    def recent(self, units: Units) -> int:
        """Returns the index of the oldest unit that is new enough to keep its media."""
        return find_newest(_find_media(units), self.keep, units)

    def edit(self, unit: tuple[Msg, ...], newest: bool = False) -> Sequence[Msg]:
        """Returns the messages of a unit with a short note in place of each media block."""
        return [edit_once(self, msg, _replace_media) if msg.features & _MEDIA else msg for msg in unit]


def _find_media(units: Units) -> list[UnitNumber]:
    return [number for number in units.numbers if any(msg.features & _MEDIA for msg in units.unit(number))]


def _replace_media(_: DropMedia, block: Block) -> Block:
    if isinstance(block, ToolResultBlock) and not isinstance(block.output, str):
        return replace(block, output=tuple(_describe(item) for item in block.output))
    return _describe(block) if isinstance(block, MediaBlock) else block


def _describe(item: _Item) -> _Item | TextBlock:
    return TextBlock(f"[{item.type} left out to save space]") if isinstance(item, MediaBlock) else item
