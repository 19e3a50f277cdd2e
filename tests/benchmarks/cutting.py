"""Time to find a cut and to plan a request within a budget, compared with running sums and other libraries."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from functools import partial
from itertools import accumulate
from typing import Any

from agentkit import (
    Budget,
    CharacterTokenCounter,
    LocalTokenCounter,
    Msg,
    TextBlock,
    ToolResultBlock,
    ToolUseBlock,
)
from agentkit.budget.cut_plan import CutPlan
from agentkit.budget.units import Weigher
from agentkit_anthropic import AnthropicChatFormatter
from agentkit_openai import OpenAIChatFormatter
from tests.benchmarks.histories import (
    PlainCall,
    PlainMsg,
    PlainResult,
    PlainText,
    as_msgs,
    build_mixed_chat,
    build_react_loop,
)
from tests.benchmarks.measure import Case, Samples, fit_exponent, format_seconds, interleave
from tests.benchmarks.peers import Cutter, estimate_tokens, load_cutters, run_async
from tests.benchmarks.plots import draw_lines
from tests.benchmarks.report import Aim, Report, Table

__all__ = ["EstimatingCounter", "run", "count_weighings", "get_weights"]

_SHARES = (0.1, 0.5, 0.9)


class EstimatingCounter(LocalTokenCounter):
    """Counter of one token per four characters, which the other libraries use here too."""

    def measure(self, request: Any) -> int:
        return sum(estimate_tokens(part) for part in request.values())

    def weigh(self, msg: Msg) -> int:
        content = msg.content
        if isinstance(content, str):
            return len(content) // 4
        total = 0
        for block in content:
            if isinstance(block, TextBlock):
                total += len(block.text)
            elif isinstance(block, ToolUseBlock):
                total += len(block.arguments)
            elif isinstance(block, ToolResultBlock):
                total += len(block.text)
        return total // 4

    @property
    def key(self) -> object:
        return "estimate"


class CountingCounter(CharacterTokenCounter):
    """Default counter that counts how often it weighs a message."""

    def __init__(self) -> None:
        super().__init__()
        self.calls = 0

    @property
    def key(self) -> object:
        return ("counting", id(self))

    def weigh(self, msg: Msg) -> int:
        self.calls += 1
        return super().weigh(msg)


def run(quick: bool = False) -> Report:
    """Measures cuts at several sizes, their growth, and how often a message is weighed."""
    sizes = [50, 100] if quick else [1_000, 10_000]
    rounds = 1 if quick else 9
    problems: list[str] = []
    tables: list[Table] = []
    slowest = 0.0
    for n in sizes:
        samples = measure_size(n, rounds if n < 10_000 else max(3, rounds // 2), problems)
        tables.append(_build_table(n, samples))
        slowest = max(sampled.median for sampled in samples[_SAME_LIST].values())
    grown_sizes, series = measure_growth([50, 100] if quick else [100, 1_000, 10_000], problems)
    per_message = count_weighings(20 if quick else 500)
    aims = [
        Aim("Weighings of each message in a loop", "1", f"{per_message:.2f}", per_message == 1),
        Aim(f"Cut of {sizes[-1]:,} weighed messages", "≤ 0.2 ms", format_seconds(slowest), slowest <= 0.2e-3),
    ]
    plot = draw_lines("A cut to half of the history: CPU time", grown_sizes, series, format_seconds, "messages")
    return Report(
        [*tables, _build_growth_table(grown_sizes, series)],
        (),
        aims,
        {"cutting.svg": plot},
        list(dict.fromkeys(problems)),
    )


def count_weighings(steps: int) -> float:
    """Returns how often each message is weighed, on average, in a loop that formats after each step."""
    plain = build_react_loop(2 + 2 * steps)
    msgs, counter = as_msgs(plain), CountingCounter()
    formatter = OpenAIChatFormatter(budget=Budget(max(sum(get_weights(plain)) // 5, 1_500), counter))
    for end in range(4, len(msgs) + 1, 2):
        run_async(formatter.format(msgs[:end]))
    return counter.calls / len(msgs)


def get_weights(plain: Sequence[PlainMsg]) -> list[int]:
    """Returns the estimated tokens of each message, for the floor."""
    return [_estimate_weight(msg) for msg in plain]


def _estimate_weight(msg: PlainMsg) -> int:
    if isinstance(msg.content, str):
        return len(msg.content) // 4
    return sum(map(_get_length, msg.content)) // 4


def _get_length(block: PlainText | PlainCall | PlainResult) -> int:
    if isinstance(block, PlainText):
        return len(block.text)
    return len(block.output if isinstance(block, PlainResult) else block.arguments)


def find_floor_cut(sums: Sequence[int], limit: int) -> int:
    """Returns the index of the first message that fits, from running sums of all weights."""
    return bisect_left(sums, sums[-1] - limit)


def sum_and_find_floor_cut(weights: Sequence[int], limit: int) -> int:
    """Returns the index of the first message that fits, from weights. Calculates the running sums."""
    return find_floor_cut(list(accumulate(weights, initial=0)), limit)


def find_agentkit_cut(weigher: Weigher, strategy: Any, room: int, msgs: list[Msg]) -> int:
    """Returns the cut of agentkit, without creating a request."""
    return CutPlan((strategy,), weigher.units(msgs), room, _refuse_weighing).count_for(room)


def _refuse_weighing(msg: Msg) -> int:
    raise AssertionError("a cut that only drops units must not weigh a message again")


def _get_agentkit_cases(plain: Sequence[PlainMsg], limit: int) -> dict[str, Case]:
    msgs = as_msgs(plain)
    budget = Budget(limit, EstimatingCounter())
    weigher = Weigher(budget.counter.local_counter)
    weigher.units(msgs)
    strategy = budget.strategy

    def cut_same_list(_: object) -> object:
        return find_agentkit_cut(weigher, strategy, limit, msgs)

    def cut_weighed(new_weigher: Weigher) -> object:
        return find_agentkit_cut(new_weigher, strategy, limit, msgs)

    def cut_new(pair: tuple[Weigher, list[Msg]]) -> object:
        return find_agentkit_cut(pair[0], strategy, limit, pair[1])

    cases = {
        "agentkit cut only, same list": Case(lambda: None, cut_same_list),
        "agentkit cut only, weighed messages, new formatter": Case(
            lambda: Weigher(budget.counter.local_counter), cut_weighed
        ),
        "agentkit cut only, new messages": Case(
            lambda: (Weigher(budget.counter.local_counter), as_msgs(plain)), cut_new
        ),
    }
    for formatter_class in (OpenAIChatFormatter, AnthropicChatFormatter):
        cases |= _get_plan_cases(formatter_class, msgs, plain, limit)
    return cases


def _get_plan_cases(
    formatter_class: type[OpenAIChatFormatter | AnthropicChatFormatter],
    msgs: list[Msg],
    plain: Sequence[PlainMsg],
    limit: int,
) -> dict[str, Case]:
    name = formatter_class.__name__.removesuffix("ChatFormatter")
    formatter = formatter_class(budget=Budget(limit, EstimatingCounter()))
    default = formatter_class(budget=Budget(limit, CharacterTokenCounter()))

    def plan(pair: tuple[Any, list[Msg]]) -> object:
        return run_async(pair[0].plan(pair[1]))

    return {
        f"agentkit {name} plan(), weighed messages": Case(lambda: (formatter, list(msgs)), plan),
        f"agentkit {name} plan(), new messages": Case(lambda: (formatter, as_msgs(plain)), plan),
        f"agentkit {name} plan(), weighed messages, default counter": Case(lambda: (default, list(msgs)), plan),
    }


def _get_peer_cases(plain: Sequence[PlainMsg], limit: int, problems: list[str]) -> dict[str, Case]:
    """Returns the cuts of other libraries. Slow libraries are skipped for more than 1,000 messages."""

    def case(cutter: Cutter) -> Case:
        return Case(partial(cutter.prepare, plain), lambda msgs: cutter.cut(msgs, limit))

    cutters = [cutter for cutter in load_cutters(problems) if not cutter.is_slow or len(plain) <= 1_000]
    return {
        f"{cutter.name.removesuffix(' OpenAI')}": case(cutter)
        for cutter in cutters
        if "Anthropic" not in cutter.name
    }


_SAME_LIST = "agentkit cut only, same list"


def measure_size(n: int, rounds: int, problems: list[str]) -> dict[str, dict[float, Samples]]:
    """Returns samples of all cuts of `n` messages, by name and by share of the history that fits the budget."""
    plain = build_mixed_chat(n)
    weights = get_weights(plain)
    sums = list(accumulate(weights, initial=0))
    samples: dict[str, dict[float, Samples]] = {}
    for share in _SHARES:
        limit = int(sums[-1] * share)
        cases = {
            "floor: bisect stored sums": Case(lambda: sums, partial(find_floor_cut, limit=limit)),
            "floor: sum and bisect": Case(lambda: weights, partial(sum_and_find_floor_cut, limit=limit)),
        }
        for name, sample in interleave(cases | _get_agentkit_cases(plain, limit), rounds).items():
            samples.setdefault(name, {})[share] = sample
        peer_samples = interleave(_get_peer_cases(plain, limit, problems), 1)
        for name, sample in peer_samples.items():
            samples.setdefault(name, {})[share] = sample
    return samples


def _build_table(n: int, samples: dict[str, dict[float, Samples]]) -> Table:
    rows = [
        [name, *(format_seconds(by_share[share].median) if share in by_share else "-" for share in _SHARES)]
        for name, by_share in samples.items()
    ]
    return Table(
        f"Time of a cut, {n:,} messages, by share of the history that fits",
        ["", *(f"{share:.0%}" for share in _SHARES)],
        rows,
    )


def measure_growth(sizes: Sequence[int], problems: list[str]) -> tuple[Sequence[int], dict[str, list[float]]]:
    """Returns the sizes, and the seconds of a cut to half of each history. Slow libraries have fewer values."""
    series: dict[str, list[float]] = {}
    for n in sizes:
        plain = build_mixed_chat(n)
        limit = sum(get_weights(plain)) // 2
        samples = interleave(_get_agentkit_cases(plain, limit), 3)
        for name, sampled in {**samples, **interleave(_get_peer_cases(plain, limit, problems), 1)}.items():
            if name in _SERIES_NAMES or not name.startswith("agentkit"):
                series.setdefault(_SERIES_NAMES.get(name, name), []).append(sampled.median)
    return sizes, series


_SERIES_NAMES = {
    _SAME_LIST: "agentkit, cut only",
    "agentkit OpenAI plan(), weighed messages, default counter": "agentkit, cut and request",
    "agentkit OpenAI plan(), new messages": "agentkit, cut and request, new messages",
}


def _build_growth_table(sizes: Sequence[int], series: dict[str, list[float]]) -> Table:
    rows = [
        [
            name,
            *map(format_seconds, seconds),
            *("-" for _ in sizes[len(seconds) :]),
            fit_exponent(sizes[: len(seconds)], seconds),
        ]
        for name, seconds in series.items()
    ]
    return Table(
        "Growth of a cut to 50% of the history (goal: exponent <= 1.05)",
        ["", *(f"n={n}" for n in sizes), "exponent"],
        rows,
    )
