"""Rows of chat messages: those of OpenAI's fine-tuning, of trl and of DSPy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from agentkit.messages.message import Msg
from agentkit.training.chat_message_reader import ChatMessageReader
from agentkit.training.chat_message_writer import ChatMessageWriter
from agentkit.training.loss_log import LossLog
from agentkit.training.preference_rows import read_preference, write_preference
from agentkit.training.row_formats import RowFormat, replace_weighted_system, split_columns
from agentkit.training.row_tools import dump_tools_column, read_tools
from agentkit.training.row_values import get_list, refuse
from agentkit.training.sample import MessageWeight, Sample, build_trusted_sample
from agentkit.training.sharegpt_rows import read_sharegpt

__all__ = ["DSPY", "OPENAI", "TRL"]

_COLUMNS: Final = ("messages", "tools", "functions", "images")
_TRL_COLUMNS: Final = (*_COLUMNS, "prompt", "completion", "chosen", "rejected", "conversations")


def read_chat(row: dict[str, Any], system: str | None) -> Sample:
    """Returns the sample of a row with the column `messages`."""
    messages = get_list(row, "messages", "")
    if not messages:
        refuse("messages", "the row has no messages")
    reader = ChatMessageReader(iter(get_list(row, "images", "")))
    msgs = reader.read_all(messages, "messages")
    return _create(row, msgs, reader.weights, system, _COLUMNS)


def _create(
    row: dict[str, Any],
    msgs: Sequence[Msg],
    weights: Sequence[MessageWeight],
    system: str | None,
    columns: Sequence[str],
) -> Sample:
    msgs, weights = replace_weighted_system(msgs, weights, system)
    return build_trusted_sample(tuple(msgs), read_tools(row), weights, split_columns(row, columns))


def _write_chat(sample: Sample, losses: LossLog, first: Sample) -> dict[str, Any]:
    losses.check_fields(sample, "tools", "weights", "extra")
    row: dict[str, Any] = {"messages": ChatMessageWriter(losses).write_all(sample.msgs, sample.all_weights)}
    return {**row, **dump_tools_column(sample), **sample.extra}


# -- trl ---------------------------------------------------------------------------------------------------------


def _read_trl(row: dict[str, Any], system: str | None) -> Sample:
    if row.get("chosen") or row.get("rejected"):
        return read_preference(row, system)
    if row.get("conversations"):
        return read_sharegpt(row, system)
    if row.get("messages"):
        return read_chat(row, system)
    reader = ChatMessageReader(iter(get_list(row, "images", "")))
    prompt = reader.read_column(row, "prompt", "user")
    completion = reader.read_column(row, "completion", "assistant")
    if not prompt:
        refuse("prompt", "the row has no messages and no prompt")
    weights: list[MessageWeight] = [0 if msg.role == "assistant" else None for msg in prompt]
    weights += [1 if msg.role == "assistant" else None for msg in completion]
    return _create(row, [*prompt, *completion], weights, system, _TRL_COLUMNS)


def _write_trl(sample: Sample, losses: LossLog, first: Sample) -> dict[str, Any]:
    if sample.rejected:
        return write_preference(sample, losses, first)
    losses.check_fields(sample, "tools", "weights", "extra")
    writer = ChatMessageWriter(losses, text_arguments=False, has_weights=False)
    row: dict[str, Any]
    if _find_completion(first) is None:
        for index, msg in enumerate(sample.msgs):
            if sample.get_weight(index) == 0 and msg.role == "assistant":
                losses.add(f"msgs[{index}]", "the column messages has no weights, so the reply will be trained")
        row = {"messages": writer.write_all(sample.msgs, sample.all_weights)}
    else:
        start = _find_completion(sample)
        if start is None:
            losses.add("weights", "a row with a completion trains only the last replies")
            start = len(sample.msgs) - 1
        prompt, completion = sample.msgs[:start], sample.msgs[start:]
        weights: Sequence[MessageWeight] = sample.all_weights or [None] * len(sample.msgs)
        row = {
            "prompt": writer.write_all(prompt, weights[:start]),
            "completion": writer.write_all(completion, weights[start:], offset=start),
        }
    return {**row, **dump_tools_column(sample, as_text=True), **sample.extra}


def _find_completion(sample: Sample) -> int | None:
    """Returns the index of the first trained reply, if the weights train exactly the replies from there on.

    Returns None if there is no message before this reply, because a prompt is not empty.
    """
    replies = [index for index, msg in enumerate(sample.msgs) if msg.role == "assistant" or msg.tool_uses]
    weights = [sample.get_weight(index) for index in replies]
    if sample.weights is None or 1 not in weights:
        return None
    count = weights.index(1)
    return (replies[count] or None) if weights == [0] * count + [1] * (len(weights) - count) else None


OPENAI: Final = RowFormat(_COLUMNS, read_chat, _write_chat)
"""Rows of OpenAI's fine-tuning, of torchtune's OpenAI messages, and of any library with a column `messages`."""

DSPY: Final = RowFormat(_COLUMNS, read_chat, _write_chat)
"""Rows that `format_finetune_data` returns."""

TRL: Final = RowFormat(_TRL_COLUMNS, _read_trl, _write_trl)
"""Rows of trl: `messages`, or `prompt` and `completion`, or `chosen` and `rejected`."""
