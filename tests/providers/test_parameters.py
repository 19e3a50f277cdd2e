"""Parameters of calls: limits, native parameters, headers and timeouts."""

from functools import partial
from typing import Any

import anyio
import pytest

from agentkit import (
    ChatModel,
    NetworkError,
    OptionError,
)
from agentkit.testing import LoopbackServer
from tests.cases import each_case
from tests.providers import PROVIDERS
from tests.providers.calling import HELLO, StallingServer, create_model, make_raw_model, read_stream

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("provider", PROVIDERS)
async def test_max_tokens_has_the_name_of_each_api(provider: str) -> None:
    with LoopbackServer("Short.") as server:
        async with create_model(provider, server, max_tokens=7) as model:
            await model.generate(HELLO)
            await model.generate(HELLO, max_tokens=9)
    limits = [_limit(request.body) for request in server.requests]
    assert limits == [7, 9]


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
async def test_a_native_parameter_has_its_place_in_each_body(provider: str) -> None:
    with LoopbackServer("Warm.") as server:
        parameters = {"temperature": 0.5, "top_p": 0.9, "seed": 3}
        async with create_model(provider, server, parameters=parameters) as model:
            await model.generate(HELLO, parameters={"temperature": 0.25, "seed": None})
    body = server.requests[0].body
    place = body.get("options") or body.get("parameters") or body.get("generationConfig") or body
    assert place["temperature"] == 0.25
    assert "seed" not in place
    assert place.get("top_p", place.get("topP")) == 0.9


@each_case("stream", [False, True])
@pytest.mark.parametrize("provider", sorted(set(PROVIDERS) - {"gemini"}))
async def test_headers_and_a_timeout_are_not_in_the_body(provider: str, stream: bool) -> None:
    with LoopbackServer("Hello.") as server:
        async with create_model(
            provider, server, parameters={"extra_headers": {"x-trace": "7"}, "timeout": 30}
        ) as model:
            await (read_stream(model, HELLO) if stream else model.generate(HELLO))
    request = server.requests[0]
    assert request.headers["x-trace"] == "7"
    assert request.streamed is stream
    assert "timeout" not in request.raw.decode()


@pytest.mark.slow
@each_case("head", [b"", b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n"])
@pytest.mark.parametrize("provider", PROVIDERS)
async def test_a_silent_server_is_an_error_after_the_timeout(provider: str, head: bytes) -> None:
    with StallingServer(head) as server, anyio.fail_after(15):
        async with make_raw_model(provider, server, timeout=0.1) as model:
            for call in (model.generate, partial(read_stream, model)):
                with pytest.raises(NetworkError) as error:
                    await call(HELLO)
                assert error.value.retryable
    assert len(server.requests) == 2


@pytest.mark.parametrize("provider", PROVIDERS)
async def test_a_call_can_have_another_timeout(provider: str) -> None:
    with StallingServer() as server, anyio.fail_after(15):
        async with make_raw_model(provider, server, timeout=60) as model:
            with pytest.raises(NetworkError):
                await model.generate(HELLO, parameters={"timeout": 0.1})


@each_case("seconds", [0, -1, True, "10", float("inf"), float("nan")])
def test_a_timeout_that_is_not_a_positive_number_is_refused(seconds: Any) -> None:
    with pytest.raises(OptionError, match="timeout"):
        ChatModel("openai", "some-model", timeout=seconds)


@each_case("stream", [False, True])
@pytest.mark.parametrize("provider", PROVIDERS)
async def test_a_parameter_that_is_not_json_is_refused(provider: str, stream: bool) -> None:
    with LoopbackServer("Hello.") as server:
        async with create_model(provider, server) as model:
            with pytest.raises(OptionError, match="parameters"):
                await (
                    read_stream(model, HELLO, parameters={"temperature": object()})
                    if stream
                    else model.generate(HELLO, parameters={"temperature": object()})
                )
    assert server.requests == []
