"""A ReAct loop that formats after each append, beside native dicts kept and native dicts rebuilt."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from agentkit import Budget, FormatterBase, Msg
from agentkit_anthropic import AnthropicChatFormatter, AnthropicMultiAgentFormatter
from agentkit_openai import OpenAIChatFormatter, OpenAIMultiAgentFormatter
from tests.benchmarks import floor, peers
from tests.benchmarks.cutting import QuarterCounter, weights_of
from tests.benchmarks.histories import PlainMsg, as_msgs, react
from tests.benchmarks.measure import Case, Sampled, exponent, interleave, show, table

__all__ = ["run"]

_KINDS: dict[str, tuple[Callable[..., FormatterBase], floor.Floor]] = {
    "OpenAI": (OpenAIChatFormatter, floor.openai),
    "OpenAI multi-agent": (OpenAIMultiAgentFormatter, floor.openai),
    "Anthropic": (AnthropicChatFormatter, floor.anthropic),
    "Anthropic multi-agent": (AnthropicMultiAgentFormatter, floor.anthropic),
}


def run(quick: bool = False) -> str:
    """The table, as text. A step is a call and its result; each step makes one request."""
    steps = [10, 20] if quick else [250, 500]
    found = {n: _all(n, 1 if quick else 3) for n in steps}
    last = found[steps[-1]]
    rows: list[list[object]] = []
    for name, sampled in last.items():
        wire = "Anthropic" if "Anthropic" in name else "OpenAI"
        grown = exponent(steps, [found[n][name].median for n in steps])
        base, rebuilt = last[f"floor {wire}, kept"], last[f"floor {wire}, rebuilt"]
        rows.append([name, show(sampled.median), sampled.over(base), sampled.over(rebuilt), grown])
    head = ["", "total", "x kept floor", "x rebuilt floor", "exponent"]
    title = f"ReAct loop of {steps[-1]} steps, budget 20% (goal: <= 3 x kept floor, exponent <= 1.1)"
    return table(title, head, rows)


def _all(steps: int, rounds: int) -> dict[str, Sampled]:
    plain = react(2 + 2 * steps)
    limit = max(sum(weights_of(plain)) // 5, 1_500)  # room for the smallest request at tiny sizes
    cases: dict[str, Case] = {}
    for wire in ("OpenAI", "Anthropic"):
        loop = _KINDS[wire][1]
        cases[f"floor {wire}, kept"] = Case(lambda: plain, partial(kept, loop))
        cases[f"floor {wire}, rebuilt"] = Case(lambda: plain, partial(rebuilt, loop))
    fresh = partial(as_msgs, plain)
    for name, (kind, _) in _KINDS.items():
        with_budget = partial(kind, budget=Budget(limit, QuarterCounter()))
        usual = partial(kind, budget=Budget(limit))
        cases[f"agentkit {name}, lower()"] = Case(fresh, partial(lowered, kind))
        cases[f"agentkit {name}, format()"] = Case(fresh, partial(formatted, kind))
        cases[f"agentkit {name}, format(), budget"] = Case(fresh, partial(formatted, with_budget))
        cases[f"agentkit {name}, format(), budget, own counter"] = Case(fresh, partial(formatted, usual))
    cases |= _peers(plain)
    return interleave(cases, rounds, collector=True)


def _peers(plain: Sequence[PlainMsg]) -> dict[str, Case]:
    """The peers that convert one message after another: what a list grown by their messages costs."""

    def case(peer: peers.Peer) -> Case:
        def steps(msgs: Any) -> None:
            for end in range(4, len(msgs) + 1, 2):
                peer.run(msgs[:end])

        return Case(partial(peer.prepare, plain), steps)

    found = {peer.name: case(peer) for peer in peers.conversions([]) if "multi" not in peer.name}
    return {f"{name}, no budget": each for name, each in found.items()}


def kept(loop: floor.Floor, plain: Sequence[PlainMsg]) -> object:
    """Native dicts made once and kept; each request is a copy of the list."""
    native = loop(plain[:2], False)
    request: Any = None
    for end in range(4, len(plain) + 1, 2):
        native.extend(loop(plain[end - 2 : end], False))
        request = list(native)
    return request


def rebuilt(loop: floor.Floor, plain: Sequence[PlainMsg]) -> object:
    """Native dicts made anew for each request."""
    request: Any = None
    for end in range(4, len(plain) + 1, 2):
        request = loop(plain[:end], False)
    return request


def lowered(kind: Callable[..., FormatterBase], msgs: list[Msg]) -> object:
    """The synchronous core after each step."""
    formatter = kind()
    request: Any = None
    for end in range(4, len(msgs) + 1, 2):
        request = formatter.lower(msgs[:end]).request
    return request


def formatted(kind: Callable[..., FormatterBase], msgs: list[Msg]) -> object:
    """`await formatter.format(...)` after each step."""

    async def steps() -> object:
        formatter = kind()
        request: Any = None
        for end in range(4, len(msgs) + 1, 2):
            request = await formatter.format(msgs[:end])
        return request

    return asyncio.run(steps())
