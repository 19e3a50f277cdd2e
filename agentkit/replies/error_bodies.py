"""`Failure`: details of a failed model call, parsed from the body of an error response."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, cast

from pydantic_core import to_json

from agentkit.errors import MessageError
from agentkit.json_values import as_list, as_object, as_text
from agentkit.reprs import bounded_repr

__all__ = ["Failure", "LONGEST_WAIT", "cut_text", "parse_failure", "reported_error"]

LONGEST_WAIT = 1e9
"""Maximum `retry_after` in seconds. A longer waiting time is ignored."""


@dataclass(frozen=True, slots=True)
class Failure:
    """Details of a failed model call. An invalid `status` or `retry_after` becomes None.

    Attributes:
        message: Error text from the provider or from the HTTP client.
        status: HTTP status. None if no response arrived, or if the error arrived as an event of a stream.
        code: Code or type of the error, as the provider spells it. None if the error has no code or type.
        request_id: Id that the provider assigned to the model call. None if unknown.
        retry_after: Seconds to wait before the next attempt. None if the provider states no time.
        network: True if no complete response arrived.
        param: Part of the request that caused the error, according to the provider. None if the error names no
            part.
        advice: Advice to the user. None means the default advice of the error class.

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
        object.__setattr__(self, "message", _clean_text(self.message) or "")
        for name in ("code", "request_id", "param"):
            object.__setattr__(self, name, _clean_text(getattr(self, name)))
        if type(self.status) is not int or not 100 <= self.status < 1_000:
            object.__setattr__(self, "status", None)
        if self.retry_after is not None and not 0 <= self.retry_after < LONGEST_WAIT:
            object.__setattr__(self, "retry_after", None)


def _clean_text(value: object) -> str | None:
    """Converts a value from an error body to a string that UTF-8 can encode.

    Returns None for None and for an empty string. Any other value that is not a string becomes JSON.
    """
    if value is None or isinstance(value, str):
        return as_text(value) or None
    return to_json(value, fallback=str, inf_nan_mode="constants").decode()


def cut_text(text: str, length: int) -> str:
    """Returns the start of a text, with at most `length` characters. The result never ends within a word.

    Redaction does not recognize a part of an API key. The result must therefore contain a complete key or no part
    of the key.

    Example:
        >>> cut_text("the key sk-123 is wrong", 12)
        'the key'
    """
    match = re.match(rf"(?s).{{,{length}}}(?![\w.~+/=-])", text, re.ASCII)
    return match[0] if match else ""


def reported_error(text: str) -> MessageError:
    """Returns the exception for an error that the provider sent instead of a reply."""
    return MessageError(
        "reply", f"the provider reports an error: {text}", "Pass the reply of a successful model call."
    )


def parse_failure(body: object, status: int | None = None) -> Failure | None:
    """Parses the error in a response body. Returns None if the body contains no error.

    All providers share this function, because gateways and clouds send errors in formats of other providers.
    The body has one of these formats:

    - `error` is a string, or an object that can have the keys `message`, `code`, `type`, `status` and `param`.
    - `message` and `code`, or `message` and `type`, are at the top level. `id` can be the request id.
    - `message` is at the top level, and the HTTP status is at least 400.
    - `detail` is a string, an object with `message`, or the list of validation errors of a FastAPI server. The
      HTTP status is at least 400.

    The body may also be a list with one such object.

    Args:
        body: Parsed JSON of a response or of an event.
        status: HTTP status of the response. None if there is no status, as for an event of a stream.

    Example:
        >>> parse_failure({"error": {"message": "no such model", "code": 404}})
        Failure(message='no such model', status=404)

    """
    if isinstance(body, list) and len(cast("list[Any]", body)) == 1:
        body = cast("list[Any]", body)[0]
    if not isinstance(body, dict):
        return None
    fields = cast("dict[str, Any]", body)
    error = fields.get("error")
    if isinstance(error, str) and error:
        return Failure(error, status, request_id=_get_text(fields, "request_id"))
    if isinstance(error, dict) and error:
        return _parse_fields(cast("dict[str, Any]", error), fields, status)
    message = fields.get("message")
    is_error = fields.get("code") or "type" in fields or (status or 0) >= 400
    if isinstance(message, str) and (message or fields.get("code")) and is_error:
        failure = _parse_fields(fields, fields, status)
        return replace(failure, request_id=failure.request_id or _get_text(fields, "id"))
    detail = _describe_detail(fields.get("detail")) if (status or 0) >= 400 else ""
    return Failure(detail, status) if detail else None


def _describe_detail(detail: object) -> str:
    """Returns the text of `detail`, or its validation errors as `PATH: TEXT` (FastAPI, HTTPValidationError)."""
    detail = as_object(detail).get("message", detail)
    if isinstance(detail, str):
        return detail
    errors = cast("list[Any]", detail) if isinstance(detail, list) else []
    return "; ".join(filter(None, map(_describe_validation_error, errors)))


def _describe_validation_error(error: object) -> str:
    fields = as_object(error)
    steps = as_list(fields.get("loc"))
    steps = steps[1:] if steps[:1] == ["body"] else steps
    path = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps).removeprefix(".")
    text = _get_text(fields, "msg") or ""
    return f"{path}: {text}" if path and text else text


def _parse_fields(error: dict[str, Any], body: dict[str, Any], status: int | None) -> Failure:
    number = error.get("code")
    if status is None and isinstance(number, int) and 400 <= number < 600:
        status = number  # vLLM and Google send the HTTP status as the error code
    names = (number if isinstance(number, str) else None, error.get("type"), error.get("status"))
    code = next((name for name in names if isinstance(name, str) and name), None)
    message = _get_text(error, "message") or code or ""
    return Failure(message, status, code, _get_text(body, "request_id"), param=_get_text(error, "param"))


def _get_text(fields: Mapping[str, Any], name: str) -> str | None:
    value = fields.get(name)
    return value if isinstance(value, str) and value else None
