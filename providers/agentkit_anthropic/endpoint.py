"""Endpoint for model calls through Anthropic's SDK, and patterns of Anthropic's error texts."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Mapping
from dataclasses import replace
from typing import Any

from agentkit.provider_kit import (
    ErrorPatterns,
    Failure,
    MissingExtraError,
    OutgoingRequest,
    SDKEndpoint,
    as_network_failure,
    merge_parameters,
    split_http_options,
)
from agentkit_anthropic._bedrock_events import MEDIA_TYPE, bedrock_events
from agentkit_anthropic.capabilities import DEFAULT_MAX_TOKENS

__all__ = ["AnthropicEndpoint", "ERROR_PATTERNS"]

ERROR_PATTERNS = ErrorPatterns(
    context_length_code=r"context_(length|window|size)",
    context_length_text=(
        r"(input|prompt) is too long|exceed(s|ed|ing)? ([\w']+ ){0,3}context[ _](window|length|limit|size)"
        r"|maximum context length is"  # error text of vLLM and DeepSeek, which also offer Anthropic's API
    ),
    context_sizes=(
        r"prompt is too long: (?P<count>\d+) tokens > (?P<limit>\d+)",
        r"exceed context limit: (?P<count>\d+) \+ (?P<reply>\d+) > (?P<limit>\d+)",
        # Error texts of vLLM and llama.cpp, whose servers also offer Anthropic's API.
        r"maximum context length is (?P<limit>\d+) tokens"
        r"(?:.*?(?:resulted in|requested|request has) (?P<count>\d+))?",
        r"\((?P<count>\d+) tokens\) exceeds the available context size \((?P<limit>\d+) tokens\)",
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
"""Regular expressions for the codes and texts of errors from Anthropic, AWS and Google.

Sources: Anthropic docs, errors; AWS docs, ResponseStream and common errors.
"""

_MAX_UNSTREAMED_TOKENS = 21_333
"""Largest `max_tokens` for which the SDK does not require a stream.

For a larger number, the SDK expects that the reply takes longer than ten minutes.
"""

_AWS_PACKAGES = frozenset({"boto3", "botocore"})


class AnthropicEndpoint(SDKEndpoint):
    """Endpoint for `AsyncAnthropic` and the SDK's async clients for Bedrock, Vertex, Foundry and AWS.

    The endpoint passes the finished body to the client's `post` method, so that each client adds its own URL and
    signature. Bedrock and AWS need the extra `bedrock`.

    The default of `max_tokens` is 16,000. If `max_tokens` is above 21,333 and no timeout is set, `generate` reads
    a stream. The SDK requires a stream if it expects that the reply takes longer than ten minutes. `betas`,
    `extra_headers`, `extra_query`, `extra_body` and `timeout` have the same meaning as in the SDK's methods.
    """

    provider = "anthropic"
    extra = "anthropic"
    sdk = "anthropic"
    client_class = "AsyncAnthropic"
    error_class = "AnthropicError"
    no_key = re.compile(
        # Error texts of `_validate_headers` in the SDK.
        r"authentication method|Could not resolve (AWS credentials|API token)"
    )
    required_attributes = ("post", "messages")

    def build_request(
        self, model: str, request: Mapping[str, Any], options: Mapping[str, Any], *, stream: bool
    ) -> OutgoingRequest:
        """Returns the request with the model and `max_tokens` in its body."""
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
        """Returns True if the SDK requires a stream for the request (SDK README: long requests).

        The SDK requires a stream if no timeout is set and the expected reply time is more than ten minutes.
        """
        import anthropic

        if "timeout" in outgoing.options or self.client.timeout != anthropic.DEFAULT_TIMEOUT:
            return False  # if the application sets a timeout, the SDK does not require a stream
        limit = outgoing.body.get("max_tokens")
        return isinstance(limit, int) and limit > _MAX_UNSTREAMED_TOKENS

    def read_chunks(self, response: Any) -> AsyncIterator[Any]:
        """Returns an iterator over the bytes of a reply, or over the events of Bedrock's binary stream."""
        chunks = super().read_chunks(response)
        return bedrock_events(chunks) if MEDIA_TYPE in response.headers.get("content-type", "") else chunks

    async def post(self, outgoing: OutgoingRequest) -> Any:
        """Sends the request through the SDK, and returns the HTTP response unparsed.

        Raises:
            MissingExtraError: The client signs requests for AWS, but boto3 or botocore is not installed.
        """
        try:
            return await super().post(outgoing)
        except ModuleNotFoundError as error:
            if str(error.name).partition(".")[0] not in _AWS_PACKAGES:
                raise
            raise MissingExtraError(str(error.name), "bedrock", "Signing a request for AWS") from None

    def failure_from_exception(self, error: BaseException) -> Failure | None:
        """Returns a `Failure` for an error of the SDK, AWS or Google packages, or None for any other error."""
        return super().failure_from_exception(error) or _parse_foreign_error(error)

    def failure_from_status_error(self, error: Any) -> Failure:
        """Converts the SDK's exception for an HTTP error status to a `Failure`.

        For Bedrock, the error code comes from the response header `x-amzn-errortype`.
        """
        failure = super().failure_from_status_error(error)
        # In this header, a colon and a URL can follow the error type.
        aws_type = error.response.headers.get("x-amzn-errortype", "").partition(":")[0]
        return replace(failure, code=error.error_code or error.type or failure.code or aws_type or None)


def _parse_foreign_error(error: BaseException) -> Failure | None:
    """Returns a `Failure` for an error of the AWS or Google packages, or None for any other error."""
    module = type(error).__module__
    if module == "botocore.eventstream":
        return as_network_failure(error)
    if module == "google.auth.exceptions":
        is_network = type(error).__name__ in {"TransportError", "TimeoutError", "ResponseError"}
        return (
            Failure(str(error), network=True) if is_network else Failure(str(error), code="authentication_error")
        )
    if module == "botocore.exceptions":  # for example, an unknown profile or an expired session
        return Failure(str(error), code="authentication_error")
    return None
