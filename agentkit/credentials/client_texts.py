"""Finds the strings in an SDK client, such as API keys and headers, to check them or to remove them from texts."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import suppress
from types import FunctionType, ModuleType
from typing import Any, cast

__all__ = ["AUTH_SCHEMES", "SHORTEST_SECRET", "is_headers", "iterate_texts"]

AUTH_SCHEMES = frozenset({"bearer", "basic", "digest", "aws4-hmac-sha256"})
"""Authorization schemes, in lower case. A scheme is the first word of an `Authorization` header."""

SHORTEST_SECRET = 6
"""Minimum length of a credential, in characters. A shorter value counts as a placeholder, such as "EMPTY"."""

_PLAIN_HEADERS = re.compile(
    r"(accept|accept-encoding|connection|content-type|content-length|content-encoding|host|user-agent"
    r"|transfer-encoding|anthropic-version|anthropic-beta|openai-beta|x-goog-api-client|x-dashscope-sse"
    r"|idempotency-key|x-stainless-.*)$",
    re.IGNORECASE,
)
"""Pattern of header names whose values are not credentials.

Any other header can contain a credential, because gateways choose their own header names.
"""

_MAX_VALUES = 3_000  # maximum number of objects in which one call of `iterate_texts` searches for strings
_MAX_DEPTH = 9  # maximum depth of nested objects; sufficient to find the headers of a client's proxy connections
_SKIPPED_PACKAGES = frozenset(
    {"asyncio", "anyio", "trio", "ssl", "threading", "logging", "functools", "_thread", "builtins", "types"}
)


def is_headers(name: object) -> bool:
    """Returns True if an option or attribute with this name contains headers."""
    return isinstance(name, str) and name.lower().endswith("headers")


def iterate_texts(*roots: object) -> Iterator[tuple[str, str, bool]]:
    """Yields the strings in clients, options and errors, including the strings in nested objects.

    Skips headers that never contain credentials, such as `content-type`. Reads only the stored attributes of a
    client. The properties of the client are not evaluated, so no code of the SDK runs.

    Yields:
        Tuples of three items: the name of an attribute, key or header; the string with this name; and True if the
        string is part of the headers.
    """
    pending = deque(("", root, False, 0) for root in roots)
    visited: set[int] = set()
    while pending and len(visited) < _MAX_VALUES:
        name, item, in_headers, depth = pending.popleft()
        if isinstance(item, bytes):
            item = item.decode("latin-1")
        if isinstance(item, str):
            if not (in_headers and _PLAIN_HEADERS.match(name)):
                yield name, item, in_headers
        elif item is not None and depth < _MAX_DEPTH and id(item) not in visited:
            visited.add(id(item))
            pending.extend(
                (inner, part, in_headers or is_headers(inner) or inner == "raw_auth", depth + 1)
                for inner, part in _parts(item, name)
            )


def _parts(item: Any, name: str) -> Iterator[tuple[str, Any]]:
    package = type(item).__module__.partition(".")[0]
    if isinstance(item, BaseException):
        yield from _sent_headers(item)
    elif isinstance(item, Mapping):
        with suppress(Exception):
            yield from [(str(key), part) for key, part in cast("Mapping[Any, Any]", item).items()]
    elif isinstance(item, list | tuple):
        parts = cast("list[Any]", item)
        # a list or tuple of two strings (or bytes) is treated as the name and the value of a header
        if len(parts) == 2 and all(isinstance(part, str | bytes) for part in parts):
            first = parts[0]
            yield (first.decode("latin-1") if isinstance(first, bytes) else first), parts[1]
        else:
            yield from ((name, part) for part in parts)
    elif type(item).__module__.endswith("._urls"):  # the item is a URL object of an HTTP client
        yield "url", str(item)
    elif not isinstance(item, type | ModuleType | FunctionType) and package not in _SKIPPED_PACKAGES:
        yield from [*getattr(item, "__dict__", {}).items()]


def _sent_headers(error: BaseException) -> Iterator[tuple[str, Any]]:
    """Yields an error's cause and context, and the headers of the request for which the error was raised."""
    for holder in (error, getattr(error, "response", None)):
        for attribute in ("request", "request_info"):  # names of the request attribute in httpx and in aiohttp
            with suppress(Exception):  # httpx raises RuntimeError if an error has no request
                yield "request_headers", getattr(holder, attribute).headers
    yield "", error.__cause__
    yield "", error.__context__
