"""Time of conversion with every formatter, compared with the floor, `json.dumps` and other libraries.

A conversion is cold if the messages are new, and warm if the formatter has already converted and cached them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from agentkit import load_provider
from agentkit.provider_kit import FormatterBase
from tests.benchmarks import floor, peers
from tests.benchmarks.histories import MIXES, PlainMsg, as_msgs, copy_plain
from tests.benchmarks.measure import Case, Samples, fit_exponent, format_seconds, get_step_exponents, interleave
from tests.benchmarks.plots import draw_bars
from tests.benchmarks.report import Aim, Report, Table
from tests.providers import MESSAGE_PROVIDERS

__all__ = ["run"]

# Providers to compare with the floor for Anthropic. All others are compared with the floor for OpenAI.
_LIKE_ANTHROPIC = {"anthropic", "gemini"}
_GOALS = {
    ("openai", "chat"): 2.5,
    ("anthropic", "chat"): 2.0,
    ("openai", "multi"): 3.0,
    ("anthropic", "multi"): 3.0,
}


def create_formatters() -> dict[tuple[str, str], FormatterBase]:
    """Returns the formatters of all installed providers, by provider and history policy."""
    formatters: dict[tuple[str, str], FormatterBase] = {}
    for name in MESSAGE_PROVIDERS:
        provider = load_provider(name)
        formatters[name, "chat"] = provider.chat_formatter()
        formatters[name, "multi"] = provider.multi_agent_formatter()
    return formatters


def run(quick: bool = False, mixes: Sequence[str] = ("react", "mixed", "group")) -> Report:
    """Measures conversions of several mixes and sizes, and the growth over sizes."""
    rounds = 1 if quick else 21
    sizes = [10, 20, 40] if quick else [10, 100, 1_000, 10_000]
    middle = sizes[-1] if quick else 1_000
    problems: list[str] = []
    tables = [measure_size(mix, middle, rounds, problems) for mix in (mixes[:1] if quick else mixes)]
    tables.append(measure_size(mixes[0], middle, rounds, problems, collector=True))
    tables.append(measure_growth(mixes[0], sizes, (rounds + 1) // 2))
    ratios = {str(row[0]): float(str(row[2])) for row in tables[0].rows}
    aims: list[Aim] = []
    for (name, policy), goal in _GOALS.items():
        ratio = ratios[f"{name} {policy} cold"]
        measurement = f"Cold conversion of {middle:,} messages, {name} {policy}"
        aims.append(Aim(measurement, f"≤ {goal} × floor", f"{ratio:.1f} ×", ratio <= goal))
    exponent = max(float(str(row[-2])) for row in tables[-1].rows if "floor" not in str(row[0]))
    aims.append(
        Aim("Growth exponent of cold conversion, worst formatter", "≤ 1.05", f"{exponent:.2f}", exponent <= 1.05)
    )
    plotted = {_get_plot_name(name): ratio for name, ratio in ratios.items() if _get_plot_name(name)}
    title = f"Conversion of {middle:,} messages of a ReAct loop, relative to a hand-written loop"
    plot = draw_bars(title, plotted, lambda value: f"{value:.1f}", log=True)
    return Report(tables, (), aims, {"conversion.svg": plot}, list(dict.fromkeys(problems)))


def _get_plot_name(row: str) -> str:
    """Returns the name of a row in the plot, or an empty text if the plot omits the row."""
    if row.startswith(("LangChain", "litellm", "pydantic", "AgentScope")):
        return row
    return _PLOT_NAMES.get(row, "")


_PLOT_NAMES = {
    "floor openai": "floor OpenAI",
    "floor anthropic": "floor Anthropic",
    "openai chat cold": "agentkit OpenAI",
    "openai multi cold": "agentkit OpenAI multi-agent",
    "anthropic chat cold": "agentkit Anthropic",
    "anthropic multi cold": "agentkit Anthropic multi-agent",
}


def _get_floor_cases(plain: Sequence[PlainMsg]) -> dict[str, Case]:
    def create_case(loop: floor.Floor, dump: bool) -> Case:
        return Case(partial(copy_plain, plain), lambda msgs: loop(msgs, dump))

    return {
        "floor openai": create_case(floor.convert_openai, False),
        "floor openai, dumps": create_case(floor.convert_openai, True),
        "floor anthropic": create_case(floor.convert_anthropic, False),
        "floor anthropic, shared": create_case(floor.convert_anthropic, True),
        "floor multi openai": create_case(floor.convert_multi_openai, False),
        "floor multi anthropic": create_case(floor.convert_multi_anthropic, False),
    }


def create_cold_case(plain: Sequence[PlainMsg], formatter: FormatterBase) -> Case:
    """Returns a case that converts new messages each time."""
    return Case(partial(as_msgs, plain), formatter.lower)


def create_warm_case(plain: Sequence[PlainMsg], formatter: FormatterBase) -> Case:
    """Returns a case that converts the same messages each time, in a new list."""
    msgs = as_msgs(plain)
    formatter.lower(msgs)
    return Case(lambda: list(msgs), formatter.lower)


def _create_dump_case(plain: Sequence[PlainMsg], loop: floor.Floor) -> Case:
    return Case(lambda: loop(plain, False), json.dumps)


def measure_size(mix: str, n: int, rounds: int, problems: list[str], collector: bool = False) -> Table:
    """Returns the times of all formatters and other libraries for `n` messages of a mix."""
    plain = MIXES[mix](n)
    cases = _get_floor_cases(plain)
    cases["json.dumps openai"] = _create_dump_case(plain, floor.convert_openai)
    cases["json.dumps anthropic"] = _create_dump_case(plain, floor.convert_anthropic)
    for (name, policy), formatter in create_formatters().items():
        cases[f"{name} {policy} cold"] = create_cold_case(plain, formatter)
        cases[f"{name} {policy} warm"] = create_warm_case(plain, formatter)
    peers_by_name = {peer.name: peer for peer in peers.load_conversions(problems)}
    cases |= {name: Case(partial(peer.prepare, plain), peer.run) for name, peer in peers_by_name.items()}
    samples = interleave(cases, rounds, _get_batch_size(n, rounds), collector)
    rows: list[list[object]] = []
    for name, sampled in samples.items():
        if not name.endswith("warm"):
            rows.append(_build_row(name, sampled, samples, peers_by_name, n))
    state = "on" if collector else "off"
    head = ["", "µs per message", "× floor", "× floor with dumps", "× multi-agent floor", "warm, × floor", "goal"]
    return Table(f"Conversion, {n} messages, mix {mix!r}, garbage collector {state}", head, rows)


def _build_row(
    name: str, sampled: Samples, samples: dict[str, Samples], peers_by_name: dict[str, peers.Peer], n: int
) -> list[object]:
    """Returns microseconds per message, and ratios to the floors. Only some rows have a multi-agent floor."""
    api, policy = "openai", "chat"
    warm_ratio: object = ""
    goal: object = ""
    if name in peers_by_name:
        api, policy = peers_by_name[name].floor, "multi" if "multi" in name else "chat"
    elif name.endswith(" cold"):
        provider, policy, _ = name.rsplit(" ", 2)
        api = "anthropic" if provider in _LIKE_ANTHROPIC else "openai"
        warm_ratio = samples[f"{provider} {policy} warm"].ratio_to(samples[f"floor {api}"])
        goal = _GOALS.get((provider, policy), "")
    elif "anthropic" in name:
        api = "anthropic"
    dump_sample = samples["floor openai, dumps" if api == "openai" else "floor anthropic, shared"]
    multi_ratio = sampled.ratio_to(samples[f"floor multi {api}"]) if policy == "multi" else ""
    base = samples[f"floor {api}"]
    return [
        name,
        sampled.median / n * 1e6,
        sampled.ratio_to(base),
        sampled.ratio_to(dump_sample),
        multi_ratio,
        warm_ratio,
        goal,
    ]


def measure_growth(mix: str, sizes: Sequence[int], rounds: int) -> Table:
    """Returns the times of cold conversion over sizes, and their growth exponent without the smallest size."""
    case_factories: dict[str, Callable[[Sequence[PlainMsg]], Case]] = {
        "floor openai": lambda plain: _get_floor_cases(plain)["floor openai"],
        "floor anthropic": lambda plain: _get_floor_cases(plain)["floor anthropic"],
    }
    for (name, policy), formatter in create_formatters().items():
        case_factories[f"{name} {policy}"] = partial(create_cold_case, formatter=formatter)
    all_samples: dict[str, list[Samples]] = {name: [] for name in case_factories}
    for n in sizes:
        plain = MIXES[mix](n)
        cases = {name: create_case(plain) for name, create_case in case_factories.items()}
        samples = interleave(cases, rounds if n < 10_000 else max(3, rounds // 2), _get_batch_size(n, rounds))
        for name, sampled in samples.items():
            all_samples[name].append(sampled)
    rows: list[list[Any]] = []
    for name, by_size in all_samples.items():
        medians = [sampled.median for sampled in by_size]
        base = all_samples["floor anthropic" if name.split(maxsplit=1)[0] in _LIKE_ANTHROPIC else "floor openai"]
        ratios = [sampled.ratio_to(base_sample) for sampled, base_sample in zip(by_size, base, strict=True)]
        exponent = fit_exponent(sizes[1:], medians[1:])
        rows.append(
            [name, *map(format_seconds, medians), *ratios, exponent, get_step_exponents(sizes, medians)[-1]]
        )
    head = [
        "",
        *(f"n={n}" for n in sizes),
        *(f"× floor, n={n}" for n in sizes),
        "exponent",
        "exponent of last step",
    ]
    return Table(f"Growth of cold conversion, mix {mix!r} (goal: exponent <= 1.05)", head, rows)


def _get_batch_size(n: int, rounds: int) -> int:
    """Returns the number of histories in each sample. One small history takes too little time to measure."""
    return 1 if rounds == 1 else max(1, min(50, 4_000 // n))
