"""Simulation of the prompt cache of a provider: the share of each request of a loop that the cache can reuse.

A prompt is the bytes of a request in this order: tools, system prompt and other options, then the turns. A block
is one tool, one item of the system prompt, or one content item of a turn. The first item of a turn also contains
the other keys of the turn (role, calls, ids).

byte reuse   share of a prompt that is also a prefix of the previous prompt. A cache that matches any prefix can
             reuse it.
block reuse  share of a prompt in complete blocks that also begin the previous prompt. A cache with breakpoints can
             reuse it.
cost         price of the prompts, with bytes instead of tokens. A byte from the cache costs 0.1. Any other byte
             costs 1 with an automatic cache, and 1.25 with an explicit cache, which charges for writes.
context      mean size of the prompts

The steady state is the second half of a loop. The minimum length and the expiry of a cache are not simulated.
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
    load_provider,
)
from agentkit.provider_kit import FormatterBase, Provider
from tests.benchmarks.cutting import get_weights
from tests.benchmarks.histories import as_msgs, build_group_chat, build_react_loop
from tests.benchmarks.peers import Cutter, load_cutters, run_async
from tests.benchmarks.plots import draw_bars
from tests.benchmarks.report import Aim, Report, Table
from tests.providers import MESSAGE_PROVIDERS

__all__ = ["Reuse", "split_into_blocks", "replay_group_chat", "replay_react_loop", "replay"]

_TURNS = ("messages", "contents", "input")
_CONTENT = ("content", "parts")
_READ, _WRITE = 0.1, 1.25
_STRATEGIES: dict[str, CutStrategy] = {"Stepped": OldestFirstInSteps(), "OldestFirst": OldestFirst()}


def split_into_blocks(request: Mapping[str, Any]) -> list[bytes]:
    """Returns the blocks of a request, in the order of the prompt."""
    head = sorted(name for name in request if name not in _TURNS)
    blocks = [block for name in sorted(head, key="tools".__ne__) for block in _split_head(request[name])]
    for name in _TURNS:
        for turn in request.get(name, ()):
            blocks.extend(_split_turn(turn))
    return blocks


def _split_head(part: Any) -> Iterator[bytes]:
    if isinstance(part, list):
        yield from map(to_json, cast("list[Any]", part))
    else:
        yield to_json(part)


def _split_turn(turn: dict[str, Any]) -> Iterator[bytes]:
    content_key = next((key for key in _CONTENT if key in turn), None)
    other_keys = to_json({key: item for key, item in turn.items() if key != content_key})
    content: Any = turn[content_key] if content_key else ""
    items = cast("Iterable[Any]", content or [content]) if isinstance(content, list) else (content,)
    for item in items:
        yield other_keys + to_json(item)
        other_keys = b""


@dataclass(slots=True)
class Reuse:
    """Sizes of the prompts of a loop in bytes, and the bytes of each that a cache can reuse."""

    sizes: list[int] = field(default_factory=list[int])
    bytes_hit: list[int] = field(default_factory=list[int])
    blocks_hit: list[int] = field(default_factory=list[int])
    last: list[bytes] = field(default_factory=list[bytes])

    def add(self, blocks: list[bytes]) -> None:
        """Adds the next prompt of the loop."""
        prompt, previous = b"".join(blocks), b"".join(self.last)
        pairs = zip(blocks, self.last, strict=False)
        shared = next(
            (index for index, (new, old) in enumerate(pairs) if new != old), min(len(blocks), len(self.last))
        )
        self.sizes.append(len(prompt))
        self.bytes_hit.append(get_common_prefix_length(prompt, previous))
        self.blocks_hit.append(sum(map(len, blocks[:shared])))
        self.last = blocks

    def steady(self) -> Reuse:
        """Returns the second half of the loop."""
        half = len(self.sizes) // 2
        return Reuse(self.sizes[half:], self.bytes_hit[half:], self.blocks_hit[half:])

    @property
    def by_byte(self) -> float:
        """Mean share of a prompt that a cache of any prefix can reuse."""
        return sum(hit / size for hit, size in zip(self.bytes_hit, self.sizes, strict=True)) / len(self.sizes)

    @property
    def by_block(self) -> float:
        """Mean share of a prompt that a cache with breakpoints can reuse."""
        return sum(hit / size for hit, size in zip(self.blocks_hit, self.sizes, strict=True)) / len(self.sizes)

    @property
    def automatic(self) -> float:
        """Cost of all prompts with an automatic cache, in bytes at full price."""
        return sum(self.sizes) - (1 - _READ) * sum(self.bytes_hit)

    @property
    def explicit(self) -> float:
        """Cost of all prompts with an explicit cache, in bytes at full price."""
        return _WRITE * sum(self.sizes) - (_WRITE - _READ) * sum(self.blocks_hit)

    @property
    def context(self) -> float:
        """Mean size of a prompt in bytes."""
        return sum(self.sizes) / len(self.sizes)


def get_common_prefix_length(first: bytes, second: bytes) -> int:
    """Returns the length of the longest common prefix."""
    low, high = 0, min(len(first), len(second))
    while low < high:
        middle = (low + high + 1) // 2
        if first[low:middle] == second[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def replay(formatter: FormatterBase, msgs: Sequence[Msg], every: int, tools: Sequence[Tool] = ()) -> Reuse:
    """Returns the reuse of the requests of a conversation, with a request after each `every` messages."""
    return _measure_reuse(run_async(formatter.format(msgs[:end], tools=tools)) for end in _get_ends(msgs, every))


def _measure_reuse(requests: Iterable[Mapping[str, Any]]) -> Reuse:
    reuse = Reuse()
    for request in requests:
        reuse.add(split_into_blocks(request))
    return reuse


def _get_ends(msgs: Sequence[object], every: int) -> range:
    return range(4, len(msgs) + 1, every)


def replay_react_loop(
    create_formatter: Callable[..., FormatterBase],
    steps: int,
    strategies: Mapping[str, CutStrategy],
    tools: Sequence[Tool] = (),
    share: float = 0.2,
) -> dict[str, Reuse]:
    """Returns the reuse in a ReAct loop, by strategy name.

    The budget is `share` of the tokens of the final conversation, plus the tokens of the tools.
    """
    msgs = as_msgs(build_react_loop(2 + 2 * steps))
    counter = CharacterTokenCounter()
    sizes = [
        counter.measure(create_formatter().lower(part, tools=tools).request, create_formatter())
        for part in (msgs, msgs[1:2])
    ]
    limit = int((sizes[0] - sizes[1]) * share) + sizes[1]
    return {
        name: replay(create_formatter(budget=Budget(limit, strategy=strategy)), msgs, 2, tools)
        for name, strategy in strategies.items()
    }


def replay_group_chat(provider: Provider, n: int, viewer: str | None = None) -> Reuse:
    """Returns the reuse in a group chat without a budget, with a request after each message."""
    formatter = provider.multi_agent_formatter(history=MultiAgentHistory(viewer=viewer))
    return replay(formatter, as_msgs(build_group_chat(n)), 1).steady()


def run(quick: bool = False) -> Report:
    """Measures loops within a budget and group chats without a budget, for every provider."""
    steps, group_size = (60, 60) if quick else (500, 502)
    problems: list[str] = []
    names = ["openai", "anthropic"] if quick else MESSAGE_PROVIDERS
    formatters = {
        f"{name}{suffix}": create
        for name in names
        for suffix, create in (
            ("", load_provider(name).chat_formatter),
            (" multi-agent", load_provider(name).multi_agent_formatter),
        )
    }
    loops = {name: replay_react_loop(create, steps, _STRATEGIES) for name, create in formatters.items()}
    large_tool = [Tool("manual", "Read a page of the manual. " * 600)]
    with_large_tool = replay_react_loop(formatters["openai"], steps, _STRATEGIES, large_tool)
    groups = {name: replay_group_chat(load_provider(name), group_size) for name in names}
    groups_with_viewer = {name: replay_group_chat(load_provider(name), group_size, "Friday") for name in names}
    openai_loops = _get_steady_loops(loops["openai"], _replay_peers(steps, problems))
    price_table = _build_price_table(openai_loops)
    at_budget = _build_budget_table({**loops, "openai, 4,000 tokens of tools": with_large_tool})
    tables = [at_budget, _build_group_table(groups, groups_with_viewer), price_table]
    price = {name: reuse.automatic / sum(reuse.sizes) for name, reuse in openai_loops.items()}
    price["without a cache"] = 1.0
    plot = draw_bars("Price of a prompt token at the budget, automatic cache", price, lambda value: f"{value:.2f}")
    aims = [*_build_budget_aims(loops), *_build_group_aims(groups)]
    return Report(tables, [price_table], aims, {"caching.svg": plot}, problems)


def _build_budget_aims(loops: Mapping[str, Mapping[str, Reuse]]) -> list[Aim]:
    """Returns the goals for loops within a budget, with the worst result of all formatters."""
    steady = {name: reuses["Stepped"].steady() for name, reuses in loops.items()}
    reuse = min(min(reuses.by_byte, reuses.by_block) for reuses in steady.values())
    costs = [_get_ratios(reuses["Stepped"], reuses["OldestFirst"]) for reuses in loops.values()]
    cost = max(max(automatic, explicit) for automatic, explicit, _ in costs)
    context = min(steady[name].context / reuses["OldestFirst"].steady().context for name, reuses in loops.items())
    return [
        Aim("Prompt reuse at the budget, byte and block, worst API", "≥ 0.94", f"{reuse:.3f}", reuse >= 0.94),
        Aim("Prompt cost of the loop, worst API", "≤ 0.21 × oldest first", f"{cost:.2f} ×", cost <= 0.21),
        Aim("Mean context at the budget, worst API", "≥ 0.87 × oldest first", f"{context:.2f} ×", context >= 0.87),
    ]


def _build_group_aims(groups: Mapping[str, Reuse]) -> list[Aim]:
    byte_reuse = min(each.by_byte for each in groups.values())
    with_parts = [
        name
        for name in groups
        if load_provider(name).multi_agent_formatter().capabilities().turns.text_joining == "apart"
    ]
    block_reuse = min(groups[name].by_block for name in with_parts)
    return [
        Aim("Group chat without a cut, byte reuse, worst API", "≥ 0.99", f"{byte_reuse:.3f}", byte_reuse >= 0.99),
        Aim(
            "Group chat without a cut, block reuse, worst API with a part per text",
            "≥ 0.99",
            f"{block_reuse:.3f}",
            block_reuse >= 0.99,
        ),
    ]


def _get_ratios(reuse: Reuse, base: Reuse) -> tuple[float, float, float]:
    """Returns three ratios to `base`: cost with automatic caches, cost with explicit caches, and context."""
    return reuse.automatic / base.automatic, reuse.explicit / base.explicit, reuse.context / base.context


def _build_budget_table(loops: Mapping[str, Mapping[str, Reuse]]) -> Table:
    rows: list[list[object]] = []
    for name, reuses in loops.items():
        stepped, oldest = reuses["Stepped"], reuses["OldestFirst"]
        steady = stepped.steady()
        shares = [f"{share:.3f}" for share in (steady.by_byte, steady.by_block)]
        context = steady.context / oldest.steady().context
        rows.append([name, *shares, f"{oldest.steady().by_byte:.3f}", *_get_ratios(stepped, oldest)[:2], context])
    head = [
        "",
        "byte reuse",
        "block reuse",
        "byte reuse of oldest first",
        "cost, automatic",
        "cost, explicit",
        "context",
    ]
    return Table("Reuse at the budget; cost and context relative to oldest first", head, rows)


def _build_group_table(groups: Mapping[str, Reuse], with_viewer: Mapping[str, Reuse]) -> Table:
    rows = [
        [
            name,
            *(
                f"{share:.3f}"
                for reuse in (groups[name], with_viewer[name])
                for share in (reuse.by_byte, reuse.by_block)
            ),
        ]
        for name in groups
    ]
    return Table(
        "Reuse in a group chat without a cut",
        ["", "byte", "block", "with a viewer, byte", "with a viewer, block"],
        rows,
    )


def _get_steady_loops(agentkit: Mapping[str, Reuse], peers: Mapping[str, Reuse]) -> dict[str, Reuse]:
    """Returns the steady state of all loops with requests for OpenAI Chat Completions."""
    loops = {"agentkit (default)": agentkit["Stepped"], "agentkit, OldestFirst": agentkit["OldestFirst"], **peers}
    return {name: reuse.steady() for name, reuse in loops.items()}


def _build_price_table(loops: Mapping[str, Reuse]) -> Table:
    rows: list[list[object]] = []
    for name, reuse in loops.items():
        prices = [price / sum(reuse.sizes) for price in (reuse.automatic, reuse.explicit)]
        rows.append([name, *(f"{share:.3f}" for share in (reuse.by_byte, reuse.by_block)), *prices])
    head = [
        "",
        "byte reuse",
        "block reuse",
        "price of a token, automatic cache",
        "price of a token, explicit cache",
    ]
    return Table("Loop at its budget, OpenAI Chat Completions", head, rows)


def _replay_peers(steps: int, problems: list[str]) -> dict[str, Reuse]:
    """Returns the reuse of the other libraries that can cut, with a budget of a fifth of the estimated tokens."""
    plain = build_react_loop(2 + 2 * steps)
    limit = max(sum(get_weights(plain)) // 5, 1_500)

    def turns(cutter: Cutter) -> Iterator[Mapping[str, Any]]:
        native = cutter.prepare(plain)
        for end in _get_ends(native, 2):
            yield {"messages": cutter.convert(cutter.cut(native[:end], limit))}

    return {
        cutter.name: _measure_reuse(turns(cutter))
        for cutter in load_cutters(problems)
        if "Anthropic" not in cutter.name
    }
