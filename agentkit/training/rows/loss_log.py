"""`LossLog`: collects the content of a sample that a row cannot contain."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from agentkit.errors import MessageError
from agentkit.messages.blocks import Block, TextBlock, ToolResultBlock, ToolUseBlock
from agentkit.messages.features import Feature
from agentkit.messages.message import Msg
from agentkit.messages.sources import Source, URLSource
from agentkit.tools.error_marks import ERROR_MARK, split_error_mark
from agentkit.training.rows.content_reader import is_refusal
from agentkit.training.rows.row_values import has_none
from agentkit.training.sample import MessageWeight, Sample, is_reply

__all__ = ["LossLog"]

_POSITIONS: Final = {"thinking": 0, "tool_use": 2}
"""Order of blocks in a row: thinking (0), other blocks such as texts and media (1), tool calls (2)."""
_SEPARATED: Final = Feature.THINKING | Feature.CALL | Feature.RESULT
_SEPARATE_TYPES: Final = frozenset({*_POSITIONS, "tool_result"})
"""Types of the blocks that a row stores outside of its field for the content."""


@dataclass(slots=True)
class LossLog:
    """Log of the content of a sample that a row cannot contain.

    Attributes:
        format: Name of the format of the row.
        losses: Place and reason of each loss.
        omitted: Maps the place of a message to the number of its omitted blocks.
    """

    format: str
    losses: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    omitted: Counter[str] = field(default_factory=Counter[str])

    def pop_losses(self) -> list[tuple[str, str]]:
        """Returns the losses, and removes them from the log."""
        losses, self.losses = self.losses, []
        self.omitted.clear()
        return losses

    def add(self, place: str, reason: str) -> None:
        """Adds a loss, with the place and the reason."""
        self.losses.append((place, reason))

    def add_block(self, block: Block, place: str) -> None:
        """Adds a loss for a block whose type the format does not have."""
        self.add(place, f"the format has no block of type {block.type}")
        self.omitted[place.partition(".")[0]] += 1

    def check_trained(self, sample: Sample) -> None:
        """Checks that no trained reply lost all its content, because the row would train an empty reply.

        Raises:
            MessageError: All blocks of a trained reply were omitted, except blank texts.
        """
        trained = [
            ("msgs", index, sample.msgs[index]) for index in sample.replies if sample.get_weight(index) != 0
        ]
        trained += [("rejected", index, msg) for index, msg in enumerate(sample.rejected) if is_reply(msg)]
        for name, index, msg in trained:
            place = f"{name}[{index}]"
            blocks = [block for block in msg.blocks if not (isinstance(block, TextBlock) and block.text.isspace())]
            if 0 < self.omitted[place] >= sum(block != _EMPTY_TEXT for block in blocks):
                reason = f"the format {self.format!r} has no field for the content of the trained reply"
                raise MessageError(place, reason, "Use another format, or remove the reply.")

    def note_weight(
        self, weight: MessageWeight, place: str, *, can_have_weight: bool = False, has_weights: bool = False
    ) -> None:
        """Adds a loss if the format has no field for the weight of a message.

        Args:
            weight: Weight of a message.
            place: Place of the message.
            can_have_weight: True if the message is a reply in the row.
            has_weights: True if the format has weights of replies. Other formats train all replies.
        """
        if isinstance(weight, tuple):
            self.add(place, "the format has no weights of blocks")
        elif weight is not None and not can_have_weight:
            self.add(place, f"the message is not a reply, so the format has no field for its weight {weight}")
        elif weight == 0 and not has_weights:
            self.add(place, "the format has no weights, so the reply will be trained")

    def note_name(self, msg: Msg, viewer: str | None, place: str) -> None:
        """Adds a loss for the speaker name of a message, for formats without speaker names.

        There is no loss if the name is the role of the message, or is `viewer`.
        """
        if msg.name not in (msg.role, viewer):
            self.add(f"{place}.name", f"the format has no field for the name {msg.name!r}")

    def note_reply(self, msg: Msg, place: str) -> None:
        """Adds the losses of the blocks of a message, for formats that separate thinking, content and tool calls.

        A reader of such a format returns thinking, content and tool calls in this order. The reader expects
        thinking and tool calls only in replies.
        """
        features = msg.features
        if not features & _SEPARATED:  # all blocks are in the field for the content
            return
        last = -1
        blocks = msg.blocks
        is_blank = features & Feature.BLANK
        has_one_part = is_blank and sum(block.type not in _SEPARATE_TYPES for block in blocks) == 1 < len(blocks)
        is_assistant = msg.role == "assistant"
        can_have_thinking = is_assistant or features & Feature.CALL
        for index, block in enumerate(blocks):
            if block.type == "tool_result":
                continue
            position = _POSITIONS.get(block.type, 1)
            if position < last or position == last == 0:
                reason = (
                    "the order of the blocks changes: the format has one thinking text first and tool calls last"
                )
                self.add(f"{place}.content[{index}]", reason)
            last = max(position, last)
            if block.type == "thinking" and not (block.thinking and can_have_thinking):
                reason = "has thinking only in replies" if block.thinking else "cannot represent empty thinking"
                self.add(f"{place}.content[{index}]", f"the format {reason}")
            elif has_one_part and block == _EMPTY_TEXT:
                self.note_empty_text(f"{place}.content[{index}]")
        if not is_assistant:
            self.note_role_of_calls(msg, place)

    def note_empty_text(self, place: str) -> None:
        """Adds a loss for an empty text block in a message with other blocks."""
        self.add(place, "the format cannot represent an empty text block in a message with other blocks")

    def note_role_of_calls(self, msg: Msg, place: str) -> None:
        """Adds a loss for tool calls in a message whose role is not `assistant`."""
        if msg.features & Feature.CALL and msg.role != "assistant":
            self.add(place, f"the format has no tool calls in messages with the role {msg.role!r}")

    def note_refusal(self, msg: Msg, place: str) -> None:
        """Adds a loss for each refusal in a message, for formats that write a refusal as an ordinary text."""
        for index, block in enumerate(msg.blocks):
            if is_refusal(block):
                reason = "the format has no field for refusals, so the refusal becomes an ordinary text"
                self.add(f"{place}.content[{index}]", reason)

    def note_call(self, call: ToolUseBlock, place: str, *, is_text: bool = False) -> None:
        """Adds a loss if a tool call changes when the row is loaded again.

        If `is_text` is True, the format stores the arguments as JSON text. Otherwise, the format stores an object.

        Raises:
            MessageError: The tool call has no name or no id.
        """
        if not (call.name and call.id):
            raise _create_empty_error(place, f"the tool call has no {'id' if call.name else 'name'}")
        if call.raw_is_broken:
            self.add(place, "`raw_input` is not the JSON text of `input`, and the format stores only `input`")
        if not is_text and has_none(call.input):
            self.add(place, "a reader treats an argument with the value None as missing")

    def note_tool_names(self, msgs: Iterable[Msg]) -> None:
        """Adds a loss for each tool result whose tool name differs from the name in its tool call.

        This check is for formats whose tool results have no tool name.
        """
        names: dict[str, str] = {}
        for index, msg in enumerate(msgs):
            if msg.features & Feature.TOOL:
                names.update((block.id, block.name) for block in msg.tool_uses)
                for block in msg.tool_results:
                    if names.pop(block.id, "") != block.name != "":
                        self.add(
                            f"msgs[{index}]",
                            f"the format has no field for the tool name {block.name!r} of a result",
                        )

    def note_output(self, result: ToolResultBlock, place: str) -> None:
        """Adds a loss if the output of a tool result changes when the row is loaded again.

        Raises:
            MessageError: The result has no id.
        """
        if not result.id:
            raise _create_empty_error(place, "the tool result has no id")
        output = result.output
        if not isinstance(output, str):
            texts = [item for item in output if isinstance(item, TextBlock)]
            if len(texts) == len(output) > 1:
                self.add(place, "the format joins the text blocks of a tool result into one text")
            elif len(texts) < len(output) and result.is_error:
                self.add(place, "the format can mark a result as an error only if the output has no media")
        text = output if isinstance(output, str) else result.listing
        if text.startswith(ERROR_MARK) and not result.is_error and split_error_mark(text)[1]:
            self.add(place, "a reader treats the result as an error, because its text starts with [error]")

    def note_source(self, source: Source, place: str) -> None:
        """Adds a loss if a URL has a media type, for formats that store only the URL."""
        if isinstance(source, URLSource) and source.media_type is not None:
            self.add(place, f"the format has no field for the media type {source.media_type!r} of a URL")

    def note_results(self, msg: Msg, weight: MessageWeight, place: str) -> None:
        """Adds losses for the training weight of a message with tool results, and for its other blocks."""
        for index, block in enumerate(msg.blocks):
            if block.type != "tool_result":
                reason = "the format has no field for other content in a message with tool results"
                self.add(f"{place}.content[{index}]", reason)
        self.note_weight(weight, place)

    def note_fields(self, sample: Sample, *unsupported: str) -> None:
        """Adds a loss for each field in `unsupported` that has a value in the sample."""
        for name in unsupported:
            if getattr(sample, name):
                self.add(name, f"the format has no field for `{name}`")


_EMPTY_TEXT: Final = TextBlock("")


def _create_empty_error(place: str, reason: str) -> MessageError:
    return MessageError(place, reason, "Add the missing value, or remove the block.")
