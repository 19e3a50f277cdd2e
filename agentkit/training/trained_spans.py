"""`find_trained_spans`: finds the parts of a rendered sample that are trained."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias

from agentkit.messages.features import Feature
from agentkit.training.block_spans import find_blocks
from agentkit.training.conversation_start import find_start
from agentkit.training.rendered_sample import RenderedSample
from agentkit.training.sample import Sample, list_reply_indexes
from agentkit.training.stop_tokens import find_stops_after_cut_off_replies
from agentkit.training.text_spans import Span, merge_spans, subtract_spans
from agentkit.training.thinking_spans import find_thinking

__all__ = ["TrainOn", "find_trained_spans", "select_reply_indexes"]

TrainOn: TypeAlias = Literal["assistant", "all", "last"]
"""Trained texts: `assistant` (all replies), `all` (all texts after the system messages) or `last` (last reply)."""


def find_trained_spans(
    rendered: RenderedSample, train_on: TrainOn, train_thinking: bool, train_generation_prompt: bool
) -> list[Span]:
    """Returns the spans of the trained parts of the rendered text. See `tokenize` for the arguments.

    Raises:
        MessageError: The text of a message cannot be found.
    """
    included, excluded = _select_all(rendered) if train_on == "all" else _select_replies(rendered, train_on)
    if train_generation_prompt:
        included = [rendered.include_generation_prompt(span) for span in included]
        excluded = [rendered.include_generation_prompt(span) for span in excluded]
    elif train_on == "all":
        excluded += [
            (rendered.include_generation_prompt(span)[0], span[0]) for span in _find_reply_message_spans(rendered)
        ]
    if not train_thinking:
        excluded += find_thinking(rendered)
    excluded += find_stops_after_cut_off_replies(rendered)
    return subtract_spans(included, excluded) if excluded else merge_spans(included)


def _select_all(rendered: RenderedSample) -> tuple[list[Span], list[Span]]:
    """Returns spans in two lists: the texts after the system messages, and the untrained parts of these texts."""
    # The first span contains the replies. The search for replies raises an error if a reply cannot be found.
    included = [(find_start(rendered), len(rendered.text)), *_find_reply_message_spans(rendered)]
    excluded: list[Span] = []
    for index, msg in enumerate(rendered.sample.msgs):
        if msg.role == "user" and msg.features & Feature.MEDIA:
            excluded.append(rendered.find_message_span(index))
        included += _find_weighted(rendered, index, 1)
        excluded += _find_weighted(rendered, index, 0)
    return included, excluded


def select_reply_indexes(sample: Sample, train_on: TrainOn) -> Sequence[int]:
    """Returns the indexes of the replies that `train_on` selects. Ignores the weights of messages."""
    if train_on == "all":
        return list_reply_indexes(sample.msgs)
    return sample.replies[-1:] if train_on == "last" else sample.replies


def _select_replies(rendered: RenderedSample, train_on: TrainOn) -> tuple[list[Span], list[Span]]:
    """Returns two lists of spans: the trained texts, and the untrained parts of these texts.

    Trained texts are selected replies and texts with the weight 1. Untrained parts are blocks with the weight 0.
    """
    sample = rendered.sample
    if train_on == "assistant" and sample.weights is None and sample.viewer is None:
        return rendered.find_all_reply_spans(), []
    selected = select_reply_indexes(sample, train_on)
    included: list[Span] = []
    excluded: list[Span] = []
    for index in range(len(sample.msgs)):
        weight = sample.get_weight(index)
        is_selected = index in selected and (weight is None or isinstance(weight, tuple))
        added = (_find_message_spans(rendered, index) if is_selected else []) + _find_weighted(rendered, index, 1)
        included += added
        excluded += _find_weighted(rendered, index, 0) if added else []
    return included, excluded


def _find_reply_message_spans(rendered: RenderedSample) -> list[Span]:
    """Returns the spans of the replies of all agents, even if later messages changed an untrained reply."""
    if rendered.generation_spans:
        return rendered.find_all_reply_spans()
    return [span for index in rendered.reply_indexes for span in _find_message_spans(rendered, index)]


def _find_message_spans(rendered: RenderedSample, index: int) -> list[Span]:
    """Returns the spans of a message. The spans of a reply do not include the generation prompt."""
    if index not in rendered.reply_indexes:
        start, end = rendered.find_message_span(index)
        earlier = rendered.sample.msgs[: index + 1]
        # The text of the first message can begin with a default system prompt and the declarations of tools.
        is_first = earlier[-1].role != "system" and all(msg.role == "system" for msg in earlier[:-1])
        return [(max(start, find_start(rendered)) if is_first else start, end)]
    # For a reply that is not trained, the search may also find a text that later messages changed.
    is_trained = rendered.sample.get_weight(index) != 0
    return rendered.find_reply_spans(index) if is_trained else rendered.find_changed_reply_spans(index)


def _find_weighted(rendered: RenderedSample, index: int, value: int) -> list[Span]:
    """Returns the spans of a message with the weight `value`, or of its blocks with this weight."""
    weight = rendered.sample.get_weight(index)
    if not isinstance(weight, tuple):
        return _find_message_spans(rendered, index) if weight == value else []
    return find_blocks(rendered, index, [number for number, item in enumerate(weight) if item == value])
