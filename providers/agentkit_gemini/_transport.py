"""`Sender`: how a finished body goes out through google-genai's own client, and the answer comes back unread."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, AsyncIterator
from copy import deepcopy
from typing import Any, Self, cast

from agentkit.provider_kit import IncomingStream, OutgoingRequest, native_to_json

__all__ = ["Sender"]


class Sender:
    """The SDK's API client for one call: what the SDK's methods made of their arguments makes way for the body.

    `AsyncModels` finds the path and asks its API client for an answer. This stands in that client's place and has
    it build, sign, send and try again as ever, but with a body that is finished and an answer that nobody reads.
    """

    def __init__(self, client: Any, outgoing: OutgoingRequest) -> None:
        self._client = client
        self._outgoing = outgoing
        self._answer: Any = None

    @classmethod
    def of(cls, models: Any, outgoing: OutgoingRequest) -> Self | None:
        """For the models of a client of google-genai's; None for anything that only looks like them."""
        from google.genai.models import AsyncModels

        client = getattr(models, "_api_client", None)
        if type(models) is not AsyncModels or not all(hasattr(client, name) for name in _USED):
            return None
        return cls(client, outgoing)

    @property
    def models(self) -> Any:
        """The SDK's methods, over this."""
        from google.genai.models import AsyncModels

        return AsyncModels(cast("Any", self))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    async def async_request(self, method: str, path: str, _: object, options: Any = None) -> Any:
        """The whole answer, as its text."""
        from google.genai.types import HttpResponse

        answer = await self._answered(method, path, options, stream=False)
        return HttpResponse(headers=answer.headers, body=answer.response_stream[0])

    async def async_request_streamed(self, method: str, path: str, _: object, options: Any = None) -> Any:
        """The answer is kept; what the SDK reads of it is nothing."""
        answer = await self._answered(method, path, options, stream=True)
        self._answer = answer.response_stream
        return _nothing()

    async def _answered(self, method: str, path: str, options: Any, *, stream: bool) -> Any:
        request = self._client._build_request(method, path, self._body(options), options)
        request.data = OutgoingRequest("", request.data, stream).payload(open=False).get("content", request.data)
        return await self._client._async_request(request, options, stream=stream)

    def _body(self, options: Any) -> dict[str, Any]:
        """The body; the SDK writes an `extra_body` of the caller's into it, to its depths."""
        body = dict(self._outgoing.body)
        given = (options, getattr(self._client, "_http_options", None))
        if any(getattr(found, "extra_body", None) for found in given):
            contents = body.pop("contents")
            body = {"contents": contents, **deepcopy(body)}
        return body

    def received(self) -> IncomingStream:
        """The bytes of an event stream, after `async_request_streamed`."""
        answer = self._answer
        pieces = answer.aiter_bytes() if hasattr(answer, "aiter_bytes") else answer.content.iter_any()
        return IncomingStream(_with_bare_errors(pieces), answer.headers)

    async def aclose(self) -> None:
        """Close the connection of an answer that was kept."""
        answer, self._answer = self._answer, None
        if hasattr(answer, "aclose"):
            await answer.aclose()  # httpx2
        elif answer is not None:
            answer.close()  # aiohttp


_USED = ("_build_request", "_async_request")
_LONGEST = 1 << 24  # bytes of an error
_BARE = re.compile(rb"\n[{\[]")


async def _nothing() -> AsyncGenerator[Any]:
    return
    yield


async def _with_bare_errors(pieces: AsyncIterator[bytes]) -> AsyncIterator[Any]:
    """The bytes of an event stream; an error that comes as JSON in lines of its own, as the SDK knows them, as one
    event. What begins so is left to the reader.
    """
    bare: list[bytes] = []
    size = 0
    before = b" "  # the last byte of the piece before
    async for piece in pieces:
        if bare:
            bare.append(piece)
            size += len(piece)
            if size > _LONGEST:  # no error: it is left to the reader
                yield b"".join(bare)
                bare, size = [], 0
        elif begins := _BARE.search(before + piece):
            at = begins.end() - 2  # `before` is one byte
            yield piece[:at]
            bare, size = [piece[at:]], len(piece) - at
        else:
            before = piece[-1:] or before
            yield piece
    if bare:
        found = native_to_json(b"".join(bare))
        yield cast("list[Any]", found)[0] if isinstance(found, list) and found else found
