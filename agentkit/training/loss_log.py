"""`LossLog`: collects the content of a sample that a row cannot contain."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from agentkit.messages.blocks import Block, ToolUseBlock
from agentkit.messages.message import Msg
from agentkit.training.row_values import has_none
from agentkit.training.sample import MessageWeight, Sample

__all__ = ["LossLog"]

_NAMES_OF_ROLES: Final = ("system", "user", "assistant", "tool")


@dataclass
class LossLog:
    """Log of the content of one sample that a row cannot contain.

    Attributes:
        format: Name of the format.
        losses: Place and reason of each loss.
    """

    format: str
    losses: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])

    def add(self, place: str, reason: str) -> None:
        """Adds a loss."""
        self.losses.append((place, reason))

    def add_block(self, block: Block, place: str) -> None:
        """Adds the loss of a block."""
        self.add(place, f"the format has no block of type {block.type}")

    def add_block_weights(self, place: str) -> None:
        """Adds the loss of weights of single blocks."""
        self.add(place, "the format has no weights of blocks")

    def check_arguments(self, call: ToolUseBlock, place: str) -> None:
        """Adds a loss if an argument of a tool call is None, and the format has arguments as an object."""
        if has_none(call.input):
            self.add(place, "a reader cannot distinguish an argument None from a missing argument")

    def check_names(self, msgs: Iterable[Msg], viewer: str | None, place: str = "msgs") -> None:
        """Adds a loss for each name of a speaker other than the viewer."""
        for index, msg in enumerate(msgs):
            if msg.name not in ("", viewer, *_NAMES_OF_ROLES):
                self.add(f"{place}[{index}].name", f"the format has no field for the name {msg.name!r}")

    def check_results(self, msg: Msg, weight: MessageWeight, place: str) -> None:
        """Adds a loss for each block other than a tool result, and for a weight that trains the results."""
        for index, block in enumerate(msg.blocks):
            if block.type != "tool_result":
                self.add(f"{place}.content[{index}]", "the format has no content beside tool results")
        if weight:
            self.add(place, "the format trains no tool results")

    def check_fields(self, sample: Sample, *supported: str) -> None:
        """Adds a loss for each field of a sample that has a value and that the format does not support."""
        for name in ("tools", "weights", "tokens", "rejected", "extra"):
            if name not in supported and getattr(sample, name):
                self.add(name, f"the format has no field for {name}")
