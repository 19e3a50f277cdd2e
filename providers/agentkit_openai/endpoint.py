"""OpenAI's SDK as a way to send: Chat Completions and Responses, and every vendor that speaks the former."""

from __future__ import annotations

import os
import re
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, ClassVar, Self

from agentkit.provider_kit import (
    AuthError,
    EndpointBase,
    Failure,
    IncomingStream,
    MissingExtraError,
    OutgoingRequest,
    as_object,
    find_request_id,
    merge_parameters,
    parse_failure,
    parse_retry_after,
)

__all__ = ["OpenAIChatEndpoint", "OpenAIResponsesEndpoint"]

_EXTRAS = {"extra_headers": "headers", "extra_query": "params", "timeout": "timeout"}
"""What the SDK's own methods take besides the body, and what their `post` calls it (SDK: make_request_options)."""

_NO_TOOLS = re.compile(r"function tools with reasoning_effort|use /v1/responses", re.IGNORECASE)
"""'Function tools with reasoning_effort are not supported for … in /v1/chat/completions', GPT-5.4 and later."""
_RESPONSES = (
    "Call the model through the Responses API: ChatModel('openai-responses:…'). Some models take tools here with "
    "reasoning_effort='none'."
)


class OpenAIChatEndpoint(EndpointBase):
    """`AsyncOpenAI`, `AsyncAzureOpenAI`, or any client of the openai SDK's: `POST /chat/completions`.

    The finished body goes through the client's `post`, so that Azure's client finds its deployment, and comes back
    as bytes. `extra_headers`, `extra_query`, `extra_body` and `timeout` are what they are to the SDK's methods.
    `max_tokens` of a ChatModel is `max_completion_tokens` (API reference: `max_tokens` is deprecated).
    """

    extra: ClassVar[str] = "openai"
    required_attributes: ClassVar[tuple[str, ...]] = ("post", "chat")
    path: ClassVar[str] = "/chat/completions"
    provider: ClassVar[str] = "openai"
    key: ClassVar[str | None] = None
    """The environment's variable with the key, where it is not the SDK's own."""
    address: ClassVar[str | None] = None
    """The vendor's base URL, and `address_key`, the environment's variable with another."""
    address_key: ClassVar[str | None] = None
    keyless: ClassVar[str | None] = None
    """What is sent for a key where there is none: servers of one's own ask for none, the SDK does."""

    @classmethod
    def open(cls, **options: Any) -> Self:
        """`AsyncOpenAI(**options)`. The key and the address come from the environment if they are not given."""
        try:
            import openai
        except ImportError:
            raise MissingExtraError("openai", cls.extra, f"Calling {cls.provider}") from None
        try:
            return cls(openai.AsyncOpenAI(**cls._from_environment(options)))
        except openai.OpenAIError as error:
            raise AuthError(cls.provider, str(error)) from error

    @classmethod
    def _from_environment(cls, options: Mapping[str, Any]) -> dict[str, Any]:
        found = dict(options)
        if cls.key and found.get("api_key") is None:
            found["api_key"] = os.environ.get(cls.key, "").strip() or cls.keyless
            if found["api_key"] is None:
                raise AuthError(cls.provider, f"no key: give client_options={{'api_key': …}} or set {cls.key}")
        if cls.address and found.get("base_url") is None:
            told = os.environ.get(cls.address_key, "").strip() if cls.address_key else None
            found["base_url"] = told or cls.address
        return found

    def build_request(
        self, model: str, request: Mapping[str, Any], options: Mapping[str, Any], *, stream: bool
    ) -> OutgoingRequest:
        """The request with its model; a stream reports its usage at the end.

        A whole reply is asked for by `"stream": false`, which is the API's default and not that of every server
        (transformers' Responses).
        """
        sent = {name: item for name, item in options.items() if name not in _EXTRAS and name != "extra_body"}
        body = merge_parameters({"model": model, **request}, sent)
        body |= {"stream": True, **self._streamed(body)} if stream else {"stream": False}
        body |= options.get("extra_body") or {}
        kept = {_EXTRAS[name]: item for name, item in options.items() if name in _EXTRAS}
        return OutgoingRequest(self.path, body, stream, kept)

    def _streamed(self, body: Mapping[str, Any]) -> dict[str, Any]:
        return {"stream_options": {"include_usage": True, **(body.get("stream_options") or {})}}

    def max_tokens_parameter(self, max_tokens: int) -> dict[str, Any]:
        """`max_completion_tokens`."""
        return {"max_completion_tokens": max_tokens}

    async def send(self, outgoing: OutgoingRequest) -> bytes:
        """The reply's bytes."""
        response = await self._post(outgoing)
        return bytes(await response.aread())

    @asynccontextmanager
    async def stream(self, outgoing: OutgoingRequest) -> AsyncGenerator[AsyncIterator[bytes]]:
        """The bytes of the event stream."""
        response = await self._post(outgoing)
        try:
            yield IncomingStream(response.aiter_bytes(), response.headers)
        finally:
            await response.aclose()

    async def _post(self, outgoing: OutgoingRequest) -> Any:
        import httpx2
        import openai

        # Azure's takes the deployment from the body.
        looks_inside = self.client.__class__ is not openai.AsyncOpenAI
        return await self.client.post(
            outgoing.path,
            cast_to=httpx2.Response,  # as it is, unparsed; an httpx client of old gives its own
            **outgoing.payload(open=looks_inside),
            options=dict(outgoing.options),
            stream=outgoing.stream,
            stream_cls=openai.AsyncStream[object] if outgoing.stream else None,
        )

    def failure_from_exception(self, error: BaseException) -> Failure | None:
        """The SDK's error, or one of its HTTP client's in mid-stream."""
        import openai

        if isinstance(error, openai.APIConnectionError):
            return Failure(_told(error), network=True)
        if isinstance(error, openai.APIStatusError):
            return self._status(error)
        if isinstance(error, openai.APIError):
            return parse_failure(error.body) or Failure(error.message, code=error.code)
        if isinstance(error, openai.OpenAIError):
            return Failure(str(error), code="authentication_error" if "credentials" in str(error) else None)
        return Failure(_told(error), network=True) if _is_transport(error) else None

    def _status(self, error: Any) -> Failure:
        body = as_object(error.body)
        told = parse_failure({"error": body} if "error" not in body else body) or Failure("")
        return Failure(
            told.message or _text_of(error) or error.message,
            error.status_code,
            told.code or error.code or error.type,
            find_request_id(error.response.headers) or told.request_id,
            parse_retry_after(error.response.headers),
            param=told.param,
            advice=_RESPONSES if _NO_TOOLS.search(told.message) else None,
        )

    async def aclose(self) -> None:
        """Close the SDK's client."""
        await self.client.close()


class OpenAIResponsesEndpoint(OpenAIChatEndpoint):
    """The same for `POST /responses`. `max_tokens` is `max_output_tokens`."""

    path: ClassVar[str] = "/responses"

    def max_tokens_parameter(self, max_tokens: int) -> dict[str, Any]:
        """`max_output_tokens`."""
        return {"max_output_tokens": max_tokens}

    def _streamed(self, body: Mapping[str, Any]) -> dict[str, Any]:
        return {}


def _told(error: BaseException) -> str:
    """A transport's error with what it comes from: the SDK's own says 'Connection error.' alone."""
    cause = error.__cause__
    said = str(error).strip() or type(error).__name__
    more = cause is not None and str(cause) not in ("", said)
    return f"{said.rstrip('.')} ({type(cause).__name__}: {cause})" if more else said


def _text_of(error: Any) -> str:
    """The text of an answer that is no JSON, as far as one wants to read it."""
    return str(error.response.text).strip()[:500]


def _is_transport(error: BaseException) -> bool:
    """Whether an error is the HTTP client's: raised while a stream is read, where the SDK does not see it."""
    return type(error).__module__.partition(".")[0] in {"httpx", "httpx2", "httpcore", "httpcore2"}
