"""Values of the typed dicts of the SDKs: with the required keys, and with each further key in turn."""

from __future__ import annotations

import types
from collections.abc import Callable, Iterator, Mapping
from enum import Enum
from typing import Annotated, Any, Literal, NotRequired, Required, Union, get_args, get_origin

from typing_extensions import get_type_hints, is_typeddict

__all__ = ["Sample", "samples"]

Sample = Callable[[type, str], Any]
"""What to put under a key of a typed dict, if not what its type says; None: go by the type.

Under no key: what every value has that the class does not say is required.
"""


def samples(kind: Any, sample: Sample, depth: int = 0) -> Iterator[Any]:
    """Values of a type: of a union some of each member, of a typed dict one for each key that it may have."""
    origin = get_origin(kind)
    if origin in (Annotated, Required, NotRequired):
        yield from samples(get_args(kind)[0], sample, depth)
    elif origin in (Union, types.UnionType):
        for member in get_args(kind):
            yield from samples(member, sample, depth)
    elif origin is Literal:
        yield from get_args(kind)
    elif is_typeddict(kind):
        yield from _of_keys(kind, sample, depth)
    elif origin is not None and origin is not dict and origin is not Mapping and get_args(kind):
        yield from ([item] for item in samples(get_args(kind)[0], sample, depth))
    elif isinstance(kind, type) and issubclass(kind, Enum):
        yield [member.value for member in kind][-1]
    elif kind is not type(None):
        yield _PLAIN.get(kind, {"key": "value"})


_PLAIN: dict[Any, Any] = {str: "text", bytes: "RXVz", int: 1, float: 0.5, bool: True, object: "anything"}
_DEEPEST = 4


def _of_keys(kind: Any, sample: Sample, depth: int) -> Iterator[dict[str, Any]]:
    hints: dict[str, Any] = {**get_type_hints(kind, include_extras=True)}
    required = {key: _first(kind, key, hints[key], sample, depth) for key in _required(kind, hints)}
    required |= sample(kind, "") or {}
    yield required
    if depth >= _DEEPEST:
        return
    for key, hint in hints.items():
        special = sample(kind, key)
        for value in [special] if special is not None else samples(hint, sample, depth + 1):
            if required.get(key, _NOTHING) != value:
                yield {**required, key: value}


_NOTHING = object()


def _required(kind: Any, hints: Mapping[str, Any]) -> list[str]:
    """The keys that a value must have. (A class does not know them itself where annotations are texts.)"""
    marks = {key: get_origin(hint) for key, hint in hints.items()}
    return [key for key, mark in marks.items() if mark is Required or (kind.__total__ and mark is not NotRequired)]


def _first(kind: Any, key: str, hint: Any, sample: Sample, depth: int) -> Any:
    value = sample(kind, key)
    return next(samples(hint, sample, depth + 1)) if value is None else value
