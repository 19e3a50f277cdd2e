"""Functions that read the stop reason, usage and errors of Anthropic's replies."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agentkit.provider_kit import (
    FinishReason,
    MessageError,
    Usage,
    as_object,
    as_text,
    as_token_count,
    reported_error,
)

__all__ = ["as_finish_reason", "check_reply", "parse_usage"]

_REASONS = {
    # SDK: StopReason, BetaStopReason
    "end_turn": FinishReason.STOP,
    "stop_sequence": FinishReason.STOP,
    "max_tokens": FinishReason.LENGTH,
    "model_context_window_exceeded": FinishReason.LENGTH,
    "tool_use": FinishReason.TOOL_USE,
    "pause_turn": FinishReason.PAUSE,
    "compaction": FinishReason.PAUSE,
    "refusal": FinishReason.REFUSAL,
}


def as_finish_reason(stop_reason: str) -> FinishReason:
    """Returns the finish reason for a stop reason from the API. Returns OTHER for an unknown stop reason."""
    return _REASONS.get(stop_reason, FinishReason.OTHER)


def parse_usage(fields: Mapping[str, Any]) -> Usage:
    """Returns the usage of a reply, with the tokens of the prompt cache included in `input_tokens`.

    The `input_tokens` of the API exclude tokens that are read from or written to the cache (SDK: Usage).
    """
    read = as_token_count(fields.get("cache_read_input_tokens"))
    written = as_token_count(fields.get("cache_creation_input_tokens"))
    return Usage(
        input_tokens=as_token_count(fields.get("input_tokens")) + written + read,
        output_tokens=as_token_count(fields.get("output_tokens")),
        cache_read_tokens=read,
        cache_write_tokens=written,
        reasoning_tokens=as_token_count(as_object(fields.get("output_tokens_details")).get("thinking_tokens")),
    )


def check_reply(reply: Mapping[str, Any]) -> None:
    """Raises MessageError if the value is an error from the provider, or is not a reply."""
    error = as_object(reply.get("error"))
    if reply.get("type") == "error" or (error and "content" not in reply):
        text = f"{as_text(error.get('message')) or 'no message'} ({as_text(error.get('type')) or 'no type'})"
        raise reported_error(text)
    if not isinstance(reply.get("content"), list) and reply.get("type") != "message":
        raise MessageError("reply", "expected an Anthropic message", "Pass the result of messages.create.")
