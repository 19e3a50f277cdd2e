"""Many replies at once in one process, and how long one of them keeps the event loop to itself."""

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

_ASKED = [Msg("Alice", "Go on.", "user")]
_GOAL = 5e-3


def run(quick: bool = False) -> Report:
    """Both tables."""
    problems: list[str] = []
    replies, deltas, rounds = (5, 10, 1) if quick else (1_000, 200, 5)
    held = _many(replies, deltas, problems)
    rows, aims = _stretches(200 if quick else 10_000, 20 if quick else 1_000, rounds, problems)
    head = ["", "longest stretch without a turn for others"]
    return Report(
        [held, Table("How long the event loop is held", head, rows)], (), aims, {}, list(dict.fromkeys(problems))
    )


def _streaming(problems: list[str]) -> list[Caller]:
    """The SDKs whose bytes we read. Gemini's events come as the SDK's objects, through us too."""
    held = [one for one in load_sdk_callers(problems) if one.api != "Gemini"]
    return [one for one in held if can_stream(one.api, problems)]


# -- many replies -----------------------------------------------------------------------------------------------


def _many(replies: int, deltas: int, problems: list[str]) -> Table:
    rows: list[list[object]] = []
    for official in _streaming(problems):
        response = Response(build_stream(official.api, "text", deltas).frames, "text/event-stream", turns=True)
        client = CLIENTS[official.api](response)
        model = create_model(official.api, client)
        request = official.prepare(build_mixed_chat(4))
        ours = _spent(partial(_ours, model), replies) / deltas
        theirs = _spent(partial(_streamed, official, client, request), replies) / deltas
        rows.append([official.api, format_seconds(ours), format_seconds(theirs), theirs / ours])
    head = ["", "ChatModel, a delta", "the SDK's chunks, a delta", "ratio"]
    title = f"{replies:,} replies of {deltas} deltas at once, everything included, CPU time"
    return Table(title, head, rows)


def _spent(work: _Work, replies: int) -> float:
    """CPU seconds a reply, all of them at once."""

    async def together() -> None:
        async with anyio.create_task_group() as group:
            for _ in range(replies):
                group.start_soon(work)

    run_async(work())
    gc.collect()
    began = process_time_ns()
    run_async(together())
    return (process_time_ns() - began) / 1e9 / replies


async def _ours(model: Any) -> None:
    async with model.stream(_ASKED) as stream:
        await _read(stream)


async def _streamed(caller: Caller, client: Any, request: Any) -> None:
    await _read(caller.stream(client, request))


async def _called(caller: Caller, client: Any, request: Any) -> None:
    await caller.call(client, request)


async def _read(events: AsyncIterator[Any]) -> None:
    async for _ in events:
        pass


# -- one of them ------------------------------------------------------------------------------------------------


def _stretches(
    deltas: int, messages: int, rounds: int, problems: list[str]
) -> tuple[list[list[object]], list[Aim]]:
    rows: list[list[object]] = []
    aims: list[Aim] = []
    for official in _streaming(problems):
        api = official.api
        chunk = Response([b"".join(build_stream(api, "text", deltas).frames)], "text/event-stream")
        reading = create_model(api, CLIENTS[api](chunk))
        read = _longest(partial(_ours, reading), rounds)
        rows.append([f"{api}: reading {deltas:,} deltas that come in one chunk", format_seconds(read)])
        aims.append(_aim(f"Longest hold of the event loop, one chunk of {deltas:,} deltas, {api}", read))
        client = CLIENTS[api](build_response(api))
        sent = _longest(partial(_sent, api, client, as_msgs(build_mixed_chat(messages))), rounds)
        rows.append([f"{api}: sending {messages:,} messages", format_seconds(sent)])
        aims.append(_aim(f"… sending {messages:,} messages, {api}", sent))
        pictures = _with_pictures(messages)
        rows.append(
            [
                "… with 20 pictures of 100 KB",
                format_seconds(_longest(partial(_sent, api, client, pictures), rounds)),
            ]
        )
        request = official.prepare(build_mixed_chat(messages))
        typed = _longest(partial(_called, official, client, request), rounds)
        rows.append([f"{api}: the SDK's typed call with the finished request", format_seconds(typed)])
    return rows, aims


def _aim(what: str, found: float) -> Aim:
    return Aim(what, f"≤ {_GOAL * 1e3:.0f} ms", format_seconds(found), found <= _GOAL)


def _longest(work: _Work, rounds: int) -> float:
    """The median of the longest stretches, the collector's own not counted."""
    run_async(work())
    gc.collect()
    gc.disable()
    try:
        found: list[float] = [run_async(measure_blocking(work)) for _ in range(rounds)]
        return median(found)
    finally:
        gc.enable()


async def _sent(api: str, client: Any, msgs: list[Msg]) -> None:
    await create_model(api, client).generate(msgs)


def _with_pictures(messages: int) -> list[Msg]:
    """A history with a picture in some of the user's turns."""
    msgs = as_msgs(build_mixed_chat(messages))
    picture = ImageBlock(Base64Source("image/png", "iVBORw0KGgo" + "A" * 100_001))
    turns = [at for at, msg in enumerate(msgs) if msg.role == "user" and isinstance(msg.content, str)]
    for at in turns[:: max(1, len(turns) // 20)][:20]:
        msgs[at] = Msg("Alice", [TextBlock(str(msgs[at].content)), picture], "user")
    return msgs
