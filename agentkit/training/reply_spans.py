"""`ReplySpans`: renders a sample, and finds the texts of its messages in the rendered text.

A template with `{% generation %}` blocks marks the replies. For other templates, two shorter conversations are
rendered for each reply. The first is the prompt that the model received: the messages before the reply, with a
generation prompt. The second ends with the reply. The text of the sample must start with both texts. The reply
begins where the first text ends, and ends where the second text ends.

A template can write the messages before the last reply in another way than in the prompt of this reply. For
example, the template of gpt-oss omits the thinking before tool calls when the final reply is known. The text of
the sample is then the prompt that the model received, and the text of the reply.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property
from itertools import accumulate
from typing import Any, Final, NamedTuple, NoReturn

from agentkit.chat_templates.chat_template import ChatTemplate
from agentkit.errors import MessageError, TemplateError
from agentkit.jinja_environments.chat_rendering import Rendering
from agentkit.jinja_environments.prefix_rendering import PrefixRenderer
from agentkit.messages.message import Msg
from agentkit.messages.usage import FinishReason
from agentkit.tools.tool import ToolLike
from agentkit.training.generation_prompt import find_generation_prompts, locate_generation_prompt
from agentkit.training.sample import Sample, check_separate_results
from agentkit.training.text_spans import Span, count_common_end, count_common_start

__all__ = ["ReplySpans"]

_ADVICE: Final = (
    "Pass each sample that split_rewritten() returns, pass the formatter to samples_from_log(), or use a template "
    "that marks replies with {% generation %} blocks."
)

_OPTIONS: Final = frozenset({"messages", "msgs", "tools", "add_generation_prompt", "now", "validate"})
"""Names that a template variable cannot have, because `tokenize` passes these arguments itself."""
_RENDER_OPTIONS: Final = frozenset({"chat_template", "continue_final_message", "documents", "on_special_tokens"})
"""Options of `ChatTemplate.render` that a row can set in its column `chat_template_kwargs`."""

_OTHER_TEXT: Final = "\U0010fffd"
"""Placeholder for the text of a message: a private-use character that messages usually do not contain."""


_TAIL: Final = 500
"""Number of characters that are compared first, because most texts that differ also differ there."""


class _Prompt(NamedTuple):
    """Prompt of a reply in the text of the sample.

    Attributes:
        end: End of the prompt.
        is_served: True if the text before the reply is the prompt that the model received. If the generation
            prompt opens thinking, the opening may be missing before a reply without recorded token ids.
    """

    end: int
    is_served: bool


class _FoundReply(NamedTuple):
    """Span of a reply, with the field `is_served` of its prompt."""

    span: Span
    is_served: bool


@dataclass
class ReplySpans:
    """Rendered sample. The methods return the positions of messages in the rendered text.

    Attributes:
        sample: The sample.
        template: Chat template of the model.
        now: Time that the template reads. None means the current local time.
        whole: Rendered sample whose conversation begins with the messages of this sample. The `PrefixRenderer` of
            that sample is used again. None if there is no such sample.
    """

    sample: Sample
    template: ChatTemplate
    now: datetime | None = None
    whole: ReplySpans | None = None
    _found: dict[int, _FoundReply] = field(default_factory=dict[int, "_FoundReply"], init=False, repr=False)

    # -- texts -------------------------------------------------------------------------------------------------

    @cached_property
    def chat(self) -> Rendering:
        """The rendered conversation."""
        check_separate_results(self.sample)
        return self.render(self.sample.msgs)

    @cached_property
    def text(self) -> str:
        """Text of the sample: the rendered conversation, or the prompt that the model received with the reply."""
        return self.chat.text if self._served is None else self._served

    @cached_property
    def _served(self) -> str | None:
        """The prompt that the model received, and the last reply. None if `text` is the rendered conversation."""
        index, text = len(self.sample.msgs) - 1, self.chat.text
        if not index or index not in self.all_replies or not self.prompts:
            return None
        if self.chat.spans and index not in (self.sample.tokens or {}):
            return None  # the template decides which texts are trained
        try:
            if self._last_prompt and self._last_prompt.is_served:
                return None
            opened = self._render_start(index, is_open=True)
        except TemplateError:
            return None
        span = self._list_written(len(self.sample.msgs)).get(index)
        if span is None:
            return None
        reply = text[span[0] :]
        prompt = next(filter(reply.startswith, self.prompts), "")
        # Gemma 4 writes no generation prompt before a reply that continues the turn of another reply.
        is_found = prompt or not opened.endswith(self.prompts[0]) or len(self.prompts) == 1
        return opened + reply[len(prompt) :] if is_found else None

    @cached_property
    def _last_prompt(self) -> _Prompt | None:
        """Prompt of the last message in the rendered conversation. None if the prompt cannot be found."""
        return self._find_prompt(self.chat.text, len(self.sample.msgs) - 1)

    def render(self, msgs: Sequence[Msg], *, is_open: bool = False) -> Rendering:
        """Renders messages with the tools of the sample. `is_open` adds a generation prompt to the end."""
        variables = self.sample.variables
        for name in sorted(variables.keys() & _OPTIONS):
            place = f"extra.chat_template_kwargs.{name}"
            raise MessageError(place, "`tokenize` passes this argument itself", "Remove the variable.")
        options: dict[str, Any] = {"tools": self.sample.tools, "add_generation_prompt": is_open, "now": self.now}
        if variables.keys() & _RENDER_OPTIONS:
            rendered = self.template.render(msgs, validate=False, **options, **variables)
            return Rendering(rendered.text, rendered.spans)
        return self.template.render_text(msgs, **options, **variables)

    def _render_start(self, count: int, *, is_open: bool = False) -> str:
        """Returns the text of the first `count` messages of the sample."""
        if len(self.all_replies) < 2 or self._prefixes is None:
            return self.render(self.sample.msgs[:count], is_open=is_open).text
        return self._prefixes.render(self._counts[count], add_generation_prompt=is_open)

    def _match(self, text: str, count: int, *, is_open: bool = False) -> int | None:
        """Returns the length of the text of the first `count` messages. None if `text` does not start with it."""
        if len(self.all_replies) < 2 or self._prefixes is None:
            start = self._render_start(count, is_open=is_open)
            return len(start) if text.startswith(start) else None
        return self._prefixes.find_end(text, self._counts[count], add_generation_prompt=is_open)

    @cached_property
    def _counts(self) -> list[int]:
        """Numbers of messages that the template reads for the first 0, 1, 2 … messages of the sample.

        The template reads each tool result as a separate message.
        """
        return [0, *accumulate(len(msg.tool_results) or 1 for msg in self.sample.msgs)]

    @cached_property
    def _prefixes(self) -> PrefixRenderer | None:
        """Renderer of the first messages. None if the options or the template do not allow this renderer."""
        if self.whole is not None:
            return self.whole._prefixes
        variables = self.sample.variables
        if variables.keys() & _RENDER_OPTIONS or self.template.function is not None:
            return None
        return self.template.create_prefix_renderer(
            self.sample.msgs, self.chat.text, tools=self.sample.tools, now=self.now, **variables
        )

    def _list_written(self, count: int, *, is_open: bool = False) -> dict[int, Span]:
        """Returns the spans of the first `count` messages, by the index of the message.

        The span of a message is the text that the template's loop over the messages writes for this message.
        Messages without such a text are omitted.
        """
        if self._prefixes is None:
            return {}
        spans = self._prefixes.list_spans(self._counts[count], add_generation_prompt=is_open)
        written: dict[int, Span] = {}
        for index in range(count):
            first, last = self._counts[index], self._counts[index + 1] - 1
            if first in spans and last in spans:
                written[index] = spans[first][0], spans[last][1]
        return written

    @cached_property
    def _written(self) -> dict[int, Span]:
        """Spans of the messages in `text`, by the index of the message (see `_list_written`)."""
        if self._served is None:
            return self._list_written(len(self.sample.msgs))
        return self._list_written(len(self.sample.msgs) - 1, is_open=True)

    @cached_property
    def marked(self) -> tuple[Span, ...]:
        """Spans of the texts in `{% generation %}` blocks, each with the stop token that follows the block.

        Empty if the template has no such blocks, or if `text` is not the rendered conversation.
        """
        if self._served is not None:
            return ()
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

    def replace_msgs(self, msgs: Sequence[Msg], tools: Sequence[ToolLike] | None = None) -> ReplySpans:
        """Returns a rendered sample with other messages, without weights and token ids.

        Args:
            msgs: The messages.
            tools: The tools. None means the tools of this sample.
        """
        declared = self.sample.tools if tools is None else tools
        sample = replace(self.sample, msgs=msgs, tools=declared, weights=None, tokens=None)
        return ReplySpans(sample, self.template, self.now)

    # -- replies -----------------------------------------------------------------------------------------------

    @cached_property
    def prompts(self) -> tuple[str, ...]:
        """Texts that the template can write before a reply (see `find_generation_prompts`)."""
        return find_generation_prompts(self.template, self.sample.variables)

    def find_all_replies(self) -> list[Span]:
        """Returns the spans of the replies of all agents, without the generation prompts.

        Raises:
            MessageError: The text of a reply cannot be found.
        """
        if self.marked:
            return [self._cut_generation_prompt(span) for span in self.marked]
        return [span for index in self.all_replies for span in self.find_reply(index)]

    @cached_property
    def all_replies(self) -> tuple[int, ...]:
        """Indexes of the replies of all agents."""
        return replace(self.sample, viewer=None).replies

    def find_reply(self, index: int) -> list[Span]:
        """Returns the spans of a reply, without the generation prompt. `index` is the index of the message.

        The list has one span, unless the template marks several parts of the reply or no part.

        Raises:
            MessageError: The text of the reply cannot be found.
        """
        if not self.marked:
            return [self._find(index).span]
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
            if index not in self._written:
                raise
            start, end = self._written[index]
            length = self._cut_after_stop(self.text[start:end])
            return [self._cut_generation_prompt((start, end if length is None else start + length))]

    def _cut_generation_prompt(self, span: Span) -> Span:
        if self.template.tags is not None:  # with `tags`, the span of a reply includes the generation prompt
            start = span[0] + len(self.prompts[0] if self.prompts else "")
            return (start, span[1]) if start <= span[1] else span
        prompt = locate_generation_prompt(self.text, span[0], self.prompts)
        return (prompt[1], span[1]) if prompt and prompt[1] <= span[1] else span

    def add_generation_prompt(self, span: Span) -> Span:
        """Returns the span of a reply together with its generation prompt, if there is one."""
        prompt = locate_generation_prompt(self.text, span[0], self.prompts)
        return (prompt[0], span[1]) if prompt else span

    def _find(self, index: int) -> _FoundReply:
        """Returns the span of a reply, which the renderings of two shorter conversations show.

        Raises:
            MessageError: The text of the reply cannot be found.
        """
        if index in self._found:
            return self._found[index]
        if not index:
            prompt: _Prompt | None = self._find_first_prompt()
        elif index == len(self.sample.msgs) - 1 and self._served is None:
            prompt = self._last_prompt
        else:
            prompt = self._find_prompt(self.text, index)
        if prompt is None:
            self._refuse_rewritten(index)
        start, end = prompt.end, self._find_end(index)
        length = self._cut_after_stop(self.text[start:end])
        span = self._cut_generation_prompt((start, end if length is None else start + length))
        self._found[index] = found = _FoundReply(span, prompt.is_served)
        return found

    def _find_first_prompt(self) -> _Prompt:
        prompt = next((prompt for prompt in self.prompts if prompt in self.text), None)
        if prompt is None:
            reason = "the conversation starts with a reply, and the template does not mark replies"
            self._refuse(0, reason, "Use a template that marks replies with {% generation %} blocks.")
        return _Prompt(self.text.index(prompt) + len(prompt), is_served=True)

    def _find_prompt(self, text: str, index: int) -> _Prompt | None:
        """Returns the prompt of a reply at the start of `text`. None if `text` does not start with the prompt."""
        end = self._match(text, index, is_open=True)
        is_whole = end is not None or index not in (self.sample.tokens or {})
        if end is None and len(self.prompts) > 1:
            # If the generation prompt opens thinking, replies without thinking do not follow the opening.
            opened = self._render_start(index, is_open=True).removesuffix(self.prompts[0])
            starts = (opened + first for first in self.prompts[1:])
            end = next((len(start) for start in starts if text.startswith(start)), None)
        if end is None:
            return None
        prompts = self.prompts if self.template.check().generation_prompt else ()
        further = locate_generation_prompt(text, end, prompts)
        return _Prompt(end, is_whole and (further is None or further[1] == end))

    def _cut_after_stop(self, text: str) -> int | None:
        """Returns the length of a text up to the stop token at its end. Returns None if there is no stop token.

        White space and the eos token after the stop token are ignored.
        """
        stop, text = self.template.check().stop_token, text.rstrip()
        for token in ("", self.template.special_tokens.get("eos_token") or ""):
            text = text.removesuffix(token).rstrip()
            if stop and text.endswith(stop):
                return len(text)
        return None

    # -- messages ----------------------------------------------------------------------------------------------

    def find_message(self, index: int) -> Span:
        """Returns the span of a message, with the header and the end token that the template writes.

        Raises:
            MessageError: The text of the message cannot be found.
        """
        try:
            return (self._find_end(index - 1) if index else 0), self._find_end(index)
        except (MessageError, TemplateError):
            if index not in self._written:
                raise
            return self._written[index]

    def _find_end(self, index: int) -> int:
        if index + 1 == len(self.sample.msgs):
            return len(self.text)
        end = self._match(self.text, index + 1)
        if end is not None:
            return end
        text = self._render_end(index)
        if not self.text.startswith(text):
            self._refuse_rewritten(index)
        return len(text)

    def _render_end(self, index: int) -> str:
        """Renders the messages up to a message, without tokens and white space that only the last message has."""
        text = self._render_start(index + 1).rstrip()
        for name in ("eos_token", "bos_token"):
            text = text.removesuffix(self.template.special_tokens.get(name) or "").rstrip()
        return text

    @cached_property
    def _tails(self) -> dict[int, tuple[int, str]]:
        """Positions and last characters of texts that `_render_end` returned."""
        return {}

    def _has_tail(self, index: int) -> bool:
        """Returns False if later messages changed the text of a message. This test is faster than `_find_end`."""
        tails = (self.whole or self)._tails
        if index not in tails:
            text = self._render_end(index)
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
        if self.whole is not None and not self._has_tail(index):
            return False
        try:
            if not index:
                return bool(self._find_end(index) >= 0)
            return self._find(index).is_served
        except MessageError:
            return False

    # -- parts -------------------------------------------------------------------------------------------------

    def list_turns(self) -> list[Span]:
        """Returns the span of each reply together with its generation prompt. Empty if a reply cannot be found."""
        try:
            spans = self.marked or [self._find(index).span for index in self.all_replies]
        except MessageError:
            return []
        return [self.add_generation_prompt(span) for span in spans]

    def find_unwritten_stops(self) -> list[Span]:
        """Returns the spans of the stop tokens after replies that were cut off.

        The template wrote these stop tokens, but the model did not write them.
        """
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
        """Returns the position in `text` after the system messages and the tool declarations."""
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
            first = self._try_render(msgs[: count + 1]) or ""
            other = self._try_render(msgs[count : count + 1], tools=())
            end = len(first) - count_common_end(first, other or "")
            start = max(start, end) if other is not None and self.text.startswith(first[:end]) else start
        return max(start, self._find_header(count, start))

    def _find_header(self, index: int, floor: int) -> int:
        """Returns the start of the header that the template writes before a message, such as `<|im_start|>user`.

        The headers of all roles begin with the same characters, such as `<|im_start|>`. The function therefore
        looks for the first characters of the generation prompt before the content of the message. Returns 0 if the
        header cannot be found.

        Args:
            index: Index of the message.
            floor: Position in `text`. The header does not begin before this position.
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

    def _try_render(self, msgs: Sequence[Msg], tools: Sequence[ToolLike] | None = None) -> str | None:
        try:
            return self.replace_msgs(msgs, tools).text
        except TemplateError:
            return None


def _is_cut_off(msg: Msg) -> bool:
    return msg.metadata is not None and msg.finish_reason in (FinishReason.LENGTH, FinishReason.INTERRUPTED)
