"""Cache of expensive results on a message, such as the converted content of the message."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeVar

from agentkit.messages.message import Msg, set_cache_slot

__all__ = ["cache_result", "get_cached", "set_cached"]

_Result = TypeVar("_Result")
_MAX_CACHE: Final = 32  # maximum length of the cache tuple: 16 keys, each followed by its result


def get_cached(msg: Msg, key: object) -> Any:
    """Returns the result that is cached on a message under a key. Returns None if there is no such result."""
    cache = msg._cache  # pyright: ignore[reportPrivateUsage]
    if cache and cache[0] is key:  # fast path, because most messages have one cached result
        return cache[1]
    for index in range(0, len(cache), 2):
        if cache[index] is key or cache[index] == key:
            return cache[index + 1]
    return None


def set_cached(msg: Msg, key: object, result: _Result) -> _Result:
    """Caches a result on a message and returns the result. Each message keeps its 16 newest results."""
    set_cache_slot(msg, (*msg._cache[2 - _MAX_CACHE :], key, result))  # pyright: ignore[reportPrivateUsage]
    return result


def cache_result(msg: Msg, key: object, compute: Callable[[Msg], _Result]) -> _Result:
    """Returns a result that is computed on the first call and then cached on the message."""
    result: _Result | None = get_cached(msg, key)
    return set_cached(msg, key, compute(msg)) if result is None else result
