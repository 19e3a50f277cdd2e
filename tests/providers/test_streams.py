"""Streams that end, break, are left early or are canceled, through each real SDK client."""

import asyncio
import json
import threading
from contextlib import suppress
from dataclasses import replace
from typing import Any, Final, cast

import anyio
import anyio.to_thread
import pytest

from agentkit import (
    ChatModel,
    FinishReason,
    ModelError,
    ModelStream,
    Msg,
    NetworkError,
    OverloadedError,
    RateLimitError,
    TextBlock,
    ThinkingBlock,
    ToolUseBlock,
)
from agentkit.provider_kit import EndpointBase
from agentkit.testing import LoopbackError, LoopbackServer, Reply
from tests.cases import each_case
from tests.providers import LOOK, PROVIDERS, chat, user
from tests.providers.calling import (
    BURST,
    HELLO,
    RawServer,
    StallingServer,
    create_model,
    make_raw_model,
    open_stream,
    read_stream,
    write_answer,
)

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("provider", PROVIDERS)
async def test_an_error_within_a_stream_does_not_remove_the_text_before_it(provider: str) -> None:
    reply = Reply(BURST, error=LoopbackError(503, "The server is overloaded."), error_after=8)
    with LoopbackServer([reply]) as server:
        async with create_model(provider, server) as model, model.stream(HELLO) as stream:
            kinds: list[str] = []
            with pytest.raises(OverloadedError, match="overloaded"):
                kinds.extend([event.type async for event in stream])
    assert stream.message.text
    assert BURST.startswith(stream.message.text)
    assert stream.message.finish_reason is FinishReason.ERROR


@pytest.mark.parametrize("provider", PROVIDERS)
async def test_a_broken_connection_does_not_remove_the_text_before_it(provider: str) -> None:
    with LoopbackServer([Reply(BURST, cut_after=8)]) as server:
        async with create_model(provider, server) as model, model.stream(HELLO) as stream:
            with pytest.raises(NetworkError):
                await stream.finish()
    assert stream.message.text
    assert stream.message.finish_reason is FinishReason.INTERRUPTED


_REQUEST_ID_HEADERS: Final = {"anthropic": "request-id"}  # of the header; `x-request-id` for all others


@each_case("reply", {"cut": Reply(BURST, cut_after=8), "page": Reply([b"<html>"]), "empty": Reply([])})
@pytest.mark.parametrize("provider", PROVIDERS)
async def test_a_broken_stream_has_the_request_id(provider: str, reply: Reply) -> None:
    named = replace(reply, headers={_REQUEST_ID_HEADERS.get(provider, "x-request-id"): "req_7"})
    with LoopbackServer([named]) as server:
        async with create_model(provider, server) as model, model.stream(HELLO) as stream:
            with pytest.raises(ModelError) as caught:
                await stream.finish()
    assert caught.value.request_id == stream.request_id == "req_7"


@pytest.mark.parametrize("provider", PROVIDERS)
async def test_leaving_a_stream_closes_the_connection(provider: str) -> None:
    with LoopbackServer([Reply(BURST, delay=0.02), "And now?"]) as server:
        async with create_model(provider, server) as model:
            async with model.stream(HELLO) as stream:
                async for event in stream:
                    if event.type == "text-delta":
                        break
            assert server.requests[0].wait().disconnected
            assert stream.message.finish_reason is FinishReason.INTERRUPTED
            assert (await model.generate([*HELLO, stream.message, user("Go on.")])).text == "And now?"


@pytest.mark.parametrize("provider", PROVIDERS)
async def test_canceling_a_stream_closes_the_connection(provider: str) -> None:
    begun = anyio.Event()
    caught: list[BaseException] = []
    streams: list[Any] = []

    async def listen() -> None:
        try:
            async with model.stream(HELLO) as stream:
                streams.append(stream)
                async for event in stream:
                    if event.type == "text-delta":
                        begun.set()
        except BaseException as error:
            caught.append(error)
            raise

    with LoopbackServer([Reply(BURST, delay=0.02)]) as server:
        async with create_model(provider, server) as model:
            async with anyio.create_task_group() as group:
                group.start_soon(listen)
                await begun.wait()
                group.cancel_scope.cancel()
            assert [type(error) for error in caught] == [anyio.get_cancelled_exc_class()]
            assert server.requests[0].wait().disconnected
    assert streams[0].message.finish_reason is FinishReason.INTERRUPTED


@each_case("steps", range(4))
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
@pytest.mark.parametrize("provider", PROVIDERS)
async def test_canceling_while_a_stream_closes_waits_for_the_closing(provider: str, steps: int) -> None:
    streams: list[ModelStream] = []

    async def listen() -> None:
        async with model.stream(HELLO) as stream:
            streams.append(stream)
            async for event in stream:
                if event.type == "text-delta":
                    break
            _cancel_after(steps, cast("asyncio.Task[None]", asyncio.current_task()))

    with LoopbackServer([Reply(BURST, delay=0.02)]) as server:
        async with create_model(provider, server) as model:
            with suppress(asyncio.CancelledError):  # the stream may be closed before it comes
                await asyncio.create_task(listen())
            assert streams[0].message.finish_reason is FinishReason.INTERRUPTED
            assert server.requests[0].wait().disconnected


def _cancel_after(steps: int, task: "asyncio.Task[None]") -> None:
    """Cancels a task after some iterations of the event loop: natively, so that no shield of anyio prevents it."""
    if steps:
        asyncio.get_running_loop().call_soon(_cancel_after, steps - 1, task)
    else:
        task.cancel()


@pytest.mark.parametrize("provider", PROVIDERS)
async def test_canceling_a_call_closes_the_connection(provider: str) -> None:
    arrived = threading.Event()

    def late(body: object) -> Reply:
        arrived.set()
        return Reply("Too late.", delay=1)

    with LoopbackServer(late) as server:
        async with create_model(provider, server) as model:
            async with anyio.create_task_group() as group:
                group.start_soon(model.generate, HELLO)
                await anyio.to_thread.run_sync(arrived.wait)
                group.cancel_scope.cancel()
            assert server.requests[0].wait().disconnected


CUT: Final = Msg(
    "Friday",
    [
        ThinkingBlock("Where is it?"),
        TextBlock("Let me look."),
        ToolUseBlock("call_1", "look", {"place": "the far side of the sea", "why": "because " * 30}),
    ],
    "assistant",
)


@pytest.mark.parametrize("provider", PROVIDERS)
async def test_the_message_of_a_broken_stream_fits_every_provider(provider: str) -> None:
    msg = CUT if provider != "openai" else Msg("Friday", CUT.blocks[1:], "assistant")
    with LoopbackServer() as server:
        async with create_model(provider, server) as model:
            for cut in (0, 1, 2, 3, 6, 10, 20):
                server.play(Reply(msg, cut_after=cut, piece_size=4), "Go on.")
                async with model.stream(HELLO, tools=[LOOK]) as stream:
                    with suppress(NetworkError):
                        await stream.finish()
                history = [*HELLO, stream.message, user("Go on.")]
                assert (await model.generate(history, tools=[LOOK])).text == "Go on."
                for other in PROVIDERS:
                    assert chat(other).lower(history, tools=[LOOK]).request
                assert Msg.from_dict(stream.message.to_dict()) == stream.message


@pytest.mark.parametrize("provider", PROVIDERS)
async def test_a_web_page_as_stream_is_a_model_error(provider: str) -> None:
    with LoopbackServer([Reply([b"<html>Welcome</html>"]), Reply([b"data: 3\n\n"])]) as server:
        async with create_model(provider, server) as model:
            for _ in range(2):
                with pytest.raises(ModelError):
                    await read_stream(model, HELLO)


@each_case("indent", [None, 2])
@pytest.mark.parametrize("provider", PROVIDERS)
async def test_an_error_object_instead_of_a_stream_is_read(provider: str, indent: int | None) -> None:
    body = {"code": "429", "message": "Slow down.", "request_id": "req-1"}
    text = json.dumps(body, indent=indent).encode()
    with RawServer(write_answer(200, text)) as server:
        async with make_raw_model(provider, server) as model, model.stream(HELLO) as stream:
            with pytest.raises(RateLimitError, match="Slow down") as caught:
                await stream.finish()
    assert caught.value.request_id == "req-1"
    assert stream.message.finish_reason is FinishReason.ERROR


@pytest.mark.parametrize("provider", PROVIDERS)
async def test_a_complete_reply_instead_of_a_stream_is_parsed(provider: str) -> None:
    with LoopbackServer("Hello.") as server:
        async with create_model(provider, server) as model:
            reply = await model.generate(HELLO)
            text = await _complete_reply(model)
    for indent in (None, 2):
        body = json.dumps(json.loads(text), indent=indent).encode()
        with RawServer(write_answer(200, body)) as raw:
            async with make_raw_model(provider, raw) as model:
                _, streamed = await read_stream(model, HELLO)
        assert (streamed.content, streamed.usage) == (reply.content, reply.usage)
        assert streamed.finish_reason is FinishReason.STOP


ENDED: Final = tuple(name for name in PROVIDERS if name not in ("dashscope", "gemini"))
"""Providers whose API has a last event."""


async def _streamed_bytes(provider: str, *replies: Any) -> bytes:
    """Returns the raw bytes of a streamed reply."""
    with LoopbackServer([*replies]) as server:
        async with create_model(provider, server) as model:
            await model.open()
            endpoint, plan = cast("EndpointBase", vars(model)["_client"].endpoint), await model.plan(HELLO)
            async with endpoint.stream(
                endpoint.build_request(model.model, plan.request, {}, stream=True)
            ) as pieces:
                return b"".join([piece async for piece in pieces])


@pytest.mark.parametrize("provider", ENDED)
async def test_a_stream_ends_with_the_last_event_of_the_api(provider: str) -> None:
    body = await _streamed_bytes(provider, "Yes, here I am.")
    with StallingServer(open_stream(body)) as server, anyio.fail_after(10):
        async with make_raw_model(provider, server) as model:
            kinds, reply = await read_stream(model, HELLO)
    assert (reply.text, reply.finish_reason) == ("Yes, here I am.", FinishReason.STOP)
    assert reply.usage
    assert kinds.count("message-end") == 1


@each_case("body", [b"", b"\n\n", b": keep-alive\n\n: keep-alive\n\n"])
@pytest.mark.parametrize("provider", PROVIDERS)
async def test_an_empty_reply_is_retryable(provider: str, body: bytes) -> None:
    with RawServer(open_stream(body)) as server:
        async with make_raw_model(provider, server) as model:
            with pytest.raises(NetworkError) as streamed:
                await read_stream(model, HELLO)
            if not body.strip():
                with pytest.raises(NetworkError) as complete:
                    await model.generate(HELLO)
                assert complete.value.retryable
    assert streamed.value.retryable


async def _complete_reply(model: ChatModel) -> Any:
    """Returns the raw bytes of a complete reply."""
    endpoint, plan = cast("EndpointBase", vars(model)["_client"].endpoint), await model.plan(HELLO)
    return await endpoint.send(endpoint.build_request(model.model, plan.request, {}, stream=False))


@pytest.mark.parametrize("provider", PROVIDERS)
async def test_the_error_of_a_web_page_shows_its_text(provider: str) -> None:
    with LoopbackServer([Reply([b"<html>Please log in.</html>"])]) as server:
        async with create_model(provider, server) as model:
            with pytest.raises(ModelError, match="Please log in"):
                await read_stream(model, HELLO)
