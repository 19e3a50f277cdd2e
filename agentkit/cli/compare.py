"""`agentkit compare`: sends one conversation to many models, and prints a table and JSON."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import anyio
import typer

from agentkit.budget.budget import Budget
from agentkit.cli.files import check_blocks, read, write_output
from agentkit.cli.logs import read_conversation
from agentkit.cli.options import FileArgument, KeepInvalidOption, MaxTokensOption, MultiAgentOption, ViewerOption
from agentkit.comparison.comparison import compare
from agentkit.comparison.prices import Price
from agentkit.comparison.results import ComparisonResult
from agentkit.errors import OptionError
from agentkit.history.policies import MultiAgentHistory
from agentkit.models.chat_model import ChatModel
from agentkit.reprs import as_one_line

__all__ = ["compare_command"]

_Record: TypeAlias = Annotated[
    Path | None,
    typer.Option(help="JSON Lines file to which each model call and its reply are appended.", show_default=False),
]
_Replay: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        help="JSON Lines file with recorded model calls. These calls are not sent again.", show_default=False
    ),
]
_Prices: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--price",
        help="Price as MODEL=INPUT/OUTPUT[/CACHE_READ[/CACHE_WRITE]] per million tokens; repeatable.",
        show_default=False,
    ),
]
_JsonFile: TypeAlias = Annotated[
    Path | None,
    typer.Option("--json", help="File for the full results as JSON; '-' for standard output.", show_default=False),
]


def compare_command(
    models: Annotated[
        list[str], typer.Option("--model", help="Model as PROVIDER:MODEL; repeatable.", show_default=False)
    ],
    file: FileArgument = None,
    multi_agent: MultiAgentOption = False,
    viewer: ViewerOption = None,
    max_tokens: MaxTokensOption = None,
    max_reply_tokens: Annotated[
        int | None, typer.Option(help="Maximum number of tokens of each reply.", show_default=False)
    ] = None,
    keep_invalid: KeepInvalidOption = False,
    record: _Record = None,
    replay: _Replay = None,
    prices: _Prices = None,
    json_file: _JsonFile = None,
) -> None:
    """Send one conversation to many models at once, and compare the replies.

    Print a table of request sizes, replies, prices and times. The SDKs read API keys and base URLs from
    environment variables.
    """
    _check_options(models, record, json_file)
    msgs, request_options = read_conversation(read(file))
    check_blocks(msgs, keep_invalid)
    parsed_prices = _parse_prices(prices or [], models)
    history = MultiAgentHistory(viewer=viewer) if multi_agent or viewer is not None else None
    budget = None if max_tokens is None else Budget(max_tokens)
    opened = {
        name: ChatModel(name, history=history, budget=budget, max_tokens=max_reply_tokens) for name in models
    }
    comparison = partial(
        compare, msgs, opened, prices=parsed_prices, record=record, replay=replay, **request_options
    )
    results = anyio.run(_run, comparison, list(opened.values()))
    on_stdout = str(json_file) == "-"
    _print_table(results, on_stderr=on_stdout)
    if json_file is not None:
        _write_json([result.to_dict() for result in results], None if on_stdout else json_file)
    raise typer.Exit(1 if any(result.error for result in results) else 0)


def _check_options(models: Sequence[str], record: Path | None, json_file: Path | None) -> None:
    """Checks output files and models before any model call, because a later error would lose paid replies."""
    for name, file in (("--record", record), ("--json", json_file)):
        if file is not None and (file.is_dir() or not file.absolute().parent.is_dir()):
            reason = f"{file} is a folder" if file.is_dir() else f"the folder of {file} does not exist"
            raise OptionError(name, reason, "Pass the path of a file in an existing folder.")
    duplicate = next((name for name in models if models.count(name) > 1), None)
    if duplicate is not None:
        raise OptionError("--model", f"{duplicate!r} is listed twice", "Pass each model once.")


def _parse_prices(texts: Sequence[str], models: Sequence[str]) -> dict[str, Price]:
    prices = dict(map(_parse_price, texts))
    names = {part for name in models for part in (name, name.partition(":")[2])}
    unknown = next((name for name in prices if name not in names), None)
    if unknown is not None:
        raise OptionError(
            "--price", f"{unknown!r} is not one of the models", "Use a name that is also passed with --model."
        )
    return prices


async def _run(comparison: partial[Any], models: Sequence[ChatModel]) -> list[ComparisonResult]:
    try:
        results: list[ComparisonResult] = await comparison()
        return results
    finally:
        for model in models:
            await model.aclose()


def _parse_price(text: str) -> tuple[str, Price]:
    name, _, amounts = text.rpartition("=")
    try:
        price = Price(*map(float, amounts.split("/")))
    except (TypeError, ValueError):  # the text has the wrong number of amounts, or an amount is not a valid price
        price = None
    if not name or price is None:
        advice = "Pass MODEL=INPUT/OUTPUT[/CACHE_READ[/CACHE_WRITE]], per million tokens."
        raise OptionError("--price", f"expected a model and its prices, got {text[:80]!r}", advice)
    return name, price


def _write_json(value: Any, file: Path | None) -> None:
    if file is None:
        write_output(value, indent=2)
        return
    try:
        file.write_text(json.dumps(value, ensure_ascii=False, allow_nan=False, indent=2) + "\n", "utf-8")
    except OSError as error:
        raise OptionError("--json", f"{file}: write failed ({error.strerror})", "Pass another file.") from None


def _print_table(results: Sequence[ComparisonResult], *, on_stderr: bool) -> None:
    from rich.console import Console
    from rich.table import Column, Table
    from rich.text import Text

    columns: list[str | Column] = [Column(name, justify="right", no_wrap=True) for name in _COLUMNS]
    table = Table(Column("model", overflow="fold"), *columns, "reply")
    for result in results:
        text = f"{type(result.error).__name__}: {result.error}" if result.error else _describe_reply(result)
        reply = Text(as_one_line(text)[:400], "red" if result.error else "")
        table.add_row(Text(as_one_line(result.label)), *_build_cells(result), reply)
    stream = sys.stderr if on_stderr else sys.stdout
    Console(stderr=on_stderr, width=None if stream.isatty() else 140).print(table)


_COLUMNS = ("tokens", "in", "out", "price", "first", "total", "lost", "finish")


def _build_cells(result: ComparisonResult) -> list[str]:
    usage = result.reply.usage if result.reply else None
    mark = "~" if result.tokens is not None and result.tokens.estimated else ""
    return [
        "" if result.tokens is None else f"{mark}{result.tokens}",
        str(usage.input_tokens) if usage else "",
        str(usage.output_tokens) if usage else "",
        "" if result.price is None else f"{result.price:.4g}",
        _format_seconds(result.first_token),
        _format_seconds(result.total),
        str(len(result.plan.ledger.losses)) if result.plan else "",
        str((result.reply and result.reply.finish_reason) or ""),
    ]


def _format_seconds(seconds: float | None) -> str:
    return "" if seconds is None else f"{seconds:.2f} s"


def _describe_reply(result: ComparisonResult) -> str:
    reply = result.reply
    if reply is None:
        return ""
    return reply.text or ", ".join(f"{call.name}({call.arguments})" for call in reply.tool_uses) or "(nothing)"
