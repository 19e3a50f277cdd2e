"""Endpoint for model calls through DashScope's SDK."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any, Final, Self

from agentkit.provider_kit import (
    AuthError,
    EndpointBase,
    Failure,
    IncomingStream,
    MissingExtraError,
    OptionError,
    OutgoingRequest,
    as_list,
    as_network_failure,
    as_object,
    find_request_id,
    is_transport_error,
    merge_parameters,
    native_to_json,
    parse_failure,
    parse_retry_after,
    split_http_options,
)
from agentkit_dashscope._url_paths import UrlPaths

__all__ = ["DashScopeEndpoint"]

_EVENT_END: Final = re.compile(rb"\r?\n\r?\n")

_MAX_ERROR_BYTES: Final = 1 << 20
"""Maximum size of an error event in bytes. A larger first event is not checked for an error."""


class DashScopeEndpoint(EndpointBase):
    """Endpoint for DashScope's native API, through `dashscope.AsyncClient`.

    The endpoint sends the finished JSON through the transport of the SDK's `v2` client. The endpoint does not use
    the SDK's classic classes. The classic classes return errors instead of raising exceptions, and upload a local
    file if a text is the path of the file.

    On asyncio, the transport retries a failed call unless the call is streamed. On trio, the transport never
    retries a call.

    A request whose message contents are strings is first sent to the text path. If the API reports that this path
    is wrong for the model, the endpoint converts the request and sends it to the multimodal path. Later requests
    to the model are sent only to the multimodal path. A request with lists of parts is sent to the multimodal path
    first, and after such an error to the text path.

    All parameters of a model call are sent in the field `parameters`, except `extra_headers`, `extra_query` and
    `timeout`.
    """

    extra = "dashscope"
    required_attributes = ("transport",)

    def __init__(self, client: Any) -> None:
        super().__init__(client)
        self._client_without_retries: Any = None
        self._url_paths = UrlPaths()

    @classmethod
    def open(cls, **options: Any) -> Self:
        """Creates an endpoint with `dashscope.AsyncClient(**options)`.

        `api_key` defaults to the environment variable DASHSCOPE_API_KEY.

        Raises:
            MissingExtraError: The SDK is not installed.
            AuthError: There is no API key.
        """
        try:
            import dashscope
        except ImportError:
            raise MissingExtraError("dashscope", cls.extra, "Calling DashScope") from None
        client = dashscope.AsyncClient(**options)
        if not client.config.api_key:
            raise AuthError(
                "dashscope",
                "no API key is set. Pass client_options={'api_key': …} or "
                "set the environment variable DASHSCOPE_API_KEY",
            )
        return cls(client)

    def build_request(
        self, model: str, request: Mapping[str, Any], options: Mapping[str, Any], *, stream: bool
    ) -> OutgoingRequest:
        """Returns the HTTP request, with the messages in the field `input` of the body.

        For a stream, `incremental_output` is True by default.

        Raises:
            OptionError: A parameter has the name of a key that the request already sets.
        """
        parameters, http_options = split_http_options(options)
        parameters = merge_parameters(
            {name: item for name, item in request.items() if name != "messages"}, parameters
        )
        if clash := sorted(parameters.keys() & {"messages", "model", "input"}):
            raise OptionError(f"parameters.{clash[0]}", "already set by the request", "Remove the parameter.")
        if stream:
            parameters = {"incremental_output": True, **parameters}
        path, messages = self._url_paths.choose(model, request["messages"])
        body = {"model": model, "input": {"messages": messages}, "parameters": parameters}
        if any(map(_has_stored_file, request["messages"])):
            # The API accepts `oss://` URLs only with this header (Model Studio docs: temporary URLs).
            headers: dict[str, str] = http_options.get("headers") or {}
            http_options["headers"] = {"X-DashScope-OssResourceResolve": "enable", **headers}
        return OutgoingRequest(path, body, stream, http_options)

    async def send(self, outgoing: OutgoingRequest) -> Any:
        """Sends the request, and returns the body of the reply.

        If the API reports that the path is wrong, the endpoint sends the request to the other path.
        """
        try:
            return await self._post(outgoing)
        except Exception as error:
            rerouted = self._url_paths.reroute(outgoing, self.failure_from_exception(error))
            if rerouted is None:
                raise
        return await self._post(rerouted)

    async def _post(self, outgoing: OutgoingRequest) -> Any:
        from dashscope.v2.errors import check_response

        response = await self._transport.request("POST", outgoing.path, json=outgoing.body, **outgoing.options)
        check_response(response)
        response.raise_for_status()  # `check_response` does not raise an error for a redirect
        return response.content

    @asynccontextmanager
    async def stream(self, outgoing: OutgoingRequest) -> AsyncGenerator[AsyncIterator[bytes]]:
        """Sends a streamed request, and yields an iterator over the bytes of the event stream.

        If the first event reports that the path is wrong, the endpoint sends the request to the other path.
        """
        response, first_event, pieces = await self._open_first_event(outgoing)
        failure = self.failure_from_reply(_parse_event(first_event))
        rerouted = failure and self._url_paths.reroute(outgoing, failure)
        if rerouted:
            async for _ in pieces:  # the connection can be reused only after the response is read completely
                pass
            await response.aclose()
            response, first_event, pieces = await self._open_first_event(rerouted)
        try:
            yield IncomingStream(_prepend(first_event, pieces), find_request_id(response.headers))
        finally:
            await response.aclose()

    async def _open_first_event(self, outgoing: OutgoingRequest) -> tuple[Any, bytes, AsyncIterator[bytes]]:
        """Opens a stream and reads its first event.

        Returns the response, the bytes read, and an iterator over the remaining bytes.
        """
        import httpx

        try:
            response = await self._open_stream(outgoing)
        except Exception as error:
            rerouted = self._url_paths.reroute(outgoing, self.failure_from_exception(error))
            if rerouted is None:
                raise
            response = await self._open_stream(rerouted)
        pieces: AsyncIterator[bytes] = response.aiter_bytes()
        first_pieces, size, tail = list[bytes](), 0, b""
        try:
            async for piece in pieces:
                first_pieces.append(piece)
                size += len(piece)
                if _EVENT_END.search(tail + piece) or size > _MAX_ERROR_BYTES:
                    break
                tail = (tail + piece)[-3:]
        except httpx.RequestError as error:
            pieces = _raise_later(error)
        except BaseException:
            await response.aclose()
            raise
        return response, b"".join(first_pieces), pieces

    async def _open_stream(self, outgoing: OutgoingRequest) -> Any:
        stream_headers = {"X-DashScope-SSE": "enable", "accept": "text/event-stream"}
        headers: dict[str, str] = {**stream_headers, **(outgoing.options.get("headers") or {})}
        options: dict[str, Any] = {**outgoing.options, "headers": headers}
        response = await self.client.transport.open_stream("POST", outgoing.path, json=outgoing.body, **options)
        if not response.is_success:
            await response.aclose()
            response.raise_for_status()
        return response

    @property
    def _transport(self) -> Any:
        """HTTP transport of the SDK, without retries on trio, because the SDK's retries use `asyncio.sleep`."""
        if _is_on_asyncio():
            return self.client.transport
        if self._client_without_retries is None:
            self._client_without_retries = self.client.with_options(max_retries=0)
        return self._client_without_retries.transport

    def failure_from_exception(self, error: BaseException) -> Failure | None:
        """Returns a `Failure` for an error of the SDK or its HTTP client, or None for any other error."""
        import httpx
        from dashscope.v2 import errors

        if isinstance(error, errors.APIConnectionError):
            return Failure(error.message, network=True)
        if isinstance(error, errors.DashScopeError):
            failure = parse_failure(error.body, error.status_code) or Failure(error.message)
            headers = {name.lower(): item for name, item in (error.headers or {}).items()}
            return replace(
                failure,
                status=error.status_code,
                code=failure.code or error.code,
                request_id=error.request_id or failure.request_id or find_request_id(headers),
                retry_after=parse_retry_after(headers),
            )
        # The SDK uses the code of an error as a dict key. This raises a TypeError if the code is a list or a dict.
        if isinstance(error, TypeError) and "unhashable" in str(error):
            return Failure("the error reply has a code that is not a string")
        if isinstance(error, httpx.HTTPStatusError):
            return Failure(str(error).partition("\n")[0], error.response.status_code)
        return as_network_failure(error) if is_transport_error(error) else None

    async def aclose(self) -> None:
        """Closes the SDK's client."""
        await self.client.aclose()


def _has_stored_file(message: Mapping[str, Any]) -> bool:
    """Returns True if a message contains the URL of a file in DashScope's storage (`oss://`)."""
    items = [item for part in as_list(message.get("content")) for item in as_object(part).values()]
    items += [frame for item in items for frame in as_list(item)]
    return any(isinstance(item, str) and item.startswith("oss://") for item in items)


async def _prepend(first_event: bytes, pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    if first_event:
        yield first_event
    async for piece in pieces:
        yield piece


async def _raise_later(error: Exception) -> AsyncIterator[bytes]:
    """Returns an iterator that raises the error when the first item is requested.

    The stream can thus yield the bytes that arrived before the error.
    """
    raise error
    yield b""


def _parse_event(data: bytes) -> object:
    """Returns the data of the first event of a stream as JSON values, or None if the data is not JSON."""
    match = re.search(rb"^data:\s?(.*?)\r?$", data, re.MULTILINE)
    try:
        return native_to_json(match[1] if match else data)
    except ValueError:
        return None


def _is_on_asyncio() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
