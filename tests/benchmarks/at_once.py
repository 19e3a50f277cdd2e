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
from tests.benchmarks.callers import Caller, agentkit_model, sdks, streams_through
from tests.benchmarks.histories import as_msgs, mixed
from tests.benchmarks.in_memory import Answer, clients, streamed, whole
from tests.benchmarks.many import stretched
from tests.benchmarks.measure import show
from tests.benchmarks.peers import run_async
from tests.benchmarks.report import Aim, Report, Table

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
    held = [one for one in sdks(problems) if one.wire != "Gemini"]
    return [one for one in held if streams_through(one.wire, problems)]


# -- many replies -----------------------------------------------------------------------------------------------


def _many(replies: int, deltas: int, problems: list[str]) -> Table:
    rows: list[list[object]] = []
    for official in _streaming(problems):
        answer = Answer(streamed(official.wire, "text", deltas).frames, "text/event-stream", turns=True)
        client = clients[official.wire](answer)
        model = agentkit_model(official.wire, client)
        request = official.prepare(mixed(4))
        ours = _spent(partial(_ours, model), replies) / deltas
        theirs = _spent(partial(_streamed, official, client, request), replies) / deltas
        rows.append([official.wire, show(ours), show(theirs), theirs / ours])
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
        wire = official.wire
        chunk = Answer([b"".join(streamed(wire, "text", deltas).frames)], "text/event-stream")
        reading = agentkit_model(wire, clients[wire](chunk))
        read = _longest(partial(_ours, reading), rounds)
        rows.append([f"{wire}: reading {deltas:,} deltas that come in one chunk", show(read)])
        aims.append(_aim(f"Longest hold of the event loop, one chunk of {deltas:,} deltas, {wire}", read))
        client = clients[wire](whole(wire))
        sent = _longest(partial(_sent, wire, client, as_msgs(mixed(messages))), rounds)
        rows.append([f"{wire}: sending {messages:,} messages", show(sent)])
        aims.append(_aim(f"… sending {messages:,} messages, {wire}", sent))
        pictures = _with_pictures(messages)
        rows.append(
            ["… with 20 pictures of 100 KB", show(_longest(partial(_sent, wire, client, pictures), rounds))]
        )
        request = official.prepare(mixed(messages))
        typed = _longest(partial(_called, official, client, request), rounds)
        rows.append([f"{wire}: the SDK's typed call with the finished request", show(typed)])
    return rows, aims


def _aim(what: str, found: float) -> Aim:
    return Aim(what, f"≤ {_GOAL * 1e3:.0f} ms", show(found), found <= _GOAL)


def _longest(work: _Work, rounds: int) -> float:
    """The median of the longest stretches, the collector's own not counted."""
    run_async(work())
    gc.collect()
    gc.disable()
    try:
        found: list[float] = [run_async(stretched(work)) for _ in range(rounds)]
        return median(found)
    finally:
        gc.enable()


async def _sent(wire: str, client: Any, msgs: list[Msg]) -> None:
    await agentkit_model(wire, client).generate(msgs)


def _with_pictures(messages: int) -> list[Msg]:
    """A history with a picture in some of the user's turns."""
    msgs = as_msgs(mixed(messages))
    picture = ImageBlock(Base64Source("image/png", "iVBORw0KGgo" + "A" * 100_001))
    turns = [at for at, msg in enumerate(msgs) if msg.role == "user" and isinstance(msg.content, str)]
    for at in turns[:: max(1, len(turns) // 20)][:20]:
        msgs[at] = Msg("Alice", [TextBlock(str(msgs[at].content)), picture], "user")
    return msgs
