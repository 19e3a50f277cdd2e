"""Time of many concurrent replies in one process, and how long one reply blocks the event loop."""

from __future__ import annotations

import gc
from collections.abc import AsyncIterator, Callable, Coroutine
from functools import partial
from statistics import median
from time import process_time_ns
from typing import Any, TypeAlias

import anyio

from agentkit import Base64Source, ImageBlock, Msg, TextBlock
from tests.benchmarks.callers import Caller, can_stream, create_model, load_sdk_callers
from tests.benchmarks.concurrent_formatting import measure_blocking
from tests.benchmarks.histories import as_msgs, build_mixed_chat
from tests.benchmarks.measure import format_seconds
from tests.benchmarks.peers import run_async
from tests.benchmarks.report import Aim, Report, Table
from tests.benchmarks.sdk_clients import CLIENTS, Response, build_response, build_stream

__all__ = ["run"]

_Work: TypeAlias = Callable[[], Coroutine[Any, Any, object]]

_MSGS = [Msg("Alice", "Go on.", "user")]
_MAX_SECONDS = 5e-3


def run(quick: bool = False) -> Report:
    """Measures concurrent replies, and the longest time that one reply blocks the event loop."""
    problems: list[str] = []
    replies, deltas, rounds = (5, 10, 1) if quick else (1_000, 200, 5)
    replies_table = _measure_many(replies, deltas, problems)
    rows, aims = _measure_blocking_times(200 if quick else 10_000, 20 if quick else 1_000, rounds, problems)
    head = ["", "longest time that other tasks wait"]
    return Report(
        [replies_table, Table("Longest time that the event loop is blocked", head, rows)],
        (),
        aims,
        {},
        list(dict.fromkeys(problems)),
    )


def _load_callers(problems: list[str]) -> list[Caller]:
    """Returns the SDKs whose response bytes agentkit reads: all but Gemini, whose SDK passes event objects."""
    callers = [caller for caller in load_sdk_callers(problems) if caller.api != "Gemini"]
    return [caller for caller in callers if can_stream(caller.api, problems)]


# -- concurrent replies -----------------------------------------------------------------------------------------


def _measure_many(replies: int, deltas: int, problems: list[str]) -> Table:
    rows: list[list[object]] = []
    for sdk in _load_callers(problems):
        response = Response(
            build_stream(sdk.api, "text", deltas).frames, "text/event-stream", has_checkpoints=True
        )
        client = CLIENTS[sdk.api](response)
        model = create_model(sdk.api, client)
        request = sdk.prepare(build_mixed_chat(4))
        agentkit_time = _measure_cpu_per_reply(partial(_stream_with_agentkit, model), replies) / deltas
        sdk_time = _measure_cpu_per_reply(partial(_stream_with_sdk, sdk, client, request), replies) / deltas
        rows.append([sdk.api, format_seconds(agentkit_time), format_seconds(sdk_time), sdk_time / agentkit_time])
    head = ["", "ChatModel, per delta", "SDK, per delta", "ratio"]
    title = f"{replies:,} concurrent replies of {deltas} deltas, total CPU time"
    return Table(title, head, rows)


def _measure_cpu_per_reply(work: _Work, replies: int) -> float:
    """Returns the CPU seconds per reply of concurrent replies."""

    async def run_all() -> None:
        async with anyio.create_task_group() as group:
            for _ in range(replies):
                group.start_soon(work)

    run_async(work())
    gc.collect()
    began = process_time_ns()
    run_async(run_all())
    return (process_time_ns() - began) / 1e9 / replies


async def _stream_with_agentkit(model: Any) -> None:
    async with model.stream(_MSGS) as stream:
        await _exhaust(stream)


async def _stream_with_sdk(caller: Caller, client: Any, request: Any) -> None:
    await _exhaust(caller.stream(client, request))


async def _call_sdk(caller: Caller, client: Any, request: Any) -> None:
    await caller.call(client, request)


async def _exhaust(events: AsyncIterator[Any]) -> None:
    async for _ in events:
        pass


# -- one reply --------------------------------------------------------------------------------------------------


def _measure_blocking_times(
    deltas: int, messages: int, rounds: int, problems: list[str]
) -> tuple[list[list[object]], list[Aim]]:
    rows: list[list[object]] = []
    aims: list[Aim] = []
    for sdk in _load_callers(problems):
        api = sdk.api
        chunk = Response([b"".join(build_stream(api, "text", deltas).frames)], "text/event-stream")
        model = create_model(api, CLIENTS[api](chunk))
        read_time = _measure_median_blocking(partial(_stream_with_agentkit, model), rounds)
        rows.append([f"{api}: reading {deltas:,} deltas in one chunk", format_seconds(read_time)])
        aims.append(
            _build_aim(
                f"Longest time that the event loop is blocked, one chunk of {deltas:,} deltas, {api}", read_time
            )
        )
        client = CLIENTS[api](build_response(api))
        send_time = _measure_median_blocking(
            partial(_generate, api, client, as_msgs(build_mixed_chat(messages))), rounds
        )
        rows.append([f"{api}: sending {messages:,} messages", format_seconds(send_time)])
        aims.append(
            _build_aim(
                f"Longest time that the event loop is blocked, sending {messages:,} messages, {api}", send_time
            )
        )
        msgs_with_images = _build_chat_with_images(messages)
        rows.append(
            [
                f"{api}: sending {messages:,} messages with 20 images of 100 KB",
                format_seconds(
                    _measure_median_blocking(partial(_generate, api, client, msgs_with_images), rounds)
                ),
            ]
        )
        request = sdk.prepare(build_mixed_chat(messages))
        call_time = _measure_median_blocking(partial(_call_sdk, sdk, client, request), rounds)
        rows.append([f"{api}: typed call of the SDK with a finished request", format_seconds(call_time)])
    return rows, aims


def _build_aim(measurement: str, seconds: float) -> Aim:
    return Aim(measurement, f"≤ {_MAX_SECONDS * 1e3:.0f} ms", format_seconds(seconds), seconds <= _MAX_SECONDS)


def _measure_median_blocking(work: _Work, rounds: int) -> float:
    """Returns the median of the longest blocking times, with the garbage collector disabled."""
    run_async(work())
    gc.collect()
    gc.disable()
    try:
        times: list[float] = [run_async(measure_blocking(work)) for _ in range(rounds)]
        return median(times)
    finally:
        gc.enable()


async def _generate(api: str, client: Any, msgs: list[Msg]) -> None:
    await create_model(api, client).generate(msgs)


def _build_chat_with_images(messages: int) -> list[Msg]:
    """Returns a history with images in 20 messages of the user."""
    msgs = as_msgs(build_mixed_chat(messages))
    image = ImageBlock(Base64Source("image/png", "iVBORw0KGgo" + "A" * 100_001))
    indexes = [index for index, msg in enumerate(msgs) if msg.role == "user" and isinstance(msg.content, str)]
    for index in indexes[:: max(1, len(indexes) // 20)][:20]:
        msgs[index] = Msg("Alice", [TextBlock(str(msgs[index].content)), image], "user")
    return msgs
