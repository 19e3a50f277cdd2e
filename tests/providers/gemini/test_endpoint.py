"""Calls of google-genai with a finished body: the request that is sent, and the bytes of the reply."""

from typing import Any, Final

import pytest

from agentkit import ChatModel, FinishReason
from agentkit.testing import LoopbackError, LoopbackServer, Reply
from tests.providers import user

pytestmark = pytest.mark.anyio

HELLO: Final = [user("Is anybody there?")]
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


async def _both(client: Any) -> list[Any]:
    model = ChatModel("gemini", "gemini-3-pro", client=client)
    whole = await model.generate(HELLO)
    async with model.stream(HELLO) as stream:
        streamed = await stream.finish()
    await _close(client)
    return [whole, streamed]


REPLY: Final = _event({"text": "Look."}, NEW, finishReason="STOP")


async def test_the_sdk_does_not_parse_a_reply_through_the_callers_client() -> None:
    with LoopbackServer([REPLY, Reply([REPLY])]) as server:
        whole, streamed = await _both(_client(server, aiohttp=False))
    assert whole == streamed
    assert whole.metadata["reply"]["unread_parts"] == UNREAD
    assert whole.finish_reason is FinishReason.STOP


@pytest.mark.filterwarnings("ignore:Inheritance class:DeprecationWarning")  # the SDK's own session
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_the_sdk_does_not_parse_a_reply_through_aiohttp() -> None:
    with LoopbackServer([REPLY, Reply([REPLY])]) as server:
        whole, streamed = await _both(_client(server, aiohttp=True))
    assert whole == streamed
    assert whole.metadata["reply"]["unread_parts"] == UNREAD


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
        whole = await model.generate(HELLO, parameters={"http_options": {"extra_body": {"labels": {"a": "b"}}}})
        async with model.stream(HELLO) as stream:
            streamed = await stream.finish()
        await _close(client)
    assert whole.text == streamed.text == "Look."
    assert {"generate_content", "generate_content_stream"} <= set(models.called)
    assert [request.body["contents"] for request in server.requests] == [server.requests[0].body["contents"]] * 2
    assert server.requests[0].body["contents"][0]["parts"] == [{"text": "Is anybody there?"}]
    assert server.requests[0].body["labels"] == {"a": "b"}


@pytest.mark.parametrize("whose", ["client", "call"])
async def test_an_extra_body_of_the_caller_is_sent(whose: str) -> None:
    extra = {"labels": {"a": "b"}, "generationConfig": {"thinkingConfig": {"includeThoughts": True}}}
    thinking = {"thinking_budget": 7}
    given: dict[str, Any] = {"thinking_config": thinking}
    if whose == "call":
        given["http_options"] = {"extra_body": extra}
    with LoopbackServer("Hello.") as server:
        client = _client(server, aiohttp=False, **({"extra_body": extra} if whose == "client" else {}))
        model = ChatModel("gemini", "gemini-3-pro", client=client)
        await model.generate(HELLO, parameters=given)
        async with model.stream(HELLO, parameters=given) as stream:
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
        whole, streamed = await _both(client)
    assert whole == streamed
    assert whole.metadata["reply"]["unread_parts"] == UNREAD
    for request in server.requests:
        assert "/projects/p/locations/europe-west1/publishers/google/models/gemini-3-pro:" in request.path
        assert request.headers["authorization"] == "Bearer token"
        assert request.body["contents"][0]["parts"] == [{"text": "Is anybody there?"}]
