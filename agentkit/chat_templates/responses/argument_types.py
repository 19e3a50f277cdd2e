"""`cast_arguments`: converts the arguments of a tool call from text to the types of the tool's schema."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from math import isfinite
from typing import Any, Final, cast

from agentkit.errors import MessageError
from agentkit.json_values import as_list, as_object, parse_json

__all__ = ["cast_arguments"]


def cast_arguments(arguments: Mapping[str, Any], schema: Mapping[str, Any]) -> dict[str, Any]:
    """Converts string arguments of a tool call to the types that a schema declares.

    Strings that cannot be converted stay unchanged. If an argument is a list, but the schema declares only other
    types, each string in the list is converted to one of these types.

    Args:
        arguments: Arguments of a tool call.
        schema: JSON schema of the arguments object.

    Example:
        >>> cast_arguments({"n": "3", "city": "Rome"}, {"properties": {"n": {"type": "integer"}}})
        {'n': 3, 'city': 'Rome'}
    """
    properties = as_object(schema.get("properties"))
    return {name: _cast(value, [*_list_types(properties.get(name))]) for name, value in arguments.items()}


def _list_types(schema: object) -> Iterator[str]:
    declared = as_object(schema)
    types = declared.get("type")
    yield from (item for item in (as_list(types) or [types]) if isinstance(item, str))
    for choice in (*as_list(declared.get("anyOf")), *as_list(declared.get("oneOf"))):
        yield from _list_types(choice)
    if declared.get("nullable"):
        yield "null"


def _cast(value: Any, types: list[str]) -> Any:
    if isinstance(value, list) and types and "array" not in types:  # a repeated parameter arrives as a list
        return [_cast_text(item, types) for item in cast("list[Any]", value)]
    return _cast_text(value, types)


def _cast_text(value: Any, types: list[str]) -> Any:
    if not isinstance(value, str):
        return value
    for name in types:
        try:
            return _CASTS[name](value)
        except (KeyError, ValueError, OverflowError, MessageError):  # the text is not a value of this type
            continue
    return value


def _as_integer(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        number = float(text)
        if not number.is_integer():
            raise
        return int(number)


def _as_number(text: str) -> int | float:
    try:
        return int(text)
    except ValueError:
        number = float(text)
        if not isfinite(number):
            raise
        return number


def _as_json(text: str, kind: type) -> Any:
    value = parse_json(text)
    if not isinstance(value, kind):
        raise ValueError(f"the JSON value is not a {kind.__name__}")
    return value


_BOOLEANS: Final = {"true": True, "1": True, "false": False, "0": False}
_NULLS: Final = {"null": None, "None": None}
_CASTS: Final[dict[str, Callable[[str], Any]]] = {
    "integer": _as_integer,
    "number": _as_number,
    "boolean": lambda text: _BOOLEANS[text.strip().lower()],
    "null": lambda text: _NULLS[text.strip()],
    "object": lambda text: _as_json(text, dict),
    "array": lambda text: _as_json(text, list),
}
"""Maps types of JSON Schema to functions that convert a text to the type.

A function raises an error if the text is not a value of the type.
"""
