"""`cast_arguments`: converts the arguments of a tool call from text to the types of the tool's schema."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from math import isfinite
from typing import Any, Final, cast

from agentkit.errors import MessageError
from agentkit.json_values import as_list, as_object, parse_json

__all__ = ["cast_arguments"]

_FAILED: Final = object()


def cast_arguments(arguments: Mapping[str, Any], schema: Mapping[str, Any]) -> dict[str, Any]:
    """Converts string arguments of a tool call to the types that a schema declares.

    Strings that cannot be converted stay unchanged. If an argument is a list, but the schema declares only other
    types, the strings in the list are converted.

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
            found = _CASTS[name](value) if name in _CASTS else _FAILED
        except (ValueError, OverflowError, MessageError):
            continue
        if found is not _FAILED:
            return found
    return value


def _as_integer(text: str) -> Any:
    try:
        return int(text)
    except ValueError:
        number = float(text)
        return int(number) if number.is_integer() else _FAILED


def _as_number(text: str) -> Any:
    try:
        return int(text)
    except ValueError:
        number = float(text)
        return number if isfinite(number) else _FAILED


def _as_boolean(text: str) -> Any:
    return {"true": True, "1": True, "false": False, "0": False}.get(text.strip().lower(), _FAILED)


def _as_null(text: str) -> Any:
    return None if text.strip() in ("null", "None") else _FAILED


def _as_object(text: str) -> Any:
    value = parse_json(text)
    return value if isinstance(value, dict) else _FAILED  # pyright: ignore[reportUnknownVariableType]


def _as_array(text: str) -> Any:
    value = parse_json(text)
    return value if isinstance(value, list) else _FAILED  # pyright: ignore[reportUnknownVariableType]


_CASTS: Final[dict[str, Callable[[str], Any]]] = {
    "integer": _as_integer,
    "number": _as_number,
    "boolean": _as_boolean,
    "null": _as_null,
    "object": _as_object,
    "array": _as_array,
}
