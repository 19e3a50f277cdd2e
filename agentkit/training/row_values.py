"""Functions that check and return the values of a row of training data. Errors name the place of the value."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NoReturn, cast

from agentkit.errors import MessageError
from agentkit.json_values import as_text
from agentkit.reprs import shorten_repr

__all__ = ["drop_none", "get_list", "get_object", "get_text", "has_none", "parse_if_text", "refuse"]

_ADVICE = "Fix or remove the row."


def refuse(place: str, reason: str, advice: str = _ADVICE) -> NoReturn:
    """Raises the error for an invalid value.

    Raises:
        MessageError: Always.
    """
    raise MessageError(place, reason, advice)


def get_text(values: Mapping[str, Any], key: str, place: str) -> str:
    """Returns the text under a key of a row or message. Empty if the value is None or the key is missing.

    Raises:
        MessageError: The value is not a text.
    """
    value = values.get(key)
    if value is None:
        return ""
    if not isinstance(value, str):
        refuse(f"{place}.{key}" if place else key, f"expected a string, got {shorten_repr(value, 60)}")
    return as_text(value, place)


def get_list(values: Mapping[str, Any], key: str, place: str) -> list[Any]:
    """Returns the list under a key of a row or message. Empty if the value is None or the key is missing.

    Raises:
        MessageError: The value is not a list.
    """
    value = values.get(key)
    if value is None:
        return []
    if not isinstance(value, list):
        refuse(f"{place}.{key}" if place else key, f"expected a list, got {shorten_repr(value, 60)}")
    return value  # pyright: ignore[reportUnknownVariableType] - a cast takes time


def get_object(value: object, place: str) -> dict[str, Any]:
    """Returns `value` unchanged if it is a JSON object.

    Raises:
        MessageError: The value is not a JSON object.
    """
    if not isinstance(value, dict):
        refuse(place, f"expected a JSON object, got {shorten_repr(value, 60)}")
    return value  # pyright: ignore[reportUnknownVariableType]


def has_none(value: object) -> bool:
    """Returns True if a JSON value has a key with the value None, at any depth."""
    if isinstance(value, dict):
        items = cast("dict[str, object]", value).values()
        return any(item is None or has_none(item) for item in items)
    return isinstance(value, list) and any(map(has_none, cast("list[object]", value)))


def drop_none(value: Any) -> Any:
    """Returns a JSON value without the keys that have the value None, at any depth.

    If only some rows have a key, the package `datasets` adds the key with the value None to the other rows.
    """
    if isinstance(value, dict):
        items = cast("dict[str, Any]", value).items()
        return {key: drop_none(item) for key, item in items if item is not None}
    return [drop_none(item) for item in cast("list[Any]", value)] if isinstance(value, list) else value


def parse_if_text(value: object, place: str) -> Any:
    """Parses a value if it is JSON text. Returns other values unchanged.

    Raises:
        MessageError: The text is not JSON.
    """
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError) as error:
        refuse(place, f"the text is not JSON ({error})")
