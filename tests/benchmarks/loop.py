"""A ReAct loop that formats after each step under a budget, beside a loop that only copies what the budget keeps.

The copy loop has each message's native dicts ready and makes each request of fresh dicts and lists (strings are
shared), of what our budget keeps at that step and no more: what any request costs that is its caller's to change.
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

Kind: TypeAlias = Callable[..., FormatterBase]

KINDS: dict[str, tuple[Kind, floor.Floor]] = {
    "OpenAI": (OpenAIChatFormatter, floor.convert_openai),
    "Anthropic": (AnthropicChatFormatter, floor.convert_anthropic),
    "OpenAI multi-agent": (OpenAIMultiAgentFormatter, floor.convert_multi_openai),
    "Anthropic multi-agent": (AnthropicMultiAgentFormatter, floor.convert_multi_anthropic),
}
_SHARE = 5  # the budget is a fifth of what the whole history measures in the end


def run(quick: bool = False) -> Report:
    """A step is a call and its results, or a few of each; each step makes one request."""
    sizes = [20, 40] if quick else [125, 250, 500]
    found = [_ours(steps, 1 if quick else 5) for steps in sizes]
    problems: list[str] = []
    others = [_peers(steps, problems) for steps in sizes]
    rows: list[list[object]] = []
    aims: list[Aim] = []
    for name in KINDS:
        base, ours = f"copy loop, {name}", f"agentkit {name}"
        ratio = found[-1][ours].ratio_to(found[-1][base])
        grown, its = (
            get_step_exponents(sizes, [each[case].median for each in found])[-1] for case in (ours, base)
        )
        rows.append([name, *(format_seconds(found[-1][case].median) for case in (base, ours)), ratio, its, grown])
        aims.append(Aim(f"Loop of {sizes[-1]} steps, {name}", "≤ 3 × copying", f"{ratio:.2f} ×", ratio <= 3))
        goal = f"≤ {its:.2f} + 0.1"
        aims.append(Aim(f"… its growth with the steps, {name}", goal, f"{grown:.2f}", grown <= its + 0.1))
    head = ["", "copy loop", "agentkit", "ratio", "growth of copying", "growth of agentkit"]
    ours_table = Table(f"ReAct loop of {sizes[-1]} steps, budget 20%", head, rows)
    beside = _beside(sizes[-1], found[-1], others[-1])
    plot = draw_lines(
        "A ReAct loop within a budget: total CPU time", sizes, _series(found, others), format_seconds, "steps"
    )
    tables = [ours_table, _unlimited(sizes[-1], found[-1]), *([beside] if beside.rows else [])]
    return Report(tables, [tables[0], *tables[2:]], aims, {"loop.svg": plot}, list(dict.fromkeys(problems)))


def _series(found: Sequence[dict[str, Samples]], others: Sequence[dict[str, Samples]]) -> dict[str, list[float]]:
    names = [f"{who}{api}" for api in ("OpenAI", "Anthropic") for who in ("copy loop, ", "agentkit ")]
    series = {name: [each[name].median for each in found] for name in names}
    return series | {name: [each[name].median for each in others] for name in others[-1]}


def _beside(steps: int, found: dict[str, Samples], others: dict[str, Samples]) -> Table:
    rows: list[list[object]] = []
    for name, sampled in others.items():
        api = "Anthropic" if "Anthropic" in name else "OpenAI"
        ratios = (sampled.median / found[case].median for case in (f"copy loop, {api}", f"agentkit {api}"))
        rows.append([name, format_seconds(sampled.median), *ratios])
    return Table(f"Peers, {steps} steps, budget 20%", ["", "total", "× copy loop", "× agentkit"], rows)


def _unlimited(steps: int, found: dict[str, Samples]) -> Table:
    """What the synchronous core takes of the whole history at each step."""
    rows: list[list[object]] = []
    for api in ("OpenAI", "Anthropic"):
        rebuild_requests, ours = found[f"rebuilt, {api}"], found[f"agentkit {api}, lower()"]
        rows.append([f"{api}, lower()", format_seconds(ours.median), ours.ratio_to(rebuild_requests)])
    return Table(
        f"ReAct loop of {steps} steps, no budget", ["", "total", "× native dicts rebuilt each step"], rows
    )


def _ours(steps: int, rounds: int) -> dict[str, Samples]:
    plain = build_react_loop(2 + 2 * steps)
    fresh = partial(as_msgs, plain)
    cases: dict[str, Case] = {}
    for name, (kind, loop) in KINDS.items():
        made = partial(kind, budget=Budget(get_limit(kind, plain)))
        gone = count_dropped(made, plain)
        cases[f"copy loop, {name}"] = Case(lambda: plain, partial(copy_requests, loop, gone))
        cases[f"agentkit {name}"] = Case(fresh, partial(format_after_each_step, made))
        if "multi" not in name:
            cases[f"rebuilt, {name}"] = Case(lambda: plain, partial(rebuild_requests, loop))
            cases[f"agentkit {name}, lower()"] = Case(fresh, partial(lower_after_each_step, kind))
    return interleave(cases, rounds, collector=True)


def _peers(steps: int, problems: list[str]) -> dict[str, Samples]:
    """The peers that cut: cut and converted after each step, once, with a free counter."""
    plain = build_react_loop(2 + 2 * steps)
    limit = max(sum(get_weights(plain)) // _SHARE, 1_500)

    def case(trim: peers.Trim) -> Case:
        def loop(msgs: Any) -> None:
            for end in range(4, len(msgs) + 1, 2):
                trim.convert(trim.cut(msgs[:end], limit))

        return Case(partial(trim.prepare, plain), loop)

    cases = {trim.name: case(trim) for trim in peers.load_trims(problems)}
    return interleave(cases, 1, collector=True, warm=False)


def get_limit(kind: Kind, plain: Sequence[PlainMsg]) -> int:
    """A fifth of what the whole history measures; at tiny sizes, room for the smallest request."""
    size = CharacterTokenCounter().measure(kind().lower(as_msgs(plain)).request, kind())
    return max(size // _SHARE, 1_500)


def count_dropped(kind: Kind, plain: Sequence[PlainMsg]) -> list[int]:
    """How many messages behind the task the budget leaves out, at each step."""
    msgs, formatter = as_msgs(plain), kind()
    gone: list[int] = []
    for end in range(4, len(msgs) + 1, 2):
        cut = peers.run_async(formatter.plan(msgs[:end])).cut
        gone.append(len(cut.numbers) if cut else 0)
    return gone


def copy_requests(loop: floor.Floor, gone: Sequence[int], plain: Sequence[PlainMsg]) -> object:
    """Native dicts made once; each request is a fresh copy of those that the budget keeps."""
    native = loop(plain[:2], False)
    lead, begins = len(native), [len(native)]  # where the turns of each step begin
    request: Any = None
    for end, left_out in zip(range(4, len(plain) + 1, 2), gone, strict=True):
        native.extend(loop(plain[end - 2 : end], False))
        begins.append(len(native))
        request = floor.copy_json(native[:lead] + native[begins[left_out // 2] :])
    return request


def rebuild_requests(loop: floor.Floor, plain: Sequence[PlainMsg]) -> object:
    """Native dicts made anew for each request."""
    request: Any = None
    for end in range(4, len(plain) + 1, 2):
        request = loop(plain[:end], False)
    return request


def lower_after_each_step(kind: Kind, msgs: list[Msg]) -> object:
    """The synchronous core after each step."""
    formatter = kind()
    request: Any = None
    for end in range(4, len(msgs) + 1, 2):
        request = formatter.lower(msgs[:end]).request
    return request


def format_after_each_step(kind: Kind, msgs: list[Msg]) -> object:
    """`await formatter.format(...)` after each step."""

    async def steps() -> object:
        formatter = kind()
        request: Any = None
        for end in range(4, len(msgs) + 1, 2):
            request = await formatter.format(msgs[:end])
        return request

    return peers.run_async(steps())
