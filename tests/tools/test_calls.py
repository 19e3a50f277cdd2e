"""`run_tool_calls`: concurrency, order, errors as results, and cancellation."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator
from typing import Any

import anyio
import pytest

from agentkit import OptionError, ToolUseBlock, run_tool_calls
from tests.cases import each_case

pytestmark = pytest.mark.anyio


def calls(count: int, name: str = "work", **arguments: Any) -> list[ToolUseBlock]:
    return [ToolUseBlock(f"c{number}", name, {"number": number, **arguments}) for number in range(count)]


class Meter:
    """A tool that counts how many of its calls run at the same time."""

    def __init__(self) -> None:
        self.running = 0
        self.most = 0
        self.lock = threading.Lock()

    def step(self, change: int) -> None:
        with self.lock:
            self.running += change
            self.most = max(self.most, self.running)


async def test_results_come_in_the_order_of_the_calls() -> None:
    async def work(number: int) -> int:
        await anyio.sleep(0.05 - number / 2000)
        return number

    results = await run_tool_calls(calls(100), [work])
    assert [(result.id, result.name, result.text) for result in results] == [
        (f"c{number}", "work", str(number)) for number in range(100)
    ]


async def test_calls_run_at_the_same_time() -> None:
    meeting = threading.Barrier(10, timeout=10)

    def work(number: int) -> int:
        meeting.wait()
        return number

    assert not any(result.is_error for result in await run_tool_calls(calls(10), [work]))


@pytest.mark.parametrize("limit", [1, 3])
async def test_no_more_calls_than_the_limit_run_at_once(limit: int) -> None:
    meter = Meter()

    async def work(number: int) -> int:
        meter.step(1)
        await anyio.sleep(0.005)
        meter.step(-1)
        return number

    results = await run_tool_calls(calls(9), [work], max_concurrency=limit)
    assert [result.text for result in results] == [str(number) for number in range(9)]
    assert meter.most == limit


async def test_an_error_is_the_result_of_its_call_alone() -> None:
    def work(number: int) -> int:
        if number == 1:
            raise ValueError("the sea is closed")
        if number == 2:
            raise SystemExit(3)
        return number

    results = await run_tool_calls([*calls(4), ToolUseBlock("c4", "missing", {})], [work])
    assert [result.is_error for result in results] == [False, True, True, False, True]
    assert results[1].text == "ValueError: the sea is closed"
    assert "no tool 'missing'" in results[4].text


@pytest.fixture
async def stuck() -> AsyncIterator[threading.Event]:
    """An event that threads wait for. The fixture sets it at the end."""
    event = threading.Event()
    yield event
    event.set()


async def test_a_cancellation_cancels_all_calls(stuck: threading.Event) -> None:
    canceled: list[int] = []

    async def wait(number: int) -> None:
        try:
            await anyio.sleep_forever()
        except anyio.get_cancelled_exc_class():
            canceled.append(number)
            raise

    def block(number: int) -> None:
        stuck.wait()

    blocks = [*calls(20, "wait"), *calls(20, "block")]
    started = time.monotonic()
    with anyio.move_on_after(0.2) as scope:
        await run_tool_calls(blocks, [wait, block])
    assert scope.cancelled_caught
    assert sorted(canceled) == [*range(20)]
    assert time.monotonic() - started < 5


async def test_an_interrupt_is_raised_as_itself() -> None:
    async def work(number: int) -> int:
        if number == 1:
            raise KeyboardInterrupt
        await anyio.sleep_forever()
        return number

    with pytest.raises(KeyboardInterrupt):
        await run_tool_calls(calls(3), [work])


async def test_no_calls_have_no_results() -> None:
    assert await run_tool_calls([], []) == []


@each_case(
    ("value", "options", "reason"),
    [
        ("", {}, "calls: expected a list of ToolUseBlock, got ''"),
        ("c", {}, "calls: expected a list of ToolUseBlock, got 'c'"),
        (ToolUseBlock("c", "work", {}), {}, "calls"),
        (["c"], {}, r"calls\[0\]"),
        (None, {}, "calls"),
        ([], {"max_concurrency": 0}, "max_concurrency: must be an integer of at least 1, got 0"),
        ([], {"max_concurrency": "3"}, "max_concurrency"),
    ],
)
async def test_bad_arguments_are_refused(value: Any, options: Any, reason: str) -> None:
    with pytest.raises(OptionError, match=reason):
        await run_tool_calls(value, [], **options)


async def test_each_call_has_a_separate_context() -> None:
    async def work(number: int) -> str:
        return str(anyio.get_current_task().id)

    results = await run_tool_calls(calls(3), [work])
    assert len({result.text for result in results}) == 3


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_tool_that_cancels_its_task_stops_no_other_call() -> None:
    async def work(number: int) -> int:
        if number == 0:
            task = asyncio.current_task()
            assert task is not None
            task.cancel()
        await anyio.sleep(0.01)
        return number

    for limit in (None, 1):
        results = await run_tool_calls(calls(3), [work], max_concurrency=limit)
        assert [result.text for result in results] == ["The call was canceled.", "1", "2"]
        assert [result.is_error for result in results] == [True, False, False]


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_native_cancellation_cancels_all_calls() -> None:
    async def work(number: int) -> int:
        await anyio.sleep_forever()
        return number

    task = asyncio.ensure_future(run_tool_calls(calls(5), [work]))
    await anyio.sleep(0.02)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_tools_that_hang_in_threads_do_not_delay_an_async_tool(stuck: threading.Event) -> None:
    def block(number: int) -> None:
        stuck.wait()

    async def work(number: int) -> dict[str, int]:
        await anyio.sleep(0.05)
        return {"number": number}

    with anyio.fail_after(10):
        async with anyio.create_task_group() as group:
            group.start_soon(run_tool_calls, calls(100, "block"), [block])
            results = await run_tool_calls(calls(100), [work])
            assert [result.text for result in results] == [f'{{"number":{number}}}' for number in range(100)]
            group.cancel_scope.cancel()


async def test_a_synchronous_tool_runs_a_hundred_calls() -> None:
    def work(number: int) -> int:
        time.sleep(0.001)
        return number

    results = await run_tool_calls(calls(100), [work])
    assert [result.text for result in results] == [str(number) for number in range(100)]
