"""The cut: agentkit's arithmetic on counted messages and its whole plan, beside running sums and peers."""

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
from tests.benchmarks.peers import Trim, estimate_tokens, load_trims, run_async
from tests.benchmarks.plots import draw_lines
from tests.benchmarks.report import Aim, Report, Table

__all__ = ["EstimatingCounter", "run", "count_weighings", "get_weights"]

_SHARES = (0.1, 0.5, 0.9)


class EstimatingCounter(LocalTokenCounter):
    """A token for every four characters of a message's strings: the peers' free counter."""

    def measure(self, request: Any) -> int:
        """The strings of the whole request."""
        return sum(estimate_tokens(part) for part in request.values())

    def weigh(self, msg: Msg) -> int:
        """The strings of one message."""
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
        """All of these weigh alike."""
        return "quarter"


class CountingCounter(CharacterTokenCounter):
    """The default counter, which notes how often it weighs a message."""

    def __init__(self) -> None:
        super().__init__()
        self.calls = 0

    @property
    def key(self) -> object:
        """Nobody else's."""
        return ("counting", id(self))

    def weigh(self, msg: Msg) -> int:
        """The same weight."""
        self.calls += 1
        return super().weigh(msg)


def run(quick: bool = False) -> Report:
    """Every table."""
    sizes = [50, 100] if quick else [1_000, 10_000]
    rounds = 1 if quick else 9
    problems: list[str] = []
    tables: list[Table] = []
    slowest = 0.0
    for n in sizes:
        found = at_size(n, rounds if n < 10_000 else max(3, rounds // 2), problems)
        tables.append(_table(n, found))
        slowest = max(sampled.median for sampled in found[_SAME].values())
    grown, series = growth([50, 100] if quick else [100, 1_000, 10_000], problems)
    per_message = count_weighings(20 if quick else 500)
    aims = [
        Aim("Each message is counted", "once in its life", f"{per_message:.2f} times in a loop", per_message == 1),
        Aim(f"A cut of {sizes[-1]:,} counted messages", "≤ 0.2 ms", format_seconds(slowest), slowest <= 0.2e-3),
    ]
    plot = draw_lines("A cut to half of the history: CPU time", grown, series, format_seconds, "messages")
    return Report(
        [*tables, _growth_table(grown, series)], (), aims, {"cutting.svg": plot}, list(dict.fromkeys(problems))
    )


def count_weighings(steps: int) -> float:
    """How often a message is weighed in a loop that formats after each step."""
    plain = build_react_loop(2 + 2 * steps)
    msgs, counter = as_msgs(plain), CountingCounter()
    formatter = OpenAIChatFormatter(budget=Budget(max(sum(get_weights(plain)) // 5, 1_500), counter))
    for end in range(4, len(msgs) + 1, 2):
        run_async(formatter.format(msgs[:end]))
    return counter.calls / len(msgs)


def get_weights(plain: Sequence[PlainMsg]) -> list[int]:
    """The free counter's tokens, for the floor."""
    return [_weight(msg) for msg in plain]


def _weight(msg: PlainMsg) -> int:
    if isinstance(msg.content, str):
        return len(msg.content) // 4
    return sum(map(_length, msg.content)) // 4


def _length(block: PlainText | PlainCall | PlainResult) -> int:
    if isinstance(block, PlainText):
        return len(block.text)
    return len(block.output if isinstance(block, PlainResult) else block.arguments)


def floor_cut(sums: Sequence[int], limit: int) -> int:
    """Where the newest messages that fit begin, by running sums."""
    return bisect_left(sums, sums[-1] - limit)


def floor_count(weights: Sequence[int], limit: int) -> int:
    """The same, with the sums made on the way."""
    return floor_cut(list(accumulate(weights, initial=0)), limit)


def pure_cut(weigher: Weigher, strategy: Any, room: int, msgs: list[Msg]) -> int:
    """agentkit's cut without building a request."""
    return CutPlan((strategy,), weigher.units(msgs), room, _unweighed).count_for(room)


def _unweighed(msg: Msg) -> int:
    raise AssertionError("dropping whole units weighs nothing again")


def _agentkit(plain: Sequence[PlainMsg], limit: int) -> dict[str, Case]:
    msgs = as_msgs(plain)
    budget = Budget(limit, EstimatingCounter())
    weigher = Weigher(budget.counter.local_counter)
    weigher.units(msgs)
    strategy = budget.strategy

    def step(_: object) -> object:
        return pure_cut(weigher, strategy, limit, msgs)

    def counted(fresh: Weigher) -> object:
        return pure_cut(fresh, strategy, limit, msgs)

    def cold(found: tuple[Weigher, list[Msg]]) -> object:
        return pure_cut(found[0], strategy, limit, found[1])

    cases = {
        "agentkit pure cut, same list": Case(lambda: None, step),
        "agentkit pure cut, counted, new formatter": Case(lambda: Weigher(budget.counter.local_counter), counted),
        "agentkit pure cut, cold": Case(lambda: (Weigher(budget.counter.local_counter), as_msgs(plain)), cold),
    }
    for kind in (OpenAIChatFormatter, AnthropicChatFormatter):
        cases |= _plans(kind, msgs, plain, limit)
    return cases


def _plans(
    kind: type[OpenAIChatFormatter | AnthropicChatFormatter],
    msgs: list[Msg],
    plain: Sequence[PlainMsg],
    limit: int,
) -> dict[str, Case]:
    name = kind.__name__.removesuffix("ChatFormatter")
    formatter = kind(budget=Budget(limit, EstimatingCounter()))
    usual = kind(budget=Budget(limit, CharacterTokenCounter()))

    def plan(found: tuple[Any, list[Msg]]) -> object:
        return run_async(found[0].plan(found[1]))

    return {
        f"agentkit {name} plan(), warm": Case(lambda: (formatter, list(msgs)), plan),
        f"agentkit {name} plan(), cold": Case(lambda: (formatter, as_msgs(plain)), plan),
        f"agentkit {name} plan(), warm, own counter": Case(lambda: (usual, list(msgs)), plan),
    }


def _peers(plain: Sequence[PlainMsg], limit: int, problems: list[str]) -> dict[str, Case]:
    """The cuts of the peers, the slow ones on small histories only."""

    def case(trim: Trim) -> Case:
        return Case(partial(trim.prepare, plain), lambda msgs: trim.cut(msgs, limit))

    found = [trim for trim in load_trims(problems) if not trim.slow or len(plain) <= 1_000]
    return {f"{trim.name.removesuffix(' OpenAI')}": case(trim) for trim in found if "Anthropic" not in trim.name}


_SAME = "agentkit pure cut, same list"


def at_size(n: int, rounds: int, problems: list[str]) -> dict[str, dict[float, Samples]]:
    """All cuts at one size, by name and share of the history that is kept."""
    plain = build_mixed_chat(n)
    weights = get_weights(plain)
    sums = list(accumulate(weights, initial=0))
    found: dict[str, dict[float, Samples]] = {}
    for share in _SHARES:
        limit = int(sums[-1] * share)
        cases = {
            "floor: bisect on kept sums": Case(lambda: sums, partial(floor_cut, limit=limit)),
            "floor: sums and bisect": Case(lambda: weights, partial(floor_count, limit=limit)),
        }
        for name, sampled in interleave(cases | _agentkit(plain, limit), rounds).items():
            found.setdefault(name, {})[share] = sampled
        few = interleave(_peers(plain, limit, problems), 1)
        for name, sampled in few.items():
            found.setdefault(name, {})[share] = sampled
    return found


def _table(n: int, found: dict[str, dict[float, Samples]]) -> Table:
    rows = [
        [name, *(format_seconds(each[share].median) if share in each else "-" for share in _SHARES)]
        for name, each in found.items()
    ]
    return Table(f"Cut, {n} messages", ["", *(f"{share:.0%}" for share in _SHARES)], rows)


def growth(sizes: Sequence[int], problems: list[str]) -> tuple[Sequence[int], dict[str, list[float]]]:
    """Seconds of a cut to half of the history, over sizes; fewer of the peers that take too long."""
    taken: dict[str, list[float]] = {}
    for n in sizes:
        plain = build_mixed_chat(n)
        limit = sum(get_weights(plain)) // 2
        ours = interleave(_agentkit(plain, limit), 3)
        for name, sampled in {**ours, **interleave(_peers(plain, limit, problems), 1)}.items():
            if name in _GROWN or not name.startswith("agentkit"):
                taken.setdefault(_GROWN.get(name, name), []).append(sampled.median)
    return sizes, taken


_GROWN = {
    _SAME: "agentkit, the cut alone",
    "agentkit OpenAI plan(), warm, own counter": "agentkit, with the request",
    "agentkit OpenAI plan(), cold": "agentkit, with all, cold",
}


def _growth_table(sizes: Sequence[int], series: dict[str, list[float]]) -> Table:
    rows = [
        [
            name,
            *map(format_seconds, found),
            *("-" for _ in sizes[len(found) :]),
            fit_exponent(sizes[: len(found)], found),
        ]
        for name, found in series.items()
    ]
    return Table("Cut at 50%, growth (aim: <= 1.05)", ["", *(f"n={n}" for n in sizes), "exponent"], rows)
