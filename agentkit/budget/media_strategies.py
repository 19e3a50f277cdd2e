"""`DropMedia`: a cut strategy that replaces old media with a short sentence."""

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
    """Replaces old media with a short sentence, in messages and in tool results.

    Pinned units and the newest unit keep their media.

    Attributes:
        keep: Number of newest units with media that keep them.
        step: Distance of the cut grid in tokens: see CutStrategy.

    """

    keep: int = 1
    step: int | None = None

    __repr__ = bounded_repr

    def __post_init__(self) -> None:
        check_number("step", self.step)
        check_number("keep", self.keep)

    def order(self, units: Units) -> Sequence[int]:
        """Returns the units whose media may be replaced, the oldest first."""
        protected, recent = self.protected(units), self.recent(units)
        return [number for number in _find_media(units) if number not in protected and number < recent]

    def recent(self, units: Units) -> int:
        """Returns the first of the newest units that keep their media."""
        return find_newest(_find_media(units), self.keep, units)

    def edit(self, unit: tuple[Msg, ...], newest: bool = False) -> Sequence[Msg]:
        """Returns the unit with a sentence in place of each media block."""
        return [edit_once(self, msg, _replace_media) if msg.features & _MEDIA else msg for msg in unit]


def _find_media(units: Units) -> list[UnitNumber]:
    """Returns the units that have media."""
    return [number for number in units.numbers if any(msg.features & _MEDIA for msg in units.unit(number))]


def _replace_media(_: DropMedia, block: Block) -> Block:
    if isinstance(block, ToolResultBlock) and not isinstance(block.output, str):
        return replace(block, output=tuple(_describe(item) for item in block.output))
    return _describe(block) if isinstance(block, MediaBlock) else block


def _describe(item: _Item) -> _Item | TextBlock:
    return TextBlock(f"[{item.type} left out to save space]") if isinstance(item, MediaBlock) else item
