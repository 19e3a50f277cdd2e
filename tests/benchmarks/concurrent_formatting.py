"""Time and memory of many conversations in one process, and how long formatting blocks the event loop."""

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

_FORMATTERS: dict[str, Callable[..., FormatterBase]] = {
    "OpenAI": OpenAIChatFormatter,
    "Anthropic": AnthropicChatFormatter,
    "OpenAI multi-agent": OpenAIMultiAgentFormatter,
    "Anthropic multi-agent": AnthropicMultiAgentFormatter,
}


def run(quick: bool = False) -> Report:
    """Measures many conversations, and the longest time that formatting blocks the event loop."""
    number, size = (20, 20) if quick else (1_000, 50)
    results = {name: _measure_conversations(factory, number, size) for name, factory in _FORMATTERS.items()}
    rows = [
        [name, format_seconds(cold), format_seconds(warm), f"{size:.0f}"]
        for name, (cold, warm, size) in results.items()
    ]
    head = ["", "first time, per message", "second time, per message", "bytes per message"]
    tables = [Table(f"{number:,} conversations of {size} messages, formatted concurrently", head, rows)]
    worst = max(size for *_, size in results.values())
    aims = [Aim(f"Memory of {number:,} conversations", "≤ 300 bytes per message", f"{worst:.0f}", worst <= 300)]
    for n, allowed in ((100, 5e-3), (200, 50e-3)) if quick else ((1_000, 5e-3), (10_000, 50e-3)):
        table, aim = _measure_blocking_times(n, allowed, 1 if quick else 7)
        tables.append(table)
        aims.append(aim)
    return Report(tables, (), aims)


def _measure_conversations(
    factory: Callable[..., FormatterBase], number: int, size: int
) -> tuple[float, float, float]:
    """Returns the CPU seconds per message, first and second time, and then the bytes per message."""
    conversations = [as_msgs(build_mixed_chat(size)) for _ in range(number)]
    budget = Budget(200_000)
    formatters = [factory(budget=budget) for _ in conversations]

    async def format_all() -> None:
        async with anyio.create_task_group() as group:
            for formatter, msgs in zip(formatters, conversations, strict=True):
                group.start_soon(formatter.format, msgs)

    times: list[float] = []
    for _ in range(2):
        gc.collect()
        began = process_time_ns()
        anyio.run(format_all)
        times.append((process_time_ns() - began) / 1e9 / (number * size))
    objects: list[object] = [msg for msgs in conversations for msg in msgs]
    for formatter in formatters:  # public attributes are options of the formatter, not memory of the conversation
        objects.extend(value for name, value in vars(formatter).items() if name.startswith("_"))
    return times[0], times[1], measure_overhead(objects) * len(objects) / (number * size)


def measure_memory(factory: Callable[..., FormatterBase], number: int, size: int) -> float:
    """Returns the bytes per message of formatted conversations and their formatters, without strings."""
    return _measure_conversations(factory, number, size)[2]


def _measure_blocking_times(n: int, allowed: float, rounds: int) -> tuple[Table, Aim]:
    rows: list[list[object]] = []
    worst = 0.0
    plain = build_mixed_chat(n)
    for name, factory in _FORMATTERS.items():
        limit = get_limit(factory, plain)
        cases: dict[str, Callable[[], FormatterBase]] = {
            "": factory,
            ", budget 20%": partial(factory, budget=Budget(limit)),
        }
        for suffix, create in cases.items():
            format_time = median(measure_format_blocking(create(), as_msgs(plain)) for _ in range(rounds))
            lower_time = median(_measure_lower(factory(), as_msgs(plain)) for _ in range(rounds))
            worst = max(worst, format_time)
            rows.append([f"{name}{suffix}", format_seconds(format_time), format_seconds(lower_time)])
    head = ["", "longest time in format()", "time of lower()"]
    table = Table(f"Longest CPU time that other tasks wait, {n:,} new messages", head, rows)
    goal = f"≤ {allowed * 1e3:.0f} ms"
    aim = Aim(
        f"Longest time that the event loop is blocked, {n:,} new messages, worst formatter",
        goal,
        format_seconds(worst),
        worst <= allowed,
    )
    return table, aim


def measure_format_blocking(formatter: FormatterBase, msgs: Sequence[Msg]) -> float:
    """Returns the longest CPU time, in seconds, for which formatting a conversation blocks another task."""
    return anyio.run(measure_blocking, partial(formatter.format, msgs))


async def measure_blocking(work: Callable[[], Awaitable[object]]) -> float:
    """Returns the longest CPU time, in seconds, for which `work` blocks another task."""
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


def _measure_lower(formatter: FormatterBase, msgs: Sequence[Msg]) -> float:
    began = thread_time_ns()
    plan: Any = formatter.lower(msgs)
    duration = thread_time_ns() - began
    del plan
    return duration / 1e9
