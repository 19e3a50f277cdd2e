"""`call_text_method`: calls a method of a text with limits for its result."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final, cast

from agentkit.jinja_environments.limits import check_size, check_widths, count_read, measure

__all__ = [
    "DICT_NAMES",
    "FREE_METHODS",
    "REFUSED_METHODS",
    "TEXT_METHODS",
    "call_text_method",
    "check_join",
    "check_replace",
]

DICT_NAMES: Final = frozenset(dir(dict))
"""Names of the attributes of dicts. In a chat template, `message.items` is a method and not the value of a key."""
FREE_METHODS: Final = {"endswith": "str", "get": "dict", "startswith": "str"}
"""Methods that read only a small part of their value, each with the type of the value."""
REFUSED_METHODS: Final = frozenset(
    {"encode", "expandtabs", "from_bytes", "maketrans", "striptags", "to_bytes", "translate"}
)
"""Names of the methods of texts and numbers that templates cannot use.

These methods create bytes, or need unlimited time or memory.
"""
TEXT_METHODS: Final = frozenset(
    {name for name in dir(str) if not name.startswith("_")} - REFUSED_METHODS - {"format", "format_map"}
)
"""Names of the methods of texts that templates can use, without the two methods that jinja's sandbox replaces."""


def call_text_method(text: str, name: str, *args: Any, **kwargs: Any) -> Any:
    """Calls the method `name` of a text, and checks and counts the size of its result."""
    if name in _CHECKS:
        args = _CHECKS[name](text, *args, **kwargs)
    count_read(text)
    return measure(getattr(text, name)(*args, **kwargs))


def check_replace(text: str, old: str, new: str, count: int = -1) -> None:
    """Checks the size of `text.replace(old, new, count)`."""
    if len(text) * (1 + len(new)) > 100_000 and len(new) > len(old):
        matches = text.count(old)
        check_size(len(text) + (matches if count < 0 else min(matches, count)) * (len(new) - len(old)))


def check_join(separator: str, texts: list[Any]) -> None:
    """Checks the size of `separator.join(texts)`."""
    size = sum(len(text) for text in texts if isinstance(text, str))
    check_size(size + len(separator) * len(texts))


def _check_replace(text: str, *args: Any, **kwargs: Any) -> tuple[Any, ...]:
    check_replace(text, *args, **kwargs)
    return args


def _check_join(text: str, *args: Any, **kwargs: Any) -> tuple[Any, ...]:
    lists = [list(cast("Iterable[Any]", argument)) for argument in args]
    for texts in lists:
        check_join(text, texts)
    return tuple(lists)


def _check_widths(text: str, *args: Any, **kwargs: Any) -> tuple[Any, ...]:
    check_widths(args)
    return args


_CHECKS: Final[dict[str, Callable[..., tuple[Any, ...]]]] = {
    "center": _check_widths,
    "join": _check_join,
    "ljust": _check_widths,
    "replace": _check_replace,
    "rjust": _check_widths,
    "zfill": _check_widths,
}
"""Functions by the name of a method. Each function checks the size of the result, and returns the arguments."""
