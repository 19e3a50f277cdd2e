"""`HttpResponseEndpoint`, the base class of endpoints whose client returns the HTTP response of a call."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace
from typing import Any, ClassVar, cast

from agentkit.json_values import parse_json
from agentkit.models.endpoint import EndpointBase, IncomingStream, OutgoingRequest
from agentkit.models.response_headers import REQUEST_ID_HEADERS, find_request_id, parse_retry_after
from agentkit.replies.error_bodies import Failure, cut_text, parse_failure

__all__ = ["HttpResponseEndpoint"]

_MAX_ERROR_TEXT = 500
"""Maximum length in characters of an error message that is copied from the text of a response."""


class HttpResponseEndpoint(EndpointBase):
    """Base class of endpoints whose client returns the HTTP response of a call.

    A subclass implements `open_response`. The methods `send` and `stream` read the response. The response is an
    object of httpx or httpx2.
    """

    request_id_headers: ClassVar[tuple[str, ...]] = REQUEST_ID_HEADERS
    """Names of response headers with the id of a model call. The first header that is present is used."""

    @abstractmethod
    def open_response(self, outgoing: OutgoingRequest) -> AbstractAsyncContextManager[Any]:
        """Returns a context manager that sends the request, yields the HTTP response, and closes the response."""

    def read_chunks(self, response: Any) -> AsyncIterator[Any]:
        """Returns an iterator over the bytes of a streamed reply, or over its events."""
        return cast("AsyncIterator[Any]", response.aiter_bytes())

    async def send(self, outgoing: OutgoingRequest) -> bytes:
        """Sends the request and returns the body of the response."""
        async with self.open_response(outgoing) as response:
            return bytes(await response.aread())

    @asynccontextmanager
    async def stream(self, outgoing: OutgoingRequest) -> AsyncGenerator[AsyncIterator[Any]]:
        """Sends the request and yields an `IncomingStream` over the bytes or events of the response."""
        async with self.open_response(outgoing) as response:
            request_id = find_request_id(response.headers, self.request_id_headers)
            yield IncomingStream(self.read_chunks(response), request_id)

    def failure_from_response(self, response: Any) -> Failure:
        """Returns the failure for an HTTP response with an error status. The caller has read the complete body.

        If the API sends the error code in a header, override this method, and replace `code` in the failure that
        `super().failure_from_response(response)` returns.
        """
        status, headers = response.status_code, response.headers
        text = response.text.removeprefix("\ufeff").strip()
        try:
            failure = parse_failure(parse_json(text), status) or Failure("")
        except (ValueError, RecursionError):
            failure = Failure("")
        return replace(
            failure,
            message=failure.message or cut_text(text, _MAX_ERROR_TEXT) or response.reason_phrase,
            status=status,
            request_id=find_request_id(headers, self.request_id_headers) or failure.request_id,
            retry_after=parse_retry_after(headers),
        )
