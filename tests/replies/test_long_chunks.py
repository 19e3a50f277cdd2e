"""A chunk of a stream may have any length. Its parsing does not block other tasks."""

from collections.abc import Sequence

import anyio
import anyio.lowlevel
import pytest

from agentkit import Msg
from tests.benchmarks.callers import create_model
from tests.benchmarks.sdk_clients import CLIENTS, Response, build_stream
from tests.providers import user

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("api", ["OpenAI Chat", "OpenAI Responses", "Anthropic"])
async def test_other_tasks_run_while_a_long_chunk_is_parsed(api: str) -> None:
    reply = build_stream(api, "text", 4_000)
    result = await _read(api, [b"".join(reply.frames)])
    turns = result[1]
    assert result[0] == (await _read(api, reply.frames))[0]
    assert turns >= sum(map(len, reply.frames)) // 80_000


async def _read(api: str, chunks: Sequence[bytes]) -> tuple[Msg, int]:
    """Returns the message, and the number of steps of another task between the first event and the last."""
    turns = 0

    async def tick() -> None:
        nonlocal turns
        while True:
            await anyio.lowlevel.checkpoint()
            turns += 1

    client = CLIENTS[api](Response(chunks, "text/event-stream"))
    stream = create_model(api, client).stream([user("Go on.")])
    async with client, anyio.create_task_group() as group:
        async with stream:
            await anext(stream)
            group.start_soon(tick)
            turns = 0
            await stream.finish()
        group.cancel_scope.cancel()
    return stream.message, turns
