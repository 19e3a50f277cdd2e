"""Checks the credentials, headers and addresses of an SDK client."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any, cast

from agentkit.credentials.client_texts import AUTH_SCHEMES, SHORTEST_SECRET, is_headers, iterate_texts
from agentkit.errors import OptionError

__all__ = ["check_client", "clean_options", "find_variable"]

_KEYS = frozenset({"api_key", "auth_token", "azure_ad_token", "admin_api_key", "aws_session_token"})
"""Names of client options and attributes whose values SDKs send in an HTTP header."""
_ADDRESSES = frozenset({"base_url", "host", "azure_endpoint"})
_NESTED = frozenset({"http_options", "config", "client_args", "async_client_args"})
"""Names of client options whose values contain further options. An example is `http_options` of google-genai."""
_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")  # characters that RFC 9110, 5.6.2, allows
_UNPRINTABLE = re.compile(r"[^\x20-\x7e]")


def clean_options(place: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Removes white space around API keys, headers and addresses in the options of a client or of a model call.

    Other options remain unchanged. Error texts begin with `place`.

    Raises:
        OptionError: If an API key or a header value has a character that is not printable ASCII, if a header name
            is invalid, or if an address has a control character. The error names the option, but never shows its
            value.
    """
    return {name: _clean_option(f"{place}[{name!r}]", name, item) for name, item in options.items()}


def _clean_option(place: str, name: object, item: Any) -> Any:
    if isinstance(item, str) and name in _KEYS:
        return _clean(place, item)
    if isinstance(item, str) and name in _ADDRESSES:
        address = item.strip()
        if any(ord(character) < 32 or ord(character) == 127 for character in address):
            raise OptionError(place, "the URL has a control character", "Pass a URL without control characters.")
        return address
    if isinstance(item, dict) and is_headers(name):
        headers = cast("dict[Any, Any]", item)
        return {_header_name(place, key): _clean_header(place, key, value) for key, value in headers.items()}
    if isinstance(item, dict) and name in _NESTED:
        return clean_options(place, cast("dict[str, Any]", item))
    return cast("Any", item)


def _header_name(place: str, name: Any) -> Any:
    if isinstance(name, str) and _HEADER_NAME.fullmatch(name.strip()) is None:
        raise OptionError(f"{place}[{name!r}]", "invalid header name", "Use ASCII letters, digits and '-'.")
    return name.strip() if isinstance(name, str) else name


def _clean_header(place: str, name: object, value: Any) -> Any:
    return _clean(f"{place}[{name!r}]", value) if isinstance(value, str) else value


def _clean(place: str, value: str) -> str:
    """Removes white space around a value. Raises OptionError if the value is not allowed in an HTTP header."""
    value = value.strip()
    fault = _fault(value)
    if fault:
        raise OptionError(place, fault, "Pass the value exactly as the provider shows it.")
    return value


def _fault(value: str) -> str:
    """Returns the reason why an HTTP header must not contain a value, or an empty string for an allowed value."""
    if value != value.strip():
        return "the value begins or ends with white space"
    match = _UNPRINTABLE.search(value)
    if match is None:
        return ""
    kind = "control" if ord(match[0]) < 32 or ord(match[0]) == 127 else "non-ASCII"
    return f"the value has a {kind} character at position {match.start()} of {len(value)}"


def check_client(client: object) -> None:
    """Checks that the API keys and header values of an SDK client are valid in HTTP headers.

    Raises:
        OptionError: If an API key or a header value begins or ends with white space, or has a character that is
            not printable ASCII. The error names the environment variable that contains the value. If there is no
            such variable, the error names the attribute or header of the client. The error never shows the value.
    """
    for name, value, is_header in iterate_texts(client):
        if not (is_header or name.lstrip("_") in _KEYS) or not (fault := _fault(value)):
            continue
        variable = _variable_with(value)
        place = variable or (f"client.headers[{name!r}]" if is_header else f"client.{name}")
        raise OptionError(place, fault, "Set the value exactly as the provider shows it.")


def _variable_with(value: str) -> str | None:
    """Returns the name of the environment variable that contains a header value, or None if no variable does.

    The variable may also contain only the credential, without the authorization scheme before the credential.
    """
    credential = value.partition(" ")[2] if value.partition(" ")[0].lower() in AUTH_SCHEMES else value
    values = {value.strip(), credential.strip()} - {""}
    return next((name for name, item in os.environ.items() if item.strip() in values), None)


def find_variable(text: str) -> str | None:
    """Returns the name of an environment variable whose value occurs in a text and is not ASCII.

    Ignores values shorter than `SHORTEST_SECRET`. Returns None if there is no such variable.
    """
    names = (name for name, item in os.environ.items() if len(item) >= SHORTEST_SECRET and not item.isascii())
    return next((name for name in names if os.environ[name] in text), None)
