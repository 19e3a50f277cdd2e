"""Calls of google-genai with a finished body: the request that is sent, and the bytes of the reply."""

from typing import Any, Final

import pytest

from agentkit import (
    ChatModel,
    FinishReason,
    ModelError,
    Msg,
    OptionError,
    OverloadedError,
    RateLimitError,
)
from agentkit.testing import LoopbackError, LoopbackServer, Reply
from tests.providers.calling import HELLO, RawServer, create_model, make_raw_model, read_stream, write_answer

pytestmark = pytest.mark.anyio

NEW: Final = {"holographicData": {"mimeType": "x/y"}}  # a part that the installed SDK has no field for
UNREAD: Final = [{"holographic_data": {"mime_type": "x/y"}}]


def _event(*parts: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"candidates": [{"content": {"role": "model", "parts": list(parts)}, "index": 0, **more}]}


def _client(server: LoopbackServer, aiohttp: bool, **more: Any) -> Any:
    import httpx2
    from google import genai
    from google.genai import types

    own = {} if aiohttp else {"async_client_args": {"transport": httpx2.AsyncHTTPTransport()}}
    http_options: dict[str, Any] = {"base_url": server.url("gemini"), **own, **more}
    return genai.Client(api_key="k", http_options=types.HttpOptions(**http_options))


async def _close(client: Any) -> None:
    await client.aio.aclose()
    client.close()


async def _call_both_ways(client: Any) -> list[Any]:
    model = ChatModel("gemini", "gemini-3-pro", client=client)
    reply = await model.generate(HELLO)
    async with model.stream(HELLO) as stream:
        streamed = await stream.finish()
    await _close(client)
    return [reply, streamed]


REPLY: Final = _event({"text": "Look."}, NEW, finishReason="STOP")


async def test_the_sdk_does_not_parse_a_reply_through_the_callers_client() -> None:
    with LoopbackServer([REPLY, Reply([REPLY])]) as server:
        reply, streamed = await _call_both_ways(_client(server, aiohttp=False))
    assert reply == streamed
    assert reply.metadata["reply"]["unread_parts"] == UNREAD
    assert reply.finish_reason is FinishReason.STOP


@pytest.mark.filterwarnings("ignore:Inheritance class:DeprecationWarning")  # from the session class of the SDK
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_the_sdk_does_not_parse_a_reply_through_aiohttp() -> None:
    with LoopbackServer([REPLY, Reply([REPLY])]) as server:
        reply, streamed = await _call_both_ways(_client(server, aiohttp=True))
    assert reply == streamed
    assert reply.metadata["reply"]["unread_parts"] == UNREAD


async def test_methods_of_a_test_double_of_the_sdk_are_called() -> None:
    class Models:
        """Wrapper of the SDK's models, as observability libraries use it."""

        def __init__(self, inner: Any) -> None:
            self.inner = inner
            self.called: list[str] = []

        def __getattr__(self, name: str) -> Any:
            self.called.append(name)
            return getattr(self.inner, name)

    plain = _event({"text": "Look."}, finishReason="STOP")
    with LoopbackServer([plain, Reply([plain])]) as server:
        client = _client(server, aiohttp=False)
        models = Models(client.aio.models)

        class Aio:
            pass

        aio: Any = Aio()
        aio.models = models
        model = ChatModel("gemini", "gemini-3-pro", client=aio)
        reply = await model.generate(HELLO, parameters={"http_options": {"extra_body": {"labels": {"a": "b"}}}})
        async with model.stream(HELLO) as stream:
            streamed = await stream.finish()
        await _close(client)
    assert reply.text == streamed.text == "Look."
    assert {"generate_content", "generate_content_stream"} <= set(models.called)
    assert [request.body["contents"] for request in server.requests] == [server.requests[0].body["contents"]] * 2
    assert server.requests[0].body["contents"][0]["parts"] == [{"text": "Is anybody there?"}]
    assert server.requests[0].body["labels"] == {"a": "b"}


@pytest.mark.parametrize("whose", ["client", "call"])
async def test_an_extra_body_of_the_caller_is_sent(whose: str) -> None:
    extra = {"labels": {"a": "b"}, "generationConfig": {"thinkingConfig": {"includeThoughts": True}}}
    thinking = {"thinking_budget": 7}
    options: dict[str, Any] = {"thinking_config": thinking}
    if whose == "call":
        options["http_options"] = {"extra_body": extra}
    with LoopbackServer("Hello.") as server:
        client = _client(server, aiohttp=False, **({"extra_body": extra} if whose == "client" else {}))
        model = ChatModel("gemini", "gemini-3-pro", client=client)
        await model.generate(HELLO, parameters=options)
        async with model.stream(HELLO, parameters=options) as stream:
            await stream.finish()
        await _close(client)
    for request in server.requests:
        assert request.body["labels"] == {"a": "b"}
        assert request.body["generationConfig"]["thinkingConfig"]["includeThoughts"] is True
        assert request.body["contents"][0]["parts"] == [{"text": "Is anybody there?"}]
    assert thinking == {"thinking_budget": 7}
    assert extra == {"labels": {"a": "b"}, "generationConfig": {"thinkingConfig": {"includeThoughts": True}}}


async def test_headers_of_a_call_are_sent_and_the_sdk_retries() -> None:
    retry = {"attempts": 3, "initial_delay": 0.01, "max_delay": 0.01}
    options = {"headers": {"x-trace": "t1"}, "retry_options": retry}
    with LoopbackServer(
        [LoopbackError(503, "Busy."), "At last.", LoopbackError(503, "Busy."), "Again."]
    ) as server:
        client = _client(server, aiohttp=False)
        model = ChatModel("gemini", "gemini-3-pro", client=client)
        assert (await model.generate(HELLO, parameters={"http_options": options})).text == "At last."
        async with model.stream(HELLO, parameters={"http_options": options}) as stream:
            assert (await stream.finish()).text == "Again."
        await _close(client)
    assert [request.headers.get("x-trace") for request in server.requests[:4]] == ["t1"] * 4
    assert len({request.raw for request in server.requests[:2]}) == 1


async def test_an_enterprise_client_adds_its_credentials_and_path() -> None:
    import httpx2
    from google import genai
    from google.genai import types
    from google.oauth2.credentials import Credentials

    with LoopbackServer([REPLY, Reply([REPLY])]) as server:
        own = {"transport": httpx2.AsyncHTTPTransport()}
        client = genai.Client(
            enterprise=True,
            project="p",
            location="europe-west1",
            credentials=Credentials("token"),  # type: ignore[no-untyped-call]
            http_options=types.HttpOptions(base_url=server.url("gemini"), async_client_args=own),
        )
        reply, streamed = await _call_both_ways(client)
    assert reply == streamed
    assert reply.metadata["reply"]["unread_parts"] == UNREAD
    for request in server.requests:
        assert "/projects/p/locations/europe-west1/publishers/google/models/gemini-3-pro:" in request.path
        assert request.headers["authorization"] == "Bearer token"
        assert request.body["contents"][0]["parts"] == [{"text": "Is anybody there?"}]


async def test_retry_options_of_the_client_apply() -> None:
    with LoopbackServer([LoopbackError(503, "Busy."), "At last."]) as server:
        retry = {"attempts": 2, "initial_delay": 0.01, "max_delay": 0.01}
        options = {
            "api_key": "k",
            "http_options": {"base_url": server.url("gemini"), "retry_options": retry},
        }
        async with create_model("gemini", server, client_options=options) as model:
            assert (await model.generate(HELLO)).text == "At last."


@pytest.mark.parametrize("options", [{"timeout": 60_000}, {"headers": {"x": "1"}}])
@pytest.mark.parametrize("as_object", [False, True])
def test_http_options_of_a_call_keep_their_values(options: dict[str, Any], as_object: bool) -> None:
    from google.genai import types

    from agentkit_gemini import GeminiEndpoint

    expected = {"timeout": 5_000, **options}
    http_options = types.HttpOptions.model_validate(options) if as_object else options
    body = GeminiEndpoint(None).build_request(
        "m", {"contents": []}, {"timeout": 5, "http_options": http_options}, stream=False
    )
    sent = body.options["http_options"]
    assert (sent.model_dump(exclude_unset=True) if as_object else sent) == expected


async def test_a_config_object_of_the_sdk_can_contain_the_parameters() -> None:
    from google.genai import types

    config = types.GenerateContentConfig(temperature=0.5, thinking_config=types.ThinkingConfig(thinking_budget=7))
    with LoopbackServer("Hello.") as server:
        async with create_model("gemini", server) as model:
            await model.generate(
                HELLO, parameters={"config": config, "safety_settings": [{"category": "A", "threshold": "B"}]}
            )
    body = server.requests[0].body
    assert body["generationConfig"]["temperature"] == 0.5
    assert body["generationConfig"]["thinkingConfig"]["thinkingBudget"] == 7
    assert body["safetySettings"] == [{"category": "A", "threshold": "B"}]


async def test_parameters_can_have_either_spelling() -> None:
    from google.genai import types

    safety = types.SafetySetting(
        category=types.HarmCategory.HARM_CATEGORY_HARASSMENT, threshold=types.HarmBlockThreshold.BLOCK_NONE
    )
    config = types.GenerateContentConfig(temperature=0.5, safety_settings=[safety])
    with LoopbackServer("Hello.") as server:
        async with create_model("gemini", server) as model:
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


async def test_the_key_follows_no_redirect() -> None:
    with LoopbackServer("Hello.") as elsewhere:
        to = f"location: {elsewhere.url()}/v1beta/models/some-model:generateContent"
        with RawServer(write_answer(307, b"", to)) as server:
            async with make_raw_model("gemini", server) as model:
                with pytest.raises(ModelError):
                    await model.generate(HELLO)
    assert elsewhere.requests == []


async def test_an_error_within_a_stream_has_its_status_and_the_seconds_to_wait() -> None:
    start = {"candidates": [{"content": {"role": "model", "parts": [{"text": "So"}]}, "index": 0}]}
    details = [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "31s"}]
    busy = {"code": 429, "message": "Too many.", "status": "RESOURCE_EXHAUSTED", "details": details}
    broken = {"code": 500, "message": "An internal error has occurred.", "status": "INTERNAL"}
    with LoopbackServer([Reply([start, {"error": busy}]), Reply([start, {"error": broken}])]) as server:
        async with create_model("gemini", server) as model:
            with pytest.raises(RateLimitError) as caught:
                await read_stream(model, HELLO)
            assert (caught.value.status, caught.value.retry_after) == (429, 31)
            with pytest.raises(OverloadedError) as raised:
                await read_stream(model, HELLO)
            assert (raised.value.status, raised.value.retryable) == (500, True)


async def test_a_bare_error_within_a_stream_is_an_error() -> None:
    bare = (
        b'[{\n  "error": {\n    "code": 503,\n    "message": "overloaded",\n    "status": "UNAVAILABLE"\n  }\n}]\n'
    )
    start = {"candidates": [{"content": {"role": "model", "parts": [{"text": "So"}]}, "index": 0}]}
    with LoopbackServer([Reply([start, bare])]) as server:
        async with create_model("gemini", server) as model, model.stream(HELLO) as stream:
            with pytest.raises(OverloadedError):
                await stream.finish()
    assert stream.message.text == "So"
