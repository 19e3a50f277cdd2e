"""Conversion: every formatter cold and warm, beside the floor, `json.dumps` of the request, and the peers."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from agentkit import available_providers, load_provider
from agentkit.provider_kit import FormatterBase
from tests.benchmarks import floor, peers
from tests.benchmarks.histories import MIXES, PlainMsg, as_msgs, copy_plain
from tests.benchmarks.measure import Case, Samples, fit_exponent, format_seconds, get_step_exponents, interleave
from tests.benchmarks.plots import draw_bars
from tests.benchmarks.report import Aim, Report, Table

__all__ = ["run"]

# Which floor a wire stands beside: the one whose form is nearest.
_LIKE_ANTHROPIC = {"anthropic", "gemini"}
_GOALS = {
    ("openai", "chat"): 2.5,
    ("anthropic", "chat"): 2.0,
    ("openai", "multi"): 3.0,
    ("anthropic", "multi"): 3.0,
}


def formatters() -> dict[tuple[str, str], FormatterBase]:
    """All formatters of all installed providers, by provider and policy."""
    found: dict[tuple[str, str], FormatterBase] = {}
    for name in available_providers():
        provider = load_provider(name)
        found[name, "chat"] = provider.chat_formatter()
        found[name, "multi"] = provider.multi_agent_formatter()
    return found


def run(quick: bool = False, mixes: Sequence[str] = ("react", "mixed", "group")) -> Report:
    """Every table."""
    rounds = 1 if quick else 21
    sizes = [10, 20, 40] if quick else [10, 100, 1_000, 10_000]
    middle = sizes[-1] if quick else 1_000
    problems: list[str] = []
    tables = [at_size(mix, middle, rounds, problems) for mix in (mixes[:1] if quick else mixes)]
    tables.append(at_size(mixes[0], middle, rounds, problems, collector=True))
    tables.append(growth(mixes[0], sizes, (rounds + 1) // 2))
    over = {str(row[0]): float(str(row[2])) for row in tables[0].rows}
    aims: list[Aim] = []
    for (name, policy), goal in _GOALS.items():
        found = over[f"{name} {policy} cold"]
        what = f"Cold conversion of {middle:,} messages, {name} {policy}"
        aims.append(Aim(what, f"≤ {goal} × floor", f"{found:.1f} ×", found <= goal))
    grown = max(float(str(row[-2])) for row in tables[-1].rows if "floor" not in str(row[0]))
    aims.append(Aim("… its exponent, worst formatter", "≤ 1.05", f"{grown:.2f}", grown <= 1.05))
    shown = {_shown(name): found for name, found in over.items() if _shown(name)}
    title = f"Converting {middle:,} messages of a ReAct loop, times a hand-written floor"
    plot = draw_bars(title, shown, lambda value: f"{value:.1f}", log=True)
    return Report(tables, (), aims, {"conversion.svg": plot}, list(dict.fromkeys(problems)))


def _shown(row: str) -> str:
    """A row's name in the plot; nothing for what the plot leaves out."""
    if row.startswith(("LangChain", "litellm", "pydantic", "AgentScope")):
        return row
    return _SHOWN.get(row, "")


_SHOWN = {
    "floor openai": "floor OpenAI",
    "floor anthropic": "floor Anthropic",
    "openai chat cold": "agentkit OpenAI",
    "openai multi cold": "agentkit OpenAI multi-agent",
    "anthropic chat cold": "agentkit Anthropic",
    "anthropic multi cold": "agentkit Anthropic multi-agent",
}


def _floors(plain: Sequence[PlainMsg]) -> dict[str, Case]:
    def case(loop: floor.Floor, dump: bool) -> Case:
        return Case(partial(copy_plain, plain), lambda msgs: loop(msgs, dump))

    return {
        "floor openai": case(floor.convert_openai, False),
        "floor openai, dumps": case(floor.convert_openai, True),
        "floor anthropic": case(floor.convert_anthropic, False),
        "floor anthropic, shared": case(floor.convert_anthropic, True),
        "floor multi openai": case(floor.convert_multi_openai, False),
        "floor multi anthropic": case(floor.convert_multi_anthropic, False),
    }


def cold(plain: Sequence[PlainMsg], formatter: FormatterBase) -> Case:
    """Fresh messages each time."""
    return Case(partial(as_msgs, plain), formatter.lower)


def warm(plain: Sequence[PlainMsg], formatter: FormatterBase) -> Case:
    """The same messages each time, in a fresh list."""
    msgs = as_msgs(plain)
    formatter.lower(msgs)
    return Case(lambda: list(msgs), formatter.lower)


def _dumping(plain: Sequence[PlainMsg], loop: floor.Floor) -> Case:
    return Case(lambda: loop(plain, False), json.dumps)


def at_size(mix: str, n: int, rounds: int, problems: list[str], collector: bool = False) -> Table:
    """All formatters and peers at one size of one mix."""
    plain = MIXES[mix](n)
    cases = _floors(plain)
    cases["json.dumps openai"] = _dumping(plain, floor.convert_openai)
    cases["json.dumps anthropic"] = _dumping(plain, floor.convert_anthropic)
    for (name, policy), formatter in formatters().items():
        cases[f"{name} {policy} cold"] = cold(plain, formatter)
        cases[f"{name} {policy} warm"] = warm(plain, formatter)
    others = {peer.name: peer for peer in peers.load_conversions(problems)}
    cases |= {name: Case(partial(peer.prepare, plain), peer.run) for name, peer in others.items()}
    samples = interleave(cases, rounds, _batch(n, rounds), collector)
    rows: list[list[object]] = []
    for name, sampled in samples.items():
        if not name.endswith("warm"):
            rows.append(_row(name, sampled, samples, others, n))
    state = "on" if collector else "off"
    head = ["", "us/msg", "x floor", "x floor dump", "x own floor", "warm x floor", "goal"]
    return Table(f"Conversion, {n} messages, mix {mix!r}, collector {state}", head, rows)


def _row(
    name: str, sampled: Samples, samples: dict[str, Samples], others: dict[str, peers.Peer], n: int
) -> list[object]:
    """µs a message; times the plain floors, and times the multi-agent floor where there is one."""
    api, policy = "openai", "chat"
    warmed: object = ""
    goal: object = ""
    if name in others:
        api, policy = others[name].floor, "multi" if "multi" in name else "chat"
    elif name.endswith(" cold"):
        provider, policy, _ = name.rsplit(" ", 2)
        api = "anthropic" if provider in _LIKE_ANTHROPIC else "openai"
        warmed = samples[f"{provider} {policy} warm"].ratio_to(samples[f"floor {api}"])
        goal = _GOALS.get((provider, policy), "")
    elif "anthropic" in name:
        api = "anthropic"
    dumped = samples["floor openai, dumps" if api == "openai" else "floor anthropic, shared"]
    own = sampled.ratio_to(samples[f"floor multi {api}"]) if policy == "multi" else ""
    base = samples[f"floor {api}"]
    return [name, sampled.median / n * 1e6, sampled.ratio_to(base), sampled.ratio_to(dumped), own, warmed, goal]


def growth(mix: str, sizes: Sequence[int], rounds: int) -> Table:
    """Cold times over sizes, and the exponent of their growth without the smallest size."""
    makers: dict[str, Callable[[Sequence[PlainMsg]], Case]] = {
        "floor openai": lambda plain: _floors(plain)["floor openai"],
        "floor anthropic": lambda plain: _floors(plain)["floor anthropic"],
    }
    for (name, policy), formatter in formatters().items():
        makers[f"{name} {policy}"] = partial(cold, formatter=formatter)
    taken: dict[str, list[Samples]] = {name: [] for name in makers}
    for n in sizes:
        plain = MIXES[mix](n)
        cases = {name: make(plain) for name, make in makers.items()}
        samples = interleave(cases, rounds if n < 10_000 else max(3, rounds // 2), _batch(n, rounds))
        for name, sampled in samples.items():
            taken[name].append(sampled)
    rows: list[list[Any]] = []
    for name, found in taken.items():
        medians = [sampled.median for sampled in found]
        base = taken["floor anthropic" if name.split(maxsplit=1)[0] in _LIKE_ANTHROPIC else "floor openai"]
        ratios = [sampled.ratio_to(its) for sampled, its in zip(found, base, strict=True)]
        grown = fit_exponent(sizes[1:], medians[1:])
        rows.append([name, *map(format_seconds, medians), *ratios, grown, get_step_exponents(sizes, medians)[-1]])
    head = ["", *(f"n={n}" for n in sizes), *(f"x floor {n}" for n in sizes), "exponent", "last step"]
    return Table(f"Growth, cold, mix {mix!r} (aim: exponent <= 1.05)", head, rows)


def _batch(n: int, rounds: int) -> int:
    """How many histories one sample holds: small ones are near the clock's own cost."""
    return 1 if rounds == 1 else max(1, min(50, 4_000 // n))
