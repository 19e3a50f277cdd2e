"""Command-line arguments and options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal, TypeAlias

import typer

__all__ = [
    "FileArgument",
    "KeepInvalidOption",
    "LedgerFormatOption",
    "LogFormatOption",
    "MaxTokensOption",
    "MediaRootsOption",
    "ModelOption",
    "MultiAgentOption",
    "OnLossOption",
    "ViewerOption",
    "complete_ledger_option",
]

FileArgument: TypeAlias = Annotated[
    Path | None,
    typer.Argument(help="JSON file. '-' or no file means standard input.", show_default=False),
]
MultiAgentOption: TypeAlias = Annotated[
    bool,
    typer.Option("--multi-agent", help="Write messages of several speakers as lines 'NAME: TEXT' in user turns."),
]
ViewerOption: TypeAlias = Annotated[
    str | None, typer.Option(help="Agent to build the request for.", show_default=False)
]
ModelOption: TypeAlias = Annotated[
    str | None, typer.Option(help="Model to build the request for.", show_default=False)
]
OnLossOption: TypeAlias = Annotated[
    Literal["describe", "drop", "raise"],
    typer.Option(
        help="Action for content that the provider does not accept: send a description, drop the content, or "
        "raise an error."
    ),
]
MediaRootsOption: TypeAlias = Annotated[
    list[Path] | None, typer.Option(help="Folder to read local media from; repeatable.")
]
MaxTokensOption: TypeAlias = Annotated[
    int | None,
    typer.Option(
        help="Maximum number of prompt tokens (estimated). The oldest messages are dropped if necessary.",
        show_default=False,
    ),
]
LogFormatOption: TypeAlias = Annotated[
    str,
    typer.Option("--from", help="Format of the log: name of a provider, agentscope, langchain or agentkit."),
]
KeepInvalidOption: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--keep-invalid", help="Continue if blocks are invalid. Requests, prompts and rows omit these blocks."
    ),
]
LedgerFormatOption: TypeAlias = Annotated[
    Literal["table", "json"] | None,
    typer.Option(help="Print the ledger to stderr: table (default) or json.", show_default=False),
]


def complete_ledger_option(arguments: list[str]) -> list[str]:
    """Returns the arguments with `--ledger=table` in place of each `--ledger` that has no value.

    The reason: typer requires a value for this option.
    """
    return [
        "--ledger=table" if argument == "--ledger" and following not in {"table", "json"} else argument
        for argument, following in zip(arguments, [*arguments[1:], ""], strict=False)
    ]
