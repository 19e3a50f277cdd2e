"""Values of the typed dicts of SDKs: one with only the required keys, and one with each optional key."""

from __future__ import annotations

import types
from collections.abc import Callable, Iterator, Mapping
from enum import Enum
from typing import Annotated, Any, Literal, NotRequired, Required, Union, get_args, get_origin

from typing_extensions import get_type_hints, is_typeddict

__all__ = ["SpecialValue", "create_values"]

SpecialValue = Callable[[type, str], Any]
"""Function from a typed dict and a key to the value to use, or None to create a value from the type of the key.

For the key "", the function returns more keys that all values of the typed dict need, or None.
"""


def create_values(annotation: Any, get_special_value: SpecialValue, depth: int = 0) -> Iterator[Any]:
    """Yields values of a type: values of each member of a union, and a value for each key of a typed dict."""
    origin = get_origin(annotation)
    if origin in (Annotated, Required, NotRequired):
        yield from create_values(get_args(annotation)[0], get_special_value, depth)
    elif origin in (Union, types.UnionType):
        for member in get_args(annotation):
            yield from create_values(member, get_special_value, depth)
    elif origin is Literal:
        yield from get_args(annotation)
    elif is_typeddict(annotation):
        yield from _create_objects(annotation, get_special_value, depth)
    elif origin is not None and origin is not dict and origin is not Mapping and get_args(annotation):
        yield from ([item] for item in create_values(get_args(annotation)[0], get_special_value, depth))
    elif isinstance(annotation, type) and issubclass(annotation, Enum):
        yield [member.value for member in annotation][-1]
    elif annotation is not type(None):
        yield _SCALAR_VALUES.get(annotation, {"key": "value"})


_SCALAR_VALUES: dict[Any, Any] = {str: "text", bytes: "RXVz", int: 1, float: 0.5, bool: True, object: "anything"}
_MAX_DEPTH = 4


def _create_objects(annotation: Any, get_special_value: SpecialValue, depth: int) -> Iterator[dict[str, Any]]:
    hints: dict[str, Any] = {**get_type_hints(annotation, include_extras=True)}
    required = {
        key: _create_first_value(annotation, key, hints[key], get_special_value, depth)
        for key in _get_required_keys(annotation, hints)
    }
    required |= get_special_value(annotation, "") or {}
    yield required
    if depth >= _MAX_DEPTH:
        return
    for key, hint in hints.items():
        special = get_special_value(annotation, key)
        for value in [special] if special is not None else create_values(hint, get_special_value, depth + 1):
            if required.get(key, _MISSING) != value:
                yield {**required, key: value}


_MISSING = object()


def _get_required_keys(annotation: Any, hints: Mapping[str, Any]) -> list[str]:
    """Returns the required keys. `__required_keys__` is wrong if the annotations of a class are strings."""
    marks = {key: get_origin(hint) for key, hint in hints.items()}
    return [
        key
        for key, mark in marks.items()
        if mark is Required or (annotation.__total__ and mark is not NotRequired)
    ]


def _create_first_value(annotation: Any, key: str, hint: Any, get_special_value: SpecialValue, depth: int) -> Any:
    value = get_special_value(annotation, key)
    return next(create_values(hint, get_special_value, depth + 1)) if value is None else value
