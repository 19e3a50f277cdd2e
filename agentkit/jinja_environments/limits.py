"""Limits for the sizes of texts, lists and numbers in templates, and for widths and counts.

The package `agentkit.jinja_environments` describes the limits.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from functools import wraps
from typing import TYPE_CHECKING, Any, Final, cast

from agentkit.jinja_environments.functions import raise_error

if TYPE_CHECKING:
    from jinja2.sandbox import ImmutableSandboxedEnvironment

__all__ = ["check_widths", "limit_format", "limit_sizes"]

_MAX_SIZE: Final = 10_000_000  # limit for characters of a text, items of a list, and bits of an integer
_MAX_WIDTH: Final = 100_000  # limit for widths and counts, equal to `jinja2.sandbox.MAX_RANGE`


def limit_sizes(environment: ImmutableSandboxedEnvironment) -> None:
    """Replaces the operators and filters of an environment by functions with limits."""
    operators = cast("dict[str, Any]", environment.binop_table)
    operators.update({"*": _multiply, "**": _raise_to_power, "%": _compute_remainder, "+": _add})
    filters = environment.filters
    filters.update(concatenate=_concatenate, format=_format)
    for name in ("batch", "center", "indent", "slice"):
        filters[name] = _limit_widths(filters[name], 1)
    environment.concat = _join_pieces  # type: ignore[method-assign]  # jinja joins all pieces of a rendered text with it


def _check_size(size: float) -> None:
    if size > _MAX_SIZE:
        raise_error(f"a value of the template is too large ({size:,.0f}). The limit is {_MAX_SIZE:,}")


def check_widths(values: Iterable[object]) -> None:
    """Raises the error of jinja if one of the values is an integer above the limit for widths and counts."""
    for value in values:
        if isinstance(value, int) and value > _MAX_WIDTH:
            raise_error(f"a width or count of the template is too large ({value:,}). The limit is {_MAX_WIDTH:,}")


def _limit_widths(function: Callable[..., Any], start: int) -> Callable[..., Any]:
    """Wraps a function so that an integer argument above `_MAX_WIDTH` is an error.

    Arguments before the position `start` are not checked.
    """

    @wraps(function)
    def call_limited(*args: Any, **kwargs: Any) -> Any:
        check_widths((*args[start:], *kwargs.values()))
        return function(*args, **kwargs)

    return call_limited


_PERCENT_WIDTH: Final = re.compile(r"%[^%a-zA-Z]*(?:\*|\d{6})")  # six digits, or a width from an argument
_BRACE_WIDTH: Final = re.compile(r"\{[^{}]*:[^{}]*\d{6}")
_NESTED_FIELD: Final = re.compile(r"\{[^{}]*:[^{}]*\{")


def _check_format(text: str, large_width: re.Pattern[str]) -> None:
    if large_width.search(text):
        raise_error(f"a width in a format is too large, or is not a constant. The limit is {_MAX_WIDTH - 1:,}")


def limit_format(function: Callable[..., str], text: str) -> Callable[..., str]:
    """Returns the method `format` or `format_map` of a text, with limits for the widths in the text."""
    _check_format(text, _BRACE_WIDTH)
    return _limit_widths(function, 0) if _NESTED_FIELD.search(text) else function


def _format(text: object, *args: Any, **kwargs: Any) -> str:
    return str(_compute_remainder(str(text), kwargs or args))


def _concatenate(items: Iterable[object]) -> str:
    return _join_pieces(map(str, items))


def _join_pieces(pieces: Iterable[str]) -> str:
    texts: list[str] = []
    size = 0
    for piece in pieces:
        size += len(piece)
        _check_size(size)
        texts.append(piece)
    return "".join(texts)


def _multiply(left: Any, right: Any) -> Any:
    for value, factor in ((left, right), (right, left)):
        if isinstance(factor, int) and isinstance(value, str | list | tuple):
            _check_size(len(cast("Sequence[object]", value)) * factor)
    if isinstance(left, int) and isinstance(right, int):
        _check_size(left.bit_length() + right.bit_length())
    return left * right


def _raise_to_power(base: Any, exponent: Any) -> Any:
    if isinstance(base, int) and isinstance(exponent, int):
        _check_size(base.bit_length() * exponent)
    return base**exponent


def _compute_remainder(left: Any, right: Any) -> Any:
    if isinstance(left, str):
        _check_format(left, _PERCENT_WIDTH)
    return left % right


def _add(left: Any, right: Any) -> Any:
    total = left + right
    if isinstance(total, str | list | tuple):
        _check_size(len(cast("Sequence[object]", total)))
    return cast("Any", total)
