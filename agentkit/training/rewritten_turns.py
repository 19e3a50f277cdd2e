"""`split_rewritten`: splits a conversation in which the chat template rewrites earlier turns."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from agentkit.argument_checks import check_option
from agentkit.chat_templates.chat_template import ChatTemplate
from agentkit.training.rendered_sample import RenderedSample
from agentkit.training.sample import MessageWeight, Sample, list_reply_indexes

__all__ = ["split_rewritten"]


def split_rewritten(sample: Sample, template: ChatTemplate) -> list[Sample]:
    """Splits a sample, so that each reply is trained with the prompt that the model received.

    Many templates omit the thinking of earlier replies, so the conversation that a model reads changes when new
    messages follow. A sample of the whole conversation would train texts that the model did not write. This
    function returns several samples. In each sample, later messages change neither the trained replies nor the
    prompts of these replies. If the template changes nothing, the list contains only the sample itself.

    If messages after the last reply change this reply, these messages are in no sample.

    A reply with the weight 0 gets no sample of its own, unless it is the last reply. In each of the samples,
    replies that another sample trains have the weight 0. With `train_on="last"`, `tokenize` trains the last reply
    of each of these samples. To train only the last reply of the conversation, pass only the last sample.

    Args:
        sample: The sample.
        template: Chat template of the model.

    Returns:
        The samples in the order of the conversation.

    Raises:
        TemplateError: The template refuses the messages.

    Example:
        >>> from agentkit import Msg
        >>> msgs = [Msg("Bob", "Hi.", "user"), Msg("Friday", "Hi.", "assistant"), Msg("Bob", "Bye.", "user")]
        >>> len(split_rewritten(Sample(msgs), ChatTemplate.builtin("zephyr")))
        1
    """
    check_option("sample", sample, Sample)
    check_option("template", template, ChatTemplate)
    replies = _list_trainable(sample)
    remaining = [index for index in replies if index == replies[-1] or sample.get_weight(index) != 0]
    parts: list[Sample] = []
    rendered = full = RenderedSample(sample, template)
    while remaining:
        last = len(rendered.sample.msgs) - 1
        if rendered is full and remaining != [last]:
            rendered.cache_spans_from_last([index for index in remaining if index != last])
        unchanged = {index for index in remaining if index == last or rendered.is_unchanged(index)}
        if rendered is full and len(unchanged) == len(remaining):
            return [sample]
        if unchanged:
            parts.append(_train_only(rendered.sample, unchanged))
            remaining = [index for index in remaining if index not in unchanged]
        if remaining:
            rendered = RenderedSample(
                _take_first_messages(sample, remaining[-1] + 1), template, longer_sample=full
            )
    return parts[::-1] if parts else [sample]


def _list_trainable(sample: Sample) -> list[int]:
    """Returns the indexes of the replies of the viewer, and of other replies with the weight 1."""
    replies = {*sample.replies}
    return [
        index
        for index in list_reply_indexes(sample.msgs)
        if index in replies or _has_weight(sample.get_weight(index))
    ]


def _has_weight(weight: MessageWeight) -> bool:
    return any(weight) if isinstance(weight, tuple) else bool(weight)


def _take_first_messages(sample: Sample, count: int) -> Sample:
    tokens = {index: ids for index, ids in (sample.tokens or {}).items() if index < count}
    weights = None if sample.weights is None else sample.weights[:count]
    return replace(sample, msgs=sample.msgs[:count], weights=weights, tokens=tokens, rejected=())


def _train_only(sample: Sample, indexes: Collection[int]) -> Sample:
    """Returns a sample in which replies outside of `indexes` have the weight 0 and no recorded token ids."""
    others = {*_list_trainable(sample)} - {*indexes}
    weights = [0 if index in others else sample.get_weight(index) for index in range(len(sample.msgs))]
    tokens = {index: ids for index, ids in (sample.tokens or {}).items() if index not in others}
    return replace(sample, weights=weights, tokens=tokens)
