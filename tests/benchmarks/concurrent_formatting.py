"""Many conversations in one process, and how long formatting keeps the event loop to itself."""

from __future__ import annotations

import gc
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from statistics import median
from time import process_time_ns, thread_time_ns
from typing import Any

import anyio
import anyio.lowlevel

from agentkit import Budget, Msg
from agentkit.provider_kit import FormatterBase
from agentkit_anthropic import AnthropicChatFormatter, AnthropicMultiAgentFormatter
from agentkit_openai import OpenAIChatFormatter, OpenAIMultiAgentFormatter
from tests.benchmarks.histories import as_msgs, build_mixed_chat
from tests.benchmarks.loop import get_limit
from tests.benchmarks.measure import format_seconds
from tests.benchmarks.memory import measure_overhead
from tests.benchmarks.report import Aim, Report, Table

__all__ = ["measure_memory", "measure_format_blocking", "run", "measure_blocking"]

_KINDS: dict[str, Callable[..., FormatterBase]] = {
    "OpenAI": OpenAIChatFormatter,
    "Anthropic": AnthropicChatFormatter,
    "OpenAI multi-agent": OpenAIMultiAgentFormatter,
    "Anthropic multi-agent": AnthropicMultiAgentFormatter,
}


def run(quick: bool = False) -> Report:
    """Every table."""
    number, size = (20, 20) if quick else (1_000, 50)
    many = {name: _many(kind, number, size) for name, kind in _KINDS.items()}
    rows = [
        [name, format_seconds(cold), format_seconds(warm), f"{held:.0f}"]
        for name, (cold, warm, held) in many.items()
    ]
    head = ["", "first time, a message", "again, a message", "bytes a message"]
    tables = [Table(f"{number:,} conversations of {size} messages, formatted concurrently", head, rows)]
    most = max(held for *_, held in many.values())
    aims = [
        Aim(f"{number:,} conversations at once, overhead", "≤ 300 bytes a message", f"{most:.0f}", most <= 300)
    ]
    for n, allowed in ((100, 5e-3), (200, 50e-3)) if quick else ((1_000, 5e-3), (10_000, 50e-3)):
        table, aim = _stretches(n, allowed, 1 if quick else 7)
        tables.append(table)
        aims.append(aim)
    return Report(tables, (), aims)


def _many(kind: Callable[..., FormatterBase], number: int, size: int) -> tuple[float, float, float]:
    """CPU seconds a message, cold and warm, and the bytes a message that messages and formatters hold then."""
    talks = [as_msgs(build_mixed_chat(size)) for _ in range(number)]
    budget = Budget(200_000)
    formatters = [kind(budget=budget) for _ in talks]

    async def format_all() -> None:
        async with anyio.create_task_group() as group:
            for formatter, msgs in zip(formatters, talks, strict=True):
                group.start_soon(formatter.format, msgs)

    taken: list[float] = []
    for _ in range(2):
        gc.collect()
        began = process_time_ns()
        anyio.run(format_all)
        taken.append((process_time_ns() - began) / 1e9 / (number * size))
    held: list[object] = [msg for msgs in talks for msg in msgs]
    for formatter in formatters:  # what it keeps of the conversation, not what it was made with
        held.extend(kept for name, kept in vars(formatter).items() if name.startswith("_"))
    return taken[0], taken[1], measure_overhead(held) * len(held) / (number * size)


def measure_memory(kind: Callable[..., FormatterBase], number: int, size: int) -> float:
    """The bytes a message that conversations hold once they were formatted, strings not counted."""
    return _many(kind, number, size)[2]


def _stretches(n: int, allowed: float, rounds: int) -> tuple[Table, Aim]:
    rows: list[list[object]] = []
    worst = 0.0
    plain = build_mixed_chat(n)
    for name, kind in _KINDS.items():
        limit = get_limit(kind, plain)
        cases: dict[str, Callable[[], FormatterBase]] = {
            "": kind,
            ", budget 20%": partial(kind, budget=Budget(limit)),
        }
        for suffix, create in cases.items():
            format_time = median(measure_format_blocking(create(), as_msgs(plain)) for _ in range(rounds))
            lower_time = median(_lowered(kind(), as_msgs(plain)) for _ in range(rounds))
            worst = max(worst, format_time)
            rows.append([f"{name}{suffix}", format_seconds(format_time), format_seconds(lower_time)])
    head = ["", "longest stretch of format()", "lower()"]
    table = Table(f"CPU time without a turn for other tasks, {n:,} messages never seen before", head, rows)
    goal = f"≤ {allowed * 1e3:.0f} ms"
    aim = Aim(
        f"Longest hold of the event loop, {n:,} new messages, worst formatter",
        goal,
        format_seconds(worst),
        worst <= allowed,
    )
    return table, aim


def measure_format_blocking(formatter: FormatterBase, msgs: Sequence[Msg]) -> float:
    """The most CPU seconds between two turns of a task that ticks while a conversation is formatted."""
    return anyio.run(measure_blocking, partial(formatter.format, msgs))


async def measure_blocking(work: Callable[[], Awaitable[object]]) -> float:
    """The most CPU seconds between two turns of a task that ticks while work is done."""
    gaps: list[int] = []

    async def tick() -> None:
        while True:
            began = thread_time_ns()
            await anyio.lowlevel.checkpoint()
            gaps.append(thread_time_ns() - began)

    async with anyio.create_task_group() as group:
        group.start_soon(tick)
        await anyio.lowlevel.checkpoint()
        await work()
        await anyio.lowlevel.checkpoint()
        group.cancel_scope.cancel()
    return max(gaps) / 1e9


def _lowered(formatter: FormatterBase, msgs: Sequence[Msg]) -> float:
    began = thread_time_ns()
    kept: Any = formatter.lower(msgs)
    taken = thread_time_ns() - began
    del kept
    return taken / 1e9
