"""Functions that check and return the values of a row of training data. Errors name the place of the value."""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Mapping
from collections.abc import Set as AbstractSet
from typing import Any, NoReturn, cast

from pydantic_core import to_jsonable_python

from agentkit.errors import MessageError
from agentkit.json_values import as_text, is_json_safe
from agentkit.messages.sources import encode_base64
from agentkit.reprs import shorten, shorten_repr

__all__ = [
    "check_json",
    "check_object",
    "drop_none",
    "get_list",
    "get_text",
    "get_unknown_values",
    "has_none",
    "is_missing",
    "parse_if_text",
    "refuse",
]

_ADVICE = "Fix or remove the row."


def refuse(place: str, reason: str, advice: str = _ADVICE) -> NoReturn:
    """Raises the error for an invalid value.

    Raises:
        MessageError: Always.
    """
    raise MessageError(place, reason, advice)


def is_missing(value: object) -> bool:
    """Returns True for None, and for an empty string, list or dict, which some rows have in place of None."""
    return value is None or value in ("", [], {})


def get_text(values: Mapping[str, Any], key: str, place: str) -> str:
    """Returns the text under a key of a row or message. Empty if the value is None or the key is missing.

    Raises:
        MessageError: The value is not a string.
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


def check_object(value: object, place: str) -> dict[str, Any]:
    """Returns `value` unchanged if it is a JSON object.

    Raises:
        MessageError: The value is not a JSON object.
    """
    if not isinstance(value, dict):
        refuse(place, f"expected a JSON object, got {shorten_repr(value, 60)}")
    return value  # pyright: ignore[reportUnknownVariableType]


def get_unknown_values(values: Mapping[str, Any], known_keys: AbstractSet[str], place: str) -> dict[str, Any]:
    """Returns the values whose keys are not in `known_keys`, for metadata or `Sample.extra`.

    Omits the values None and NaN, which mean that a value is missing. Bytes become base64 text, and dates become
    text.

    Raises:
        MessageError: JSON cannot represent a value.
    """
    if values.keys() <= known_keys:  # fast path
        return {}
    unknown = {key: value for key, value in values.items() if key not in known_keys and value is not None}
    if is_json_safe(unknown):
        return unknown
    converted = {
        str(key): _convert(value, f"{place}.{key}" if place else str(key)) for key, value in unknown.items()
    }
    return {key: value for key, value in converted.items() if value is not None}


def _convert(value: Any, place: str) -> Any:
    try:
        converted = _convert_nested(value)
    except ValueError as error:  # pydantic raises this error for an object of an unknown class
        refuse(place, f"JSON cannot represent the value ({error})")
    check_json(converted, place)
    return converted


def _convert_nested(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _convert_nested(item) for key, item in cast("dict[Any, Any]", value).items()}
    if isinstance(value, list | tuple):
        return [_convert_nested(item) for item in cast("list[Any]", value)]
    if isinstance(value, bytes):
        return encode_base64(value)
    return None if isinstance(value, float) and math.isnan(value) else to_jsonable_python(value)


def check_json(value: object, place: str) -> None:
    """Checks that JSON can represent a value.

    Raises:
        MessageError: JSON cannot represent a part of the value. The error has the place of this part.
    """
    if is_json_safe(value):
        return
    if isinstance(value, dict):
        for key, item in cast("dict[object, object]", value).items():
            check_json(item, f"{place}.{key}")
    elif isinstance(value, list):
        for index, item in enumerate(cast("list[object]", value)):
            check_json(item, f"{place}[{index}]")
    reason = f"JSON cannot represent the value {shorten_repr(cast('object', value), 60)}"
    refuse(shorten(place, 200), reason)


def has_none(value: object, ignored_keys: Collection[str] = ()) -> bool:
    """Returns True if a JSON value has a key with the value None that is not in `ignored_keys`, at any depth."""
    if isinstance(value, dict):
        return any(
            (item is None and key not in ignored_keys) or has_none(item, ignored_keys)
            for key, item in cast("dict[str, object]", value).items()
        )
    return isinstance(value, list) and any(has_none(item, ignored_keys) for item in cast("list[object]", value))


def drop_none(value: Any) -> Any:
    """Returns a JSON value without the keys that have the value None, at any depth.

    If only some rows have a key, the package `datasets` adds the key with the value None to the other rows.
    """
    if isinstance(value, dict):
        items = cast("dict[str, Any]", value).items()
        return {key: drop_none(item) for key, item in items if item is not None}
    return [drop_none(item) for item in cast("list[Any]", value)] if isinstance(value, list) else value


def parse_if_text(value: object, place: str) -> Any:
    """Parses a string as JSON. Returns any other value unchanged.

    Raises:
        MessageError: The string is not JSON.
    """
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError) as error:
        refuse(place, f"expected JSON text, got {shorten_repr(value, 60)} ({error})")
