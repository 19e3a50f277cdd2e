"""Removes the credentials of an SDK client from texts and errors."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any, TypeAlias, cast
from urllib.parse import quote, unquote

from agentkit.credentials.client_texts import AUTH_SCHEMES, SHORTEST_SECRET, iterate_texts

__all__ = ["Redactor", "create_redactor", "redact_error"]

Redactor: TypeAlias = Callable[[str], str]
"""Function that takes a text and returns the text without the credentials of a client."""

_REDACTED = "[redacted]"
_SECRET_NAME = re.compile(
    r"(key|token|secret|password|passwd|auth|authorization|cookie|signature|raw_auth)$", re.IGNORECASE
)
_USERINFO = re.compile(r"(?<=://)[^\s/?#@'\"<>]+(?=@)")
_TEXT_PIECES = re.compile(r"[\x21-\x7e]+")
_LONGEST_WORD = 15  # a value of only letters, up to this length, counts as an ordinary word, not as a credential


def create_redactor(*roots: object) -> Redactor:
    """Returns a function that replaces credentials in a text with "[redacted]".

    The function also replaces user names and passwords in URLs.

    Args:
        roots: Clients, options and errors that contain the credentials. The first call of the returned function
            reads these objects.
    """
    secrets: list[str] | None = None

    def redact(text: str) -> str:
        nonlocal secrets
        if secrets is None:
            secrets = _find_secrets(roots)
        for secret in secrets:
            if secret in text:
                text = text.replace(secret, _REDACTED)
        return _USERINFO.sub(_REDACTED, text) if "://" in text else text

    return redact


def redact_error(error: BaseException, redact: Redactor) -> bool:
    """Removes credentials from the arguments, attributes and notes of an error and of its causes.

    If the text of a cause still shows a credential, the link from the error to this cause is removed.

    Returns:
        True if the text of the error itself shows no credential.
    """
    visited: set[int] = set()
    pending: list[BaseException] = [error]
    while pending:
        current = pending.pop()
        if id(current) in visited:
            continue
        visited.add(id(current))
        _redact_one(current, redact)
        for link in ("__cause__", "__context__"):
            linked = getattr(current, link)
            if isinstance(linked, BaseException):
                _redact_one(linked, redact)
                if _shows_secret(linked, redact):
                    setattr(current, link, None)
                else:
                    pending.append(linked)
    return not _shows_secret(error, redact)


def _redact_one(error: BaseException, redact: Redactor) -> None:
    with suppress(Exception):  # an error class of another package can refuse the assignment
        error.args = tuple([_redact_part(item, redact) for item in error.args])
    with suppress(Exception):
        for name, item in [*vars(error).items()]:
            changed = _redact_part(item, redact)
            if changed is not item:
                vars(error)[name] = changed
    if isinstance(error, UnicodeEncodeError):
        # The text of the error quotes the attribute `object`, which can contain a credential.
        error.object = "?" * len(error.object)


def _redact_part(item: Any, redact: Redactor) -> Any:
    """Returns a copy of `item` without credentials, or `item` itself if it contains no credentials.

    `item` is an argument or attribute of an error, or a part of such a value.
    """
    changed = _redact_value(item, redact)
    return item if changed == item else changed


def _redact_value(item: Any, redact: Redactor) -> Any:
    if isinstance(item, str):
        return redact(item)
    if isinstance(item, bytes):
        return redact(item.decode("latin-1")).encode("latin-1")
    if type(item) is list:
        return [_redact_part(part, redact) for part in cast("list[Any]", item)]
    if type(item) is tuple:
        return tuple(_redact_part(part, redact) for part in cast("tuple[Any, ...]", item))
    if type(item) is dict:
        return {name: _redact_part(part, redact) for name, part in cast("dict[Any, Any]", item).items()}
    return item


def _shows_secret(error: BaseException, redact: Redactor) -> bool:
    try:
        text = f"{error} {error!r}"
    except Exception:  # an error whose text cannot be created cannot show a credential
        return False
    return redact(text) != text


def _find_secrets(roots: Iterable[object]) -> list[str]:
    """Returns all spellings of the credentials in `roots`, with the longest spelling first."""
    secrets: set[str] = set()
    for name, value, is_header in iterate_texts(*roots):
        if is_header or _SECRET_NAME.search(name):
            secrets |= {value.strip(), *_TEXT_PIECES.findall(value)}
        elif "://" in value and "@" in value and (user := _USERINFO.search(value)):
            secrets |= set(user[0].split(":", 1))
    spelled = {spelling for value in secrets if _is_secret(value) for spelling in _list_spellings(value)}
    return sorted(spelled, key=lambda text: (-len(text), text))


def _list_spellings(value: str) -> tuple[str, ...]:
    """Returns the spellings of a credential: unchanged, in a URL, in JSON and in a Python repr."""
    in_url = (quote(value), quote(value, safe=""), unquote(value))
    return (value, *in_url, json.dumps(value)[1:-1], repr(value)[1:-1])


def _is_secret(value: str) -> bool:
    is_word = value.isalpha() and len(value) <= _LONGEST_WORD
    return len(value) >= SHORTEST_SECRET and not is_word and value.lower() not in AUTH_SCHEMES
