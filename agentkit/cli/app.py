"""The typer application of the `agentkit` command, and `dispatch`, which runs one command."""

from __future__ import annotations

import sys
from functools import lru_cache
from typing import Annotated

import typer

from agentkit.cli.compare import compare_command
from agentkit.cli.convert import convert_command
from agentkit.cli.export import export_command
from agentkit.cli.format import format_command
from agentkit.cli.options import complete_ledger_option
from agentkit.cli.prompt import prompt_command
from agentkit.cli.read import read_command
from agentkit.cli.render import render_command

__all__ = ["dispatch"]

app = typer.Typer(
    add_completion=False, no_args_is_help=True, pretty_exceptions_enable=False, rich_markup_mode=None
)


def _print_version(is_requested: bool) -> None:
    if is_requested:
        from importlib.metadata import version

        sys.stdout.write(f"agentkit {version('agentkit-middleware')}\n")
        raise typer.Exit


@app.callback()
def agentkit(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and exit.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """Convert conversations to requests for an LLM provider, and convert the replies to messages."""


app.command("format")(format_command)
app.command("read")(read_command)
app.command("convert")(convert_command)
app.command("compare")(compare_command)
app.command("prompt")(prompt_command)
app.command("render")(render_command)
app.command("export")(export_command)

_get_command = lru_cache(maxsize=1)(typer.main.get_command)
"""Function that builds and caches the command, because reading the function signatures takes milliseconds."""


def dispatch(arguments: list[str]) -> int:
    """Runs one command and returns its exit code.

    Prints a usage error on stderr in one line. If there are no arguments, prints the help on stderr.
    """
    try:
        code: object = _get_command(app).main(
            complete_ledger_option(arguments), prog_name="agentkit", standalone_mode=False
        )
    except SystemExit:  # the command exits if its output pipe is closed, which is not an error
        return 0
    except Exception as error:
        # typer does not export the exception classes of its argument parser, so two attributes are checked.
        message, exit_code = getattr(error, "format_message", None), getattr(error, "exit_code", None)
        if message is None or exit_code is None:
            raise
        if not arguments:
            sys.stderr.write(f"{message()}\n")
            return 2
        if line := " ".join(message().split()):
            sys.stderr.write(f"agentkit: {line}\n")
        return 2
    return code if isinstance(code, int) else 0
