"""Rows with a chosen and a rejected conversation, for training on preferences."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from agentkit.messages.message import Msg
from agentkit.training.chat_message_reader import ChatMessageReader
from agentkit.training.chat_message_writer import ChatMessageWriter
from agentkit.training.loss_log import LossLog
from agentkit.training.row_formats import RowFormat, refuse_format, replace_system, split_columns
from agentkit.training.row_tools import dump_tools_column, read_tools
from agentkit.training.row_values import get_object, refuse
from agentkit.training.sample import Sample

__all__ = ["PREFERENCE", "read_preference", "write_preference"]

_COLUMNS: Final = ("prompt", "chosen", "rejected", "tools", "images")
_OPENAI: Final = ("input", "preferred_output", "non_preferred_output")


def read_preference(row: dict[str, Any], system: str | None) -> Sample:
    """Returns the sample of a row with the columns `chosen` and `rejected`, and optionally `prompt`.

    Each column contains a list of messages or a text. Rows of OpenAI's preference fine-tuning are read too. These
    rows have the columns `input`, `preferred_output` and `non_preferred_output`.

    Raises:
        MessageError: The row is invalid.
    """
    if "preferred_output" in row and "chosen" not in row:
        row = _convert_openai(row)
    chosen, rejected = (_read_conversation(row, key, system) for key in ("chosen", "rejected"))
    return Sample(chosen, read_tools(row), rejected=rejected, extra=split_columns(row, _COLUMNS))


def _convert_openai(row: dict[str, Any]) -> dict[str, Any]:
    """Returns a row of OpenAI's preference fine-tuning with the columns `prompt`, `chosen` and `rejected`."""
    request = get_object(row.get("input"), "input")
    others = {key: value for key, value in request.items() if key != "messages"}
    chosen, rejected = row.get("preferred_output"), row.get("non_preferred_output")
    extra = {key: value for key, value in row.items() if key not in _OPENAI}
    return {**extra, **others, "prompt": request.get("messages"), "chosen": chosen, "rejected": rejected}


def _read_conversation(row: Mapping[str, Any], key: str, system: str | None) -> list[Msg]:
    reader = ChatMessageReader.from_row(row)
    if row.get(key) is None or row[key] == []:
        refuse(key, "the row has no conversation in this column")
    prompt = reader.read_column(row, "prompt", "user")
    msgs = reader.read_column(row, key, "assistant")
    # In some data sets, such as UltraFeedback, both conversations repeat the text of the prompt.
    text = row.get("prompt")
    is_repeated = isinstance(text, str) and any(msg.role == "user" and msg.text == text for msg in msgs)
    return replace_system(msgs if is_repeated else [*prompt, *msgs], system)


def write_preference(sample: Sample, losses: LossLog, first: Sample) -> dict[str, Any]:
    """Returns a row with the columns `chosen` and `rejected`, both with the whole conversation.

    Raises:
        MessageError: The sample has no rejected conversation.
    """
    if not sample.rejected:
        raise refuse_format(losses.format, "rejected", "the sample has no rejected conversation")
    losses.check_fields(sample, "weights", "tokens")
    writer = ChatMessageWriter(losses, text_arguments=False, has_weights=False)
    row: dict[str, Any] = {
        "chosen": writer.write_all(sample.msgs),
        "rejected": writer.write_all(sample.rejected, place="rejected"),
    }
    return {**row, **dump_tools_column(sample, as_text=True), **sample.extra}


PREFERENCE: Final = RowFormat(_COLUMNS, read_preference, write_preference)
"""Rows of torchtune and trl with `chosen` and `rejected`."""
