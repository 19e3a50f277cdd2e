"""Rows with the texts of a prompt and of a reply.

The columns are `instruction` and `output` (Alpaca), `input` and `output`, or `prompt` and `completion`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, Final, NamedTuple, cast

from agentkit.messages.message import Msg
from agentkit.reprs import shorten_repr
from agentkit.training.rows.content_reader import ContentReader
from agentkit.training.rows.loss_log import LossLog
from agentkit.training.rows.row_format import RowFormat, create_format_error, split_columns
from agentkit.training.rows.row_values import get_list, get_text, refuse
from agentkit.training.sample import Sample

__all__ = ["ALPACA", "INPUT_OUTPUT", "PROMPT_COMPLETION", "STANFORD_ALPACA"]

_COLUMN_ADVICE: Final = "Fix or remove the row, or pass the names of its columns as `columns`."


class _Columns(NamedTuple):
    """Names of the columns of a format.

    Attributes:
        prompt: Column with the text of the user.
        reply: Column with the text of the assistant.
        input: Column with further text of the user. Empty if the format has no such column.
        system: Column with the system prompt. Empty if the format has no such column.
        history: Column with earlier pairs of texts. Empty if the format has no such column.
        has_prompt_texts: True if the user message is a prompt text of Stanford's Alpaca. This text contains the
            values of `prompt` and `input`.
    """

    prompt: str
    reply: str
    input: str = ""
    system: str = ""
    history: str = ""
    has_prompt_texts: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        return (*filter(None, (self.prompt, self.reply, self.input, self.system, self.history)), "image")


def _read(columns: _Columns, row: dict[str, Any]) -> Sample:
    if row.get(columns.prompt) is None:
        refuse(columns.prompt, "the row has no text in this column", _COLUMN_ADVICE)
    texts = [get_text(row, columns.prompt, ""), get_text(row, columns.input, "") if columns.input else ""]
    prompt = _write_prompt_text(*texts) if columns.has_prompt_texts else "\n".join(filter(None, texts))
    system = get_text(row, columns.system, "") if columns.system else ""
    msgs = [Msg("system", system, "system")] if system else []
    for index, pair in enumerate(get_list(row, columns.history, "") if columns.history else []):
        msgs += _read_pair(pair, f"{columns.history}[{index}]")
    image = row.get("image")
    msgs += ContentReader([] if image is None else [image]).place_images([Msg("user", prompt, "user")])
    if row.get(columns.reply) is not None:  # a row for reinforcement learning has only a prompt
        msgs.append(Msg("assistant", get_text(row, columns.reply, ""), "assistant"))
    return Sample(msgs, extra=split_columns(row, columns.names))


def _read_pair(pair: object, place: str) -> list[Msg]:
    value_text = shorten_repr(pair, 60)
    texts = cast("list[Any]", pair) if isinstance(pair, list) else []
    if len(texts) != 2 or not all(isinstance(text, str) for text in texts):
        refuse(place, f"expected a list with a user text and a reply text, got {value_text}")
    return [Msg("user", texts[0], "user"), Msg("assistant", texts[1], "assistant")]


def _write(columns: _Columns, sample: Sample, losses: LossLog) -> dict[str, Any]:
    losses.note_fields(sample, "tools", "tokens", "rejected")
    for index, msg in enumerate(sample.msgs):
        losses.note_name(msg, sample.viewer, f"msgs[{index}]")
        losses.note_weight(sample.get_weight(index), f"msgs[{index}]", can_have_weight=msg.role == "assistant")
    msgs = list(sample.msgs)
    row: dict[str, Any] = {}
    if columns.system and msgs[0].role == "system" and not msgs[0].tool_results:
        row[columns.system] = _write_text(msgs.pop(0), "msgs[0]", losses)
        if not row[columns.system]:
            losses.add("msgs[0]", "the format cannot represent an empty system prompt")
    *earlier, prompt, reply = _list_texts(msgs, losses, len(sample.msgs) - len(msgs))
    if columns.history and earlier:
        row[columns.history] = [list(pair) for pair in zip(earlier[::2], earlier[1::2], strict=True)]
    elif earlier:
        reason = f"expected one user message and one reply for a row, got {len(msgs)} messages"
        raise create_format_error(losses.format, "msgs", reason)
    inputs = {columns.input: ""} if columns.input else {}
    if columns.has_prompt_texts:
        prompt, inputs[columns.input] = _split_prompt_text(prompt, losses)
    return {columns.prompt: prompt, **inputs, columns.reply: reply, **row, **sample.extra}


def _list_texts(msgs: Sequence[Msg], losses: LossLog, offset: int) -> list[str]:
    """Returns the texts of user messages and replies.

    Raises:
        MessageError: The messages are not pairs of a user message and a reply.
    """
    expected = [("user", "assistant")[index % 2] for index in range(len(msgs))]
    if not msgs or [msg.role for msg in msgs] != expected or len(msgs) % 2:
        roles = shorten_repr([msg.role for msg in msgs], 60)
        reason = f"expected pairs of a user message and a reply, got the roles {roles}"
        raise create_format_error(losses.format, "msgs", reason)
    return [_write_text(msg, f"msgs[{offset + index}]", losses) for index, msg in enumerate(msgs)]


def _write_text(msg: Msg, place: str, losses: LossLog) -> str:
    losses.note_refusal(msg, place)
    for index, block in enumerate(msg.blocks):
        if block.type != "text":
            losses.add_block(block, f"{place}.content[{index}]")
        elif index:
            losses.add(f"{place}.content[{index}]", "the format joins the text blocks of a message into one text")
    return msg.text


# -- the prompt texts of Alpaca ----------------------------------------------------------------------------------

_WITH_INPUT: Final = (
    "Below is an instruction that describes a task, paired with an input that provides further context. "
    "Write a response that appropriately completes the request.\n\n### Instruction:\n"
)
_WITHOUT_INPUT: Final = (
    "Below is an instruction that describes a task. "
    "Write a response that appropriately completes the request.\n\n### Instruction:\n"
)
_INPUT: Final = "\n\n### Input:\n"
_RESPONSE: Final = "\n\n### Response:\n"


def _write_prompt_text(instruction: str, input: str) -> str:
    if input:
        return f"{_WITH_INPUT}{instruction}{_INPUT}{input}{_RESPONSE}"
    return f"{_WITHOUT_INPUT}{instruction}{_RESPONSE}"


def _split_prompt_text(text: str, losses: LossLog) -> tuple[str, str]:
    """Returns the instruction and the input in a user message.

    Raises:
        MessageError: The message is not one of the two prompt texts of Stanford's Alpaca.
    """
    body = text.removesuffix(_RESPONSE)
    instruction, _, input = body.removeprefix(_WITH_INPUT).partition(_INPUT)
    for pair in ((instruction, input), (body.removeprefix(_WITHOUT_INPUT), "")):
        if _write_prompt_text(*pair) == text:
            return pair
    reason = f"the user message is not one of the prompt texts of Alpaca, got {shorten_repr(text, 60)}"
    raise create_format_error(losses.format, "msgs", reason)


_ALPACA: Final = _Columns("instruction", "output", "input", "system", "history")
_STANFORD_ALPACA: Final = _Columns("instruction", "output", "input", has_prompt_texts=True)
_INPUT_OUTPUT: Final = _Columns("input", "output")
_PROMPT_COMPLETION: Final = _Columns("prompt", "completion")

ALPACA: Final = RowFormat(_ALPACA.names, partial(_read, _ALPACA), partial(_write, _ALPACA))
"""Rows of Alpaca: `instruction`, `input` and `output`. LLaMA-Factory added the columns `system` and `history`."""

STANFORD_ALPACA: Final = RowFormat(
    _STANFORD_ALPACA.names, partial(_read, _STANFORD_ALPACA), partial(_write, _STANFORD_ALPACA)
)
"""Rows of Alpaca, read with the prompt texts of Stanford's training code, as torchtune reads them."""

INPUT_OUTPUT: Final = RowFormat(_INPUT_OUTPUT.names, partial(_read, _INPUT_OUTPUT), partial(_write, _INPUT_OUTPUT))
"""Rows with the texts `input` and `output`."""

PROMPT_COMPLETION: Final = RowFormat(
    _PROMPT_COMPLETION.names, partial(_read, _PROMPT_COMPLETION), partial(_write, _PROMPT_COMPLETION)
)
"""Rows with the texts `prompt` and `completion`."""
