"""Calls of Anthropic's SDK."""

import json

import pytest

from agentkit import (
    NetworkError,
)
from agentkit.testing import LoopbackServer, Reply
from tests.providers.calling import BURST, HELLO, RawServer, create_model, make_raw_model, write_answer

pytestmark = pytest.mark.anyio


async def test_a_long_reply_that_breaks_has_the_request_id() -> None:
    with LoopbackServer([Reply(BURST, cut_after=8)]) as server:
        async with create_model("anthropic", server, max_tokens=64_000) as model:
            with pytest.raises(NetworkError) as caught:
                await model.generate(HELLO)
    assert str(caught.value.request_id).startswith("req_")


async def test_a_long_reply_is_streamed_although_the_caller_asks_for_a_complete_reply() -> None:
    with LoopbackServer("Long.") as server:
        async with create_model("anthropic", server, max_tokens=64_000) as model:
            assert (await model.generate(HELLO)).text == "Long."
            assert (await model.generate(HELLO, parameters={"timeout": 3_600})).text == "Long."
    assert [request.streamed for request in server.requests] == [True, False]


async def test_the_default_limit_is_16000_tokens() -> None:
    with LoopbackServer("Hello.") as server:
        async with create_model("anthropic", server) as model:
            await model.generate(HELLO, parameters={"betas": ["one", "two"], "extra_body": {"speed": "fast"}})
    request = server.requests[0]
    assert request.body["max_tokens"] == 16_000
    assert request.body["speed"] == "fast"
    assert request.headers["anthropic-beta"] == "one,two"


async def test_a_long_reply_that_breaks_is_a_network_error() -> None:
    event = {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Half a"}}
    body = f"event: content_block_delta\ndata: {json.dumps(event)}\n\n".encode()
    with RawServer(write_answer(200, body, "content-type: text/event-stream")) as server:
        async with make_raw_model("anthropic", server) as model:
            with pytest.raises(NetworkError, match="before the reply was complete"):
                await model.generate(HELLO, max_tokens=64_000)
