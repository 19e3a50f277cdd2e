"""`find_omitted_content`: finds the content of trained replies that a chat template did not write.

`check_calls` refuses the samples whose trained tool calls a chat template does not write.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Final

from agentkit.chat_templates.chat_template import ChatTemplate
from agentkit.errors import MessageError
from agentkit.ledger.places import format_place
from agentkit.messages.blocks import Block
from agentkit.messages.features import Feature
from agentkit.messages.message import Msg
from agentkit.training.reply_spans import ReplySpans
from agentkit.training.sample import Sample
from agentkit.training.text_spans import Span
from agentkit.training.trained_spans import TrainOn

__all__ = ["check_calls", "find_omitted_content"]

_REASON: Final = "the chat template does not write this content of a trained reply"


def check_calls(sample: Sample, template: ChatTemplate) -> None:
    """Checks that the template writes the tool calls of the replies that can be trained.

    Raises:
        MessageError: The template does not write tool calls.
    """
    indexes = [
        index
        for index in sample.replies
        if sample.msgs[index].features & Feature.CALL
        and sample.get_weight(index) != 0
        and index not in (sample.tokens or ())
    ]
    if indexes and not template.check().calls:
        reason = f"the chat template {template.name!r} does not write the tool calls of the reply"
        advice = "Use a chat template that writes tool calls, or set the weight of the reply to 0."
        raise MessageError(f"msgs[{indexes[0]}]", reason, advice)


def find_omitted_content(
    rendered: ReplySpans, trained: Sequence[Span], train_on: TrainOn, train_thinking: bool
) -> Iterator[tuple[str, str]]:
    """Yields the place and the reason for each block of a trained reply that is not in the trained text.

    Texts that the template wrote in a different form, such as with other white space, can also be reported.

    Args:
        rendered: Rendered sample.
        trained: Spans of the trained parts of the text.
        train_on: Replies that are trained (see `tokenize`).
        train_thinking: False if no thinking is trained. Thinking is then not reported.
    """
    sample, replies = rendered.sample, rendered.sample.replies
    indexes = rendered.all_replies if train_on == "all" else replies[-1:] if train_on == "last" else replies
    text = "".join([rendered.text[start:end] for start, end in trained])
    first = 0
    for index in rendered.all_replies:
        weight, msg = sample.get_weight(index), sample.msgs[index]
        weights = weight if isinstance(weight, tuple) else (weight,) * len(msg.blocks)
        position = first
        for number, block in enumerate(msg.blocks if index not in (sample.tokens or {}) else ()):
            is_trained = index in indexes if weights[number] is None else weights[number]
            if not is_trained or (block.type == "thinking" and not train_thinking):
                continue
            content = _get_content(block)
            found = -1
            if sample.variables or not _is_never_written(rendered.template, msg, block):
                found = _find_content(text, content, position)
                # a template can write the blocks of a message in a different order
                found = _find_content(text, content, first) if found < 0 < position else found
            if found < 0:
                yield format_place((index, number)), _REASON
            else:
                position = max(position, found + len(content))
        first = position


def _get_content(block: Block) -> str:
    if block.type == "text":
        return block.text.strip()
    if block.type == "thinking":
        return block.thinking.strip()
    return block.name if block.type == "tool_use" else ""


def _find_content(text: str, content: str, start: int) -> int:
    """Returns the position of a text, or of the text as JSON. Returns -1 if neither occurs."""
    # The content is usually near, and a search for its first characters is faster than a search for all of them.
    position = text.find(content[:16], start, start + 2_000)
    if position < 0 or not text.startswith(content, position):
        position = text.find(content, start)
    return position if position >= 0 else text.find(json.dumps(content, ensure_ascii=False)[1:-1], start)


def _is_never_written(template: ChatTemplate, msg: Msg, block: Block) -> bool:
    """Returns True if the template writes no such block. A search could find its text in another text."""
    report, has_calls = template.check(), msg.features & Feature.CALL
    match block.type:
        case "text":
            return bool(has_calls and not report.call_texts and block.text.strip())
        case "thinking":
            return bool(block.thinking.strip()) and not (report.call_thinking if has_calls else report.thinking)
        case "tool_use":
            return False
        case _:
            return block.type not in report.media
