"""Rows of ShareGPT. The column `conversations` is a list of turns with the keys `from` and `value`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final, cast

from agentkit.errors import MessageError
from agentkit.messages.blocks import Block, ImageBlock, TextBlock, ToolUseBlock
from agentkit.messages.features import Feature
from agentkit.messages.message import Msg
from agentkit.reprs import shorten_repr
from agentkit.tools.error_marks import write_output
from agentkit.training.rows.chat_message_reader import WEIGHT_KEYS, ChatMessageReader, build_msg, read_weight
from agentkit.training.rows.chat_message_writer import write_url
from agentkit.training.rows.content_reader import IMAGE_COLUMNS, ContentReader
from agentkit.training.rows.loss_log import LossLog
from agentkit.training.rows.row_format import RowFormat, create_format_error, split_columns
from agentkit.training.rows.row_tools import TOOL_COLUMNS, dump_tools, read_tools
from agentkit.training.rows.row_values import check_object, get_list, get_text, parse_if_text, refuse
from agentkit.training.sample import MessageWeight, Sample, build_trusted_sample

__all__ = ["SHAREGPT", "read_sharegpt"]

_COLUMNS: Final = ("conversations", "system", *TOOL_COLUMNS, *IMAGE_COLUMNS)
_USER: Final = ("human", "user")
_REPLY: Final = ("gpt", "assistant", "chatgpt", "bing", "bard")
_RESULT: Final = ("observation", "tool", "tool_response", "function_response")
_SPEAKERS: Final = {"user": "human", "assistant": "gpt", "system": "system"}
_ENCODER: Final = json.JSONEncoder(ensure_ascii=False)
"""Encoder of tool calls. `json.dumps` would create an encoder for each call."""
_IMAGE: Final = "<image>"
"""Text that stands for the next image of the row."""


def read_sharegpt(row: dict[str, Any]) -> Sample:
    """Returns the sample of a row.

    The key `from` of a turn names the speaker: `human`, `gpt` or `system`. As in LLaMA-Factory, a turn from
    `function_call` has tool calls as JSON text, and a turn from `observation` has a tool result. The columns
    `system` and `tools` are optional.

    Raises:
        MessageError: The row is invalid.
    """
    turns = get_list(row, "conversations", "")
    if not turns:
        refuse("conversations", "the row has no turns")
    # the calls are JSON text, to which the package `datasets` adds no keys with None
    reader = _TurnReader(ChatMessageReader(ContentReader.from_row(row), keeps_none=True))
    msgs = [reader.read(turn, f"conversations[{index}]") for index, turn in enumerate(turns)]
    weights: list[MessageWeight] = reader.weights
    msgs = reader.messages.content.place_images(msgs)
    prompt = get_text(row, "system", "")
    extra = split_columns(row, _COLUMNS)
    if prompt and any(msg.features & Feature.SYSTEM for msg in msgs):
        extra["system"] = prompt  # as in LLaMA-Factory, system turns override the column
    elif prompt:
        msgs, weights = [Msg("system", prompt, "system"), *msgs], [None, *weights]
    return build_trusted_sample(tuple(msgs), read_tools(row), weights, extra)


class _TurnReader:
    """Reader for the turns of one row."""

    def __init__(self, messages: ChatMessageReader) -> None:
        self.messages = messages
        self.weights: list[MessageWeight] = []

    def read(self, value: object, place: str) -> Msg:
        turn = check_object(value, place)
        names = ("from" if "from" in turn else "role", "value" if "value" in turn else "content")
        speaker, text = turn.get(names[0]), get_text(turn, names[1], place)
        if turn.get(names[1]) is None:
            refuse(f"{place}.{names[1]}", "the turn has no text")
        self.weights.append(read_weight(turn, place))
        keys = {*names, *WEIGHT_KEYS}
        if speaker in _REPLY:
            return build_msg("assistant", text, "assistant", turn, keys, place)
        if speaker == "system":
            return build_msg("system", text, "system", turn, keys, place)
        if speaker in _USER:
            content = text if _IMAGE not in text else tuple(self._split_at_images(text, place))
            return build_msg("user", content, "user", turn, keys, place)
        if speaker == "function_call":
            return build_msg("assistant", tuple(self._read_calls(text, place)), "assistant", turn, keys, place)
        if speaker in _RESULT:
            result = self.messages.add_result("", "", text, place)
            return build_msg("tool", (result,), "system", turn, keys, place)
        reason = f"expected a speaker such as 'human' or 'gpt', got {shorten_repr(speaker, 60)}"
        return refuse(f"{place}.from", reason)

    def _read_calls(self, text: str, place: str) -> Iterator[ToolUseBlock]:
        value: object = parse_if_text(text, f"{place}.value")
        if value == []:
            refuse(f"{place}.value", "the turn has no tool calls")
        for item in cast("list[object]", value) if isinstance(value, list) else [value]:
            yield self.messages.read_call(item, f"{place}.value")

    def _split_at_images(self, text: str, place: str) -> list[Block]:
        blocks: list[Block] = []
        for index, piece in enumerate(text.split(_IMAGE)):
            if index:
                blocks.append(self.messages.content.read_image(None, place))
            if piece:
                blocks.append(TextBlock(piece))
        return blocks


# -- writing -----------------------------------------------------------------------------------------------------


def _write(sample: Sample, losses: LossLog) -> dict[str, Any]:
    losses.note_fields(sample, "tokens", "rejected")
    if any(msg.features & Feature.TOOL for msg in sample.msgs):
        losses.note_tool_names(sample.msgs)
        _note_results(sample, losses)
    images: list[str] = []
    turns = [turn for index in range(len(sample.msgs)) for turn in _write_message(sample, index, losses, images)]
    row: dict[str, Any] = {"conversations": turns}
    if sample.tools:
        nested = {"type": "function"}  # a tool without further keys is written without this object
        tools = [
            tool["function"] if tool == {**nested, "function": tool["function"]} else tool
            for tool in dump_tools(sample)
        ]
        row["tools"] = json.dumps(tools, ensure_ascii=False)
    if images:
        row["images"] = images
    return {**row, **sample.extra}


def _write_message(sample: Sample, index: int, losses: LossLog, images: list[str]) -> list[dict[str, Any]]:
    msg, weight = sample.msgs[index], sample.get_weight(index)
    content = msg.content
    place = f"msgs[{index}]"
    if not msg.features & Feature.RESULT:
        losses.note_name(msg, sample.viewer, place)
        if isinstance(content, str) and weight is None and _IMAGE not in content:  # fast path
            return [{"from": _SPEAKERS[msg.role], "value": content}]
    else:
        losses.note_results(msg, weight, place)
        return [
            {"from": "observation", "value": _write_result(block, losses, place)} for block in msg.tool_results
        ]
    losses.note_refusal(msg, place)
    turns: list[dict[str, Any]] = []
    text = _write_blocks(msg, losses, place, images)
    calls = [{"name": call.name, "arguments": call.copy_input()} for call in msg.tool_uses]
    if text or not calls:
        turns.append({"from": "gpt" if calls else _SPEAKERS[msg.role], "value": text})
    if calls:
        _note_calls(msg, losses, place)
        value = _ENCODER.encode(calls[0] if len(calls) == 1 else calls)
        turns.append({"from": "function_call", "value": value})
    if isinstance(weight, tuple):
        losses.note_weight(weight, place)
    elif weight is not None:
        turns = [{**turn, "weight": weight} for turn in turns]
    return turns


def _note_calls(msg: Msg, losses: LossLog, place: str) -> None:
    if len(msg.tool_uses) < len(msg.blocks):
        losses.add(place, "a reader returns the tool calls as a separate message")
    losses.note_role_of_calls(msg, place)
    for call in msg.tool_uses:
        losses.note_call(call, place, is_text=True)


def _write_blocks(msg: Msg, losses: LossLog, place: str, images: list[str]) -> str:
    pieces: list[str] = []
    is_user = msg.role == "user" and not msg.tool_uses
    for index, block in enumerate(msg.blocks):
        block_place = f"{place}.content[{index}]"
        if isinstance(block, TextBlock):
            if index and isinstance(msg.blocks[index - 1], TextBlock):
                losses.add(block_place, "the format joins adjacent text blocks into one text")
            elif not block.text and len(msg.blocks) > 1:
                losses.note_empty_text(block_place)
            pieces.append(block.text)
            if _IMAGE in block.text and is_user:
                reason = f"in a user turn, the text {_IMAGE!r} stands for an image"
                raise create_format_error(losses.format, block_place, reason)
        elif isinstance(block, ImageBlock) and is_user:
            losses.note_source(block.source, place)
            images.append(write_url(block.source))
            pieces.append(_IMAGE)
        elif not isinstance(block, ToolUseBlock):
            losses.add_block(block, block_place)
    return "".join(pieces)


def _write_result(block: Any, losses: LossLog, place: str) -> str:
    def write_item(item: Block) -> str:
        if isinstance(item, TextBlock):
            return item.text
        losses.add_block(item, place)
        return ""

    losses.note_output(block, place)
    output = write_output(block, write_item)
    return output if isinstance(output, str) else "\n".join(filter(None, output))


def _note_results(sample: Sample, losses: LossLog) -> None:
    """Adds a loss for each repeated call id, and for each result that a reader would assign to a wrong tool call.

    The format has no call ids. A reader assigns the results to the open tool calls in order.

    Raises:
        MessageError: There is no open tool call before a result.
    """
    opened: list[str] = []
    ids: set[str] = set()
    for index, msg in enumerate(sample.msgs):
        if not msg.features & Feature.TOOL:
            continue
        for call in () if msg.tool_results else msg.tool_uses:  # calls in a message with results are omitted
            if call.id in ids:
                losses.add(
                    f"msgs[{index}]", f"the format has no call ids, and two tool calls have the id {call.id!r}"
                )
            ids.add(call.id)
            opened.append(call.id)
        for block in msg.tool_results:
            expected = opened.pop(0) if opened else None
            if expected is None:
                raise MessageError(
                    f"msgs[{index}]", "there is no open tool call before the result", "Remove the result."
                )
            if block.id != expected:
                reason = "the format has no call ids, and the results are not in the order of the calls"
                losses.add(f"msgs[{index}]", reason)


SHAREGPT: Final = RowFormat(_COLUMNS, read_sharegpt, _write)
"""Rows of ShareGPT, FastChat, LLaMA-Factory and axolotl."""
