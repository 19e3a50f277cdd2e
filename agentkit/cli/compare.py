"""`agentkit compare`: one conversation to many models, as a table and as JSON."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import anyio

from agentkit.budget.budget import Budget
from agentkit.cli.files import check_blocks, read, write
from agentkit.cli.format import read_conversation
from agentkit.comparison.comparison import ComparisonResult, Price, compare
from agentkit.errors import OptionError
from agentkit.history.policies import MultiAgentHistory
from agentkit.models.chat_model import ChatModel
from agentkit.reprs import as_one_line

__all__ = ["CompareOptions", "compare_once"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CompareOptions:
    """The command's options."""

    models: Sequence[str]
    viewer: str | None
    multi_agent: bool
    max_tokens: int | None
    max_reply_tokens: int | None
    keep_invalid: bool
    record: Path | None
    replay: Path | None
    prices: Sequence[str]
    json: Path | None


def compare_once(file: Path | None, options: CompareOptions) -> int:
    """A table on standard output, and all of it as JSON where that is wanted: `-` is standard output, the table
    goes to standard error then. The exit code is 1 if any call failed.
    """
    _check(options)
    msgs, asked = read_conversation(read(file))
    check_blocks(msgs, options.keep_invalid)
    prices = _prices(options)
    history = MultiAgentHistory(viewer=options.viewer) if options.multi_agent else None
    budget = None if options.max_tokens is None else Budget(options.max_tokens)
    models = {
        name: ChatModel(name, history=history, budget=budget, max_tokens=options.max_reply_tokens)
        for name in options.models
    }
    work = partial(compare, msgs, models, prices=prices, record=options.record, replay=options.replay, **asked)
    trials = anyio.run(_run, work, list(models.values()))
    on_stdout = str(options.json) == "-"
    _print_table(trials, on_stderr=on_stdout)
    if options.json is not None:
        _write([trial.to_dict() for trial in trials], None if on_stdout else options.json)
    return 1 if any(trial.error for trial in trials) else 0


def _check(options: CompareOptions) -> None:
    """Refuse what would come to nothing after the calls were paid for."""
    for name, file in (("--record", options.record), ("--json", options.json)):
        if file is not None and (file.is_dir() or not file.absolute().parent.is_dir()):
            what = "is a folder" if file.is_dir() else "is in no folder that is there"
            raise OptionError(name, f"{file} {what}", "Name a file.")
    twice = next((name for name in options.models if options.models.count(name) > 1), None)
    if twice is not None:
        raise OptionError("--model", f"{twice} is there twice", "Name each model once.")


def _prices(options: CompareOptions) -> dict[str, Price]:
    prices = dict(map(_price, options.prices))
    known = {part for name in options.models for part in (name, name.partition(":")[2])}
    unknown = next((name for name in prices if name not in known), None)
    if unknown is not None:
        raise OptionError("--price", f"{unknown!r} is none of the models", "Name one of them.")
    return prices


async def _run(work: partial[Any], models: Sequence[ChatModel]) -> list[ComparisonResult]:
    try:
        trials: list[ComparisonResult] = await work()
        return trials
    finally:
        for model in models:
            await model.aclose()


_PRICE = re.compile(r"(?P<name>.+)=(?P<input>[\d.]+)/(?P<output>[\d.]+)(/(?P<read>[\d.]+))?(/(?P<write>[\d.]+))?")


def _price(text: str) -> tuple[str, Price]:
    found = _PRICE.fullmatch(text)
    try:
        if found is None:
            raise ValueError
        figures = [
            None if found[name] is None else float(found[name]) for name in ("input", "output", "read", "write")
        ]
    except ValueError:
        advice = "Write MODEL=INPUT/OUTPUT[/CACHE_READ[/CACHE_WRITE]], per million tokens."
        raise OptionError("--price", f"{text[:80]!r} is no price", advice) from None
    return found["name"], Price(figures[0] or 0.0, figures[1] or 0.0, figures[2], figures[3])


def _write(found: Any, file: Path | None) -> None:
    if file is None:
        write(found, indent=2)
        return
    try:
        file.write_text(json.dumps(found, ensure_ascii=False, allow_nan=False, indent=2) + "\n", "utf-8")
    except OSError as error:
        raise OptionError("--json", f"{file} cannot be written ({error.strerror})", "Name a file.") from None


def _print_table(trials: Sequence[ComparisonResult], *, on_stderr: bool) -> None:
    from rich.console import Console
    from rich.table import Column, Table
    from rich.text import Text

    right: list[str | Column] = [Column(name, justify="right", no_wrap=True) for name in _FIGURES]
    table = Table(Column("model", overflow="fold"), *right, "reply")
    for trial in trials:
        said = f"{type(trial.error).__name__}: {trial.error}" if trial.error else _told(trial)
        told = Text(as_one_line(said)[:400], "red" if trial.error else "")
        table.add_row(Text(as_one_line(trial.label)), *_figures(trial), told)
    stream = sys.stderr if on_stderr else sys.stdout
    Console(stderr=on_stderr, width=None if stream.isatty() else 140).print(table)


_FIGURES = ("tokens", "in", "out", "price", "first", "total", "lost", "finish")


def _figures(trial: ComparisonResult) -> list[str]:
    usage = trial.reply.usage if trial.reply else None
    mark = "~" if trial.tokens is not None and trial.tokens.estimated else ""
    return [
        "" if trial.tokens is None else f"{mark}{trial.tokens}",
        str(usage.input_tokens) if usage else "",
        str(usage.output_tokens) if usage else "",
        "" if trial.price is None else f"{trial.price:.4g}",
        _seconds(trial.first_token),
        _seconds(trial.total),
        str(len(trial.plan.ledger.losses)) if trial.plan else "",
        str((trial.reply and trial.reply.finish_reason) or ""),
    ]


def _seconds(found: float | None) -> str:
    return "" if found is None else f"{found:.2f} s"


def _told(trial: ComparisonResult) -> str:
    """What the model said: its text, else its calls."""
    reply = trial.reply
    if reply is None:
        return ""
    return reply.text or ", ".join(f"{call.name}({call.arguments})" for call in reply.tool_uses) or "(nothing)"
