"""`find_blocks`: finds the texts that a chat template writes for blocks of a message.

Templates do not mark these texts. The conversation is therefore rendered with and without the blocks, and the two
texts are compared.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace
from typing import Final

from agentkit.errors import EmptyConversationError, MessageError, TemplateError
from agentkit.messages.blocks import Block, TextBlock, ThinkingBlock
from agentkit.messages.message import Msg
from agentkit.training.rendered_sample import RenderedSample
from agentkit.training.text_differences import find_difference
from agentkit.training.text_spans import Span, intersect_spans, subtract_spans

__all__ = ["find_blocks", "find_joint_span", "get_block_text", "get_content", "remove_blocks"]

_OTHER_TEXT: Final = "\U0010fffd"
"""Placeholder for the text of a block: a private-use character that messages usually do not contain."""


def find_blocks(rendered: RenderedSample, index: int, numbers: Collection[int]) -> list[Span]:
    """Returns the spans of the texts that the template writes for blocks of a message.

    For each block, the conversation is rendered with and without the block. The span is the difference between the
    two texts, without the texts of other blocks. The stop token of a reply belongs to the last block.

    Adjacent blocks can begin and end with the same texts, so no span begins before the end of the previous span.

    Args:
        rendered: Rendered conversation.
        index: Index of the message.
        numbers: Indexes of the blocks in the message.

    Raises:
        MessageError: The template refuses the conversation without one of the blocks.
    """
    spans = _find_spans(rendered, index, numbers) if numbers else {}
    selected, last = [number for number in numbers if number in spans], len(rendered.sample.msgs[index].blocks) - 1
    if not selected:
        return []
    try:
        reply = rendered.find_reply_spans(index) if index in rendered.reply_indexes else []
    except MessageError:  # later messages change the text of the reply
        if last in selected:
            raise
        reply = []
    if reply and last in spans:
        spans[last] = spans[last][0], reply[-1][1]
    parts = [part for number in selected for part in _cut_inner(spans[number], spans.values())]
    # Without a block, the template can also change texts outside of the reply.
    return intersect_spans(parts, reply) if reply else parts


def _find_spans(rendered: RenderedSample, index: int, numbers: Collection[int]) -> dict[int, Span]:
    """Returns a dict that maps the indexes of all blocks of a message to their spans.

    Blocks without a text are omitted.

    Raises:
        MessageError: The template refuses the conversation without a block at one of the indexes `numbers`.
    """
    others: dict[int, str] = {}
    for number in range(len(rendered.sample.msgs[index].blocks)):
        try:
            others[number] = _render_without(rendered, index, [number])
        except MessageError:
            if number in numbers:
                raise

    def find(order: Iterable[int]) -> dict[int, Span]:
        spans: dict[int, Span] = {}
        previous = (0, 0)
        for number in order:
            if span := _compare(rendered, index, [number], others[number], previous):
                spans[number] = previous = span
        return spans

    spans = find(others)
    order = sorted(spans, key=lambda number: spans[number])
    return spans if order == [*spans] else find(order)  # a template can write the blocks in a different order


def _cut_inner(span: Span, others: Iterable[Span]) -> list[Span]:
    """Returns the parts of a span outside of all smaller spans that the span contains."""
    inner = [other for other in others if span != other and span[0] <= other[0] and other[1] <= span[1]]
    return subtract_spans([span], inner)


def find_joint_span(rendered: RenderedSample, index: int, numbers: Collection[int]) -> Span | None:
    """Returns the span of the text that the template writes for several blocks of a message.

    Returns None if there is no such text. The arguments are those of `find_blocks`.

    Raises:
        MessageError: The template refuses the conversation without the blocks.
    """
    return _compare(rendered, index, numbers, _render_without(rendered, index, numbers))


def _compare(
    rendered: RenderedSample, index: int, numbers: Collection[int], other: str, previous_span: Span = (0, 0)
) -> Span | None:
    """Returns the span of the text that `other`, the text without the blocks, does not contain."""
    content = get_content(rendered, index, numbers)
    # The text of a block in a reply does not begin before the reply.
    is_reply = index in rendered.reply_indexes
    reply_starts = [start for start, _ in rendered.try_find_all_reply_spans()] if is_reply else []
    return find_difference(rendered.text, other, content, reply_starts, previous_span)


def _render_without(rendered: RenderedSample, index: int, numbers: Collection[int]) -> str:
    """Returns the text of the conversation without the blocks at the indexes `numbers` of a message.

    If the template refuses this conversation, text and thinking blocks are kept, with a placeholder as text.

    Raises:
        MessageError: The template refuses both conversations.
    """
    msgs = list(rendered.sample.msgs)
    for keeps_placeholders in (False, True):
        msgs[index] = remove_blocks(rendered.sample.msgs[index], numbers, keeps_placeholders=keeps_placeholders)
        try:
            return rendered.replace_msgs(msgs).text
        except (TemplateError, EmptyConversationError):
            continue
    reason = f"the chat template {rendered.template.name!r} refuses the conversation without this block"
    advice = "Pass one weight for the message, and train_thinking=True."
    raise MessageError(f"msgs[{index}].content[{min(numbers)}]", reason, advice)


def remove_blocks(msg: Msg, numbers: Collection[int], *, keeps_placeholders: bool = False) -> Msg:
    """Returns a copy of a message without the blocks at the indexes `numbers`.

    If `keeps_placeholders` is True, text and thinking blocks at these indexes are kept, with a placeholder as
    text.
    """
    blocks = [
        block if number not in numbers else _replace_text(block) if keeps_placeholders else None
        for number, block in enumerate(msg.blocks)
    ]
    return replace(msg, content=tuple(block for block in blocks if block is not None))


def _replace_text(block: Block) -> Block | None:
    """Returns a text or thinking block that contains only a placeholder. Returns None for any other block."""
    if isinstance(block, TextBlock):
        return TextBlock(_OTHER_TEXT)
    return ThinkingBlock(_OTHER_TEXT) if isinstance(block, ThinkingBlock) else None


def get_content(rendered: RenderedSample, index: int, numbers: Collection[int]) -> str:
    """Returns the texts of the blocks at the indexes `numbers` of a message, joined with line breaks."""
    blocks = [rendered.sample.msgs[index].blocks[number] for number in numbers]
    texts = [get_block_text(block) for block in blocks if block.type in ("text", "thinking", "tool_use")]
    return "\n".join(texts).strip()


def get_block_text(block: Block) -> str:
    """Returns the text of a text block, the thinking of a thinking block, or the tool name of a tool call.

    Returns an empty string for any other block.
    """
    if block.type == "text":
        return block.text
    if block.type == "thinking":
        return block.thinking
    return block.name if block.type == "tool_use" else ""
