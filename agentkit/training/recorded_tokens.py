"""`splice_tokens`: returns the token ids of a conversation, with the recorded token ids of its replies.

A server can record the token ids that a model wrote, and these ids must be trained. If the text of a reply is
encoded again, the ids can differ. Therefore only the texts between the recorded replies are encoded:

- The text before a recorded reply is encoded without the reply, as on the server.
- The text after a recorded reply is encoded together with the text of the reply, because some tokenizers add a
  space to the start of each text. Only the tokens after the reply are used.
- If one token contains the end of the reply and later text, the text after the reply is encoded alone.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from operator import itemgetter
from typing import Final

from agentkit.errors import MessageError
from agentkit.messages.blocks import Block
from agentkit.reprs import shorten_repr
from agentkit.training.block_spans import get_block_text
from agentkit.training.rendered_sample import RenderedSample
from agentkit.training.text_encoder import Encode, TextTokenizer, find_tokens, is_space_after_stop
from agentkit.training.text_spans import Span, merge_spans

__all__ = ["splice_tokens"]

_get_start: Final = itemgetter(0)
_ADVICE: Final = "Pass the ids of this reply and the tokenizer of the model, or remove the ids from `tokens`."


def splice_tokens(
    rendered: RenderedSample,
    trained: Sequence[Span],
    tokenizer: TextTokenizer,
    train_thinking: bool,
    *,
    suffix: str = "",
) -> tuple[list[int], list[Span]]:
    """Returns the token ids of a conversation, and the spans of the trained tokens.

    Args:
        rendered: Rendered sample. Its recorded token ids replace the texts of their replies.
        trained: Spans of the trained parts of the rendered text.
        tokenizer: Tokenizer of the model. The recorded ids are compared with the text of their reply only if the
            tokenizer can decode them.
        train_thinking: False if no thinking is trained.
        suffix: Text to add to the end of the rendered text.

    Raises:
        MessageError: Recorded ids contradict the text of their reply, or cannot replace this text.
    """
    ids, spans, before, position = list[int](), list[Span](), 0, 0
    encode, stop = tokenizer.encode, rendered.template.check().stop_token

    def add(piece: tuple[Sequence[int], list[Span]]) -> None:
        spans.extend((first + len(ids), last + len(ids)) for first, last in piece[1])
        ids.extend(piece[0])

    for start, end, recorded in (
        _list_recorded(rendered, tokenizer, train_thinking) if rendered.sample.tokens else ()
    ):
        add(_encode_part(encode, rendered.text[before:start], position - before, before, trained, stop))
        is_trained = any(first < end and last > start for first, last in trained)
        add((recorded, [(0, len(recorded))] if is_trained else []))
        before, position = start, end
    add(_encode_part(encode, rendered.text[before:] + suffix, position - before, before, trained, stop))
    return ids, merge_spans(spans)


def _encode_part(
    encode: Encode, text: str, start: int, offset: int, trained: Sequence[Span], stop: str
) -> tuple[Sequence[int], list[Span]]:
    """Returns the token ids of a text from the index `start` on, and the spans of the trained ids among them.

    Args:
        encode: Function that encodes a text.
        text: The text.
        start: Index of the first character in `text` whose token is returned.
        offset: Position of `text` in the rendered conversation.
        trained: Trained spans of the rendered conversation.
        stop: Stop token of the template. Empty if there is none.
    """
    ids, offsets = encode(text)
    first = bisect_left(offsets, start, key=_get_start) if start else 0
    token_end = offsets[first - 1][1] if first else start
    if token_end > start and not is_space_after_stop(text, start, token_end, stop):
        return _encode_part(encode, text[start:], 0, offset + start, trained, stop)
    spans = [find_tokens(offsets, max(begin - offset, start), end - offset, text, stop) for begin, end in trained]
    return ids[first:], [(begin - first, end - first) for begin, end in spans if first <= begin < end]


def _list_recorded(
    rendered: RenderedSample, tokenizer: TextTokenizer, train_thinking: bool
) -> Iterator[tuple[int, int, Sequence[int]]]:
    """Yields, for each reply with recorded ids, the start and end of the text that the ids replace, and the ids.

    Raises:
        MessageError: Recorded ids contradict the text of their reply, or cannot replace this text.
    """
    encode, stop = tokenizer.encode, rendered.template.check().stop_token
    stop_ids = list(encode(stop)[0]) if stop else []
    tokens = rendered.sample.tokens or {}
    for index in sorted(tokens):
        recorded = list(tokens[index])
        start, end = _find_text(rendered, index, train_thinking)
        _check_prompt(rendered, index, recorded, encode)
        if tokenizer.can_decode:
            _check_text(rendered.sample.msgs[index].blocks, f"msgs[{index}]", recorded, tokenizer)
        reply = rendered.text[start:end].rstrip()
        if len(stop_ids) == 1 and stop_ids[0] in recorded[:-1] and stop not in reply.removesuffix(stop):
            reason = f"the token ids continue after the stop token {stop!r}"
            raise MessageError(f"msgs[{index}]", reason, _ADVICE)
        if stop and reply.endswith(stop):
            # The ids replace the text before the stop token, and also the stop token if the model wrote it.
            is_stopped = bool(stop_ids) and recorded[-len(stop_ids) :] == stop_ids
            if is_stopped and tokenizer.can_decode:
                # The last ids can equal the ids of the stop token, but be part of the reply's text.
                others = recorded[: -len(stop_ids)]
                is_stopped = (
                    _find_missing(rendered.sample.msgs[index].blocks, tokenizer.decode(others) or "") is None
                )
            elif tokenizer.can_decode and tokenizer.is_special(recorded[-1]):
                # The model may write <|eom_id|> at the end of a reply for which the template writes <|eot_id|>.
                is_stopped = not reply.removesuffix(stop).rstrip().endswith(tokenizer.decode(recorded[-1:]) or "")
            end = start + len(reply) - (0 if is_stopped else len(stop))
        yield start, end, recorded


def _find_text(rendered: RenderedSample, index: int, train_thinking: bool) -> Span:
    """Returns the span of the text of a reply that the recorded token ids replace.

    Raises:
        MessageError: The recorded token ids cannot replace the text.
    """
    place, msg = f"msgs[{index}]", rendered.sample.msgs[index]
    has_hidden_thinking = not train_thinking and any(block.type == "thinking" for block in msg.blocks)
    if has_hidden_thinking or isinstance(rendered.sample.get_weight(index), tuple):
        reason = "parts of a reply with recorded token ids cannot be excluded from training"
        raise MessageError(place, reason, "Train the whole reply, or remove its token ids.")
    if not rendered.is_unchanged(index):
        name = rendered.template.name
        reason = f"the chat template {name!r} changes the text of the reply or its prompt if other messages follow"
        raise MessageError(place, reason, "Pass each sample that split_rewritten() returns.")
    spans = rendered.find_reply_spans(index)
    if not spans:
        reason = "the chat template writes no text for the reply, but the reply has recorded token ids"
        raise MessageError(place, reason, "Remove the token ids, or use another template.")
    return spans[0][0], spans[-1][1]


def _check_prompt(rendered: RenderedSample, index: int, recorded: list[int], encode: Encode) -> None:
    """Raises MessageError if the recorded ids start with the generation prompt, which the model did not write."""
    start, _ = rendered.find_reply_spans(index)[0]
    for prompt in rendered.generation_prompts:
        ids = list(encode(prompt)[0])
        if ids and recorded[: len(ids)] == ids and not rendered.text.startswith(prompt, start):
            reason = f"the token ids start with the generation prompt {prompt!r}, which is not part of the reply"
            raise MessageError(f"msgs[{index}]", reason, _ADVICE)


def _check_text(blocks: Sequence[Block], place: str, recorded: list[int], tokenizer: TextTokenizer) -> None:
    """Compares the text of the recorded ids with the texts of the reply, without white space.

    Raises:
        MessageError: The text of the ids lacks a text of the reply, or the tokenizer does not know an id.
    """
    text = tokenizer.decode(recorded)
    if text is None:
        unknown = next(id for id in recorded if tokenizer.decode([id]) is None)
        raise MessageError(place, f"the tokenizer has no token for the recorded id {unknown}", _ADVICE)
    missing = _find_missing(blocks, text)
    if missing is not None:
        written, expected = shorten_repr(text, 60), shorten_repr(missing, 60)
        reason = f"the recorded token ids decode to the text {written}, which does not contain {expected}"
        raise MessageError(place, reason, _ADVICE)


def _find_missing(blocks: Sequence[Block], text: str) -> str | None:
    """Returns the first text of a block that `text` does not contain. White space is ignored.

    Returns None if `text` contains the texts of all blocks.
    """
    written = "".join(text.split())
    return next((item for item in map(get_block_text, blocks) if "".join(item.split()) not in written), None)
