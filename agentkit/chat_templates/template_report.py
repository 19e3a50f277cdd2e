"""`TemplateReport`: features of a chat template."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["TemplateReport"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TemplateReport:
    """Features of a chat template: the messages that it accepts, and the content that it writes.

    Attributes:
        system: True if the template writes a system message at the start.
        several_system: True if the template writes two system messages at the start.
        late_system: True if the template writes a system message after other messages. If `system` is True, the
            template must also write a system message at the start of the same conversation.
        consecutive_roles: True if the template writes two messages of a user in a row, and also two messages of an
            assistant in a row.
        assistant_first: True if the template writes a conversation that starts with a message of an assistant.
        needs_user: True if the template writes some messages only if there is also a message of a user.
        named_roles: Roles of the messages that the template writes with the name of the speaker. `assistant` is
            not among them if the template omits the name in messages with tool calls.
        generation_prompt: True if `add_generation_prompt` changes the text.
        tools: True if the template writes the declarations of tools.
        calls: True if the template writes tool calls.
        parallel_calls: True if the template writes two tool calls of one message.
        call_texts: False if the template writes tool calls, but not the text of the same message.
        call_thinking_and_text: False if the template writes the thinking and the text of messages with tool calls,
            but not both in one message.
        any_call_id: False if the template refuses call ids that do not consist of nine letters and digits, as
            Mistral's templates do.
        results: True if the template writes tool results.
        thinking: True if the template writes the thinking of the last message.
        call_thinking: True if the template writes the thinking of a message with tool calls whose results follow.
        earlier_thinking: True if the template also writes the thinking of replies before the last user message.
        parts: True if the template writes content that is a list of parts.
        needs_parts: True if the template requires content as a list of parts, and does not write a string.
        media: Kinds of media for which the template has a placeholder.
        trims: True if the template removes white space at the start or the end of texts.
        extends_prefix: True if the text of the first messages is the start of the text of the whole conversation.
        marks_spans: True if the template marks the texts that the model wrote.
        ends_with_stop_token: True if the marked text of a reply ends with `stop_token`. None if the template marks
            no texts.
        stop_token: First line that the template writes after a reply, such as `<|im_end|>`. May be empty.
        reads_clock: True if the text depends on the current time.
        round_trip_losses: Kinds of replies whose text changes or is incomplete if the response template parses the
            text and the chat template renders the parsed message: `text`, `thinking`, `call`, `text and call`,
            `several calls` or `bare text`. A bare text is a reply without the tags of empty thinking
            (`<think></think>`) that the template adds to it. The comparison uses texts that the template wrote.
            A reply of the model can still change in the white space next to markers and in JSON arguments, for
            example from `{"a":1}` to `{"a": 1}`. None if there is no response template, if it is invalid, or if
            the package regex is not installed.
    """

    system: bool
    several_system: bool
    late_system: bool
    consecutive_roles: bool
    assistant_first: bool
    needs_user: bool
    named_roles: frozenset[str]
    generation_prompt: bool
    tools: bool
    calls: bool
    parallel_calls: bool
    call_texts: bool
    call_thinking_and_text: bool
    any_call_id: bool
    results: bool
    thinking: bool
    call_thinking: bool
    earlier_thinking: bool
    parts: bool
    needs_parts: bool
    media: frozenset[str]
    trims: bool
    extends_prefix: bool
    marks_spans: bool
    ends_with_stop_token: bool | None
    stop_token: str
    reads_clock: bool
    round_trip_losses: frozenset[str] | None
