"""Time of training data: tokens with loss masks, and rows of data sets. Memory of an export."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from agentkit import Block, Msg, ThinkingBlock
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


def export(source: str, target: str) -> None:
    """Converts a file, and prints the largest resident size of this process in megabytes."""
    with Path(source).open(encoding="utf-8") as rows, Path(target).open("w", encoding="utf-8") as file:
        file.writelines(json.dumps(row) + "\n" for row in dump_rows("trl", load_rows("openai", rows)))
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1_024)


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


def run(quick: bool = False) -> Report:
    """Measures tokens with loss masks, rows, and the memory of an export."""
    tokens = time_tokens(2 if quick else _TURNS, 3 if quick else 25)
    count, rounds = (20, 3) if quick else (2_000, 9)
    rows = time_rows(list(build_lines(count)), rounds)
    short_rows = time_rows(list(build_short_lines(count)), rounds)
    megabytes = 1 if quick else _MEGABYTES
    resident = measure_export(megabytes)
    alone = tokens["tokenizer alone"]
    ratios = {
        name: item.ratio_to(alone)
        for name, item in tokens.items()
        if name.startswith("tokenize, ") and "thinking" not in name
    }
    speed = 1 / rows["openai to trl"].ratio_to(rows["json alone"])
    short_speed = 1 / short_rows["openai to trl"].ratio_to(short_rows["json alone"])
    tables = [
        Table(
            f"Tokens and loss mask of {_TURNS} turns",
            ["", "ms", "× tokenizer"],
            [[name, item.median * 1e3, item.ratio_to(alone)] for name, item in tokens.items()],
        ),
        *(
            Table(
                f"Rows of {messages} messages",
                ["", "ms", "speed of json"],
                [
                    [name, item.median * 1e3, 1 / item.ratio_to(timed["json alone"])]
                    for name, item in timed.items()
                ],
            )
            for messages, timed in (("nine", rows), ("two short", short_rows))
        ),
        Table("Export of a file", ["", "MB resident"], [[f"{megabytes} MB of JSON lines", resident]]),
    ]
    aims = [
        *(
            Aim(f"{name}, to the tokenizer alone", f"≤ {_MAX_RATIO}", f"{ratio:.2f}", ratio <= _MAX_RATIO)
            for name, ratio in ratios.items()
        ),
        Aim("Export of rows, to `json` alone", "≥ 1/3 of the speed", f"{speed:.2f}", speed >= _MIN_SPEED),
        Aim(
            "Export of rows of two short messages, to `json` alone",
            "≥ 1/3 of the speed",
            f"{short_speed:.2f}",
            short_speed >= _MIN_SPEED,
        ),
        Aim(
            f"Memory of an export of {megabytes} MB",
            f"≤ {_MAX_MEGABYTES} MB",
            f"{resident:.0f} MB",
            resident <= _MAX_MEGABYTES,
        ),
    ]
    return Report(tables, tables, aims)
