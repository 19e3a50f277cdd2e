"""Time from a streamed delta to a typed event, with one event in each transport chunk.

Compares the parsers of agentkit (from bytes and from dicts), `ChatModel.stream`, the official SDKs and other
libraries. All but the parsers use the client of the SDK.
"""

from __future__ import annotations

import math
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from agentkit import Msg, ToolUseDelta, load_provider
from agentkit.provider_kit import StreamParserBase
from tests.benchmarks.callers import (
    Caller,
    can_stream,
    create_model,
    load_peer_callers,
    load_sdk_callers,
    load_sdk_helper_callers,
)
from tests.benchmarks.histories import build_mixed_chat
from tests.benchmarks.measure import Case, Samples, fit_exponent, interleave
from tests.benchmarks.peers import finish_background_work, run_async
from tests.benchmarks.plots import draw_bars
from tests.benchmarks.report import Aim, Report, Table
from tests.benchmarks.sdk_clients import APIS, CLIENTS, StreamedReply, build_stream

__all__ = ["run"]

_DELTA_KINDS = {"text": "text", "tools": "tool arguments"}
_DETAILED_API = "OpenAI Chat"  # API with all readers in the summary; its SDK is the base of the goals
_BYTES, _DICTS, _LIVE_INPUT, _MODEL = (
    "agentkit, bytes",
    "agentkit, dicts",
    "agentkit, bytes, live input",
    "agentkit, ChatModel.stream",
)
_WHOLE_CALLS = ("Gemini", "Ollama")  # APIs that send a tool call in one event
_MIN_RATIO = 10.0
_MANY_DELTAS = 20_000  # with as many deltas or more, slow readers are skipped
_SLOW_READERS = ("LangChain", "litellm", "pydantic-ai", "Google SDK", "stream helper of the SDK")


@dataclass(frozen=True, slots=True)
class _Row:
    """One reader of a stream of an API, with text or tool arguments as deltas."""

    api: str
    delta_kind: str
    reader: str
    create_case: Callable[[StreamedReply], Case]


def run(quick: bool = False) -> Report:
    """Measures all readers with streams of several lengths."""
    sizes = [20, 40] if quick else [1_000, 10_000, 100_000]
    problems: list[str] = []
    rows = [*_get_agentkit_rows(), *_get_other_rows(problems)]
    samples = {number: _measure(rows, number, 1 if quick else _rounds(number)) for number in sizes}
    tables = [_build_table(api, rows, samples) for api in APIS]
    summary = _build_summary(rows, samples)
    plot = draw_bars(
        "Microseconds per delta of tool arguments, OpenAI Chat",
        _get_plot_values(rows, samples),
        "{:.0f}".format,
        log=True,
    )
    aims = _build_aims(rows, samples)
    return Report([*tables, summary], [summary], aims, {"streams.svg": plot}, list(dict.fromkeys(problems)))


def _rounds(number: int) -> int:
    return 5 if number <= 1_000 else 3 if number < _MANY_DELTAS else 1


def _measure(rows: Sequence[_Row], number: int, rounds: int) -> dict[_Row, Samples]:
    """Returns samples of all rows. Creates one stream at a time, because 100,000 deltas need 100 MB and more."""
    samples: dict[_Row, Samples] = {}
    for api in APIS:
        for delta_kind in _DELTA_KINDS:
            active = [row for row in rows if (row.api, row.delta_kind) == (api, delta_kind)]
            active = [row for row in active if number < _MANY_DELTAS or not _is_slow(row)]
            if active:
                reply = build_stream(api, delta_kind, number)
                cases = {str(index): row.create_case(reply) for index, row in enumerate(active)}
                new_samples = interleave(cases, rounds, collector=True, warm=number <= 1_000 and rounds > 1)
                samples |= {active[int(index)]: sampled for index, sampled in new_samples.items()}
    return samples


def _is_slow(row: _Row) -> bool:
    return row.reader in _SLOW_READERS or (row.api == "Gemini" and row.reader == _MODEL)


# -- readers ----------------------------------------------------------------------------------------------------


def _get_agentkit_rows() -> list[_Row]:
    rows: list[_Row] = []
    for api, (provider, _) in APIS.items():
        parser = load_provider(provider).parser
        assert parser is not None
        for delta_kind in _DELTA_KINDS:
            if delta_kind == "tools" and api in _WHOLE_CALLS:
                continue
            rows.append(_Row(api, delta_kind, _BYTES, partial(_create_parser_case, parser, raw=True)))
            rows.append(_Row(api, delta_kind, _DICTS, partial(_create_parser_case, parser, raw=False)))
            if delta_kind == "tools":
                rows.append(
                    _Row(api, delta_kind, _LIVE_INPUT, partial(_create_parser_case, parser, raw=True, live=True))
                )
    return rows


def _get_other_rows(problems: list[str]) -> list[_Row]:
    rows: list[_Row] = []
    sdk_callers = load_sdk_callers(problems)
    streaming_apis = {sdk.api for sdk in sdk_callers if can_stream(sdk.api, problems)}
    for caller in [*sdk_callers, *load_sdk_helper_callers(problems), *load_peer_callers(problems)]:
        kinds = ["text"] if caller.api in _WHOLE_CALLS else list(_DELTA_KINDS)
        for delta_kind in kinds:
            if caller in sdk_callers and caller.api in streaming_apis:
                rows.append(_Row(caller.api, delta_kind, _MODEL, partial(_create_model_case, caller.api)))
            rows.append(_Row(caller.api, delta_kind, caller.name, partial(_create_caller_case, caller)))
    return rows


def _create_parser_case(
    parser: type[StreamParserBase], reply: StreamedReply, *, raw: bool, live: bool = False
) -> Case:
    """Returns a case for a parser alone. With `live`, it reads the arguments after every delta."""
    chunks: Sequence[Any] = reply.frames if raw else reply.events

    def read(_: object) -> Msg:
        reader = parser()
        for chunk in chunks:
            for event in reader.feed(chunk):
                if live and type(event) is ToolUseDelta:
                    _ = event.input
        return reader.finish()

    return Case(finish_background_work, read)


def _create_caller_case(caller: Caller, reply: StreamedReply) -> Case:
    """Returns a case for the stream of an SDK or another library."""
    client, history = caller.create_client(reply.response), caller.prepare(build_mixed_chat(4))
    return Case(finish_background_work, lambda _: run_async(_exhaust(caller.stream(client, history))))


def _create_model_case(api: str, reply: StreamedReply) -> Case:
    """Returns a case for `ChatModel.stream`, which also builds the message."""
    model = create_model(api, CLIENTS[api](reply.response))
    msgs = [Msg("Alice", "Go on.", "user")]

    async def read() -> Msg:
        async with model.stream(msgs) as stream:
            await _exhaust(stream)
        return stream.message

    return Case(finish_background_work, lambda _: run_async(read()))


async def _exhaust(events: AsyncIterator[Any]) -> None:
    async for _ in events:
        pass


# -- tables -----------------------------------------------------------------------------------------------------


def _get_microseconds(row: _Row, samples: Mapping[int, dict[_Row, Samples]]) -> list[float]:
    """Returns the microseconds per delta at every size, NaN for sizes that were not measured."""
    return [by_row[row].median / n * 1e6 if row in by_row else math.nan for n, by_row in samples.items()]


def _get_last_time(row: _Row, samples: Mapping[int, dict[_Row, Samples]]) -> float:
    """Returns the microseconds per delta at the largest measured size."""
    return [time for time in _get_microseconds(row, samples) if not math.isnan(time)][-1]


def _fit_growth(row: _Row, samples: Mapping[int, dict[_Row, Samples]]) -> float:
    """Returns the growth exponent over all measured sizes."""
    points = [(n, by_row[row].median) for n, by_row in samples.items() if row in by_row]
    return fit_exponent([n for n, _ in points], [seconds for _, seconds in points])


def _build_table(api: str, rows: Sequence[_Row], samples: Mapping[int, dict[_Row, Samples]]) -> Table:
    head = ["", *(f"n={n:,}" for n in samples), "exponent", "× agentkit, bytes"]
    table_rows: list[list[object]] = []
    for row in (row for row in rows if row.api == api):
        ratio = _get_ratio(row, _get_parser_row(rows, api, row.delta_kind), samples)
        table_rows.append(
            [
                f"{row.reader}: {_DELTA_KINDS[row.delta_kind]}",
                *_get_microseconds(row, samples),
                _fit_growth(row, samples),
                ratio,
            ]
        )
    return Table(f"µs per delta, {api}, one event per chunk", head, table_rows)


def _get_ratio(row: _Row, base: _Row, samples: Mapping[int, dict[_Row, Samples]]) -> float:
    """Returns the ratio of two rows at the largest size at which both were measured."""
    return [by_row[row].ratio_to(by_row[base]) for by_row in samples.values() if row in by_row][-1]


def _find_row(rows: Sequence[_Row], api: str, delta_kind: str, reader: str) -> _Row | None:
    return next((row for row in rows if (row.api, row.delta_kind, row.reader) == (api, delta_kind, reader)), None)


def _get_parser_row(rows: Sequence[_Row], api: str, delta_kind: str) -> _Row:
    """Returns the row of the parser of agentkit that reads bytes."""
    return next(row for row in rows if (row.api, row.delta_kind, row.reader) == (api, delta_kind, _BYTES))


def _get_readers(rows: Sequence[_Row]) -> list[str]:
    return list(dict.fromkeys(row.reader for row in rows))


def _build_summary(rows: Sequence[_Row], samples: Mapping[int, dict[_Row, Samples]]) -> Table:
    """Returns a table with a row for each API and reader, at the largest measured size."""
    table_rows: list[list[object]] = []
    for api in APIS:
        for reader in _get_readers([row for row in rows if row.api == api and _is_shown(row)]):
            cells: list[object] = []
            for delta_kind in _DELTA_KINDS:
                row = _find_row(rows, api, delta_kind, reader)
                if row:
                    base = _get_parser_row(rows, api, delta_kind)
                    cells += [_get_last_time(row, samples), _get_ratio(row, base, samples)]
                else:
                    cells += [math.nan, math.nan]
            table_rows.append([f"{api}: {reader}", *cells])
    head = ["", "text, µs", "× agentkit", "tool arguments, µs", "× agentkit"]
    return Table("Delta to event, at the largest measured number of deltas", head, table_rows)


def _is_shown(row: _Row) -> bool:
    """Returns True for all readers of one API, and for agentkit and the SDK of every other API."""
    return row.reader != _DICTS and (
        row.api == _DETAILED_API or row.reader in (_BYTES, _MODEL) or row.reader.endswith("SDK")
    )


def _get_plot_values(rows: Sequence[_Row], samples: Mapping[int, dict[_Row, Samples]]) -> dict[str, float]:
    plotted = [
        row for row in rows if (row.api, row.delta_kind) == (_DETAILED_API, "tools") and row.reader != _DICTS
    ]
    return {row.reader: _get_last_time(row, samples) for row in plotted}


# -- goals ------------------------------------------------------------------------------------------------------


def _build_aims(rows: Sequence[_Row], samples: Mapping[int, dict[_Row, Samples]]) -> list[Aim]:
    aims: list[Aim] = []
    largest = list(samples)[-1]
    for delta_kind, label in _DELTA_KINDS.items():
        agentkit_row = _get_parser_row(rows, _DETAILED_API, delta_kind)
        base = _find_row(rows, _DETAILED_API, delta_kind, "OpenAI SDK")
        if base:
            ratio = _get_ratio(base, agentkit_row, samples)
            measurement = f"{label.capitalize()} delta to event, OpenAI Chat, {largest:,} deltas"
            aims.append(Aim(measurement, "≤ 1/10 of the SDK", f"1/{ratio:.0f}", ratio >= _MIN_RATIO))
    parser_rows = [row for row in rows if row.reader in (_BYTES, _DICTS, _LIVE_INPUT)]
    exponent = max(_fit_growth(row, samples) for row in parser_rows)
    measurement = f"Growth exponent of parsing up to {largest:,} deltas, worst parser"
    aims.append(Aim(measurement, "≤ 1.05", f"{exponent:.2f}", exponent <= 1.05))
    live_rows = [row for row in rows if row.reader == _LIVE_INPUT]
    worst = max(_get_ratio(row, _get_parser_row(rows, row.api, row.delta_kind), samples) for row in live_rows)
    aims.append(
        Aim(
            "Parsing with the arguments read after every delta, worst API",
            "≤ 2 × without",
            f"{worst:.2f} ×",
            worst <= 2,
        )
    )
    return aims
