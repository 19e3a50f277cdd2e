"""Every API of the loopback server through the official SDK client: complete, streamed, failed and truncated."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any, Final, cast

import anthropic
import httpx2
import ollama
import openai
import pytest
from google import genai
from google.genai import errors, types

from agentkit import (
    AudioBlock,
    FinishReason,
    ImageBlock,
    Msg,
    OpaqueState,
    TextBlock,
    ThinkingBlock,
    ToolUseBlock,
    Usage,
)
from agentkit.testing import LoopbackError, LoopbackServer, PlayableReply, Reply

pytestmark = pytest.mark.anyio

ARGUMENTS: Final = {"place": "Köln am Rhein", "n": 2}
REPLY: Final = Msg(
    "Friday", [TextBlock("Hello there, friend."), ToolUseBlock("call_1", "look", ARGUMENTS)], "assistant"
)
REPLY_WITH_THINKING: Final = Msg("Friday", [ThinkingBlock("Let me see."), *REPLY.blocks], "assistant")
REFUSAL: Final = Msg("Friday", [TextBlock("I will not.", metadata={"refusal": True})], "assistant")
USAGE: Final = Usage(100, 20, cache_read_tokens=60, cache_write_tokens=8, reasoning_tokens=5)
CLOUDS: Final[Any] = anthropic  # the clients of the clouds are not in its `__all__`
HELLO: Final[Any] = [{"role": "user", "content": "Hello"}]


@pytest.fixture
def anyio_backend() -> str:
    """The event loop on which the SDKs close their streams. On trio, only the garbage collector closes them."""
    return "asyncio"


def openai_client(server: LoopbackServer, provider: str = "openai", retries: int = 0) -> openai.AsyncOpenAI:
    return openai.AsyncOpenAI(api_key="none", base_url=server.url(provider), max_retries=retries)


def anthropic_client(server: LoopbackServer, retries: int = 0) -> anthropic.AsyncAnthropic:
    return anthropic.AsyncAnthropic(api_key="none", base_url=server.url("anthropic"), max_retries=retries)


def gemini_client(server: LoopbackServer, version: str = "v1beta") -> genai.Client:
    args = {"transport": httpx2.AsyncHTTPTransport()}
    options = types.HttpOptions(base_url=server.url("gemini"), api_version=version, async_client_args=args)
    return genai.Client(api_key="none", http_options=options)


def ollama_client(server: LoopbackServer) -> Any:
    return ollama.AsyncClient(host=server.url("ollama"))  # its signatures are typed in part only


def dump(value: Any) -> Any:
    return value.model_dump(mode="json", exclude_none=True, warnings=False)


# -- Chat Completions -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("provider", ["openai", "deepseek", "vllm", "dashscope-compatible"])
async def test_chat_completions_returns_the_same_reply_complete_and_streamed(provider: str) -> None:
    with LoopbackServer(Reply(REPLY, usage=USAGE)) as server:
        async with openai_client(server, provider) as client:
            reply = await client.chat.completions.create(model="m", messages=HELLO)
            async with client.chat.completions.stream(
                model="m", messages=HELLO, stream_options={"include_usage": True}
            ) as stream:
                streamed = await stream.get_final_completion()
    message = reply.choices[0].message
    assert message.content == "Hello there, friend."
    assert message.tool_calls is not None
    assert json.loads(cast("Any", message.tool_calls[0]).function.arguments) == ARGUMENTS
    assert reply.choices[0].finish_reason == "tool_calls"
    assert reply.usage is not None
    assert (reply.usage.prompt_tokens, reply.usage.completion_tokens) == (100, 20)
    assert [request.provider for request in server.requests] == [provider, provider]
    if provider != "dashscope-compatible":  # the SDK glues repeated types together
        after = dump(streamed)
        for call in after["choices"][0]["message"]["tool_calls"]:
            del call["index"]
        assert after == dump(reply) | {"object": "chat.completion"}


@pytest.mark.parametrize(
    ("provider", "key"),
    [("deepseek", "reasoning_content"), ("vllm", "reasoning"), ("dashscope-compatible", "reasoning_content")],
)
async def test_reasoning_has_the_key_of_its_server(provider: str, key: str) -> None:
    with LoopbackServer(REPLY_WITH_THINKING) as server:
        async with openai_client(server, provider) as client:
            reply = await client.chat.completions.create(model="m", messages=HELLO)
            chunks = [
                chunk
                async for chunk in await client.chat.completions.create(model="m", messages=HELLO, stream=True)
            ]
    assert getattr(reply.choices[0].message, key) == "Let me see."
    pieces = [getattr(chunk.choices[0].delta, key, None) for chunk in chunks if chunk.choices]
    assert "".join(piece or "" for piece in pieces) == "Let me see."


async def test_requested_usage_has_a_separate_chunk() -> None:
    with LoopbackServer("Hi.") as server:
        async with openai_client(server) as client:
            plain = [
                chunk
                async for chunk in await client.chat.completions.create(model="m", messages=HELLO, stream=True)
            ]
            asked = [
                chunk
                async for chunk in await client.chat.completions.create(
                    model="m", messages=HELLO, stream=True, stream_options={"include_usage": True}
                )
            ]
    assert plain[0].choices[0].delta.role == "assistant"
    assert all(chunk.usage is None for chunk in plain)
    assert plain[-1].choices[0].finish_reason == "stop"
    assert asked[-1].choices == []
    assert asked[-1].usage is not None


async def test_the_sdk_reads_a_refusal_and_audio() -> None:
    sound = Msg("Friday", [AudioBlock.from_bytes(b"RIFF....", "audio/wav")], "assistant")
    with LoopbackServer([REFUSAL, REFUSAL, sound]) as server:
        async with openai_client(server) as client:
            reply = await client.chat.completions.create(model="m", messages=HELLO)
            async with client.chat.completions.stream(model="m", messages=HELLO) as stream:
                streamed = await stream.get_final_completion()
            heard = await client.chat.completions.create(model="m", messages=HELLO)
    assert reply.choices[0].message.refusal == streamed.choices[0].message.refusal == "I will not."
    assert heard.choices[0].message.audio is not None
    assert heard.choices[0].message.audio.data == "UklGRi4uLi4="


async def test_the_azure_client_calls_its_deployment() -> None:
    with LoopbackServer(REPLY) as server:
        client = openai.AsyncAzureOpenAI(
            api_key="none", azure_endpoint=server.url("azure"), api_version="2026-01-01", max_retries=0
        )
        async with client:
            reply = await client.chat.completions.create(model="my-gpt", messages=HELLO)
            chunks = [
                chunk
                async for chunk in await client.chat.completions.create(
                    model="my-gpt", messages=HELLO, stream=True
                )
            ]
    assert reply.model == "my-gpt"
    assert chunks[0].choices == []
    assert [request.provider for request in server.requests] == ["azure", "azure"]
    assert server.requests[0].path.startswith("/openai/deployments/my-gpt/chat/completions?")


# -- Responses --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("msg", [REPLY_WITH_THINKING, REFUSAL], ids=["thought", "refused"])
async def test_responses_returns_the_same_reply_complete_and_streamed(msg: Msg) -> None:
    with LoopbackServer(Reply(msg, usage=USAGE)) as server:
        async with openai_client(server, "openai-responses") as client:
            reply = await client.responses.create(model="m", input="Hello")
            async with client.responses.stream(model="m", input="Hello") as stream:
                events = [event async for event in stream]
                streamed = await stream.get_final_response()
    assert dump(streamed) == dump(reply)
    assert [cast("Any", event).sequence_number for event in events if event.type != "response.output_text.delta"]
    assert events[0].type == "response.created"
    assert events[-1].type == "response.completed"
    assert reply.usage is not None
    assert reply.usage.input_tokens_details.cached_tokens == 60


async def test_a_response_has_text_a_call_and_encrypted_reasoning() -> None:
    state = OpaqueState("openai", encrypted_content="gAAAA" + "x" * 40, item_id="rs_1")
    msg = Msg("Friday", [ThinkingBlock("Let me see.", state), *REPLY.blocks], "assistant")
    with LoopbackServer(msg) as server:
        async with openai_client(server, "openai-responses") as client:
            response = await client.responses.create(model="m", input="Hello")
            stream = await client.responses.create(model="m", input="Hello", stream=True)
            events = [cast("Any", event) async for event in stream]
    reasoning, message, call = cast("list[Any]", response.output)
    assert (reasoning.id, reasoning.encrypted_content) == ("rs_1", state.encrypted_content)
    assert reasoning.summary[0].text == "Let me see."
    assert response.output_text == message.content[0].text == "Hello there, friend."
    assert (call.call_id, json.loads(call.arguments)) == ("call_1", ARGUMENTS)
    added, done = (
        next(event.item for event in events if event.type == f"response.output_item.{step}")
        for step in ("added", "done")
    )
    assert added.encrypted_content != done.encrypted_content == state.encrypted_content


async def test_responses_has_images_and_incomplete_replies() -> None:
    picture = Msg("Friday", [ImageBlock.from_bytes(b"\x89PNG", "image/png")], "assistant")
    with LoopbackServer([picture, Reply("Half a", finish_reason=FinishReason.LENGTH)]) as server:
        async with openai_client(server, "openai-responses") as client:
            drawn = await client.responses.create(model="m", input="Draw")
            cut = await client.responses.create(model="m", input="Tell")
    assert cast("Any", drawn.output[0]).result == "iVBORw=="
    assert cut.status == "incomplete"
    assert cut.incomplete_details is not None
    assert cut.incomplete_details.reason == "max_output_tokens"


# -- Messages ---------------------------------------------------------------------------------------------------


async def test_anthropic_returns_the_same_reply_complete_and_streamed() -> None:
    with LoopbackServer(Reply(REPLY_WITH_THINKING, usage=USAGE)) as server:
        async with anthropic_client(server) as client:
            reply = await client.messages.create(model="m", max_tokens=99, messages=HELLO)
            async with client.messages.stream(model="m", max_tokens=99, messages=HELLO) as stream:
                streamed = await stream.get_final_message()
    assert dump(streamed) == dump(reply)
    thinking, text, call = cast("list[Any]", reply.content)
    assert (thinking.thinking, text.text, call.input) == ("Let me see.", "Hello there, friend.", ARGUMENTS)
    assert thinking.signature
    assert reply.stop_reason == "tool_use"
    usage = reply.usage
    assert (usage.input_tokens, usage.cache_read_input_tokens, usage.cache_creation_input_tokens) == (32, 60, 8)


async def test_the_events_of_anthropic_are_in_order() -> None:
    with LoopbackServer(REPLY_WITH_THINKING) as server:
        async with anthropic_client(server) as client:
            stream = await client.messages.create(model="m", max_tokens=99, messages=HELLO, stream=True)
            events = [cast("Any", event) async for event in stream]
    kinds = [event.type for event in events]
    assert (kinds[0], kinds[-2:]) == ("message_start", ["message_delta", "message_stop"])
    assert kinds.count("content_block_start") == kinds.count("content_block_stop") == 3
    deltas = [event.delta.type for event in events if event.type == "content_block_delta"]
    assert deltas.index("signature_delta") == deltas.count("thinking_delta")
    first = next(event.delta for event in events if event.type == "content_block_delta" and event.index == 2)
    assert first.partial_json == ""
    assert events[0].message.stop_reason is None


async def test_redacted_thinking_and_citations_arrive() -> None:
    note = {
        "type": "char_location",
        "cited_text": "a",
        "document_index": 0,
        "start_char_index": 0,
        "end_char_index": 1,
    }
    sealed = ThinkingBlock("", OpaqueState("anthropic", redacted_data="xyz"))
    msg = Msg("Friday", [sealed, TextBlock("As it says.", metadata={"citations": [note]})], "assistant")
    with LoopbackServer(msg) as server:
        async with anthropic_client(server) as client:
            reply = await client.messages.create(model="m", max_tokens=99, messages=HELLO)
            async with client.messages.stream(model="m", max_tokens=99, messages=HELLO) as stream:
                streamed = await stream.get_final_message()
    for message in (reply, streamed):
        redacted, text = cast("list[Any]", message.content)
        assert redacted.data == "xyz"
        assert text.citations[0].cited_text == "a"


async def test_tokens_are_counted_where_the_service_counts() -> None:
    with LoopbackServer() as server:
        async with anthropic_client(server) as client:
            counted = await client.messages.count_tokens(model="m", messages=HELLO)
            message = await client.messages.create(model="m", max_tokens=9, messages=HELLO)
    assert counted.input_tokens == message.usage.input_tokens > 0


# -- Gemini -----------------------------------------------------------------------------------------------------


async def _gemini_stream(client: genai.Client) -> AsyncIterator[types.GenerateContentResponse]:
    call = cast("Any", client.aio.models.generate_content_stream)  # pyright: ignore[reportUnknownMemberType]
    async for chunk in await call(model="m", contents="Hello"):
        yield chunk


async def _gemini_complete(client: genai.Client) -> types.GenerateContentResponse:
    call = cast("Any", client.aio.models.generate_content)  # pyright: ignore[reportUnknownMemberType]
    return cast("types.GenerateContentResponse", await call(model="m", contents="Hello"))


def _parts(response: types.GenerateContentResponse) -> list[types.Part]:
    assert response.candidates
    content = response.candidates[0].content
    return (content.parts if content else None) or []


@pytest.mark.parametrize("version", ["v1", "v1beta"])
async def test_gemini_returns_the_same_reply_complete_and_streamed(version: str) -> None:
    with LoopbackServer(Reply(REPLY_WITH_THINKING, usage=USAGE)) as server:
        client = gemini_client(server, version)
        reply = await _gemini_complete(client)
        chunks = [chunk async for chunk in _gemini_stream(client)]
        await client.aio.aclose()
        client.close()
    thought, text, call = _parts(reply)
    assert (thought.text, thought.thought, text.text) == ("Let me see.", True, "Hello there, friend.")
    assert call.function_call is not None
    assert call.function_call.args == ARGUMENTS
    assert call.thought_signature
    streamed = [part for chunk in chunks for part in _parts(chunk)]
    assert "".join(part.text for part in streamed if part.text and not part.thought) == text.text
    assert streamed[-1] == call
    assert chunks[-1].usage_metadata == reply.usage_metadata
    assert reply.usage_metadata is not None
    assert reply.usage_metadata.candidates_token_count == 15
    assert chunks[-1].candidates is not None
    assert chunks[-1].candidates[0].finish_reason == types.FinishReason.STOP
    assert [request.streamed for request in server.requests] == [False, True]
    assert server.requests[1].path == f"/{version}/models/m:streamGenerateContent?alt=sse"


async def test_gemini_signs_a_text_on_an_empty_part_and_sends_images() -> None:
    state = OpaqueState("gemini", thought_signature="AAEC")
    msg = Msg(
        "Friday",
        [TextBlock("Hello there", state=state), ImageBlock.from_bytes(b"\x89PNG", "image/png")],
        "assistant",
    )
    with LoopbackServer(msg) as server:
        client = gemini_client(server)
        parts = [part async for chunk in _gemini_stream(client) for part in _parts(chunk)]
        await client.aio.aclose()
        client.close()
    assert [part.text for part in parts[:3]] == ["Hello ", "there", ""]
    assert parts[2].thought_signature == b"\0\1\2"
    assert parts[3].inline_data is not None
    assert parts[3].inline_data.data == b"\x89PNG"


# -- Ollama -----------------------------------------------------------------------------------------------------


async def test_ollama_returns_the_same_reply_complete_and_streamed() -> None:
    with LoopbackServer(REPLY_WITH_THINKING) as server:
        async with ollama_client(server) as client:
            reply = await client.chat(model="m", messages=HELLO)
            lines = [line async for line in await client.chat(model="m", messages=HELLO, stream=True)]
    assert reply.message.thinking == "Let me see."
    assert reply.message.content == "".join(line.message.content for line in lines) == "Hello there, friend."
    assert [call.function.arguments for line in lines for call in line.message.tool_calls or ()] == [ARGUMENTS]
    assert lines[-1].done_reason == reply.done_reason == "stop"
    assert lines[-1].eval_count == reply.eval_count
    assert [line.done for line in lines] == [False] * (len(lines) - 1) + [True]


# -- the clouds -------------------------------------------------------------------------------------------------


async def test_the_cloud_clients_of_anthropic_find_their_paths() -> None:
    with LoopbackServer("Hello there.") as server:
        vertex = CLOUDS.AsyncAnthropicVertex(
            base_url=server.url("anthropic-vertex"),
            project_id="p",
            region="global",
            access_token="none",
            max_retries=0,
        )
        bedrock = CLOUDS.AsyncAnthropicBedrock(
            base_url=server.url("bedrock"), api_key="none", aws_region="us-east-1", max_retries=0
        )
        async with vertex, bedrock:
            reply = await vertex.messages.create(model="claude@1", max_tokens=9, messages=HELLO)
            async with vertex.messages.stream(model="claude@1", max_tokens=9, messages=HELLO) as stream:
                streamed = await stream.get_final_message()
            other = await bedrock.messages.create(model="claude@1", max_tokens=9, messages=HELLO)
            async with bedrock.messages.stream(model="claude@1", max_tokens=9, messages=HELLO) as stream:
                framed = await stream.get_final_message()
    assert dump(framed)["content"] == dump(reply)["content"]
    assert reply.content[0].type == "text"
    assert dump(reply)["content"] == dump(streamed)["content"] == dump(other)["content"]
    assert [request.provider for request in server.requests] == ["anthropic-vertex"] * 2 + ["bedrock"] * 2
    assert [request.streamed for request in server.requests] == [False, True] * 2
    assert {request.model for request in server.requests} == {"claude@1"}


async def test_the_cloud_client_of_google_uses_its_paths() -> None:
    with LoopbackServer("Hello there.") as server:
        args = {"transport": httpx2.AsyncHTTPTransport()}
        options = types.HttpOptions(base_url=server.url("gemini"), async_client_args=args)
        client = genai.Client(vertexai=True, api_key="none", http_options=options)
        reply = await _gemini_complete(client)
        chunks = [chunk async for chunk in _gemini_stream(client)]
        await client.aio.aclose()
        client.close()
    assert reply.text == "".join(chunk.text or "" for chunk in chunks) == "Hello there."
    assert "/publishers/google/models/m:" in server.requests[0].path


# -- errors -----------------------------------------------------------------------------------------------------

OPENAI_ERRORS: Final = [
    (400, openai.BadRequestError),
    (401, openai.AuthenticationError),
    (404, openai.NotFoundError),
    (429, openai.RateLimitError),
    (500, openai.InternalServerError),
]
ANTHROPIC_ERRORS: Final = [
    (400, anthropic.BadRequestError, "invalid_request_error"),
    (401, anthropic.AuthenticationError, "authentication_error"),
    (429, anthropic.RateLimitError, "rate_limit_error"),
    (500, anthropic.InternalServerError, "api_error"),
    (529, anthropic.InternalServerError, "overloaded_error"),
]


@pytest.mark.parametrize(("status", "kind"), OPENAI_ERRORS)
async def test_openai_errors_have_the_class_of_their_status(
    status: int, kind: type[openai.APIStatusError]
) -> None:
    with LoopbackServer(LoopbackError(status, "No.", code="some_code")) as server:
        async with openai_client(server) as client:
            with pytest.raises(kind, match="No") as caught:
                await client.chat.completions.create(model="m", messages=HELLO)
            with pytest.raises(kind, match="No"):
                await client.responses.create(model="m", input="Hello", stream=True)
    assert caught.value.code == "some_code"


@pytest.mark.parametrize(("status", "kind", "word"), ANTHROPIC_ERRORS)
async def test_anthropic_errors_have_the_class_of_their_status(
    status: int, kind: type[anthropic.APIStatusError], word: str
) -> None:
    with LoopbackServer(LoopbackError(status, "No.")) as server:
        async with anthropic_client(server) as client:
            with pytest.raises(kind, match="No") as caught:
                await client.messages.create(model="m", max_tokens=9, messages=HELLO)
    assert caught.value.type == word


async def test_gemini_and_ollama_errors_have_the_class_of_their_status() -> None:
    refused = LoopbackError(429, "Slow down.", retry_after=37)
    with LoopbackServer([refused, LoopbackError(503, "Later."), LoopbackError(404, "no such model")]) as server:
        client = gemini_client(server)
        with pytest.raises(errors.ClientError, match="RESOURCE_EXHAUSTED") as caught:
            await _gemini_complete(client)
        with pytest.raises(errors.ServerError, match="UNAVAILABLE"):
            await _gemini_complete(client)
        await client.aio.aclose()
        client.close()
        async with ollama_client(server) as other:
            with pytest.raises(ollama.ResponseError, match="no such model") as missing:
                await other.chat(model="m", messages=HELLO)
    assert "37s" in str(cast("Any", caught.value).details)
    assert missing.value.status_code == 404


async def test_bedrock_errors_have_the_class_of_their_status_complete_and_streamed() -> None:
    slow = LoopbackError(429, "Slow down.")
    with LoopbackServer([slow, Reply("Hello there, my friend.", error=slow, error_after=4)]) as server:
        client = CLOUDS.AsyncAnthropicBedrock(
            base_url=server.url("bedrock"), api_key="none", aws_region="us-east-1", max_retries=0
        )
        async with client:
            with pytest.raises(anthropic.RateLimitError, match="Slow") as complete:
                await client.messages.create(model="m", max_tokens=9, messages=HELLO)
            stream = await client.messages.create(model="m", max_tokens=9, messages=HELLO, stream=True)
            with pytest.raises(anthropic.APIStatusError, match="Slow") as within:
                async for _ in stream:
                    pass
    assert complete.value.response.headers["x-amzn-errortype"] == "ThrottlingException"
    assert (within.value.status_code, cast("Any", within.value).type) == (200, "throttlingException")


async def test_bedrock_refuses_unknown_keys() -> None:
    body = {"anthropic_version": "1", "max_tokens": 9, "messages": HELLO}
    with LoopbackServer() as server:
        async with httpx2.AsyncClient(base_url=server.url("bedrock")) as client:
            for more, key in (({"model": "m"}, "model"), ({"stream": True}, "stream")):
                answer = await client.post("/model/m/invoke", json=body | more)
                assert answer.status_code == 400
                assert f"[{key}]" in answer.json()["message"]
            answer = await client.post("/model/m/invoke", json={"messages": HELLO, "max_tokens": 9})
            assert "anthropic_version" in answer.json()["message"]


@pytest.mark.slow
@pytest.mark.parametrize("retry_after", [0.01, 0.0])
async def test_an_sdk_waits_for_the_seconds_of_retry_after(retry_after: float) -> None:
    busy = LoopbackError(429, "Slow down.", retry_after=retry_after)
    with LoopbackServer([busy, "Here.", busy, "There."]) as server:
        async with openai_client(server, retries=1) as client:
            first = await client.chat.completions.create(model="m", messages=HELLO)
        async with anthropic_client(server, retries=1) as other:
            second = await other.messages.create(model="m", max_tokens=9, messages=HELLO)
    assert first.choices[0].message.content == "Here."
    assert cast("Any", second.content[0]).text == "There."
    assert len(server.requests) == 4


# -- streams that go wrong --------------------------------------------------------------------------------------


def failing(error: LoopbackError, after: int = 3) -> PlayableReply:
    return Reply("Hello there, my friend.", error=error, error_after=after)


async def test_an_error_inside_a_stream_raises_the_error_of_each_sdk() -> None:
    error = LoopbackError(529, "Too many.", code="overloaded_error")
    with LoopbackServer(failing(error)) as server:
        async with openai_client(server) as client:
            with pytest.raises(openai.APIError, match="Too many"):
                async for _ in await client.chat.completions.create(model="m", messages=HELLO, stream=True):
                    pass
            events = [event async for event in await client.responses.create(model="m", input="H", stream=True)]
            assert events[-1].type == "error"
        async with anthropic_client(server) as other:
            with pytest.raises(anthropic.APIStatusError, match="Too many") as caught:
                async for _ in await other.messages.create(model="m", max_tokens=9, messages=HELLO, stream=True):
                    pass
            assert (caught.value.type, caught.value.status_code) == ("overloaded_error", 200)
        async with ollama_client(server) as third:
            with pytest.raises(ollama.ResponseError, match="Too many"):
                async for _ in await third.chat(model="m", messages=HELLO, stream=True):
                    pass
        client4 = gemini_client(server)
        with pytest.raises(errors.ServerError, match="Too many"):
            async for _ in _gemini_stream(client4):
                pass
        await client4.aio.aclose()
        client4.close()


@pytest.mark.parametrize("cut", [{"cut_after": 3}, {"cut_after_bytes": 400}], ids=["events", "bytes"])
async def test_a_broken_connection_is_a_transport_error(cut: dict[str, int]) -> None:
    with LoopbackServer(Reply("Hello there, my friend.", **cast("Any", cut))) as server:
        async with openai_client(server) as client:
            stream = await client.chat.completions.create(model="m", messages=HELLO, stream=True)
            with pytest.raises(openai.APIConnectionError):
                async for _ in stream:
                    pass
        async with anthropic_client(server) as other:
            with pytest.raises((anthropic.APIConnectionError, httpx2.RemoteProtocolError)):
                async for _ in await other.messages.create(model="m", max_tokens=9, messages=HELLO, stream=True):
                    pass


async def test_the_server_records_a_client_that_disconnects_early() -> None:
    with LoopbackServer([Reply("word " * 200, delay=0.01), "Here."]) as server:
        async with openai_client(server) as client:
            async with await client.chat.completions.create(model="m", messages=HELLO, stream=True) as stream:
                async for _ in stream:
                    break
            await client.chat.completions.create(model="m", messages=HELLO)
        canceled, stayed = server.requests
        assert canceled.wait().disconnected
        assert not stayed.wait().disconnected
