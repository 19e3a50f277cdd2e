"""DashScope as a way to send: its native wire through its SDK, its compatible mode through OpenAI's."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any, ClassVar, Literal, Self, TypeAlias

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
from agentkit_dashscope.compatible import STREAM_ONLY

__all__ = ["DashScopeEndpoint"]

_Path: TypeAlias = Literal["text", "multimodal"]

_PATHS: dict[_Path, str] = {
    "text": "/services/aigc/text-generation/generation",
    "multimodal": "/services/aigc/multimodal-generation/generation",
}
_OTHER: dict[str, _Path] = {_PATHS["text"]: "multimodal", _PATHS["multimodal"]: "text"}

_WRONG_PATH = re.compile(r"url error", re.IGNORECASE)
"""'url error, please check url！': the model is bound to the other path (model-studio)."""

_END = re.compile(rb"\r?\n\r?\n")  # of an event
_LONGEST = 1 << 20  # bytes of a first event that may be an error


class DashScopeEndpoint(EndpointBase):
    """`dashscope.AsyncClient` (the SDK's `v2`), whose transport the finished JSON goes through.

    Neither the SDK's classic classes, which return errors instead of raising them and upload local files that a
    text names, nor the new ones' walk over messages. The transport tries again as it does for the SDK's own calls;
    it sleeps by asyncio, so on trio nothing is tried again. A stream it opens once, on asyncio too.

    A model is bound to one of two paths. A request in strings goes to the text path; if that is the wrong one, the
    other is tried with the texts in its form, and remembered for the model. A model that only streams is streamed,
    and remembered too. All parameters go into `parameters`, but `extra_headers`, `extra_query` and `timeout`.
    """

    extra: ClassVar[str] = "dashscope"
    required_attributes: ClassVar[tuple[str, ...]] = ("transport",)

    def __init__(self, client: Any) -> None:
        super().__init__(client)
        self._once: Any = None
        self._path_of: dict[str, _Path] = {}
        self._streamers: set[str] = set()

    @classmethod
    def open(cls, **options: Any) -> Self:
        """`dashscope.AsyncClient(**options)`; the key is in DASHSCOPE_API_KEY if it is not given."""
        try:
            import dashscope
        except ImportError:
            raise MissingExtraError("dashscope", cls.extra, "Calling DashScope") from None
        client = dashscope.AsyncClient(**options)
        if not client.config.api_key:
            raise AuthError("dashscope", "no API key. Pass client_options={'api_key': …} or set DASHSCOPE_API_KEY")
        return cls(client)

    def build_request(
        self, model: str, request: Mapping[str, Any], options: Mapping[str, Any], *, stream: bool
    ) -> OutgoingRequest:
        """The messages under `input`, all else under `parameters`; a stream in increments."""
        parameters, http_options = split_http_options(options)
        parameters = merge_parameters(
            {name: item for name, item in request.items() if name != "messages"}, parameters
        )
        if clash := sorted(parameters.keys() & {"messages", "model", "input"}):
            reason, advice = "already set by the request", "Remove the parameter."
            raise OptionError(f"parameters.{clash[0]}", reason, advice)
        if stream:
            parameters = {"incremental_output": True, **parameters}
        messages = request["messages"]
        path = self._path_of.get(model) or _path_for(messages)
        body = {"model": model, "input": {"messages": _fitted(messages, path)}, "parameters": parameters}
        if any(map(_is_stored, messages)):
            # It looks up a file of its own store if a header asks for that (model-studio: temporary URLs).
            headers = http_options.get("headers") or {}
            http_options["headers"] = {"X-DashScope-OssResourceResolve": "enable", **headers}
        return OutgoingRequest(_PATHS[path], body, stream, http_options)

    def requires_stream(self, outgoing: OutgoingRequest) -> bool:
        """Whether the model has said that it only streams."""
        return outgoing.body["model"] in self._streamers

    async def send(self, outgoing: OutgoingRequest) -> Any:
        """The reply, as JSON values."""
        try:
            return await self._sent(outgoing)
        except Exception as error:
            other = self._other_path(outgoing, self.failure_from_exception(error))
            if other is None:
                raise
        return await self._sent(other)

    async def _sent(self, outgoing: OutgoingRequest) -> Any:
        from dashscope.v2.errors import check_response

        response = await self._transport.request("POST", outgoing.path, json=outgoing.body, **outgoing.options)
        check_response(response)
        response.raise_for_status()  # a redirect is no error to the SDK, which follows none
        return response.content

    @asynccontextmanager
    async def stream(self, outgoing: OutgoingRequest) -> AsyncGenerator[AsyncIterator[bytes]]:
        """The bytes of the event stream. That the path is wrong may be told within it."""
        response, first, pieces = await self._opened(outgoing)
        failure = self.failure_from_reply(_event(first))
        other = failure and self._other_path(outgoing, failure)
        if other:
            async for _ in pieces:  # nothing stands behind an error
                pass
            await response.aclose()
            response, first, pieces = await self._opened(other)
        try:
            yield IncomingStream(_behind(first, pieces), response.headers)
        finally:
            await response.aclose()

    async def _opened(self, outgoing: OutgoingRequest) -> tuple[Any, bytes, AsyncIterator[bytes]]:
        """An answer, the bytes of its first event, and those behind."""
        import httpx

        try:
            response = await self._open_stream(outgoing)
        except Exception as error:
            other = self._other_path(outgoing, self.failure_from_exception(error))
            if other is None:
                raise
            response = await self._open_stream(other)
        pieces: AsyncIterator[bytes] = response.aiter_bytes()
        held, size, tail = list[bytes](), 0, b""
        try:
            async for piece in pieces:
                held.append(piece)
                size += len(piece)
                if _END.search(tail + piece) or size > _LONGEST:
                    break
                tail = (tail + piece)[-3:]
        except httpx.RequestError as error:
            pieces = _broken(error)
        except BaseException:
            await response.aclose()
            raise
        return response, b"".join(held), pieces

    async def _open_stream(self, outgoing: OutgoingRequest) -> Any:
        streamed = {"X-DashScope-SSE": "enable", "accept": "text/event-stream"}
        headers: dict[str, str] = {**streamed, **(outgoing.options.get("headers") or {})}
        options: dict[str, Any] = {**outgoing.options, "headers": headers}
        response = await self.client.transport.open_stream("POST", outgoing.path, json=outgoing.body, **options)
        if not response.is_success:
            await response.aclose()
            response.raise_for_status()
        return response

    @property
    def _transport(self) -> Any:
        """The SDK's transport. Between two tries it sleeps by asyncio: elsewhere there is one try."""
        if _on_asyncio():
            return self.client.transport
        if self._once is None:
            self._once = self.client.with_options(max_retries=0)
        return self._once.transport

    def _other_path(self, outgoing: OutgoingRequest, failure: Failure | None) -> OutgoingRequest | None:
        """The same call on the other path, if the failure says that this was the wrong one; once a model."""
        model = str(outgoing.body["model"])
        said = failure.message if failure else ""
        if STREAM_ONLY.search(said):
            self._streamers.add(model)
        if not _WRONG_PATH.search(said) or model in self._path_of:
            return None
        path = self._path_of[model] = _OTHER[outgoing.path]
        messages = _fitted(outgoing.body["input"]["messages"], path)
        return replace(outgoing, path=_PATHS[path], body={**outgoing.body, "input": {"messages": messages}})

    def failure_from_exception(self, error: BaseException) -> Failure | None:
        """The SDK's error, or its HTTP client's in mid-stream."""
        import httpx
        from dashscope.v2 import errors

        if isinstance(error, errors.APIConnectionError):
            return Failure(error.message, network=True)
        if isinstance(error, errors.DashScopeError):
            told = parse_failure(error.body, error.status_code)
            headers = {name.lower(): item for name, item in (error.headers or {}).items()}
            return Failure(
                told.message if told else error.message,
                error.status_code,
                (told and told.code) or error.code,
                error.request_id or (told and told.request_id) or find_request_id(headers),
                parse_retry_after(headers),
            )
        if isinstance(error, TypeError) and "unhashable" in str(error):  # the SDK looks the code up in a table
            return Failure("an error whose code is no text")
        if isinstance(error, httpx.HTTPStatusError):
            return Failure(str(error).partition("\n")[0], error.response.status_code)
        return as_network_failure(error) if is_transport_error(error) else None

    async def aclose(self) -> None:
        """Close the SDK's client."""
        await self.client.aclose()


def _is_stored(message: Mapping[str, Any]) -> bool:
    """Whether a part of a message is a file in DashScope's own store, or has some (a video's frames)."""
    found = [item for part in as_list(message.get("content")) for item in as_object(part).values()]
    found += [frame for item in found for frame in as_list(item)]
    return any(isinstance(item, str) and item.startswith("oss://") for item in found)


def _path_for(messages: Sequence[Mapping[str, Any]]) -> _Path:
    """The path that a request was made for: the multimodal one takes lists of parts, the other strings."""
    return "multimodal" if any(isinstance(message.get("content"), list) for message in messages) else "text"


def _fitted(messages: Sequence[dict[str, Any]], path: _Path) -> list[dict[str, Any]]:
    """Messages that were made for the other path in the form of this one: texts as strings, or as parts."""
    if _path_for(messages) == path:
        return list(messages)
    change = _as_text if path == "text" else _as_parts
    return [{**message, "content": change(message.get("content"))} for message in messages]


def _as_text(content: Any) -> Any:
    """Parts of text as one text."""
    parts = as_list(content)
    texts = [part["text"] for part in parts if "text" in part]
    return "\n".join(texts) if parts and len(texts) == len(parts) else content


def _as_parts(content: Any) -> Any:
    return [{"text": content}] if isinstance(content, str) and content else content


async def _behind(first: bytes, pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    if first:
        yield first
    async for piece in pieces:
        yield piece


async def _broken(error: Exception) -> AsyncIterator[bytes]:
    """A connection that broke."""
    raise error
    yield b""


def _event(first: bytes) -> object:
    """The first event of a stream; None for what cannot be read."""
    match = re.search(rb"^data:\s?(.*?)\r?$", first, re.MULTILINE)
    try:
        return native_to_json(match[1] if match else first)
    except ValueError:
        return None


def _on_asyncio() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
