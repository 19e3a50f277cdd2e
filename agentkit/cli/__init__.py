"""The `agentkit` command."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from agentkit.errors import AgentkitError, LossError, MissingExtraError
from agentkit.reprs import as_one_line

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command and exit: 0 done, 1 loss under `--on-loss raise`, 2 bad input in one line on stderr."""
    sys.exit(run(list(sys.argv[1:] if arguments is None else arguments)))


def run(arguments: list[str]) -> int:
    """The command's exit code."""
    try:
        from agentkit.cli.app import dispatch
    except ImportError as error:
        if error.name not in {"typer", "rich", "click"}:
            raise
        return complain(MissingExtraError(error.name, "cli", "the agentkit command"))
    try:
        return dispatch(arguments)
    except AgentkitError as error:
        return complain(error)
    except BrokenPipeError:
        sys.stderr.close()  # the reader of our output has gone: there is nothing left to say, and nobody
        return 0


def complain(error: AgentkitError) -> int:
    """One line on stderr, and the exit code for it."""
    sys.stderr.write(f"agentkit: {as_one_line(str(error))}\n")
    return 1 if isinstance(error, LossError) else 2
