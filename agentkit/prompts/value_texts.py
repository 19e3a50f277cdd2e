"""`write_value`: writes a value as a text for a prompt. `parse_value` reads the value back from the text."""

from __future__ import annotations

import json
from collections.abc import Iterator
from enum import Enum
from typing import Any, Final, TypeGuard, cast

from agentkit.errors import OptionError, ParseError
from agentkit.prompts.value_escapes import escape_text
from agentkit.prompts.value_parsing import parse_value
from agentkit.prompts.value_types import ValueType, as_json_value, get_value_type
from agentkit.reprs import describe_value

__all__ = ["write_value"]


def write_value(value: object, annotation: Any) -> str:
    r"""Writes a value as DSPy 3.4.1 does, except for the cases in the table of the module `value_escapes`.

    - A list in a field of the type `str` becomes `N/A` (no items), `«item»` (one item), or lines such as
      `[1] «item»`.
    - Objects and arrays become JSON on one line, with non-ASCII characters unchanged.
    - Any other value becomes its `str()`, such as `True`, `0.9` or `None`.

    Args:
        value: Value to write, which need not fit the type.
        annotation: Type of the field.

    Raises:
        OptionError: The value cannot be written as a text, or pydantic does not support the type.
        MissingExtraError: The value is a text with brackets, the type is not a text type, and json-repair is not
            installed.

    Example:
        >>> write_value(["a", "b"], str)
        '[1] «a»\n[2] «b»'
        >>> write_value({"x": 1}, dict[str, int]), write_value(None, str | None), write_value("None", str | None)
        ('{"x": 1}', 'None', '\\None')
    """
    value_type = get_value_type(annotation)
    try:
        return _write(value, value_type)
    except (ValueError, TypeError, RecursionError) as error:
        if isinstance(error, OptionError):
            raise
        reason = f"{describe_value(value)} cannot be written as a text ({error})"
        raise OptionError("value", reason, "Pass a value that JSON can represent.") from None


def _write(value: object, value_type: ValueType) -> str:
    if value_type.base is str and type(value) is list:
        return _list_items(cast("list[object]", value))
    if type(value) in _EXACT and type(value) is value_type.base:
        return str(value)
    if not value_type.members and _has_only_texts(value):
        return f"[{', '.join(map(_dump, value))}]"  # fast path: writing each item is faster than `_dump(value)`
    json_value = value if type(value) is str else as_json_value(value)
    if type(json_value) in _CONTAINERS and not value_type.members:
        return _dump(json_value)
    if isinstance(json_value, str) and value_type.category in _TEXTS:
        return escape_text(json_value, value_type.is_special)
    if value_type.category in ("text", "code"):
        return str(json_value)
    return _find_readable(value, json_value, value_type)


def _has_only_texts(value: object) -> TypeGuard[list[str]]:
    return type(value) is list and {*map(type, cast("list[object]", value))} == {str}


_EXACT: Final = (bool, int, float)
_CONTAINERS: Final = (dict, list)
_TEXTS: Final = ("text", "nullable_text", "mixed_text")


_dump: Final = json.JSONEncoder(ensure_ascii=False).encode


# -- lists in fields of the type str --------------------------------------------------------------------------


def _list_items(items: list[object]) -> str:
    if not items:
        return "N/A"
    texts = [_quote_item(str(item)) for item in items]
    return texts[0] if len(texts) == 1 else "\n".join(f"[{number}] {text}" for number, text in enumerate(texts, 1))


def _quote_item(item: str) -> str:
    if "\n" not in item and "«" not in item and "»" not in item:
        return f"«{item}»"
    indented = item.replace("\n", "\n    ")
    return f"«««\n    {indented}\n»»»"


# -- texts that parse_value reads as the same value -----------------------------------------------------------


def _find_readable(value: object, json_value: Any, value_type: ValueType) -> str:
    """Returns the first candidate text that `parse_value` parses to the same value.

    If no candidate does, returns the text that DSPy writes.
    """
    for text in _list_candidates(value, json_value, value_type):
        if text == text.strip() and _reads_back(text, value, json_value, value_type):
            return text
    return next(_list_candidates(value, json_value, value_type))


def _list_candidates(value: object, json_value: Any, value_type: ValueType) -> Iterator[str]:
    if type(json_value) not in _CONTAINERS:
        yield str(json_value)
    yield _dump(json_value)
    if isinstance(value, Enum):
        yield value.name
    elif value_type.category == "literal":
        yield f"Literal[{_dump(json_value)}]"


def _reads_back(text: str, value: object, json_value: Any, value_type: ValueType) -> bool:
    try:
        parsed = parse_value(text, value_type.annotation)
    except ParseError:
        return False
    if type(parsed) is not type(value):
        return False
    if value_type.members or parsed == value:
        return bool(parsed == value)
    # NaN, and objects of a class without `__eq__`, do not equal their copies.
    return _dump(as_json_value(parsed)) == _dump(json_value)
