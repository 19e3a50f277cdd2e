"""The cut: agentkit's arithmetic on counted messages and its whole plan, beside running sums and peers."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module
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
from agentkit.schedule import Schedule
from agentkit.units import Weigher
from agentkit_anthropic import AnthropicChatFormatter
from agentkit_openai import OpenAIChatFormatter
from tests.benchmarks.histories import PlainCall, PlainMsg, PlainResult, PlainText, as_msgs, mixed
from tests.benchmarks.measure import Case, Sampled, exponent, interleave, show, table
from tests.benchmarks.peers import drive, langchain_messages, openai_dicts, run_async

__all__ = ["run"]

_SHARES = (0.1, 0.5, 0.9)


class QuarterCounter(LocalTokenCounter):
    """A token for every four characters of a message's strings: the peers' free counter."""

    def measure(self, request: Any) -> int:
        """The strings of the whole request."""
        return sum(_strings(part) for part in request.values())

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


def _strings(part: Any) -> int:
    if isinstance(part, str):
        return len(part) // 4
    if isinstance(part, dict):
        values: Any = part.values()  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
        return sum(map(_strings, values))
    if isinstance(part, list):
        items: Any = part  # pyright: ignore[reportUnknownVariableType]
        return sum(map(_strings, items))
    return 0


def run(quick: bool = False) -> str:
    """Every table, as text."""
    sizes = [50, 100] if quick else [1_000, 10_000]
    rounds = 3 if quick else 9
    found = [at_size(n, rounds if n < 10_000 else max(3, rounds // 2), slow=n <= 1_000) for n in sizes]
    found.append(growth([50, 100, 200] if quick else [1_000, 3_000, 10_000], 3))
    return "\n".join(found)


def weights_of(plain: Sequence[PlainMsg]) -> list[int]:
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
    return Schedule((strategy,), weigher.units(msgs), room, _unweighed).place(room)


def _unweighed(msg: Msg) -> int:
    raise AssertionError("dropping whole units weighs nothing again")


def _agentkit(plain: Sequence[PlainMsg], limit: int) -> dict[str, Case]:
    msgs = as_msgs(plain)
    budget = Budget(limit, QuarterCounter())
    weigher = Weigher(budget.counter.weigher)
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
        "agentkit pure cut, counted, new formatter": Case(lambda: Weigher(budget.counter.weigher), counted),
        "agentkit pure cut, cold": Case(lambda: (Weigher(budget.counter.weigher), as_msgs(plain)), cold),
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
    formatter = kind(budget=Budget(limit, QuarterCounter()))
    usual = kind(budget=Budget(limit, CharacterTokenCounter()))

    def plan(found: tuple[Any, list[Msg]]) -> object:
        return run_async(found[0].plan(found[1]))

    return {
        f"agentkit {name} plan(), warm": Case(lambda: (formatter, list(msgs)), plan),
        f"agentkit {name} plan(), cold": Case(lambda: (formatter, as_msgs(plain)), plan),
        f"agentkit {name} plan(), warm, own counter": Case(lambda: (usual, list(msgs)), plan),
    }


def _peers(plain: Sequence[PlainMsg], limit: int, slow: bool, problems: list[str]) -> dict[str, Case]:
    found: dict[str, Case] = {}
    loaders: list[Callable[..., dict[str, Case]]] = [_langchain, _litellm] if slow else [_langchain]
    if slow and len(plain) <= 1_000:
        loaders.append(_agentscope)
    for load in loaders:
        try:
            found |= load(plain, limit)
        except Exception as error:
            problems.append(f"{load.__name__[1:]}: {type(error).__name__}: {str(error)[:80]}")
    return found


def _langchain(plain: Sequence[PlainMsg], limit: int) -> dict[str, Case]:
    trim: Any = import_module("langchain_core.messages").trim_messages

    def count(msgs: Any) -> int:
        return sum(len(str(msg.content)) // 4 for msg in msgs)

    options = {"max_tokens": limit, "token_counter": count, "strategy": "last", "include_system": True}
    prepare = partial(langchain_messages, plain)
    return {"LangChain trim_messages": Case(prepare, lambda msgs: trim(msgs, **options))}


def _litellm(plain: Sequence[PlainMsg], limit: int) -> dict[str, Case]:
    home: Any = import_module("litellm.utils")
    trim: Any = home.trim_messages

    def count(model: str = "", text: Any = None, messages: Any = None, **_: Any) -> int:
        return _strings(text or "") + sum(map(_strings, messages or []))

    def run_it(msgs: Any) -> object:
        kept = home.token_counter
        home.token_counter = count
        try:
            return trim(msgs, model="gpt-4o", max_tokens=limit, trim_ratio=1.0)
        finally:
            home.token_counter = kept

    return {"litellm trim_messages": Case(partial(openai_dicts, plain), run_it)}


def _agentscope(plain: Sequence[PlainMsg], limit: int) -> dict[str, Case]:
    from tests.benchmarks.peers import agentscope_messages

    base: Any = import_module("agentscope.token").TokenCounterBase
    home: Any = import_module("agentscope.formatter")

    async def count(self: Any, messages: list[Any], **_: Any) -> int:
        return sum(map(_strings, messages))

    counter = type("Free", (base,), {"count": count})()
    formatter = home.OpenAIChatFormatter(token_counter=counter, max_tokens=limit)
    prepare = partial(agentscope_messages, plain)
    return {"AgentScope 1 OpenAI": Case(prepare, lambda msgs: drive(formatter.format(msgs)))}


def at_size(n: int, rounds: int, slow: bool) -> str:
    """All cuts at one size."""
    plain = mixed(n)
    weights = weights_of(plain)
    sums = list(accumulate(weights, initial=0))
    problems: list[str] = []
    found: dict[str, dict[float, Sampled]] = {}
    for share in _SHARES:
        limit = int(sums[-1] * share)
        cases = {
            "floor: bisect on kept sums": Case(lambda: sums, partial(floor_cut, limit=limit)),
            "floor: sums and bisect": Case(lambda: weights, partial(floor_count, limit=limit)),
        }
        for name, sampled in interleave(cases | _agentkit(plain, limit), rounds).items():
            found.setdefault(name, {})[share] = sampled
        few = interleave(_peers(plain, limit, slow, problems), 1)
        for name, sampled in few.items():
            found.setdefault(name, {})[share] = sampled
    rows = [
        [name, *(show(each[share].median) if share in each else "-" for share in _SHARES)]
        for name, each in found.items()
    ]
    goal = "goal: pure cut of 10,000 counted <= 0.2 ms" if n == 10_000 else ""
    text = table(f"Cut, {n} messages {goal}", ["", *(f"{share:.0%}" for share in _SHARES)], rows)
    return text + "".join(f"left out: {problem}\n" for problem in dict.fromkeys(problems))


def growth(sizes: Sequence[int], rounds: int) -> str:
    """The exponents at half of the history."""
    taken: dict[str, list[float]] = {}
    for n in sizes:
        plain = mixed(n)
        for name, sampled in interleave(_agentkit(plain, sum(weights_of(plain)) // 2), rounds).items():
            taken.setdefault(name, []).append(sampled.median)
    rows: list[list[object]] = [[name, *map(show, found), exponent(sizes, found)] for name, found in taken.items()]
    return table("Cut at 50%, growth (goal: <= 1.05)", ["", *(f"n={n}" for n in sizes), "exponent"], rows)
