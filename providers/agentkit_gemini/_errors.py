"""What google-genai's errors say."""

from __future__ import annotations

import re
from collections.abc import Mapping
from json import JSONDecodeError
from math import inf
from typing import Any

from agentkit.provider_kit import (
    Failure,
    MessageError,
    as_list,
    as_object,
    find_request_id,
    native_to_json,
    parse_failure,
    parse_retry_after,
)

__all__ = ["delay_of", "failure_of"]

_TRANSPORTS = frozenset({"aiohttp", "httpx", "httpx2", "httpcore", "httpcore2"})


def failure_of(error: BaseException) -> Failure | None:
    """The SDK's error, or one of its HTTP client's, which the SDK passes on; None for any other."""
    from google.auth import exceptions
    from google.genai import errors

    if isinstance(error, errors.APIError):
        return _answered(error)
    if isinstance(error, exceptions.TransportError):
        return Failure(str(error), network=True)
    if isinstance(error, exceptions.GoogleAuthError):
        return Failure(str(error), code="UNAUTHENTICATED")
    if isinstance(error, UnicodeDecodeError | JSONDecodeError | RecursionError):
        return _unreadable(error)
    if isinstance(error, TimeoutError | ConnectionError) or _is_transport(error):
        return Failure(str(error) or type(error).__name__, network=True)
    return None


def _answered(error: Any) -> Failure:
    details = as_object(error.details)
    inner = as_object(details.get("error")) or details
    told = parse_failure(details) or parse_failure({"error": inner}) or Failure("")
    headers: Mapping[str, Any] = getattr(error.response, "headers", None) or {}
    return Failure(
        told.message or error.message or str(error),
        error.code if isinstance(error.code, int) else None,
        _reason(inner) or error.status,
        find_request_id(headers),
        parse_retry_after(headers) if (delay := delay_of(inner)) is None else delay,
    )


def _unreadable(error: UnicodeDecodeError | JSONDecodeError | RecursionError) -> Failure:
    """An error answer that the SDK stumbles over: no UTF-8, no JSON though it says so, or too deep. Its status is
    lost.
    """
    if isinstance(error, RecursionError):
        return Failure(f"an error that cannot be read: {error}")
    text = error.doc if isinstance(error, JSONDecodeError) else error.object.decode("utf-8", "replace")
    try:
        told = parse_failure(native_to_json(text))
    except MessageError:
        told = None
    return told or Failure(f"an error that cannot be read: {text[:500]}")


def _items(inner: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The details of Google's errors (google.rpc: error_details)."""
    return [as_object(item) for item in as_list(inner.get("details"))]


def _reason(inner: Mapping[str, Any]) -> str | None:
    reasons = (item.get("reason") for item in _items(inner))
    return next((reason for reason in reasons if isinstance(reason, str) and reason == "API_KEY_INVALID"), None)


def delay_of(inner: Mapping[str, Any]) -> float | None:
    """RetryInfo's delay: seconds with an `s` behind (protobuf's JSON form of a Duration)."""
    for item in _items(inner):
        match = re.fullmatch(r"(\d+(?:\.\d+)?)s", str(item.get("retryDelay")))
        if match and (delay := float(match[1])) < inf:
            return delay
    return None


def _is_transport(error: BaseException) -> bool:
    """Whether an error is an HTTP client's: the SDK passes them on as they are."""
    return type(error).__module__.partition(".")[0] in _TRANSPORTS
