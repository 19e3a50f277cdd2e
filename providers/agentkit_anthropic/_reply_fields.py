"""The words of Anthropic's replies in ours: why it ended, what it took, what went wrong."""

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

__all__ = ["check_reply", "reason_of", "usage_of"]

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


def reason_of(native: str) -> FinishReason:
    """Our word for theirs."""
    return _REASONS.get(native, FinishReason.OTHER)


def usage_of(found: Mapping[str, Any]) -> Usage:
    """The tokens: the prompt's are told without what was read from the cache or written to it (SDK: Usage)."""
    read = as_token_count(found.get("cache_read_input_tokens"))
    written = as_token_count(found.get("cache_creation_input_tokens"))
    return Usage(
        input_tokens=as_token_count(found.get("input_tokens")) + written + read,
        output_tokens=as_token_count(found.get("output_tokens")),
        cache_read_tokens=read,
        cache_write_tokens=written,
        reasoning_tokens=as_token_count(as_object(found.get("output_tokens_details")).get("thinking_tokens")),
    )


def check_reply(reply: Mapping[str, Any]) -> None:
    """Refuse what is no reply: the provider's error, or anything else."""
    error = as_object(reply.get("error"))
    if reply.get("type") == "error" or (error and "content" not in reply):
        said = f"{as_text(error.get('message')) or 'no message'} ({as_text(error.get('type')) or 'no type'})"
        raise reported_error(said)
    if not isinstance(reply.get("content"), list) and reply.get("type") != "message":
        raise MessageError("reply", "expected an Anthropic message", "Pass the result of messages.create.")
