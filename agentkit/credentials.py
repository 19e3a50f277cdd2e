"""Credentials of a provider's client: checked before they are sent, and kept out of every text."""

from __future__ import annotations

import json
import os
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from types import FunctionType, ModuleType
from typing import Any, TypeAlias, cast
from urllib.parse import quote, unquote

from agentkit.errors import OptionError

__all__ = ["Redact", "check_client", "clean_options", "conceal", "redactor", "variable_in"]

Redact: TypeAlias = Callable[[str], str]
"""Returns a text without the credentials of a client."""

_REDACTED = "[redacted]"
_SECRET = re.compile(
    r"(key|token|secret|password|passwd|auth|authorization|cookie|signature|raw_auth)$", re.IGNORECASE
)
_KEYS = frozenset({"api_key", "auth_token", "azure_ad_token", "admin_api_key", "aws_session_token"})
"""Names of options and attributes that SDKs send as a header."""
_ADDRESSES = frozenset({"base_url", "host", "azure_endpoint"})
_NESTED = frozenset({"http_options", "config", "client_args", "async_client_args"})
"""Options that hold further options (google-genai: HttpOptions)."""
_PLAIN_HEADERS = re.compile(
    r"(accept|accept-encoding|connection|content-type|content-length|content-encoding|host|user-agent"
    r"|transfer-encoding|anthropic-version|anthropic-beta|openai-beta|x-goog-api-client|x-dashscope-sse"
    r"|idempotency-key|x-stainless-.*)$",
    re.IGNORECASE,
)
"""Headers that hold no credential. Any other header may: gateways choose the names of theirs."""
_SCHEMES = frozenset({"bearer", "basic", "digest", "aws4-hmac-sha256"})
_USERINFO = re.compile(r"(?<=://)[^\s/?#@'\"<>]+(?=@)")
_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")  # RFC 9110, 5.6.2: token
_UNPRINTABLE = re.compile(r"[^\x20-\x7e]")
_TEXT_PIECES = re.compile(r"[\x21-\x7e]+")
_SHORTEST = 6  # characters: a shorter value is a placeholder, such as "none" or "EMPTY"
_LONGEST_WORD = 15  # letters alone, up to this many, are a word
_MOST_VALUES = 3_000  # of a client's attributes that are read
_DEEPEST = 9  # from a client to the headers of its proxy's connections
_PASSED_BY = frozenset(
    {"asyncio", "anyio", "trio", "ssl", "threading", "logging", "functools", "_thread", "builtins", "types"}
)


# -- what is sent ---------------------------------------------------------------------------------------------


def clean_options(place: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Options of a client, or of a call, with keys and headers that HTTP can carry.

    White space around a value is removed. Raises OptionError, which names the option and never its value, where
    a key, a header or an address has a character that is not printable ASCII.
    """
    return {name: _clean_option(f"{place}[{name!r}]", name, item) for name, item in options.items()}


def _clean_option(place: str, name: object, item: Any) -> Any:
    if isinstance(item, str) and name in _KEYS:
        return _clean(place, item)
    if isinstance(item, str) and name in _ADDRESSES:
        address = item.strip()
        if any(ord(character) < 32 or ord(character) == 127 for character in address):
            raise OptionError(place, "the address has a control character", "Pass the URL alone.")
        return address
    if isinstance(item, dict) and _is_headers(name):
        headers = cast("dict[Any, Any]", item)
        return {_header_name(place, key): _clean_header(place, key, value) for key, value in headers.items()}
    if isinstance(item, dict) and name in _NESTED:
        return clean_options(place, cast("dict[str, Any]", item))
    return cast("Any", item)


def _is_headers(name: object) -> bool:
    return isinstance(name, str) and name.lower().endswith("headers")


def _header_name(place: str, name: Any) -> Any:
    if isinstance(name, str) and _HEADER_NAME.fullmatch(name.strip()) is None:
        raise OptionError(f"{place}[{name!r}]", "this is no header name", "Use ASCII letters, digits and '-'.")
    return name.strip() if isinstance(name, str) else name


def _clean_header(place: str, name: object, value: Any) -> Any:
    return _clean(f"{place}[{name!r}]", value) if isinstance(value, str) else value


def _clean(place: str, value: str) -> str:
    """A value without white space around it. Raises OptionError for what no header can carry."""
    value = value.strip()
    fault = _fault(value)
    if fault:
        raise OptionError(place, fault, "Pass the value exactly as the provider shows it.")
    return value


def _fault(value: str) -> str:
    """What keeps a value from being sent as a header; "" if nothing does."""
    if value != value.strip():
        return "the value has white space around it"
    found = _UNPRINTABLE.search(value)
    if found is None:
        return ""
    kind = "a control character" if ord(found[0]) < 32 or ord(found[0]) == 127 else "a character that is not ASCII"
    return f"the value has {kind} at position {found.start()} of {len(value)}"


def check_client(client: object) -> None:
    """Refuse a client that would send a key or a header that HTTP cannot carry.

    Raises OptionError, which names the environment's variable that the value comes from, or else the client's
    attribute or header; never the value.
    """
    for name, value, is_header in _values(client):
        if not (is_header or name.lstrip("_") in _KEYS) or not (fault := _fault(value)):
            continue
        variable = _variable_with(value)
        place = variable or (f"client.headers[{name!r}]" if is_header else f"client.{name}")
        raise OptionError(place, fault, "Set it to the value exactly as the provider shows it.")


def _variable_with(value: str) -> str | None:
    """The environment's variable that a value, or the credential in a header's value, comes from."""
    credential = value.partition(" ")[2] if value.partition(" ")[0].lower() in _SCHEMES else value
    values = {value.strip(), credential.strip()} - {""}
    return next((name for name, item in os.environ.items() if item.strip() in values), None)


def variable_in(text: str) -> str | None:
    """Returns the environment variable that is not ASCII and whose value is in the text of a header."""
    found = (name for name, item in os.environ.items() if len(item) >= _SHORTEST and not item.isascii())
    return next((name for name in found if os.environ[name] in text), None)


# -- what is shown --------------------------------------------------------------------------------------------


def redactor(*roots: object) -> Redact:
    """A function that takes the credentials of clients, options and sent requests out of a text.

    The roots are read when the first text comes. User names and passwords in URLs are taken out as well.
    """
    found: list[str] | None = None

    def redact(text: str) -> str:
        nonlocal found
        if found is None:
            found = _secrets(roots)
        for secret in found:
            if secret in text:
                text = text.replace(secret, _REDACTED)
        return _USERINFO.sub(_REDACTED, text) if "://" in text else text

    return redact


def conceal(error: BaseException, redact: Redact) -> bool:
    """Take credentials out of an error and of those that caused it: arguments, text attributes and notes.

    A cause whose own text still has one afterwards is detached. Returns True if the error itself has none left.
    """
    seen: set[int] = set()
    pending: list[BaseException] = [error]
    while pending:
        one = pending.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        _conceal_one(one, redact)
        for link in ("__cause__", "__context__"):
            linked = getattr(one, link)
            if isinstance(linked, BaseException):
                _conceal_one(linked, redact)
                if _shows_secret(linked, redact):
                    setattr(one, link, None)
                else:
                    pending.append(linked)
    return not _shows_secret(error, redact)


def _conceal_one(error: BaseException, redact: Redact) -> None:
    with suppress(Exception):  # an error of another package may refuse any of this
        error.args = tuple([_without(item, redact) for item in error.args])
    with suppress(Exception):
        for name, item in [*vars(error).items()]:
            changed = _without(item, redact)
            if changed is not item:
                vars(error)[name] = changed
    if isinstance(error, UnicodeEncodeError):  # its text is made of a field of its own
        error.object = "?" * len(error.object)


def _without(item: Any, redact: Redact) -> Any:
    """An argument or attribute of an error without credentials; itself where it has none."""
    changed: Any = item
    if isinstance(item, str):
        changed = redact(item)
    elif isinstance(item, bytes):
        changed = redact(item.decode("latin-1")).encode("latin-1")
    elif type(item) is list:
        changed = [_without(part, redact) for part in cast("list[Any]", item)]
    elif type(item) is tuple:
        changed = tuple(_without(part, redact) for part in cast("tuple[Any, ...]", item))
    elif type(item) is dict:
        changed = {name: _without(part, redact) for name, part in cast("dict[Any, Any]", item).items()}
    return item if changed == item else cast("Any", changed)


def _shows_secret(error: BaseException, redact: Redact) -> bool:
    try:
        text = f"{error} {error!r}"
    except Exception:  # an error whose own sentence fails shows nothing
        return False
    return redact(text) != text


# -- where they are -------------------------------------------------------------------------------------------


def _secrets(roots: Iterable[object]) -> list[str]:
    """The credentials in some values, in each spelling that a text may have them in; the longest first."""
    found: set[str] = set()
    for name, value, is_header in _values(*roots):
        if is_header or _SECRET.search(name):
            found |= {value.strip(), *_TEXT_PIECES.findall(value)}
        elif "://" in value and "@" in value and (user := _USERINFO.search(value)):
            found |= set(user[0].split(":", 1))
    found = {value for value in found if _is_secret(value)}
    spelled = {spelling for value in found for spelling in _spellings(value)}
    return sorted(spelled, key=lambda text: (-len(text), text))


def _spellings(value: str) -> tuple[str, ...]:
    """A value as it is, in a URL, in JSON, and in Python's repr."""
    in_url = (quote(value), quote(value, safe=""), unquote(value))
    return (value, *in_url, json.dumps(value)[1:-1], repr(value)[1:-1])


def _is_secret(value: str) -> bool:
    is_word = value.isalpha() and len(value) <= _LONGEST_WORD
    return len(value) >= _SHORTEST and not is_word and value.lower() not in _SCHEMES


def _values(*roots: object) -> Iterator[tuple[str, str, bool]]:
    """The texts in some values, each with its name and whether it is the value of a header.

    Attributes are read as they are stored: no property is asked, and nothing of the SDK runs.
    """
    pending = deque(("", root, False, 0) for root in roots)
    seen: set[int] = set()
    while pending and len(seen) < _MOST_VALUES:
        name, item, in_headers, depth = pending.popleft()
        if isinstance(item, bytes):
            item = item.decode("latin-1")
        if isinstance(item, str):
            if not (in_headers and _PLAIN_HEADERS.match(name)):
                yield name, item, in_headers
        elif item is not None and depth < _DEEPEST and id(item) not in seen:
            seen.add(id(item))
            pending.extend(
                (inner, part, in_headers or _is_headers(inner) or inner == "raw_auth", depth + 1)
                for inner, part in _parts(item, name)
            )


def _parts(item: Any, name: str) -> Iterator[tuple[str, Any]]:
    """What is in a value, by name."""
    if isinstance(item, BaseException):
        yield from _sent_headers(item)
    elif isinstance(item, Mapping):
        with suppress(Exception):
            yield from [(str(key), part) for key, part in cast("Mapping[Any, Any]", item).items()]
    elif isinstance(item, list | tuple):
        parts = cast("list[Any]", item)
        if len(parts) == 2 and all(isinstance(part, str | bytes) for part in parts):  # a header
            first = parts[0]
            yield (first.decode("latin-1") if isinstance(first, bytes) else first), parts[1]
        else:
            yield from ((name, part) for part in parts)
    elif type(item).__module__.endswith("._urls"):  # HTTP clients' URL
        yield "url", str(item)
    elif not isinstance(item, type | ModuleType | FunctionType) and _package_of(item) not in _PASSED_BY:
        yield from [*getattr(item, "__dict__", {}).items()]


def _package_of(item: object) -> str:
    return type(item).__module__.partition(".")[0]


def _sent_headers(error: BaseException) -> Iterator[tuple[str, Any]]:
    """The headers of the request that an error is about, and the errors that it comes from."""
    for holder in (error, getattr(error, "response", None)):
        for attribute in ("request", "request_info"):  # httpx, aiohttp
            with suppress(Exception):  # httpx raises where an error has no request
                yield "request_headers", getattr(holder, attribute).headers
    yield "", error.__cause__
    yield "", error.__context__
