"""Rows of trl: chat messages, a prompt with a completion, or preference pairs.

A completion is one reply, because trl trains all messages of a completion. A sample with several trained replies
therefore becomes several rows with a prompt and a completion.
"""

from __future__ import annotations

from functools import partial
from typing import Any, Final

from agentkit.json_values import copy_json
from agentkit.training.rows.chat_message_reader import ChatMessageReader
from agentkit.training.rows.chat_message_writer import ChatMessageWriter
from agentkit.training.rows.chat_rows import CHAT_COLUMNS, create_chat_sample, read_chat
from agentkit.training.rows.content_reader import ContentReader
from agentkit.training.rows.loss_log import LossLog
from agentkit.training.rows.preference_rows import read_preference, write_preference
from agentkit.training.rows.row_format import RowFormat, create_format_error
from agentkit.training.rows.row_tools import dump_tools_column
from agentkit.training.rows.row_values import is_missing, refuse
from agentkit.training.rows.sharegpt_rows import read_sharegpt
from agentkit.training.sample import MessageWeight, Sample, is_reply, list_reply_indexes

__all__ = ["TRL"]

_COLUMNS: Final = (*CHAT_COLUMNS, "prompt", "completion", "chosen", "rejected", "conversations")


def _read(row: dict[str, Any]) -> Sample:
    if not is_missing(row.get("chosen")) or not is_missing(row.get("rejected")):
        return read_preference(row)
    if not is_missing(row.get("conversations")):
        return read_sharegpt(row)
    if not is_missing(row.get("messages")):
        return read_chat(row)
    reader = ChatMessageReader(ContentReader.from_row(row))
    prompt = reader.read_column(row, "prompt", "user")
    completion = reader.read_column(row, "completion", "assistant")
    if not prompt:
        refuse("prompt", "the row has no messages and no prompt")
    msgs = reader.content.place_images([*prompt, *completion])
    weights: list[MessageWeight] = [
        int(index >= len(prompt)) if weight is None and is_reply(msg) else weight
        for index, (msg, weight) in enumerate(zip(msgs, reader.weights, strict=True))
    ]
    return create_chat_sample(row, msgs, weights, _COLUMNS)


def _write(sample: Sample, losses: LossLog, *, has_completions: bool) -> dict[str, Any] | list[dict[str, Any]]:
    if sample.rejected:
        return write_preference(sample, losses)
    losses.note_fields(sample, "tokens")
    writer = ChatMessageWriter(losses, text_arguments=False, has_openai_fields=False)
    tools = dump_tools_column(sample, as_text=True)
    if has_completions:
        return [{**row, **tools, **sample.extra} for row in _write_completions(sample, writer)]
    return {"messages": writer.write_sample(sample), **tools, **sample.extra}


def _has_completions(first: Sample) -> bool:
    """Returns True if the rows get the columns `prompt` and `completion` instead of `messages`.

    This is the case if the first sample has a weight for a reply, and messages before each trained reply.
    """
    if all(first.get_weight(index) is None for index in list_reply_indexes(first.msgs)):
        return False
    return 0 not in _list_trained(first)


def _write_completions(sample: Sample, writer: ChatMessageWriter) -> list[dict[str, Any]]:
    """Returns one row for each trained reply, because trl trains all messages of a completion."""
    losses = writer.losses
    trained = _list_trained(sample)
    if 0 in trained:
        losses.add(
            "msgs[0]", "the reply has no prompt, and a completion needs a prompt, so the reply will not be trained"
        )
        trained.remove(0)
    if not trained:
        raise create_format_error(
            losses.format, "weights", "no reply is trained, but a completion needs a trained reply"
        )
    for index in range(trained[-1] + 1, len(sample.msgs)):
        losses.add(
            f"msgs[{index}]",
            "the message follows the last trained reply, which ends the last row, so the message is omitted",
        )
    written: list[list[dict[str, Any]]] = []
    for index, msg in enumerate(sample.msgs[: trained[-1] + 1]):
        weight = sample.get_weight(index)
        if not is_reply(msg) or isinstance(weight, tuple):  # a row trains exactly the reply in `completion`
            losses.note_weight(weight, f"msgs[{index}]")
        written.append(writer.write(msg, None, "msgs", index))
    prompts = [[message for messages in written[:index] for message in messages] for index in trained]
    return [
        copy_json({"prompt": prompt, "completion": written[index]})
        for prompt, index in zip(prompts, trained, strict=True)
    ]


def _list_trained(sample: Sample) -> list[int]:
    return [index for index in list_reply_indexes(sample.msgs) if sample.get_weight(index) != 0]


class _TRLFormat(RowFormat):
    """Format whose rows have messages, or prompts and completions."""

    def select(self, first: Sample) -> RowFormat:
        return RowFormat(self.columns, self.read, partial(_write, has_completions=_has_completions(first)))


TRL: Final = _TRLFormat(_COLUMNS, _read, partial(_write, has_completions=False))
"""Rows of trl: `messages`, or `prompt` and `completion`, or `chosen` and `rejected`.

trl trains all messages of a completion, also those of users and tools. trl trains all messages in `messages` too,
unless its option `assistant_only_loss` is set (trl 1.16: `SFTTrainer._prepare_dataset`).
"""
