"""`find_thinking`: finds the text that a chat template writes for the thinking in replies."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence

from agentkit.errors import EmptyConversationError, MessageError, TemplateError
from agentkit.messages.message import Msg
from agentkit.training.block_spans import find_joint_span, get_content, remove_blocks
from agentkit.training.rendered_sample import RenderedSample
from agentkit.training.text_differences import find_difference
from agentkit.training.text_spans import Span
from agentkit.training.thinking_tags import find_thinking_tags

__all__ = ["find_thinking"]


def find_thinking(rendered: RenderedSample) -> list[Span]:
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
    numbers_by_reply = {index: _list_thinking(msgs[index]) for index in rendered.reply_indexes}
    thinking_blocks = {index: numbers for index, numbers in numbers_by_reply.items() if numbers}
    tagged = _find_tagged_thinking(rendered, thinking_blocks)
    thinking_blocks = {index: numbers for index, numbers in thinking_blocks.items() if index not in tagged}
    spans = _find_all_thinking(rendered, thinking_blocks) if len(thinking_blocks) > 1 else None
    if spans is None:
        spans = [find_joint_span(rendered, index, numbers) for index, numbers in thinking_blocks.items()]
    return [*tagged.values(), *(span for span in spans if span)]


def _find_tagged_thinking(
    rendered: RenderedSample, thinking_blocks: Mapping[int, Collection[int]]
) -> dict[int, Span]:
    """Finds the tags of thinking at the start of replies, together with the thinking.

    Returns a dict that maps message indexes to spans. Replies that do not start with the tags are omitted.
    """
    tags = find_thinking_tags(rendered.template, rendered.variables)
    if tags is None:
        return {}
    rendered.cache_spans_from_last(rendered.reply_indexes)
    opening, closing = map(re.escape, tags)
    spans: dict[int, Span] = {}
    for index in rendered.reply_indexes:
        try:
            replies = rendered.find_reply_spans(index)
        except (MessageError, TemplateError):  # later messages change this reply, so the reply is not trained
            continue
        content = re.escape(get_content(rendered, index, thinking_blocks.get(index, ())))
        pattern = re.compile(rf"\s*(?:{opening})?\s*(?:{content})?\s*{closing}\s*")
        if replies and (match := pattern.match(rendered.text, *replies[0])):
            spans[index] = match.span()
    return spans


def _list_thinking(msg: Msg) -> list[int]:
    return [number for number, block in enumerate(msg.blocks) if block.type == "thinking"]


def _find_all_thinking(
    rendered: RenderedSample, thinking_blocks: Mapping[int, Collection[int]]
) -> list[Span | None] | None:
    """Finds the thinking of all replies by rendering the conversation once without any thinking.

    Args:
        rendered: Rendered conversation.
        thinking_blocks: Maps the message index of each reply with thinking to the indexes of its thinking blocks.

    Returns:
        A list with the span of the thinking of each reply in `thinking_blocks`, or None for a reply whose thinking
        the template omits. Returns None instead of a list if a reply cannot be found, if this rendering fails, or
        if its text differs from the text of `rendered` outside the thinking.
    """
    turns, msgs = _list_turns(rendered), list(rendered.sample.msgs)
    if len(turns) != len(rendered.reply_indexes):
        return None
    for index, numbers in thinking_blocks.items():
        msgs[index] = remove_blocks(msgs[index], numbers)
    other = rendered.replace_msgs(msgs)
    try:
        other_turns = _list_turns(other)
    except (TemplateError, EmptyConversationError):
        return None
    if _list_texts_between(rendered.text, turns) != _list_texts_between(other.text, other_turns):
        return None
    spans = list[Span | None]()
    for index, (start, end), (first, last) in zip(rendered.reply_indexes, turns, other_turns, strict=True):
        text, other_text = rendered.text[start:end], other.text[first:last]
        if index in thinking_blocks:
            reply_start = max(rendered.find_reply_spans(index)[0][0] - start, 0)
            content = get_content(rendered, index, thinking_blocks[index])
            span = find_difference(text, other_text, content, [reply_start])
            spans.append(span and (start + span[0], start + span[1]))
        elif text != other_text:
            return None
    return spans


def _list_turns(rendered: RenderedSample) -> list[Span]:
    """Returns one span per reply, from its generation prompt to its end. Empty if any reply cannot be found."""
    return [rendered.include_generation_prompt(span) for span in rendered.try_find_all_reply_spans()]


def _list_texts_between(text: str, spans: Sequence[Span]) -> list[str]:
    """Returns the parts of a text before, between and after the spans."""
    starts = [0, *(end for _, end in spans)]
    ends = [*(start for start, _ in spans), len(text)]
    return [text[start:end] for start, end in zip(starts, ends, strict=True)]
