"""Operators of templates, with limits for their results. The compiled code of a template calls these functions."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from typing import Any, Final, cast

from jinja2.runtime import LoopContext

from agentkit.jinja_environments.functions import raise_error
from agentkit.jinja_environments.limits import (
    check_bits,
    check_size,
    check_widths,
    find_size,
    measure,
    measure_text,
)
from agentkit.jinja_environments.namespaces import Namespace

__all__ = [
    "OPERATORS",
    "add",
    "check_brace_format",
    "check_percent_format",
    "concatenate",
    "join_pieces",
    "subtract",
]

_CHUNK: Final = 10_000
_ESCAPED: Final = 12  # maximum number of characters that JSON or `repr` writes for one character


def add(*values: Any) -> Any:
    """Returns the sum of values, from left to right: `a + b + c`."""
    size = 0
    for value in values:
        if type(value) is not str:
            break
        size += len(value)
    else:
        measure_text(size)
        return "".join(values)
    total = values[0]
    for value in values[1:]:
        total = measure(total + value)
    return total


def subtract(left: Any, right: Any) -> Any:
    """Returns `left - right`."""
    result = left - right
    if isinstance(result, int):
        check_bits(result.bit_length())
    return result


def concatenate(join: Callable[[Iterable[Any]], str], *values: Any) -> str:
    """Joins the texts of values: the operation `a ~ b ~ c` of a template.

    Calls `join`, the function of jinja that joins texts, only if a value is not a plain string.
    """
    if {*map(type, values)} == {str}:
        return cast("str", add(*values))
    texts = [value if isinstance(value, str) else str(value) for value in values]
    measure_text(sum(map(len, texts)))
    return join(texts)


def join_pieces(pieces: Iterable[str]) -> str:
    """Joins the pieces of a rendered text. Many pieces are joined in chunks, because chunks need less memory."""
    if isinstance(pieces, list):  # the pieces of a macro, which are all in memory
        measure_text(sum(map(len, pieces)))
        return "".join(pieces)
    texts: list[str] = []
    remaining, size = iter(pieces), 0
    while chunk := list(islice(remaining, _CHUNK)):
        size += sum(map(len, chunk))
        check_size(size)
        texts.append("".join(chunk))
    measure_text(size)
    return texts[0] if len(texts) == 1 else "".join(texts)


def _multiply(left: Any, right: Any) -> Any:
    for value, factor in ((left, right), (right, left)):
        if isinstance(factor, int) and isinstance(value, str | list | tuple):
            check_size(find_size(cast("Sequence[object]", value))[0] * factor)
    return measure(left * right)


def _raise_to_power(base: Any, exponent: Any) -> Any:
    if isinstance(base, int) and isinstance(exponent, int):
        check_bits(base.bit_length() * exponent)
    return base**exponent


def _compute_remainder(left: Any, right: Any) -> Any:
    if isinstance(left, str):
        check_percent_format(left, right if isinstance(right, tuple | dict) else (right,))
    return measure(left % right)


OPERATORS: Final[dict[str, Callable[[Any, Any], Any]]] = {
    "*": _multiply,
    "**": _raise_to_power,
    "%": _compute_remainder,
}
"""Maps operators to functions. With these operators, small values can create a large value."""

_PERCENT_FIELD: Final = re.compile(r"%[^%a-zA-Z]*")
_BRACE_FIELD: Final = re.compile(r"\{[^{}]*(?:\{[^{}]*\}[^{}]*)*")
_NUMBER: Final = re.compile(r"\d+")
_MAX_FIELD: Final = 1_000  # maximum length of a field, in characters


def check_percent_format(text: str, values: Any) -> None:
    """Checks the size of `text % values`. The values are a tuple or a dict."""
    parts = cast("dict[str, Any]", values).values() if isinstance(values, dict) else values
    _check_fields(text, _PERCENT_FIELD.findall(text), [*parts])


def check_brace_format(text: str, values: Iterable[Any]) -> None:
    """Checks the size of the result of `text.format(…)` with these values."""
    _check_fields(text, _BRACE_FIELD.findall(text), [*values])


def _check_fields(text: str, fields: list[str], values: list[Any]) -> None:
    if any(len(field) > _MAX_FIELD for field in fields):
        raise_error(f"a field of a format string is too large. The limit is {_MAX_FIELD:,} characters")
    widths = [int(number) for field in fields for number in _NUMBER.findall(field)]
    if any("*" in field or "{" in field[1:] for field in fields):  # an argument can be the width of a field
        widths += [value for value in values if isinstance(value, int)]
    check_widths(widths)
    longest = max(map(_find_length, values), default=0)
    check_size(len(text) + len(fields) * (longest + max(widths, default=0)))


def _find_length(value: Any) -> int:
    """Returns an upper bound for the length of the text of a value, or of a part of the value."""
    if isinstance(value, str):
        return len(value)
    if isinstance(value, Namespace | LoopContext):
        raise_error(f"a value of type {type(value).__name__} cannot be formatted")
    return _ESCAPED * find_size(value)[0]
