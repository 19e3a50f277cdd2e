"""Functions that templates can call, and the check of each value that a template prints."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any, NoReturn, cast

__all__ = ["check_printable", "dump_json", "format_local_time", "raise_error"]


def raise_error(message: str) -> NoReturn:
    """Ends the rendering of a template with an error."""
    from jinja2 import TemplateRuntimeError

    raise TemplateRuntimeError(str(message))


def format_local_time(pattern: str) -> str:
    """Formats the current local time with a format of `strftime`."""
    return datetime.now().strftime(pattern)


def dump_json(
    value: Any,
    ensure_ascii: bool = False,
    indent: int | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    """Returns a value as JSON text. This is the filter `tojson` of chat templates."""
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def check_printable(value: object) -> object:
    """Refuses to print values such as functions and generators, because their texts differ between processes."""
    from jinja2 import Undefined

    printable = (str, int, float, list, tuple, dict, Undefined)
    if not (value is None or isinstance(value, printable)):
        raise_error(f"a value of type {type(value).__name__} cannot be printed")
    return cast("object", value)
