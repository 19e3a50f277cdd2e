"""`inspect_template`: renders small conversations to find the features of a chat template."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import cached_property
from itertools import takewhile
from typing import TYPE_CHECKING, Any, Final

from agentkit.chat_templates.template_messages import adapt_message
from agentkit.chat_templates.template_report import TemplateReport
from agentkit.errors import AgentkitError
from agentkit.jinja_environments.chat_rendering import ChatVariables, Rendering
from agentkit.jinja_environments.limits import max_steps

if TYPE_CHECKING:
    from agentkit.chat_templates.chat_template import ChatTemplate

__all__ = ["TemplateProbe", "inspect_template"]


def _message(role: str, content: Any, **others: Any) -> dict[str, Any]:
    return {"role": role, "content": content, **others}


def _text_part(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def _call(id: str, word: str) -> dict[str, Any]:
    return {"type": "function", "id": id, "function": {"name": "probe_tool", "arguments": {"word": word}}}


_MAX_STEPS: Final = 5_000_000  # maximum number of steps of one rendering of a small conversation
_SYSTEM: Final = _message("system", "Systemword")
_USER: Final = _message("user", "Userword")
_REPLY: Final = _message("assistant", "Replyword")
_CALL: Final = _message("assistant", "", tool_calls=[_call("abcde1234", "Firstword")])
_CALL_WITH_TEXT: Final = {**_CALL, "content": "Besideword"}
_LONG_CALL: Final = _message("assistant", "", tool_calls=[_call("call_abcdefghijkl", "Firstword")])
_TWO_CALLS: Final = _message(
    "assistant", "", tool_calls=[_call("abcde1234", "Firstword"), _call("abcde1235", "Secondword")]
)
_RESULT: Final = _message("tool", "Resultword", tool_call_id="abcde1234", name="probe_tool")
_LONG_RESULT: Final = {**_RESULT, "tool_call_id": "call_abcdefghijkl"}
_TOOL: Final[dict[str, Any]] = {
    "type": "function",
    "function": {
        "name": "probe_tool",
        "description": "Toolword",
        "parameters": {"type": "object", "properties": {"word": {"type": "string", "description": "A word."}}},
    },
}
_THINKING: Final = _message("assistant", "Replyword", reasoning_content="Thinkingword")


def inspect_template(template: ChatTemplate) -> TemplateReport:
    """Renders small conversations, and returns the features of the template."""
    probe = template.probe
    marks_spans, stop_token = probe.find_stop_token()
    losses = None if template.response_template is None else _find_losses(probe, template.response_template)
    return TemplateReport(
        system=probe.writes_system,
        several_system=probe.writes([_SYSTEM, _message("system", "Otherword"), _USER], "Systemword", "Otherword"),
        late_system=probe.writes_late_system(),
        consecutive_roles=probe.writes([_USER, _message("user", "Otherword")], "Userword", "Otherword")
        and probe.writes([_USER, _REPLY, _message("assistant", "Otherword"), _USER], "Replyword", "Otherword"),
        assistant_first=probe.writes_assistant_first(),
        needs_user=probe.needs_user(),
        generation_prompt=probe.text([_USER]) != probe.text([_USER], add_generation_prompt=True),
        tools=probe.writes([_USER], "probe_tool", tools=[_TOOL])
        and probe.writes([_USER], "Toolword", tools=[_TOOL]),
        calls=probe.writes_calls,
        parallel_calls=probe.writes([_USER, _TWO_CALLS, _RESULT, _second_result()], "Firstword", "Secondword"),
        call_texts=not probe.writes_calls or probe.writes_call_texts,
        earlier_call_texts=probe.writes([_USER, _CALL_WITH_TEXT, _RESULT, _REPLY, _USER], "Besideword"),
        call_thinking_and_text=probe.writes_call_thinking_and_text(),
        any_call_id=probe.writes([_USER, _LONG_CALL, _LONG_RESULT], "Firstword")
        or not probe.writes([_USER, _CALL, _RESULT], "Firstword"),
        results=probe.writes_results,
        thinking=probe.writes_thinking,
        call_thinking=probe.writes_call_thinking,
        earlier_thinking=probe.writes([_USER, _THINKING, _USER, _REPLY], "Thinkingword"),
        parts=probe.text([_message("user", [_text_part("Userword")])]) == probe.text([_USER]),
        needs_parts=probe.needs_parts,
        text_arguments=probe.text_arguments,
        media=frozenset(kind for kind in ("image", "audio", "video") if probe.has_placeholder(kind)),
        trims=probe.trims(),
        extends_prefix=probe.extends_prefix(),
        marks_spans=marks_spans,
        ends_with_stop_token=probe.ends_with(stop_token) if marks_spans else None,
        stop_token=stop_token,
        reads_clock=probe.reads_clock(),
        round_trips=None if losses is None else not losses,
        round_trip_losses=losses or frozenset(),
    )


def _second_result() -> dict[str, Any]:
    return {**_RESULT, "tool_call_id": "abcde1235"}


def _find_losses(probe: TemplateProbe, spec: Mapping[str, Any]) -> frozenset[str] | None:
    from agentkit.chat_templates.round_trips import find_round_trip_losses

    return find_round_trip_losses(probe, spec)


def _count_equal(first: str, second: str) -> int:
    """Returns the number of equal characters at the start of two texts."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(first, second, strict=False)))


class TemplateProbe:
    """Renderer of small conversations, which tests one feature of a template at a time."""

    def __init__(self, template: ChatTemplate) -> None:
        self._template = template

    @cached_property
    def needs_parts(self) -> bool:
        """True if the template writes only content that is a list of parts."""
        if self._writes_plain([_USER], "Userword"):
            return False
        return self._writes_plain([_message("user", [_text_part("Userword")])], "Userword")

    @cached_property
    def text_arguments(self) -> bool:
        """True if the template writes arguments of tool calls only as JSON text."""
        messages = [_USER, _CALL, _RESULT]
        if self._writes_plain(messages, "Firstword", needs_parts=self.needs_parts):
            return False
        word = '{"word": "Firstword"}'
        return self._writes_plain(messages, word, needs_parts=self.needs_parts, text_arguments=True)

    def writes_block(self, type_: str) -> bool:
        """Returns True if the template can write blocks of the type `type_`.

        Only tool calls, tool results and thinking are tested. Returns True for all other types.
        """
        match type_:
            case "tool_use":
                return self.writes_calls
            case "tool_result":
                return self.writes_results
            case "thinking":
                return self.writes_thinking or self.writes_call_thinking
            case _:
                return True

    @cached_property
    def writes_calls(self) -> bool:
        """True if the template writes tool calls."""
        return self.writes([_USER, _CALL, _RESULT], "probe_tool", "Firstword", tools=[_TOOL])

    @cached_property
    def writes_results(self) -> bool:
        """True if the template writes tool results."""
        # Some templates refuse a call without text.
        calls = (_CALL, _CALL_WITH_TEXT)
        return any(self.writes([_USER, call, _RESULT], "Resultword", tools=[_TOOL]) for call in calls)

    @cached_property
    def writes_thinking(self) -> bool:
        """True if the template writes the thinking of the last message."""
        return self.writes([_USER, _THINKING], "Thinkingword")

    @cached_property
    def writes_call_thinking(self) -> bool:
        """True if the template writes the thinking of a message with tool calls."""
        return self.writes([_USER, {**_CALL, "reasoning_content": "Thinkingword"}, _RESULT], "Thinkingword")

    @cached_property
    def writes_call_texts(self) -> bool:
        """True if the template writes the text of a message with tool calls."""
        return self.writes([_USER, _CALL_WITH_TEXT, _RESULT], "Besideword", tools=[_TOOL])

    @cached_property
    def writes_system(self) -> bool:
        """True if the template writes a system message at the start."""
        return self.writes([_SYSTEM, _USER], "Systemword")

    def writes_late_system(self) -> bool:
        """Returns True if the template writes a system message after other messages.

        If the template writes a system message at the start, it must write this message and the later one in the
        same conversation.
        """
        late = [_USER, _REPLY, _message("system", "Otherword"), _USER]
        if self.writes_system:
            return self.writes([_SYSTEM, *late], "Systemword", "Otherword")
        return self.writes(late, "Otherword")

    def writes_assistant_first(self) -> bool:
        """Returns True if the template writes conversations that start with a message of an assistant.

        The result is False for templates that then omit the system message. The result is also False for some
        templates with tools: they write the first message as a message of a user, without its tool calls.
        """
        if not self.writes([_REPLY, _USER], "Replyword"):
            return False
        if self.writes_system and not self.writes([_SYSTEM, _REPLY, _USER], "Systemword", "Replyword"):
            return False
        calls = [_CALL, _RESULT, _REPLY, _USER]
        return not self.writes_calls or self.writes(calls, "Firstword", tools=[_TOOL])

    def needs_user(self) -> bool:
        """Returns True if the template writes some messages only if there is also a message of a user."""
        return any(
            self.writes([message, _USER], word, tools=tools) and not self.writes([message], word, tools=tools)
            for message, word in ((_SYSTEM, "Systemword"), (_REPLY, "Replyword"))
            for tools in (None, [_TOOL])
        )

    def writes_call_thinking_and_text(self) -> bool:
        """Returns True if the template can write thinking and text in one message with tool calls.

        Also returns True if the template never writes thinking, or never writes text, beside tool calls.
        """
        if not (self.writes_call_thinking and self.writes_call_texts):
            return True
        messages = [_USER, {**_CALL_WITH_TEXT, "reasoning_content": "Thinkingword"}, _RESULT]
        return self.writes(messages, "Besideword") and self.writes(messages, "Thinkingword")

    def _writes_plain(
        self,
        messages: Sequence[Mapping[str, Any]],
        word: str,
        needs_parts: bool = False,
        text_arguments: bool = False,
    ) -> bool:
        adapted = [adapt_message(message, needs_parts, text_arguments) for message in messages]
        return word in (self._render(adapted) or Rendering("")).text

    def render(self, messages: Sequence[Mapping[str, Any]], **others: Any) -> Rendering | None:
        """Renders messages. Returns None if the template refuses them. `others` are further variables."""
        has_calls = any("tool_calls" in message for message in messages)
        text_arguments = has_calls and self.text_arguments
        return self._render([adapt_message(item, self.needs_parts, text_arguments) for item in messages], **others)

    def _render(self, messages: Sequence[Mapping[str, Any]], **others: Any) -> Rendering | None:
        template = self._template
        tools = others.pop("tools", None)
        has_prompt, source = others.pop("add_generation_prompt", False), others.pop("source", None)
        variables = {**template.special_tokens, **others}
        limit = max_steps.set(_MAX_STEPS)
        try:
            if source is None:
                source = template.choose_source(None, tools is not None)
            return template.render_variables(source, ChatVariables(messages, tools, None, has_prompt, variables))
        except AgentkitError:
            return None
        finally:
            max_steps.reset(limit)

    def text(self, messages: Sequence[Mapping[str, Any]], **others: Any) -> str | None:
        """Returns the text of messages. Returns None if the template refuses them."""
        rendering = self.render(messages, **others)
        return None if rendering is None else rendering.text

    def writes(self, messages: Sequence[Mapping[str, Any]], *words: str, **others: Any) -> bool:
        """Returns True if the template accepts messages, and their text contains the words in this order."""
        text, position = self.text(messages, **others), 0
        for word in words:
            position = -1 if text is None else text.find(word, position)
            if position < 0:
                return False
        return text is not None

    def list_role_texts(self, source: str) -> list[str]:
        """Returns texts of small conversations, which together have a message of each role that is accepted.

        Args:
            source: Text of the template, from `choose_source`.
        """
        tools = {"tools": [_TOOL]}
        conversations: list[tuple[list[dict[str, Any]], dict[str, Any]]] = [
            ([_SYSTEM, _USER, _REPLY, _USER], {}),
            ([_USER, _REPLY, _USER], {}),
            ([_USER, _CALL, _RESULT], tools),
            ([_USER, _CALL_WITH_TEXT, _RESULT, _THINKING], tools),
            ([_message("developer", "Systemword"), _USER], {}),
        ]
        texts = [
            self.text(messages, source=source, add_generation_prompt=True, **others)
            for messages, others in conversations
        ]
        return [text for text in texts if text is not None]

    def has_placeholder(self, kind: str) -> bool:
        """Returns True if the template writes a placeholder for media parts of a kind."""
        return bool(self.find_placeholder(kind))

    def find_placeholder(self, kind: str) -> str:
        """Returns the text that the template writes for a media part, or an empty string.

        A template that does not know media prints the parts as JSON or as Python does: `{'type': 'image'}`. This
        text is not a placeholder.
        """
        text, plain = (
            self.text([_message("user", [_text_part("Userword"), *parts, _text_part("Otherword")])])
            for parts in ([{"type": kind}], [])
        )
        if text is None or plain is None or re.search(rf"""["']type["']: ?["']{kind}["']""", text):
            return ""
        start = _count_equal(text, plain)
        end = _count_equal(text[start:][::-1], plain[start:][::-1])
        return text[start : len(text) - end]

    def trims(self) -> bool:
        """Returns True if the template removes white space at the start or the end of a text."""
        texts = [self.text([_message("user", "  Userword  ")])]
        texts.append(self.text([_USER, _message("assistant", "  Userword  "), _USER]))
        return any(text is not None and "  Userword  " not in text for text in texts)

    def extends_prefix(self) -> bool:
        """Returns True if the text of the first messages is always the start of the text of all messages."""
        longer = [_USER, _REPLY, _message("user", "Otherword"), _THINKING, _message("user", "Lastword")]
        texts = [self.text(longer[: index + 1]) for index in range(len(longer))]
        if any(text is None for text in texts):
            return False
        return all((texts[-1] or "").startswith(text or "") for text in texts)

    def find_stop_token(self) -> tuple[bool, str]:
        """Returns two values: True if the template marks replies, and the first line of the text after a reply.

        White space at the start and at the end of the line is removed. The line is empty if the template writes no
        text after a reply.
        """
        rendering = self.render([_USER, _REPLY])
        if rendering is None:
            return False, ""
        suffix = rendering.text.rpartition("Replyword")[2]
        is_marked = any("Replyword" in rendering.text[start:end] for start, end in rendering.spans)
        return is_marked, suffix.strip().partition("\n")[0]

    def ends_with(self, stop: str) -> bool:
        """Returns True if the template marks replies, and the marked text ends with `stop`, which may be empty."""
        rendering = self.render([_USER, _REPLY])
        if rendering is None or not rendering.spans:
            return False
        start, end = rendering.spans[-1]
        return not stop or rendering.text[start:end].rstrip().endswith(stop)

    def reads_clock(self) -> bool:
        """Returns True if the text depends on the current time."""
        template = self._template
        sources = (template.jinja or "", *template.additional_templates.values())
        if template.function is None and not any("strftime_now" in source for source in sources):
            return False  # templates have no other clock
        texts = [
            self.text(messages, strftime_now=now.strftime, tools=tools)
            for tools in (None, [_TOOL])
            for messages in ([_USER], [_SYSTEM, _USER], [_USER, _REPLY] * 20)
            for now in (datetime(2001, 1, 1, 1), datetime(2012, 3, 14, 15, 16, 17, 18))  # differ in each field
        ]
        return texts[::2] != texts[1::2]
