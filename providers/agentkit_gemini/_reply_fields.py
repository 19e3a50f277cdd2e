"""The words of Gemini's replies in ours: why it ended, what it took, what went wrong."""

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
    parse_failure,
)
from agentkit_gemini._errors import delay_of
from agentkit_gemini._parts import pick

__all__ = [
    "BLOCK_REASONS",
    "FINISH_REASONS",
    "check_reply",
    "enum_name",
    "error_of",
    "reason_of",
    "usage_of",
]

_REASONS = {
    # SDK: FinishReason
    "STOP": FinishReason.STOP,
    "MAX_TOKENS": FinishReason.LENGTH,
    "CONTINUATION": FinishReason.PAUSE,
    **dict.fromkeys(
        [
            "SAFETY",
            "RECITATION",
            "LANGUAGE",
            "BLOCKLIST",
            "PROHIBITED_CONTENT",
            "SPII",
            "IMAGE_SAFETY",
            "IMAGE_PROHIBITED_CONTENT",
            "IMAGE_RECITATION",
            "ESCALATION",
            "MODEL_ARMOR",
        ],
        FinishReason.CONTENT_FILTER,
    ),
    **dict.fromkeys(
        [
            "MALFORMED_FUNCTION_CALL",
            "UNEXPECTED_TOOL_CALL",
            "TOO_MANY_TOOL_CALLS",
            "MISSING_THOUGHT_SIGNATURE",
            "MALFORMED_RESPONSE",
        ],
        FinishReason.ERROR,
    ),
}

FINISH_REASONS = (
    *("FINISH_REASON_UNSPECIFIED", "STOP", "MAX_TOKENS", "SAFETY", "RECITATION", "OTHER", "BLOCKLIST"),
    *("PROHIBITED_CONTENT", "SPII", "MALFORMED_FUNCTION_CALL", "MODEL_ARMOR", "IMAGE_SAFETY"),
    *("IMAGE_PROHIBITED_CONTENT", "IMAGE_RECITATION", "IMAGE_OTHER", "UNEXPECTED_TOOL_CALL", "NO_IMAGE"),
)
"""Names by number (google.cloud.aiplatform_v1: Candidate.FinishReason): some gateways send numbers."""

BLOCK_REASONS = (
    *("BLOCKED_REASON_UNSPECIFIED", "SAFETY", "OTHER", "BLOCKLIST", "PROHIBITED_CONTENT", "MODEL_ARMOR"),
    *("IMAGE_SAFETY", "JAILBREAK"),
)
"""Names by number (google.cloud.aiplatform_v1: GenerateContentResponse.PromptFeedback.BlockedReason)."""

_REPLY = ("candidates", "prompt_feedback", "usage_metadata", "model_version", "response_id")


def enum_name(found: object, names: Sequence[str]) -> str:
    """Returns the name of an enum value that is sent by name or by number, and an unknown number as text."""
    if type(found) is int:
        return names[found] if 0 <= found < len(names) else str(found)
    return str.__str__(as_text(found))


def reason_of(native: str) -> FinishReason:
    """Our word for theirs."""
    return _REASONS.get(native, FinishReason.OTHER)


def usage_of(found: Mapping[str, Any]) -> Usage:
    """The tokens: the prompt's are told without those of the tools' results, the reply's without the thoughts'.

    SDK: GenerateContentResponseUsageMetadata.
    """
    thoughts = as_token_count(pick(found, "thoughts_token_count"))
    prompt = as_token_count(pick(found, "prompt_token_count"))
    return Usage(
        input_tokens=prompt + as_token_count(pick(found, "tool_use_prompt_token_count")),
        output_tokens=as_token_count(pick(found, "candidates_token_count")) + thoughts,
        cache_read_tokens=as_token_count(pick(found, "cached_content_token_count")),
        reasoning_tokens=thoughts,
    )


def error_of(found: object) -> Failure:
    """An error within a stream: an object as the API has it, or bare text."""
    error = as_object(found)
    told = parse_failure({"error": error}) or Failure(as_text(found))
    return replace(told, code=as_text(error.get("status")) or told.code, retry_after=delay_of(error))


def check_reply(reply: Mapping[str, Any]) -> None:
    """Refuse what is no reply: the provider's error, or anything else."""
    if reply.get("error"):
        error = as_object(reply["error"])
        said = f"{as_text(error.get('message')) or 'no message'} ({as_text(error.get('status')) or 'no status'})"
        raise MessageError(
            "reply", f"the provider reports an error: {said}", "Pass the reply of a successful call."
        )
    if all(pick(reply, key) is None for key in _REPLY):
        raise MessageError("reply", "expected a GenerateContentResponse", "Pass the result of generate_content.")
