"""Parsers for the fields of a reply that are outside its message: choices, errors and token usage."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agentkit.provider_kit import Usage, as_list, as_object, as_text, as_token_count

__all__ = [
    "find_first_choice",
    "get_output",
    "has_content",
    "parse_error",
    "parse_usage",
    "requests_cumulative_events",
]


def requests_cumulative_events(request: Mapping[str, Any] | None) -> bool | None:
    """Returns True if a request asks for a stream in which each event repeats all earlier text.

    The request contains `incremental_output` as an argument of the SDK's method, or in `parameters` of the JSON
    body. The result is the opposite of this value. Returns None if the request does not contain the value.
    """
    if request is None:
        return None
    is_incremental = request.get("incremental_output")
    if is_incremental is None:
        is_incremental = as_object(request.get("parameters")).get("incremental_output")
    return not is_incremental if isinstance(is_incremental, bool) else None


def get_output(event: dict[str, Any]) -> dict[str, Any]:
    """Returns the object that contains the choices: the field `output` of a reply or event.

    A reply of `dashscope.v2` contains the choices directly. In this case, returns the reply itself.
    """
    output: dict[str, Any] | None = event.get("output")
    return output if isinstance(output, dict) else event


def find_first_choice(output: dict[str, Any]) -> dict[str, Any] | None:
    """Returns the first choice in the output of a reply, or None if the output has no choice.

    With `result_format="text"`, the output has no list of choices. The function then builds a choice from the
    fields of the output.
    """
    choices: list[dict[str, Any] | None] | None = output.get("choices")
    if isinstance(choices, list) and choices:
        for choice in choices:
            if isinstance(choice, dict) and not choice.get("index"):
                return choice
        return None
    text = output.get("text")
    if isinstance(text, str):
        return {"finish_reason": output.get("finish_reason"), "message": {"content": text}}
    return {"finish_reason": output.get("finish_reason")} if output.get("audio") else None


def has_content(content: object) -> bool:
    """Returns True if the content of a message is not empty. Content such as `[{"text": ""}]` is empty too."""
    return any(any(as_object(part).values()) for part in as_list(content)) or bool(as_text(content))


def parse_error(event: dict[str, Any]) -> tuple[str, str | None] | None:
    """Returns the message and the code of an error, or None if the reply or event is not an error.

    An event with an empty code is not an error, because SDK objects of successful replies have an empty code.
    """
    inner = as_object(event.get("error"))  # in the compatible mode, an error has its fields in `error`
    code, status = as_text(event.get("code")) or as_text(inner.get("code")), event.get("status_code")
    has_bad_status = isinstance(status, int) and not isinstance(status, bool) and status != 200
    if not code and not inner and not has_bad_status:
        return None
    message = as_text(event.get("message")) or as_text(inner.get("message")) or "the error has no message"
    return message, code or (str(as_token_count(status)) if has_bad_status else None)


def parse_usage(fields: dict[str, Any]) -> Usage:
    """Parses the token usage of a reply (Model Studio docs: `usage`)."""
    prompt = as_object(fields.get("prompt_tokens_details")) or as_object(fields.get("input_tokens_details"))
    reply = as_object(fields.get("output_tokens_details")) or as_object(fields.get("completion_tokens_details"))
    return Usage(
        as_token_count(fields.get("input_tokens")),
        as_token_count(fields.get("output_tokens")),
        cache_read_tokens=as_token_count(prompt.get("cached_tokens")),
        cache_write_tokens=as_token_count(prompt.get("cache_creation_input_tokens")),
        reasoning_tokens=as_token_count(reply.get("reasoning_tokens")),
    )
