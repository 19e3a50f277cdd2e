"""`find_trained_spans`: finds the parts of a rendered sample that are trained."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Literal, TypeAlias

from agentkit.messages.features import Feature
from agentkit.training.block_spans import find_blocks, find_thinking
from agentkit.training.conversation_start import find_start
from agentkit.training.reply_spans import ReplySpans
from agentkit.training.sample import Weight
from agentkit.training.text_spans import Span, merge_spans, subtract_spans

__all__ = ["TrainOn", "find_trained_spans"]

TrainOn: TypeAlias = Literal["assistant", "all", "last"]
"""Texts that are trained: all replies, all texts after the system messages, or the last reply."""


def find_trained_spans(
    rendered: ReplySpans, train_on: TrainOn, train_thinking: bool, train_generation_prompt: bool
) -> list[Span]:
    """Returns the spans of the trained parts of the rendered text. See `tokenize` for the arguments.

    Raises:
        MessageError: The text of a message cannot be found.
    """
    sample = rendered.sample
    if train_on == "all":
        included = [(find_start(rendered), len(rendered.text)), *_find_replies(rendered)]
        excluded = _find_excluded(rendered)
    elif train_on == "assistant" and sample.weights is None and sample.viewer is None:
        included, excluded = rendered.find_all_replies(), []
    else:
        included, excluded = [], []
    if sample.weights is not None or (train_on != "all" and not included):
        replies = sample.replies[-1:] if train_on == "last" else sample.replies if train_on == "assistant" else ()
        for index in range(len(sample.msgs)):
            added, removed = _apply_weight(rendered, index, index in replies)
            included += added
            excluded += removed() if train_on == "all" or added else ()
    if train_generation_prompt:
        included = [rendered.add_generation_prompt(span) for span in included]
        excluded = [rendered.add_generation_prompt(span) for span in excluded]
    elif train_on == "all":
        excluded += [(rendered.add_generation_prompt(span)[0], span[0]) for span in _find_replies(rendered)]
    if not train_thinking:
        excluded += find_thinking(rendered)
    excluded += rendered.find_unwritten_stops()
    return subtract_spans(included, excluded) if excluded else merge_spans(included)


def _find_replies(rendered: ReplySpans) -> list[Span]:
    """Returns the spans of the replies of all agents."""
    if rendered.marked:
        return rendered.find_all_replies()
    return [span for index in rendered.all_replies for span in _find_reply(rendered, index)]


def _find_reply(rendered: ReplySpans, index: int) -> list[Span]:
    """Returns the spans of a reply. A reply with the weight 0 is also found if later messages changed its text."""
    is_trained = rendered.sample.get_weight(index) != 0
    return rendered.find_reply(index) if is_trained else rendered.find_written_reply(index)


def _find_excluded(rendered: ReplySpans) -> list[Span]:
    """Returns the spans of user messages with media, which `train_on="all"` does not train."""
    return [
        rendered.find_message(index)
        for index, msg in enumerate(rendered.sample.msgs)
        if msg.role == "user" and msg.features & Feature.MEDIA
    ]


def _apply_weight(
    rendered: ReplySpans, index: int, is_trained: bool
) -> tuple[list[Span], Callable[[], list[Span]]]:
    """Returns the trained spans of a message, and a function that returns the spans with the weight 0.

    `is_trained` is True if `train_on` selects the message.
    """
    weight = rendered.sample.get_weight(index)

    def find_weight(value: int) -> list[Span]:
        spans = find_blocks(rendered, index, [number for number, item in enumerate(weights) if item == value])
        last = len(weights) - 1
        if is_reply and last in spans:  # the stop token belongs to the last block
            spans[last] = spans[last][0], rendered.find_reply(index)[-1][1]
        return [*spans.values()]

    def find_all() -> list[Span]:
        return _find_reply(rendered, index) if is_reply else [rendered.find_message(index)]

    is_reply = index in rendered.all_replies
    weights: tuple[Weight, ...] = weight if isinstance(weight, tuple) else ()
    if weights:
        return (find_all() if is_trained else []) + find_weight(1), partial(find_weight, 0)
    if weight is None:
        return (find_all() if is_trained else []), list
    return (find_all(), list) if weight else ([], find_all)
