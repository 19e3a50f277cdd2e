"""Calling every provider through its real SDK client against a server on this machine, on asyncio and trio.

All nine run on both loops. DashScope's SDK sleeps by asyncio between two tries: on trio it gets one.
"""

import asyncio
import gc
import json
import re
import sys
import threading
import warnings
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any, Final, cast

import anyio
import anyio.to_thread
import pytest

from agentkit import (
    AuthError,
    BadRequestError,
    ChatModel,
    ContextLengthError,
    FinishReason,
    ImageBlock,
    InputError,
    MissingExtraError,
    ModelError,
    ModelStream,
    Msg,
    NetworkError,
    OptionError,
    OverloadedError,
    RateLimitError,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
    URLSource,
)
from agentkit.provider_kit import EndpointBase
from agentkit.testing import LoopbackError, LoopbackServer, Reply
from tests.providers import LOOK, PROVIDERS, chat, user
from tests.providers.calling import MODELS, RawServer, StallingServer, model_of, options
from tests.wire.loopback import expected_body

pytestmark = pytest.mark.anyio

HELLO: Final = [user("Is anybody there?")]
BURST: Final = "So many words. " * 40


async def _events(model: ChatModel, msgs: list[Msg], **asked: Any) -> tuple[list[str], Msg]:
    async with model.stream(msgs, **asked) as stream:
        kinds = [str(event.type) async for event in stream]
    return kinds, stream.message


@pytest.mark.parametrize("provider", PROVIDERS)
async def test_a_reply_comes_whole(provider: str) -> None:
    with LoopbackServer(["Yes, here I am."]) as server:
        async with model_of(provider, server) as model:
            reply = await model.generate(HELLO)
    assert (reply.name, reply.role, reply.text) == ("assistant", "assistant", "Yes, here I am.")
    assert reply.finish_reason is FinishReason.STOP
    assert reply.usage
    assert reply.usage.output_tokens > 0
    assert not server.requests[0].streamed


@pytest.mark.parametrize("provider", PROVIDERS)
async def test_a_streamed_reply_is_the_whole_one(provider: str) -> None:
    said = Msg(
        "Friday", [TextBlock("Let me look."), ToolUseBlock("call_1", "look", {"place": "sea"})], "assistant"
    )
    with LoopbackServer([said, said]) as server:
        async with model_of(provider, server) as model:
            whole = await model.generate(HELLO, tools=[LOOK])
            kinds, streamed = await _events(model, HELLO, tools=[LOOK])
    assert server.requests[1].streamed
    assert streamed.content == whole.content
    assert streamed.finish_reason is whole.finish_reason is FinishReason.TOOL_USE
    assert kinds[0] == "message-start"
    assert {"text-delta", "tool-use-end", "message-end"} <= set(kinds)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("provider", PROVIDERS)
async def test_what_arrives_is_the_request_that_was_planned(provider: str, stream: bool) -> None:
    msgs = [
        Msg("system", "You are Friday.", "system"),
        user("Look at the sea."),
        Msg("Friday", [TextBlock("I look."), ToolUseBlock("call_1", "look", {"place": "sea"})], "assistant"),
        Msg("system", [ToolResultBlock("call_1", "look", "It is calm.")], "system"),
    ]
    with LoopbackServer("Calm.") as server:
        async with model_of(provider, server) as model:
            plan = await model.plan(msgs, tools=[LOOK], tool_choice="auto")
            if stream:
                await _events(model, cast("Any", plan))
            else:
                await model.generate(plan)
    body = _bare(server.requests[0].body)
    expected = plan.request if provider == "ollama" else expected_body(provider, plan.request)
    assert body == _bare(in_camel_case(expected) if provider == "gemini" else expected)


def in_camel_case(found: Any) -> Any:
    """A body with every key in camelCase: the SDK of Gemini leaves those of declarations as they are."""
    if isinstance(found, list):
        return [in_camel_case(item) for item in cast("list[Any]", found)]
    if not isinstance(found, dict):
        return found
    pairs = cast("dict[str, Any]", found).items()
    return {re.sub(r"_([a-z])", lambda match: match[1].upper(), key): in_camel_case(item) for key, item in pairs}


def _bare(body: dict[str, Any]) -> dict[str, Any]:
    """A body without what the call adds to the request."""
    found = {
        name: item
        for name, item in body.items()
        if name not in ("model", "stream", "stream_options", "max_tokens")
    }
    if "parameters" in found:
        found["parameters"] = _bare({**found["parameters"]})
        found["parameters"].pop("incremental_output", None)
    config = found.pop("generationConfig", None)
    return {**found, "generationConfig": config} if config else found


ERRORS: Final[dict[int, type[ModelError]]] = {
    400: BadRequestError,
    401: AuthError,
    403: AuthError,
    404: BadRequestError,
    429: RateLimitError,
    500: OverloadedError,
    503: OverloadedError,
}


@pytest.mark.parametrize("provider", PROVIDERS)
async def test_an_error_is_one_of_the_tree_and_the_sdks_own_is_its_cause(provider: str) -> None:
    with LoopbackServer() as server:
        async with model_of(provider, server) as model:
            for status, kind in ERRORS.items():
                error = LoopbackError(status, "This is what the provider says.", retry_after=3)
                server.play(error, error)
                with pytest.raises(ModelError) as whole:
                    await model.generate(HELLO)
                with pytest.raises(ModelError) as streamed:
                    await _events(model, HELLO)
                for caught in (whole.value, streamed.value):
                    assert type(caught) is kind
                    assert (caught.provider, caught.status) == (provider, status)
                    assert caught.provider_message == "This is what the provider says."
                    assert caught.retry_after == 3
                    assert type(caught.__cause__).__module__.partition(".")[0] in _SDKS[provider]


_SDKS: Final = {
    "anthropic": {"anthropic"},
    "dashscope": {"dashscope"},
    "dashscope-compatible": {"openai"},
    "deepseek": {"openai"},
    "gemini": {"google"},
    "ollama": {"ollama"},
    "openai": {"openai"},
    "openai-responses": {"openai"},
    "vllm": {"openai"},
}


@pytest.mark.parametrize("provider", PROVIDERS)
async def test_an_error_within_a_stream_comes_behind_what_was_said(provider: str) -> None:
    reply = Reply(BURST, error=LoopbackError(503, "The server is overloaded."), error_after=8)
    with LoopbackServer([reply]) as server:
        async with model_of(provider, server) as model, model.stream(HELLO) as stream:
            kinds: list[str] = []
            with pytest.raises(OverloadedError, match="overloaded"):
                kinds.extend([event.type async for event in stream])
    assert stream.message.text
    assert BURST.startswith(stream.message.text)
    assert stream.message.finish_reason is FinishReason.ERROR


@pytest.mark.parametrize("provider", PROVIDERS)
async def test_a_connection_that_breaks_keeps_what_came(provider: str) -> None:
    with LoopbackServer([Reply(BURST, cut_after=8)]) as server:
        async with model_of(provider, server) as model, model.stream(HELLO) as stream:
            with pytest.raises(NetworkError):
                await stream.finish()
    assert stream.message.text
    assert stream.message.finish_reason is FinishReason.INTERRUPTED


_NAMES: Final = {"anthropic": "request-id"}  # of the header; `x-request-id` for all others
_NAMED: Final = PROVIDERS


@pytest.mark.parametrize("reply", [Reply(BURST, cut_after=8), Reply([b"<html>"]), Reply([])])
@pytest.mark.parametrize("provider", _NAMED)
async def test_a_stream_that_breaks_off_has_the_providers_name_of_the_call(provider: str, reply: Reply) -> None:
    named = replace(reply, headers={_NAMES.get(provider, "x-request-id"): "req_7"})
    with LoopbackServer([named]) as server:
        async with model_of(provider, server) as model, model.stream(HELLO) as stream:
            with pytest.raises(ModelError) as caught:
                await stream.finish()
    assert caught.value.request_id == stream.request_id == "req_7"


@pytest.mark.parametrize("provider", sorted({*_NAMED} - {"gemini", "ollama"}))  # which name no call by themselves
async def test_an_error_has_the_providers_name_of_the_call_wherever_it_comes(provider: str) -> None:
    error = LoopbackError(503, "The server is overloaded.")
    within = Reply(BURST, error=error, error_after=8)
    with LoopbackServer([error, error, within]) as server:
        async with model_of(provider, server) as model:
            with pytest.raises(ModelError) as whole:
                await model.generate(HELLO)
            with pytest.raises(ModelError) as opening:
                await _events(model, HELLO)
            async with model.stream(HELLO) as stream:
                with pytest.raises(ModelError) as broken:
                    await stream.finish()
    # The body's own comes before the header's.
    assert "loopback" in str(whole.value.request_id)
    assert "loopback" in str(opening.value.request_id)
    assert broken.value.request_id in {stream.request_id, "loopback", "req_loopback"}
    assert stream.request_id


async def test_a_long_reply_that_breaks_off_has_the_name_of_the_call_too() -> None:
    with LoopbackServer([Reply(BURST, cut_after=8)]) as server:
        async with model_of("anthropic", server, max_tokens=64_000) as model:
            with pytest.raises(NetworkError) as caught:
                await model.generate(HELLO)
    assert str(caught.value.request_id).startswith("req_")


@pytest.mark.parametrize("provider", PROVIDERS)
async def test_a_server_that_is_not_there_is_an_error_of_the_network(provider: str) -> None:
    with LoopbackServer() as server:
        given = options(provider, server)
    async with ChatModel(provider, "some-model", client_options=given) as model:
        with pytest.raises(NetworkError) as caught:
            await model.generate(HELLO)
    assert caught.value.retryable
    assert caught.value.__cause__ is not None


@pytest.mark.parametrize("provider", sorted(set(PROVIDERS) - {"gemini", "ollama"}))
async def test_the_sdk_tries_again_by_itself(provider: str, anyio_backend: str) -> None:
    busy = LoopbackError(503, "Busy.", retry_after=0.01)
    with LoopbackServer([busy, "At last."]) as server:
        async with model_of(provider, server, retries=1) as model:
            if provider == "dashscope" and anyio_backend == "trio":
                with pytest.raises(OverloadedError):
                    await model.generate(HELLO)
                return
            assert (await model.generate(HELLO)).text == "At last."
    assert len(server.requests) == 2


async def test_gemini_tries_again_when_it_is_told_to() -> None:
    with LoopbackServer([LoopbackError(503, "Busy."), "At last."]) as server:
        retry = {"attempts": 2, "initial_delay": 0.01, "max_delay": 0.01}
        given = {
            "api_key": "k",
            "http_options": {"base_url": server.url("gemini"), "retry_options": retry},
        }
        async with model_of("gemini", server, client_options=given) as model:
            assert (await model.generate(HELLO)).text == "At last."


@pytest.mark.parametrize("provider", PROVIDERS)
async def test_leaving_a_stream_early_closes_the_connection(provider: str) -> None:
    with LoopbackServer([Reply(BURST, delay=0.02), "And now?"]) as server:
        async with model_of(provider, server) as model:
            async with model.stream(HELLO) as stream:
                async for event in stream:
                    if event.type == "text-delta":
                        break
            assert server.requests[0].wait().disconnected
            assert stream.message.finish_reason is FinishReason.INTERRUPTED
            assert (await model.generate([*HELLO, stream.message, user("Go on.")])).text == "And now?"


@pytest.mark.parametrize("provider", PROVIDERS)
async def test_a_cancellation_passes_and_closes_the_connection(provider: str) -> None:
    begun = anyio.Event()
    caught: list[BaseException] = []
    kept: list[Any] = []

    async def listen() -> None:
        try:
            async with model.stream(HELLO) as stream:
                kept.append(stream)
                async for event in stream:
                    if event.type == "text-delta":
                        begun.set()
        except BaseException as error:
            caught.append(error)
            raise

    with LoopbackServer([Reply(BURST, delay=0.02)]) as server:
        async with model_of(provider, server) as model:
            async with anyio.create_task_group() as group:
                group.start_soon(listen)
                await begun.wait()
                group.cancel_scope.cancel()
            assert [type(error) for error in caught] == [anyio.get_cancelled_exc_class()]
            assert server.requests[0].wait().disconnected
    assert kept[0].message.finish_reason is FinishReason.INTERRUPTED


@pytest.mark.parametrize("steps", range(4))
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
@pytest.mark.parametrize("provider", PROVIDERS)
async def test_a_cancellation_while_a_stream_is_closed_waits_for_that(provider: str, steps: int) -> None:
    kept: list[ModelStream] = []

    async def listen() -> None:
        async with model.stream(HELLO) as stream:
            kept.append(stream)
            async for event in stream:
                if event.type == "text-delta":
                    break
            _cancel_after(steps, cast("asyncio.Task[None]", asyncio.current_task()))

    with LoopbackServer([Reply(BURST, delay=0.02)]) as server:
        async with model_of(provider, server) as model:
            with suppress(asyncio.CancelledError):  # the stream may be closed before it comes
                await asyncio.create_task(listen())
            assert kept[0].message.finish_reason is FinishReason.INTERRUPTED
            assert server.requests[0].wait().disconnected


def _cancel_after(steps: int, task: "asyncio.Task[None]") -> None:
    """Cancel a task when the loop has gone round so often: natively, which no shield of anyio's holds off."""
    if steps:
        asyncio.get_running_loop().call_soon(_cancel_after, steps - 1, task)
    else:
        task.cancel()


@pytest.mark.parametrize("provider", PROVIDERS)
async def test_a_whole_reply_is_cancelled_like_anything_else(provider: str) -> None:
    arrived = threading.Event()

    def late(body: object) -> Reply:
        arrived.set()
        return Reply("Too late.", delay=1)

    with LoopbackServer(late) as server:
        async with model_of(provider, server) as model:
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
async def test_a_stream_that_broke_off_leaves_a_message_that_every_provider_takes(provider: str) -> None:
    said = CUT if provider != "openai" else Msg("Friday", CUT.blocks[1:], "assistant")
    with LoopbackServer() as server:
        async with model_of(provider, server) as model:
            for cut in (0, 1, 2, 3, 6, 10, 20):
                server.play(Reply(said, cut_after=cut, piece_size=4), "Go on.")
                async with model.stream(HELLO, tools=[LOOK]) as stream:
                    with suppress(NetworkError):
                        await stream.finish()
                history = [*HELLO, stream.message, user("Go on.")]
                assert (await model.generate(history, tools=[LOOK])).text == "Go on."
                for other in PROVIDERS:
                    assert chat(other).lower(history, tools=[LOOK]).request
                assert Msg.from_dict(stream.message.to_dict()) == stream.message


def _connections(server: LoopbackServer) -> list[object]:
    """The connections that a server accepts from now on."""
    http = cast("Any", server)._server
    accept, found = http.get_request, cast("list[object]", [])

    def counted() -> Any:
        request, address = accept()
        found.append(address)
        return request, address

    http.get_request = counted
    return found


@pytest.mark.parametrize("provider", PROVIDERS)
async def test_one_connection_serves_one_call_after_the_other(provider: str) -> None:
    with LoopbackServer("Again.") as server:
        connections = _connections(server)
        async with model_of(provider, server) as model:
            await model.generate(HELLO)
            await _events(model, HELLO)
            await model.generate(HELLO)
    assert len(server.requests) == 3
    assert len(connections) == 1


@pytest.mark.parametrize("provider", PROVIDERS)
async def test_many_calls_at_once_are_told_apart(provider: str) -> None:
    replies: dict[int, str] = {}

    async def ask(number: int) -> None:
        replies[number] = (await model.generate([user(f"Say the number {number}.")])).text

    def echo(body: dict[str, Any]) -> str:
        said = json.dumps(body)
        return next(f"{number}" for number in range(11, 31) if f"number {number}." in said)

    with LoopbackServer(cast("Any", echo)) as server:
        async with model_of(provider, server) as model, anyio.create_task_group() as group:
            for number in range(11, 31):
                group.start_soon(ask, number)
    assert replies == {number: str(number) for number in range(11, 31)}


@pytest.mark.parametrize("provider", PROVIDERS)
async def test_max_tokens_has_each_providers_name(provider: str) -> None:
    with LoopbackServer("Short.") as server:
        async with model_of(provider, server, max_tokens=7) as model:
            await model.generate(HELLO)
            await model.generate(HELLO, max_tokens=9)
    found = [_limit(request.body) for request in server.requests]
    assert found == [7, 9]


def _limit(body: dict[str, Any]) -> Any:
    places: tuple[dict[str, Any], ...] = (
        body,
        body.get("options") or {},
        body.get("parameters") or {},
        body.get("generationConfig") or {},
    )
    names = ("max_completion_tokens", "max_output_tokens", "max_tokens", "maxOutputTokens", "num_predict")
    return next(place[name] for place in places for name in names if name in place)


@pytest.mark.parametrize("provider", PROVIDERS)
async def test_native_parameters_go_where_the_provider_has_them(provider: str) -> None:
    with LoopbackServer("Warm.") as server:
        parameters = {"temperature": 0.5, "top_p": 0.9, "seed": 3}
        async with model_of(provider, server, parameters=parameters) as model:
            await model.generate(HELLO, parameters={"temperature": 0.25, "seed": None})
    body = server.requests[0].body
    place = body.get("options") or body.get("parameters") or body.get("generationConfig") or body
    assert place["temperature"] == 0.25
    assert "seed" not in place
    assert place.get("top_p", place.get("topP")) == 0.9


# -- clients of the caller's ------------------------------------------------------------------------------------


def _openai(server: LoopbackServer) -> Any:
    import openai

    return openai.AsyncOpenAI(api_key="k", base_url=server.url("openai"), max_retries=0)


def _azure(server: LoopbackServer) -> Any:
    import openai

    return openai.AsyncAzureOpenAI(
        api_key="azure-key", azure_endpoint=server.url("azure"), api_version="2026-10-01", max_retries=0
    )


def _anthropic(server: LoopbackServer) -> Any:
    import anthropic

    return anthropic.AsyncAnthropic(api_key="k", base_url=server.url("anthropic"), max_retries=0)


def _bedrock(server: LoopbackServer) -> Any:
    from anthropic.lib.bedrock import AsyncAnthropicBedrock

    return AsyncAnthropicBedrock(
        api_key="k", aws_region="eu-west-1", base_url=server.url("bedrock"), max_retries=0
    )


def _vertex(server: LoopbackServer) -> Any:
    from anthropic.lib.vertex import AsyncAnthropicVertex

    return AsyncAnthropicVertex(
        region="europe-west1",
        project_id="project",
        access_token="token",
        base_url=server.url("anthropic-vertex"),
        max_retries=0,
    )


def _gemini(server: LoopbackServer) -> Any:
    import httpx2
    from google import genai
    from google.genai import types

    transport = httpx2.AsyncHTTPTransport()
    http_options = types.HttpOptions(base_url=server.url("gemini"), async_client_args={"transport": transport})
    return genai.Client(api_key="k", http_options=http_options)


def _ollama(server: LoopbackServer) -> Any:
    import ollama

    return ollama.AsyncClient(host=server.url("ollama"))


def _dashscope(server: LoopbackServer) -> Any:
    import dashscope

    module = cast("Any", dashscope)
    return module.AsyncClient(api_key="k", base_url=server.url("dashscope"), max_retries=0)


CLIENTS: Final[dict[str, tuple[str, Callable[[LoopbackServer], Any], str]]] = {
    "openai": ("openai", _openai, "/v1/chat/completions"),
    "responses": ("openai-responses", _openai, "/v1/responses"),
    "azure": ("openai", _azure, "/openai/deployments/gpt-6-luna/chat/completions?api-version=2026-10-01"),
    "anthropic": ("anthropic", _anthropic, "/v1/messages"),
    "vertex": ("anthropic", _vertex, "/v1/projects/project/locations/europe-west1/publishers/anthropic/models/"),
    "gemini": ("gemini", _gemini, "/v1/models/gemini-3-pro:"),
    "ollama": ("ollama", _ollama, "/api/chat"),
    "dashscope": ("dashscope", _dashscope, "/api/v1/services/aigc/text-generation/generation"),
}


async def _close(client: Any) -> None:
    if hasattr(client, "aio"):
        await client.aio.aclose()
        client.close()
    elif hasattr(client, "aclose"):
        await client.aclose()
    else:
        await client.close()


@pytest.mark.parametrize("name", CLIENTS)
async def test_a_client_of_ones_own_calls_its_own_address_and_stays_open(name: str) -> None:
    provider, make, path = CLIENTS[name]
    with LoopbackServer("Hello.") as server:
        client = make(server)
        try:
            async with ChatModel(provider, MODELS.get(provider, "some-model"), client=client) as model:
                assert (await model.generate(HELLO)).text == "Hello."
            again = ChatModel(provider, MODELS.get(provider, "some-model"), client=client)
            kinds, message = await _events(again, HELLO)
            await again.aclose()
            assert (await again.generate(HELLO)).text == "Hello."
        finally:
            await _close(client)
    assert message.text == "Hello."
    assert "message-end" in kinds
    assert all(request.path.startswith(path) for request in server.requests)


async def test_azures_client_sends_its_own_key() -> None:
    with LoopbackServer("Hello.") as server:
        client = _azure(server)
        await ChatModel("openai", "gpt-6-luna", client=client).generate(HELLO)
        await client.close()
    assert server.requests[0].headers["api-key"] == "azure-key"


async def test_bedrocks_client_puts_the_model_in_the_path() -> None:
    with LoopbackServer("Hello.") as server:
        client = _bedrock(server)
        reply = await ChatModel("anthropic", "anthropic.claude-opus-5", client=client).generate(HELLO)
        await client.close()
    assert reply.text == "Hello."
    assert server.requests[0].path == "/model/anthropic.claude-opus-5/invoke"
    assert "model" not in server.requests[0].body


@pytest.mark.parametrize("name", CLIENTS)
async def test_leaving_the_stream_of_ones_own_client_closes_the_connection(name: str) -> None:
    provider, make, _ = CLIENTS[name]
    with LoopbackServer(Reply(BURST, delay=0.02)) as server:
        client = make(server)
        async with ChatModel(provider, MODELS.get(provider, "some-model"), client=client).stream(HELLO) as stream:
            async for event in stream:
                if event.type == "text-delta":
                    break
        assert server.requests[0].wait().disconnected
        await _close(client)


@pytest.mark.filterwarnings("ignore:Inheritance class:DeprecationWarning")  # the SDK's own session
@pytest.mark.parametrize("cancelled", [False, True])
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_leaving_the_stream_of_geminis_client_on_aiohttp_closes_the_connection(cancelled: bool) -> None:
    from google import genai
    from google.genai import types

    with LoopbackServer(Reply(BURST * 4, delay=0.02)) as server:
        client = genai.Client(api_key="k", http_options=types.HttpOptions(base_url=server.url("gemini")))
        stream = ChatModel("gemini", "gemini-3-pro", client=client).stream(HELLO)
        with anyio.CancelScope() as scope:
            async with stream:
                async for event in stream:
                    if event.type == "text-delta" and cancelled:
                        scope.cancel()
                    elif event.type == "text-delta":
                        break
        assert server.requests[0].wait(1).disconnected
        assert stream.message.finish_reason is FinishReason.INTERRUPTED
        await _close(client)


# -- what is each provider's own --------------------------------------------------------------------------------


async def test_a_long_reply_of_anthropics_is_streamed_though_it_is_wanted_whole() -> None:
    with LoopbackServer("Long.") as server:
        async with model_of("anthropic", server, max_tokens=64_000) as model:
            assert (await model.generate(HELLO)).text == "Long."
            assert (await model.generate(HELLO, parameters={"timeout": 3_600})).text == "Long."
    assert [request.streamed for request in server.requests] == [True, False]


async def test_anthropics_limit_is_16000_tokens_unless_said() -> None:
    with LoopbackServer("Hello.") as server:
        async with model_of("anthropic", server) as model:
            await model.generate(HELLO, parameters={"betas": ["one", "two"], "extra_body": {"speed": "fast"}})
    request = server.requests[0]
    assert request.body["max_tokens"] == 16_000
    assert request.body["speed"] == "fast"
    assert request.headers["anthropic-beta"] == "one,two"


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("provider", sorted(set(PROVIDERS) - {"gemini"}))
async def test_headers_and_a_timeout_go_beside_the_body(provider: str, stream: bool) -> None:
    with LoopbackServer("Hello.") as server:
        async with model_of(
            provider, server, parameters={"extra_headers": {"x-trace": "7"}, "timeout": 30}
        ) as model:
            await (_events(model, HELLO) if stream else model.generate(HELLO))
    request = server.requests[0]
    assert request.headers["x-trace"] == "7"
    assert request.streamed is stream
    assert "timeout" not in request.raw.decode()


@pytest.mark.parametrize(
    "provider", ["dashscope-compatible", "deepseek", "ollama", "openai", "openai-responses", "vllm"]
)
async def test_a_whole_reply_is_asked_for_and_not_left_to_the_servers_default(provider: str) -> None:
    with LoopbackServer("Hello.") as server:
        async with model_of(provider, server) as model:
            await model.generate(HELLO)
    assert server.requests[0].body["stream"] is False


@pytest.mark.parametrize("head", [b"", b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n"])
@pytest.mark.parametrize("provider", PROVIDERS)
async def test_a_server_that_says_nothing_is_waited_for_so_many_seconds(provider: str, head: bytes) -> None:
    with StallingServer(head) as server, anyio.fail_after(15):
        async with _raw(provider, server, timeout=0.2) as model:
            for call in (model.generate, partial(_events, model)):
                with pytest.raises(NetworkError) as error:
                    await call(HELLO)
                assert error.value.retryable
    assert server.calls == 2


@pytest.mark.parametrize("provider", PROVIDERS)
async def test_a_call_may_wait_for_another_time(provider: str) -> None:
    with StallingServer() as server, anyio.fail_after(15):
        async with _raw(provider, server, timeout=60) as model:
            with pytest.raises(NetworkError):
                await model.generate(HELLO, parameters={"timeout": 0.2})


@pytest.mark.parametrize("seconds", [0, -1, True, "10", float("inf"), float("nan")])
def test_a_timeout_that_is_no_number_of_seconds_is_refused(seconds: Any) -> None:
    with pytest.raises(OptionError, match="timeout"):
        ChatModel("openai", "some-model", timeout=seconds)


@pytest.mark.parametrize("given", [{"timeout": 60_000}, {"headers": {"x": "1"}}])
@pytest.mark.parametrize("as_object", [False, True])
def test_geminis_own_options_of_a_call_keep_what_they_say(given: dict[str, Any], as_object: bool) -> None:
    from google.genai import types

    from agentkit_gemini import GeminiEndpoint

    expected = {"timeout": 5_000, **given}
    made = types.HttpOptions.model_validate(given) if as_object else given
    body = GeminiEndpoint(None).build_request(
        "m", {"contents": []}, {"timeout": 5, "http_options": made}, stream=False
    )
    found = body.options["http_options"]
    assert (found.model_dump(exclude_unset=True) if as_object else found) == expected


class _Nowhere:
    def url(self, provider: str | None = None) -> str:
        return "ftp://127.0.0.1/v1"


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("provider", PROVIDERS)
async def test_a_url_of_an_unknown_scheme_is_not_to_be_tried_again(provider: str, stream: bool) -> None:
    async with ChatModel(provider, "some-model", client_options=options(provider, _Nowhere())) as model:
        with pytest.raises(NetworkError, match="base_url") as error:
            await (_events(model, HELLO) if stream else model.generate(HELLO))
    assert not error.value.retryable


async def test_dashscope_is_asked_to_look_up_a_file_of_its_store() -> None:
    msgs = [Msg("Bob", [TextBlock("What is it?"), ImageBlock(URLSource("oss://bucket/x.png"))], "user")]
    with LoopbackServer("A cat.") as server:
        async with model_of("dashscope", server, model="qwen3-vl-plus") as model:
            await model.generate(msgs)
            await model.generate(HELLO)
    found = [request.headers.get("x-dashscope-ossresourceresolve") for request in server.requests]
    assert found == ["enable", None]


async def test_what_ollamas_sdk_would_lose_arrives() -> None:
    schema = {"type": "object", "properties": {"at": {"type": "object", "properties": {"x": {"type": "number"}}}}}
    msgs = [
        *HELLO,
        Msg("Friday", [ToolUseBlock("call_1", "look", {"place": ""})], "assistant"),
        Msg("system", [ToolResultBlock("call_1", "look", "")], "system"),
    ]
    with LoopbackServer("Hello.") as server:
        async with model_of("ollama", server) as model:
            await model.generate(
                msgs, tools=[{"name": "look", "parameters": schema}], parameters={"truncate": False}
            )
    body = server.requests[0].body
    assert body["truncate"] is False
    assert body["tools"][0]["function"]["parameters"] == schema
    assert body["messages"][1]["content"] == ""
    assert body["messages"][1]["tool_calls"][0]["id"] == "call_1"
    assert body["messages"][2] == {"role": "tool", "content": "", "tool_name": "look", "tool_call_id": "call_1"}


TEXT_PATH: Final = "/api/v1/services/aigc/text-generation/generation"
MULTIMODAL_PATH: Final = "/api/v1/services/aigc/multimodal-generation/generation"
WRONG_PATH: Final = LoopbackError(400, "url error, please check url！", code="InvalidParameter")


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("name", ["qwen-plus", "qwen-of-next-year"])
async def test_dashscopes_other_path_is_tried_and_remembered(stream: bool, name: str) -> None:
    replies: list[Any] = [WRONG_PATH, "Hello.", "Hello again."]
    with LoopbackServer(replies) as server:
        async with model_of("dashscope", server, model=name) as model:
            for _ in range(2):
                if stream:
                    await _events(model, HELLO)
                else:
                    await model.generate(HELLO)
    first = server.requests[0].path
    other = {TEXT_PATH: MULTIMODAL_PATH, MULTIMODAL_PATH: TEXT_PATH}[first]
    assert [request.path for request in server.requests] == [first, other, other]
    contents = [request.body["input"]["messages"][0]["content"] for request in server.requests]
    kinds = {TEXT_PATH: str, MULTIMODAL_PATH: list}
    assert [type(content) for content in contents] == [kinds[path] for path in (first, other, other)]


async def test_dashscopes_wrong_path_may_be_told_within_a_stream() -> None:
    replies: list[Any] = [Reply("never said", error=WRONG_PATH, error_after=0), "Hello."]
    with LoopbackServer(replies) as server:
        async with model_of("dashscope", server) as model:
            _, message = await _events(model, HELLO)
    assert message.text == "Hello."
    assert [request.path for request in server.requests] == [TEXT_PATH, MULTIMODAL_PATH]


@pytest.mark.parametrize("provider", ["dashscope", "dashscope-compatible", "compatible", "openai-responses"])
async def test_a_model_that_accepts_only_streamed_requests_is_streamed(provider: str) -> None:
    said = "This model only support stream mode, please enable the stream parameter to access the model."
    with LoopbackServer([LoopbackError(400, said), "Hello.", "Hello again."]) as server:
        async with model_of(provider, server) as model:
            assert (await model.generate(HELLO)).text == "Hello."
            assert (await model.generate(HELLO)).text == "Hello again."
    assert [request.streamed for request in server.requests] == [False, True, True]


async def test_dashscope_uploads_no_file_that_a_text_names(tmp_path: Any) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("secret")
    with LoopbackServer("Hello.") as server:
        async with model_of("dashscope", server, model="qwen3.5-plus") as model:
            await model.generate([user(str(secret)), user(f"file://{secret}")])
    assert len(server.requests) == 1
    assert str(secret) in server.requests[0].raw.decode()


NO_TOOLS: Final = (
    "Function tools with reasoning_effort are not supported for gpt-5.6-sol in /v1/chat/completions. "
    "To use function tools, use /v1/responses or set reasoning_effort to 'none'."
)


async def test_a_model_that_takes_tools_through_responses_alone_says_so() -> None:
    with LoopbackServer([LoopbackError(400, NO_TOOLS)]) as server:
        async with model_of("openai", server) as model:
            with pytest.raises(BadRequestError, match="openai-responses:"):
                await model.generate(HELLO, tools=[LOOK])


async def test_geminis_own_object_may_hold_its_parameters() -> None:
    from google.genai import types

    config = types.GenerateContentConfig(temperature=0.5, thinking_config=types.ThinkingConfig(thinking_budget=7))
    with LoopbackServer("Hello.") as server:
        async with model_of("gemini", server) as model:
            await model.generate(
                HELLO, parameters={"config": config, "safety_settings": [{"category": "A", "threshold": "B"}]}
            )
    body = server.requests[0].body
    assert body["generationConfig"]["temperature"] == 0.5
    assert body["generationConfig"]["thinkingConfig"]["thinkingBudget"] == 7
    assert body["safetySettings"] == [{"category": "A", "threshold": "B"}]


async def test_geminis_parameters_have_either_name_wherever_they_stand() -> None:
    from google.genai import types

    safety = types.SafetySetting(
        category=types.HarmCategory.HARM_CATEGORY_HARASSMENT, threshold=types.HarmBlockThreshold.BLOCK_NONE
    )
    config = types.GenerateContentConfig(temperature=0.5, safety_settings=[safety])
    with LoopbackServer("Hello.") as server:
        async with model_of("gemini", server) as model:
            await model.generate(HELLO, parameters={"config": config})
            await model.generate(HELLO, parameters={"safety_settings": [safety]})
            system = types.GenerateContentConfig(system_instruction="Be rude.")
            with pytest.raises(OptionError, match="system_instruction"):
                await model.generate([Msg("system", "Be kind.", "system"), *HELLO], parameters={"config": system})
            with pytest.raises(OptionError, match="max_output_tokens"):
                await model.generate(HELLO, max_tokens=9, parameters={"config": {"maxOutputTokens": 3}})
    for request in server.requests:
        assert request.body["safetySettings"][0]["threshold"] == "BLOCK_NONE"
        assert "safetySettings" not in request.body.get("generationConfig", {})


async def test_geminis_key_follows_no_redirect() -> None:
    with LoopbackServer("Hello.") as elsewhere:
        to = f"location: {elsewhere.url()}/v1beta/models/some-model:generateContent"
        with RawServer(_answer(307, b"", to)) as server:
            async with _raw("gemini", server) as model:
                with pytest.raises(ModelError):
                    await model.generate(HELLO)
    assert elsewhere.requests == []


async def test_a_reply_that_is_gathered_and_cut_off_is_no_whole_one() -> None:
    event = {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Half a"}}
    body = f"event: content_block_delta\ndata: {json.dumps(event)}\n\n".encode()
    with RawServer(_answer(200, body, "content-type: text/event-stream")) as server:
        async with _raw("anthropic", server) as model:
            with pytest.raises(NetworkError, match="before the reply was complete"):
                await model.generate(HELLO, max_tokens=64_000)


async def test_an_error_in_geminis_stream_says_its_status_and_the_seconds_to_wait() -> None:
    start = {"candidates": [{"content": {"role": "model", "parts": [{"text": "So"}]}, "index": 0}]}
    details = [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "31s"}]
    busy = {"code": 429, "message": "Too many.", "status": "RESOURCE_EXHAUSTED", "details": details}
    broken = {"code": 500, "message": "An internal error has occurred.", "status": "INTERNAL"}
    with LoopbackServer([Reply([start, {"error": busy}]), Reply([start, {"error": broken}])]) as server:
        async with model_of("gemini", server) as model:
            with pytest.raises(RateLimitError) as caught:
                await _events(model, HELLO)
            assert (caught.value.status, caught.value.retry_after) == (429, 31)
            with pytest.raises(OverloadedError) as raised:
                await _events(model, HELLO)
            assert (raised.value.status, raised.value.retryable) == (500, True)


async def test_geminis_bare_errors_within_a_stream_are_errors() -> None:
    bare = (
        b'[{\n  "error": {\n    "code": 503,\n    "message": "overloaded",\n    "status": "UNAVAILABLE"\n  }\n}]\n'
    )
    start = {"candidates": [{"content": {"role": "model", "parts": [{"text": "So"}]}, "index": 0}]}
    with LoopbackServer([Reply([start, bare])]) as server:
        async with model_of("gemini", server) as model, model.stream(HELLO) as stream:
            with pytest.raises(OverloadedError):
                await stream.finish()
    assert stream.message.text == "So"


@pytest.mark.parametrize(
    ("provider", "variable"),
    [
        ("anthropic", "ANTHROPIC_API_KEY"),
        ("dashscope", "DASHSCOPE_API_KEY"),
        ("dashscope-compatible", "DASHSCOPE_API_KEY"),
        ("deepseek", "DEEPSEEK_API_KEY"),
        ("gemini", "GEMINI_API_KEY"),
        ("openai", "OPENAI_API_KEY"),
    ],
)
async def test_the_key_is_the_environments_or_its_absence_an_error(
    provider: str, variable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("GOOGLE_API_KEY", "ANTHROPIC_AUTH_TOKEN", "HOME", variable):
        monkeypatch.delenv(name, raising=False)
    with LoopbackServer("Hello.") as server:
        given = {"base_url": server.url(provider)}
        async with model_of(provider, server, client_options=given) as model:
            with pytest.raises(AuthError):
                await model.generate(HELLO)
        monkeypatch.setenv(variable, "from-the-environment")
        async with model_of(provider, server, client_options=given) as model:
            await model.generate(HELLO)
    assert "from-the-environment" in str(server.requests[0].headers)


async def test_a_server_of_vllms_needs_no_key() -> None:
    with LoopbackServer("Hello.") as server:
        async with model_of("vllm", server, client_options={"base_url": server.url("vllm")}) as model:
            assert (await model.generate(HELLO)).text == "Hello."


@pytest.mark.parametrize("provider", PROVIDERS)
async def test_an_answer_that_is_none_is_an_error_of_the_model(provider: str) -> None:
    with LoopbackServer([b"<html>Welcome to the hotel</html>"]) as server:
        async with model_of(provider, server) as model:
            with pytest.raises(ModelError):
                await model.generate(HELLO)


@pytest.mark.parametrize("provider", PROVIDERS)
async def test_a_stream_that_is_none_is_an_error_of_the_model(provider: str) -> None:
    with LoopbackServer([Reply([b"<html>Welcome</html>"]), Reply([b"data: 3\n\n"])]) as server:
        async with model_of(provider, server) as model:
            for _ in range(2):
                with pytest.raises(ModelError):
                    await _events(model, HELLO)


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize("provider", PROVIDERS)
async def test_an_error_in_one_object_answers_a_stream_too(provider: str, indent: int | None) -> None:
    said = {"code": "429", "message": "Slow down.", "request_id": "req-1"}
    text = json.dumps(said, indent=indent).encode()
    with RawServer(_answer(200, text)) as server:
        async with _raw(provider, server) as model, model.stream(HELLO) as stream:
            with pytest.raises(RateLimitError, match="Slow down") as caught:
                await stream.finish()
    assert caught.value.request_id == "req-1"
    assert stream.message.finish_reason is FinishReason.ERROR


@pytest.mark.parametrize("provider", PROVIDERS)
async def test_a_whole_reply_answers_a_stream_too(provider: str) -> None:
    with LoopbackServer("Hello.") as server:
        async with model_of(provider, server) as model:
            whole = await model.generate(HELLO)
            text = await _whole(model)
    for indent in (None, 2):
        body = json.dumps(json.loads(text), indent=indent).encode()
        with RawServer(_answer(200, body)) as raw:
            async with _raw(provider, raw) as model:
                _, streamed = await _events(model, HELLO)
        assert (streamed.content, streamed.usage) == (whole.content, whole.usage)
        assert streamed.finish_reason is FinishReason.STOP


ENDED: Final = tuple(name for name in PROVIDERS if name not in ("dashscope", "gemini"))
"""The providers whose wire has a last event."""


async def _streamed_bytes(provider: str, *replies: Any) -> bytes:
    """The raw bytes of a streamed reply."""
    with LoopbackServer([*replies]) as server:
        async with model_of(provider, server) as model:
            await model.open()
            endpoint, plan = cast("EndpointBase", vars(model)["_client"].endpoint), await model.plan(HELLO)
            async with endpoint.stream(
                endpoint.build_request(model.model, plan.request, {}, stream=True)
            ) as pieces:
                return b"".join([piece async for piece in pieces])


def _open_stream(body: bytes) -> bytes:
    """The head of an answer without a length, and the beginning of its body."""
    return b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n" + body


@pytest.mark.parametrize("provider", ENDED)
async def test_a_stream_is_over_with_the_last_event_of_its_wire(provider: str) -> None:
    body = await _streamed_bytes(provider, "Yes, here I am.")
    with StallingServer(_open_stream(body)) as server, anyio.fail_after(10):
        async with _raw(provider, server) as model:
            kinds, reply = await _events(model, HELLO)
    assert (reply.text, reply.finish_reason) == ("Yes, here I am.", FinishReason.STOP)
    assert reply.usage
    assert kinds.count("message-end") == 1


@pytest.mark.parametrize("body", [b"", b"\n\n", b": keep-alive\n\n: keep-alive\n\n"])
@pytest.mark.parametrize("provider", PROVIDERS)
async def test_an_empty_answer_may_be_tried_again(provider: str, body: bytes) -> None:
    with RawServer(_open_stream(body)) as server:
        async with _raw(provider, server) as model:
            with pytest.raises(NetworkError) as streamed:
                await _events(model, HELLO)
            if not body.strip():
                with pytest.raises(NetworkError) as whole:
                    await model.generate(HELLO)
                assert whole.value.retryable
    assert streamed.value.retryable


async def test_a_chat_stream_of_nothing_but_its_end_may_be_tried_again() -> None:
    with RawServer(_open_stream(b"data: [DONE]\n\n")) as server:
        async with _raw("openai", server) as model:
            with pytest.raises(NetworkError) as error:
                await _events(model, HELLO)
    assert error.value.retryable


def _answer(status: int, body: bytes, *headers: str) -> bytes:
    head = [f"HTTP/1.1 {status} Answer", f"content-length: {len(body)}", *headers, "", ""]
    return "\r\n".join(head).encode() + body


def _raw(provider: str, server: RawServer, **more: Any) -> ChatModel:
    return ChatModel(provider, "some-model", client_options=options(provider, server), **more)


async def _whole(model: ChatModel) -> Any:
    """A whole reply as it comes."""
    endpoint, plan = cast("EndpointBase", vars(model)["_client"].endpoint), await model.plan(HELLO)
    return await endpoint.send(endpoint.build_request(model.model, plan.request, {}, stream=False))


@pytest.mark.parametrize("provider", PROVIDERS)
async def test_what_is_no_stream_is_told(provider: str) -> None:
    with LoopbackServer([Reply([b"<html>Please log in.</html>"])]) as server:
        async with model_of(provider, server) as model:
            with pytest.raises(ModelError, match="Please log in"):
                await _events(model, HELLO)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("provider", PROVIDERS)
async def test_an_error_that_is_no_text_of_utf_8_is_an_error_of_the_providers(provider: str, stream: bool) -> None:
    body = '{"error": {"message": "Trop tôt, le café est fermé.", "code": 503}}'.encode("latin-1")
    with RawServer(_answer(503, body, "content-type: application/json")) as server:
        async with _raw(provider, server) as model:
            with pytest.raises(OverloadedError):
                await (_events(model, HELLO) if stream else model.generate(HELLO))


ODD_ERRORS: Final = [
    '{"code": 400, "message": "x"}',
    '{"code": ["a"], "message": "x"}',
    '{"error": {"code": {"a": 1}, "message": "x"}}',
    '{"error": {"code": 400, "message": ["x"], "status": 400, "type": 5}}',
    '{"error": {"message": "\\ud800 bad"}}',
    '"boom"',
    "null",
    "[1]",
    "[" * 5_000,
]


@pytest.mark.parametrize("stream", [False, pytest.param(True, marks=pytest.mark.sdk)])
@pytest.mark.parametrize("body", ODD_ERRORS, ids=lambda body: body[:20])
@pytest.mark.parametrize("provider", PROVIDERS)
async def test_an_error_of_any_shape_is_an_error_of_the_providers(provider: str, body: str, stream: bool) -> None:
    with RawServer(_answer(400, body.encode(), "content-type: application/json")) as server:
        async with _raw(provider, server) as model:
            with pytest.raises(ModelError) as caught:
                await (_events(model, HELLO) if stream else model.generate(HELLO))
    str(caught.value).encode()
    assert isinstance(caught.value.code, str | None)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("provider", PROVIDERS)
async def test_a_redirect_is_told_with_its_status(provider: str, stream: bool) -> None:
    with RawServer(_answer(302, b"", "location: http://127.0.0.1:9/nowhere")) as server:
        async with _raw(provider, server) as model:
            with pytest.raises(ModelError) as caught:
                await (_events(model, HELLO) if stream else model.generate(HELLO))
    assert isinstance(caught.value, NetworkError) or caught.value.status == 302


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("provider", PROVIDERS)
async def test_a_parameter_that_json_has_no_word_for_is_refused(provider: str, stream: bool) -> None:
    with LoopbackServer("Hello.") as server:
        async with model_of(provider, server) as model:
            with pytest.raises(OptionError, match="parameters"):
                await (
                    _events(model, HELLO, parameters={"temperature": object()})
                    if stream
                    else model.generate(HELLO, parameters={"temperature": object()})
                )
    assert server.requests == []


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("name", CLIENTS)
async def test_a_client_of_ones_own_that_is_closed_says_so(name: str, stream: bool) -> None:
    provider, make, _ = CLIENTS[name]
    with LoopbackServer("Hello.") as server:
        client = make(server)
        model = ChatModel(provider, MODELS.get(provider, "some-model"), client=client)
        await _close(client)
        with pytest.raises(NetworkError, match="closed") as caught:
            await (_events(model, HELLO) if stream else model.generate(HELLO))
    assert not caught.value.retryable
    assert server.requests == []


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("anyio_backend", ["asyncio"])  # on trio the SDKs' HTTP clients leave a generator behind
@pytest.mark.parametrize("provider", PROVIDERS)
async def test_an_answer_that_cannot_be_unpacked_is_an_error_of_the_network(provider: str, stream: bool) -> None:
    with RawServer(_answer(200, b"no gzip", "content-encoding: gzip")) as server:
        async with _raw(provider, server) as model:
            with pytest.raises(NetworkError):
                await (_events(model, HELLO) if stream else model.generate(HELLO))


@pytest.mark.parametrize("provider", PROVIDERS)
async def test_the_seconds_to_wait_may_stand_in_a_header(provider: str) -> None:
    body = b'{"error": {"message": "Slow down."}}'
    with RawServer(_answer(429, body, "retry-after: 7")) as server:
        async with _raw(provider, server) as model:
            with pytest.raises(RateLimitError, match="Slow down") as caught:
                await model.generate(HELLO)
    assert caught.value.retry_after == 7


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_model_goes_with_its_user_from_one_loop_to_the_next(provider: str, anyio_backend: str) -> None:
    with LoopbackServer("Hello.") as server:
        model = model_of(provider, server)

        async def ask(*, last: bool) -> str:
            reply = await model.generate(HELLO)
            if last:
                await model.aclose()
            return reply.text

        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ResourceWarning)  # what the first loop left open
            assert [anyio.run(partial(ask, last=last), backend=anyio_backend) for last in (False, True)] == [
                "Hello.",
                "Hello.",
            ]
            gc.collect()


@pytest.mark.parametrize("name", CLIENTS)
@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize(
    "loops",
    [
        ("asyncio", "asyncio"),
        pytest.param(("asyncio", "trio"), marks=pytest.mark.sdk),
        pytest.param(("trio", "asyncio"), marks=pytest.mark.sdk),
    ],
)
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # what the first loop left open
def test_a_client_of_ones_own_that_comes_from_another_loop_is_named(
    name: str, streamed: bool, loops: tuple[str, str]
) -> None:
    provider, make, _ = CLIENTS[name]
    models: list[ChatModel] = []

    async def first() -> None:
        models.append(ChatModel(provider, MODELS.get(provider, "some-model"), client=make(server)))
        await models[0].generate(HELLO)

    async def second() -> None:
        with pytest.raises(NetworkError, match="another event loop") as caught:
            await (_events(models[0], HELLO) if streamed else models[0].generate(HELLO))
        assert not caught.value.retryable

    with LoopbackServer("Hello.") as server, warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        for step, loop in zip((first, second), loops, strict=True):
            anyio.run(step, backend=loop)
        models.clear()
        gc.collect()


@pytest.mark.parametrize("provider", PROVIDERS)
async def test_a_model_is_no_ones_in_a_second_loop_at_once(provider: str, anyio_backend: str) -> None:
    def elsewhere() -> None:
        anyio.run(model.generate, HELLO, backend=anyio_backend)

    with LoopbackServer("Hello.") as server:
        async with model_of(provider, server) as model:
            await model.open()
            with pytest.raises(InputError, match="another event loop"):
                await anyio.to_thread.run_sync(elsewhere)
            assert (await model.generate(HELLO)).text == "Hello."


@pytest.mark.parametrize("provider", PROVIDERS)
async def test_without_its_sdk_a_provider_says_what_to_install(
    provider: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in _SDKS[provider]:
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtraError, match="pip install"):
        await ChatModel(provider, "some-model", client_options={"api_key": "k"}).generate(HELLO)


TOO_LONG: dict[str, str] = {
    "anthropic": "prompt is too long: 200 tokens > 100 maximum",
    "gemini": "The input token count (200) exceeds the maximum number of tokens allowed (100).",
    "ollama": "request (200 tokens) exceeds the available context size (100 tokens), try increasing it",
    "dashscope": "Range of input length should be [1, 100]",
    "dashscope-compatible": "Range of input length should be [1, 100]",
}
"""Error texts of the providers. The other providers send OpenAI's text."""


@pytest.mark.parametrize("provider", PROVIDERS)
async def test_a_prompt_that_is_too_long_raises_a_context_length_error(provider: str) -> None:
    openai = "This model's maximum context length is 100 tokens. However, your messages resulted in 200 tokens."
    with LoopbackServer([LoopbackError(400, TOO_LONG.get(provider, openai))]) as server:
        async with model_of(provider, server) as model:
            with pytest.raises(ContextLengthError):
                await model.generate(HELLO)


@pytest.mark.parametrize("provider", ["anthropic", "openai-responses", "gemini", "deepseek"])
async def test_a_loop_with_thinking_sends_it_back_as_long_as_its_prefix_stands(provider: str) -> None:
    thought = Msg("Friday", [ThinkingBlock("Hm."), ToolUseBlock("call_1", "look", {"place": "sea"})], "assistant")
    name = "claude-opus-5-1" if provider == "anthropic" else MODELS[provider]  # the first that binds its thinking
    with LoopbackServer([thought, "It is calm."]) as server:
        async with model_of(provider, server, model=name) as model:
            reply = await model.generate(HELLO, tools=[LOOK])
            results = Msg("system", [ToolResultBlock(reply.tool_uses[0].id, "look", "Calm.")], "system")
            history = [*HELLO, reply, results]
            final = await model.generate(history, tools=[LOOK])
            other = await model.plan([user("Something else."), *history[1:]], tools=[LOOK])
    assert final.text == "It is calm."
    if provider != "anthropic":
        return
    thinking = next(block for block in reply.blocks if isinstance(block, ThinkingBlock))
    assert thinking.state
    assert thinking.state.prefix
    assert thinking.state.signature
    assert thinking.state.signature in server.requests[1].raw.decode()
    assert thinking.state.signature not in json.dumps(other.request)
