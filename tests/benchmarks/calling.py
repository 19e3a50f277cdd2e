"""From a history to a reply, over an SDK's client whose transport answers from memory, beside SDKs and peers."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from agentkit import Msg
from tests.benchmarks.callers import (
    POST,
    Caller,
    create_model,
    load_peer_callers,
    load_post_callers,
    load_sdk_callers,
)
from tests.benchmarks.histories import PlainMsg, as_msgs, build_mixed_chat
from tests.benchmarks.measure import Case, Samples, format_seconds, interleave
from tests.benchmarks.peers import finish_background_work, run_async
from tests.benchmarks.plots import draw_bars
from tests.benchmarks.report import Aim, Report, Table
from tests.benchmarks.sdk_clients import CLIENTS, build_response

__all__ = ["run"]

_COLD, _WARM = "agentkit, messages never seen before", "agentkit, messages seen before"
_MEASURE = ("OpenAI Chat", "OpenAI Responses", "Gemini")  # wires whose SDK walks the request, as all peers let it
_GOAL = 30.0
_POSTED = 2.0


def run(quick: bool = False) -> Report:
    """Every table."""
    sizes = [4, 8] if quick else [10, 100, 1_000]
    problems: list[str] = []
    others = [*load_sdk_callers(problems), *load_peer_callers(problems), *load_post_callers(problems)]
    apis = list(dict.fromkeys(one.api for one in others))
    tables: list[Table] = []
    lines: list[list[object]] = []
    aims: list[Aim] = []
    shown: dict[str, float] = {}
    for api in apis:
        held = [one for one in others if one.api == api]
        found = [_measured(api, build_mixed_chat(n), held, 1 if quick else 9) for n in sizes]
        tables.append(_table(api, sizes, found))
        lines += [[*row[: len(sizes) + 1], row[-1]] for row in tables[-1].rows]
        if api in _MEASURE:
            aims.append(_aim(api, sizes[-1], found[-1]))
        elif POST in found[-1]:
            aims.append(_near_the_post(api, sizes[-1], found[-1]))
        shown |= {f"{_plotted(who)}, {api}": one.median for who, one in found[-1].items() if who != _WARM}
    plot = draw_bars(f"From {sizes[-1]:,} messages to a reply, CPU time", shown, format_seconds, log=True)
    head = ["", *(f"{n:,} messages" for n in sizes), f"× agentkit, {sizes[-1]:,}"]
    short = Table("History to reply", head, lines)
    return Report(tables, [short], aims, {"calling.svg": plot}, list(dict.fromkeys(problems)))


def _plotted(who: str) -> str:
    return "agentkit" if who == _COLD else who


def _measured(api: str, plain: Sequence[PlainMsg], others: Sequence[Caller], rounds: int) -> dict[str, Samples]:
    """A sample of several calls where one is near the clock's own cost."""
    response = build_response(api)
    client = CLIENTS[api](response)
    model = create_model(api, client)
    seen = as_msgs(plain)
    cases = {
        _COLD: Case(partial(as_msgs, plain), partial(_generated, api, client)),
        _WARM: Case(lambda: list(seen), lambda msgs: run_async(model.generate(msgs))),
    }
    for one in others:
        made = one.caller(response)
        cases[_name(one)] = Case(partial(one.prepare, plain), partial(_called, one, made))
    for case in cases.values():
        case.run(case.prepare())  # what a first call imports is in nobody's heap afterwards, as far as it is timed
    cases = {who: Case(partial(_prepared, case), case.run) for who, case in cases.items()}
    return interleave(cases, rounds, 1 if rounds == 1 else max(1, 200 // len(plain)), collector=True)


def _prepared(case: Case) -> Any:
    finish_background_work()
    return case.prepare()


def _name(caller: Caller) -> str:
    return f"{caller.name}, a finished request" if caller.name.endswith("SDK") else caller.name


def _called(caller: Caller, made: Any, history: Any) -> object:
    return run_async(caller.call(made, history))


def _generated(api: str, client: Any, msgs: list[Msg]) -> object:
    """A model of its own: a formatter that has seen nothing yet."""
    return run_async(create_model(api, client).generate(msgs))


def _table(api: str, sizes: Sequence[int], found: Sequence[dict[str, Samples]]) -> Table:
    rows: list[list[object]] = []
    for who in found[0]:
        over = [each[who].ratio_to(each[_COLD]) for each in found]
        rows.append([f"{api}: {who}", *(format_seconds(each[who].median) for each in found), *over])
    head = ["", *(f"{n:,} messages" for n in sizes), *(f"× agentkit, {n:,}" for n in sizes)]
    return Table(f"History to reply, {api}", head, rows)


def _aim(api: str, size: int, found: dict[str, Samples]) -> Aim:
    """The nearest of all others; the SDK itself, with a request that somebody has finished, is one of them."""
    over = min(one.ratio_to(found[_COLD]) for who, one in found.items() if who not in (_COLD, _WARM, POST))
    return Aim(
        f"History of {size:,} new messages to a reply, {api}, nearest peer or typed call of the SDK",
        "≤ 1/30",
        f"1/{over:.0f}",
        over >= _GOAL,
    )


def _near_the_post(api: str, size: int, found: dict[str, Samples]) -> Aim:
    """Where the SDK walks little, all that can be said is how near a call comes to one that does nothing."""
    over = found[_COLD].ratio_to(found[POST])
    return Aim(
        f"History of {size:,} new messages to a reply, {api}",
        f"≤ {_POSTED:g} × json.dumps and post",
        f"{over:.2f} ×",
        over <= _POSTED,
    )
