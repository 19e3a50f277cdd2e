"""Rows with a list of chat messages, in the formats of OpenAI's fine-tuning and DSPy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from agentkit.messages.message import Msg
from agentkit.training.rows.chat_message_reader import ChatMessageReader
from agentkit.training.rows.chat_message_writer import ChatMessageWriter
from agentkit.training.rows.content_reader import IMAGE_COLUMNS, ContentReader
from agentkit.training.rows.loss_log import LossLog
from agentkit.training.rows.row_format import RowFormat, split_columns
from agentkit.training.rows.row_tools import TOOL_COLUMNS, dump_tools_column, read_tools
from agentkit.training.rows.row_values import get_list, refuse
from agentkit.training.sample import MessageWeight, Sample, build_trusted_sample

__all__ = ["CHAT_COLUMNS", "OPENAI", "create_chat_sample", "read_chat"]

CHAT_COLUMNS: Final = ("messages", *TOOL_COLUMNS, *IMAGE_COLUMNS)
"""Columns of a row with chat messages. Other columns become `Sample.extra`."""


def read_chat(row: dict[str, Any]) -> Sample:
    """Returns the sample of a row with the column `messages`.

    Raises:
        MessageError: The row is invalid.
    """
    messages = get_list(row, "messages", "")
    if not messages:
        refuse("messages", "the row has no messages")
    reader = ChatMessageReader(ContentReader.from_row(row))
    msgs = reader.content.place_images(reader.read_all(messages, "messages"))
    return create_chat_sample(row, msgs, reader.weights, CHAT_COLUMNS)


def create_chat_sample(
    row: dict[str, Any],
    msgs: Sequence[Msg],
    weights: Sequence[MessageWeight],
    columns: Sequence[str],
) -> Sample:
    """Returns the sample of a row whose messages are already read.

    Args:
        row: The row.
        msgs: Messages of the row.
        weights: Weight of each message.
        columns: Columns that the format reads.
    """
    if len(row) == 1:  # fast path: the row has only its messages
        return build_trusted_sample(tuple(msgs), (), weights, {})
    return build_trusted_sample(tuple(msgs), read_tools(row), weights, split_columns(row, columns))


def _write_chat(sample: Sample, losses: LossLog) -> dict[str, Any]:
    losses.note_fields(sample, "tokens", "rejected")
    messages = ChatMessageWriter(losses).write_sample(sample)
    return {"messages": messages, **dump_tools_column(sample), **sample.extra}


OPENAI: Final = RowFormat(CHAT_COLUMNS, read_chat, _write_chat)
"""Rows with a column `messages`: of OpenAI's fine-tuning, of torchtune, and of many other libraries."""
