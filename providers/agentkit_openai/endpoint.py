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
    OptionError,
    OutgoingRequest,
    as_network_failure,
    as_object,
    find_request_id,
    is_transport_error,
    merge_parameters,
    parse_failure,
    parse_retry_after,
    split_http_options,
)
from agentkit_openai.compatible import OPENAI, OpenAICompatible

__all__ = ["OpenAIChatEndpoint", "OpenAIResponsesEndpoint"]

_REQUEST_IDS = (
    "request-id",  # Anthropic, through a gateway
    "x-request-id",  # OpenAI, and most compatible servers
    "x-amzn-requestid",  # Bedrock
    "x-dashscope-request-id",
    "apim-request-id",  # Azure
    "x-ms-request-id",  # Azure
    "x-goog-request-id",  # Google
)
"""Response headers with the id of a call, by the vendors' documents."""

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
    `max_tokens` of a ChatModel is sent under the vendor's name for it.
    """

    extra: ClassVar[str] = "openai"
    required_attributes: ClassVar[tuple[str, ...]] = ("post", "chat")
    path: ClassVar[str] = "/chat/completions"
    vendor: ClassVar[OpenAICompatible] = OPENAI
    """Facts about the vendor: address, keys, and names of parameters."""

    def __init__(self, client: Any) -> None:
        super().__init__(client)
        self._stream_only: set[str] = set()  # models that refuse all but streamed requests

    @classmethod
    def open(cls, **options: Any) -> Self:
        """`AsyncOpenAI(**options)`. The key and the address come from the environment if they are not given."""
        try:
            import openai
        except ImportError:
            raise MissingExtraError("openai", cls.extra, f"Calling {cls.vendor.name}") from None
        try:
            return cls(openai.AsyncOpenAI(**_client_options(cls.vendor, options)))
        except openai.OpenAIError as error:
            raise AuthError(cls.vendor.name, str(error)) from error

    def build_request(
        self, model: str, request: Mapping[str, Any], options: Mapping[str, Any], *, stream: bool
    ) -> OutgoingRequest:
        """The request with its model; a stream reports its usage at the end.

        A whole reply is asked for by `"stream": false`, which is the API's default and not that of every server
        (transformers' Responses).
        """
        parameters, http_options = split_http_options(options)
        extra_body = parameters.pop("extra_body", None) or {}
        body = merge_parameters({"model": model, **request}, parameters)
        body |= {"stream": True, **self._streamed(body)} if stream else {"stream": False}
        body |= extra_body
        return OutgoingRequest(self.path, body, stream, http_options)

    def _streamed(self, body: Mapping[str, Any]) -> dict[str, Any]:
        if not self.vendor.stream_usage:
            return {}
        return {"stream_options": {"include_usage": True, **(body.get("stream_options") or {})}}

    def max_tokens_parameter(self, max_tokens: int) -> dict[str, Any]:
        """Returns the limit under the vendor's name for it."""
        return {self.vendor.max_tokens: max_tokens}

    def requires_stream(self, outgoing: OutgoingRequest) -> bool:
        """Returns True if the model has refused a request that was not streamed."""
        return outgoing.body["model"] in self._stream_only

    async def send(self, outgoing: OutgoingRequest) -> bytes:
        """Returns the bytes of the reply. A model that only streams is remembered when it refuses."""
        try:
            response = await self._post(outgoing)
        except Exception as error:
            pattern = self.vendor.stream_only
            failure = self.failure_from_exception(error) if pattern else None
            if pattern and failure and pattern.search(failure.message):
                self._stream_only.add(outgoing.body["model"])
            raise
        return bytes(await response.aread())

    @asynccontextmanager
    async def stream(self, outgoing: OutgoingRequest) -> AsyncGenerator[AsyncIterator[bytes]]:
        """The bytes of the event stream."""
        response = await self._post(outgoing)
        try:
            yield IncomingStream(response.aiter_bytes(), find_request_id(response.headers, _REQUEST_IDS))
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

        if isinstance(error, openai.APIConnectionError) or is_transport_error(error):
            return as_network_failure(error)
        if isinstance(error, openai.APIStatusError):
            return self._status(error)
        if isinstance(error, openai.APIError):
            return parse_failure(error.body) or Failure(error.message, code=error.code)
        if isinstance(error, openai.OpenAIError):
            return Failure(str(error), code="authentication_error" if "credentials" in str(error) else None)
        return None

    def _status(self, error: Any) -> Failure:
        body = as_object(error.body)
        told = parse_failure({"error": body} if "error" not in body else body) or Failure("")
        return Failure(
            told.message or _text_of(error) or error.message,
            error.status_code,
            told.code or error.code or error.type,
            find_request_id(error.response.headers, _REQUEST_IDS) or told.request_id,
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


def _client_options(vendor: OpenAICompatible, options: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the options of a client, with the key and the address that the environment or the vendor has.

    Raises:
        AuthError: The vendor needs a key, and none is set.
        OptionError: The vendor has no default address, and none is set.
    """
    found = dict(options)
    if found.get("api_key") is None and (vendor.key or vendor.keyless):
        found["api_key"] = _variable(vendor.key) or vendor.keyless
        if found["api_key"] is None:
            raise AuthError(vendor.name, f"no API key. Pass client_options={{'api_key': …}} or set {vendor.key}")
    if found.get("base_url") is None and (vendor.address or vendor.needs_address):
        named = _variable(vendor.address_variable)
        found["base_url"] = f"{named.rstrip('/')}{vendor.address_path}" if named else vendor.address
        if found["base_url"] is None:
            variable = f", or set {vendor.address_variable}" if vendor.address_variable else ""
            advice = f"Pass client_options={{'base_url': …}}{variable}."
            raise OptionError("client_options.base_url", f"{vendor.name} has no default address", advice)
    return found


def _variable(name: str | None) -> str:
    return os.environ.get(name, "").strip() if name else ""


def _text_of(error: Any) -> str:
    """The text of an answer that is no JSON, as far as one wants to read it."""
    return str(error.response.text).strip()[:500]
