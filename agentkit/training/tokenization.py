"""`tokenize`: returns the token ids of a sample, and the loss mask with the tokens that a model learns."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from operator import itemgetter
from typing import Final, Literal, TypeAlias, cast

from agentkit.argument_checks import check_choice, check_int, check_option
from agentkit.chat_templates.chat_template import ChatTemplate
from agentkit.errors import MessageError, OptionError
from agentkit.reprs import bounded_repr, shorten_repr
from agentkit.training.reply_spans import ReplySpans
from agentkit.training.sample import Sample
from agentkit.training.text_encoder import Encode, Encoder, as_encoder
from agentkit.training.text_spans import Span, merge_spans
from agentkit.training.trained_spans import TrainOn, find_trained_spans

__all__ = ["Side", "TokenizedSample", "tokenize"]

Side: TypeAlias = Literal["right", "left"]
"""Side on which a long sample is cut."""

IGNORED_LABEL: Final = -100
"""Label of a token that is not trained. PyTorch's cross entropy ignores it by default."""


@dataclass(frozen=True, slots=True)
class TokenizedSample:
    """Token ids of a sample, and the tokens that are trained.

    Attributes:
        ids: Token ids.
        loss_mask: 1 for each token that is trained, and 0 for any other token.
        labels: The token id for each token that is trained, and -100 for any other token. The labels are not
            shifted.
        spans: Start and end of each sequence of trained tokens, as indexes of `ids`.
    """

    ids: list[int]
    loss_mask: list[int]
    labels: list[int]
    spans: list[tuple[int, int]]

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
    encode: Encoder,
    *,
    train_on: TrainOn = "assistant",
    train_thinking: bool = True,
    train_generation_prompt: bool = False,
    max_tokens: int | None = None,
    side: Side = "right",
    now: datetime | None = None,
) -> TokenizedSample:
    """Renders a sample with a chat template, and returns its tokens and the loss mask.

    A token is trained if all its characters are trained. The stop token after a reply is trained if the template
    writes it and the reply was not cut off (`Msg.finish_reason`). A weight of the sample has precedence over
    `train_on`.

    A template can mark replies with `{% generation %}` blocks. With many other templates, one rendering proves
    where the replies are. For a template that reads all messages first, agentkit renders the messages before each
    reply. This fails if later messages change the text of earlier messages, for example if the template omits
    earlier thinking. In this case, pass the results of `split_rewritten`.

    Args:
        sample: The sample.
        template: Chat template of the model.
        encode: Function that returns the token ids and offsets of a text, or a `tokenizers.Tokenizer`. It must
            read the special tokens in the text, and add none.
        train_on: `assistant` trains all replies. `last` trains the last reply. `all` trains all texts after the
            system messages, except messages of users with media and replies with the weight 0.
        train_thinking: False to train no text that the template writes because of thinking.
        train_generation_prompt: True to train the start of an assistant turn too, which the model never writes.
        max_tokens: Maximum number of tokens. None means no limit. If tokens are cut, the last token becomes the
            token `eos_token` of the template. This token is then not trained.
        side: Side on which tokens are cut.
        now: Time that the template reads. None means the current local time.

    Returns:
        The token ids, the loss mask, the labels, and the trained spans.

    Raises:
        MessageError: The text of a message cannot be found, or a message has a tool result and other content.
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
    check_option("now", now, datetime | None)
    if max_tokens is not None:
        check_int("max_tokens", max_tokens, 1)
    encode_text = as_encoder(encode)
    rendered = ReplySpans(sample, template, now)
    trained = find_trained_spans(rendered, train_on, train_thinking, train_generation_prompt)
    if sample.tokens:
        ids, spans = _splice(rendered, trained, sample.tokens, encode_text, train_thinking)
    else:
        ids, spans = _encode_piece(encode_text, rendered.text, 0, len(rendered.text), trained)
    if max_tokens is not None and len(ids) > max_tokens:
        ids, spans = _truncate(ids, spans, max_tokens, side, _find_eos(template, encode_text))
    return _build(ids, spans)


def _build(ids: list[int], spans: list[Span]) -> TokenizedSample:
    mask, labels, position = list[int](), list[int](), 0
    for start, end in spans:
        mask += [0] * (start - position) + [1] * (end - start)
        labels += [IGNORED_LABEL] * (start - position) + ids[start:end]
        position = end
    mask += [0] * (len(ids) - position)
    labels += [IGNORED_LABEL] * (len(ids) - position)
    return TokenizedSample(ids, mask, labels, spans)


# -- tokens ------------------------------------------------------------------------------------------------------


def _encode_piece(
    encode: Encode, text: str, start: int, end: int, trained: Iterable[Span]
) -> tuple[list[int], list[Span]]:
    """Encodes a part of a text. Returns the token ids, and the trained tokens as spans of indexes."""
    encoded = encode(text if end - start == len(text) else text[start:end])
    _check_pair(encoded)
    ids, offsets = encoded
    if len(ids) != len(offsets):
        reason = f"expected one offset for each token, got {len(ids)} tokens and {len(offsets)} offsets"
        raise OptionError("encode", reason, "Return the token ids, and the start and end of each token.")
    spans = [_find_tokens(offsets, first - start, last - start) for first, last in trained]
    return ids if isinstance(ids, list) else list(ids), [span for span in spans if span[0] < span[1]]


def _check_pair(encoded: object) -> None:
    """Checks that a function for encoding returned two lists."""
    pair = cast("Sequence[object]", encoded)
    if not isinstance(encoded, tuple | list) or len(pair) != 2:
        reason = f"expected token ids and offsets, got {shorten_repr(pair, 60)}"
        raise OptionError("encode", reason, "Return the token ids, and the start and end of each token.")


_get_end: Final = itemgetter(1)


def _find_tokens(offsets: Sequence[tuple[int, int]], start: int, end: int) -> Span:
    """Returns the tokens whose characters are all between two positions."""
    first = bisect_left(offsets, (start,))
    last = bisect_right(offsets, end, key=_get_end)
    while first < last and offsets[first][1] <= start:  # a token without characters, before the text
        first += 1
    return first, last


def _splice(
    rendered: ReplySpans,
    trained: Sequence[Span],
    tokens: Mapping[int, Sequence[int]],
    encode: Encode,
    train_thinking: bool,
) -> tuple[list[int], list[Span]]:
    """Encodes the texts between recorded replies. Returns all token ids, and the trained tokens."""
    ids, spans, position = list[int](), list[Span](), 0
    for start, end, recorded in _list_recorded(rendered, tokens, encode, train_thinking):
        piece, inner = _encode_piece(encode, rendered.text, position, start, trained)
        spans += [(first + len(ids), last + len(ids)) for first, last in inner]
        ids += piece
        if any(first < end and last > start for first, last in trained):
            spans.append((len(ids), len(ids) + len(recorded)))
        ids += recorded
        position = end
    piece, inner = _encode_piece(encode, rendered.text, position, len(rendered.text), trained)
    spans += [(first + len(ids), last + len(ids)) for first, last in inner]
    return ids + piece, merge_spans(spans)


def _list_recorded(
    rendered: ReplySpans, tokens: Mapping[int, Sequence[int]], encode: Encode, train_thinking: bool
) -> Iterator[tuple[int, int, Sequence[int]]]:
    """Yields start and end of the text that recorded tokens replace, and the tokens."""
    stop = rendered.template.check().stop_token
    stop_ids = list(encode(stop)[0]) if stop else []
    for index in sorted(tokens):
        recorded = tokens[index]
        place = f"msgs[{index}]"
        if isinstance(rendered.sample.get_weight(index), tuple) or not (
            train_thinking or all(block.type != "thinking" for block in rendered.sample.msgs[index].blocks)
        ):
            reason = "parts of a reply with recorded token ids cannot be excluded from training"
            raise MessageError(place, reason, "Use one weight for the message, or remove its token ids.")
        if not rendered.is_unchanged(index):
            reason = "the chat template writes the reply or its prompt differently when other messages follow"
            raise MessageError(place, reason, "Use split_rewritten().")
        spans = rendered.find_reply(index)
        if not spans:
            reason = "the chat template writes no text for the reply, but it has recorded token ids"
            raise MessageError(place, reason, "Remove the token ids, or use another template.")
        start, end = spans[0][0], spans[-1][1]
        reply = rendered.text[start:end].rstrip()
        if stop and reply.endswith(stop):
            # The text before the stop token is replaced. So is the stop token, if the model wrote it.
            is_stopped = bool(stop_ids) and list(recorded[-len(stop_ids) :]) == stop_ids
            end = start + len(reply) - (0 if is_stopped else len(stop))
        yield start, end, recorded


# -- truncation --------------------------------------------------------------------------------------------------


def _find_eos(template: ChatTemplate, encode: Encode) -> int | None:
    """Returns the id of the token `eos_token`. Returns None if the template has no such token."""
    token = template.special_tokens.get("eos_token")
    ids = encode(token)[0] if token else ()
    return ids[0] if len(ids) == 1 else None


def _truncate(
    ids: list[int], spans: list[Span], max_tokens: int, side: Side, eos: int | None
) -> tuple[list[int], list[Span]]:
    """Keeps the first or last tokens, and replaces the last token by `eos` as torchtune does."""
    first = 0 if side == "right" else len(ids) - max_tokens
    remaining = ids[first : first + max_tokens]
    end = max_tokens
    if eos is not None and remaining[-1] != eos:
        remaining[-1] = eos
        end -= 1
    moved = [(max(start - first, 0), min(last - first, end)) for start, last in spans]
    return remaining, [span for span in moved if span[0] < span[1]]
