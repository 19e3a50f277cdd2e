"""`call_text_method`: calls a method of a text with limits for its result."""

from __future__ import annotations

from typing import Any, Final

from agentkit.jinja_environments.limits import check_size, check_widths, count_read, measure

__all__ = [
    "DICT_ATTRIBUTES",
    "FREE_METHODS",
    "REFUSED_METHODS",
    "TEXT_METHODS",
    "call_text_method",
    "check_join",
    "check_replace",
]

DICT_ATTRIBUTES: Final = frozenset(dir(dict))
"""Names of the attributes of dicts. In a chat template, `message.items` is a method and not the value of a key."""
FREE_METHODS: Final = {"endswith": "str", "get": "dict", "startswith": "str"}
"""Methods that read only a small part of their value if the arguments are constants.

The values of this dict are the names of the types that have the method.
"""
REFUSED_METHODS: Final = frozenset(
    {"encode", "expandtabs", "from_bytes", "maketrans", "striptags", "to_bytes", "translate"}
)
"""Names of the methods of texts and numbers that templates cannot use.

These methods create bytes, or need unlimited time or memory.
"""
TEXT_METHODS: Final = frozenset(
    {name for name in dir(str) if not name.startswith("_")} - REFUSED_METHODS - {"format", "format_map"}
)
"""Names of the methods of texts that templates can use, except the two methods that jinja's sandbox replaces."""
_WIDTH_METHODS: Final = frozenset({"center", "ljust", "rjust", "zfill"})


def call_text_method(text: str, name: str, *args: Any, **kwargs: Any) -> Any:
    """Calls the method `name` of a text. Checks the size of the result, and counts steps for the size."""
    if name == "join":
        args = tuple(list(texts) for texts in args)
        for texts in args:
            check_join(text, texts)
    elif name == "replace":
        check_replace(text, *args, **kwargs)
    elif name in _WIDTH_METHODS:
        check_widths(args)
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
