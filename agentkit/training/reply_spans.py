"""`ReplySpans`: renders a sample, and finds the texts of its messages in the rendered text.

A template with `{% generation %}` blocks marks the replies. For many other templates, one rendering is enough
to find all replies (see `traced_replies`). Otherwise two shorter conversations are rendered for each message. The
first ends before the message, and the second ends with the message. The text of the whole conversation must start
with both texts. The message begins where the first text ends, and ends where the second text ends.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from typing import Any, Final, NoReturn

from agentkit.chat_templates.chat_template import ChatTemplate
from agentkit.errors import MessageError, TemplateError
from agentkit.jinja_environments.chat_rendering import Rendering
from agentkit.jinja_environments.message_trace import ChatTrace
from agentkit.messages.message import Msg
from agentkit.messages.usage import FinishReason
from agentkit.training.generation_prompt import find_generation_prompts, locate_generation_prompt
from agentkit.training.sample import Sample, check_separate_results
from agentkit.training.text_spans import Span, count_common_end, count_common_start
from agentkit.training.traced_replies import ReplyMarkers, find_rewritten_replies, find_traced_replies

__all__ = ["ReplySpans"]

_ADVICE: Final = (
    "Use split_rewritten(), pass the formatter to samples_from_log(), or use a template that marks replies with "
    "{% generation %} blocks."
)

_OPTIONS: Final = frozenset({"messages", "msgs", "tools", "add_generation_prompt", "now", "validate"})
"""Names that a template variable cannot have, because `tokenize` passes these arguments itself."""
_RENDER_OPTIONS: Final = frozenset({"chat_template", "continue_final_message", "documents", "on_special_tokens"})
"""Options of `ChatTemplate.render` that a row can set in its column `chat_template_kwargs`."""

_OTHER_TEXT: Final = "\U0010fffd"
"""Placeholder for the text of a message: a private-use character, which messages do not contain."""


@dataclass
class ReplySpans:
    """Rendered sample. The methods return the positions of messages in the rendered text.

    Attributes:
        sample: The sample.
        template: Chat template of the model.
        now: Time that the template reads. None means the current local time.
    """

    sample: Sample
    template: ChatTemplate
    now: datetime | None = None

    @cached_property
    def chat(self) -> Rendering:
        """The rendered conversation."""
        check_separate_results(self.sample)
        return self.render(self.sample.msgs)

    @property
    def text(self) -> str:
        """The text of the conversation."""
        return self.chat.text

    def render(self, msgs: Sequence[Msg], *, is_open: bool = False) -> Rendering:
        """Renders messages with the tools of the sample. If `is_open`, the text ends with a generation prompt."""
        variables = self.sample.variables
        for name in sorted(variables.keys() & _OPTIONS):
            place = f"extra.chat_template_kwargs.{name}"
            raise MessageError(place, "`tokenize` passes this argument itself", "Remove the variable.")
        options: dict[str, Any] = {"tools": self.sample.tools, "add_generation_prompt": is_open, "now": self.now}
        if variables.keys() & _RENDER_OPTIONS:
            rendered = self.template.render(msgs, validate=False, **options, **variables)
            return Rendering(rendered.text, rendered.spans)
        return self.template.render_text(msgs, **options, **variables)

    @cached_property
    def marked(self) -> tuple[Span, ...]:
        """Spans of the `{% generation %}` blocks, each with the stop token after it. Empty without blocks."""
        spans = [span for span in self.chat.spans if span[0] < span[1]]
        if spans and self.template.check().ends_with_stop_token is False:
            return tuple((start, self._include_stop(end)) for start, end in spans)
        return tuple(spans)

    def _include_stop(self, end: int) -> int:
        stop, text = self.template.check().stop_token, self.text
        position = end
        while text[position : position + 1].isspace():
            position += 1
        return position + len(stop) if stop and text.startswith(stop, position) else end

    # -- replies -----------------------------------------------------------------------------------------------

    @cached_property
    def prompts(self) -> tuple[str, ...]:
        """Texts that the template can write before a reply (see `find_generation_prompts`)."""
        return find_generation_prompts(self.template, self.sample.variables)

    def find_all_replies(self) -> list[Span]:
        """Returns the spans of the replies of all agents, without the generation prompts."""
        if self.marked:
            return [self._cut_generation_prompt(span) for span in self.marked]
        return [span for index in self.all_replies for span in self.find_reply(index)]

    @cached_property
    def all_replies(self) -> tuple[int, ...]:
        """Indexes of the replies of all agents."""
        return replace(self.sample, viewer=None).replies

    def find_reply(self, index: int) -> list[Span]:
        """Returns the spans of the reply with this index, without the generation prompt.

        A template can mark several parts of one reply. Otherwise there is one span.

        Raises:
            MessageError: The text of the reply cannot be found.
        """
        if not self.marked:
            return [self._traced.get(index) or self._find_unmarked(index)]
        if len(self.marked) == len(self.all_replies):
            return [self._cut_generation_prompt(self.marked[self.all_replies.index(index)])]
        start, end = self.find_message(index)
        return [self._cut_generation_prompt(span) for span in self.marked if start <= span[0] < end]

    def find_written_reply(self, index: int) -> list[Span]:
        """Returns the spans of a reply, even if later messages changed the text of the reply.

        Raises:
            MessageError: The text of the reply cannot be found.
        """
        try:
            return self.find_reply(index)
        except MessageError:
            if index not in self._rewritten:
                raise
            return [self._rewritten[index]]

    @cached_property
    def _trace(self) -> ChatTrace | None:
        variables = self.sample.variables
        if variables.keys() & _RENDER_OPTIONS:
            return None
        try:
            return self.template.trace(self.sample.msgs, tools=self.sample.tools, now=self.now, **variables)
        except TemplateError:
            return None

    @cached_property
    def _traced(self) -> Mapping[int, Span]:
        """Spans of all replies by index. Empty if one rendering is not enough to find all replies."""
        if len(self.all_replies) < 2 or self._trace is None:
            return {}
        replies = find_traced_replies(self.text, self._trace, self.sample.msgs, self.all_replies, self._markers)
        first = {reply.before: index for index, reply in reversed((replies or {}).items())}
        try:
            if replies is None or any(
                self._find_unmarked(index) != replies[index].span for index in first.values()
            ):
                return {}
        except (TemplateError, MessageError):
            return {}
        return {index: reply.span for index, reply in replies.items()}

    @cached_property
    def _rewritten(self) -> Mapping[int, Span]:
        """Spans of all replies by index, whose texts later messages may have changed. Empty if unknown."""
        if self._trace is None:
            return {}
        return find_rewritten_replies(self.text, self._trace, self.all_replies, self._markers) or {}

    @cached_property
    def _markers(self) -> ReplyMarkers:
        eos = self.template.special_tokens.get("eos_token") or ""
        return ReplyMarkers(self.prompts, self.template.check().stop_token, eos)

    def _cut_generation_prompt(self, span: Span) -> Span:
        if self.template.tags is not None:  # the marked text of a reply begins with the tag
            start = span[0] + len(self.prompts[0] if self.prompts else "")
            return (start, span[1]) if start <= span[1] else span
        prompt = locate_generation_prompt(self.text, span[0], self.prompts)
        return (prompt[1], span[1]) if prompt and prompt[1] <= span[1] else span

    def add_generation_prompt(self, span: Span) -> Span:
        """Extends the span of a reply to the start of its generation prompt."""
        prompt = locate_generation_prompt(self.text, span[0], self.prompts)
        return (prompt[0], span[1]) if prompt else span

    def _find_unmarked(self, index: int) -> Span:
        if index:
            start = self._find_prompt_end(index)
        else:
            prompt = next((prompt for prompt in self.prompts if prompt in self.text), None)
            if prompt is None:
                self._refuse(index, "the conversation starts with a reply, and the template does not mark replies")
            start = self.text.index(prompt) + len(prompt)
        end = self._find_end(index)
        length = self._markers.cut_after_stop(self.text[start:end])
        return self._cut_generation_prompt((start, end if length is None else start + length))

    def _find_prompt_end(self, index: int) -> int:
        opened = self.render(self.sample.msgs[:index], is_open=True).text
        prompt, *others = self.prompts or ("",)
        for first in others:  # the generation prompt opens thinking, but the reply has no thinking
            start = opened.removesuffix(prompt) + first
            if not self.text.startswith(opened) and self.text.startswith(start):
                return len(start)
        return self._match(opened, index)

    # -- messages ----------------------------------------------------------------------------------------------

    def find_message(self, index: int) -> Span:
        """Returns the span of a message, with the header and the end token that the template writes.

        Raises:
            MessageError: The text of the message cannot be found.
        """
        return (self._find_end(index - 1) if index else 0), self._find_end(index)

    def _find_end(self, index: int) -> int:
        msgs = self.sample.msgs[: index + 1]
        if len(msgs) == len(self.sample.msgs):
            return len(self.text)
        text = self.render(msgs).text
        if self.text.startswith(text):
            return len(text)
        # Some templates write a token or white space only after the last message.
        text = text.rstrip()
        for name in ("eos_token", "bos_token"):
            text = text.removesuffix(self.template.special_tokens.get(name) or "").rstrip()
        return self._match(text, index)

    def _match(self, text: str, index: int) -> int:
        if not self.text.startswith(text):
            reason = (
                f"the chat template {self.template.name!r} changes the text of earlier messages when other "
                "messages follow, so the text of this message cannot be found"
            )
            self._refuse(index, reason)
        return len(text)

    def _refuse(self, index: int, reason: str) -> NoReturn:
        raise MessageError(f"msgs[{index}]", reason, _ADVICE)

    def is_unchanged(self, index: int) -> bool:
        """Returns True if later messages change neither the text of a reply nor the text before the reply."""
        traced = self._traced.get(index) if not self.marked else None
        if traced and self.text.endswith(self.prompts[0], 0, traced[0]):
            return True
        try:
            if index:
                self._match(self.render(self.sample.msgs[:index], is_open=True).text, index)
            self._find_end(index)
        except MessageError:
            return False
        return True

    # -- parts -------------------------------------------------------------------------------------------------

    def list_turns(self) -> list[Span]:
        """Returns the spans of replies and generation prompts. Empty if replies are neither marked nor traced."""
        return [self.add_generation_prompt(span) for span in self.marked or self._traced.values()]

    def find_unwritten_stops(self) -> list[Span]:
        """Returns the spans of stop tokens that the template wrote after replies that were cut off."""
        indexes = [index for index in self.all_replies if _is_cut_off(self.sample.msgs[index])]
        stop = self.template.check().stop_token if indexes else ""
        spans: list[Span] = []
        for index in indexes if stop else ():
            try:
                reply = self.find_reply(index)[-1:]
            except MessageError:  # later messages change this reply, so the reply is not trained
                continue
            for start, end in reply:
                text = self.text[start:end].rstrip()
                if text.endswith(stop):
                    spans.append((start + len(text) - len(stop), end))
        return spans

    def find_start(self) -> int:
        """Returns the position after the system messages and the tool declarations."""
        msgs = self.sample.msgs
        count = next((index for index, msg in enumerate(msgs) if msg.role != "system"), len(msgs))
        bos = self.template.special_tokens.get("bos_token") or ""
        start = len(bos) if self.text.startswith(bos) else 0
        written = self._try_render(msgs[:count]) if count else None
        if written and msgs[0].text.strip() in written and self.text.startswith(written):
            return len(written)
        if count == len(msgs):
            return start
        if count or self.sample.tools:
            other = self._try_render(msgs[count:], tools=False)
            start = start if other is None else max(start, len(self.text) - count_common_end(self.text, other))
        return max(start, self._find_header(count, start))

    def _find_header(self, index: int, floor: int) -> int:
        """Returns the start of the text that the template writes before a message, such as `<|im_start|>user`.

        The header must begin with the same characters as the generation prompt, for example with `<|`. Returns 0
        if no such text is found.
        """
        other = self._try_render(
            [*self.sample.msgs[:index], replace(self.sample.msgs[index], content=_OTHER_TEXT)]
        )
        end = count_common_start(self.text, other or "")
        prompt = self.prompts[0] if self.prompts else ""
        for length in range(len(prompt), 1, -1):
            position = self.text.rfind(prompt[:length], floor, end)
            if position >= 0:
                return 0 if prompt[:length].isalnum() else position
        return 0

    def _try_render(self, msgs: Sequence[Msg], *, tools: bool = True) -> str | None:
        try:
            if tools:
                return self.render(msgs).text
            return ReplySpans(replace(self.sample, tools=()), self.template, self.now).render(msgs).text
        except TemplateError:
            return None


def _is_cut_off(msg: Msg) -> bool:
    return msg.metadata is not None and msg.finish_reason in (FinishReason.LENGTH, FinishReason.INTERRUPTED)
