"""Clients that the application opens, in place of the client of agentkit."""

import gc
import warnings
from collections.abc import Callable
from typing import Any, Final, cast

import anyio
import pytest

from agentkit import (
    ChatModel,
    FinishReason,
    NetworkError,
)
from agentkit.testing import LoopbackServer, Reply
from tests.cases import each_case
from tests.providers.calling import (
    BURST,
    HELLO,
    MODELS,
    read_stream,
)

pytestmark = pytest.mark.anyio


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
async def test_a_client_of_the_application_is_used_unchanged_and_stays_open(name: str) -> None:
    provider, make, path = CLIENTS[name]
    with LoopbackServer("Hello.") as server:
        client = make(server)
        try:
            async with ChatModel(provider, MODELS.get(provider, "some-model"), client=client) as model:
                assert (await model.generate(HELLO)).text == "Hello."
            again = ChatModel(provider, MODELS.get(provider, "some-model"), client=client)
            kinds, message = await read_stream(again, HELLO)
            await again.aclose()
            assert (await again.generate(HELLO)).text == "Hello."
        finally:
            await _close(client)
    assert message.text == "Hello."
    assert "message-end" in kinds
    assert all(request.path.startswith(path) for request in server.requests)


async def test_the_azure_client_sends_its_key() -> None:
    with LoopbackServer("Hello.") as server:
        client = _azure(server)
        await ChatModel("openai", "gpt-6-luna", client=client).generate(HELLO)
        await client.close()
    assert server.requests[0].headers["api-key"] == "azure-key"


async def test_the_bedrock_client_puts_the_model_in_the_path() -> None:
    with LoopbackServer("Hello.") as server:
        client = _bedrock(server)
        reply = await ChatModel("anthropic", "anthropic.claude-opus-5", client=client).generate(HELLO)
        await client.close()
    assert reply.text == "Hello."
    assert server.requests[0].path == "/model/anthropic.claude-opus-5/invoke"
    assert "model" not in server.requests[0].body


@pytest.mark.parametrize("name", CLIENTS)
async def test_leaving_the_stream_of_a_client_of_the_application_closes_the_connection(name: str) -> None:
    provider, make, _ = CLIENTS[name]
    with LoopbackServer(Reply(BURST, delay=0.02)) as server:
        client = make(server)
        async with ChatModel(provider, MODELS.get(provider, "some-model"), client=client).stream(HELLO) as stream:
            async for event in stream:
                if event.type == "text-delta":
                    break
        assert server.requests[0].wait().disconnected
        await _close(client)


@pytest.mark.filterwarnings("ignore:Inheritance class:DeprecationWarning")  # from the session class of the SDK
@pytest.mark.parametrize("cancelled", [False, True])
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_leaving_a_stream_of_gemini_on_aiohttp_closes_the_connection(cancelled: bool) -> None:
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


@each_case("stream", [False, True])
@pytest.mark.parametrize("name", CLIENTS)
async def test_a_closed_client_of_the_application_is_an_error(name: str, stream: bool) -> None:
    provider, make, _ = CLIENTS[name]
    with LoopbackServer("Hello.") as server:
        client = make(server)
        model = ChatModel(provider, MODELS.get(provider, "some-model"), client=client)
        await _close(client)
        with pytest.raises(NetworkError, match="closed") as caught:
            await (read_stream(model, HELLO) if stream else model.generate(HELLO))
    assert not caught.value.retryable
    assert server.requests == []


@pytest.mark.parametrize("name", CLIENTS)
@each_case("streamed", [False, True])
@pytest.mark.parametrize(
    "loops",
    [
        ("asyncio", "asyncio"),
        pytest.param(("asyncio", "trio"), marks=pytest.mark.sdk),
        pytest.param(("trio", "asyncio"), marks=pytest.mark.sdk),
    ],
)
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # sockets of the first loop
def test_a_client_from_another_event_loop_is_an_error(name: str, streamed: bool, loops: tuple[str, str]) -> None:
    provider, make, _ = CLIENTS[name]
    models: list[ChatModel] = []

    async def first() -> None:
        models.append(ChatModel(provider, MODELS.get(provider, "some-model"), client=make(server)))
        await models[0].generate(HELLO)

    async def second() -> None:
        with pytest.raises(NetworkError, match="another event loop") as caught:
            await (read_stream(models[0], HELLO) if streamed else models[0].generate(HELLO))
        assert not caught.value.retryable

    gc.freeze()  # so that the collection at the end examines only objects of this test
    with LoopbackServer("Hello.") as server, warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        for step, loop in zip((first, second), loops, strict=True):
            anyio.run(step, backend=loop)
        models.clear()
        gc.collect()
