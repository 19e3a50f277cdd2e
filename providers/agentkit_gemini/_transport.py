"""`Sender` sends a finished request body through google-genai's client, and returns the reply unparsed."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, AsyncIterator
from copy import deepcopy
from typing import Any, Self, cast

from agentkit.provider_kit import IncomingStream, OutgoingRequest, dump_body, find_request_id, native_to_json

__all__ = ["Sender"]


class Sender:
    """Substitute for the SDK's API client in one model call. The substitute sends a finished request body.

    The SDK's `AsyncModels` chooses the URL path and calls the substitute as its API client. The substitute passes
    the finished body to the real API client, which builds, signs, sends and retries the request. The SDK does not
    parse the reply.
    """

    def __init__(self, client: Any, outgoing: OutgoingRequest) -> None:
        self._client = client
        self._outgoing = outgoing
        self._response: Any = None

    @classmethod
    def create(cls, models: Any, outgoing: OutgoingRequest) -> Self | None:
        """Returns a sender if `models` is the SDK's `client.aio.models`.

        Returns None for any other object, such as a test double.
        """
        from google.genai.models import AsyncModels

        client = getattr(models, "_api_client", None)
        if type(models) is not AsyncModels or not all(hasattr(client, name) for name in _USED_METHODS):
            return None
        return cls(client, outgoing)

    @property
    def models(self) -> Any:
        """An `AsyncModels` of the SDK whose API client is this sender."""
        from google.genai.models import AsyncModels

        return AsyncModels(cast("Any", self))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    async def async_request(self, method: str, path: str, _: object, options: Any = None) -> Any:
        """Sends the body. Returns the SDK's response object, which contains the complete reply as text."""
        from google.genai.types import HttpResponse

        response = await self._send(method, path, options, stream=False)
        return HttpResponse(headers=response.headers, body=response.response_stream[0])

    async def async_request_streamed(self, method: str, path: str, _: object, options: Any = None) -> Any:
        """Sends the body, and stores the response for `received()`. Returns an empty stream to the SDK."""
        response = await self._send(method, path, options, stream=True)
        self._response = response.response_stream
        return _empty_stream()

    async def _send(self, method: str, path: str, options: Any, *, stream: bool) -> Any:
        request = self._client._build_request(method, path, self._build_body(options), options)
        request.data = dump_body(request.data) or request.data
        return await self._client._async_request(request, options, stream=stream)

    def _build_body(self, options: Any) -> dict[str, Any]:
        """Returns a shallow copy of the request body.

        If the HTTP options have an `extra_body`, all fields except `contents` are deep copies, because the SDK
        merges the `extra_body` into these fields.
        """
        body = dict(self._outgoing.body)
        http_options = (options, getattr(self._client, "_http_options", None))
        if any(getattr(item, "extra_body", None) for item in http_options):
            contents = body.pop("contents")
            body = {"contents": contents, **deepcopy(body)}
        return body

    def received(self) -> IncomingStream:
        """Returns an iterator over the bytes of a stream, and over errors that are not inside an event.

        Call `async_request_streamed` first.
        """
        response = self._response
        pieces = response.aiter_bytes() if hasattr(response, "aiter_bytes") else response.content.iter_any()
        return IncomingStream(_parse_bare_errors(pieces), find_request_id(response.headers))

    async def aclose(self) -> None:
        """Closes the response of a stream, if there is one."""
        response, self._response = self._response, None
        if hasattr(response, "aclose"):
            await response.aclose()  # the response is from httpx2
        elif response is not None:
            response.close()  # the response is from aiohttp


_USED_METHODS = ("_build_request", "_async_request")
_MAX_ERROR_SIZE = 1 << 24  # maximum number of bytes that are collected to parse an error
_BARE_JSON = re.compile(rb"\n[{\[]")


async def _empty_stream() -> AsyncGenerator[Any]:
    return
    yield


async def _parse_bare_errors(pieces: AsyncIterator[bytes]) -> AsyncIterator[Any]:
    """Yields the bytes of an event stream, and yields bare JSON in the stream as one parsed value.

    Bare JSON is JSON outside an event. The API can send an error in this form, and the SDK also accepts such
    errors. More than 16 MiB of bare JSON cannot be an error, and is yielded as bytes.
    """
    bare: list[bytes] = []
    size = 0
    last_byte = b" "  # last byte of the previous piece
    async for piece in pieces:
        if bare:
            bare.append(piece)
            size += len(piece)
            if size > _MAX_ERROR_SIZE:
                yield b"".join(bare)
                bare, size = [], 0
        elif match := _BARE_JSON.search(last_byte + piece):
            start = match.end() - 2  # index of the bracket in `piece`, because the match includes `last_byte`
            yield piece[:start]
            bare, size = [piece[start:]], len(piece) - start
        else:
            last_byte = piece[-1:] or last_byte
            yield piece
    if bare:
        value = native_to_json(b"".join(bare))
        yield cast("list[Any]", value)[0] if isinstance(value, list) and value else value
