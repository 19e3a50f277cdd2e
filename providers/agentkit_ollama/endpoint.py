"""Ollama's SDK as a way to send."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any, ClassVar, Self

from agentkit.provider_kit import (
    EndpointBase,
    Failure,
    IncomingStream,
    MissingExtraError,
    OptionError,
    OutgoingRequest,
    find_request_id,
    merge_parameters,
    native_to_json,
    parse_failure,
    parse_retry_after,
)

__all__ = ["OllamaEndpoint"]

_BESIDE = frozenset({"options", "keep_alive", "think", "format", "truncate", "shift", "logprobs", "top_logprobs"})
"""The fields of /api/chat beside the conversation (ollama: api/types.go, ChatRequest)."""

_EXTRAS = {"extra_headers": "headers", "extra_query": "params", "timeout": "timeout"}
"""What goes beside the body, and what the HTTP client calls it."""


class OllamaEndpoint(EndpointBase):
    """`ollama.AsyncClient`: `POST /api/chat`.

    The SDK's own `chat` leaves out call ids, empty texts and what it does not know of a tool's schema, in requests
    and in replies. So the finished JSON goes through the HTTP client that the SDK has set up, with its address,
    headers and key, and comes back as bytes; errors are the SDK's. It tries nothing again by itself.

    A parameter that is no field of the wire's (`temperature`, `num_ctx` …) goes into `options`; `max_tokens` is
    `num_predict`. `extra_headers`, `extra_query` and `timeout` go beside the body. The SDK has no time limit
    unless there is a `timeout`.
    """

    extra: ClassVar[str] = "ollama"
    required_attributes: ClassVar[tuple[str, ...]] = ("_client", "pull")

    @classmethod
    def check(cls, client: Any) -> None:
        """Refuse a client that is not async: both of the SDK's can be entered by `async with`."""
        super().check(client)
        if not hasattr(client._client, "aclose"):
            raise OptionError("client", "ollama's Client is no async client", "Give an AsyncClient.")

    @classmethod
    def open(cls, **options: Any) -> Self:
        """`AsyncClient(**options)`; `base_url` is its `host`, and `api_key` a bearer's."""
        try:
            import ollama
        except ImportError:
            raise MissingExtraError("ollama", cls.extra, "Calling Ollama") from None
        found = dict(options)
        if (key := found.pop("api_key", None)) is not None:
            found["headers"] = {**(found.get("headers") or {}), "authorization": f"Bearer {key}"}
        if (url := found.pop("base_url", None)) is not None:
            found["host"] = url
        return cls(ollama.AsyncClient(**found))

    def build_request(
        self, model: str, request: Mapping[str, Any], options: Mapping[str, Any], *, stream: bool
    ) -> OutgoingRequest:
        """The request with its model; what is no field of the wire's is an option of the model's."""
        fields = {name: item for name, item in options.items() if name in _BESIDE}
        inner = {name: item for name, item in options.items() if name not in _BESIDE and name not in _EXTRAS}
        if clash := sorted(inner.keys() & {*request, "model", "stream", "tools"}):
            raise OptionError(
                f"parameters.{clash[0]}", "the request has it already", "Leave it to the conversation."
            )
        if inner:
            fields["options"] = {**inner, **(fields.get("options") or {})}
        kept = {_EXTRAS[name]: item for name, item in options.items() if name in _EXTRAS}
        return OutgoingRequest(
            "/api/chat", {**merge_parameters({"model": model, **request}, fields), "stream": stream}, stream, kept
        )

    def max_tokens_parameter(self, max_tokens: int) -> dict[str, Any]:
        """`options.num_predict`."""
        return {"num_predict": max_tokens}

    async def send(self, outgoing: OutgoingRequest) -> bytes:
        """The reply's bytes."""
        async with self._answer(outgoing) as response:
            return bytes(await response.aread())

    @asynccontextmanager
    async def stream(self, outgoing: OutgoingRequest) -> AsyncGenerator[AsyncIterator[bytes]]:
        """The bytes of the reply, one JSON object a line."""
        async with self._answer(outgoing) as response:
            yield IncomingStream(response.aiter_bytes(), response.headers)

    @asynccontextmanager
    async def _answer(self, outgoing: OutgoingRequest) -> AsyncGenerator[Any]:
        """The answer of the server, with the SDK's errors (ollama-python: `_request_raw`)."""
        import httpx

        http: httpx.AsyncClient = self.client._client
        request = http.build_request("POST", outgoing.path, json=outgoing.body, **outgoing.options)
        try:
            response = await http.send(request, stream=True)
        except httpx.ConnectError as error:
            raise ConnectionError(f"Failed to connect to Ollama at {http.base_url}: {error}") from error
        try:
            try:
                response.raise_for_status()
            except httpx.HTTPStatusError as error:
                await response.aread()
                raise _refusal(response.text, response.status_code) from error
            yield response
        finally:
            await response.aclose()

    def failure_from_exception(self, error: BaseException) -> Failure | None:
        """The SDK's error, or its HTTP client's, which the SDK passes on."""
        import httpx
        from ollama import RequestError, ResponseError

        if isinstance(error, ResponseError):
            status = error.status_code if error.status_code > 0 else None
            failure = parse_failure(_body(error.error), status) or Failure(str(error.error), status)
            headers = getattr(getattr(error.__cause__, "response", None), "headers", None)
            named = find_request_id(headers) or failure.request_id
            return replace(failure, request_id=named, retry_after=parse_retry_after(headers))
        if isinstance(error, RequestError):
            return Failure(error.error, 400)
        if isinstance(error, ConnectionError | httpx.RequestError | httpx.StreamError):
            return Failure(str(error) or type(error).__name__, network=True)
        return None

    async def aclose(self) -> None:
        """Close the SDK's client."""
        await self.client.close()


def _refusal(text: str, status: int) -> Exception:
    """The SDK's error. It looks into JSON for an object, and stumbles over any other."""
    from ollama import ResponseError

    try:
        return ResponseError(text, status)
    except (AttributeError, RecursionError):
        return ResponseError(json.dumps({"error": text}), status)


def _body(text: object) -> object:
    """The object that an error's text is; the SDK has unpacked it if it could, whatever it is."""
    if not isinstance(text, str):
        return {"error": text}
    try:
        return native_to_json(text)
    except ValueError:
        return {"error": text} if text.strip() else None
