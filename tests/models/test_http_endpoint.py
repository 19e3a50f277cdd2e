"""An endpoint for an API without an SDK: requests, replies, and failures over HTTP."""

import json
from typing import Any, ClassVar

import anyio
import httpx2
import pytest

from agentkit import AuthError, OptionError
from agentkit.provider_kit import HttpEndpoint, native_to_json
from tests.cases import each_case


class BirdEndpoint(HttpEndpoint):
    """Endpoint of a fictional API."""

    provider: ClassVar[str] = "bird"
    base_url: ClassVar[str] = "https://bird.example/v1"
    path: ClassVar[str] = "/sing"
    key_variable: ClassVar[str] = "BIRD_API_KEY"


def open_endpoint(answer: httpx2.Response, **options: Any) -> tuple[BirdEndpoint, list[httpx2.Request]]:
    """Returns an endpoint whose server gives one answer, and the requests that the server receives."""
    received: list[httpx2.Request] = []

    def handle(request: httpx2.Request) -> httpx2.Response:
        received.append(request)
        return answer

    return BirdEndpoint.open(transport=httpx2.MockTransport(handle), **options), received


@pytest.mark.anyio
async def test_a_request_is_sent_with_its_key_and_its_model() -> None:
    endpoint, received = open_endpoint(httpx2.Response(200, json={"text": "Tweet."}), api_key="sk-bird")
    outgoing = endpoint.build_request("b-1", {"turns": []}, {"volume": 3, "timeout": 5.0}, stream=False)
    assert native_to_json(await endpoint.send(outgoing)) == {"text": "Tweet."}
    await endpoint.aclose()
    (request,) = received
    assert (request.method, str(request.url)) == ("POST", "https://bird.example/v1/sing")
    assert request.headers["authorization"] == "Bearer sk-bird"
    assert json.loads(request.content) == {"model": "b-1", "stream": False, "turns": [], "volume": 3}
    assert request.extensions["timeout"]["read"] == 5.0


@pytest.mark.anyio
async def test_a_stream_brings_its_request_id() -> None:
    answer = httpx2.Response(200, content=b"data: {}\n\n", headers={"x-request-id": "r1"})
    endpoint, _ = open_endpoint(answer, api_key="sk-bird")
    async with endpoint.stream(endpoint.build_request("b-1", {}, {}, stream=True)) as chunks:
        assert getattr(chunks, "request_id") == "r1"  # noqa: B009
        assert b"".join([chunk async for chunk in chunks]) == b"data: {}\n\n"


@pytest.mark.anyio
@each_case(
    ("answer", "message", "status"),
    {
        "a message": (httpx2.Response(404, json={"message": "no such bird"}), "no such bird", 404),
        "an error object": (httpx2.Response(400, json={"error": {"message": "too loud"}}), "too loud", 400),
        "no JSON": (httpx2.Response(502, text="<html>Bad gateway</html>"), "<html>Bad gateway</html>", 502),
        "no body": (httpx2.Response(503), "Service Unavailable", 503),
    },
)
@each_case("stream", [False, True])
async def test_an_error_status_becomes_a_failure(
    answer: httpx2.Response, message: str, status: int, stream: bool
) -> None:
    answer.headers["retry-after"] = "7"
    endpoint, _ = open_endpoint(answer, api_key="sk-bird")
    outgoing = endpoint.build_request("b-1", {}, {}, stream=stream)

    async def call() -> None:
        if not stream:
            await endpoint.send(outgoing)
            return
        async with endpoint.stream(outgoing):
            pass

    with pytest.raises(httpx2.HTTPStatusError) as caught:
        await call()
    failure = endpoint.failure_from_exception(caught.value)
    assert failure is not None
    assert (failure.message, failure.status, failure.retry_after) == (message, status, 7.0)


def test_the_text_of_a_long_error_ends_before_a_key_that_does_not_fit() -> None:
    endpoint, _ = open_endpoint(httpx2.Response(200), api_key="sk-bird")
    failure = endpoint.failure_from_response(httpx2.Response(500, text="Wrong. " * 70 + "Key: sk-bird-1234567"))
    assert failure.message == "Wrong. " * 70 + "Key:"
    anyio.run(endpoint.aclose)


def test_a_broken_connection_is_a_network_failure() -> None:
    endpoint, _ = open_endpoint(httpx2.Response(200), api_key="sk-bird")
    failure = endpoint.failure_from_exception(httpx2.ConnectError("refused"))
    assert failure is not None
    assert failure.network
    assert endpoint.failure_from_exception(ValueError("x")) is None
    anyio.run(endpoint.aclose)


def test_the_key_comes_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BIRD_API_KEY", "sk-environment")
    assert BirdEndpoint.open().client.headers["authorization"] == "Bearer sk-environment"
    monkeypatch.delenv("BIRD_API_KEY")
    with pytest.raises(AuthError, match="neither api_key nor BIRD_API_KEY is set"):
        BirdEndpoint.open()


def test_a_parameter_cannot_replace_a_key_of_the_request() -> None:
    endpoint, _ = open_endpoint(httpx2.Response(200), api_key="sk-bird")
    with pytest.raises(OptionError):
        endpoint.build_request("b-1", {"turns": [1]}, {"turns": [2]}, stream=False)
