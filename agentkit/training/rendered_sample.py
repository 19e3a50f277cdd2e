"""`RenderedSample`: finds the texts of messages in the text of a sample.

A template with `{% generation %}` blocks marks the replies. For other templates, two shorter conversations are
rendered for each reply. The first is the prompt that the model received: the messages before the reply, with a
generation prompt. The second ends with the reply. The text of the sample must start with both texts. The reply
begins where the first text ends, and ends where the second text ends.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Final, NamedTuple, NoReturn

from agentkit.errors import MessageError, TemplateError
from agentkit.messages.message import Msg
from agentkit.tools.tool import ToolLike
from agentkit.training.generation_prompt import locate_generation_prompt
from agentkit.training.sample_text import ReplyPrompt, SampleText
from agentkit.training.text_spans import Span, skip_space

__all__ = ["RenderedSample"]

_ADVICE: Final = (
    "Pass each sample that split_rewritten() returns, pass the formatter to samples_from_log(), or use a template "
    "that marks replies with {% generation %} blocks."
)

_TAIL: Final = 500
"""Number of characters at the end of a text that are compared first. Most changes of a text affect its end."""


class _ReplySpan(NamedTuple):
    """Span of a reply.

    `has_served_prompt` is True if the text before the reply is the prompt that the model received.
    """

    span: Span
    has_served_prompt: bool


@dataclass
class RenderedSample(SampleText):
    """Rendered sample with methods that find messages and replies in its text."""

    _span_cache: dict[int, _ReplySpan] = field(default_factory=dict[int, "_ReplySpan"], init=False, repr=False)
    _tail_cache: dict[int, tuple[int, str]] = field(
        default_factory=dict[int, tuple[int, str]], init=False, repr=False
    )
    """Maps the index of a message to the position and the text of the last characters up to this message."""

    @cached_property
    def generation_spans(self) -> tuple[Span, ...]:
        """Spans of the texts in `{% generation %}` blocks, each with the stop token that follows the block.

        Empty if the template has no such blocks, or if `text` is not the rendered conversation.
        """
        if not self.is_rendered_conversation:
            return ()
        spans = [span for span in self.rendering.spans if span[0] < span[1]]
        if spans and self.template.check().ends_with_stop_token is False:
            return tuple((start, self._extend_to_stop(end)) for start, end in spans)
        return tuple(spans)

    def _extend_to_stop(self, end: int) -> int:
        stop, position = self.template.check().stop_token, skip_space(self.text, end)
        return position + len(stop) if stop and self.text.startswith(stop, position) else end

    def replace_msgs(self, msgs: Sequence[Msg], tools: Sequence[ToolLike] | None = None) -> RenderedSample:
        """Returns a rendered sample with other messages. The new sample has no weights and no token ids.

        Args:
            msgs: The messages.
            tools: The tools. None means the tools of this sample.
        """
        declared = self.sample.tools if tools is None else tools
        sample = replace(self.sample, msgs=msgs, tools=declared, weights=None, tokens=None)
        return RenderedSample(sample, self.template)

    # -- replies -----------------------------------------------------------------------------------------------

    def find_all_reply_spans(self) -> list[Span]:
        """Returns the spans of the replies of all agents, without the generation prompts.

        Raises:
            MessageError: The text of a reply cannot be found.
        """
        if self.generation_spans:
            return [self._exclude_generation_prompt(span) for span in self.generation_spans]
        self.cache_spans_from_last(self.reply_indexes)
        return [span for index in self.reply_indexes for span in self.find_reply_spans(index)]

    def try_find_all_reply_spans(self) -> list[Span]:
        """Returns the spans of the replies of all agents. Empty if a reply cannot be found."""
        try:
            return self.find_all_reply_spans()
        except MessageError:  # later messages change the text of earlier messages
            return []

    def cache_spans_from_last(self, indexes: Sequence[int]) -> None:
        """Finds and caches the spans of replies, from the last reply to the first, until a reply cannot be found.

        This order is fast, because a rendering of fewer messages reuses parts of a rendering of more messages (see
        `PrefixRenderer`).
        """
        for index in reversed(indexes) if not self.generation_spans else ():
            try:
                self._find_reply_span(index)
            except (MessageError, TemplateError):
                break

    def find_reply_spans(self, index: int) -> list[Span]:
        """Returns the spans of a reply, without the generation prompt. `index` is the index of the message.

        The list has one span, unless the template marks several parts of the reply or no part.

        Raises:
            MessageError: The text of the reply cannot be found.
        """
        if not self.generation_spans:
            return [self._find_reply_span(index).span]
        if len(self.generation_spans) == len(self.reply_indexes):
            return [self._exclude_generation_prompt(self.generation_spans[self.reply_indexes.index(index)])]
        start, end = self.find_message_span(index)
        return [self._exclude_generation_prompt(span) for span in self.generation_spans if start <= span[0] < end]

    def find_changed_reply_spans(self, index: int) -> list[Span]:
        """Returns the spans of a reply, even if later messages changed the text of the reply.

        Raises:
            MessageError: The text of the reply cannot be found.
        """
        try:
            return self.find_reply_spans(index)
        except MessageError:
            if index not in self.loop_spans:
                raise
            start, end = self.loop_spans[index]
            length = self._cut_after_stop(self.text[start:end])
            return [self._exclude_generation_prompt((start, end if length is None else start + length))]

    def _exclude_generation_prompt(self, span: Span) -> Span:
        if self.template.tags is not None:  # templates with `tags` include the generation prompt in the reply
            start = span[0] + len(self.generation_prompts[0] if self.generation_prompts else "")
            return (start, span[1]) if start <= span[1] else span
        prompt_span = locate_generation_prompt(self.text, span[0], self.generation_prompts)
        return (prompt_span[1], span[1]) if prompt_span and prompt_span[1] <= span[1] else span

    def include_generation_prompt(self, span: Span) -> Span:
        """Returns the span of a reply together with its generation prompt, if there is one."""
        prompt_span = locate_generation_prompt(self.text, span[0], self.generation_prompts)
        return (prompt_span[0], span[1]) if prompt_span else span

    def _find_reply_span(self, index: int) -> _ReplySpan:
        """Finds the span of a reply by rendering two shorter conversations.

        Raises:
            MessageError: The text of the reply cannot be found.
        """
        if index in self._span_cache:
            return self._span_cache[index]
        if not index:
            prompt: ReplyPrompt | None = self._find_first_prompt()
        elif index == len(self.sample.msgs) - 1 and self.is_rendered_conversation:
            prompt = self.last_prompt
        else:
            prompt = self.find_prompt(self.text, index)
        if prompt is None:
            self._refuse_rewritten(index)
        start, end = prompt.end, self._find_end(index)
        length = self._cut_after_stop(self.text[start:end])
        span = self._exclude_generation_prompt((start, end if length is None else start + length))
        self._span_cache[index] = result = _ReplySpan(span, prompt.is_served)
        return result

    def _find_first_prompt(self) -> ReplyPrompt:
        generation_prompt = next((item for item in self.generation_prompts if item in self.text), None)
        if generation_prompt is None:
            reason = "the conversation starts with a reply, and the template does not mark replies"
            self._refuse(0, reason, "Use a template that marks replies with {% generation %} blocks.")
        return ReplyPrompt(self.text.index(generation_prompt) + len(generation_prompt), is_served=True)

    def _cut_after_stop(self, text: str) -> int | None:
        """Returns the length of a text up to and including the stop token at its end.

        White space and the eos token after the stop token are ignored. Returns None if the text does not end with
        a stop token.
        """
        stop, text = self.template.check().stop_token, text.rstrip()
        for token in ("", self.template.special_tokens.get("eos_token") or ""):
            text = text.removesuffix(token).rstrip()
            if stop and text.endswith(stop):
                return len(text)
        return None

    # -- messages ----------------------------------------------------------------------------------------------

    def find_message_span(self, index: int) -> Span:
        """Returns the span of a message, with the header and the stop token that the template writes.

        Raises:
            MessageError: The text of the message cannot be found.
        """
        try:
            return (self._find_end(index - 1) if index else 0), self._find_end(index)
        except (MessageError, TemplateError):
            if index not in self.loop_spans:
                raise
            return self.loop_spans[index]

    def _find_end(self, index: int) -> int:
        if index + 1 == len(self.sample.msgs):
            return len(self.text)
        end = self.find_prefix_end(self.text, index + 1)
        if end is not None:
            return end
        text = self._render_through(index)
        if not self.text.startswith(text):
            self._refuse_rewritten(index)
        return len(text)

    def _render_through(self, index: int) -> str:
        """Returns the text of the messages up to and including a message.

        Removes white space, the eos token and the bos token from the end, because some templates write them only
        after the last message.
        """
        text = self.render_prefix(index + 1).rstrip()
        for name in ("eos_token", "bos_token"):
            text = text.removesuffix(self.template.special_tokens.get(name) or "").rstrip()
        return text

    def _keeps_tail(self, longer_sample: RenderedSample, index: int) -> bool:
        """Returns True if later messages did not change the last characters of the text up to a message.

        The function compares only the last characters, which is faster than `_find_end`.
        """
        tails = longer_sample._tail_cache
        if index not in tails:
            text = self._render_through(index)
            start = max(len(text) - _TAIL, 0)
            tails[index] = start, text[start:]
        position, tail = tails[index]
        return self.text.startswith(tail, position)

    def _refuse_rewritten(self, index: int) -> NoReturn:
        name = self.template.name
        if index == len(self.sample.msgs) - 1:
            reason = (
                f"the chat template {name!r} does not write this reply after the prompt that the model received"
            )
            advice = "Use another chat template, or set the weight of this reply to 0."
            self._refuse(index, reason, advice)
        reason = (
            f"the chat template {name!r} changes the text of earlier messages when other messages follow, so the "
            "text of this message cannot be found"
        )
        self._refuse(index, reason)

    def _refuse(self, index: int, reason: str, advice: str = _ADVICE) -> NoReturn:
        raise MessageError(f"msgs[{index}]", reason, advice)

    def is_unchanged(self, index: int) -> bool:
        """Returns True if later messages change neither the text of a reply nor the text before the reply."""
        if self.longer_sample is not None and not self._keeps_tail(self.longer_sample, index):
            return False
        try:
            if index:
                return self._find_reply_span(index).has_served_prompt
            self._find_end(index)
        except MessageError:
            return False
        return True
