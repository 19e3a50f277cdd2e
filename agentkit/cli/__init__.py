"""The `agentkit` command.

The subcommands are `format`, `read`, `convert`, `compare`, `prompt`, `render` and `export`. Each subcommand reads
JSON from a file or standard input, and writes JSON, text or a table to standard output. The module with the name
of a subcommand defines this subcommand. Read `agentkit.cli.format` first.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

from agentkit.cli.exit_codes import print_error
from agentkit.errors import AgentkitError, MissingExtraError

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs the `agentkit` command and exits the process.

    The exit code is 0 for success, 1 for a loss with `--on-loss raise`, and 2 for any other error, such as invalid
    input. With `compare`, the exit code is also 1 if a model has an error. Each error is one line on stderr.

    Args:
        arguments: Command line arguments without the program name. None means `sys.argv[1:]`.
    """
    sys.exit(run(list(sys.argv[1:] if arguments is None else arguments)))


def run(arguments: list[str]) -> int:
    """Runs the `agentkit` command and returns the exit code."""
    if sys.stderr is None:  # pyright: ignore[reportUnnecessaryComparison] - a shell can close standard error
        sys.stderr = Path(os.devnull).open("w")  # noqa: SIM115 - open until the process exits
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
        sys.stderr.close()  # otherwise, Python prints a message about the closed output pipe at exit
        return 0
