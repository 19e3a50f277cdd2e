"""Options and errors of the HTTP clients that SDKs use to send requests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agentkit.replies.error_bodies import Failure

__all__ = ["as_network_failure", "is_transport_error", "split_http_options"]

_HTTP_OPTIONS = {"extra_headers": "headers", "extra_query": "params", "timeout": "timeout"}
"""Maps the SDKs' names of HTTP options to the names that HTTP clients use for the same options.

Request bodies never contain these options (openai-python: make_request_options).
"""

_HTTP_PACKAGES = frozenset({"aiohttp", "httpcore", "httpcore2", "httpx", "httpx2"})


def split_http_options(options: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Splits the options of a model call into parameters of the API and options of the HTTP request.

    >>> split_http_options({"temperature": 0, "extra_headers": {"x-team": "blue"}, "timeout": 5.0})
    ({'temperature': 0}, {'headers': {'x-team': 'blue'}, 'timeout': 5.0})
    """
    parameters = {name: value for name, value in options.items() if name not in _HTTP_OPTIONS}
    http_options = {_HTTP_OPTIONS[name]: value for name, value in options.items() if name in _HTTP_OPTIONS}
    return parameters, http_options


def is_transport_error(error: BaseException) -> bool:
    """Returns True if the class of the error belongs to an HTTP client.

    SDKs do not convert the HTTP client's errors that occur during a stream.
    """
    return type(error).__module__.partition(".")[0] in _HTTP_PACKAGES


def as_network_failure(error: BaseException) -> Failure:
    """Returns a `Failure` with `network=True` for an error from an HTTP client.

    The message includes the `__cause__` of the error, because the text of an SDK's error can be as short as
    'Connection error.'.
    """
    message, cause = str(error).strip() or type(error).__name__, error.__cause__
    if cause is not None and str(cause) not in ("", message):
        message = f"{message.rstrip('.')} ({type(cause).__name__}: {cause})"
    return Failure(message, network=True)
