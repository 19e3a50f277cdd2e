"""What a provider's prompt cache can serve of the requests of a loop: simulated, not timed.

A prompt is its request's bytes in wire order: tools, system prompt and whatever else stands before the
conversation, then the turns. A block is one tool, one item of the system prompt, or one item of a turn's
content, with what the wire says of the turn (role, calls, ids) before its first item.

byte reuse   the share of a prompt that is an unchanged prefix of the prompt before it: what a cache can serve
             that matches any prefix
block reuse  the same at the edge of a block: what a cache with breakpoints can serve
cost         a byte stands for its tokens: 0.1 where it is read from the cache, else 1 (automatic caches), or
             1.25 (explicit ones, which charge for writing; their reads end at a block's edge)
context      the mean size of the prompts

Steady state is the second half of a loop. A cache's minimum length and its expiry are not modelled.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from pydantic_core import to_json

from agentkit import (
    Budget,
    CharacterTokenCounter,
    CutStrategy,
    Msg,
    MultiAgentHistory,
    OldestFirst,
    OldestFirstInSteps,
    Tool,
    available_providers,
    load_provider,
)
from agentkit.provider_kit import FormatterBase, Provider
from tests.benchmarks.cutting import get_weights
from tests.benchmarks.histories import as_msgs, build_group_chat, build_react_loop
from tests.benchmarks.peers import Trim, load_trims, run_async
from tests.benchmarks.plots import draw_bars
from tests.benchmarks.report import Aim, Report, Table

__all__ = ["Reuse", "split_into_blocks", "replay_group_chat", "replay_react_loop", "replay"]

_TURNS = ("messages", "contents", "input")
_CONTENT = ("content", "parts")
_READ, _WRITE = 0.1, 1.25
_BOTH: dict[str, CutStrategy] = {"Stepped": OldestFirstInSteps(), "OldestFirst": OldestFirst()}


def split_into_blocks(request: Mapping[str, Any]) -> list[bytes]:
    """A request's blocks in wire order."""
    head = sorted(name for name in request if name not in _TURNS)
    blocks = [block for name in sorted(head, key="tools".__ne__) for block in _head_blocks(request[name])]
    for name in _TURNS:
        for turn in request.get(name, ()):
            blocks.extend(_turn_blocks(turn))
    return blocks


def _head_blocks(part: Any) -> Iterator[bytes]:
    if isinstance(part, list):
        yield from map(to_json, cast("list[Any]", part))
    else:
        yield to_json(part)


def _turn_blocks(turn: dict[str, Any]) -> Iterator[bytes]:
    said = next((key for key in _CONTENT if key in turn), None)
    about = to_json({key: item for key, item in turn.items() if key != said})
    content: Any = turn[said] if said else ""
    items = cast("Iterable[Any]", content or [content]) if isinstance(content, list) else (content,)
    for item in items:
        yield about + to_json(item)
        about = b""


@dataclass(slots=True)
class Reuse:
    """What a cache served of a loop's prompts, the size of each and the prefix that the one before shares."""

    sizes: list[int] = field(default_factory=list[int])
    bytes_hit: list[int] = field(default_factory=list[int])
    blocks_hit: list[int] = field(default_factory=list[int])
    last: list[bytes] = field(default_factory=list[bytes])

    def add(self, blocks: list[bytes]) -> None:
        """The next prompt of the loop."""
        text, before = b"".join(blocks), b"".join(self.last)
        pairs = zip(blocks, self.last, strict=False)
        same = next((at for at, (new, old) in enumerate(pairs) if new != old), min(len(blocks), len(self.last)))
        self.sizes.append(len(text))
        self.bytes_hit.append(common(text, before))
        self.blocks_hit.append(sum(map(len, blocks[:same])))
        self.last = blocks

    def steady(self) -> Reuse:
        """The second half of the loop alone."""
        half = len(self.sizes) // 2
        return Reuse(self.sizes[half:], self.bytes_hit[half:], self.blocks_hit[half:])

    @property
    def by_byte(self) -> float:
        """The mean share of a prompt that a byte-prefix cache serves."""
        return sum(hit / size for hit, size in zip(self.bytes_hit, self.sizes, strict=True)) / len(self.sizes)

    @property
    def by_block(self) -> float:
        """The mean share of a prompt that a cache with breakpoints serves."""
        return sum(hit / size for hit, size in zip(self.blocks_hit, self.sizes, strict=True)) / len(self.sizes)

    @property
    def automatic(self) -> float:
        """What the prompts cost where the cache is automatic, in bytes at the full price."""
        return sum(self.sizes) - (1 - _READ) * sum(self.bytes_hit)

    @property
    def explicit(self) -> float:
        """What they cost where writing to the cache has its price."""
        return _WRITE * sum(self.sizes) - (_WRITE - _READ) * sum(self.blocks_hit)

    @property
    def context(self) -> float:
        """The mean size of a prompt, in bytes."""
        return sum(self.sizes) / len(self.sizes)


def common(one: bytes, other: bytes) -> int:
    """How long a prefix two texts share."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def replay(formatter: FormatterBase, msgs: Sequence[Msg], every: int, tools: Sequence[Tool] = ()) -> Reuse:
    """The requests of a conversation, made anew whenever so many messages were added."""
    return _reused(run_async(formatter.format(msgs[:end], tools=tools)) for end in _ends(msgs, every))


def _reused(requests: Iterable[Mapping[str, Any]]) -> Reuse:
    found = Reuse()
    for request in requests:
        found.add(split_into_blocks(request))
    return found


def _ends(msgs: Sequence[object], every: int) -> range:
    return range(4, len(msgs) + 1, every)


def replay_react_loop(
    make: Callable[..., FormatterBase],
    steps: int,
    strategies: Mapping[str, CutStrategy],
    tools: Sequence[Tool] = (),
    share: float = 0.2,
) -> dict[str, Reuse]:
    """A ReAct loop, by strategy, under a budget of a share of its conversation in the end, tools on top."""
    msgs = as_msgs(build_react_loop(2 + 2 * steps))
    counter = CharacterTokenCounter()
    measured = [counter.measure(make().lower(given, tools=tools).request, make()) for given in (msgs, msgs[1:2])]
    limit = int((measured[0] - measured[1]) * share) + measured[1]
    return {
        name: replay(make(budget=Budget(limit, strategy=strategy)), msgs, 2, tools)
        for name, strategy in strategies.items()
    }


def replay_group_chat(provider: Provider, n: int, viewer: str | None = None) -> Reuse:
    """A group chat without a cut: a request after each message."""
    formatter = provider.multi_agent_formatter(history=MultiAgentHistory(viewer=viewer))
    return replay(formatter, as_msgs(build_group_chat(n)), 1).steady()


def run(quick: bool = False) -> Report:
    """Reuse, cost and context at the budget for every provider, and group chats without one."""
    steps, talk = (60, 60) if quick else (500, 502)
    problems: list[str] = []
    names = ["openai", "anthropic"] if quick else available_providers()
    kinds = {
        f"{name}{said}": make
        for name in names
        for said, make in (
            ("", load_provider(name).chat_formatter),
            (" multi-agent", load_provider(name).multi_agent_formatter),
        )
    }
    found = {name: replay_react_loop(make, steps, _BOTH) for name, make in kinds.items()}
    big = [Tool("manual", "Read a page of the manual. " * 600)]
    fixed = replay_react_loop(kinds["openai"], steps, _BOTH, big)
    groups = {name: replay_group_chat(load_provider(name), talk) for name in names}
    viewed = {name: replay_group_chat(load_provider(name), talk, "Friday") for name in names}
    loops = _all(found["openai"], _peers(steps, problems))
    short = _policies(loops)
    at_budget = _budget_table({**found, "openai, 4,000 tokens of tools": fixed})
    tables = [at_budget, _group_table(groups, viewed), short]
    price = {name: each.automatic / sum(each.sizes) for name, each in loops.items()}
    price["nothing cached"] = 1.0
    plot = draw_bars("Price of a prompt token at the budget, automatic cache", price, lambda value: f"{value:.2f}")
    aims = [*_budget_aims(found), *_group_aims(groups)]
    return Report(tables, [short], aims, {"caching.svg": plot}, problems)


def _budget_aims(found: Mapping[str, Mapping[str, Reuse]]) -> list[Aim]:
    """The least favourable of all formatters."""
    steady = {name: each["Stepped"].steady() for name, each in found.items()}
    hit = min(min(each.by_byte, each.by_block) for each in steady.values())
    costs = [_relative(each["Stepped"], each["OldestFirst"]) for each in found.values()]
    cost = max(max(automatic, explicit) for automatic, explicit, _ in costs)
    context = min(steady[name].context / each["OldestFirst"].steady().context for name, each in found.items())
    return [
        Aim("Prompt reuse at the budget, byte and block, worst wire", "≥ 0.94", f"{hit:.3f}", hit >= 0.94),
        Aim("Prompt cost of the loop, worst wire", "≤ 0.21 × oldest first", f"{cost:.2f} ×", cost <= 0.21),
        Aim(
            "Mean context at the budget, worst wire", "≥ 0.87 × oldest first", f"{context:.2f} ×", context >= 0.87
        ),
    ]


def _group_aims(groups: Mapping[str, Reuse]) -> list[Aim]:
    hit = min(each.by_byte for each in groups.values())
    parts = [
        name
        for name in groups
        if load_provider(name).multi_agent_formatter().capabilities().turns.text_joining == "apart"
    ]
    block = min(groups[name].by_block for name in parts)
    return [
        Aim("Group chat without a cut, byte reuse, worst wire", "≥ 0.99", f"{hit:.3f}", hit >= 0.99),
        Aim("… block reuse, worst of the wires with parts", "≥ 0.99", f"{block:.3f}", block >= 0.99),
    ]


def _relative(one: Reuse, other: Reuse) -> tuple[float, float, float]:
    """Cost with automatic and with explicit caches, and context, over another loop's."""
    return one.automatic / other.automatic, one.explicit / other.explicit, one.context / other.context


def _budget_table(found: Mapping[str, Mapping[str, Reuse]]) -> Table:
    rows: list[list[object]] = []
    for name, each in found.items():
        ours, base = each["Stepped"], each["OldestFirst"]
        steady = ours.steady()
        shares = [f"{share:.3f}" for share in (steady.by_byte, steady.by_block)]
        context = steady.context / base.steady().context
        rows.append([name, *shares, f"{base.steady().by_byte:.3f}", *_relative(ours, base)[:2], context])
    head = ["", "byte", "block", "oldest first, byte", "cost, automatic", "cost, explicit", "context"]
    return Table("Prompt reuse and context at the budget, cost of the loop; over oldest first's", head, rows)


def _group_table(groups: Mapping[str, Reuse], viewed: Mapping[str, Reuse]) -> Table:
    rows = [
        [
            name,
            *(f"{share:.3f}" for each in (groups[name], viewed[name]) for share in (each.by_byte, each.by_block)),
        ]
        for name in groups
    ]
    return Table("Group chat, no cut", ["", "byte", "block", "with a viewer, byte", "block"], rows)


def _all(ours: Mapping[str, Reuse], peers: Mapping[str, Reuse]) -> dict[str, Reuse]:
    """Loops in OpenAI's form, at the budget."""
    named = {"agentkit (default)": ours["Stepped"], "agentkit, OldestFirst": ours["OldestFirst"], **peers}
    return {name: each.steady() for name, each in named.items()}


def _policies(found: Mapping[str, Reuse]) -> Table:
    rows: list[list[object]] = []
    for name, each in found.items():
        prices = [price / sum(each.sizes) for price in (each.automatic, each.explicit)]
        rows.append([name, *(f"{share:.3f}" for share in (each.by_byte, each.by_block)), *prices])
    head = ["", "byte reuse", "block reuse", "price of a token, automatic cache", "explicit cache"]
    return Table("A loop at its budget, OpenAI's form", head, rows)


def _peers(steps: int, problems: list[str]) -> dict[str, Reuse]:
    """What the peers that cut send, given a fifth by their own free counter."""
    plain = build_react_loop(2 + 2 * steps)
    limit = max(sum(get_weights(plain)) // 5, 1_500)

    def turns(trim: Trim) -> Iterator[Mapping[str, Any]]:
        native = trim.prepare(plain)
        for end in _ends(native, 2):
            yield {"messages": trim.convert(trim.cut(native[:end], limit))}

    return {trim.name: _reused(turns(trim)) for trim in load_trims(problems) if "Anthropic" not in trim.name}
