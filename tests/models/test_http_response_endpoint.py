"""`HttpResponseEndpoint`: sending and streaming through `open_response`, which each subclass must have."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Any, Self

import httpx2
import pytest

from agentkit.provider_kit import EndpointBase, Failure, HttpResponseEndpoint, IncomingStream, OutgoingRequest

OUTGOING = OutgoingRequest("/sing", {"song": "la"}, stream=False)


class _Incomplete(HttpResponseEndpoint):
    """Endpoint without `open_response`."""

    extra = "bird"

    @classmethod
    def open(cls, **options: Any) -> Self:
        return cls(None)

    def build_request(
        self, model: str, request: Mapping[str, Any], options: Mapping[str, Any], *, stream: bool
    ) -> OutgoingRequest:
        return OutgoingRequest("/sing", dict(request), stream)

    def failure_from_exception(self, error: BaseException) -> Failure | None:
        return None

    async def aclose(self) -> None:
        pass


class _BirdEndpoint(_Incomplete):
    """Endpoint whose responses contain the path of the request, and which records their closing."""

    request_id_headers = ("x-bird-id", "x-request-id")
    is_closed = False

    @asynccontextmanager
    async def open_response(self, outgoing: OutgoingRequest) -> AsyncGenerator[Any]:
        yield httpx2.Response(200, text=outgoing.path, headers={"x-bird-id": "b7", "x-request-id": "r1"})
        self.is_closed = True


def test_subclasses_must_implement_sending() -> None:
    assert {"send", "stream"} <= EndpointBase.__abstractmethods__
    with pytest.raises(TypeError, match="open_response"):
        _Incomplete(None)  # type: ignore[abstract]  # pyright: ignore[reportAbstractUsage]


@pytest.mark.anyio
async def test_send_returns_the_body_and_closes_the_response() -> None:
    endpoint = _BirdEndpoint(None)
    assert await endpoint.send(OUTGOING) == b"/sing"
    assert endpoint.is_closed


@pytest.mark.anyio
async def test_stream_yields_the_chunks_with_the_id_of_the_call_and_closes_the_response() -> None:
    endpoint = _BirdEndpoint(None)
    async with endpoint.stream(OUTGOING) as chunks:
        assert isinstance(chunks, IncomingStream)
        assert chunks.request_id == "b7"
        assert [chunk async for chunk in chunks] == [b"/sing"]
        assert not endpoint.is_closed
    assert endpoint.is_closed
