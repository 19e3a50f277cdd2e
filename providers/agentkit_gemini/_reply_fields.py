"""Parsers for fields of Gemini's replies: finish reason, token usage and errors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from agentkit.provider_kit import (
    Failure,
    FinishReason,
    MessageError,
    Usage,
    as_object,
    as_text,
    as_token_count,
    list_keys,
    parse_failure,
    reported_error,
)
from agentkit_gemini._errors import parse_retry_delay
from agentkit_gemini._part_reader import get_field

__all__ = [
    "BLOCK_REASONS",
    "FINISH_REASONS",
    "REASONS",
    "check_reply",
    "get_enum_name",
    "parse_stream_error",
    "parse_usage",
]

_FILTERED = (
    *("SAFETY", "RECITATION", "LANGUAGE", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "ESCALATION", "MODEL_ARMOR"),
    *("IMAGE_SAFETY", "IMAGE_PROHIBITED_CONTENT", "IMAGE_RECITATION"),
)
_FAILED = (
    *("MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "TOO_MANY_TOOL_CALLS", "MISSING_THOUGHT_SIGNATURE"),
    "MALFORMED_RESPONSE",
)

REASONS = {
    # Source of the finish reasons: google-genai, FinishReason.
    "STOP": FinishReason.STOP,
    "MAX_TOKENS": FinishReason.LENGTH,
    "CONTINUATION": FinishReason.PAUSE,
    **dict.fromkeys(_FILTERED, FinishReason.CONTENT_FILTER),
    **dict.fromkeys(_FAILED, FinishReason.ERROR),
}

FINISH_REASONS = (
    *("FINISH_REASON_UNSPECIFIED", "STOP", "MAX_TOKENS", "SAFETY", "RECITATION", "OTHER", "BLOCKLIST"),
    *("PROHIBITED_CONTENT", "SPII", "MALFORMED_FUNCTION_CALL", "MODEL_ARMOR", "IMAGE_SAFETY"),
    *("IMAGE_PROHIBITED_CONTENT", "IMAGE_RECITATION", "IMAGE_OTHER", "UNEXPECTED_TOOL_CALL", "NO_IMAGE"),
)
"""Names of finish reasons. Some gateways send the index of a name instead of the name.

Source: google.cloud.aiplatform_v1, Candidate.FinishReason.
"""

BLOCK_REASONS = (
    *("BLOCKED_REASON_UNSPECIFIED", "SAFETY", "OTHER", "BLOCKLIST", "PROHIBITED_CONTENT", "MODEL_ARMOR"),
    *("IMAGE_SAFETY", "JAILBREAK"),
)
"""Names of the reasons for blocked prompts. Some gateways send the index of a name instead of the name.

Source: google.cloud.aiplatform_v1, GenerateContentResponse.PromptFeedback.BlockedReason.
"""

_REPLY_KEYS = ("candidates", "prompt_feedback", "usage_metadata", "model_version", "response_id")


def get_enum_name(value: object, names: Sequence[str]) -> str:
    """Returns the name of an enum value. The value is a name, or the index of a name in `names`.

    If an index has no name, returns the index as text.
    """
    if type(value) is int:
        return names[value] if 0 <= value < len(names) else str(value)
    return str.__str__(as_text(value))


def parse_usage(fields: Mapping[str, Any]) -> Usage:
    """Parses token usage. Input tokens include tokens of tool results, and output tokens include thinking tokens.

    The API reports the tokens of tool results and the thinking tokens as separate counts (google-genai:
    GenerateContentResponseUsageMetadata).
    """
    thoughts = as_token_count(get_field(fields, "thoughts_token_count"))
    prompt = as_token_count(get_field(fields, "prompt_token_count"))
    return Usage(
        input_tokens=prompt + as_token_count(get_field(fields, "tool_use_prompt_token_count")),
        output_tokens=as_token_count(get_field(fields, "candidates_token_count")) + thoughts,
        cache_read_tokens=as_token_count(get_field(fields, "cached_content_token_count")),
        reasoning_tokens=thoughts,
    )


def parse_stream_error(value: object) -> Failure:
    """Returns a `Failure` for an error in a stream. `value` is an error object of the API, or a string."""
    error = as_object(value)
    failure = parse_failure({"error": error}) or Failure(as_text(value))
    return replace(
        failure, code=as_text(error.get("status")) or failure.code, retry_after=parse_retry_delay(error)
    )


def check_reply(reply: Mapping[str, Any]) -> None:
    """Raises MessageError if `reply` reports an error of the provider, or is not a reply of Gemini."""
    if reply.get("error"):
        error = as_object(reply["error"])
        message = as_text(error.get("message")) or "the error has no message"
        status = as_text(error.get("status"))
        raise reported_error(f"{message} ({status})" if status else message)
    if all(get_field(reply, key) is None for key in _REPLY_KEYS):
        reason = f"expected a `GenerateContentResponse` with a key such as `candidates`, got {list_keys(reply)}"
        raise MessageError("reply", reason, "Pass the result of generate_content.")
