"""`TemplateProbe`: renders small conversations, and tests one feature of a chat template at a time."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import cached_property
from itertools import takewhile
from typing import TYPE_CHECKING, Any, Final

from agentkit.chat_templates.probe_messages import (
    CALL,
    CALL_WITH_TEXT,
    REPLY,
    RESULT,
    SECOND_RESULT,
    SYSTEM,
    THINKING,
    TOOL,
    TWO_CALLS,
    USER,
    USER_WITH_PARTS,
    create_message,
    create_text_part,
    has_words,
)
from agentkit.chat_templates.template_messages import adapt_message
from agentkit.errors import AgentkitError
from agentkit.jinja_environments.chat_rendering import Rendering
from agentkit.jinja_environments.chat_variables import ChatVariables
from agentkit.jinja_environments.functions import create_clock
from agentkit.jinja_environments.limits import max_steps_variable

if TYPE_CHECKING:
    from agentkit.chat_templates.template_sources import TemplateSources

__all__ = ["TemplateProbe"]

_MAX_STEPS: Final = 5_000_000  # maximum number of steps of one rendering of a small conversation


def _count_equal(first: str, second: str) -> int:
    """Returns the number of equal characters at the start of two texts."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(first, second, strict=False)))


class TemplateProbe:
    """Renderer of small conversations, which tests one feature of a template at a time."""

    def __init__(self, template: TemplateSources) -> None:
        self._template = template

    @cached_property
    def needs_parts(self) -> bool:
        """True if the template requires the content of messages as a list of parts."""
        if self._writes_if_adapted([USER], "Userword"):
            return False
        return self._writes_if_adapted([USER_WITH_PARTS], "Userword")

    @cached_property
    def needs_text_arguments(self) -> bool:
        """True if the template requires the arguments of tool calls as JSON text."""
        messages = [USER, CALL, RESULT]
        if self._writes_if_adapted(messages, "Firstword", needs_parts=self.needs_parts):
            return False
        word = '{"word": "Firstword"}'
        return self._writes_if_adapted(messages, word, needs_parts=self.needs_parts, needs_text_arguments=True)

    def writes_block(self, type_: str) -> bool:
        """Returns True if the template can write blocks of the type `type_`.

        Only tool calls, tool results and thinking are tested. Returns True for all other types.
        """
        match type_:
            case "tool_use":
                return self.writes_calls
            case "further tool_use":
                return self.writes_parallel_calls
            case "tool_result":
                return self.writes_results
            case "thinking":
                return self.writes_thinking or self.writes_call_thinking
            case _:
                return True

    @cached_property
    def writes_calls(self) -> bool:
        """True if the template writes tool calls."""
        return self.writes([USER, CALL, RESULT], "probe_tool", "Firstword", tools=[TOOL])

    @cached_property
    def writes_parallel_calls(self) -> bool:
        """True if the template writes two tool calls of one message."""
        messages = [USER, TWO_CALLS, RESULT, SECOND_RESULT]
        return self.writes(messages, "Firstword", "Secondword", tools=[TOOL])

    @cached_property
    def writes_results(self) -> bool:
        """True if the template writes tool results."""
        # Some templates refuse a message that has a tool call, but no text.
        calls = (CALL, CALL_WITH_TEXT)
        return any(self.writes([USER, call, RESULT], "Resultword", tools=[TOOL]) for call in calls)

    @cached_property
    def writes_thinking(self) -> bool:
        """True if the template writes the thinking of the last message."""
        return self.writes([USER, THINKING], "Thinkingword")

    @cached_property
    def writes_call_thinking(self) -> bool:
        """True if the template writes the thinking of a message with tool calls."""
        return self.writes([USER, {**CALL, "reasoning_content": "Thinkingword"}, RESULT], "Thinkingword")

    @cached_property
    def writes_call_texts(self) -> bool:
        """True if the template writes the text of a message with tool calls."""
        return self.writes([USER, CALL_WITH_TEXT, RESULT], "Besideword", tools=[TOOL])

    @cached_property
    def writes_system(self) -> bool:
        """True if the template writes a system message at the start."""
        return self.writes([SYSTEM, USER], "Systemword")

    def writes_late_system(self) -> bool:
        """Returns True if the template writes system messages after other messages (see `TemplateReport`)."""
        late = [USER, REPLY, create_message("system", "Otherword"), USER]
        if self.writes_system:
            return self.writes([SYSTEM, *late], "Systemword", "Otherword")
        return self.writes(late, "Otherword")

    def writes_assistant_first(self) -> bool:
        """Returns True if the template writes conversations that start with a message of an assistant.

        Returns False if the template then omits the system message, or the tool calls of the first message.
        """
        if not self.writes([REPLY, USER], "Replyword"):
            return False
        if self.writes_system and not self.writes([SYSTEM, REPLY, USER], "Systemword", "Replyword"):
            return False
        calls = [CALL, RESULT, REPLY, USER]
        return not self.writes_calls or self.writes(calls, "Firstword", tools=[TOOL])

    def needs_user(self) -> bool:
        """Returns True if the template writes some messages only if there is also a message of a user."""
        return any(
            self.writes([message, USER], word, tools=tools) and not self.writes([message], word, tools=tools)
            for message, word in ((SYSTEM, "Systemword"), (REPLY, "Replyword"))
            for tools in (None, [TOOL])
        )

    def find_named_roles(self) -> frozenset[str]:
        """Returns the roles of the messages that the template writes with the name of the speaker."""
        system, user, reply, call = ({**message, "name": "Nameword"} for message in (SYSTEM, USER, REPLY, CALL))
        calls = [[USER, call, RESULT]] if self.writes_calls else []
        named = {"system": [[system, USER]], "user": [[user]], "assistant": [[USER, reply, USER], *calls]}
        return frozenset(
            role
            for role, conversations in named.items()
            if all(
                self.writes(messages, "Nameword", tools=tools)
                for messages in conversations
                for tools in (None, [TOOL])
            )
        )

    def writes_call_thinking_and_text(self) -> bool:
        """Returns True if the template can write thinking and text in one message with tool calls.

        Also returns True if the template never writes thinking, or never writes text, in messages with tool calls.
        """
        if not (self.writes_call_thinking and self.writes_call_texts):
            return True
        messages = [USER, {**CALL_WITH_TEXT, "reasoning_content": "Thinkingword"}, RESULT]
        return self.writes(messages, "Besideword") and self.writes(messages, "Thinkingword")

    def _writes_if_adapted(
        self,
        messages: Sequence[Mapping[str, Any]],
        word: str,
        needs_parts: bool = False,
        needs_text_arguments: bool = False,
    ) -> bool:
        adapted = [adapt_message(message, needs_parts, needs_text_arguments) for message in messages]
        return word in (self._render_adapted(adapted) or Rendering("")).text

    def render(self, messages: Sequence[Mapping[str, Any]], **others: Any) -> Rendering | None:
        """Renders messages. Returns None if the template refuses them.

        `others` can have `tools` and further variables of the template.
        """
        has_calls = any("tool_calls" in message for message in messages)
        needs_text_arguments = has_calls and self.needs_text_arguments
        return self._render_adapted(
            [adapt_message(item, self.needs_parts, needs_text_arguments) for item in messages], **others
        )

    def _render_adapted(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        tools: Sequence[Mapping[str, Any]] | None = None,
        add_generation_prompt: bool = False,
        source: str | None = None,
        **others: Any,
    ) -> Rendering | None:
        template, others = self._template, {**self._template.special_tokens, **others}
        token = max_steps_variable.set(_MAX_STEPS)
        try:
            if source is None:
                source = template.choose_source(None, tools is not None)
            chat = ChatVariables(messages, tools, None, add_generation_prompt, others)
            return template.render_variables(source, chat)
        except AgentkitError:
            return None
        finally:
            max_steps_variable.reset(token)

    def render_text(self, messages: Sequence[Mapping[str, Any]], **others: Any) -> str | None:
        """Returns the rendered text of messages. Returns None if the template refuses them."""
        rendering = self.render(messages, **others)
        return None if rendering is None else rendering.text

    def writes(self, messages: Sequence[Mapping[str, Any]], *words: str, **others: Any) -> bool:
        """Returns True if the template accepts messages, and their text contains the words in this order."""
        text = self.render_text(messages, **others)
        return text is not None and has_words(text, words)

    def list_role_texts(self, source: str) -> list[str]:
        """Returns the texts of small conversations, which together have a message of each role.

        The result omits conversations that the template refuses.

        Args:
            source: Text of the template, from `choose_source`.
        """
        tools = {"tools": [TOOL]}
        conversations: list[tuple[list[dict[str, Any]], dict[str, Any]]] = [
            ([SYSTEM, USER, REPLY, USER], {}),
            ([USER, REPLY, USER], {}),
            ([USER, CALL, RESULT], tools),
            ([USER, CALL_WITH_TEXT, RESULT, THINKING], tools),
            ([create_message("developer", "Systemword"), USER], {}),
        ]
        texts = [
            self.render_text(messages, source=source, add_generation_prompt=True, **others)
            for messages, others in conversations
        ]
        return [text for text in texts if text is not None]

    def find_placeholder(self, kind: str) -> str:
        """Returns the text that the template writes for a media part. Empty if there is no such text.

        A template that does not know media prints the parts as JSON or as Python does: `{'type': 'image'}`. This
        text is not a placeholder.
        """
        first, last = create_text_part("Userword"), create_text_part("Otherword")
        contents = ([first, {"type": kind}, last], [first, last])
        text, plain = (self.render_text([create_message("user", content)]) for content in contents)
        if text is None or plain is None or re.search(rf"""["']type["']: ?["']{kind}["']""", text):
            return ""
        start = _count_equal(text, plain)
        end = _count_equal(text[start:][::-1], plain[start:][::-1])
        return text[start : len(text) - end]

    def trims(self) -> bool:
        """Returns True if the template removes white space at the start or the end of a text."""
        texts = [self.render_text([create_message("user", "  Userword  ")])]
        texts.append(self.render_text([USER, create_message("assistant", "  Userword  "), USER]))
        return any(text is not None and "  Userword  " not in text for text in texts)

    def extends_prefix(self) -> bool:
        """Returns True if the text of the first messages is always the start of the text of all messages."""
        longer = [USER, REPLY, create_message("user", "Otherword"), THINKING, create_message("user", "Lastword")]
        texts = [self.render_text(longer[: index + 1]) for index in range(len(longer))]
        if any(text is None for text in texts):
            return False
        return all((texts[-1] or "").startswith(text or "") for text in texts)

    def inspect_reply_end(self) -> tuple[bool, str, bool | None]:
        """Returns the features `marks_spans`, `stop_token` and `ends_with_stop_token` of a `TemplateReport`."""
        rendering = self.render([USER, REPLY])
        if rendering is None:
            return False, "", None
        text, spans = rendering
        stop = text.rpartition("Replyword")[2].strip().partition("\n")[0]
        if not any("Replyword" in text[start:end] for start, end in spans):
            return False, stop, None
        start, end = spans[-1]
        return True, stop, not stop or text[start:end].rstrip().endswith(stop)

    def reads_clock(self) -> bool:
        """Returns True if the text depends on the current time."""
        template = self._template
        if template.function is None and not any("strftime_now" in text for text in template.sources.values()):
            return False  # templates cannot read the time otherwise
        texts = [
            self.render_text(messages, strftime_now=create_clock(now), tools=tools)
            for tools in (None, [TOOL])
            for messages in ([USER], [SYSTEM, USER], [USER, REPLY] * 20)
            for now in (datetime(2001, 1, 1, 1), datetime(2012, 3, 14, 15, 16, 17, 18))  # differ in each field
        ]
        return texts[::2] != texts[1::2]
