"""`SampleText`: text of a sample, which starts with the prompt that the model received.

The text of a sample is usually the text of its conversation. But the messages before the last reply can have a
different text in the prompt of this reply. For example, the template of gpt-oss omits the thinking before tool
calls when the final reply is known. The text of the sample is then the prompt that the model received,
followed by the text of the reply.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from itertools import accumulate
from typing import Any, Final, NamedTuple, Self

from agentkit.chat_templates.chat_template import ChatTemplate
from agentkit.errors import MessageError, TemplateError
from agentkit.jinja_environments.chat_rendering import Rendering
from agentkit.jinja_environments.prefix_rendering import PrefixRenderer
from agentkit.messages.message import Msg
from agentkit.reprs import shorten_repr
from agentkit.training.generation_prompt import find_generation_prompts, locate_generation_prompt
from agentkit.training.sample import Sample, check_separate_results, list_reply_indexes
from agentkit.training.text_spans import Span

__all__ = ["ReplyPrompt", "SampleText"]

_RESERVED_NAMES: Final = frozenset(
    {"add_generation_prompt", "continue_final_message", "messages", "msgs", "strftime_now", "tools", "validate"}
)
"""Names that a template variable cannot have, because `tokenize` sets these arguments and variables itself."""


class ReplyPrompt(NamedTuple):
    """Result of the search for the prompt of a reply at the start of a text.

    Attributes:
        end: End of the prompt, as an index of the text.
        is_served: True if the text before the reply is the prompt that the model received. Also True if the
            text lacks only the opening of thinking (`<think>`), and the reply has no recorded token ids.
    """

    end: int
    is_served: bool


@dataclass
class SampleText:
    """Rendered sample, whose text starts with the prompt that the model received.

    Attributes:
        sample: The sample.
        template: Chat template of the model.
        longer_sample: Rendered sample that begins with the messages of this sample, and has more messages.
            Its renderings are reused for this sample. None if there is no such sample.
    """

    sample: Sample
    template: ChatTemplate
    longer_sample: Self | None = None

    @cached_property
    def variables(self) -> dict[str, Any]:
        """Variables of the template. The text of the time `now` becomes a `datetime`.

        Raises:
            MessageError: A variable has the name of an argument or variable that `tokenize` sets, such as
                `messages`. Or the text of the time is not in the ISO 8601 format.
        """
        variables = self.sample.variables
        for name in sorted(variables.keys() & _RESERVED_NAMES):
            place = f"extra.chat_template_kwargs.{name}"
            advice = "Pass the time as `now`." if name == "strftime_now" else "Remove the variable."
            raise MessageError(place, "`tokenize` sets this variable itself", advice)
        value = variables.pop("now", None)
        if value is None:
            return variables
        try:
            return {**variables, "now": datetime.fromisoformat(value)}
        except (TypeError, ValueError):
            reason = f"expected a time as ISO 8601 text, got {shorten_repr(value, 60)}"
            advice = "Pass a text such as '2001-01-02T00:00:00'."
            raise MessageError("extra.chat_template_kwargs.now", reason, advice) from None

    @cached_property
    def rendering(self) -> Rendering:
        """The rendered conversation."""
        check_separate_results(self.sample)
        if self._prefix_renderer is None or self.longer_sample is not None:
            return self.render(self.sample.msgs)
        return self._prefix_renderer.rendering

    @cached_property
    def text(self) -> str:
        """Usually the rendered conversation. Otherwise, the prompt that the model received, and the last reply."""
        return self.rendering.text if self._prompt_and_reply is None else self._prompt_and_reply

    @property
    def is_rendered_conversation(self) -> bool:
        """True if `text` is the rendered conversation."""
        return self._prompt_and_reply is None

    @cached_property
    def _prompt_and_reply(self) -> str | None:
        """The prompt that the model received, followed by the last reply.

        None if `text` is the rendered conversation.
        """
        index, text = len(self.sample.msgs) - 1, self.rendering.text
        if not index or index not in self.reply_indexes or not self.generation_prompts:
            return None
        if self.rendering.spans and index not in (self.sample.tokens or {}):
            return None  # the spans of {% generation %} blocks are positions in the rendered conversation
        try:
            if self.last_prompt and self.last_prompt.is_served:
                return None
            served_prompt = self.render_prefix(index, add_generation_prompt=True)
        except TemplateError:
            return None
        span = self._map_loop_spans(len(self.sample.msgs)).get(index)
        if span is None:
            return None
        reply, longest = text[span[0] :], self.generation_prompts[0]
        generation_prompt = next(filter(reply.startswith, self.generation_prompts), "")
        # Gemma 4 writes no generation prompt before a reply that continues the turn of another reply.
        can_replace = generation_prompt or not served_prompt.endswith(longest) or len(self.generation_prompts) == 1
        return served_prompt + reply[len(generation_prompt) :] if can_replace else None

    @cached_property
    def last_prompt(self) -> ReplyPrompt | None:
        """Prompt of the last message in the rendered conversation. None if the prompt cannot be found."""
        return self.find_prompt(self.rendering.text, len(self.sample.msgs) - 1)

    def render(self, msgs: Sequence[Msg], *, add_generation_prompt: bool = False) -> Rendering:
        """Renders messages with the tools of the sample."""
        options: dict[str, Any] = {"tools": self.sample.tools, **self.variables}
        return self.template.render_text(msgs, add_generation_prompt=add_generation_prompt, **options)

    def render_prefix(self, count: int, *, add_generation_prompt: bool = False) -> str:
        """Returns the text of the first `count` messages of the sample."""
        if self._reused_renderer is None:
            return self.render(self.sample.msgs[:count], add_generation_prompt=add_generation_prompt).text
        return self._reused_renderer.render(
            self._message_counts[count], add_generation_prompt=add_generation_prompt
        )

    def find_prefix_end(
        self, text: str, count: int, *, add_generation_prompt: bool = False, removed_suffix: str = ""
    ) -> int | None:
        """Returns the position in `text` at which the text of the first `count` messages ends.

        `removed_suffix` is first removed from the end of the messages' text. Returns None if this text does not
        end with `removed_suffix`, or if `text` does not start with the shortened text.
        """
        if self._reused_renderer is None:
            start = self.render_prefix(count, add_generation_prompt=add_generation_prompt)
            length = len(start) - len(removed_suffix)
            return length if start.endswith(removed_suffix) and text.startswith(start[:length]) else None
        return self._reused_renderer.find_end(
            text,
            self._message_counts[count],
            add_generation_prompt=add_generation_prompt,
            removed_suffix=removed_suffix,
        )

    @cached_property
    def _reused_renderer(self) -> PrefixRenderer | None:
        """`_prefix_renderer` for a sample with several replies.

        None for other samples, and if the template is a function. For a single reply, two ordinary renderings are
        faster.
        """
        return self._prefix_renderer if len(self.reply_indexes) > 1 else None

    @cached_property
    def _message_counts(self) -> list[int]:
        """Numbers of messages that the template reads for the first 0, 1, 2 … messages of the sample.

        The template reads each tool result as a separate message.
        """
        return [0, *accumulate(len(msg.tool_results) or 1 for msg in self.sample.msgs)]

    @cached_property
    def _prefix_renderer(self) -> PrefixRenderer | None:
        """Renderer of the first n messages, for any n. None if the template is a function."""
        if self.longer_sample is not None:
            return self.longer_sample._prefix_renderer
        if self.template.function is not None:
            return None
        return self.template.create_prefix_renderer(self.sample.msgs, tools=self.sample.tools, **self.variables)

    def _map_loop_spans(self, count: int, *, add_generation_prompt: bool = False) -> dict[int, Span]:
        """Returns a dict that maps the indexes of the first `count` messages to their spans.

        The span of a message is the text that the template's loop over the messages writes for this message.
        Messages without such a text are omitted.
        """
        if self._prefix_renderer is None:
            return {}
        spans = self._prefix_renderer.list_spans(
            self._message_counts[count], add_generation_prompt=add_generation_prompt
        )
        loop_spans: dict[int, Span] = {}
        for index in range(count):
            first, last = self._message_counts[index], self._message_counts[index + 1] - 1
            if first in spans and last in spans:
                loop_spans[index] = spans[first][0], spans[last][1]
        return loop_spans

    @cached_property
    def loop_spans(self) -> dict[int, Span]:
        """Maps the index of a message to the span of the text that the template's loop writes for the message."""
        if self.is_rendered_conversation:
            return self._map_loop_spans(len(self.sample.msgs))
        return self._map_loop_spans(len(self.sample.msgs) - 1, add_generation_prompt=True)

    @cached_property
    def generation_prompts(self) -> tuple[str, ...]:
        """Texts with which the template can open a reply, such as `<|im_start|>assistant`, longest first."""
        return find_generation_prompts(self.template, self.variables)

    @cached_property
    def reply_indexes(self) -> tuple[int, ...]:
        """Indexes of the replies of all agents."""
        return list_reply_indexes(self.sample.msgs)

    def find_prompt(self, text: str, index: int) -> ReplyPrompt | None:
        """Finds the prompt of a reply at the start of `text`. Returns None if `text` does not start with it.

        The similar function `find_prompt_end` in `agentkit.chat_templates` finds `RenderedChat.prompt_end`.
        """
        prompt = self._find_prompt_with_opening(text, index) if len(self.generation_prompts) > 1 else None
        if prompt is None:
            end = self.find_prefix_end(text, index, add_generation_prompt=True)
            if end is None:
                return None
            prompt = ReplyPrompt(end, is_served=True)
        generation_prompts = self.generation_prompts if self.template.check().generation_prompt else ()
        further = locate_generation_prompt(text, prompt.end, generation_prompts)
        return prompt if further is None or further[1] == prompt.end else prompt._replace(is_served=False)

    def _find_prompt_with_opening(self, text: str, index: int) -> ReplyPrompt | None:
        """Finds the prompt of a reply, for a template whose generation prompt opens thinking.

        Templates omit this opening before replies without thinking.
        """
        longest = self.generation_prompts[0]
        start = self.find_prefix_end(text, index, add_generation_prompt=True, removed_suffix=longest)
        if start is None:
            return None
        for generation_prompt in self.generation_prompts:
            if text.startswith(generation_prompt, start):
                is_served = generation_prompt == longest or index not in (self.sample.tokens or {})
                return ReplyPrompt(start + len(generation_prompt), is_served)
        return None
