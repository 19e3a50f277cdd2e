"""Exit codes of the `agentkit` command for errors: 1 for a loss, and 2 for invalid input and all other errors."""

from __future__ import annotations

import sys

from agentkit.errors import AgentkitError, LossError
from agentkit.reprs import as_one_line

__all__ = ["choose_exit_code", "print_error"]


def choose_exit_code(error: AgentkitError) -> int:
    """Returns 1 for a `LossError`, which reports a loss with `--on-loss raise`, and 2 for any other error."""
    return 1 if isinstance(error, LossError) else 2


def print_error(error: AgentkitError, *places: str) -> int:
    """Prints an error on stderr in one line, and returns the exit code for this error.

    The line begins with `places`. A place with which the error begins is not repeated.
    """
    text = as_one_line(str(error))
    for place in reversed(places):
        text = text if text.startswith(place) else f"{place}: {text}"
    sys.stderr.write(f"agentkit: {text}\n")
    return choose_exit_code(error)
