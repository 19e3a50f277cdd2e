"""`find_missing_stops`: finds the stop tokens that a chat template does not write as part of a reply.

`find_stops_after_cut_off_replies` finds the stop tokens that the template wrote, but the model did not write.

Some templates write no text after a reply. The model ends the reply with the tag of the next turn: GLM-4.5 writes
`<|user|>` after a text, and `<|observation|>` after tool calls. Other templates leave the stop token to the
tokenizer, as torchtune does for Llama 2.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Final, NamedTuple

from agentkit.chat_templates.chat_template import ChatTemplate
from agentkit.errors import AgentkitError, MessageError, TemplateError
from agentkit.messages.blocks import ToolResultBlock, ToolUseBlock
from agentkit.messages.features import Feature
from agentkit.messages.message import Msg
from agentkit.messages.usage import FinishReason
from agentkit.training.probe_msgs import REPLY, USER
from agentkit.training.rendered_sample import RenderedSample
from agentkit.training.text_spans import Span, skip_space

__all__ = ["StopTokens", "find_missing_stops", "find_stops_after_cut_off_replies"]

_ADVICE: Final = (
    "Pass stop_tokens= with the texts of the tokens that end a reply (`eos_token_id` in generation_config.json). "
    "Pass an empty list to train replies without a stop token."
)
_MAX_TOKEN: Final = 100  # maximum length of a control token and the white space after it, in characters
_CALL: Final = Msg("assistant", [ToolUseBlock("abcde1234", "tool", {"word": "Callword"})], "assistant")
_RESULT: Final = Msg("tool", [ToolResultBlock("abcde1234", "tool", "Resultword")], "system")


class StopTokens(NamedTuple):
    """Stop tokens that are added to the trained spans, because the template does not end the replies with them.

    Attributes:
        spans: Spans of the stop tokens after trained replies.
        suffix: Stop token of the last reply, which must be added to the text. Empty if there is none.
        losses: Place and reason for each trained reply without a stop token.
    """

    spans: list[Span]
    suffix: str
    losses: list[tuple[str, str]]


def find_missing_stops(
    rendered: RenderedSample, trained: Sequence[Span], stop_tokens: Sequence[str] | None
) -> StopTokens:
    """Finds stop tokens for the trained replies after which the template writes no stop token.

    Skips replies with recorded token ids, and replies that the model did not finish.

    Args:
        rendered: Rendered sample.
        trained: Spans of the trained parts of the text.
        stop_tokens: Stop tokens of the model. None raises an error if the template never writes a stop token.

    Raises:
        MessageError: The template never writes a stop token, and `stop_tokens` is None.
    """
    template, text, suffix, tokens = rendered.template, rendered.text, "", stop_tokens or ()
    stop, spans, losses = template.check().stop_token, list[Span](), list[tuple[str, str]]()
    for index in rendered.reply_indexes:
        msg = rendered.sample.msgs[index]
        end = _find_trained_end(rendered, index, trained)
        if end is None or _is_cut_off(msg) or index in (rendered.sample.tokens or {}):
            continue
        position = skip_space(text, end)
        token = max((token for token in tokens if text.startswith(token, position)), key=len, default="")
        if token:
            spans.append((end, position + len(token)))
        elif not stop and position == len(text) and tokens:
            following = _render_next_turn(template, bool(msg.features & Feature.CALL))
            suffix = max(filter(following.startswith, tokens), key=len, default=tokens[0])
            spans.append((len(text), len(text) + len(suffix)))
        elif not stop or not _ends_with_control_token(template, text[max(end - _MAX_TOKEN, 0) : end]):
            losses.append(
                (f"msgs[{index}]", f"the chat template {template.name!r} writes no stop token after the reply")
            )
    if losses and stop_tokens is None and not stop:
        raise MessageError(*losses[0], _ADVICE)
    return StopTokens(spans, suffix, losses)


def _find_trained_end(rendered: RenderedSample, index: int, trained: Sequence[Span]) -> int | None:
    """Returns the end of a reply. Returns None if the end is not trained, or if the reply has a stop token."""
    try:
        spans = rendered.find_reply_spans(index)
    except (MessageError, TemplateError):  # later messages change this reply, so the reply is not trained
        return None
    if not spans:
        return None
    start, end = spans[-1]
    stop = rendered.template.check().stop_token
    if stop and rendered.text[start:end].rstrip().endswith(stop):
        return None
    return end if any(first < end <= last for first, last in trained) else None


def _ends_with_control_token(template: ChatTemplate, text: str) -> bool:
    """Returns True if a text ends with a control token. Some models end tool calls with a token of their own.

    gpt-oss, for example, ends tool calls with `<|call|>`, and texts with `<|return|>`.
    """
    text, pattern = text.rstrip(), template.control_pattern
    return pattern is not None and any(match.end() == len(text) for match in pattern.finditer(text))


def find_stops_after_cut_off_replies(rendered: RenderedSample) -> list[Span]:
    """Returns the spans of the stop tokens after replies that were cut off.

    The template wrote these stop tokens, but the model did not write them.
    """
    indexes = [index for index in rendered.reply_indexes if _is_cut_off(rendered.sample.msgs[index])]
    stop = rendered.template.check().stop_token if indexes else ""
    spans: list[Span] = []
    for index in indexes if stop else ():
        try:
            reply = rendered.find_reply_spans(index)[-1:]
        except MessageError:  # later messages change this reply, so the reply is not trained
            continue
        for start, end in reply:
            text = rendered.text[start:end].rstrip()
            if text.endswith(stop):
                spans.append((start + len(text) - len(stop), end))
    return spans


def _is_cut_off(msg: Msg) -> bool:
    """Returns True if the model did not finish a reply, for example because of the limit of output tokens."""
    return msg.metadata is not None and msg.finish_reason in (FinishReason.LENGTH, FinishReason.INTERRUPTED)


@lru_cache(256)
def _render_next_turn(template: ChatTemplate, has_calls: bool) -> str:
    """Returns the text that a template writes for the message after a reply.

    This message is a tool result if the reply has tool calls, and otherwise a user message.

    Returns an empty string if this text is unknown.
    """
    reply, following = (_CALL, _RESULT) if has_calls else (REPLY, USER)
    try:
        text, longer = (
            template.render(msgs, add_generation_prompt=False, validate=False).text
            for msgs in ([USER, reply], [USER, reply, following])
        )
    except AgentkitError:
        return ""
    return longer[len(text) :].lstrip() if longer.startswith(text) else ""
