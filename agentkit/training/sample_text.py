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
from typing import Any, Final, NamedTuple

from agentkit.chat_templates.chat_template import ChatTemplate
from agentkit.errors import MessageError, TemplateError
from agentkit.jinja_environments.chat_rendering import Rendering
from agentkit.jinja_environments.prefix_rendering import PrefixRenderer
from agentkit.messages.message import Msg
from agentkit.reprs import shorten_repr
from agentkit.training.generation_prompt import find_generation_prompts, locate_generation_prompt
from agentkit.training.sample import Sample, check_separate_results, is_reply
from agentkit.training.text_spans import Span

__all__ = ["ReplyPrompt", "SampleText"]

_OPTIONS: Final = frozenset(
    {"messages", "msgs", "tools", "add_generation_prompt", "continue_final_message", "validate"}
)
"""Names that a template variable cannot have, because `tokenize` passes these arguments itself."""


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
    longer_sample: SampleText | None = None

    @cached_property
    def variables(self) -> dict[str, Any]:
        """Variables of the template. The text of the time `now` becomes a `datetime`.

        Raises:
            MessageError: A variable has the name of an argument that `tokenize` sets, such as `messages`. Or the
                text of the time is not in the ISO 8601 format.
        """
        variables = self.sample.variables
        for name in sorted(variables.keys() & _OPTIONS):
            place = f"extra.chat_template_kwargs.{name}"
            raise MessageError(place, "`tokenize` sets this variable itself", "Remove the variable.")
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
        if self._prefixes is None or self.longer_sample is not None:
            return self.render(self.sample.msgs)
        return self._prefixes.rendering

    @cached_property
    def text(self) -> str:
        """Usually the rendered conversation. Otherwise, the prompt that the model received, and the last reply."""
        return self.rendering.text if self._served is None else self._served

    @cached_property
    def _served(self) -> str | None:
        """The prompt that the model received, followed by the last reply.

        None if `text` is the rendered conversation.
        """
        index, text = len(self.sample.msgs) - 1, self.rendering.text
        if not index or index not in self.all_replies or not self.generation_prompts:
            return None
        if self.rendering.spans and index not in (self.sample.tokens or {}):
            return None  # the spans of {% generation %} blocks are positions in the rendered conversation
        try:
            if self.last_prompt and self.last_prompt.is_served:
                return None
            opened = self.render_prefix(index, is_open=True)
        except TemplateError:
            return None
        span = self._list_loop_spans(len(self.sample.msgs)).get(index)
        if span is None:
            return None
        reply, prompts = text[span[0] :], self.generation_prompts
        prompt = next(filter(reply.startswith, prompts), "")
        # Gemma 4 writes no generation prompt before a reply that continues the turn of another reply.
        can_replace = prompt or not opened.endswith(prompts[0]) or len(prompts) == 1
        return opened + reply[len(prompt) :] if can_replace else None

    @cached_property
    def last_prompt(self) -> ReplyPrompt | None:
        """Prompt of the last message in the rendered conversation. None if the prompt cannot be found."""
        return self.find_prompt(self.rendering.text, len(self.sample.msgs) - 1)

    def render(self, msgs: Sequence[Msg], *, is_open: bool = False) -> Rendering:
        """Renders messages with the tools of the sample. If `is_open` is True, adds a generation prompt."""
        options: dict[str, Any] = {"tools": self.sample.tools, "add_generation_prompt": is_open, **self.variables}
        return self.template.render_text(msgs, **options)

    def render_prefix(self, count: int, *, is_open: bool = False) -> str:
        """Returns the text of the first `count` messages of the sample."""
        if self._repeated_prefixes is None:
            return self.render(self.sample.msgs[:count], is_open=is_open).text
        return self._repeated_prefixes.render(self._message_counts[count], add_generation_prompt=is_open)

    def find_prefix_end(
        self, text: str, count: int, *, is_open: bool = False, removed_suffix: str = ""
    ) -> int | None:
        """Returns the position in `text` at which the text of the first `count` messages ends.

        `removed_suffix` is first removed from the end of the messages' text. Returns None if this text does not
        end with `removed_suffix`, or if `text` does not start with the shortened text.
        """
        if self._repeated_prefixes is None:
            start = self.render_prefix(count, is_open=is_open)
            length = len(start) - len(removed_suffix)
            return length if start.endswith(removed_suffix) and text.startswith(start[:length]) else None
        return self._repeated_prefixes.find_end(
            text, self._message_counts[count], add_generation_prompt=is_open, removed_suffix=removed_suffix
        )

    @cached_property
    def _repeated_prefixes(self) -> PrefixRenderer | None:
        """Renderer of the first messages, for samples with several replies.

        None for other samples, and if the template is a function. For a single reply, two ordinary renderings are
        faster.
        """
        return self._prefixes if len(self.all_replies) > 1 else None

    @cached_property
    def _message_counts(self) -> list[int]:
        """Numbers of messages that the template reads for the first 0, 1, 2 … messages of the sample.

        The template reads each tool result as a separate message.
        """
        return [0, *accumulate(len(msg.tool_results) or 1 for msg in self.sample.msgs)]

    @cached_property
    def _prefixes(self) -> PrefixRenderer | None:
        """Renderer of the first n messages, for any n. None if the template is a function."""
        if self.longer_sample is not None:
            return self.longer_sample._prefixes
        if self.template.function is not None:
            return None
        return self.template.create_prefix_renderer(self.sample.msgs, tools=self.sample.tools, **self.variables)

    def _list_loop_spans(self, count: int, *, is_open: bool = False) -> dict[int, Span]:
        """Returns a dict that maps the indexes of the first `count` messages to their spans.

        The span of a message is the text that the template's loop over the messages writes for this message.
        Messages without such a text are omitted.
        """
        if self._prefixes is None:
            return {}
        spans = self._prefixes.list_spans(self._message_counts[count], add_generation_prompt=is_open)
        written: dict[int, Span] = {}
        for index in range(count):
            first, last = self._message_counts[index], self._message_counts[index + 1] - 1
            if first in spans and last in spans:
                written[index] = spans[first][0], spans[last][1]
        return written

    @cached_property
    def loop_spans(self) -> dict[int, Span]:
        """Maps the index of a message to the span of the text that the template's loop writes for the message."""
        if self._served is None:
            return self._list_loop_spans(len(self.sample.msgs))
        return self._list_loop_spans(len(self.sample.msgs) - 1, is_open=True)

    @cached_property
    def generation_prompts(self) -> tuple[str, ...]:
        """Texts with which the template can open a reply, such as `<|im_start|>assistant`, longest first."""
        return find_generation_prompts(self.template, self.variables)

    @cached_property
    def all_replies(self) -> tuple[int, ...]:
        """Indexes of the replies of all agents."""
        return tuple(index for index, msg in enumerate(self.sample.msgs) if is_reply(msg))

    def find_prompt(self, text: str, index: int) -> ReplyPrompt | None:
        """Finds the prompt of a reply at the start of `text`. Returns None if `text` does not start with it."""
        end, is_whole = None, True
        # If the generation prompt opens thinking, templates omit this opening before replies without thinking.
        first, *others = self.generation_prompts or ("",)
        start = self.find_prefix_end(text, index, is_open=True, removed_suffix=first) if others else None
        if start is None:
            end = self.find_prefix_end(text, index, is_open=True)
        elif prompt := next((prompt for prompt in self.generation_prompts if text.startswith(prompt, start)), ""):
            end, is_whole = start + len(prompt), prompt == first or index not in (self.sample.tokens or {})
        if end is None:
            return None
        prompts = self.generation_prompts if self.template.check().generation_prompt else ()
        further = locate_generation_prompt(text, end, prompts)
        return ReplyPrompt(end, is_whole and (further is None or further[1] == end))

    @cached_property
    def _tail_cache(self) -> dict[int, tuple[int, str]]:
        """Maps the index of a message to the position and the text of the last characters up to this message."""
        return {}
