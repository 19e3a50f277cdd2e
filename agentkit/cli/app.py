"""Declarations of the `agentkit` commands and their options."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Literal, TypeAlias

import typer

from agentkit.cli.convert import convert_lines, convert_once
from agentkit.cli.format import FormatOptions, format_lines, format_once
from agentkit.cli.read import read_lines, read_once
from agentkit.errors import OptionError

__all__ = ["dispatch"]

app = typer.Typer(
    add_completion=False, no_args_is_help=True, pretty_exceptions_enable=False, rich_markup_mode=None
)

_File: TypeAlias = Annotated[
    Path | None,
    typer.Argument(help="JSON file. '-' or no file means standard input.", show_default=False),
]
_MultiAgent: TypeAlias = Annotated[
    bool, typer.Option("--multi-agent", help="Write many speakers into a history frame.")
]
_Viewer: TypeAlias = Annotated[
    str | None, typer.Option(help="Agent to build the request for.", show_default=False)
]
_Model: TypeAlias = Annotated[str | None, typer.Option(help="Model to build the request for.", show_default=False)]
_OnLoss: TypeAlias = Annotated[
    Literal["describe", "drop", "raise"],
    typer.Option(help="Action for content that the target cannot represent."),
]
_MediaRoots: TypeAlias = Annotated[
    list[Path] | None, typer.Option(help="Folder to read local media from; repeatable.")
]
_MaxTokens: TypeAlias = Annotated[
    int | None,
    typer.Option(help="Limit of the prompt in estimated tokens. The oldest messages are cut.", show_default=False),
]
_KeepInvalid: TypeAlias = Annotated[
    bool, typer.Option("--keep-invalid", help="Continue with invalid blocks. The request omits them.")
]
_LedgerFormat: TypeAlias = Annotated[
    Literal["table", "json"] | None,
    typer.Option(help="Print the ledger to stderr: table (default) or json.", show_default=False),
]


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
    """Convert conversations to the exact request of each LLM provider, and replies back to messages."""


@app.command("format")
def format_command(
    file: _File = None,
    provider: Annotated[
        str | None, typer.Option(help="Provider to build the request for.", show_default=False)
    ] = None,
    multi_agent: _MultiAgent = False,
    viewer: _Viewer = None,
    frame: Annotated[
        Literal["safe", "plain"] | None,
        typer.Option(
            help="Escaping of names and texts in the frame: safe (default) or plain.", show_default=False
        ),
    ] = None,
    model: _Model = None,
    max_tokens: _MaxTokens = None,
    on_loss: _OnLoss = "describe",
    media_root: _MediaRoots = None,
    ledger: _LedgerFormat = None,
    keep_invalid: _KeepInvalid = False,
    every: Annotated[bool, typer.Option("--all", help="Build a request for every provider.")] = False,
    lines: Annotated[
        bool, typer.Option("--lines", help="Read one conversation per line, write one request per line.")
    ] = False,
) -> None:
    """Write the provider's request for a conversation.

    The conversation is a JSON list of messages, or an object with `messages` and optionally `tools`, `tool_choice`
    and `response_format`.
    """
    if (provider is None) == (not every):
        raise OptionError("--provider", "expected exactly one of --provider and --all", "Pass one of them.")
    options = FormatOptions(
        provider=provider,
        multi_agent=multi_agent or viewer is not None or frame is not None,
        viewer=viewer,
        frame=frame or "safe",
        model=model,
        max_tokens=max_tokens,
        on_loss=on_loss,
        media_roots=tuple(media_root or ()),
        ledger=ledger,
        keep_invalid=keep_invalid,
    )
    raise typer.Exit((format_lines if lines else format_once)(_source(file), options))


@app.command("read")
def read_command(
    provider: Annotated[str, typer.Option(help="Provider of the reply.", show_default=False)],
    file: Annotated[
        Path | None,
        typer.Argument(help="File. '-' or no file means standard input.", show_default=False),
    ] = None,
    lines: Annotated[
        bool,
        typer.Option(
            "--lines", help="Read one reply per line: an object, a list of events, or a string of raw text."
        ),
    ] = False,
    keep_invalid: _KeepInvalid = False,
) -> None:
    """Write the message of a native reply, with its usage and finish reason.

    The reply is a response (a JSON object), a recorded stream (a JSON list of its events), or the raw text of a
    stream (server-sent events or JSON lines).
    """
    raise typer.Exit((read_lines if lines else read_once)(_source(file), provider, keep_invalid))


@app.command("convert")
def convert_command(
    source: Annotated[
        str,
        typer.Option("--from", help="Format of the log: a provider, agentscope, langchain or agentkit."),
    ],
    target: Annotated[
        str, typer.Option("--to", help="Provider to build the request for, or agentkit for stored messages.")
    ],
    file: _File = None,
    multi_agent: _MultiAgent = False,
    viewer: _Viewer = None,
    model: _Model = None,
    max_tokens: _MaxTokens = None,
    on_loss: _OnLoss = "describe",
    media_root: _MediaRoots = None,
    ledger: _LedgerFormat = None,
    keep_invalid: _KeepInvalid = False,
    lines: Annotated[
        bool, typer.Option("--lines", help="Read one log per line, write one request per line.")
    ] = False,
) -> None:
    """Write another provider's request for a native log.

    The log is a JSON list of messages, or a whole request. The tools of a request are converted too.
    """
    options = FormatOptions(
        provider=None if target == "agentkit" else target,
        multi_agent=multi_agent or viewer is not None,
        viewer=viewer,
        frame="safe",
        model=model,
        max_tokens=max_tokens,
        on_loss=on_loss,
        media_roots=tuple(media_root or ()),
        ledger=ledger,
        keep_invalid=keep_invalid,
    )
    raise typer.Exit((convert_lines if lines else convert_once)(_source(file), source, options))


@app.command("compare")
def compare_command(
    model: Annotated[list[str], typer.Option(help="Model as PROVIDER:MODEL; repeatable.", show_default=False)],
    file: _File = None,
    multi_agent: _MultiAgent = False,
    viewer: _Viewer = None,
    max_tokens: _MaxTokens = None,
    max_reply_tokens: Annotated[
        int | None, typer.Option(help="Limit of each reply in tokens.", show_default=False)
    ] = None,
    keep_invalid: _KeepInvalid = False,
    record: Annotated[
        Path | None, typer.Option(help="JSON-lines file to append every call to.", show_default=False)
    ] = None,
    replay: Annotated[
        Path | None,
        typer.Option(help="File of recorded calls to answer from. Nothing is sent.", show_default=False),
    ] = None,
    price: Annotated[
        list[str] | None,
        typer.Option(
            help="Price as MODEL=INPUT/OUTPUT[/CACHE_READ[/CACHE_WRITE]] per million tokens; repeatable.",
            show_default=False,
        ),
    ] = None,
    json: Annotated[
        Path | None,
        typer.Option(help="File for the full results as JSON; '-' for standard output.", show_default=False),
    ] = None,
) -> None:
    """Send one conversation to many models at once, and compare the replies.

    Prints request sizes, replies, prices and times side by side. Each provider's SDK reads its key and address
    from the environment.
    """
    from agentkit.cli.compare import compare_once

    exit_code = compare_once(
        _source(file),
        models=model,
        viewer=viewer,
        multi_agent=multi_agent or viewer is not None,
        max_tokens=max_tokens,
        max_reply_tokens=max_reply_tokens,
        keep_invalid=keep_invalid,
        record=record,
        replay=replay,
        prices=price or [],
        json_file=json,
    )
    raise typer.Exit(exit_code)


def _source(file: Path | None) -> Path | None:
    """Returns the path of the file, or None if the input is standard input."""
    return None if file is None or str(file) == "-" else file


def dispatch(arguments: list[str]) -> int:
    """Runs one command and returns its exit code.

    A usage error is printed on stderr in one line. Without arguments, the help is printed.
    """
    command = typer.main.get_command(app)
    try:
        code: object = command.main(
            _complete_ledger_option(arguments), prog_name="agentkit", standalone_mode=False
        )
    except SystemExit:  # the process that reads the output closed the pipe, which is not an error
        return 0
    except Exception as error:
        # typer does not export the exception classes of its argument parser.
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


def _complete_ledger_option(arguments: list[str]) -> list[str]:
    """Replaces `--ledger` without a value by `--ledger=table`, because typer requires a value for this option."""
    return [
        "--ledger=table" if argument == "--ledger" and following not in {"table", "json"} else argument
        for argument, following in zip(arguments, [*arguments[1:], ""], strict=False)
    ]
