"""Classification of failed model calls by HTTP status, error code and error text.

The provider package declares the patterns for codes and texts (see `ErrorPatterns`). A code is more reliable than
a text, because a text can quote the request, and because APIs change their texts.
"""

from __future__ import annotations

import re
from typing import Final

from agentkit.errors import (
    AgentkitError,
    AuthError,
    BadRequestError,
    ContextLengthError,
    ModelError,
    NetworkError,
    OverloadedError,
    RateLimitError,
)
from agentkit.models.error_patterns import MAX_SEARCHED, ErrorPatterns
from agentkit.replies.error_bodies import Failure

__all__ = ["as_model_error", "get_error_class", "is_stream_only"]

_TEMPLATE_ADVICE: Final = (
    "The chat template of the model refuses the request. Pass model_rules=ModelRules(…) to declare what the "
    "template accepts: system_role, tool_role, parallel_tool_calls, images, alternating_turns, call_ids."
)
_QUOTED: Final = r"(?<!\w)'[^']*'(?!\w)|\"[^\"]*\"|“[^”]*”"
_NO_STATUS: Final = (None, 200)  # statuses of a `Failure` in a stream, or in a reply with HTTP status 200
_RETRIED: Final = frozenset({408, 409, 424, 425})  # a retry may succeed after these statuses; Bedrock sends 424


def as_model_error(failure: Failure, provider: str, patterns: ErrorPatterns, place: str = "") -> ModelError:
    """Returns the exception for a failed model call.

    Args:
        failure: Status, code and text of the provider's error.
        provider: Name of the provider.
        patterns: Error patterns of the provider.
        place: Place of the block that the provider refuses. Only a BadRequestError stores the place.

    """
    error_class = get_error_class(failure, patterns)
    is_quota = error_class is RateLimitError and _is_quota(failure, patterns)
    by_template = failure.advice is None and _is_refused_by_template(failure, patterns)
    return error_class(
        provider,
        failure.message or "the provider sent no error text",
        status=failure.status,
        code=failure.code,
        request_id=failure.request_id,
        retry_after=failure.retry_after,
        place=place if error_class is BadRequestError else "",
        retryable=False if is_quota else None,
        advice=_TEMPLATE_ADVICE if by_template else failure.advice,
    )


def get_error_class(failure: Failure, patterns: ErrorPatterns) -> type[ModelError]:
    """Returns the error class for a failure.

    Errors about the context length and about chat templates are recognized first, because the HTTP status of these
    errors differs between servers.
    """
    if failure.network:
        return NetworkError
    status = failure.status
    if status in _NO_STATUS and re.fullmatch(r"[45]\d\d", failure.code or ""):
        status = int(failure.code or 0)  # some servers send the HTTP status as the error code
    status = patterns.statuses.get(status or 0, status)
    if status in (*_NO_STATUS, 400, 413, 422, 500) and _is_too_long(failure, patterns):
        return ContextLengthError
    if _is_refused_by_template(failure, patterns):
        return BadRequestError
    if status in _NO_STATUS:
        return _class_by_code(failure.code or _remove_quotes(failure), patterns)
    return _class_by_status(status or 0, failure, patterns)


def is_stream_only(error: AgentkitError | None, patterns: ErrorPatterns) -> bool:
    """Returns True if a call failed because the model accepts only requests for a stream."""
    return isinstance(error, ModelError) and _matches(
        patterns.stream_only_text, error.provider_message[:MAX_SEARCHED]
    )


def _class_by_code(code: str, patterns: ErrorPatterns) -> type[ModelError]:
    rules: tuple[tuple[str, type[ModelError]], ...] = (
        (patterns.auth_code, AuthError),
        (patterns.rate_limit_code, RateLimitError),
        (patterns.overload_code, OverloadedError),
        (patterns.bad_request_code, BadRequestError),
    )
    return next((error_class for pattern, error_class in rules if _matches(pattern, code)), ModelError)


def _class_by_status(status: int, failure: Failure, patterns: ErrorPatterns) -> type[ModelError]:
    if status in (401, 402, 403) or (status == 400 and _is_auth(failure, patterns)):
        return AuthError
    if status == 429:
        return RateLimitError
    if status >= 500 or status in _RETRIED:
        return OverloadedError
    return BadRequestError if 400 <= status < 500 else ModelError


def _is_auth(failure: Failure, patterns: ErrorPatterns) -> bool:
    is_auth_code = _matches(patterns.auth_code, failure.code or "")
    return is_auth_code or _matches(patterns.auth_text, _remove_quotes(failure))


def _is_too_long(failure: Failure, patterns: ErrorPatterns) -> bool:
    code = failure.code or ""
    if _matches(patterns.context_length_code, code):
        return True
    if patterns.part_code and re.fullmatch(patterns.part_code, code, re.IGNORECASE):
        return False
    if _matches(patterns.other_limit, f"{code} {failure.message[:MAX_SEARCHED]}"):
        return False
    return _matches(patterns.context_length_text, _remove_quotes(failure))


def _is_refused_by_template(failure: Failure, patterns: ErrorPatterns) -> bool:
    """Returns True if the chat template of a local model refuses the request."""
    has_status = failure.status in (*_NO_STATUS, 400, 422, 500)
    return has_status and _matches(patterns.template_text, _remove_quotes(failure))


def _is_quota(failure: Failure, patterns: ErrorPatterns) -> bool:
    """Returns True if the account's quota is exhausted. In this case, a retry cannot help."""
    if failure.code is not None:
        return _matches(patterns.quota_code, failure.code)
    # If the provider sends a waiting time, the error is a temporary rate limit.
    return failure.retry_after is None and _matches(patterns.quota_text, _remove_quotes(failure))


def _remove_quotes(failure: Failure) -> str:
    """Returns the error text without its quoted parts, which may come from the request."""
    return re.sub(_QUOTED, "…", failure.message[:MAX_SEARCHED])


def _matches(pattern: str, text: str) -> bool:
    # Patterns are not compiled in advance, because most programs never classify an error.
    return bool(pattern) and re.search(pattern, text, re.IGNORECASE) is not None
