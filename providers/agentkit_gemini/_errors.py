"""Parser for the errors that Gemini's SDK, google-genai, raises."""

from __future__ import annotations

import re
from collections.abc import Mapping
from json import JSONDecodeError
from math import inf
from typing import Any

from agentkit.provider_kit import (
    ErrorPatterns,
    Failure,
    MessageError,
    as_list,
    as_network_failure,
    as_object,
    find_request_id,
    is_transport_error,
    native_to_json,
    parse_failure,
    parse_retry_after,
)

__all__ = ["ERROR_PATTERNS", "parse_retry_delay", "parse_sdk_error"]

ERROR_PATTERNS = ErrorPatterns(
    context_length_text=r"exceeds? the maximum number of tokens|input token count|(input|prompt) is too long",
    context_sizes=(r"input token count \((?P<count>\d+)\) exceeds .*?\((?P<limit>\d+)\)",),
    auth_code=r"API_KEY_INVALID|UNAUTHENTICATED|PERMISSION_DENIED",
    auth_text=r"api[ _]?key not valid",
    rate_limit_code=r"RESOURCE_EXHAUSTED",
    overload_code=r"UNAVAILABLE|DEADLINE_EXCEEDED|overloaded",
    bad_request_code=r"INVALID_ARGUMENT",
    quota_text=r"exceeded your current quota",
)
"""Regular expressions for status names and texts of Google's errors.

Sources: google.rpc.Code; Gemini docs, troubleshooting.
"""

_LONG_INTEGER = "integer string conversion"
"""Part of Python's error text for an integer with more than 4,300 digits."""


def parse_sdk_error(error: BaseException) -> Failure | None:
    """Returns a `Failure` for an error of the SDK, its HTTP client or google-auth, or None for any other error.

    The SDK raises the errors of the HTTP client and of google-auth unchanged.
    """
    from google.auth import exceptions
    from google.genai import errors

    if isinstance(error, errors.APIError):
        return _parse_api_error(error)
    if isinstance(error, exceptions.TransportError | TimeoutError | ConnectionError) or is_transport_error(error):
        return as_network_failure(error)
    if isinstance(error, exceptions.GoogleAuthError):
        return Failure(str(error), code="UNAUTHENTICATED")
    if isinstance(error, UnicodeDecodeError | JSONDecodeError):
        return _parse_decoding_error(error)
    if isinstance(error, RecursionError) or (isinstance(error, ValueError) and _LONG_INTEGER in str(error)):
        return Failure(f"the error reply could not be parsed: {error}")
    return None


def _parse_api_error(error: Any) -> Failure:
    details = as_object(error.details)
    inner = as_object(details.get("error")) or details
    status = error.code if isinstance(error.code, int) else None
    failure = parse_failure(details, status) or parse_failure({"error": inner}) or Failure("")
    headers: Mapping[str, Any] = getattr(error.response, "headers", None) or {}
    # The status INVALID_ARGUMENT is not specific to errors about the API key, so `reason` is checked too.
    has_key_error = any(item.get("reason") == "API_KEY_INVALID" for item in _details(inner))
    return Failure(
        failure.message or error.message or str(error),
        status,
        "API_KEY_INVALID" if has_key_error else error.status,
        find_request_id(headers),
        parse_retry_after(headers) if (delay := parse_retry_delay(inner)) is None else delay,
    )


def _parse_decoding_error(error: UnicodeDecodeError | JSONDecodeError) -> Failure:
    """Returns a `Failure` for an error reply that the SDK could not decode as UTF-8 or JSON.

    The HTTP status of such a reply is unknown.
    """
    text = error.doc if isinstance(error, JSONDecodeError) else error.object.decode("utf-8", "replace")
    try:
        failure = parse_failure(native_to_json(text))
    except MessageError:
        failure = None
    return failure or Failure(f"the error reply could not be parsed: {text[:500]}")


def _details(inner: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Returns the objects in the field `details` of an error (google.rpc: error_details)."""
    return [as_object(item) for item in as_list(inner.get("details"))]


def parse_retry_delay(inner: Mapping[str, Any]) -> float | None:
    """Returns the time to wait before a retry, in seconds, or None if the error does not contain this time.

    The API sends the time in `RetryInfo.retryDelay`, as text such as "1.5s" (JSON format of protobuf's Duration).
    """
    for item in _details(inner):
        match = re.fullmatch(r"(\d+(?:\.\d+)?)s", str(item.get("retryDelay")))
        if match and (delay := float(match[1])) < inf:
            return delay
    return None
