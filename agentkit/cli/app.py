"""The command line: its options, and what is done with them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Literal, TypeAlias

import typer

from agentkit.cli.convert import ConvertOptions, convert_lines, convert_once
from agentkit.cli.format import FormatOptions, format_lines, format_once
from agentkit.cli.read import read_lines, read_once
from agentkit.errors import OptionError

__all__ = ["dispatch"]

app = typer.Typer(
    add_completion=False, no_args_is_help=True, pretty_exceptions_enable=False, rich_markup_mode=None
)

_File: TypeAlias = Annotated[
    Path | None,
    typer.Argument(help="A JSON file; '-' or nothing for standard input.", show_default=False),
]
_MultiAgent: TypeAlias = Annotated[bool, typer.Option("--multi-agent", help="Many speakers, in a history frame.")]
_Viewer: TypeAlias = Annotated[
    str | None, typer.Option(help="The agent the request is made for.", show_default=False)
]
_Model: TypeAlias = Annotated[str | None, typer.Option(help="The model the request is for.", show_default=False)]
_OnLoss: TypeAlias = Annotated[
    Literal["describe", "drop", "raise"],
    typer.Option(help="What happens to what the target cannot carry."),
]
_MediaRoots: TypeAlias = Annotated[
    list[Path] | None, typer.Option(help="A folder that local media may be read from; repeatable.")
]
_MaxTokens: TypeAlias = Annotated[
    int | None,
    typer.Option(help="Limit of the prompt in estimated tokens; the oldest messages are cut.", show_default=False),
]
_KeepInvalid: TypeAlias = Annotated[
    bool, typer.Option("--keep-invalid", help="Continue with invalid blocks; the request omits them.")
]
_LedgerForm: TypeAlias = Annotated[
    Literal["table", "json"] | None,
    typer.Option(help="What happened to every block, on standard error: a table unless said.", show_default=False),
]


def _print_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        sys.stdout.write(f"agentkit {version('agentkit-middleware')}\n")
        raise typer.Exit


@app.callback()
def agentkit(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and exit.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """From a conversation of many speakers to each provider's exact request."""


@app.command("format")
def format_command(
    file: _File = None,
    provider: Annotated[str | None, typer.Option(help="Whose request to make.", show_default=False)] = None,
    multi_agent: _MultiAgent = False,
    viewer: _Viewer = None,
    frame: Annotated[
        Literal["safe", "plain"] | None,
        typer.Option(help="How the frame writes names and texts: safe unless said.", show_default=False),
    ] = None,
    model: _Model = None,
    max_tokens: _MaxTokens = None,
    on_loss: _OnLoss = "describe",
    media_root: _MediaRoots = None,
    ledger: _LedgerForm = None,
    keep_invalid: _KeepInvalid = False,
    every: Annotated[bool, typer.Option("--all", help="A request for every provider.")] = False,
    lines: Annotated[bool, typer.Option("--lines", help="One conversation a line, one request a line.")] = False,
) -> None:
    """Write the provider's request for a conversation: a JSON list of messages, or an object with `messages`
    and, if wanted, `tools`, `tool_choice` and `response_format`.
    """
    if (provider is None) == (not every):
        raise OptionError("--provider", "give a provider or --all", "See agentkit format --help.")
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
    provider: Annotated[str, typer.Option(help="Whose reply it is.", show_default=False)],
    file: Annotated[
        Path | None,
        typer.Argument(help="A file; '-' or nothing for standard input.", show_default=False),
    ] = None,
    lines: Annotated[
        bool,
        typer.Option("--lines", help="One reply a line: an object, a list of events, or a string of raw text."),
    ] = False,
    keep_invalid: _KeepInvalid = False,
) -> None:
    """Write the message that a native reply is, with its usage and finish reason: of a response (a JSON object),
    of a recorded stream (a JSON list of its events), or of the raw text of one (server-sent events, JSON lines).
    """
    raise typer.Exit((read_lines if lines else read_once)(_source(file), provider, keep_invalid))


@app.command("convert")
def convert_command(
    source: Annotated[
        str,
        typer.Option("--from", help="Whose log it is: a provider's, agentscope's, langchain's or agentkit's."),
    ],
    target: Annotated[str, typer.Option("--to", help="Whose request to make; agentkit: the stored form.")],
    file: _File = None,
    multi_agent: _MultiAgent = False,
    viewer: _Viewer = None,
    model: _Model = None,
    max_tokens: _MaxTokens = None,
    on_loss: _OnLoss = "describe",
    media_root: _MediaRoots = None,
    ledger: _LedgerForm = None,
    keep_invalid: _KeepInvalid = False,
    lines: Annotated[bool, typer.Option("--lines", help="One log a line, one request a line.")] = False,
) -> None:
    """Write another provider's request for a native log: a JSON list of messages, or a whole request, whose tools
    go with it.
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
    convert = convert_lines if lines else convert_once
    raise typer.Exit(convert(_source(file), ConvertOptions(source=source, format=options)))


@app.command("compare")
def compare_command(
    model: Annotated[
        list[str], typer.Option(help="PROVIDER:MODEL; repeat it for each model.", show_default=False)
    ],
    file: _File = None,
    multi_agent: _MultiAgent = False,
    viewer: _Viewer = None,
    max_tokens: _MaxTokens = None,
    max_reply_tokens: Annotated[
        int | None, typer.Option(help="Limit of each reply in tokens.", show_default=False)
    ] = None,
    keep_invalid: _KeepInvalid = False,
    record: Annotated[
        Path | None, typer.Option(help="A JSON-lines file that every call is added to.", show_default=False)
    ] = None,
    replay: Annotated[
        Path | None,
        typer.Option(help="Such a file: calls are answered from it, and nothing is sent.", show_default=False),
    ] = None,
    price: Annotated[
        list[str] | None,
        typer.Option(
            help="MODEL=INPUT/OUTPUT[/CACHE_READ[/CACHE_WRITE]] per million tokens; repeatable.",
            show_default=False,
        ),
    ] = None,
    json: Annotated[
        Path | None,
        typer.Option(help="Where to write all of it as JSON; '-' for standard output.", show_default=False),
    ] = None,
) -> None:
    """Send one conversation to many models at once, and print requests' sizes, replies, prices and times side by
    side. Keys and addresses are in the environment, as each provider's SDK has it.
    """
    from agentkit.cli.compare import CompareOptions, compare_once

    options = CompareOptions(
        models=model,
        viewer=viewer,
        multi_agent=multi_agent or viewer is not None,
        max_tokens=max_tokens,
        max_reply_tokens=max_reply_tokens,
        keep_invalid=keep_invalid,
        record=record,
        replay=replay,
        prices=price or [],
        json=json,
    )
    raise typer.Exit(compare_once(_source(file), options))


def _source(file: Path | None) -> Path | None:
    """The file; None for standard input."""
    return None if file is None or str(file) == "-" else file


def dispatch(arguments: list[str]) -> int:
    """Run one command and give its exit code; a usage error is one line as well, no command at all the help."""
    command = typer.main.get_command(app)
    try:
        code: object = command.main(_with_ledger_form(arguments), prog_name="agentkit", standalone_mode=False)
    except (
        SystemExit
    ):  # the parser exits with 1 where the reader of the output has gone: no failure of the command
        return 0
    except Exception as error:
        # The exception types of the parser have no public home in typer.
        message, exit_code = getattr(error, "format_message", None), getattr(error, "exit_code", None)
        if message is None or exit_code is None:
            raise
        if not arguments:
            sys.stderr.write(f"{message()}\n")
            return 2
        said = " ".join(message().split())
        if said:
            sys.stderr.write(f"agentkit: {said}\n")
        return 2
    return code if isinstance(code, int) else 0


def _with_ledger_form(arguments: list[str]) -> list[str]:
    """`--ledger` may stand alone, for `--ledger table`: the parser knows no such option."""
    return [
        "--ledger=table" if argument == "--ledger" and following not in {"table", "json"} else argument
        for argument, following in zip(arguments, [*arguments[1:], ""], strict=False)
    ]
