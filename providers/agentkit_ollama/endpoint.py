"""Endpoint for model calls through Ollama's SDK, ollama-python."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Any, ClassVar, Self

from agentkit.provider_kit import (
    ErrorPatterns,
    Failure,
    HttpResponseEndpoint,
    MissingExtraError,
    OptionError,
    OutgoingRequest,
    as_network_failure,
    is_transport_error,
    merge_parameters,
    split_http_options,
)
from agentkit_ollama.convert import place_parameters

__all__ = ["ERROR_PATTERNS", "OllamaEndpoint", "OllamaRawEndpoint"]

ERROR_PATTERNS = ErrorPatterns(
    context_length_code=r"exceed_context_size",
    context_length_text=r"exceed(s|ed|ing)? ([\w']+ ){0,3}context[ _](window|length|limit|size)",
    context_sizes=(r"\((?P<count>\d+) tokens\) exceeds the available context size \((?P<limit>\d+) tokens\)",),
    auth_code=r"authentication_error|permission_error",
    rate_limit_code=r"rate_limit",
    overload_code=r"overloaded|UNAVAILABLE|server_error|timeout_error",
    bad_request_code=r"invalid_request_error",
    template_text=(
        r"Jinja Exception|raise_exception|TemplateError|roles must alternate|only supports single tool-calls"
        r"|Tool call IDs should be|System role (is )?not supported|Only [\w, ]*\buser\b[\w, ]* roles are supported"
    ),
)
"""Regular expressions for error codes and error texts of Ollama and llama.cpp. Ollama's server uses llama.cpp."""


class OllamaEndpoint(HttpResponseEndpoint):
    """Endpoint for Ollama's `POST /api/chat`, through `ollama.AsyncClient`.

    The SDK's method `chat` omits call ids, empty strings and unknown keys of tool schemas, both in requests and in
    replies. The endpoint therefore sends the finished JSON through the SDK's HTTP client, with the SDK's base URL,
    headers and API key. The endpoint raises the same errors as the SDK, and does not retry.

    A parameter that is not a field of the API (`temperature`, `num_ctx` …) is sent in `options`. `max_tokens`
    becomes `num_predict`. `extra_headers`, `extra_query` and `timeout` are options of the HTTP client. Without
    `timeout`, there is no time limit.
    """

    path: ClassVar[str] = "/api/chat"
    """URL path of the API."""
    extra = "ollama"
    required_attributes = ("_client", "pull")

    @classmethod
    def check(cls, client: Any) -> None:
        """Raises OptionError if the client is not asynchronous.

        The HTTP client of an asynchronous SDK client has the method `aclose`. A check for `async with` is not
        sufficient, because the SDK's synchronous client supports `async with` too.
        """
        super().check(client)
        if not hasattr(client._client, "aclose"):
            raise OptionError(
                "client", "expected an async client, got ollama.Client", "Pass an ollama.AsyncClient."
            )

    @classmethod
    def open(cls, **options: Any) -> Self:
        """Creates an endpoint with `ollama.AsyncClient(**options)`.

        The option `base_url` is passed as `host`, and `api_key` as a bearer token in the header `authorization`.

        Raises:
            MissingExtraError: The SDK is not installed.
        """
        try:
            import ollama
        except ImportError:
            raise MissingExtraError("ollama", cls.extra, "Calling Ollama") from None
        client_options = dict(options)
        if (key := client_options.pop("api_key", None)) is not None:
            client_options["headers"] = {**(client_options.get("headers") or {}), "authorization": f"Bearer {key}"}
        if (url := client_options.pop("base_url", None)) is not None:
            client_options["host"] = url
        return cls(ollama.AsyncClient(**client_options))

    def build_request(
        self, model: str, request: Mapping[str, Any], options: Mapping[str, Any], *, stream: bool
    ) -> OutgoingRequest:
        """Returns the HTTP request. Parameters that are not fields of the API are sent in the field `options`.

        Raises:
            OptionError: A parameter has the name of a key that the request already sets.
        """
        parameters, http_options = split_http_options(options)
        fields = place_parameters(parameters, request)
        body = {**merge_parameters({"model": model, **request}, fields), "stream": stream}
        return OutgoingRequest(self.path, body, stream, http_options)

    def max_tokens_parameter(self, max_tokens: int) -> dict[str, Any]:
        """Returns the maximum number of output tokens as the parameter `num_predict`."""
        return {"num_predict": max_tokens}

    @asynccontextmanager
    async def open_response(self, outgoing: OutgoingRequest) -> AsyncGenerator[Any]:
        """Sends the request, and yields the HTTP response.

        Raises the same errors as the SDK: ConnectionError and ollama.ResponseError.
        """
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
        """Returns a `Failure` for an error of the SDK or its HTTP client, or None for any other error."""
        import httpx
        from ollama import ResponseError

        if isinstance(error, ResponseError) and isinstance(error.__cause__, httpx.HTTPStatusError):
            return self.failure_from_response(error.__cause__.response)
        if isinstance(error, ConnectionError) or is_transport_error(error):
            return as_network_failure(error)
        return None

    async def aclose(self) -> None:
        """Closes the SDK's client."""
        await self.client.close()


class OllamaRawEndpoint(OllamaEndpoint):
    """Endpoint for Ollama's `POST /api/generate` with a prompt, through `ollama.AsyncClient`.

    The parameter `think` replaces the field `think` of the request.
    """

    path = "/api/generate"

    def build_request(
        self, model: str, request: Mapping[str, Any], options: Mapping[str, Any], *, stream: bool
    ) -> OutgoingRequest:
        """Returns the HTTP request. See `OllamaEndpoint.build_request`."""
        fields = {name: value for name, value in request.items() if name != "think" or name not in options}
        return super().build_request(model, fields, options, stream=stream)


def _refusal(text: str, status: int) -> Exception:
    """Returns the SDK's exception for an error reply.

    The constructor of the exception fails if the text is JSON but not an object. The constructor also fails if the
    JSON is nested too deeply, or if a number has more than 4,300 digits. In these cases, the function calls the
    constructor with a JSON object that contains the text.
    """
    from ollama import ResponseError

    try:
        return ResponseError(text, status)
    except (AttributeError, RecursionError, ValueError):
        return ResponseError(json.dumps({"error": text}), status)
