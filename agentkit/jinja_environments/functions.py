"""Functions that templates can call, and the check of each value that a template prints."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any, Final, NoReturn, cast

__all__ = ["TemplateDict", "check_printable", "create_clock", "raise_error"]

_MAX_TIME_FORMAT: Final = 1_000  # characters. The formatted time has up to 256 times as many characters


def raise_error(message: str) -> NoReturn:
    """Ends the rendering of a template with an error."""
    from jinja2 import TemplateRuntimeError

    raise TemplateRuntimeError(str(message))


def create_clock(now: datetime | None = None) -> Callable[[str], str]:
    """Returns the function `strftime_now`, with which templates format the current time.

    Args:
        now: Time to use instead of the current time. None means the current local time of each call.
    """

    # A closure, because a template could read `now` from the attributes of a `partial`, and call methods of `now`.
    def strftime_now(pattern: str) -> str:
        if len(pattern) > _MAX_TIME_FORMAT:
            size = f"{len(pattern):,} characters"
            raise_error(f"the format of a time is too large ({size}). The limit is {_MAX_TIME_FORMAT:,}")
        return (now or datetime.now()).strftime(pattern)

    return strftime_now


class TemplateDict:
    """Function `dict` of chat templates. Replaces the class `dict`, which templates must not access."""

    def __call__(self, *args: Any, **kwargs: Any) -> dict[Any, Any]:
        """Returns a new dict."""
        return dict(*args, **kwargs)

    def fromkeys(self, keys: Any, value: Any = None) -> dict[Any, Any]:
        """Returns a dict with the same value for each key."""
        return dict.fromkeys(keys, value)


def check_printable(value: object) -> object:
    """Returns `value` unchanged if a template can print the value. Otherwise, raises an error.

    Functions and generators, for example, cannot be printed, because their texts differ between processes.
    """
    from jinja2 import Undefined

    printable = (str, int, float, list, tuple, dict, Undefined)
    if not (value is None or isinstance(value, printable)):
        raise_error(f"a value of type {type(value).__name__} cannot be printed")
    return cast("object", value)
