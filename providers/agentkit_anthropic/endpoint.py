"""Anthropic's SDK as a way to send."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, ClassVar, Self

from agentkit.provider_kit import (
    AuthError,
    EndpointBase,
    ErrorPatterns,
    Failure,
    IncomingStream,
    MissingExtraError,
    OutgoingRequest,
    as_network_failure,
    find_request_id,
    is_transport_error,
    merge_parameters,
    parse_failure,
    parse_retry_after,
    split_http_options,
)
from agentkit_anthropic._bedrock_events import MEDIA_TYPE, bedrock_events

__all__ = ["AnthropicEndpoint", "ERROR_PATTERNS"]

ERROR_PATTERNS = ErrorPatterns(
    context_length_code=r"context_(length|window|size)",
    context_length_text=(
        r"(input|prompt) is too long|exceed(s|ed|ing)? ([\w']+ ){0,3}context[ _](window|length|limit|size)"
        r"|maximum context length is"  # vLLM and DeepSeek, which have this API too
    ),
    context_sizes=(
        r"prompt is too long: (?P<count>\d+) tokens > (?P<limit>\d+)",
        r"exceed context limit: (?P<count>\d+) \+ (?P<reply>\d+) > (?P<limit>\d+)",
        r"maximum context length is (?P<limit>\d+) tokens",
    ),
    auth_code=(
        r"authentication_error|permission_error|billing_error|UNAUTHENTICATED|PERMISSION_DENIED|AccessDenied"
        r"|ExpiredToken|UnrecognizedClient|(Invalid|Incomplete)Signature|InvalidClientTokenId"
    ),
    auth_text=r"credit balance is too low",
    rate_limit_code=r"rate_limit|RESOURCE_EXHAUSTED|Throttling|ModelNotReady",
    overload_code=(
        r"overloaded|\bapi_error|timeout_error|UNAVAILABLE|DEADLINE_EXCEEDED"
        r"|InternalServer|Model(Stream)?Error|ModelTimeout"
    ),
    bad_request_code=r"invalid_request_error|INVALID_ARGUMENT|ValidationException|ResourceNotFound",
    quota_code=r"spend_limit|billing",
)
"""Error types and texts of Anthropic (docs: errors), AWS (ResponseStream; common errors) and Google."""

_REQUEST_IDS = (
    "request-id",  # Anthropic
    "x-request-id",  # gateways
    "x-amzn-requestid",  # Bedrock
    "apim-request-id",  # Azure
    "x-ms-request-id",  # Azure
    "x-goog-request-id",  # Vertex
)
"""Response headers with the id of a call, by the documents of each platform."""

DEFAULT_MAX_TOKENS = 16_000
"""`max_tokens` is required; all current models take this much, and it needs no stream (models overview)."""

_LONGEST_WHOLE = 21_333
"""The tokens of a reply that take ten minutes by the SDK's reckoning: beyond, it wants a stream."""

_OF_AWS = frozenset({"boto3", "botocore"})
_KEYLESS = re.compile(r"authentication method|Could not resolve (AWS credentials|API token)")


class AnthropicEndpoint(EndpointBase):
    """`AsyncAnthropic`, or any other async client of the anthropic SDK's: Bedrock's, Vertex's, Foundry's, AWS's.

    The finished body goes through the client's `post`, so that each client finds its own URL and signs it. What is
    signed for AWS, and Bedrock's streams, need the extra `bedrock`. `max_tokens` is 16,000 unless said. A reply
    that may take longer than ten minutes (`max_tokens` above 21,333, the SDK's own rule) comes as a stream even if
    it is wanted whole. `betas`, `extra_headers`, `extra_query`, `extra_body` and `timeout` are what they are to
    the SDK's own methods.
    """

    extra: ClassVar[str] = "anthropic"
    required_attributes: ClassVar[tuple[str, ...]] = ("post", "messages")

    @classmethod
    def open(cls, **options: Any) -> Self:
        """`AsyncAnthropic(**options)`."""
        try:
            import anthropic
        except ImportError:
            raise MissingExtraError("anthropic", cls.extra, "Calling Anthropic") from None
        try:
            return cls(anthropic.AsyncAnthropic(**options))
        except anthropic.AnthropicError as error:
            raise AuthError("anthropic", str(error)) from error

    def build_request(
        self, model: str, request: Mapping[str, Any], options: Mapping[str, Any], *, stream: bool
    ) -> OutgoingRequest:
        """The request with its model and the limit of the reply."""
        parameters, http_options = split_http_options(options)
        extra_body, betas = parameters.pop("extra_body", None), parameters.pop("betas", None)
        body = merge_parameters({"model": model, "max_tokens": None, **request}, parameters)
        body["max_tokens"] = DEFAULT_MAX_TOKENS if body["max_tokens"] is None else body["max_tokens"]
        body |= extra_body or {}
        if stream:
            body["stream"] = True
        if betas:
            http_options["headers"] = {"anthropic-beta": ",".join(betas), **(http_options.get("headers") or {})}
        return OutgoingRequest("/v1/messages", body, stream, http_options)

    def requires_stream(self, outgoing: OutgoingRequest) -> bool:
        """Whether the reply may take longer than a connection is kept waiting (SDK: long requests)."""
        import anthropic

        if "timeout" in outgoing.options or self.client.timeout != anthropic.DEFAULT_TIMEOUT:
            return False  # its user has seen to it
        limit = outgoing.body.get("max_tokens")
        return isinstance(limit, int) and limit > _LONGEST_WHOLE

    async def send(self, outgoing: OutgoingRequest) -> bytes:
        """The reply's bytes."""
        response = await self._post(outgoing)
        return bytes(await response.aread())

    @asynccontextmanager
    async def stream(self, outgoing: OutgoingRequest) -> AsyncGenerator[AsyncIterator[Any]]:
        """The bytes of the event stream; of Bedrock's binary one, the events."""
        response = await self._post(outgoing)
        try:
            pieces: AsyncIterator[bytes] = response.aiter_bytes()
            binary = MEDIA_TYPE in response.headers.get("content-type", "")
            request_id = find_request_id(response.headers, _REQUEST_IDS)
            yield IncomingStream(bedrock_events(pieces) if binary else pieces, request_id)
        finally:
            await response.aclose()

    async def _post(self, outgoing: OutgoingRequest) -> Any:
        import anthropic
        import httpx2

        # Bedrock's and Vertex's take the model out of the body, and middleware may want to see it.
        watched = bool(getattr(self.client, "middleware", ()))
        looks_inside = watched or self.client.__class__ is not anthropic.AsyncAnthropic
        try:
            return await self.client.post(
                outgoing.path,
                cast_to=httpx2.Response,  # as it is, unparsed
                **outgoing.payload(as_object=looks_inside),
                options=dict(outgoing.options),
                stream=outgoing.stream,
                stream_cls=anthropic.AsyncStream[object] if outgoing.stream else None,
            )
        except ModuleNotFoundError as error:
            if str(error.name).partition(".")[0] not in _OF_AWS:
                raise
            raise MissingExtraError(str(error.name), "bedrock", "Signing a request for AWS") from None

    def failure_from_exception(self, error: BaseException) -> Failure | None:
        """The SDK's error, or one of its HTTP client's in mid-stream."""
        import anthropic

        if isinstance(error, anthropic.APIConnectionError):
            return as_network_failure(error)
        if isinstance(error, anthropic.APIStatusError):
            return _status(error)
        if isinstance(error, anthropic.APIError):
            return parse_failure(error.body) or Failure(error.message)
        if isinstance(error, anthropic.AnthropicError) or _lacks_key(error):
            return Failure(str(error), code="authentication_error" if _lacks_key(error) else None)
        return _of_others(error)

    async def aclose(self) -> None:
        """Close the SDK's client."""
        await self.client.close()


def _status(error: Any) -> Failure:
    status, headers = error.status_code, error.response.headers
    told = parse_failure(error.body, status) or Failure("")
    named = headers.get("x-amzn-errortype", "").partition(":")[0]  # a URL may stand behind it
    return Failure(
        told.message or str(error.response.text).strip()[:500] or error.message,
        None if status == 200 else status,
        error.error_code or error.type or told.code or named or None,
        find_request_id(headers, _REQUEST_IDS) or told.request_id,
        parse_retry_after(headers),
    )


def _lacks_key(error: BaseException) -> bool:
    """The SDK finds out at the first call that it has no credentials (SDK: `_validate_headers`, and its helpers
    for AWS and Google).
    """
    return isinstance(error, Exception) and _KEYLESS.search(str(error)) is not None


def _of_others(error: BaseException) -> Failure | None:
    """An error of a package that the SDK calls: its HTTP client, and those that AWS and Google sign with."""
    module = type(error).__module__
    if is_transport_error(error) or module == "botocore.eventstream":
        return as_network_failure(error)
    if module == "google.auth.exceptions":
        away = type(error).__name__ in {"TransportError", "TimeoutError", "ResponseError"}
        return Failure(str(error), network=True) if away else Failure(str(error), code="authentication_error")
    if module == "botocore.exceptions":  # no profile of that name, a session that is over
        return Failure(str(error), code="authentication_error")
    return None
