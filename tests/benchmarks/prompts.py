"""Time of typed prompts: requests, replies, streams, bound requests and imports.

DSPy runs the same tasks in another process, because its environment has other versions of packages. The variable
AGENTKIT_DSPY names its interpreter. Each round times both processes in turn.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any, Final, Literal, TypeAlias

from pydantic import BaseModel, Field

from agentkit import Msg
from agentkit.prompts import Adapter, ChatAdapter, Example, InputField, JSONAdapter, Signature, XMLAdapter, stream
from tests.benchmarks.callers import create_model
from tests.benchmarks.imports import measure_import
from tests.benchmarks.measure import (
    Case,
    Sampled,
    Samples,
    fit_exponent,
    format_seconds,
    get_step_exponents,
    interleave,
)
from tests.benchmarks.peers import finish_background_work, run_async
from tests.benchmarks.prompt_tasks import (
    EXAMPLE_COUNTS,
    INPUTS,
    REPLIES,
    SIGNATURE,
    TYPES,
    Source,
    build_example,
    name_format,
    name_parse,
)
from tests.benchmarks.report import Aim, Report, Table
from tests.benchmarks.sdk_clients import CLIENTS, stream_message

__all__ = ["run"]

_DSPY: Final = "AGENTKIT_DSPY"
_NOT_MEASURED: Final = "not measured"
_MIN_FORMAT_RATIO: Final = 10.0
_MIN_PARSE_RATIO: Final = 5.0
_GOAL_REPLIES: Final = ("seven types", "verdict, score, reason")
_STREAM_API: Final = "OpenAI Chat"
_ADAPTERS: Final[dict[str, Adapter]] = {"chat": ChatAdapter(), "JSON": JSONAdapter(), "XML": XMLAdapter()}
_PARSED: Final = ("chat", "JSON")  # adapters whose parsing is compared with DSPy
_REQUEST: Final = Signature(SIGNATURE)
_Part: TypeAlias = tuple[Table, list[Aim]]


def run(quick: bool = False) -> Report:
    """Measures all parts of typed prompts."""
    problems: list[str] = []
    parts = [
        *_compare_with_dspy(quick, problems),
        _measure_streams(20 if quick else 10_000, 1 if quick else 9),
        _measure_growth([20, 40] if quick else [1_000, 10_000, 100_000], 1 if quick else 5),
        _measure_binding(1 if quick else 15),
        _measure_imports(1 if quick else 15),
    ]
    tables = [table for table, _ in parts]
    return Report(tables, tables, aims=[aim for _, aims in parts for aim in aims], notes=problems)


# -- requests and replies, compared with DSPy -----------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _DspyCase:
    """Case of the process with DSPy (see `dspy_timer`)."""

    process: subprocess.Popen[str]
    name: str

    def sample(self, batch: int, collector: bool) -> float:
        """Returns the CPU seconds of one call in the other process, as the mean of `batch` calls."""
        questions, answers = self.process.stdin, self.process.stdout
        assert questions is not None
        assert answers is not None
        questions.write(json.dumps({"case": self.name, "batch": batch, "collector": collector}) + "\n")
        questions.flush()
        return float(answers.readline())


@contextmanager
def _start_dspy(problems: list[str]) -> Generator[subprocess.Popen[str] | None]:
    """Starts the process with DSPy. Without an interpreter, adds DSPy to `problems` and yields None."""
    python = os.environ.get(_DSPY)
    if python is None:
        problems.append(f"DSPy ({_DSPY} is not set)")
        yield None
        return
    command = [python, "-m", f"{__package__}.dspy_timer"]
    pipe, root = subprocess.PIPE, Path(__file__).parents[2]
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, cwd=root) as process:
        yield process


def _compare_with_dspy(quick: bool, problems: list[str]) -> list[_Part]:
    rounds, batch = (1, 1) if quick else (15, 20)
    counts = EXAMPLE_COUNTS[:2] if quick else EXAMPLE_COUNTS
    names = _GOAL_REPLIES if quick else tuple(REPLIES)
    formats = {name_format(count): _create_format_case(count) for count in counts}
    format_goals = dict.fromkeys(formats, _MIN_FORMAT_RATIO)
    formats |= {name_format(count, is_new=True): _create_new_format_case(count) for count in counts[1:]}
    parses = {
        name_parse(adapter, name): _create_parse_case(adapter, name) for adapter in _PARSED for name in names
    }
    parse_goals = {name_parse(adapter, name): _MIN_PARSE_RATIO for adapter in _PARSED for name in _GOAL_REPLIES}
    with _start_dspy(problems) as dspy:
        return [
            _compare("Messages of a request, ChatAdapter", formats, format_goals, dspy, rounds, batch),
            _compare("Outputs of a reply", parses, parse_goals, dspy, rounds, 1 if quick else 400),
        ]


def _compare(
    title: str,
    cases: Mapping[str, Case],
    goals: Mapping[str, float],
    dspy: subprocess.Popen[str] | None,
    rounds: int,
    batch: int,
) -> _Part:
    """Measures cases of agentkit, and the cases of DSPy with the same names."""
    sampled: dict[str, Sampled] = {}
    for name, case in cases.items():
        sampled[name] = case
        if dspy is not None:
            sampled[f"DSPy: {name}"] = _DspyCase(dspy, name)
    samples = interleave(sampled, rounds, batch)
    rows: list[list[object]] = []
    aims: list[Aim] = []
    for name in cases:
        peer = samples.get(f"DSPy: {name}")
        if peer is None:
            rows.append([name, format_seconds(samples[name].median), _NOT_MEASURED, _NOT_MEASURED])
            continue
        ratio = peer.ratio_to(samples[name])
        result = f"1/{ratio:.1f}"
        rows.append([name, format_seconds(samples[name].median), format_seconds(peer.median), result])
        if name in goals:
            aims.append(
                Aim(f"Typed prompts: {name}", f"≤ 1/{goals[name]:.0f} of DSPy", result, ratio >= goals[name])
            )
    return Table(title, ["", "agentkit", "DSPy", "relative to DSPy"], rows), aims


def _create_format_case(count: int) -> Case:
    """Returns a case whose examples were in earlier requests too, so that their messages are cached."""
    examples = _build_examples(count)
    return Case(lambda: examples, _format)


def _create_new_format_case(count: int) -> Case:
    return Case(partial(_build_examples, count), _format)


def _build_examples(count: int) -> list[Example]:
    return [Example(*build_example(number)) for number in range(count)]


def _format(examples: Sequence[Example]) -> list[Msg]:
    return _ADAPTERS["chat"].format(_REQUEST, INPUTS, examples=examples)


def _create_parse_case(adapter: str, name: str) -> Case:
    reply = REPLIES[name]
    text = reply.chat if adapter == "chat" else reply.json
    signature = Signature(reply.signature, types=TYPES)
    return Case(lambda: text, partial(_ADAPTERS[adapter].parse, signature))


# -- streams --------------------------------------------------------------------------------------------------

_STREAMED: Final = Signature("question -> reasoning, facts: list[str]")
_LINE: Final = 'the report of "spring" & <rain> was moved, since [[nobody]] had asked for it. '
_PIECE_SIZE: Final = 6  # characters, as `stream_message` has in each delta


def _build_reply(adapter: str, delta_count: int) -> str:
    """Returns a reply for about `delta_count` deltas, half of them in a text and half in a list."""
    line_count = delta_count * _PIECE_SIZE // 2 // len(_LINE) + 1
    outputs = {"reasoning": f"{_LINE}\n" * line_count, "facts": [_LINE] * line_count}
    return _ADAPTERS[adapter].format_assistant_message_content(_STREAMED, outputs)


def _measure_streams(count: int, rounds: int) -> _Part:
    """Measures `stream` against `ChatModel.stream`, which yields the same events of the model."""
    rows: list[list[object]] = []
    ratios: list[float] = []
    for adapter in _ADAPTERS:
        reply = Msg("assistant", _build_reply(adapter, count), "assistant")
        client = CLIENTS[_STREAM_API](stream_message(_STREAM_API, reply).response)
        model = create_model(_STREAM_API, client)
        bound = _STREAMED(question="Why?")
        msgs = _ADAPTERS[adapter].format(_STREAMED, bound)
        cases = {
            "model": _create_stream_case(partial(model.stream, msgs)),
            "fields": _create_stream_case(partial(stream, model, bound, adapter=_ADAPTERS[adapter])),
        }
        samples = interleave(cases, rounds, collector=True, warm=rounds > 1)
        ratios.append(samples["fields"].ratio_to(samples["model"]))
        delta_count = len(reply.text) / _PIECE_SIZE
        times = [format_seconds(sampled.median / delta_count) for sampled in samples.values()]
        rows.append([f"stream, {adapter}", *times, ratios[-1]])
    worst = max(ratios)
    head = ["", "ChatModel.stream", "with fields", "× ChatModel.stream"]
    aim = Aim(
        "Typed prompts: delta with fields, worst adapter", "≤ 2 × ChatModel.stream", f"{worst:.2f} ×", worst <= 2
    )
    return Table(f"Time per delta, {_STREAM_API}, {count:,} deltas", head, rows), [aim]


def _create_stream_case(open_stream: Callable[[], Any]) -> Case:
    async def read() -> None:
        async with open_stream() as events:
            await _exhaust(events)

    return Case(finish_background_work, lambda _: run_async(read()))


async def _exhaust(events: AsyncIterator[Any]) -> None:
    async for _ in events:
        pass


def _measure_growth(sizes: Sequence[int], rounds: int) -> _Part:
    """Measures the parsers of streamed replies alone, over several numbers of deltas."""
    rows: list[list[object]] = []
    worst = 0.0
    for adapter in _ADAPTERS:
        pieces = [_split(_build_reply(adapter, size)) for size in sizes]
        cases = {str(len(split)): _create_parser_case(adapter, split) for split in pieces}
        samples = interleave(cases, rounds, collector=True, warm=rounds > 1)
        counts = [*map(int, samples)]
        seconds = [sampled.median for sampled in samples.values()]
        times = [format_seconds(duration / count) for count, duration in zip(counts, seconds, strict=True)]
        exponent = fit_exponent(counts, seconds)
        rows.append([f"stream parser, {adapter}", *times, exponent, get_step_exponents(counts, seconds)[-1]])
        worst = max(worst, exponent)
    head = ["", *(f"n={size:,}" for size in sizes), "exponent", "exponent of last step"]
    measurement = f"Typed prompts: growth exponent of stream parsing up to {sizes[-1]:,} deltas, worst adapter"
    aim = Aim(measurement, "≤ 1.05", f"{worst:.2f}", worst <= 1.05)
    return Table("Time per delta, stream parsers alone", head, rows), [aim]


def _split(text: str) -> list[str]:
    return [text[start : start + _PIECE_SIZE] for start in range(0, len(text), _PIECE_SIZE)]


def _create_parser_case(adapter: str, pieces: Sequence[str]) -> Case:
    def parse(_: object) -> None:
        parser = _ADAPTERS[adapter].stream_parser(_STREAMED)
        for piece in pieces:
            parser.feed(piece)
        parser.finish()

    return Case(lambda: None, parse)


# -- bound requests -------------------------------------------------------------------------------------------


class _Request(Signature):
    question: str = InputField()
    passages: list[str] = InputField()
    style: Literal["short", "long"] = InputField()
    limit: int = InputField(ge=0)
    source: Source = InputField()
    language: str = InputField(default="English")


class _Model(BaseModel):
    question: str
    passages: list[str]
    style: Literal["short", "long"]
    limit: int = Field(ge=0)
    source: Source
    language: str = "English"


def _measure_binding(rounds: int) -> _Part:
    """Measures bound requests against the pydantic model of the same fields."""
    values = {**INPUTS, "style": "short", "limit": 3, "source": {"title": "Atlas", "page": 3}}
    cases = {
        "bound request": Case(lambda: values, lambda inputs: _Request(**inputs)),
        "pydantic model": Case(lambda: values, lambda inputs: _Model(**inputs)),
    }
    samples = interleave(cases, rounds, 1 if rounds == 1 else 500)
    ratio = samples["bound request"].ratio_to(samples["pydantic model"])
    rows = [
        ["bound request", format_seconds(samples["bound request"].median), ratio],
        ["pydantic model", format_seconds(samples["pydantic model"].median), 1.0],
    ]
    aim = Aim("Typed prompts: bound request with six inputs", "≤ 2 × pydantic model", f"{ratio:.2f} ×", ratio <= 2)
    return Table("Bound request with six inputs", ["", "time", "× pydantic model"], rows), [aim]


# -- imports --------------------------------------------------------------------------------------------------

_PROGRAMS: Final = {"agentkit": "import agentkit", "agentkit.prompts": "import agentkit.prompts"}
_FIRST_USE: Final = "import agentkit; from agentkit.prompts import Signature, ask"


def _measure_imports(rounds: int) -> _Part:
    """Measures imports in new interpreters, and the import of DSPy in its environment."""
    programs = {name: (text, sys.executable) for name, text in _PROGRAMS.items()}
    if rounds > 1:
        programs["agentkit, Signature, ask"] = (_FIRST_USE, sys.executable)
        if _DSPY in os.environ:
            programs["DSPy"] = ("import dspy", os.environ[_DSPY])
    times: dict[str, list[float]] = {name: [] for name in programs}
    for number in range(rounds + (rounds > 1)):
        for name, (text, python) in programs.items():
            seconds = measure_import(text, python)
            assert seconds is not None
            if number or rounds == 1:
                times[name].append(seconds)
    base = Samples(times["agentkit"])
    ratios = {name: Samples(samples).ratio_to(base) for name, samples in times.items()}
    rows: list[list[object]] = [
        [f"import of {name}", f"{median(times[name]) * 1e3:.0f} ms", ratio] for name, ratio in ratios.items()
    ]
    ratio = ratios["agentkit.prompts"]
    aim = Aim("Typed prompts: import of agentkit.prompts", "≤ 1.2 × agentkit", f"{ratio:.2f} ×", ratio <= 1.2)
    return Table("Imports in new interpreters", ["", "CPU", "× agentkit"], rows), [aim]
