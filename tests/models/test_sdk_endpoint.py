"""Endpoints for SDKs that Stainless generates: clients get the body as JSON text, or as an object to read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import anthropic
import openai
import pytest
from anthropic.lib.vertex import AsyncAnthropicVertex

from agentkit.provider_kit import EndpointBase, OutgoingRequest
from agentkit_anthropic import AnthropicEndpoint
from agentkit_openai import OpenAIChatEndpoint
from tests.cases import each_case

BODY = {"model": "m"}


class _Response:
    """Response that records its closing."""

    def __init__(self) -> None:
        self.is_closed = False

    async def aread(self) -> bytes:
        return b"{}"

    async def aclose(self) -> None:
        self.is_closed = True


def _record_calls(client: Any, response: _Response) -> list[dict[str, Any]]:
    """Replaces the `post` method of a client. Returns the list of the keyword arguments that `post` gets."""
    calls: list[dict[str, Any]] = []

    async def post(path: str, **options: Any) -> _Response:
        calls.append({"path": path, **options})
        return response

    client.post = post
    return calls


def _create_azure_client() -> Any:
    return openai.AsyncAzureOpenAI(api_key="k", azure_endpoint="http://localhost", api_version="1")


CLIENTS: dict[str, tuple[type[EndpointBase], Callable[[], Any], dict[str, Any]]] = {
    "openai": (OpenAIChatEndpoint, lambda: openai.AsyncOpenAI(api_key="k"), {"content": b'{"model":"m"}'}),
    "azure": (OpenAIChatEndpoint, _create_azure_client, {"body": BODY}),
    "anthropic": (AnthropicEndpoint, lambda: anthropic.AsyncAnthropic(api_key="k"), {"content": b'{"model":"m"}'}),
    "vertex": (
        AnthropicEndpoint,
        lambda: AsyncAnthropicVertex(region="r", project_id="p", access_token="t"),
        {"body": BODY},
    ),
}
"""Endpoint, client and expected body by case."""


@pytest.mark.anyio
@each_case("case", [*CLIENTS])
async def test_only_clients_that_read_the_body_get_an_object(case: str) -> None:
    endpoint_class, create_client, expected = CLIENTS[case]
    client, response = create_client(), _Response()
    calls = _record_calls(client, response)
    assert await endpoint_class(client).send(OutgoingRequest("/x", dict(BODY), stream=False)) == b"{}"
    (call,) = calls
    assert {name: call[name] for name in ("content", "body") if name in call} == expected
    assert (call["path"], call["stream"], call["stream_cls"]) == ("/x", False, None)
    assert response.is_closed


async def _pass_on(request: Any, call_next: Callable[[Any], Any]) -> Any:
    return await call_next(request)


@pytest.mark.anyio
async def test_middleware_of_a_client_gets_an_object() -> None:
    client = anthropic.AsyncAnthropic(api_key="k", middleware=[cast("Any", _pass_on)])
    calls = _record_calls(client, _Response())
    await AnthropicEndpoint(client).send(OutgoingRequest("/x", dict(BODY), stream=False))
    assert calls[0]["body"] == BODY


@pytest.mark.anyio
async def test_values_that_are_not_json_are_serialized_by_the_sdk() -> None:
    client = openai.AsyncOpenAI(api_key="k")
    calls = _record_calls(client, _Response())
    body = {"value": object()}
    await OpenAIChatEndpoint(client).send(OutgoingRequest("/x", body, stream=False))
    assert calls[0]["body"] == body
