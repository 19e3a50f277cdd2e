"""What the services say of a request whose calls and results do not pair, in their own words.

The sentences are those of recorded answers. This is the least that a real service checks first; it is no
validator of a request.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, cast

__all__ = ["of_anthropic", "of_chat", "of_dashscope", "of_gemini", "of_responses"]

Message = Mapping[str, Any]

_NO_MESSAGES: Final = "Invalid 'messages': empty array. Expected an array with minimum length 1."
_UNANSWERED: Final = (
    "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. "
    "The following tool_call_ids did not have response messages: {ids}"
)
_ORPHAN: Final = (
    "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'."
)


def of_chat(body: Mapping[str, Any]) -> str | None:
    """What Chat Completions says: results stand right behind the message with their calls."""
    messages = _objects(body.get("messages"))
    return _in_tool_messages(messages) if messages else _NO_MESSAGES


def _in_tool_messages(messages: Iterable[Message]) -> str | None:
    waiting: list[str] = []
    answerable: set[str] = set()
    for message in messages:
        if message.get("role") == "tool":
            found = str(message.get("tool_call_id"))
            if found not in answerable:
                return _ORPHAN
            waiting = [id for id in waiting if id != found]
            continue
        if waiting:
            break
        waiting = [str(call.get("id")) for call in _objects(message.get("tool_calls"))]
        answerable = set(waiting)
    return _UNANSWERED.format(ids=", ".join(waiting)) if waiting else None


def of_dashscope(body: Mapping[str, Any]) -> str | None:
    """What DashScope's native paths say: OpenAI's rule behind a prefix of its own."""
    given: object = body.get("input")
    messages = _objects(cast("Message", given).get("messages")) if isinstance(given, Mapping) else []
    if not messages:
        return "[] is too short - 'messages'"
    said = _in_tool_messages(messages)
    return f"<400> InternalError.Algo.InvalidParameter: {said.replace(chr(39), chr(34))}" if said else None


def of_responses(body: Mapping[str, Any]) -> str | None:
    """What Responses says: each call has an output behind it, each output a call before it."""
    if body.get("previous_response_id") or body.get("conversation"):
        return None  # the rest of the conversation is with the service
    waiting: list[str] = []
    for item in _objects(body.get("input")):
        kind, id = item.get("type"), str(item.get("call_id"))
        if kind in {"function_call", "custom_tool_call"}:
            waiting.append(id)
        elif kind in {"function_call_output", "custom_tool_call_output"}:
            if id not in waiting:
                return f"No tool call found for function call output with call_id {id}."
            waiting.remove(id)
    return f"No tool output found for function call {waiting[0]}." if waiting else None


def of_anthropic(body: Mapping[str, Any]) -> str | None:
    """What Messages says: results stand in the very next message; `max_tokens` is required."""
    if "max_tokens" not in body and "anthropic_version" not in body:
        return "max_tokens: Field required"
    messages = _objects(body.get("messages"))
    if not messages:
        return "messages: at least one message is required"
    waiting: list[str] = []
    for at, message in enumerate(messages):
        answered = _ids(message, "tool_result", "tool_use_id")
        if said := _anthropic_pair(at, waiting, answered):
            return said
        waiting = _ids(message, "tool_use", "id")
    return _anthropic_pair(len(messages), waiting, [])


def _anthropic_pair(at: int, waiting: Sequence[str], answered: Sequence[str]) -> str | None:
    orphans = [id for id in answered if id not in waiting]
    missing = [id for id in waiting if id not in answered]
    if missing:
        return (
            f"messages.{at - 1}: `tool_use` ids were found without `tool_result` blocks immediately after: "
            f"{', '.join(missing)}. Each `tool_use` block must have a corresponding `tool_result` block in the "
            "next message."
        )
    if orphans:
        return (
            f"messages.{at}.content.0: unexpected `tool_use_id` found in `tool_result` blocks: {orphans[0]}. Each "
            "`tool_result` block must have a corresponding `tool_use` block in the previous message."
        )
    return None


def _ids(message: Message, kind: str, key: str) -> list[str]:
    return [str(part.get(key)) for part in _objects(message.get("content")) if part.get("type") == kind]


def of_gemini(body: Mapping[str, Any]) -> str | None:
    """What generateContent says: a turn of responses answers the calls before it, all of them."""
    contents = _objects(body.get("contents"))
    if not contents:
        return "* GenerateContentRequest.contents: contents is not specified"
    waiting = 0
    for at, content in enumerate(contents):
        parts = _objects(content.get("parts"))
        calls = sum(_has(part, "functionCall", "function_call") for part in parts)
        responses = sum(_has(part, "functionResponse", "function_response") for part in parts)
        if responses and not waiting:
            return "Please ensure that function response turn comes immediately after a function call turn."
        if waiting and responses != waiting and not calls:
            return (
                "Please ensure that the number of function response parts is equal to the number of function call "
                "parts of the function call turn."
            )
        if calls and not at:
            return (
                "Please ensure that function call turn comes immediately after a user turn or after a function "
                "response turn."
            )
        waiting = calls + (waiting if calls else 0)  # turns of the model that stand together are one
    return None


def _has(part: Mapping[str, Any], *keys: str) -> bool:
    return any(part.get(key) is not None for key in keys)


def _objects(found: object) -> list[Message]:
    """The objects of a list; none for anything else."""
    items = cast("list[object]", found) if isinstance(found, list) else []
    return [cast("Message", one) for one in items if isinstance(one, Mapping)]
