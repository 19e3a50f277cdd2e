"""Short representations of values of any size, for debuggers, logs and errors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from enum import Enum
from typing import Any, Final, cast

__all__ = ["as_one_line", "bounded_repr", "describe_value", "list_keys", "shorten", "shorten_repr"]

_LIMIT: Final = 1_000  # maximum length of a repr in characters
_MAX_DESCRIBED: Final = 60  # maximum length of a value in an error, in characters
_MIN_CONTENT: Final = 40  # if fewer characters are available, a container shows only its size
_MIN_TEXT: Final = 12  # minimum length of a shortened text in characters


def bounded_repr(self: Any) -> str:
    """Returns the repr of a dataclass, without fields that have their default value. Shortens long fields."""
    return _fields_repr(self, _LIMIT)


def shorten_repr(value: object, limit: int = _LIMIT) -> str:
    """Returns the repr of a value, shortened to about `limit` characters."""
    limit = max(limit, _MIN_TEXT)
    if isinstance(value, str | bytes | bytearray):
        return _text_repr(value, limit)
    if is_dataclass(value) and type(value).__repr__ is bounded_repr:
        return _fields_repr(value, limit)
    if type(value) in (list, tuple, set, frozenset, dict):
        return _items_repr(cast("Any", value), limit)
    if isinstance(value, Enum):
        return f"{type(value).__name__}.{value.name}"
    return shorten(_safe_repr(value), limit)


def shorten(text: str, limit: int) -> str:
    """Removes the middle of a text that has more than `limit` characters. Returns a shorter text unchanged."""
    if len(text) <= limit:
        return text
    return f"{text[: limit - limit // 4]} … ({len(text):,} characters) … {text[len(text) - limit // 4 :]}"


def describe_value(value: object) -> str:
    """Returns the type and the shortened repr of a value for an error, such as `int 3` or `None`."""
    name, text = type(value).__name__, shorten_repr(value, _MAX_DESCRIBED)
    return text if value is None or text.startswith(name) else f"{name} {text}"


def list_keys(value: Mapping[Any, Any]) -> str:
    """Returns the first keys of a mapping as text for an error: `the keys 'id', 'error'`, or `no keys`."""
    names = [repr(str(key)[:40]) for key in list(value)[:8]]
    return f"the keys {', '.join(names)}" if names else "no keys"


def as_one_line(text: str) -> str:
    """Joins the lines of a text into one line. Replaces control characters with U+FFFD."""
    line = " ".join(text.split())
    return "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in line)


def _safe_repr(value: object) -> str:
    try:
        return repr(value)
    except Exception as error:  # `__repr__` raises an error, or an integer has too many digits
        return f"<{type(value).__name__}: {type(error).__name__}>"


def _text_repr(text: str | bytes | bytearray, limit: int) -> str:
    if len(text) <= limit and len(full := repr(text)) <= limit + 2:
        return full
    unit = "characters" if isinstance(text, str) else "bytes"
    limit = max(limit - 30, _MIN_TEXT)  # leaves space for the length of the text, which is added at the end
    return f"{repr(text[:limit])[:limit]}… ({len(text):,} {unit})"


def _fields_repr(value: Any, limit: int) -> str:
    name = type(value).__name__
    items = [(field, getattr(value, field.name, None)) for field in fields(value) if field.repr]
    changed = [(field.name, item) for field, item in items if not _is_default(field, item)]
    if limit < _MIN_CONTENT and changed:
        return f"{name}(…)"
    parts: list[str] = []
    limit -= len(name)
    for index, (field_name, item) in enumerate(changed):
        remaining = len(changed) - index
        if limit < 0:
            parts.append(f"… {remaining} more")
            break
        part = f"{field_name}={shorten_repr(item, limit // remaining - len(field_name))}"
        limit -= len(part)
        parts.append(part)
    return f"{name}({', '.join(parts)})"


def _is_default(field: Field[Any], value: object) -> bool:
    if field.default is MISSING:
        return callable(field.default_factory) and isinstance(value, (*_SIZED, dict)) and not value
    return value is field.default or (type(value) in (str, int, tuple) and bool(value == field.default))


_SIZED = (list, tuple, set, frozenset)


def _items_repr(container: Any, limit: int) -> str:
    start, end = _BRACKETS[type(container)]
    if limit < _MIN_CONTENT and container:
        return f"{start}… {len(container):,}{end}"
    if not container and start == "{" and not hasattr(container, "items"):
        return "set()"
    parts: list[str] = []
    for part in _item_reprs(container, limit):
        limit -= len(part) + 2
        if limit < 0:
            parts.append(f"… {len(container) - len(parts):,} more")
            break
        parts.append(part)
    comma = "," if len(container) == 1 and start == "(" else ""
    return f"{start}{', '.join(parts)}{comma}{end}"


_BRACKETS: Final[dict[Any, Any]] = {
    list: "[]",
    tuple: "()",
    dict: "{}",
    set: "{}",
    frozenset: ("frozenset({", "})"),
}


def _item_reprs(container: Any, limit: int) -> Iterator[str]:
    """Yields the shortened repr of each item in a container. If there is only one item, its repr may be longer."""
    is_mapping = hasattr(container, "items")
    pairs: Any = container.items() if is_mapping else ((None, item) for item in container)
    for key, item in pairs:
        name = f"{shorten_repr(key, min(limit // 4, 60))}: " if is_mapping else ""
        part = f"{name}{shorten_repr(item, limit // 2 if len(container) > 1 else limit * 3 // 4)}"
        yield part
        limit -= len(part) + 2
