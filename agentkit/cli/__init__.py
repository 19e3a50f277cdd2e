"""The `agentkit` command: `format`, `read`, `convert` and `compare`.

The input is JSON from a file or standard input, the output JSON on standard output. Start reading at
`agentkit.cli.app`, which declares the commands and their options. Each command has a module of its name.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from agentkit.errors import AgentkitError, LossError, MissingExtraError
from agentkit.reprs import as_one_line

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs the command and exits.

    The exit code is 0 for success, 1 for a loss with `--on-loss raise`, and 2 for bad input. An error is one line
    on stderr.

    Args:
        arguments: Arguments of the command. None means those of the process.
    """
    sys.exit(run(list(sys.argv[1:] if arguments is None else arguments)))


def run(arguments: list[str]) -> int:
    """Runs the command and returns its exit code."""
    try:
        from agentkit.cli.app import dispatch
    except ImportError as error:
        if error.name not in {"typer", "rich", "click"}:
            raise
        return print_error(MissingExtraError(error.name, "cli", "the agentkit command"))
    try:
        return dispatch(arguments)
    except AgentkitError as error:
        return print_error(error)
    except BrokenPipeError:
        sys.stderr.close()  # the reader of the output closed the pipe: an error message would have no reader
        return 0


def print_error(error: AgentkitError) -> int:
    """Prints an error on stderr in one line, and returns its exit code."""
    sys.stderr.write(f"agentkit: {as_one_line(str(error))}\n")
    return 1 if isinstance(error, LossError) else 2
