"""A chunk of a stream may have any length. Parsing it does not block other tasks."""

from collections.abc import Sequence

import anyio
import anyio.lowlevel
import pytest

from agentkit import Msg
from tests.benchmarks.callers import agentkit_model
from tests.benchmarks.in_memory import Answer, clients, streamed
from tests.providers import user

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("wire", ["OpenAI Chat", "OpenAI Responses", "Anthropic"])
async def test_others_have_a_turn_while_a_long_chunk_is_read(wire: str) -> None:
    reply = streamed(wire, "text", 4_000)
    one = await _read(wire, [b"".join(reply.frames)])
    turns = one[1]
    assert one[0] == (await _read(wire, reply.frames))[0]
    assert turns >= sum(map(len, reply.frames)) // 80_000


async def _read(wire: str, chunks: Sequence[bytes]) -> tuple[Msg, int]:
    """Returns the message, and the number of steps of another task between the first event and the last."""
    turns = 0

    async def tick() -> None:
        nonlocal turns
        while True:
            await anyio.lowlevel.checkpoint()
            turns += 1

    client = clients[wire](Answer(chunks, "text/event-stream"))
    stream = agentkit_model(wire, client).stream([user("Go on.")])
    async with client, anyio.create_task_group() as group:
        async with stream:
            await anext(stream)
            group.start_soon(tick)
            turns = 0
            await stream.finish()
        group.cancel_scope.cancel()
    return stream.message, turns
