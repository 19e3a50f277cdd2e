"""Functions that templates can call, and the check of each value that a template prints."""

from __future__ import annotations

from datetime import datetime
from functools import cache
from typing import TYPE_CHECKING, Any, Final, NoReturn, cast

if TYPE_CHECKING:
    from jinja2.utils import Namespace

__all__ = [
    "MAX_TIME_FORMAT",
    "TemplateDict",
    "check_printable",
    "format_local_time",
    "get_namespace_class",
    "raise_error",
]

MAX_TIME_FORMAT: Final = 1_000
"""Maximum number of characters of a format for `strftime`. The result can be 256 times as long."""


def raise_error(message: str) -> NoReturn:
    """Ends the rendering of a template with an error."""
    from jinja2 import TemplateRuntimeError

    raise TemplateRuntimeError(str(message))


def format_local_time(pattern: str) -> str:
    """Formats the current local time with a format of `strftime`."""
    if len(pattern) > MAX_TIME_FORMAT:
        raise_error(f"the format of a time has {len(pattern):,} characters. The limit is {MAX_TIME_FORMAT:,}")
    return datetime.now().strftime(pattern)


class TemplateDict:
    """Function `dict` of chat templates. Templates cannot access the class `dict`."""

    def __call__(self, *args: Any, **kwargs: Any) -> dict[Any, Any]:
        """Returns a new dict."""
        return dict(*args, **kwargs)

    def fromkeys(self, keys: Any, value: Any = None) -> dict[Any, Any]:
        """Returns a dict with the same value for each key."""
        return dict.fromkeys(keys, value)


@cache
def get_namespace_class() -> type[Namespace]:
    """Returns the class `namespace` of templates. As in transformers, attribute names cannot start with `_`."""
    from jinja2.exceptions import SecurityError
    from jinja2.utils import Namespace as JinjaNamespace

    class Namespace(JinjaNamespace):
        def __init__(*args: Any, **kwargs: Any) -> None:
            # The first argument has no name, so that a template can set an attribute `self`.
            JinjaNamespace.__init__(args[0])
            for name, value in dict(*args[1:], **kwargs).items():
                Namespace.__setitem__(args[0], name, value)

        def __getattribute__(self, name: str) -> Any:
            try:
                return object.__getattribute__(self, "_Namespace__attrs")[name]
            except KeyError:
                return JinjaNamespace.__getattribute__(self, name)

        def __setitem__(self, name: str, value: Any) -> None:
            if isinstance(name, str) and name.startswith("_"):
                raise SecurityError(
                    f"a namespace cannot have the attribute {name!r}, because the name starts with _"
                )
            object.__getattribute__(self, "_Namespace__attrs")[name] = value

        def __repr__(self) -> str:
            return "<Namespace>"  # without the values, whose text could be long

    return Namespace


def check_printable(value: object) -> object:
    """Returns `value` unchanged if a template can print the value. Otherwise, raises an error.

    Functions and generators, for example, cannot be printed, because their texts differ between processes.
    """
    from jinja2 import Undefined

    printable = (str, int, float, list, tuple, dict, Undefined)
    if not (value is None or isinstance(value, printable)):
        raise_error(f"a value of type {type(value).__name__} cannot be printed")
    return cast("object", value)
