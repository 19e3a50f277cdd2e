"""`limit_filters`: adds limits to the filters and tests of an environment."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import wraps
from typing import Any, Final, TypeAlias, cast

from jinja2 import Environment

from agentkit.jinja_environments.functions import raise_error
from agentkit.jinja_environments.limits import (
    CHARACTERS_PER_STEP,
    ITEM_SIZE,
    check_bits,
    check_size,
    check_widths,
    count_items,
    count_read,
    count_steps,
    find_size,
    measure,
    measure_text,
)
from agentkit.jinja_environments.operators import check_percent_format
from agentkit.jinja_environments.text_methods import check_join, check_replace
from agentkit.reprs import describe_value

__all__ = ["COUNT_ITEM", "limit_filters"]

COUNT_ITEM: Final = "count item"  # filter name with a space, so that templates cannot call the filter

_Check: TypeAlias = Callable[..., Any]

_CONTAINERS: Final[Any] = (list, tuple, dict, range)
_UNLIMITED_FILTERS: Final = frozenset({"attr", "count", "d", "default", "first", "last", "length", "trim"})
"""Filters without added limits: they use only small values, or count their steps themselves."""
_WRITERS: Final = frozenset({"json", "string", "tojson", "yaml"})
"""Filters that write a value as text. Only the text is counted, because the text is larger than the value."""
_COMPARISONS: Final = frozenset(
    {"!=", "<", "<=", "==", ">", ">=", "eq", "equalto", "ge", "greaterthan", "gt", "in", "le", "lessthan", "lower"}
    | {"lt", "ne", "upper"}
)
"""Names of the jinja tests that read a complete value, such as `eq`."""


def limit_filters(environment: Environment) -> None:
    """Adds limits to the filters and tests that read or create large values in a Jinja environment."""
    filters, tests = environment.filters, environment.tests
    for name in filters.keys() - _UNLIMITED_FILTERS:
        filters[name] = _limit_filter(name, filters[name])
    for name in _COMPARISONS:
        tests[name] = _limit_test(tests[name])
    filters.update({COUNT_ITEM: _count_item, "trim": _trim})


def _count_item(value: Any) -> Any:
    """Counts one item of a loop such as `{% for m in messages if m.name %}`. Returns the condition unchanged."""
    count_steps(ITEM_SIZE)
    return value


def _trim(value: Any, chars: str | None = None) -> str:
    """Returns a text without the characters `chars` at both ends. This is the filter `trim`."""
    # Many templates call `trim` for each message, and this code is faster than the function of jinja.
    text = value if isinstance(value, str) else str(value)
    measure_text(len(text))
    return text.strip(chars)


def _limit_filter(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """Returns a filter with limits.

    Args:
        name: Name of the filter.
        function: The filter without limits.
    """
    is_read, check = name not in _WRITERS, _CHECKS.get(name)
    position = 1 if hasattr(function, "jinja_pass_arg") else 0  # jinja may pass the context as the first argument

    @wraps(function)
    def call_limited(*args: Any, **kwargs: Any) -> Any:
        value = args[position]
        if type(value) is str:
            count_steps(ITEM_SIZE + len(value) // CHARACTERS_PER_STEP if is_read else ITEM_SIZE)
        else:
            count_steps(ITEM_SIZE * len(value) if isinstance(value, _CONTAINERS) else ITEM_SIZE)
            if is_read:
                count_read(value)
        if check is not None:
            value = check(*args[position:], **kwargs)
            args = (*args[:position], value, *args[position + 1 :])
        result = function(*args, **kwargs)
        if type(result) is str or not isinstance(result, Iterator):
            return measure(result)
        texts = [text for text in (*args[position + 1 :], *kwargs.values()) if isinstance(text, str)]
        return count_items(cast("Iterator[Any]", result), ITEM_SIZE * (1 + sum(map(len, texts))))

    return call_limited


def _limit_test(function: Any) -> Any:
    @wraps(function)
    def call_limited(*args: Any) -> Any:
        for value in args:
            count_read(value)
        return function(*args)

    return call_limited


# -- checks before a filter ------------------------------------------------------------------------------------


def _check_widths(value: Any, *args: Any, **kwargs: Any) -> Any:
    check_widths((*args, *kwargs.values()))
    return value


def _check_groups(value: Any, *args: Any, **kwargs: Any) -> Any:
    return _check_characters(_check_widths(value, *args, **kwargs))


def _check_characters(value: Any, *args: Any, **kwargs: Any) -> Any:
    """Checks the value of a filter that converts a text to a list of characters or words."""
    if isinstance(value, str):
        check_size(ITEM_SIZE * len(value))
    return value


def _check_indent(value: Any, width: int | str = 4, *args: Any, **kwargs: Any) -> Any:
    check_widths([width])
    text = str(value)
    lines = len(text.splitlines()) + 1
    check_size(len(text) + lines * (len(width) if isinstance(width, str) else width))
    return value


def _check_round(value: Any, precision: object = 0, method: str = "common") -> Any:
    if isinstance(precision, int):
        check_bits(4 * abs(precision))  # the filter computes `10 ** precision`
        count_steps(abs(precision))
    return value


def _check_replace(value: Any, old: Any, new: Any, count: int | None = None) -> Any:
    check_replace(str(value), str(old), str(new), -1 if count is None else count)
    return value


def _check_join(value: Iterable[Any], d: Any = "", attribute: Any = None) -> Any:
    _check_characters(value)
    items = list(value)
    check_join(str(d), items)
    check_size(find_size(items)[0])
    return items


def _check_format(value: Any, *args: Any, **kwargs: Any) -> Any:
    check_percent_format(str(value), kwargs or args)
    return value


def _check_sum(value: Any, attribute: Any = None, start: Any = 0) -> Any:
    if not isinstance(start, int | float):
        raise_error(f"the filter sum: expected a number as `start`, got {describe_value(start)}")
    return value


def _check_json(value: Any, *args: Any, **options: Any) -> Any:
    """Checks the size of a JSON text with its indents and separators."""
    if not (args or options):
        return value
    size, nesting = find_size(value)
    widths = [_find_width(option) for option in (*args, *options.values())]
    check_widths(widths)
    check_size(size + size // ITEM_SIZE * nesting * sum(widths))
    return value


def _find_width(option: Any) -> int:
    if isinstance(option, tuple):
        return sum(map(_find_width, cast("tuple[Any, ...]", option)))
    return len(option) if isinstance(option, str) else option if isinstance(option, int) else 0


def _check_slow(value: Any, *args: Any, **kwargs: Any) -> Any:
    """Checks a filter whose time or result can grow with the square of the size of its arguments."""
    options = (*args, *kwargs.values())
    size = find_size([value, *options])[0]
    count_steps(size * size // 1_000)
    # The result can repeat an option for each character of the value, such as `wrapstring` of `wordwrap`.
    check_size(find_size(value)[0] * sum(len(option) for option in options if isinstance(option, str)))
    return value


_CHECKS: Final[dict[str, _Check]] = {
    "batch": _check_groups,
    "center": _check_widths,
    "format": _check_format,
    "groupby": _check_characters,
    "indent": _check_indent,
    "join": _check_join,
    "json": _check_json,
    "list": _check_characters,
    "pprint": _check_slow,
    "replace": _check_replace,
    "round": _check_round,
    "slice": _check_groups,
    "sort": _check_characters,
    "striptags": _check_slow,
    "sum": _check_sum,
    "title": _check_characters,
    "tojson": _check_json,
    "urlize": _check_slow,
    "wordwrap": _check_slow,
    "xmlattr": _check_slow,
}
"""Maps the name of a filter to a function that checks the filter before it runs.

The function receives the arguments of the filter, checks the size of the result, and returns the value to filter.
"""
