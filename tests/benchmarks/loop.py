"""Time of a ReAct loop that formats a request within a budget after each step, compared with a copy loop.

The copy loop has the native dicts of all messages. For each request it copies the dicts that fit the budget at
that step, because the caller may change a request. Strings are shared.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeAlias

from agentkit import Budget, CharacterTokenCounter, Msg
from agentkit.provider_kit import FormatterBase
from agentkit_anthropic import AnthropicChatFormatter, AnthropicMultiAgentFormatter
from agentkit_openai import OpenAIChatFormatter, OpenAIMultiAgentFormatter
from tests.benchmarks import floor, peers
from tests.benchmarks.cutting import get_weights
from tests.benchmarks.histories import PlainMsg, as_msgs, build_react_loop
from tests.benchmarks.measure import Case, Samples, format_seconds, get_step_exponents, interleave
from tests.benchmarks.plots import draw_lines
from tests.benchmarks.report import Aim, Report, Table

__all__ = ["copy_requests", "count_dropped", "run"]

FormatterFactory: TypeAlias = Callable[..., FormatterBase]

FORMATTERS: dict[str, tuple[FormatterFactory, floor.Floor]] = {
    "OpenAI": (OpenAIChatFormatter, floor.convert_openai),
    "Anthropic": (AnthropicChatFormatter, floor.convert_anthropic),
    "OpenAI multi-agent": (OpenAIMultiAgentFormatter, floor.convert_multi_openai),
    "Anthropic multi-agent": (AnthropicMultiAgentFormatter, floor.convert_multi_anthropic),
}
_BUDGET_DIVISOR = 5  # the budget is a fifth of the tokens of the complete history


def run(quick: bool = False) -> Report:
    """Measures loops of several lengths. Each step adds tool calls and their results, and formats one request."""
    sizes = [20, 40] if quick else [125, 250, 500]
    samples = [_measure_agentkit(steps, 1 if quick else 5) for steps in sizes]
    problems: list[str] = []
    peer_samples = [_measure_peers(steps, problems) for steps in sizes]
    rows: list[list[object]] = []
    aims: list[Aim] = []
    for name in FORMATTERS:
        base, agentkit = f"copy loop, {name}", f"agentkit {name}"
        ratio = samples[-1][agentkit].ratio_to(samples[-1][base])
        exponent, base_exponent = (
            get_step_exponents(sizes, [each[case].median for each in samples])[-1] for case in (agentkit, base)
        )
        rows.append(
            [
                name,
                *(format_seconds(samples[-1][case].median) for case in (base, agentkit)),
                ratio,
                base_exponent,
                exponent,
            ]
        )
        aims.append(Aim(f"Loop of {sizes[-1]} steps, {name}", "≤ 3 × copying", f"{ratio:.2f} ×", ratio <= 3))
        goal = f"≤ {base_exponent:.2f} + 0.1"
        aims.append(
            Aim(
                f"Growth exponent of the loop over its steps, {name}",
                goal,
                f"{exponent:.2f}",
                exponent <= base_exponent + 0.1,
            )
        )
    head = ["", "copy loop", "agentkit", "ratio", "growth exponent of copying", "growth exponent of agentkit"]
    table = Table(f"ReAct loop of {sizes[-1]} steps, budget 20%", head, rows)
    peer_table = _build_peer_table(sizes[-1], samples[-1], peer_samples[-1])
    plot = draw_lines(
        "A ReAct loop within a budget: total CPU time",
        sizes,
        _get_series(samples, peer_samples),
        format_seconds,
        "steps",
    )
    tables = [
        table,
        _build_table_without_budget(sizes[-1], samples[-1]),
        *([peer_table] if peer_table.rows else []),
    ]
    return Report(tables, [tables[0], *tables[2:]], aims, {"loop.svg": plot}, list(dict.fromkeys(problems)))


def _get_series(
    samples: Sequence[dict[str, Samples]], peer_samples: Sequence[dict[str, Samples]]
) -> dict[str, list[float]]:
    names = [f"{prefix}{api}" for api in ("OpenAI", "Anthropic") for prefix in ("copy loop, ", "agentkit ")]
    series = {name: [each[name].median for each in samples] for name in names}
    return series | {name: [each[name].median for each in peer_samples] for name in peer_samples[-1]}


def _build_peer_table(steps: int, samples: dict[str, Samples], peer_samples: dict[str, Samples]) -> Table:
    rows: list[list[object]] = []
    for name, sample in peer_samples.items():
        api = "Anthropic" if "Anthropic" in name else "OpenAI"
        ratios = (sample.median / samples[case].median for case in (f"copy loop, {api}", f"agentkit {api}"))
        rows.append([name, format_seconds(sample.median), *ratios])
    return Table(f"Other libraries, {steps} steps, budget 20%", ["", "total", "× copy loop", "× agentkit"], rows)


def _build_table_without_budget(steps: int, samples: dict[str, Samples]) -> Table:
    """Returns the time of `lower()` with the complete history at each step."""
    rows: list[list[object]] = []
    for api in ("OpenAI", "Anthropic"):
        base, agentkit = samples[f"rebuilt, {api}"], samples[f"agentkit {api}, lower()"]
        rows.append([f"{api}, lower()", format_seconds(agentkit.median), agentkit.ratio_to(base)])
    return Table(f"ReAct loop of {steps} steps, no budget", ["", "total", "× floor at each step"], rows)


def _measure_agentkit(steps: int, rounds: int) -> dict[str, Samples]:
    plain = build_react_loop(2 + 2 * steps)
    create_msgs = partial(as_msgs, plain)
    cases: dict[str, Case] = {}
    for name, (factory, loop) in FORMATTERS.items():
        create_formatter = partial(factory, budget=Budget(get_limit(factory, plain)))
        dropped_counts = count_dropped(create_formatter, plain)
        cases[f"copy loop, {name}"] = Case(lambda: plain, partial(copy_requests, loop, dropped_counts))
        cases[f"agentkit {name}"] = Case(create_msgs, partial(format_after_each_step, create_formatter))
        if "multi" not in name:
            cases[f"rebuilt, {name}"] = Case(lambda: plain, partial(rebuild_requests, loop))
            cases[f"agentkit {name}, lower()"] = Case(create_msgs, partial(lower_after_each_step, factory))
    return interleave(cases, rounds, collector=True)


def _measure_peers(steps: int, problems: list[str]) -> dict[str, Samples]:
    """Returns one sample of each library that can cut. The library cuts and converts after each step."""
    plain = build_react_loop(2 + 2 * steps)
    limit = max(sum(get_weights(plain)) // _BUDGET_DIVISOR, 1_500)

    def case(cutter: peers.Cutter) -> Case:
        def loop(msgs: Any) -> None:
            for end in range(4, len(msgs) + 1, 2):
                cutter.convert(cutter.cut(msgs[:end], limit))

        return Case(partial(cutter.prepare, plain), loop)

    cases = {cutter.name: case(cutter) for cutter in peers.load_cutters(problems)}
    return interleave(cases, 1, collector=True, warm=False)


def get_limit(factory: FormatterFactory, plain: Sequence[PlainMsg]) -> int:
    """Returns a fifth of the tokens of the complete history, at least 1,500."""
    size = CharacterTokenCounter().measure(factory().lower(as_msgs(plain)).request, factory())
    return max(size // _BUDGET_DIVISOR, 1_500)


def count_dropped(factory: FormatterFactory, plain: Sequence[PlainMsg]) -> list[int]:
    """Returns the number of messages that the budget drops at each step."""
    msgs, formatter = as_msgs(plain), factory()
    counts: list[int] = []
    for end in range(4, len(msgs) + 1, 2):
        cut = peers.run_async(formatter.plan(msgs[:end])).cut
        counts.append(len(cut.numbers) if cut else 0)
    return counts


def copy_requests(loop: floor.Floor, dropped_counts: Sequence[int], plain: Sequence[PlainMsg]) -> object:
    """Creates native dicts once. Each request is a copy of the dicts that fit the budget."""
    native = loop(plain[:2], False)
    first, starts = len(native), [len(native)]  # index of the first dict of each step
    request: Any = None
    for end, dropped in zip(range(4, len(plain) + 1, 2), dropped_counts, strict=True):
        native.extend(loop(plain[end - 2 : end], False))
        starts.append(len(native))
        request = floor.copy_json(native[:first] + native[starts[dropped // 2] :])
    return request


def rebuild_requests(loop: floor.Floor, plain: Sequence[PlainMsg]) -> object:
    """Creates the native dicts of the complete history for each request."""
    request: Any = None
    for end in range(4, len(plain) + 1, 2):
        request = loop(plain[:end], False)
    return request


def lower_after_each_step(factory: FormatterFactory, msgs: list[Msg]) -> object:
    """Calls `formatter.lower()` after each step."""
    formatter = factory()
    request: Any = None
    for end in range(4, len(msgs) + 1, 2):
        request = formatter.lower(msgs[:end]).request
    return request


def format_after_each_step(factory: FormatterFactory, msgs: list[Msg]) -> object:
    """Calls `await formatter.format()` after each step."""

    async def steps() -> object:
        formatter = factory()
        request: Any = None
        for end in range(4, len(msgs) + 1, 2):
            request = await formatter.format(msgs[:end])
        return request

    return peers.run_async(steps())
