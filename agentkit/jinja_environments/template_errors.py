"""`find_template_line`: finds the line of a template at which a rendering failed."""

from __future__ import annotations

from collections.abc import Container
from traceback import walk_tb

__all__ = ["find_template_line"]


def find_template_line(error: Exception, names: Container[str]) -> tuple[str | None, int | None]:
    """Returns the innermost template in the traceback of an error, and the line in this template.

    Returns `(None, None)` if the traceback contains no template.

    Args:
        error: Error of a rendering.
        names: Names of the templates. Tracebacks of jinja show them as file names.
    """
    place: tuple[str | None, int | None] = (None, None)
    for frame, line in walk_tb(error.__traceback__):
        if frame.f_code.co_filename in names:
            place = frame.f_code.co_filename, line
    return place
