"""Streams: what a delta costs on its way to a typed event, beside the SDKs' own chunks and the peers.

One event a transport chunk. Our readers by themselves, from raw bytes and from dicts, with the arguments read at
every delta; `ChatModel.stream` over the SDK's client; and whatever else loads, over the same client.
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

_KINDS = {"text": "text", "tools": "tool arguments"}
_ALOUD = "OpenAI Chat"  # the wire that is shown in full, and whose SDK's chunks are the measure
_BYTES, _DICTS, _INPUT, _MODEL = (
    "agentkit, bytes",
    "agentkit, dicts",
    "agentkit, bytes, live input",
    "agentkit, ChatModel.stream",
)
_WHOLE_CALLS = ("Gemini", "Ollama")  # wires whose calls come in one event
_GOAL = 10.0
_SLOW = 20_000  # deltas beyond which those who take minutes are left out
_MINUTES = ("LangChain", "litellm", "pydantic-ai", "Google SDK", "the SDK's accumulating stream")


@dataclass(frozen=True, slots=True)
class _Row:
    """One way to read one kind of stream on one wire."""

    api: str
    kind: str
    who: str
    case: Callable[[StreamedReply], Case]


def run(quick: bool = False) -> Report:
    """Every table."""
    sizes = [20, 40] if quick else [1_000, 10_000, 100_000]
    problems: list[str] = []
    rows = [*_ours(), *_theirs(problems)]
    found = {number: _measured(rows, number, 1 if quick else _rounds(number)) for number in sizes}
    tables = [_table(api, rows, found) for api in APIS]
    short = _short(rows, found)
    plot = draw_bars(
        "Microseconds a delta of tool arguments, OpenAI Chat", _bars(rows, found), "{:.0f}".format, log=True
    )
    aims = _aims(rows, found)
    return Report([*tables, short], [short], aims, {"streams.svg": plot}, list(dict.fromkeys(problems)))


def _rounds(number: int) -> int:
    return 5 if number <= 1_000 else 3 if number < _SLOW else 1


def _measured(rows: Sequence[_Row], number: int, rounds: int) -> dict[_Row, Samples]:
    """Each kind of each wire by itself, since a stream of 100,000 deltas fills some hundred megabytes."""
    found: dict[_Row, Samples] = {}
    for api in APIS:
        for kind in _KINDS:
            held = [row for row in rows if (row.api, row.kind) == (api, kind)]
            held = [row for row in held if number < _SLOW or not _takes_minutes(row)]
            if held:
                reply = build_stream(api, kind, number)
                named = {str(at): row.case(reply) for at, row in enumerate(held)}
                taken = interleave(named, rounds, collector=True, warm=number <= 1_000)
                found |= {held[int(at)]: sampled for at, sampled in taken.items()}
    return found


def _takes_minutes(row: _Row) -> bool:
    return row.who in _MINUTES or (row.api == "Gemini" and row.who == _MODEL)


# -- who reads --------------------------------------------------------------------------------------------------


def _ours() -> list[_Row]:
    rows: list[_Row] = []
    for api, (provider, _) in APIS.items():
        parser = load_provider(provider).parser
        assert parser is not None
        for kind in _KINDS:
            if kind == "tools" and api in _WHOLE_CALLS:
                continue
            rows.append(_Row(api, kind, _BYTES, partial(_read, parser, raw=True)))
            rows.append(_Row(api, kind, _DICTS, partial(_read, parser, raw=False)))
            if kind == "tools":
                rows.append(_Row(api, kind, _INPUT, partial(_read, parser, raw=True, live=True)))
    return rows


def _theirs(problems: list[str]) -> list[_Row]:
    found: list[_Row] = []
    official = load_sdk_callers(problems)
    through = {one.api for one in official if can_stream(one.api, problems)}
    for caller in [*official, *load_sdk_helper_callers(problems), *load_peer_callers(problems)]:
        kinds = ["text"] if caller.api in _WHOLE_CALLS else list(_KINDS)
        for kind in kinds:
            if caller in official and caller.api in through:
                found.append(_Row(caller.api, kind, _MODEL, partial(_through_model, caller.api)))
            found.append(_Row(caller.api, kind, caller.name, partial(_through, caller)))
    return found


def _read(parser: type[StreamParserBase], reply: StreamedReply, *, raw: bool, live: bool = False) -> Case:
    """Our reader alone. `live`: the arguments as far as they go are looked at with every delta."""
    chunks: Sequence[Any] = reply.frames if raw else reply.events

    def read(_: object) -> Msg:
        reader = parser()
        for chunk in chunks:
            for event in reader.feed(chunk):
                if live and type(event) is ToolUseDelta:
                    _ = event.input
        return reader.finish()

    return Case(finish_background_work, read)


def _through(caller: Caller, reply: StreamedReply) -> Case:
    """A caller's stream over its client."""
    made, history = caller.caller(reply.response), caller.prepare(build_mixed_chat(4))
    return Case(finish_background_work, lambda _: run_async(_exhausted(caller.stream(made, history))))


def _through_model(api: str, reply: StreamedReply) -> Case:
    """Ours over the same client, to the message."""
    model = create_model(api, CLIENTS[api](reply.response))
    msgs = [Msg("Alice", "Go on.", "user")]

    async def read() -> Msg:
        async with model.stream(msgs) as stream:
            await _exhausted(stream)
        return stream.message

    return Case(finish_background_work, lambda _: run_async(read()))


async def _exhausted(events: AsyncIterator[Any]) -> None:
    async for _ in events:
        pass


# -- what is shown ----------------------------------------------------------------------------------------------


def _each(row: _Row, found: Mapping[int, dict[_Row, Samples]]) -> list[float]:
    """Microseconds a delta, at every size."""
    return [taken[row].median / n * 1e6 if row in taken else math.nan for n, taken in found.items()]


def _growth(row: _Row, found: Mapping[int, dict[_Row, Samples]]) -> float:
    """The exponent, over all sizes."""
    points = [(n, taken[row].median) for n, taken in found.items() if row in taken]
    return fit_exponent([n for n, _ in points], [seconds for _, seconds in points])


def _table(api: str, rows: Sequence[_Row], found: Mapping[int, dict[_Row, Samples]]) -> Table:
    head = ["", *(f"n={n:,}" for n in found), "exponent", "× agentkit, bytes"]
    shown: list[list[object]] = []
    for row in (row for row in rows if row.api == api):
        over = _over(row, _find(rows, api, row.kind, _BYTES), found)
        shown.append([f"{row.who}: {_KINDS[row.kind]}", *_each(row, found), _growth(row, found), over])
    return Table(f"µs a delta, {api}, one event a chunk", head, shown)


def _over(row: _Row, base: _Row, found: Mapping[int, dict[_Row, Samples]]) -> float:
    """How many times what another takes, at the largest size that both were measured at."""
    return [taken[row].ratio_to(taken[base]) for taken in found.values() if row in taken][-1]


def _find(rows: Sequence[_Row], api: str, kind: str, who: str) -> _Row:
    return next(row for row in rows if (row.api, row.kind, row.who) == (api, kind, who))


def _who(rows: Sequence[_Row]) -> list[str]:
    return list(dict.fromkeys(row.who for row in rows))


def _short(rows: Sequence[_Row], found: Mapping[int, dict[_Row, Samples]]) -> Table:
    """A line a reader and wire; both kinds at the largest size measured."""
    shown: list[list[object]] = []
    for api in APIS:
        for who in _who([row for row in rows if row.api == api and _is_shown(row)]):
            cells: list[object] = []
            for kind in _KINDS:
                row = next((one for one in rows if (one.api, one.kind, one.who) == (api, kind, who)), None)
                each = [] if row is None else [found for found in _each(row, found) if not math.isnan(found)]
                ours = _over(row, _find(rows, api, kind, _BYTES), found) if row else math.nan
                cells += [each[-1] if each else math.nan, ours]
            shown.append([f"{api}: {who}", *cells])
    head = ["", "text, µs", "× agentkit", "tool arguments, µs", "× agentkit"]
    return Table("A delta to an event, at the most deltas measured", head, shown)


def _is_shown(row: _Row) -> bool:
    """All of one wire; of the others ours and the SDK's."""
    return row.who != _DICTS and (row.api == _ALOUD or row.who in (_BYTES, _MODEL) or row.who.endswith("SDK"))


def _bars(rows: Sequence[_Row], found: Mapping[int, dict[_Row, Samples]]) -> dict[str, float]:
    held = [row for row in rows if (row.api, row.kind) == (_ALOUD, "tools") and row.who != _DICTS]
    return {row.who: [one for one in _each(row, found) if not math.isnan(one)][-1] for row in held}


# -- what was to be reached -------------------------------------------------------------------------------------


def _aims(rows: Sequence[_Row], found: Mapping[int, dict[_Row, Samples]]) -> list[Aim]:
    aims: list[Aim] = []
    largest = list(found)[-1]
    for kind, said in _KINDS.items():
        ours = _find(rows, _ALOUD, kind, _BYTES)
        base = next((row for row in rows if (row.api, row.kind, row.who) == (_ALOUD, kind, "OpenAI SDK")), None)
        if base:
            over = _over(base, ours, found)
            what = f"A delta of {said} to an event, OpenAI Chat, {largest:,} deltas"
            aims.append(Aim(what, "≤ 1/10 of the SDK's chunks", f"1/{over:.0f}", over >= _GOAL))
    readers = [row for row in rows if row.who in (_BYTES, _DICTS, _INPUT)]
    grown = max(_growth(row, found) for row in readers)
    what = f"… its exponent up to {largest:,} deltas, worst reader, wire and kind"
    aims.append(Aim(what, "≤ 1.05", f"{grown:.2f}", grown <= 1.05))
    live = [row for row in rows if row.who == _INPUT]
    most = max(_over(row, _find(rows, row.api, row.kind, _BYTES), found) for row in live)
    aims.append(Aim("… with the arguments read at every delta, worst wire", "≤ 2 ×", f"{most:.2f} ×", most <= 2))
    return aims
