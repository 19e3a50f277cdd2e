"""`call_text_method`: calls a method of a text with limits for its result."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final, cast

from agentkit.jinja_environments.limits import check_size, check_widths, count_read, measure

__all__ = [
    "DICT_NAMES",
    "REFUSED_METHODS",
    "TEXT_METHODS",
    "TEXT_TESTS",
    "call_text_method",
    "check_join",
    "check_replace",
]

DICT_NAMES: Final = frozenset(dir(dict))
"""Names of the attributes of dicts. In a chat template, `message.items` is a method and not the value of a key."""
TEXT_TESTS: Final = frozenset({"endswith", "startswith"})
"""Names of the methods that read only the start or the end of a text."""
TEXT_METHODS: Final = frozenset(name for name in dir(str) if not name.startswith("_")) - {"format", "format_map"}
"""Names of the methods of texts, without the two methods that jinja's sandbox replaces."""
REFUSED_METHODS: Final = frozenset(
    {"encode", "expandtabs", "from_bytes", "maketrans", "striptags", "to_bytes", "translate"}
)
"""Names of the methods of texts and numbers that templates cannot use.

These methods create bytes, or need unlimited time or memory.
"""


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
