"""What an SDK's error says, and which of our errors it is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from pydantic_core import to_json

from agentkit.json_values import as_text
from agentkit.reprs import bounded_repr

__all__ = ["Failure", "parse_failure"]

LONGEST_WAIT = 1e9  # seconds


@dataclass(frozen=True, slots=True)
class Failure:
    """What is known of a call that failed.

    message      the provider's text, or the transport's
    status       the HTTP status; None where there was no answer, or the error came within a stream
    code         the provider's own code or type
    request_id   the provider's name for the call
    retry_after  seconds
    network      whether no answer came at all
    param        the part of the request that the provider names
    advice       what to do, where more is known than the kind of error tells
    """

    message: str
    status: int | None = None
    code: str | None = None
    request_id: str | None = None
    retry_after: float | None = None
    network: bool = False
    param: str | None = None
    advice: str | None = None

    __repr__ = bounded_repr

    def __post_init__(self) -> None:
        """Whatever a body had in these places, they are texts that UTF-8 can carry, numbers in range, or None."""
        object.__setattr__(self, "message", _told(self.message) or "")
        for name in ("code", "request_id", "param"):
            object.__setattr__(self, name, _told(getattr(self, name)))
        if type(self.status) is not int or not 100 <= self.status < 1_000:
            object.__setattr__(self, "status", None)
        if self.retry_after is not None and not 0 <= self.retry_after < LONGEST_WAIT:
            object.__setattr__(self, "retry_after", None)


def _told(found: object) -> str | None:
    """A text of a body's; a number, or anything else, as the text that it is in JSON."""
    if found is None or isinstance(found, str):
        return as_text(found) or None
    return to_json(found, fallback=str, inf_nan_mode="constants").decode()


def parse_failure(body: object, status: int | None = None) -> Failure | None:
    """The error in a body, in any of the providers' forms; None for a body that says none.

    `{"error": {message, code | type | status, param}}`, also behind `"type": "error"` or in a list;
    `{"error": text}`; `{"code", "message", "request_id"}`; `{"message"}` alone where the status is an error's.
    """
    if isinstance(body, list) and len(cast("list[Any]", body)) == 1:
        body = cast("list[Any]", body)[0]
    if not isinstance(body, dict):
        return None
    found = cast("dict[str, Any]", body)
    inner = found.get("error")
    if isinstance(inner, str) and inner:
        return Failure(inner, status, request_id=_text(found, "request_id"))
    if isinstance(inner, dict) and inner:
        return _failure_of(cast("dict[str, Any]", inner), found, status)
    message = found.get("message")
    told = found.get("code") or "type" in found or (status or 0) >= 400
    if isinstance(message, str) and (message or found.get("code")) and told:
        return _failure_of(found, found, status)
    return None


def _failure_of(error: dict[str, Any], around: dict[str, Any], status: int | None) -> Failure:
    number = error.get("code")
    if status is None and isinstance(number, int) and 400 <= number < 600:
        status = number  # vLLM's and Google's codes are the HTTP status
    names = (number if isinstance(number, str) else None, error.get("type"), error.get("status"))
    code = next((name for name in names if isinstance(name, str) and name), None)
    said = _text(error, "message") or code or ""
    request_id = _text(around, "request_id")
    return Failure(said, status, code, request_id, param=_text(error, "param"))


def _text(found: Mapping[str, Any], name: str) -> str | None:
    item = found.get(name)
    return item if isinstance(item, str) and item else None
