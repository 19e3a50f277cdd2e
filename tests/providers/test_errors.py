"""Errors of services and networks become errors of agentkit.

DashScope's SDK waits between two tries with asyncio, so on trio it tries once.
"""

from typing import Final

import pytest

from agentkit import (
    AuthError,
    BadRequestError,
    ChatModel,
    ContextLengthError,
    ModelError,
    NetworkError,
    OverloadedError,
    RateLimitError,
)
from agentkit.testing import LoopbackError, LoopbackServer, Reply
from tests.cases import each_case
from tests.providers import PROVIDERS
from tests.providers.calling import (
    BURST,
    HELLO,
    SDKS,
    RawServer,
    create_model,
    make_raw_model,
    options,
    read_stream,
    write_answer,
)

pytestmark = pytest.mark.anyio


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
async def test_each_status_has_an_error_class_and_the_error_of_the_sdk_as_cause(provider: str) -> None:
    with LoopbackServer() as server:
        async with create_model(provider, server) as model:
            for status, kind in ERRORS.items():
                error = LoopbackError(status, "This is what the provider says.", retry_after=3)
                server.play(error, error)
                with pytest.raises(ModelError) as complete:
                    await model.generate(HELLO)
                with pytest.raises(ModelError) as streamed:
                    await read_stream(model, HELLO)
                for caught in (complete.value, streamed.value):
                    assert type(caught) is kind
                    assert (caught.provider, caught.status) == (provider, status)
                    assert caught.provider_message == "This is what the provider says."
                    assert caught.retry_after == 3
                    assert type(caught.__cause__).__module__.partition(".")[0] in SDKS[provider]


@pytest.mark.parametrize(
    "provider", sorted({*PROVIDERS} - {"gemini", "ollama"})
)  # replies of these two APIs have no request id
async def test_an_error_has_the_request_id_whenever_it_comes(provider: str) -> None:
    error = LoopbackError(503, "The server is overloaded.")
    within = Reply(BURST, error=error, error_after=8)
    with LoopbackServer([error, error, within]) as server:
        async with create_model(provider, server) as model:
            with pytest.raises(ModelError) as complete:
                await model.generate(HELLO)
            with pytest.raises(ModelError) as opening:
                await read_stream(model, HELLO)
            async with model.stream(HELLO) as stream:
                with pytest.raises(ModelError) as broken:
                    await stream.finish()
    # The id of the body has precedence over the id of the header.
    assert "loopback" in str(complete.value.request_id)
    assert "loopback" in str(opening.value.request_id)
    assert broken.value.request_id in {stream.request_id, "loopback", "req_loopback"}
    assert stream.request_id


@pytest.mark.parametrize("provider", PROVIDERS)
async def test_a_missing_server_is_a_network_error(provider: str) -> None:
    with LoopbackServer() as server:
        client_options = options(provider, server)
    async with ChatModel(provider, "some-model", client_options=client_options) as model:
        with pytest.raises(NetworkError) as caught:
            await model.generate(HELLO)
    assert caught.value.retryable
    assert caught.value.__cause__ is not None


@pytest.mark.parametrize("provider", sorted(set(PROVIDERS) - {"gemini", "ollama"}))
async def test_an_sdk_retries_by_itself(provider: str, anyio_backend: str) -> None:
    busy = LoopbackError(503, "Busy.", retry_after=0.01)
    with LoopbackServer([busy, "At last."]) as server:
        async with create_model(provider, server, retries=1) as model:
            if provider == "dashscope" and anyio_backend == "trio":
                with pytest.raises(OverloadedError):
                    await model.generate(HELLO)
                return
            assert (await model.generate(HELLO)).text == "At last."
    assert len(server.requests) == 2


class _Nowhere:
    def url(self, provider: str | None = None) -> str:
        return "ftp://127.0.0.1/v1"


@each_case("stream", [False, True])
@pytest.mark.parametrize("provider", PROVIDERS)
async def test_a_url_with_an_unknown_scheme_is_an_error_that_is_not_retryable(provider: str, stream: bool) -> None:
    async with ChatModel(provider, "some-model", client_options=options(provider, _Nowhere())) as model:
        with pytest.raises(NetworkError, match="base_url") as error:
            await (read_stream(model, HELLO) if stream else model.generate(HELLO))
    assert not error.value.retryable


@pytest.mark.parametrize("provider", PROVIDERS)
async def test_a_web_page_as_reply_is_a_model_error(provider: str) -> None:
    with LoopbackServer([b"<html>Welcome to the hotel</html>"]) as server:
        async with create_model(provider, server) as model:
            with pytest.raises(ModelError):
                await model.generate(HELLO)


@each_case("stream", [False, True])
@pytest.mark.parametrize("provider", PROVIDERS)
async def test_the_detail_of_a_gateway_is_the_text_of_the_error(provider: str, stream: bool) -> None:
    body = b'{"detail": [{"loc": ["body", "model"], "msg": "There is no such model."}]}'
    with RawServer(write_answer(422, body, "content-type: application/json")) as server:
        async with make_raw_model(provider, server) as model:
            with pytest.raises(BadRequestError) as caught:
                await (read_stream(model, HELLO) if stream else model.generate(HELLO))
    assert caught.value.status == 422
    assert caught.value.provider_message == "model: There is no such model."


@each_case("stream", [False, True])
@pytest.mark.parametrize("provider", PROVIDERS)
async def test_an_error_body_that_is_not_utf_8_is_read(provider: str, stream: bool) -> None:
    body = '{"error": {"message": "Trop tôt, le café est fermé.", "code": 503}}'.encode("latin-1")
    with RawServer(write_answer(503, body, "content-type: application/json")) as server:
        async with make_raw_model(provider, server) as model:
            with pytest.raises(OverloadedError):
                await (read_stream(model, HELLO) if stream else model.generate(HELLO))


@each_case("body", ['{"error": {"detail": "closed"}}', '{"error": {"message": ""}, "detail": "closed"}'])
@pytest.mark.parametrize("provider", ["anthropic", "openai"])
async def test_the_body_is_the_text_of_an_error_without_a_message(provider: str, body: str) -> None:
    with RawServer(write_answer(400, body.encode(), "content-type: application/json")) as server:
        async with make_raw_model(provider, server) as model:
            with pytest.raises(BadRequestError) as caught:
                await model.generate(HELLO)
    assert caught.value.provider_message == body


@pytest.mark.parametrize("provider", ["anthropic", "openai"])
async def test_an_error_body_with_invalid_utf_8_or_a_byte_order_mark_is_parsed(provider: str) -> None:
    for body in (
        b'\xef\xbb\xbf{"error": {"message": "Too early."}}',
        b'{"error": {"message": "Too early."}, "x": "\xff"}',
    ):
        with RawServer(write_answer(400, body, "content-type: application/json")) as server:
            async with make_raw_model(provider, server) as model:
                with pytest.raises(BadRequestError) as caught:
                    await model.generate(HELLO)
        assert caught.value.provider_message == "Too early."


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
    '{"error": {"message": "x", "code": ' + "9" * 5_000 + "}}",
]


@pytest.mark.parametrize("stream", [False, pytest.param(True, marks=pytest.mark.sdk)])
@pytest.mark.parametrize("provider", PROVIDERS)
async def test_an_error_body_of_any_shape_is_a_model_error(provider: str, stream: bool) -> None:
    with RawServer(b"") as server:
        async with make_raw_model(provider, server) as model:

            @each_case("body", ODD_ERRORS)
            async def check(body: str) -> None:
                server.answer = write_answer(400, body.encode(), "content-type: application/json")
                with pytest.raises(ModelError) as caught:
                    await (read_stream(model, HELLO) if stream else model.generate(HELLO))
                str(caught.value).encode()
                assert isinstance(caught.value.code, str | None)

            await check()
    assert len(server.requests) == len(ODD_ERRORS)


@each_case("stream", [False, True])
@pytest.mark.parametrize("provider", PROVIDERS)
async def test_a_redirect_is_an_error_with_its_status(provider: str, stream: bool) -> None:
    with RawServer(write_answer(302, b"", "location: http://127.0.0.1:9/nowhere")) as server:
        async with make_raw_model(provider, server) as model:
            with pytest.raises(ModelError) as caught:
                await (read_stream(model, HELLO) if stream else model.generate(HELLO))
    assert isinstance(caught.value, NetworkError) or caught.value.status == 302


@each_case("stream", [False, True])
@pytest.mark.parametrize(
    "anyio_backend", ["asyncio"]
)  # on trio the HTTP clients of the SDKs do not close a generator
@pytest.mark.parametrize("provider", PROVIDERS)
async def test_a_body_that_cannot_be_decompressed_is_a_network_error(provider: str, stream: bool) -> None:
    with RawServer(write_answer(200, b"no gzip", "content-encoding: gzip")) as server:
        async with make_raw_model(provider, server) as model:
            with pytest.raises(NetworkError):
                await (read_stream(model, HELLO) if stream else model.generate(HELLO))


@pytest.mark.parametrize("provider", PROVIDERS)
async def test_the_seconds_to_wait_are_read_from_a_header(provider: str) -> None:
    body = b'{"error": {"message": "Slow down."}}'
    with RawServer(write_answer(429, body, "retry-after: 7")) as server:
        async with make_raw_model(provider, server) as model:
            with pytest.raises(RateLimitError, match="Slow down") as caught:
                await model.generate(HELLO)
    assert caught.value.retry_after == 7


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
        async with create_model(provider, server) as model:
            with pytest.raises(ContextLengthError):
                await model.generate(HELLO)
