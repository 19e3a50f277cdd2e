"""DashScope's native API of the loopback server through its SDK: the classic classes, and the new client."""

from __future__ import annotations

import json
from typing import Any, Final, cast

import aiohttp
import dashscope
import pytest

from agentkit import Msg, TextBlock, ThinkingBlock, ToolUseBlock
from agentkit.testing import LoopbackError, LoopbackServer, Reply

pytestmark = pytest.mark.anyio

SDK: Final = cast("Any", dashscope)  # its classes are typed in part only
ARGUMENTS: Final = {"place": "Köln"}
REPLY: Final = Msg(
    "Friday",
    [ThinkingBlock("Let me see."), TextBlock("Hello there."), ToolUseBlock("call_1", "look", ARGUMENTS)],
    "assistant",
)
CLASSIC: Final = {"text": "AioGeneration", "multimodal": "AioMultiModalConversation"}


@pytest.fixture
def anyio_backend() -> str:
    """The SDK supports only asyncio."""
    return "asyncio"


def call_options(server: LoopbackServer, session: aiohttp.ClientSession, path: str, **more: Any) -> dict[str, Any]:
    content = "Hello" if path == "text" else [{"text": "Hello"}]
    where = {"api_key": "none", "base_address": server.url("dashscope"), "session": session}
    return {
        "model": "m",
        "messages": [{"role": "user", "content": content}],
        "result_format": "message",
        **where,
        **more,
    }


def get_text(message: Any) -> str:
    content = message["content"]
    return content if isinstance(content, str) else "".join(part["text"] for part in content)


@pytest.mark.parametrize("path", CLASSIC)
async def test_the_classic_classes_read_a_complete_reply(path: str) -> None:
    with LoopbackServer(REPLY) as server:
        async with aiohttp.ClientSession() as session:
            reply = await getattr(SDK, CLASSIC[path]).call(**call_options(server, session, path))
    choice = reply.output["choices"][0]
    assert reply.status_code == 200
    assert (choice["finish_reason"], get_text(choice["message"])) == ("tool_calls", "Hello there.")
    assert choice["message"]["reasoning_content"] == "Let me see."
    assert json.loads(choice["message"]["tool_calls"][0]["function"]["arguments"]) == ARGUMENTS
    assert reply.usage["total_tokens"] == reply.usage["input_tokens"] + reply.usage["output_tokens"] > 0


@pytest.mark.parametrize("incremental", [True, False])
@pytest.mark.parametrize("path", CLASSIC)
async def test_the_classic_classes_read_a_stream(path: str, incremental: bool) -> None:
    with LoopbackServer(REPLY) as server:
        async with aiohttp.ClientSession() as session:
            request = call_options(server, session, path, stream=True, incremental_output=incremental)
            events = [event async for event in await getattr(SDK, CLASSIC[path]).call(**request)]
    messages = [event.output["choices"][0]["message"] for event in events]
    reasons = [event.output["choices"][0]["finish_reason"] for event in events]
    assert set(reasons[:-1]) == {"null"}
    assert reasons[-1] == "tool_calls"
    texts = [get_text(message) for message in messages]
    assert ("".join(texts) if incremental else texts[-1]) == "Hello there."
    assert server.requests[0].streamed


async def test_a_stream_without_increments_repeats_the_earlier_text() -> None:
    with LoopbackServer(REPLY) as server:
        url = f"{server.url('dashscope')}/services/aigc/text-generation/generation"
        body = {"model": "m", "input": {"messages": [{"role": "user", "content": "Hello"}]}, "parameters": {}}
        async with (
            aiohttp.ClientSession() as session,
            session.post(url, json=body, headers={"X-DashScope-SSE": "enable"}) as answer,
        ):
            frames = (await answer.text()).split("\n\n")
    assert frames[0].startswith("id:1\nevent:result\n:HTTP_STATUS/200\ndata:{")
    messages = [
        json.loads(frame.partition("data:")[2])["output"]["choices"][0]["message"] for frame in frames if frame
    ]
    assert [len(message["content"]) for message in messages] == sorted(
        len(message["content"]) for message in messages
    )
    assert messages[-1]["content"] == "Hello there."
    assert json.loads(messages[-1]["tool_calls"][0]["function"]["arguments"]) == ARGUMENTS


async def test_errors_are_returned_by_the_classic_classes() -> None:
    broken = Reply("Hello there, my friend.", error=LoopbackError(429, "Slow.", code="Throttling"), error_after=2)
    with LoopbackServer([LoopbackError(400, "Range of input length should be [1, 9]"), broken]) as server:
        async with aiohttp.ClientSession() as session:
            refused = await SDK.AioGeneration.call(**call_options(server, session, "text"))
            request = call_options(server, session, "text", stream=True, incremental_output=True)
            events = [event async for event in await SDK.AioGeneration.call(**request)]
    assert (refused.status_code, refused.code) == (400, "InvalidParameter")
    assert refused.message == "Range of input length should be [1, 9]"
    assert [event.status_code for event in events] == [
        200,
        200,
        400,
    ]  # the SDK has no other status for an error event
    assert events[-1].code == "Throttling"


async def test_the_new_client_reads_both_paths() -> None:
    with LoopbackServer(REPLY) as server:
        client = SDK.AsyncClient(api_key="none", base_url=server.url("dashscope"), max_retries=0)
        messages = [{"role": "user", "content": "Hello"}]
        for resource in (client.chat.completions, client.multimodal.chat):
            reply = await resource.create(model="m", messages=messages)
            stream = await resource.create(model="m", messages=messages, stream=True)
            chunks = [chunk async for chunk in stream]
            assert "Hello there." in str(reply)
            assert len(chunks) > 3
        await client.aclose()
    assert [request.streamed for request in server.requests] == [False, True, False, True]


@pytest.mark.parametrize(
    ("status", "kind"), [(400, "BadRequestError"), (401, "AuthenticationError"), (429, "RateLimitError")]
)
async def test_the_new_client_raises_errors_of_their_class(status: int, kind: str) -> None:
    from dashscope.v2 import errors

    with LoopbackServer(LoopbackError(status, "No.")) as server:
        client = SDK.AsyncClient(api_key="none", base_url=server.url("dashscope"), max_retries=0)
        with pytest.raises(getattr(errors, kind), match="No"):
            await client.chat.completions.create(model="m", messages=[{"role": "user", "content": "Hello"}])
        await client.aclose()
