"""Time from a history to a reply with agentkit, SDKs and other libraries, with a transport in memory."""

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

_NEW, _FORMATTED = "agentkit, new messages", "agentkit, messages formatted before"
_TYPED_APIS = ("OpenAI Chat", "OpenAI Responses", "Gemini")  # APIs whose SDK converts each item of a request
_MIN_RATIO = 30.0
_MAX_POST_RATIO = 2.0


def run(quick: bool = False) -> Report:
    """Measures calls with histories of several sizes, for every API."""
    sizes = [4, 8] if quick else [10, 100, 1_000]
    problems: list[str] = []
    all_callers = [*load_sdk_callers(problems), *load_peer_callers(problems), *load_post_callers(problems)]
    apis = list(dict.fromkeys(caller.api for caller in all_callers))
    tables: list[Table] = []
    summary_rows: list[list[object]] = []
    aims: list[Aim] = []
    plotted: dict[str, float] = {}
    for api in apis:
        api_callers = [caller for caller in all_callers if caller.api == api]
        samples = [_measure(api, build_mixed_chat(n), api_callers, 1 if quick else 9) for n in sizes]
        tables.append(_build_table(api, sizes, samples))
        summary_rows += [[*row[: len(sizes) + 1], row[-1]] for row in tables[-1].rows]
        if api in _TYPED_APIS:
            aims.append(_build_typed_aim(api, sizes[-1], samples[-1]))
        elif POST in samples[-1]:
            aims.append(_build_post_aim(api, sizes[-1], samples[-1]))
        plotted |= {
            f"{_get_plot_name(name)}, {api}": caller.median
            for name, caller in samples[-1].items()
            if name != _FORMATTED
        }
    plot = draw_bars(f"From {sizes[-1]:,} messages to a reply, CPU time", plotted, format_seconds, log=True)
    head = ["", *(f"{n:,} messages" for n in sizes), f"× agentkit, {sizes[-1]:,}"]
    summary = Table("History to reply", head, summary_rows)
    return Report(tables, [summary], aims, {"calling.svg": plot}, list(dict.fromkeys(problems)))


def _get_plot_name(name: str) -> str:
    return "agentkit" if name == _NEW else name


def _measure(
    api: str, plain: Sequence[PlainMsg], all_callers: Sequence[Caller], rounds: int
) -> dict[str, Samples]:
    """Returns samples of all callers for one history. A sample of a short history has several calls."""
    response = build_response(api)
    client = CLIENTS[api](response)
    model = create_model(api, client)
    formatted = as_msgs(plain)
    cases = {
        _NEW: Case(partial(as_msgs, plain), partial(_generate, api, client)),
        _FORMATTED: Case(lambda: list(formatted), lambda msgs: run_async(model.generate(msgs))),
    }
    for caller in all_callers:
        client = caller.create_client(response)
        cases[_get_name(caller)] = Case(partial(caller.prepare, plain), partial(_call, caller, client))
    for case in cases.values():
        case.run(case.prepare())  # the first call of a library imports modules, which must not be timed
    cases = {name: Case(partial(_prepare, case), case.run) for name, case in cases.items()}
    return interleave(cases, rounds, 1 if rounds == 1 else max(1, 200 // len(plain)), collector=True)


def _prepare(case: Case) -> Any:
    finish_background_work()
    return case.prepare()


def _get_name(caller: Caller) -> str:
    return f"{caller.name}, a finished request" if caller.name.endswith("SDK") else caller.name


def _call(caller: Caller, client: Any, history: Any) -> object:
    return run_async(caller.call(client, history))


def _generate(api: str, client: Any, msgs: list[Msg]) -> object:
    """Calls a new model, whose formatter has empty caches."""
    return run_async(create_model(api, client).generate(msgs))


def _build_table(api: str, sizes: Sequence[int], samples: Sequence[dict[str, Samples]]) -> Table:
    rows: list[list[object]] = []
    for name in samples[0]:
        ratios = [each[name].ratio_to(each[_NEW]) for each in samples]
        rows.append([f"{api}: {name}", *(format_seconds(each[name].median) for each in samples), *ratios])
    head = ["", *(f"{n:,} messages" for n in sizes), *(f"× agentkit, {n:,}" for n in sizes)]
    return Table(f"History to reply, {api}", head, rows)


def _build_typed_aim(api: str, size: int, samples: dict[str, Samples]) -> Aim:
    """Returns the goal relative to the fastest other library or typed call of the SDK."""
    ratio = min(
        sample.ratio_to(samples[_NEW]) for name, sample in samples.items() if name not in (_NEW, _FORMATTED, POST)
    )
    return Aim(
        f"History of {size:,} new messages to a reply, {api}, relative to the fastest other library",
        "≤ 1/30",
        f"1/{ratio:.0f}",
        ratio >= _MIN_RATIO,
    )


def _build_post_aim(api: str, size: int, samples: dict[str, Samples]) -> Aim:
    """Returns the goal relative to a plain post, for an SDK that converts little of a request itself."""
    ratio = samples[_NEW].ratio_to(samples[POST])
    return Aim(
        f"History of {size:,} new messages to a reply, {api}",
        f"≤ {_MAX_POST_RATIO:g} × json.dumps and post",
        f"{ratio:.2f} ×",
        ratio <= _MAX_POST_RATIO,
    )
