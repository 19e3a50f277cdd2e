"""Functions that read response headers: the request id, and the waiting time before a retry."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from time import time
from typing import Any

from agentkit.replies.error_bodies import LONGEST_WAIT

__all__ = ["REQUEST_ID_HEADERS", "find_request_id", "parse_retry_after"]

REQUEST_ID_HEADERS = (
    "request-id",  # Anthropic; gateways pass on this header
    "x-request-id",  # OpenAI, most compatible servers, and gateways
    "x-amzn-requestid",  # Bedrock
    "x-dashscope-request-id",
    "apim-request-id",  # Azure
    "x-ms-request-id",  # Azure
    "x-goog-request-id",  # Google
)
"""Names of response headers that contain the id of a model call (sources: documentation of each platform)."""


def find_request_id(headers: Mapping[str, Any] | None, names: Sequence[str] = REQUEST_ID_HEADERS) -> str | None:
    """Returns the provider's id for a model call, or None if no header contains the id.

    Args:
        headers: Response headers. The mapping must ignore case or have names in lower case. None means no headers.
        names: Names of headers with the id, in lower case. The first header that is present is used.

    """
    values = ((headers or {}).get(name) for name in names)
    return next((str(value) for value in values if value), None)


def parse_retry_after(headers: Mapping[str, Any] | None) -> float | None:
    """Returns the seconds to wait before a retry, from the header `retry-after-ms` or `retry-after`.

    `retry-after` can also contain an HTTP date. Returns None if no header is valid, or if the time is
    `LONGEST_WAIT` or longer.
    """
    for name, unit in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        value = (headers or {}).get(name)
        if not value:
            continue
        try:
            number = float(value)
        except (TypeError, ValueError):
            number = _seconds_until(str(value))
        if 0 <= number / unit < LONGEST_WAIT:
            return number / unit
    return None


def _seconds_until(date: str) -> float:
    """Returns the seconds until an HTTP date, 0 for a past date, or -1 for an invalid date."""
    from email.utils import parsedate_to_datetime  # a large import that few programs need

    try:
        return max(0.0, parsedate_to_datetime(date).timestamp() - time())
    except (TypeError, ValueError):
        return -1.0
