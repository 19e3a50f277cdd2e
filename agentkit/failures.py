"""What an SDK's error says, and which of our errors it is."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from agentkit.errors import (
    AuthError,
    BadRequestError,
    ContextLengthError,
    ModelError,
    NetworkError,
    OverloadedError,
    RateLimitError,
)

__all__ = ["Failure", "retry_after"]

_TOO_LONG = re.compile(
    # The sentences of the providers' own documents and of recorded answers; none is a contract.
    r"maximum context length|context[ _]window|context length|Range of input length should be|input is too long"
    r"|exceeds? the maximum number of tokens|prompt is too long|exceed context limit|exceeds the available context"
    r"|input token count",
    re.IGNORECASE,
)
_NOT_TOO_LONG = re.compile(r"string_above_max_length|array_above_max_length|Range of max_tokens", re.IGNORECASE)
_NO_QUOTA = re.compile(r"insufficient_quota|spend_limit|billing|Arrearage|AllocationQuota", re.IGNORECASE)
_NO_KEY = re.compile(
    r"api[ _]?key not valid|API_KEY_INVALID|InvalidApiKey|invalid_api_key|Arrearage", re.IGNORECASE
)
_BUSY = re.compile(
    r"overloaded|UNAVAILABLE|server_error|insufficient_system_resource|InternalError\b", re.IGNORECASE
)
_LIMITED = re.compile(r"rate_limit|RESOURCE_EXHAUSTED|Throttling", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Failure:
    """What is known of a call that failed.

    said         the provider's text, or the transport's
    status       the HTTP status; None where there was no answer, or the error came within a stream
    code         the provider's own code or type
    request_id   the provider's name for the call
    retry_after  seconds
    network      whether no answer came at all
    """

    said: str
    status: int | None = None
    code: str | None = None
    request_id: str | None = None
    retry_after: float | None = None
    network: bool = False

    def error(self, provider: str, place: str = "") -> ModelError:
        """The error of ours that it is."""
        kind = self._kind()
        return kind(
            provider,
            self.said,
            status=self.status,
            code=self.code,
            request_id=self.request_id,
            retry_after=self.retry_after,
            place=place if kind is BadRequestError else "",
            retryable=False if kind is RateLimitError and _NO_QUOTA.search(self._words) else None,
        )

    @property
    def _words(self) -> str:
        return f"{self.code or ''} {self.said}"

    def _kind(self) -> type[ModelError]:
        status, words = self.status, self._words
        if self.network:
            return NetworkError
        if (
            status in (None, 200, 400, 413, 422, 500)
            and _TOO_LONG.search(words)
            and not _NOT_TOO_LONG.search(words)
        ):
            return ContextLengthError
        if status in (401, 402, 403) or _NO_KEY.search(words):
            return AuthError
        if status == 429 or (status in (None, 200) and _LIMITED.search(words)):
            return RateLimitError
        if (status or 0) >= 500 or (status in (None, 200, 408, 409) and _BUSY.search(words)):
            return OverloadedError
        return BadRequestError if status is not None and 400 <= status < 500 else ModelError


def retry_after(headers: Mapping[str, Any] | None) -> float | None:
    """The seconds that an answer's headers ask to wait: `retry-after-ms`, or `retry-after` in seconds."""
    for name, unit in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        try:
            found = float((headers or {}).get(name) or "")
        except (TypeError, ValueError):
            continue
        if 0 <= found < 1e9:
            return found / unit
    return None
