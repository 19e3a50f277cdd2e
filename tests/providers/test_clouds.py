"""Cloud clients of the SDKs of Anthropic and OpenAI, passed as `client=`, against a server on this machine."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable
from typing import Any, Final, cast

import anthropic
import anyio
import openai
import pytest

from agentkit import (
    AuthError,
    BadRequestError,
    ChatModel,
    ContextLengthError,
    FinishReason,
    MissingExtraError,
    ModelError,
    Msg,
    NetworkError,
    OverloadedError,
    RateLimitError,
    TextBlock,
    ThinkingBlock,
    ToolUseBlock,
)
from agentkit.testing import LoopbackError, LoopbackServer, Reply
from agentkit_anthropic.testing import encode_binary_event
from tests.cases import each_case
from tests.providers import LOOK, user

pytestmark = pytest.mark.anyio

HELLO: Final = [user("Is anybody there?")]
BURST: Final = "So many words. " * 40
MSG: Final = Msg(
    "Friday",
    [
        ThinkingBlock("Where?"),
        TextBlock("Let me look — über 海."),
        ToolUseBlock("call_1", "look", {"place": "sea"}),
    ],
    "assistant",
)
SDKS: Final[Any] = anthropic  # the clients of the clouds are not in its `__all__`
STATIC: Final = {"aws_access_key": "AKIAEXAMPLE", "aws_secret_key": "secret", "aws_region": "eu-west-1"}

Make = Callable[[LoopbackServer], Any]


def _bedrock(server: LoopbackServer, **options: Any) -> Any:
    client_options = {**STATIC, "base_url": server.url("bedrock"), "max_retries": 0, **options}
    return SDKS.AsyncAnthropicBedrock(**client_options)


def _bearer(server: LoopbackServer) -> Any:
    url = server.url("bedrock")
    return SDKS.AsyncAnthropicBedrock(api_key="k", aws_region="eu-west-1", base_url=url, max_retries=0)


def _mantle(server: LoopbackServer) -> Any:
    return SDKS.AsyncAnthropicBedrockMantle(**STATIC, base_url=server.url("anthropic"), max_retries=0)


def _aws(server: LoopbackServer) -> Any:
    url = server.url("anthropic")
    return SDKS.AsyncAnthropicAWS(**STATIC, workspace_id="wrkspc_1", base_url=url, max_retries=0)


def _vertex(server: LoopbackServer) -> Any:
    return SDKS.AsyncAnthropicVertex(
        region="europe-west1",
        project_id="project",
        access_token="token",
        base_url=server.url("anthropic-vertex"),
        max_retries=0,
    )


def _google_cloud(server: LoopbackServer) -> Any:
    url = server.url("anthropic")
    return SDKS.AsyncAnthropicGoogleCloud(token_provider=lambda: "token", base_url=url, max_retries=0)


def _foundry(server: LoopbackServer) -> Any:
    return SDKS.AsyncAnthropicFoundry(api_key="k", base_url=server.url("anthropic"), max_retries=0)


def _azure(server: LoopbackServer) -> Any:
    return openai.AsyncAzureOpenAI(
        api_key="k", azure_endpoint=server.url("azure"), api_version="2026-10-01", max_retries=0
    )


def _openai_bedrock(server: LoopbackServer) -> Any:
    url = server.url("openai")
    return openai.AsyncBedrockOpenAI(api_key="k", aws_region="eu-west-1", base_url=url, max_retries=0)


CLOUDS: Final[dict[str, tuple[str, Make, str]]] = {
    "aws": ("anthropic", _aws, "/v1/messages"),
    "azure": ("openai", _azure, "/openai/deployments/the-model/chat/completions?api-version=2026-10-01"),
    "azure-responses": ("openai-responses", _azure, "/openai/responses?api-version=2026-10-01"),
    "bedrock": ("anthropic", _bedrock, "/model/the-model/invoke"),
    "bedrock-bearer": ("anthropic", _bearer, "/model/the-model/invoke"),
    "foundry": ("anthropic", _foundry, "/v1/messages"),
    "google-cloud": ("anthropic", _google_cloud, "/v1/messages"),
    "mantle": ("anthropic", _mantle, "/v1/messages"),
    "openai-bedrock": ("openai", _openai_bedrock, "/v1/chat/completions"),
    "openai-bedrock-responses": ("openai-responses", _openai_bedrock, "/v1/responses"),
    "vertex": ("anthropic", _vertex, "/v1/projects/project/locations/europe-west1/publishers/anthropic/models/"),
}
BEDROCKS: Final = ["bedrock", "bedrock-bearer"]


def _model(name: str, server: LoopbackServer, **options: Any) -> ChatModel:
    provider, make, _ = CLOUDS[name]
    return ChatModel(provider, "the-model", client=make(server), **options)


async def _close(model: ChatModel) -> None:
    endpoint: Any = vars(model)["_client"].endpoint
    await endpoint.client.close()


@pytest.mark.parametrize("name", CLOUDS)
async def test_a_streamed_reply_of_a_cloud_equals_the_complete_reply(name: str) -> None:
    blocks = MSG.blocks if CLOUDS[name][0] == "anthropic" else MSG.blocks[1:]
    msg = Msg("Friday", blocks, "assistant")
    with LoopbackServer(msg) as server:
        model = _model(name, server)
        reply = await model.generate(HELLO, tools=[LOOK])
        async with model.stream(HELLO, tools=[LOOK]) as stream:
            kinds = [event.type async for event in stream]
        await _close(model)
    assert [request.streamed for request in server.requests] == [False, True]
    assert all(request.path.startswith(CLOUDS[name][2]) for request in server.requests)
    assert reply.tool_uses[0].input == {"place": "sea"}
    assert stream.message.content == reply.content
    assert stream.message.usage == reply.usage
    assert stream.message.finish_reason is reply.finish_reason is FinishReason.TOOL_USE
    assert kinds.count("text-delta") > 1
    assert "message-end" in kinds


@pytest.mark.parametrize("name", CLOUDS)
async def test_an_error_of_a_cloud_has_its_class_and_the_text_of_the_cloud(name: str) -> None:
    errors: dict[int, type[ModelError]] = {
        400: BadRequestError,
        403: AuthError,
        429: RateLimitError,
        503: OverloadedError,
    }
    with LoopbackServer() as server:
        model = _model(name, server)
        for status, kind in errors.items():
            error = LoopbackError(status, "This is what the cloud says.", retry_after=3)
            server.play(error, error)
            with pytest.raises(ModelError) as complete:
                await model.generate(HELLO)
            with pytest.raises(ModelError) as streamed:
                async with model.stream(HELLO):
                    pass
            for caught in (complete.value, streamed.value):
                assert type(caught) is kind
                assert (caught.status, caught.provider_message) == (status, "This is what the cloud says.")
                assert caught.retry_after == 3
                assert caught.request_id == "req_loopback"
        await _close(model)


@pytest.mark.parametrize("name", CLOUDS)
async def test_an_error_within_a_stream_is_raised_after_the_text_before_it(name: str) -> None:
    error = LoopbackError(503, "The model is overloaded.")
    with LoopbackServer([Reply(BURST, error=error, error_after=8)]) as server:
        model = _model(name, server)
        async with model.stream(HELLO) as stream:
            with pytest.raises(OverloadedError, match="overloaded"):
                await stream.finish()
        await _close(model)
    assert stream.message.text
    assert BURST.startswith(stream.message.text)
    assert stream.message.finish_reason is FinishReason.ERROR


@pytest.mark.parametrize("name", CLOUDS)
async def test_a_broken_connection_does_not_remove_the_received_text(name: str) -> None:
    with LoopbackServer([Reply(BURST, cut_after=8), Reply(BURST, cut_after_bytes=3_333)]) as server:
        model = _model(name, server)
        for _ in range(2):
            async with model.stream(HELLO) as stream:
                with pytest.raises(NetworkError):
                    await stream.finish()
            assert stream.message.text
            assert stream.message.finish_reason is FinishReason.INTERRUPTED
        await _close(model)


@pytest.mark.parametrize("name", CLOUDS)
async def test_leaving_a_stream_early_closes_the_connection(name: str) -> None:
    with LoopbackServer([Reply(BURST, delay=0.02), "And now?"]) as server:
        model = _model(name, server)
        async with model.stream(HELLO) as stream:
            async for event in stream:
                if event.type == "text-delta":
                    break
        assert server.requests[0].wait().disconnected
        assert (await model.generate([*HELLO, stream.message, user("Go on.")])).text == "And now?"
        await _close(model)


@pytest.mark.parametrize("name", CLOUDS)
async def test_a_cancellation_passes_and_closes_the_connection(name: str) -> None:
    with LoopbackServer([Reply(BURST, delay=0.02)]) as server:
        model = _model(name, server)
        stream = model.stream(HELLO)
        with anyio.CancelScope() as scope:
            async with stream:
                async for event in stream:
                    if event.type == "text-delta":
                        scope.cancel()
        assert scope.cancelled_caught
        assert server.requests[0].wait().disconnected
        assert stream.message.finish_reason is FinishReason.INTERRUPTED
        await _close(model)


# -- Bedrock ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", BEDROCKS)
@each_case(
    ("status", "code", "text", "kind"),
    [
        (400, "ValidationException", "messages: text content blocks must be non-empty", BadRequestError),
        (400, "ValidationException", "Input is too long for requested model.", ContextLengthError),
        (403, "AccessDeniedException", "You don't have access to the model.", AuthError),
        (403, "ExpiredTokenException", "The security token included in the request is expired", AuthError),
        (408, "ModelTimeoutException", "Model has timed out in processing the request.", OverloadedError),
        (424, "ModelErrorException", "The system encountered an unexpected error.", OverloadedError),
        (429, "ThrottlingException", "Too many tokens, please wait before trying again.", RateLimitError),
        (429, "ModelNotReadyException", "Model is not ready for inference.", RateLimitError),
        (500, "InternalServerException", "An internal error has occurred.", OverloadedError),
        (503, "ServiceUnavailableException", "Too many connections, try again.", OverloadedError),
    ],
)
async def test_bedrock_errors_have_their_class_in_responses_and_in_streams(
    name: str, status: int, code: str, text: str, kind: type[ModelError]
) -> None:
    error = LoopbackError(status, text, code=code)
    with LoopbackServer([error, error, Reply("Hello there, friend.", error=error, error_after=4)]) as server:
        model = _model(name, server)
        with pytest.raises(kind) as complete:
            await model.generate(HELLO)
        with pytest.raises(kind) as refused:
            async with model.stream(HELLO):
                pass
        async with model.stream(HELLO) as stream:
            with pytest.raises(kind) as within:
                await stream.finish()
        await _close(model)
    for caught in (complete.value, refused.value):
        assert (type(caught), caught.provider_message, caught.code, caught.status) == (kind, text, code, status)
    assert (type(within.value), within.value.provider_message) == (kind, text)
    assert within.value.code == code[:1].lower() + code[1:]
    assert stream.message.text
    assert stream.message.finish_reason is FinishReason.ERROR


async def test_a_bedrock_request_has_its_format_and_is_signed() -> None:
    with LoopbackServer("Hello.") as server:
        model = ChatModel("anthropic", "eu.anthropic.claude-opus-5-v1:0", client=_bedrock(server))
        await model.generate(HELLO, parameters={"betas": ["one", "two"]})
        async with model.stream(HELLO) as stream:
            await stream.finish()
        await _close(model)
    complete, streamed = server.requests
    assert complete.path == "/model/eu.anthropic.claude-opus-5-v1:0/invoke"
    assert streamed.path == "/model/eu.anthropic.claude-opus-5-v1:0/invoke-with-response-stream"
    assert complete.body["anthropic_beta"] == ["one", "two"]
    for request in server.requests:
        assert request.headers["authorization"].startswith("AWS4-HMAC-SHA256 Credential=AKIAEXAMPLE/")
        assert not {"model", "stream"} & request.body.keys()
        assert request.body["anthropic_version"]


async def test_a_long_reply_of_bedrock_is_streamed_although_the_caller_asks_for_a_complete_reply() -> None:
    with LoopbackServer("Long.") as server:
        model = _model("bedrock", server, max_tokens=64_000)
        assert (await model.generate(HELLO)).text == "Long."
        await _close(model)
    assert server.requests[0].streamed


@pytest.mark.parametrize("position", [3, 9, 40, 150, -2])
async def test_a_damaged_event_frame_is_a_network_error(position: int) -> None:
    headers = {":event-type": "chunk", ":message-type": "event"}
    frame = bytearray(encode_binary_event(headers, b'{"bytes":"' + b"e30=" * 20 + b'"}'))
    frame[position] ^= 0x55
    with LoopbackServer(Reply(bytes(frame))) as server:
        model = _model("bedrock", server)
        async with model.stream(HELLO) as stream:
            with pytest.raises(NetworkError) as caught:
                await stream.finish()
        await _close(model)
    assert caught.value.retryable


async def test_without_credentials_of_aws_a_call_raises_an_auth_error(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE", "AWS_BEARER_TOKEN_BEDROCK"):
        monkeypatch.delenv(name, raising=False)
    for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
        monkeypatch.setenv(name, "/nonexistent")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    with LoopbackServer("never") as server:
        client = SDKS.AsyncAnthropicBedrock(aws_region="eu-west-1", base_url=server.url("bedrock"), max_retries=0)
        model = ChatModel("anthropic", "the-model", client=client)
        with pytest.raises(AuthError, match="credentials"):
            await model.generate(HELLO)
        with pytest.raises(AuthError, match="credentials"):
            async with model.stream(HELLO):
                pass
        await _close(model)
    assert server.requests == []


async def test_without_credentials_of_google_a_call_raises_an_auth_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", "/nonexistent")
    with LoopbackServer("never") as server:
        url = server.url("anthropic-vertex")
        client = SDKS.AsyncAnthropicVertex(region="global", project_id="p", base_url=url, max_retries=0)
        model = ChatModel("anthropic", "the-model", client=client)
        with pytest.raises(AuthError, match="nonexistent"):
            await model.generate(HELLO)
        await _close(model)
    assert server.requests == []


async def _generate(model: ChatModel) -> Msg:
    return await model.generate(HELLO)


async def _stream(model: ChatModel) -> Msg:
    async with model.stream(HELLO) as stream:
        return await stream.finish()


@pytest.mark.parametrize(
    ("name", "call"), [("bedrock", _generate), ("bedrock", _stream), ("bedrock-bearer", _stream)]
)
async def test_without_the_packages_of_aws_the_error_names_the_extra(
    monkeypatch: pytest.MonkeyPatch, name: str, call: Callable[[ChatModel], Awaitable[Msg]]
) -> None:
    with LoopbackServer("Hello.") as server:
        model = _model(name, server)
        for module in [module for module in sys.modules if module.partition(".")[0] in {"boto3", "botocore"}]:
            monkeypatch.delitem(sys.modules, module)
        for module in ("boto3", "botocore"):
            monkeypatch.setitem(sys.modules, module, cast("Any", None))
        with pytest.raises(MissingExtraError, match=r"agentkit-middleware\[bedrock\]"):
            await call(model)
        if name == "bedrock-bearer":  # a bearer key needs no package of AWS
            assert (await _generate(model)).text == "Hello."
        await _close(model)
