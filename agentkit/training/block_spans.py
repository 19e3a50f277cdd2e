"""`find_blocks` and `find_thinking`: find the text that a chat template writes for blocks, or for all thinking.

Templates do not mark this text. The conversation is therefore rendered with and without the blocks, and the two
texts are compared.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from agentkit.errors import EmptyConversationError, MessageError, TemplateError
from agentkit.messages.blocks import Block, TextBlock, ThinkingBlock
from agentkit.messages.message import Msg
from agentkit.training.reply_spans import ReplySpans
from agentkit.training.text_spans import Span, find_difference, subtract_spans
from agentkit.training.thinking_tags import find_thinking_tags

__all__ = ["find_blocks", "find_thinking", "get_block_text"]

_OTHER_TEXT: Final = "\U0010fffd"
"""Placeholder for the text of a block: a private-use character that messages usually do not contain."""


def find_blocks(rendered: ReplySpans, index: int, numbers: Collection[int]) -> list[Span]:
    """Returns the spans of the texts that the template writes for blocks of a message.

    For each block, the conversation is rendered with and without the block. The span is the difference between the
    two texts, without the texts of other blocks. The stop token of a reply belongs to the last block.

    Adjacent blocks can begin and end with the same texts, so no span begins before the end of the span of the
    previous block.

    Args:
        rendered: Rendered conversation.
        index: Index of the message.
        numbers: Indexes of the blocks in the message.

    Raises:
        MessageError: The template refuses the conversation without one of the blocks.
    """
    spans: dict[int, Span] = {}
    previous = (0, 0)
    last = len(rendered.sample.msgs[index].blocks) - 1
    for number in range(last + 1) if numbers else ():
        try:
            span = _find_part(rendered, index, [number], previous)
        except MessageError:
            if number in numbers:
                raise
            continue
        if span:
            spans[number] = previous = span
    if last in spans and index in rendered.all_replies:
        spans[last] = spans[last][0], rendered.find_reply_spans(index)[-1][1]
    return [part for number in numbers if number in spans for part in _cut_inner(spans[number], spans.values())]


def _cut_inner(span: Span, others: Iterable[Span]) -> list[Span]:
    """Returns the parts of a span outside of all smaller spans that the span contains."""
    inner = [other for other in others if span != other and span[0] <= other[0] and other[1] <= span[1]]
    return subtract_spans([span], inner)


def find_thinking(rendered: ReplySpans) -> list[Span]:
    """Returns the spans of the text that the template writes for the thinking in replies.

    If the template always writes the tags of thinking, such as `<think>`, the spans start and end with these tags
    and the white space next to the tags. An empty pair of tags before a reply without thinking is included.

    Otherwise, the thinking is the text that a rendering without thinking does not contain. If possible, one
    additional rendering is enough: the conversation without any thinking. If this rendering fails, or also differs
    outside the thinking, the conversation is rendered once for each reply with thinking, without the thinking of
    this reply.

    Raises:
        MessageError: The template refuses the conversation without the thinking of a reply.
    """
    msgs = rendered.sample.msgs
    places = {index: numbers for index in rendered.all_replies if (numbers := _list_thinking(msgs[index]))}
    tagged = _find_tagged_thinking(rendered, places)
    places = {index: numbers for index, numbers in places.items() if index not in tagged}
    spans = _find_all_thinking(rendered, places) if len(places) > 1 else None
    if spans is None:
        spans = [_find_part(rendered, index, numbers) for index, numbers in places.items()]
    return [*tagged.values(), *(span for span in spans if span)]


def _find_tagged_thinking(rendered: ReplySpans, places: Mapping[int, Collection[int]]) -> dict[int, Span]:
    """Finds the tags of thinking at the start of replies, together with the thinking.

    Returns a dict that maps message indexes to spans. Replies that do not start with the tags are omitted.
    """
    tags = find_thinking_tags(rendered.template, rendered.variables)
    if tags is None:
        return {}
    rendered.find_from_last(rendered.all_replies)
    opening, closing = map(re.escape, tags)
    spans: dict[int, Span] = {}
    for index in rendered.all_replies:
        try:
            replies = rendered.find_reply_spans(index)
        except (MessageError, TemplateError):  # later messages change this reply, so the reply is not trained
            continue
        content = re.escape(_get_content(rendered, index, places.get(index, ())))
        pattern = re.compile(rf"\s*(?:{opening})?\s*(?:{content})?\s*{closing}\s*")
        if replies and (match := pattern.match(rendered.text, *replies[0])):
            spans[index] = match.span()
    return spans


def _list_thinking(msg: Msg) -> list[int]:
    return [number for number, block in enumerate(msg.blocks) if block.type == "thinking"]


def _find_all_thinking(rendered: ReplySpans, places: Mapping[int, Collection[int]]) -> list[Span | None] | None:
    """Finds the thinking of all replies by rendering the conversation once without any thinking.

    Args:
        rendered: Rendered conversation.
        places: Maps the message index of each reply with thinking to the indexes of its thinking blocks.

    Returns:
        A list with the span of the thinking of each reply in `places`, or None for a reply whose thinking the
        template omits. Returns None instead of a list if a reply cannot be found, if this rendering fails, or if
        its text differs from the text of `rendered` outside the thinking.
    """
    turns, msgs = _list_turns(rendered), list(rendered.sample.msgs)
    if len(turns) != len(rendered.all_replies):
        return None
    for index, numbers in places.items():
        msgs[index] = _replace_blocks(msgs[index], numbers, is_replaced=False)
    other = rendered.replace_msgs(msgs)
    try:
        other_turns = _list_turns(other)
    except (TemplateError, EmptyConversationError):
        return None
    if _list_texts_between(rendered.text, turns) != _list_texts_between(other.text, other_turns):
        return None
    spans = list[Span | None]()
    for index, (start, end), (first, last) in zip(rendered.all_replies, turns, other_turns, strict=True):
        text, other_text = rendered.text[start:end], other.text[first:last]
        if index in places:
            reply_start = max(rendered.find_reply_spans(index)[0][0] - start, 0)
            span = find_difference(text, other_text, _get_content(rendered, index, places[index]), [reply_start])
            spans.append(span and (start + span[0], start + span[1]))
        elif text != other_text:
            return None
    return spans


def _list_turns(rendered: ReplySpans) -> list[Span]:
    """Returns one span per reply, from its generation prompt to its end. Empty if any reply cannot be found."""
    return [rendered.add_generation_prompt(span) for span in rendered.list_replies()]


def _list_texts_between(text: str, spans: Sequence[Span]) -> list[str]:
    """Returns the parts of a text before, between and after the spans."""
    starts = [0, *(end for _, end in spans)]
    ends = [*(start for start, _ in spans), len(text)]
    return [text[start:end] for start, end in zip(starts, ends, strict=True)]


def _find_part(
    rendered: ReplySpans, index: int, numbers: Collection[int], previous_span: Span = (0, 0)
) -> Span | None:
    other = _render_without(rendered, index, numbers)
    content = _get_content(rendered, index, numbers)
    reply_starts = [start for start, _ in rendered.list_replies() if index in rendered.all_replies]
    return find_difference(rendered.text, other, content, reply_starts, previous_span)


def _render_without(rendered: ReplySpans, index: int, numbers: Collection[int]) -> str:
    """Returns the text of the conversation without the blocks at the indexes `numbers` of a message.

    If the template refuses this conversation, text and thinking blocks are kept, with a placeholder as text.

    Raises:
        MessageError: The template refuses both conversations.
    """
    msgs = list(rendered.sample.msgs)
    for is_replaced in (False, True):
        msgs[index] = _replace_blocks(rendered.sample.msgs[index], numbers, is_replaced=is_replaced)
        try:
            return rendered.replace_msgs(msgs).text
        except (TemplateError, EmptyConversationError):
            continue
    reason = f"the chat template {rendered.template.name!r} refuses the conversation without this block"
    advice = "Pass one weight for the message, and train_thinking=True."
    raise MessageError(f"msgs[{index}].content[{min(numbers)}]", reason, advice)


def _replace_blocks(msg: Msg, numbers: Collection[int], *, is_replaced: bool) -> Msg:
    """Returns a copy of a message without the blocks at the indexes `numbers`.

    If `is_replaced` is True, text and thinking blocks at these indexes are kept, with a placeholder as text.
    """
    blocks = [
        block if number not in numbers else _replace_text(block) if is_replaced else None
        for number, block in enumerate(msg.blocks)
    ]
    return replace(msg, content=tuple(block for block in blocks if block is not None))


def _replace_text(block: Block) -> Block | None:
    """Returns a text or thinking block that contains only a placeholder. Returns None for any other block."""
    if isinstance(block, TextBlock):
        return TextBlock(_OTHER_TEXT)
    return ThinkingBlock(_OTHER_TEXT) if isinstance(block, ThinkingBlock) else None


def _get_content(rendered: ReplySpans, index: int, numbers: Collection[int]) -> str:
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
