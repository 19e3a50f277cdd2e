"""What stands around the message in a reply of DashScope's: its output, its errors, its tokens."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agentkit.provider_kit import Usage, as_list, as_object, as_text, as_token_count

__all__ = ["asked_cumulative", "failure_of", "first_choice", "output_of", "says", "usage_of"]


def asked_cumulative(request: Mapping[str, Any] | None) -> bool | None:
    """What the request asked for: the SDK's argument, or the body's parameter."""
    if request is None:
        return None
    found = request.get("incremental_output")
    if found is None:
        found = as_object(request.get("parameters")).get("incremental_output")
    return not found if isinstance(found, bool) else None


def output_of(event: dict[str, Any]) -> dict[str, Any]:
    """Where the choices are: `dashscope.v2` has them on the reply itself."""
    output: dict[str, Any] | None = event.get("output")
    return output if isinstance(output, dict) else event


def first_choice(output: dict[str, Any]) -> dict[str, Any] | None:
    """The first choice; with `result_format="text"` the output is one itself. None in an event without any."""
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


def says(content: object) -> bool:
    """Whether content has anything in it: on the multimodal path nothing may be `[{"text": ""}]`."""
    return any(any(as_object(part).values()) for part in as_list(content)) or bool(as_text(content))


def failure_of(event: dict[str, Any]) -> tuple[str, str | None] | None:
    """The text and the code of an error; None if all is well. The SDK's objects have `code` "" then."""
    inner = as_object(event.get("error"))  # as the compatible mode has it
    code, status = as_text(event.get("code")) or as_text(inner.get("code")), event.get("status_code")
    failed = isinstance(status, int) and not isinstance(status, bool) and status != 200
    if not code and not inner and not failed:
        return None
    message = as_text(event.get("message")) or as_text(inner.get("message")) or "an error without a message"
    return message, code or (str(as_token_count(status)) if failed else None)


def usage_of(found: dict[str, Any]) -> Usage | None:
    """The tokens that an event reports, in our words; None for nothing (model-studio, `usage`)."""
    if not found:
        return None
    prompt = as_object(found.get("prompt_tokens_details")) or as_object(found.get("input_tokens_details"))
    reply = as_object(found.get("output_tokens_details")) or as_object(found.get("completion_tokens_details"))
    return Usage(
        as_token_count(found.get("input_tokens")),
        as_token_count(found.get("output_tokens")),
        cache_read_tokens=as_token_count(prompt.get("cached_tokens")),
        cache_write_tokens=as_token_count(prompt.get("cache_creation_input_tokens")),
        reasoning_tokens=as_token_count(reply.get("reasoning_tokens")),
    )
