"""Limits of one rendering: its number of steps, and the sizes of its values.

The package `agentkit.jinja_environments` describes the limits. The functions of this module raise jinja's
`TemplateRuntimeError` if a limit is exceeded. The functions work only after `start_rendering`, so jinja cannot
call them when it compiles a template.

- `check_…` raises an error if a size is above its limit, and counts no steps.
- `count_…` subtracts steps from the remaining steps, and checks no sizes.
- `measure…` checks the size of a new value, and counts the steps of its creation.
- `find_size` computes the size of a value.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextvars import ContextVar, Token
from itertools import chain
from typing import Any, Final

from agentkit.jinja_environments.functions import raise_error

__all__ = [
    "CHARACTERS_PER_STEP",
    "Counters",
    "DICT",
    "ITEM_SIZE",
    "Unmeasured",
    "check_bits",
    "check_size",
    "check_widths",
    "count_items",
    "count_member_test",
    "count_read",
    "count_silent_steps",
    "count_slice",
    "count_steps",
    "end_rendering",
    "enter_call",
    "find_size",
    "leave_call",
    "max_steps_variable",
    "measure",
    "measure_text",
    "start_rendering",
]

_MAX_STEPS: Final = 100_000_000
_STEPS_PER_PAIR: Final = 50  # further steps for each pair of messages: some templates compare all pairs
_MAX_SIZE: Final = 10_000_000  # maximum number of characters of a text, or of all texts in a list or dict
_MAX_WIDTH: Final = 100_000  # limit for widths and counts, equal to `jinja2.sandbox.MAX_RANGE`
_MAX_BITS: Final = 1_000  # maximum number of bits of an integer, so that each operation needs at most about 1 µs
_MAX_NESTING: Final = 200  # maximum number of nested levels of calls, and of lists and dicts
ITEM_SIZE: Final = 20  # a list item counts as 20 characters, because the item needs about 80 bytes
_CONTAINER_SIZE: Final = 100  # size of an empty list, in characters
_STEPS_PER_RANGE_ITEM: Final = 5  # number of steps for each item that is read from a range
_FREE_LENGTH: Final = 250  # characters. Reading a text of at most this length counts no steps
CHARACTERS_PER_STEP: Final = 8  # characters that are read in one step

DICT: Final[Any] = dict  # typed as Any, because pyright narrows `type(x) is dict` to dict[Unknown, Unknown]
_EMPTY: Final[Any] = DICT()
_DICT_VIEWS: Final[Any] = (type(_EMPTY.keys()), type(_EMPTY.values()), type(_EMPTY.items()))
_MEASURED: Final[Any] = (list, tuple, dict)
_CONTAINERS: Final[Any] = _MEASURED + _DICT_VIEWS


class Unmeasured:
    """Base class of values without a known size. A rendering that measures such a value fails."""

    __slots__ = ()


class Counters:
    """Counters of one rendering, and a cache of sizes.

    Args:
        length: Length of the longest list among the variables of the template.

    Attributes:
        limit: Maximum number of steps. The same limit applies separately to loops that print nothing.
        steps: Number of remaining steps.
        silent_steps: Number of remaining steps of loops that print nothing.
        nesting: Number of open calls of macros, recursive loops and blocks.
        sizes: Maps the id of each measured list or dict to a tuple `(size, nesting, value)`.
    """

    __slots__ = ("limit", "nesting", "silent_steps", "sizes", "steps")

    def __init__(self, length: int) -> None:
        self.limit = (max_steps_variable.get() or _MAX_STEPS) + _STEPS_PER_PAIR * length * length
        self.steps = self.silent_steps = self.limit
        self.nesting = 0
        # Storing a value keeps the value alive, so that no other object can get the same id.
        self.sizes: dict[int, tuple[int, int, object]] = {}


max_steps_variable: ContextVar[int | None] = ContextVar("agentkit_template_steps", default=None)
"""Maximum number of steps of a rendering. None means the default limit."""

_rendering: ContextVar[Counters] = ContextVar("agentkit_template_rendering")


def start_rendering(counters: Counters) -> Token[Counters]:
    """Starts or continues a rendering with these counters. Returns a token for `end_rendering`."""
    return _rendering.set(counters)


def end_rendering(token: Token[Counters]) -> None:
    """Ends the current rendering, and restores the counters of the outer rendering, if any."""
    _rendering.reset(token)


def enter_call() -> None:
    """Counts the start of a call that can contain further calls: the call of a macro, recursive loop or block."""
    rendering = _rendering.get()
    rendering.nesting += 1
    if rendering.nesting > _MAX_NESTING:
        raise_error(f"the calls of the template are nested too deeply. The limit is {_MAX_NESTING} levels")


def leave_call() -> None:
    """Counts the end of a call that `enter_call` counted."""
    _rendering.get().nesting -= 1


# -- checks ----------------------------------------------------------------------------------------------------


def check_size(size: float) -> None:
    """Raises an error if a text with this number of characters exceeds the limit."""
    if size > _MAX_SIZE:
        raise_error(f"a value of the template is too large ({size:,.0f} characters). The limit is {_MAX_SIZE:,}")


def check_bits(bits: float) -> None:
    """Raises an error if an integer with this number of bits exceeds the limit."""
    if bits > _MAX_BITS:
        raise_error(f"a number of the template is too large ({bits:,.0f} bits). The limit is {_MAX_BITS:,}")


def check_widths(values: Iterable[object]) -> None:
    """Raises an error if an integer in `values` is above the limit for widths and counts in a template."""
    for value in values:
        if isinstance(value, int) and value > _MAX_WIDTH:
            raise_error(f"a width or count of the template is too large ({value:,}). The limit is {_MAX_WIDTH:,}")


# -- steps -----------------------------------------------------------------------------------------------------


def count_steps(steps: int) -> None:
    """Counts steps of the rendering. Raises an error if their number exceeds the limit."""
    rendering = _rendering.get()
    rendering.steps -= steps
    if rendering.steps < 0:
        raise_error(f"the rendering exceeds the limit of {rendering.limit:,} steps")


def count_silent_steps(steps: int) -> None:
    """Counts steps of a loop that prints nothing. The limit allows a loop over all pairs of messages."""
    rendering = _rendering.get()
    rendering.silent_steps -= steps
    if rendering.silent_steps < 0:
        raise_error(f"the loops of the template exceed the limit of {rendering.limit:,} steps")


def count_items(items: Iterable[Any], cost: int = ITEM_SIZE) -> Iterator[Any]:
    """Yields the items, and counts `cost` steps for each of them."""
    for item in items:
        count_steps(cost)
        yield item


def count_read(value: Any) -> Any:
    """Counts the steps of an operation that reads the whole value. Returns the value."""
    if type(value) is str or isinstance(value, str):
        if len(value) > _FREE_LENGTH:
            count_steps(len(value) // CHARACTERS_PER_STEP)
    elif isinstance(value, _CONTAINERS):
        count_steps(find_size(value)[0] // CHARACTERS_PER_STEP)
    elif isinstance(value, range):
        count_steps(_STEPS_PER_RANGE_ITEM * len(value))
    return value


def count_member_test(value: Any) -> Any:
    """Counts the steps of a test `x in value`, which are 0 for a dict. Returns the value."""
    return value if isinstance(value, DICT) else count_read(value)


def count_slice(value: Any) -> Any:
    """Counts the steps that create a slice such as `value[1:]`. Returns the value."""
    if isinstance(value, str):
        count_steps(len(value))
    elif isinstance(value, _MEASURED):
        count_steps(_CONTAINER_SIZE + ITEM_SIZE * len(value))
    return value


# -- sizes -----------------------------------------------------------------------------------------------------


def measure(value: Any) -> Any:
    """Checks the size of a value that the template created, and counts steps for the size. Returns the value."""
    if type(value) is str or isinstance(value, str):
        measure_text(len(value))
    elif isinstance(value, _MEASURED):
        size, _ = find_size(value)
        check_size(size)
        count_steps(_CONTAINER_SIZE + ITEM_SIZE * len(value) + size // CHARACTERS_PER_STEP)
    elif isinstance(value, int):
        check_bits(value.bit_length())
    elif isinstance(value, range):
        check_size(len(value) * find_size(value)[0])  # a filter can create a list of all integers in the range
    return value


def measure_text(size: int) -> None:
    """Checks the size of a text that the template creates, and counts one step for each character."""
    rendering = _rendering.get()
    rendering.steps -= size
    if size > _MAX_SIZE or rendering.steps < 0:
        check_size(size)
        count_steps(0)


def find_size(value: object) -> tuple[int, int]:
    """Returns the size of a value with all its parts, in characters, and the nesting of its lists and dicts.

    If a part occurs several times, its size is added each time, because the text of the value repeats the part.
    """
    return _find_size(value, _rendering.get().sizes, 0)


def _find_size(value: Any, sizes: dict[int, tuple[int, int, object]], outer: int) -> tuple[int, int]:
    if isinstance(value, str):
        return len(value), 0
    if not isinstance(value, _CONTAINERS):
        return _find_number_size(value), 0
    cached = sizes.get(id(value))
    if cached is not None:
        return cached[:2]
    parts: Iterable[Any] = chain(value, value.values()) if hasattr(value, "values") else value
    size = inner = 0
    for part in parts:
        if type(part) is str:  # fast path: most parts are strings, which need no recursive call
            size += len(part) + ITEM_SIZE
            continue
        part_size, part_nesting = _find_size(part, sizes, outer + 1)
        size += part_size + ITEM_SIZE
        if part_nesting > inner:
            inner = part_nesting
    if outer + inner >= _MAX_NESTING:
        raise_error(f"a value of the template is nested too deeply. The limit is {_MAX_NESTING} levels")
    sizes[id(value)] = (size, inner + 1, value)
    return size, inner + 1


def _find_number_size(value: Any) -> int:
    """Returns the size of a number, a range, or another value that is not a text, list or dict."""
    if isinstance(value, int):
        return max(ITEM_SIZE, value.bit_length() // 3)  # a decimal digit has more than 3 bits
    if isinstance(value, range):
        return sum(map(_find_number_size, (value.start, value.stop, value.step)))
    if isinstance(value, Unmeasured):
        # The size of a message view is not computed, because the text of all messages can be very long.
        raise_error(f"the size of a value of type {type(value).__name__} is unknown")
    return ITEM_SIZE
