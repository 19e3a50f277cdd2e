"""Rows with a chosen and a rejected conversation, for training on preferences."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import takewhile
from typing import Any, Final, cast

from agentkit.messages.message import Msg
from agentkit.training.rows.chat_message_reader import ChatMessageReader
from agentkit.training.rows.chat_message_writer import ChatMessageWriter
from agentkit.training.rows.content_reader import IMAGE_COLUMNS, ContentReader
from agentkit.training.rows.loss_log import LossLog
from agentkit.training.rows.row_format import RowFormat, create_format_error, split_columns
from agentkit.training.rows.row_tools import TOOL_COLUMNS, dump_tools_column, read_tools
from agentkit.training.rows.row_values import check_object, refuse
from agentkit.training.sample import MessageWeight, Sample, is_reply

__all__ = ["PREFERENCE", "read_preference", "write_preference"]

_COLUMNS: Final = ("prompt", "chosen", "rejected", *TOOL_COLUMNS, *IMAGE_COLUMNS)
_OPENAI: Final = ("input", "preferred_output", "non_preferred_output")


def read_preference(row: dict[str, Any]) -> Sample:
    """Returns the sample of a row with the columns `chosen` and `rejected`, and optionally `prompt`.

    Each column contains a list of messages or a text. Also reads rows of OpenAI's preference fine-tuning, with the
    columns `input`, `preferred_output` and `non_preferred_output`.

    Weights of the chosen conversation become the weights of the sample. A sample has no weights of rejected
    messages. The weight of a rejected message is therefore the value `weight` in the metadata of this message.

    Raises:
        MessageError: The row is invalid.
    """
    if row.get("preferred_output") is not None and row.get("chosen") is None:
        row = _convert_openai(row)
    chosen, weights = _read_conversation(row, "chosen")
    rejected = [
        msg if weight is None else replace(msg, metadata={**(msg.metadata or {}), "weight": weight})
        for msg, weight in zip(*_read_conversation(row, "rejected"), strict=True)
    ]
    extra = split_columns(row, _COLUMNS)
    return Sample(chosen, read_tools(row), cast("Any", weights), rejected=rejected, extra=extra)


def _convert_openai(row: dict[str, Any]) -> dict[str, Any]:
    """Converts a row of OpenAI's preference fine-tuning to the columns `prompt`, `chosen` and `rejected`."""
    request = check_object(row.get("input"), "input")
    others = {key: value for key, value in request.items() if key != "messages"}
    extra = {key: value for key, value in row.items() if key not in _OPENAI and value is not None}
    chosen, rejected = row.get("preferred_output"), row.get("non_preferred_output")
    columns = {"prompt": request.get("messages"), "chosen": chosen, "rejected": rejected}
    repeated = (others.keys() & extra.keys()) | (columns.keys() & (others.keys() | extra.keys()))
    if repeated:
        refuse("row", f"the row has two columns {min(repeated)!r}, one of them in `input`")
    return {**extra, **others, **columns}


def _read_conversation(row: Mapping[str, Any], key: str) -> tuple[list[Msg], list[MessageWeight]]:
    reader = ChatMessageReader(ContentReader.from_row(row))
    if row.get(key) is None or row[key] == []:
        refuse(key, "the row has no conversation in this column")
    prompt = reader.read_column(row, "prompt", "user")
    msgs, weights = reader.read_column(row, key, "assistant"), reader.weights
    if _is_repeated(prompt, msgs, row.get("prompt")):
        weights = weights[len(prompt) :]
    else:
        msgs = [*prompt, *msgs]
    return reader.content.place_images(msgs), weights


def _is_repeated(prompt: list[Msg], msgs: list[Msg], text: object) -> bool:
    """Returns True if a conversation begins with the prompt.

    In some data sets, such as UltraFeedback, both conversations repeat a prompt that is a text. A system message
    can then precede the prompt.
    """
    if isinstance(text, str):
        beginning = takewhile(lambda msg: not is_reply(msg), msgs)
        return any(msg.role == "user" and msg.text == text for msg in beginning)
    return msgs[: len(prompt)] == prompt


def write_preference(sample: Sample, losses: LossLog) -> dict[str, Any]:
    """Returns a row with the columns `chosen` and `rejected`, both with the whole conversation.

    Raises:
        MessageError: The sample has no rejected conversation.
    """
    if not sample.rejected:
        raise create_format_error(losses.format, "rejected", "the sample has no rejected conversation")
    losses.note_fields(sample, "weights", "tokens")
    writer = ChatMessageWriter(losses, text_arguments=False, has_openai_fields=False)
    row: dict[str, Any] = {
        "chosen": writer.write_all(sample.msgs, "msgs"),
        "rejected": writer.write_all(sample.rejected, "rejected"),
    }
    return {**row, **dump_tools_column(sample, as_text=True), **sample.extra}


PREFERENCE: Final = RowFormat(_COLUMNS, read_preference, write_preference)
"""Rows of torchtune and trl with `chosen` and `rejected`."""
