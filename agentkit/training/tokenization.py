"""`tokenize`: returns the token ids of a sample, and a loss mask that marks the trained tokens."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias, cast

from agentkit.argument_checks import check_choice, check_int, check_option
from agentkit.chat_templates.chat_template import ChatTemplate
from agentkit.errors import OptionError
from agentkit.reprs import bounded_repr
from agentkit.training.recorded_tokens import splice_tokens
from agentkit.training.rendered_sample import RenderedSample
from agentkit.training.reply_losses import check_calls, find_reply_losses
from agentkit.training.sample import Sample
from agentkit.training.stop_tokens import find_missing_stops
from agentkit.training.text_encoder import Encode, TokenizerLike, as_tokenizer
from agentkit.training.text_spans import Span, merge_spans
from agentkit.training.trained_spans import TrainOn, find_trained_spans

__all__ = ["Side", "TokenizedSample", "tokenize"]

Side: TypeAlias = Literal["right", "left"]
"""Side on which the tokens of a long sample are removed."""

_IGNORED_LABEL: Final = -100
"""Label of a token that is not trained. PyTorch's cross entropy ignores this label by default."""


@dataclass(frozen=True, slots=True)
class TokenizedSample:
    """Token ids of a sample, and the tokens that are trained.

    Attributes:
        ids: Token ids.
        loss_mask: 1 for each token that is trained, and 0 for any other token.
        labels: The token id for each token that is trained, and -100 for any other token. The labels are not
            shifted: `labels[0]` belongs to `ids[0]`.
        spans: Start and end of each range of trained tokens, as indexes of `ids`.
        losses: Place and reason for each part of a trained reply that is not in the text: blocks that the template
            does not write, and missing stop tokens. Replies with recorded token ids have no losses.
    """

    ids: list[int]
    loss_mask: list[int]
    labels: list[int]
    spans: list[tuple[int, int]]
    losses: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])

    __repr__ = bounded_repr

    @property
    def trained(self) -> int:
        """Number of trained tokens."""
        return sum(end - start for start, end in self.spans)

    def to_dict(self) -> dict[str, list[int]]:
        """Returns the columns `input_ids`, `labels` and `loss_mask` for a data set."""
        return {"input_ids": self.ids, "labels": self.labels, "loss_mask": self.loss_mask}


def tokenize(
    sample: Sample,
    template: ChatTemplate,
    encode: TokenizerLike,
    *,
    train_on: TrainOn = "assistant",
    train_thinking: bool = True,
    train_generation_prompt: bool = False,
    max_tokens: int | None = None,
    side: Side = "right",
    stop_tokens: Sequence[str] | None = None,
) -> TokenizedSample:
    """Renders a sample with a chat template, and returns the token ids and the loss mask.

    A token is trained if all its characters are trained. The stop token after a trained reply is trained too,
    unless the reply was cut off (`Msg.finish_reason`). `Sample.weights` override `train_on`.

    Some templates write no stop token after a reply. Then pass `stop_tokens`: the texts of the tokens with which
    the model ends a reply (`eos_token_id` in `generation_config.json`). If the tag of the next turn is one of
    these tokens, as for GLM-4.5, the tag is trained. If a reply ends the text, `tokenize` adds a stop token: the
    tag that a next turn would have, or the first text in `stop_tokens`.

    A template can mark replies with `{% generation %}` blocks. With other templates, `tokenize` also renders the
    conversation up to the start and up to the end of each reply. For long conversations, these renderings are slow
    with two kinds of templates: the loop over the messages is inside a macro or block, or a part outside of the
    loops reads the number of messages.

    If a sample ends with a reply, the rendered text starts with the prompt that the model received. The template
    may write the same messages differently when the reply follows. This rule has two exceptions:

    - If the template has `{% generation %}` blocks and the reply has no recorded token ids, the text is the
      conversation as the template renders it.
    - Some generation prompts open thinking, but the template then writes no thinking (DeepSeek R1). The text then
      has neither the opening nor the thinking. To train the thinking, record its token ids in `Sample.tokens`.

    `tokenize` raises an error if later messages change the text of earlier messages, for example if the template
    omits earlier thinking. In this case, pass each sample that `split_rewritten` returns. `train_on="last"` then
    trains the last reply of each of these samples.

    Args:
        sample: The sample.
        template: Chat template of the model.
        encode: Function that returns the token ids and offsets of a text, a `tokenizers.Tokenizer`, or a fast
            tokenizer of transformers. The function must convert special tokens in the text to their ids, and must
            not add special tokens.
        train_on: `assistant` trains all replies of `Sample.viewer`, or of all agents if it is None. `last` trains
            the last of these replies. `all` trains all texts after the system messages and the declarations of
            tools, except generation prompts, user messages with media, and messages with the weight 0.
        train_thinking: False excludes thinking and its tags from training, and also the white space next to the
            tags. If the template writes an empty pair of tags for a reply without thinking, this pair is excluded
            too.
        train_generation_prompt: True also trains the text that opens a reply, such as `<|im_start|>assistant`. The
            model never writes this text.
        max_tokens: Maximum number of tokens. None means no limit. If tokens are removed, the template's
            `eos_token` replaces the last remaining token, unless this token is the `eos_token`. The added
            `eos_token` is not trained.
        side: Side on which tokens are removed. `right` keeps the first tokens, and `left` keeps the last tokens.
        stop_tokens: Texts of the stop tokens of the model, for replies after which the template writes no stop
            token. If the template never writes a stop token, None raises an error. Otherwise, a reply that does
            not end with a control token such as `<|im_end|>` is trained without a stop token. The reply is then
            reported as a loss.

    Returns:
        The token ids, the loss mask, the labels, the trained spans, and the losses.

    Raises:
        MessageError: A message cannot be found in the rendered text, or has a tool result and other content. Or
            the template does not write the tool calls or the stop token of a reply. Or recorded token ids cannot
            replace the text of their reply.
        OptionError: An option is invalid.
        TemplateError: The template refuses the messages.

    Example:
        >>> from agentkit import Msg
        >>> from agentkit.chat_templates import ChatTemplate
        >>> def encode(text):
        ...     return [ord(character) for character in text], [(i, i + 1) for i in range(len(text))]
        >>> sample = Sample([Msg("Bob", "Hello.", "user"), Msg("Friday", "Hi.", "assistant")])
        >>> tokenized = tokenize(sample, ChatTemplate.builtin("zephyr"), encode)
        >>> [bytes(tokenized.ids[start:end]) for start, end in tokenized.spans]
        [b'Hi.</s>']
    """
    check_option("sample", sample, Sample)
    check_option("template", template, ChatTemplate)
    check_choice("train_on", train_on, ("assistant", "all", "last"))
    check_choice("side", side, ("right", "left"))
    _check_stop_tokens(stop_tokens)
    if max_tokens is not None:
        check_int("max_tokens", max_tokens, 1)
    check_calls(sample, template, train_on)
    tokenizer, rendered = as_tokenizer(encode), RenderedSample(sample, template)
    trained = find_trained_spans(rendered, train_on, train_thinking, train_generation_prompt)
    stops = find_missing_stops(rendered, trained, stop_tokens)
    losses = [*find_reply_losses(rendered, trained, train_on, train_thinking), *stops.losses]
    trained = merge_spans([*trained, *stops.spans]) if stops.spans else trained
    ids, spans = splice_tokens(rendered, trained, tokenizer, train_thinking, suffix=stops.suffix)
    if max_tokens is not None and len(ids) > max_tokens:
        ids, spans = _truncate(ids, spans, max_tokens, side, _find_eos(template, tokenizer.encode))
    return _create_tokenized(ids, spans, losses)


def _check_stop_tokens(stop_tokens: object) -> None:
    advice = "Pass a list of texts, such as ['<|im_end|>']."
    check_option("stop_tokens", stop_tokens, list | tuple | None, advice)
    for index, token in enumerate(cast("Sequence[object]", stop_tokens or ())):
        check_option(f"stop_tokens[{index}]", token, str, advice)
        if not token:
            raise OptionError(f"stop_tokens[{index}]", "the text is empty", advice)


def _create_tokenized(ids: list[int], spans: list[Span], losses: list[tuple[str, str]]) -> TokenizedSample:
    mask, labels = [0] * len(ids), [_IGNORED_LABEL] * len(ids)
    for start, end in spans:
        mask[start:end] = [1] * (end - start)
        labels[start:end] = ids[start:end]
    return TokenizedSample(ids, mask, labels, spans, losses)


# -- truncation --------------------------------------------------------------------------------------------------


def _find_eos(template: ChatTemplate, encode: Encode) -> int | None:
    """Returns the id of the template's `eos_token`.

    Returns None if the template has no `eos_token`, or if its text is not exactly one token.
    """
    token = template.special_tokens.get("eos_token")
    ids = encode(token)[0] if token else ()
    return ids[0] if len(ids) == 1 else None


def _truncate(
    ids: list[int], spans: list[Span], max_tokens: int, side: Side, eos: int | None
) -> tuple[list[int], list[Span]]:
    """Removes tokens on one side, and replaces the last remaining token with `eos`, as torchtune does.

    If `eos` is None, the last remaining token is kept.
    """
    first = 0 if side == "right" else len(ids) - max_tokens
    remaining = ids[first : first + max_tokens]
    end = max_tokens
    if eos is not None and remaining[-1] != eos:
        remaining[-1] = eos
        end -= 1
    moved = [(max(start - first, 0), min(last - first, end)) for start, last in spans]
    return remaining, [span for span in moved if span[0] < span[1]]
