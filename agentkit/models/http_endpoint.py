"""`HttpEndpoint`, the base class of endpoints for APIs that have no Python SDK."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Any, ClassVar, Self

from agentkit.errors import AuthError, MissingExtraError
from agentkit.json_values import as_object
from agentkit.models.endpoint import OutgoingRequest, merge_parameters
from agentkit.models.http_client import as_network_failure, is_transport_error, split_http_options
from agentkit.models.http_response_endpoint import HttpResponseEndpoint
from agentkit.replies.error_bodies import Failure

__all__ = ["HttpEndpoint"]

_TIMEOUT_SECONDS = 600.0


class HttpEndpoint(HttpResponseEndpoint):
    """Endpoint that sends requests as JSON with `httpx2.AsyncClient`. Requires the extra `fetch`.

    A subclass sets the class attributes. The body contains `model`, `stream`, the keys of the formatter's
    request, and the parameters. The API key is sent as `Authorization: Bearer KEY`. Failed calls are not retried.

    If the URL contains the model, override `build_request`:

        def build_request(self, model, request, options, *, stream):
            parameters, http_options = split_http_options(options)
            path = f"/model/{quote(model, safe='')}/{'stream' if stream else 'call'}"
            return OutgoingRequest(path, merge_parameters(request, parameters), stream, http_options)

    Attributes:
        provider: Name of the provider in error texts.
        base_url: URL of the API.
        path: Path of model calls, relative to `base_url`.
        key_variable: Environment variable with the API key. Empty if the API needs no key.

    """

    extra: ClassVar[str] = "fetch"
    required_attributes: ClassVar[tuple[str, ...]] = ("post", "stream")
    provider: ClassVar[str]
    base_url: ClassVar[str]
    path: ClassVar[str]
    key_variable: ClassVar[str] = ""

    @classmethod
    def open(cls, *, api_key: str | None = None, base_url: str | None = None, **options: Any) -> Self:
        """Returns an endpoint with a new client.

        Args:
            api_key: API key. None means the value of the environment variable that `key_variable` names.
            base_url: URL of the API. None means the class attribute `base_url`.
            **options: Further options of `httpx2.AsyncClient`.

        Raises:
            MissingExtraError: If httpx2 is not installed.
            AuthError: If the API needs a key, but neither `api_key` nor the environment variable is set.

        """
        try:
            import httpx2
        except ImportError:
            raise MissingExtraError("httpx2", cls.extra, f"Calling {cls.provider}") from None
        key = api_key or os.environ.get(cls.key_variable)
        if cls.key_variable and not key:
            raise AuthError(cls.provider, f"no API key: neither api_key nor {cls.key_variable} is set")
        authorization = {"authorization": f"Bearer {key}"} if key else {}
        headers = {**authorization, **as_object(options.pop("headers", None))}
        options = {"base_url": base_url or cls.base_url, "timeout": _TIMEOUT_SECONDS, **options}
        return cls(httpx2.AsyncClient(headers=headers, **options))

    def build_request(
        self, model: str, request: Mapping[str, Any], options: Mapping[str, Any], *, stream: bool
    ) -> OutgoingRequest:
        """Returns the request, with the model in the body. Headers, query and timeout become HTTP options.

        Raises:
            OptionError: If the request already has a key with the name of a parameter, unless the values of both
                are objects. In this case, the two objects are merged.

        """
        parameters, http_options = split_http_options(options)
        body = merge_parameters({"model": model, "stream": stream, **request}, parameters)
        return OutgoingRequest(self.path, body, stream, http_options)

    async def post_json(self, path: str, body: Mapping[str, Any]) -> Any:
        """Posts a JSON body to a path of the API, for example to count tokens, and returns the JSON of the reply.

        Raises:
            httpx2.HTTPError: If the API refuses the body, or if the connection fails.
            ValueError: If the reply is not JSON.

        """
        response = await self.client.post(path, json=dict(body))
        return response.raise_for_status().json()

    @asynccontextmanager
    async def open_response(self, outgoing: OutgoingRequest) -> AsyncGenerator[Any]:
        """Sends the request and yields the response. For an error status, raises `httpx2.HTTPStatusError`."""
        async with self.client.stream("POST", outgoing.path, json=outgoing.body, **outgoing.options) as response:
            if not response.is_success:
                await response.aread()  # the body contains the error text
            yield response.raise_for_status()

    def failure_from_exception(self, error: BaseException) -> Failure | None:
        """Returns the failure for an HTTP error status or a failed connection, or None for any other error."""
        import httpx2

        if isinstance(error, httpx2.HTTPStatusError):
            return self.failure_from_response(error.response)
        return as_network_failure(error) if is_transport_error(error) else None

    async def aclose(self) -> None:
        """Closes the client."""
        await self.client.aclose()
