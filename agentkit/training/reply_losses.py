"""`find_reply_losses`: finds the content of trained replies that a chat template did not write.

`check_calls` refuses the samples whose trained tool calls a chat template does not write.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Final

from agentkit.chat_templates.chat_template import ChatTemplate
from agentkit.chat_templates.omitted_texts import find_content
from agentkit.errors import MessageError
from agentkit.ledger.places import format_place
from agentkit.messages.blocks import Block
from agentkit.messages.features import Feature
from agentkit.messages.message import Msg
from agentkit.training.block_spans import get_block_text
from agentkit.training.rendered_sample import RenderedSample
from agentkit.training.sample import Sample, is_reply
from agentkit.training.text_spans import Span
from agentkit.training.trained_spans import TrainOn, select_reply_indexes

__all__ = ["check_calls", "find_reply_losses"]

_REASON: Final = "the chat template does not write this content of a trained reply"


def check_calls(sample: Sample, template: ChatTemplate, train_on: TrainOn) -> None:
    """Checks that the template writes tool calls, if the sample trains tool calls.

    Raises:
        MessageError: The template does not write tool calls.
    """
    if template.check().calls:
        return
    for index, _, block in _list_trained_blocks(sample, train_on):
        if block.type == "tool_use":
            reason = f"the chat template {template.name!r} does not write the tool calls of the reply"
            advice = "Use a chat template that writes tool calls, or set the weight of the reply to 0."
            raise MessageError(f"msgs[{index}]", reason, advice)


def find_reply_losses(
    rendered: RenderedSample, trained: Sequence[Span], train_on: TrainOn, train_thinking: bool
) -> Iterator[tuple[str, str]]:
    """Yields the place and the reason for each block of a trained reply that is not in the trained text.

    Texts that the template wrote in a different form, such as with other white space, can also be reported.
    `RenderedChat.omitted` has the omitted blocks of all messages, and not only of trained replies.

    Args:
        rendered: Rendered sample.
        trained: Spans of the trained parts of the text.
        train_on: Replies that are trained (see `tokenize`).
        train_thinking: False if no thinking is trained. Thinking is then not reported.
    """
    sample, text = rendered.sample, "".join([rendered.text[start:end] for start, end in trained])
    # `TemplateReport` describes the template without additional variables. These can change the rendered text.
    has_report = not sample.variables.keys() - {"now", "on_special_tokens"}
    current, first, position = -1, 0, 0
    for index, number, block in _list_trained_blocks(sample, train_on):
        if index != current:
            current, first = index, position
        if block.type == "thinking" and not train_thinking:
            continue
        content, start = get_block_text(block).strip(), -1
        if not has_report or not _is_never_written(rendered.template, sample.msgs[index], block):
            start = _find_content(text, content, position)
            # a template can write the blocks of a message in a different order
            start = _find_content(text, content, first) if start < 0 < position else start
        if start < 0:
            yield format_place((index, number)), _REASON
        else:
            position = max(position, start + len(content))


def _list_trained_blocks(sample: Sample, train_on: TrainOn) -> Iterator[tuple[int, int, Block]]:
    """Yields the trained blocks of replies: the index of the message, the index of the block, and the block.

    Replies with recorded token ids are omitted.
    """
    selected = {*select_reply_indexes(sample, train_on)}
    for index, msg in enumerate(sample.msgs):
        if not is_reply(msg) or index in (sample.tokens or {}):
            continue
        weight = sample.get_weight(index)
        weights = weight if isinstance(weight, tuple) else (weight,) * len(msg.blocks)
        for number, (block, value) in enumerate(zip(msg.blocks, weights, strict=True)):
            if index in selected if value is None else value:
                yield index, number, block


def _find_content(text: str, content: str, start: int) -> int:
    """Returns the position of a text, or of the same text as escaped in JSON. Returns -1 if neither occurs."""
    position = find_content(text, content, start)
    return position if position >= 0 else text.find(json.dumps(content, ensure_ascii=False)[1:-1], start)


def _is_never_written(template: ChatTemplate, msg: Msg, block: Block) -> bool:
    """Returns True if the template never writes such a block. A match is then in another text."""
    report, has_calls = template.check(), msg.features & Feature.CALL
    match block.type:
        case "text":
            return bool(has_calls and not report.call_texts and block.text.strip())
        case "thinking":
            return bool(block.thinking.strip()) and not (report.call_thinking if has_calls else report.thinking)
        case "tool_use":
            return not report.parallel_calls and block is not msg.tool_uses[0]
        case _:
            return block.type not in report.media
