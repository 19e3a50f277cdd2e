"""Time of training data: tokens with loss masks, and rows of data sets. Memory of an export."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Final

from agentkit import (
    Block,
    Msg,
    OpaqueState,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
    dump_messages,
)
from agentkit.cli.app import dispatch
from agentkit.training import Sample, dump_rows, load_rows, tokenize
from tests.benchmarks.measure import Case, Samples, interleave
from tests.benchmarks.report import Aim, Report, Table
from tests.training.templates import MARKED, THINKING, UNMARKED, create_tokenizer

__all__ = ["run"]

_TEXT: Final = "The tower is near the river, and the old bridge is open until ten o'clock in the evening. "
_TURNS: Final = 40
_MAX_RATIO: Final = 1.2
_MIN_SPEED: Final = 1 / 3
_MAX_MEGABYTES: Final = 150
_MEGABYTES: Final = 1_000


def build_msgs(turns: int) -> list[Msg]:
    """Returns a conversation of questions and answers."""
    pairs = [(f"Question {index}: {_TEXT * 3}", f"Answer {index}: {_TEXT * 5}") for index in range(turns)]
    return [
        msg
        for question, answer in pairs
        for msg in (Msg("user", question, "user"), Msg("assistant", answer, "assistant"))
    ]


def time_tokens(turns: int, rounds: int) -> dict[str, Samples]:
    """Times a tokenizer alone, and `tokenize` with templates that mark replies and that do not.

    The template `reads ahead` finds the last message of a user first, as the template of Qwen3 does.
    """
    msgs = build_msgs(turns)
    thoughts = Sample([replace(msg, content=_think(msg)) if msg.role == "assistant" else msg for msg in msgs])
    tokenizer: Any = create_tokenizer([_TEXT])
    text = MARKED.render(msgs, add_generation_prompt=False).text
    sample = Sample(msgs)
    cases = {
        "tokenizer alone": Case(str, lambda _: tokenizer.encode(text, add_special_tokens=False).ids),
        "tokenize, replies are marked": Case(str, lambda _: tokenize(sample, MARKED, tokenizer)),
        "tokenize, replies are not marked": Case(str, lambda _: tokenize(sample, UNMARKED, tokenizer)),
        "tokenize, the template reads ahead": Case(str, lambda _: tokenize(sample, THINKING, tokenizer)),
        "tokenize, thinking is not trained": Case(
            str, lambda _: tokenize(thoughts, UNMARKED, tokenizer, train_thinking=False)
        ),
    }
    return interleave(cases, rounds)


def _think(msg: Msg) -> tuple[Block, ...]:
    return (ThinkingBlock("Hm."), *msg.blocks)


def build_lines(count: int) -> Iterator[str]:
    """Yields rows of OpenAI's fine-tuning as JSON text."""
    messages = [{"role": msg.role, "content": msg.content} for msg in build_msgs(4)]
    for index in range(count):
        yield json.dumps({"messages": [{"role": "system", "content": f"Conversation {index}."}, *messages]}) + "\n"


def build_short_lines(count: int) -> Iterator[str]:
    """Yields rows of OpenAI's fine-tuning with two short messages as JSON text."""
    for index in range(count):
        user = {"role": "user", "content": f"Hello {index}, how are you?"}
        yield json.dumps({"messages": [user, {"role": "assistant", "content": "I am fine, thanks."}]}) + "\n"


def copy_json(lines: list[str]) -> int:
    """Reads and writes rows with `json` alone."""
    return sum(len(json.dumps(json.loads(line))) for line in lines)


def convert_rows(lines: list[str], format: Any) -> int:
    """Reads rows and writes them as rows of another format."""
    return sum(len(json.dumps(row)) for row in dump_rows(format, load_rows("openai", lines)))


def time_rows(lines: list[str], rounds: int) -> dict[str, Samples]:
    """Times the reading and writing of rows."""
    cases = {
        "json alone": Case(str, lambda _: copy_json(lines)),
        "openai to openai": Case(str, lambda _: convert_rows(lines, "openai")),
        "openai to trl": Case(str, lambda _: convert_rows(lines, "trl")),
        "openai to sharegpt": Case(str, lambda _: convert_rows(lines, "sharegpt")),
    }
    return interleave(cases, rounds)


def build_tool_log(count: int) -> Iterator[str]:
    """Yields stored conversations of a user and two agents, with short messages and a tool."""
    for index in range(count):
        msgs = [Msg("system", "You are two agents that plan trips.", "system")]
        for turn in range(4):
            id = f"call_{index}_{turn}"
            call = ToolUseBlock(id, "search_hotels", {"city": f"Town {index}", "nights": 2})
            msgs += [
                Msg("Bob", f"Where can I stay near station {turn}?", "user"),
                Msg("Alice", [TextBlock("I will look."), call], "assistant"),
                Msg("system", [ToolResultBlock(id, "search_hotels", "Hotel Sun: 80 euros, 4 stars")], "system"),
                Msg("Alice", "Hotel Sun costs 80 euros.", "assistant"),
                Msg("Friday", "I would take it, because it is close.", "assistant"),
            ]
        yield json.dumps(dump_messages(msgs)) + "\n"


def build_thinking_log(count: int) -> Iterator[str]:
    """Yields stored conversations with long messages and signed thinking."""
    state = OpaqueState("anthropic", signature="Ev+/" * 100)
    for index in range(count):
        msgs = [Msg("system", f"Conversation {index}.", "system")]
        for msg in build_msgs(4):
            blocks = (ThinkingBlock(_TEXT * 15, state), *msg.blocks)
            msgs.append(replace(msg, content=blocks) if msg.role == "assistant" else msg)
        yield json.dumps(dump_messages(msgs)) + "\n"


def copy_log(log: Path) -> None:
    """Reads and writes a file with `json` alone."""
    with log.open(encoding="utf-8") as lines, Path(os.devnull).open("w", encoding="utf-8") as file:
        file.writelines(json.dumps(json.loads(line)) + "\n" for line in lines)


def export_log(log: Path, format: str) -> None:
    """Runs `agentkit export`."""
    with Path(os.devnull).open("w", encoding="utf-8") as file, redirect_stdout(file), redirect_stderr(file):
        dispatch(["export", str(log), "--format", format])


def time_log(lines: Iterator[str], formats: Sequence[str], rounds: int) -> dict[str, Samples]:
    """Times the export of stored conversations."""
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder, "log.jsonl")
        log.write_text("".join(lines), "utf-8")
        cases = {f"agentkit to {name}": Case(partial(str, name), partial(export_log, log)) for name in formats}
        return interleave({"json alone": Case(partial(Path, log), copy_log), **cases}, rounds)


def export(source: str, target: str) -> None:
    """Converts a file, and prints the largest resident size of this process in megabytes."""
    with Path(source).open(encoding="utf-8") as rows, Path(target).open("w", encoding="utf-8") as file:
        file.writelines(json.dumps(row) + "\n" for row in dump_rows("trl", load_rows("openai", rows)))
    print(_read_largest_size() / 1_024)


def _read_largest_size() -> int:
    """Returns the largest resident size of this process in kilobytes."""
    status = Path("/proc/self/status")
    if not status.exists():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    # On Linux, `ru_maxrss` also has the size of the parent process at the start of this process.
    return int(status.read_text("ascii").partition("VmHWM:")[2].split()[0])


def measure_export(megabytes: int) -> float:
    """Returns the largest resident size of a process that converts a file, in megabytes."""
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder, "source.jsonl"), Path(folder, "target.jsonl")
        count = megabytes * 1_000_000 // len(next(build_lines(1)))
        with source.open("w", encoding="utf-8") as file:
            file.writelines(build_lines(count))
        code = f"from tests.benchmarks.training import export; export({str(source)!r}, {str(target)!r})"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        return float(done.stdout)


def time_exports(count: int, rounds: int) -> dict[str, dict[str, Samples]]:
    """Times the export of rows and of stored conversations, by name."""
    formats = ("openai", "trl", "sharegpt")
    return {
        "rows": time_rows(list(build_lines(count)), rounds),
        "rows of two short messages": time_rows(list(build_short_lines(count)), rounds),
        "a log of short messages with tools": time_log(build_tool_log(count // 2), formats, rounds),
        "a log of long messages with thinking": time_log(
            build_thinking_log(count // 5), (*formats, "alpaca"), rounds
        ),
    }


def build_export_aim(name: str, timed: dict[str, Samples]) -> Aim:
    """Returns the goal of an export: the speed of rows for trl, or of a log for OpenAI's fine-tuning."""
    export = timed.get("openai to trl") or timed["agentkit to openai"]
    speed = 1 / export.ratio_to(timed["json alone"])
    return Aim(f"Export of {name}, to `json` alone", "≥ 1/3 of the speed", f"{speed:.2f}", speed >= _MIN_SPEED)


def run(quick: bool = False) -> Report:
    """Measures tokens with loss masks, exports, and the memory of an export."""
    tokens = time_tokens(2 if quick else _TURNS, 3 if quick else 25)
    exports = time_exports(*((20, 3) if quick else (2_000, 9)))
    megabytes = 1 if quick else _MEGABYTES
    resident = measure_export(megabytes)
    alone = tokens["tokenizer alone"]
    ratios = {
        name: item.ratio_to(alone)
        for name, item in tokens.items()
        if name.startswith("tokenize, ") and "thinking" not in name
    }
    tables = [
        Table(
            f"Tokens and loss mask of {_TURNS} turns",
            ["", "ms", "× tokenizer"],
            [[name, item.median * 1e3, item.ratio_to(alone)] for name, item in tokens.items()],
        ),
        *(
            Table(
                f"Export of {title}",
                ["", "ms", "speed of json"],
                [
                    [name, item.median * 1e3, 1 / item.ratio_to(timed["json alone"])]
                    for name, item in timed.items()
                ],
            )
            for title, timed in exports.items()
        ),
        Table("Export of a file", ["", "MB resident"], [[f"{megabytes} MB of JSON lines", resident]]),
    ]
    aims = [
        *(
            Aim(f"{name}, to the tokenizer alone", f"≤ {_MAX_RATIO}", f"{ratio:.2f}", ratio <= _MAX_RATIO)
            for name, ratio in ratios.items()
        ),
        *(build_export_aim(name, timed) for name, timed in exports.items()),
        Aim(
            f"Memory of an export of {megabytes} MB",
            f"≤ {_MAX_MEGABYTES} MB",
            f"{resident:.0f} MB",
            resident <= _MAX_MEGABYTES,
        ),
    ]
    return Report(tables, tables, aims)
