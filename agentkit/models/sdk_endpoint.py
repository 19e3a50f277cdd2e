"""`SDKEndpoint`, the base class of endpoints for SDKs that the code generator Stainless creates."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from importlib import import_module
from typing import Any, ClassVar, Self, cast

from agentkit.errors import AuthError, MissingExtraError
from agentkit.models.endpoint import OutgoingRequest, dump_body
from agentkit.models.http_client import as_network_failure, is_transport_error
from agentkit.models.http_response_endpoint import HttpResponseEndpoint
from agentkit.replies.error_bodies import Failure, parse_failure

__all__ = ["SDKEndpoint"]


class SDKEndpoint(HttpResponseEndpoint):
    """Endpoint that passes the finished body to the `post` method of an SDK's async client.

    The SDKs of OpenAI and Anthropic both have this method and the same names of error classes, because the code
    generator Stainless creates both SDKs.

    Attributes:
        provider: Name of the provider in error texts.
        sdk: Name of the SDK's package.
        client_class: Name of the SDK's async client class. `open` creates an object of this class.
        error_class: Name of the base class of the SDK's errors.
        no_key: Pattern for the text of the SDK's error about missing credentials.

    """

    provider: ClassVar[str]
    sdk: ClassVar[str]
    client_class: ClassVar[str]
    error_class: ClassVar[str]
    no_key: ClassVar[re.Pattern[str]]

    @classmethod
    def import_sdk(cls) -> Any:
        """Imports and returns the SDK's package.

        Raises:
            MissingExtraError: If the SDK is not installed.

        """
        try:
            return import_module(cls.sdk)
        except ImportError:
            raise MissingExtraError(cls.sdk, cls.extra, f"Calling {cls.provider}") from None

    @classmethod
    def open(cls, **options: Any) -> Self:
        """Returns an endpoint with a new client of the SDK.

        Args:
            **options: Options of the SDK's client.

        Raises:
            MissingExtraError: If the SDK is not installed.
            AuthError: If the SDK needs an API key, and none is configured.

        """
        sdk = cls.import_sdk()
        try:
            return cls(getattr(sdk, cls.client_class)(**options))
        except getattr(sdk, cls.error_class) as error:
            raise AuthError(cls.provider, str(error)) from error

    @asynccontextmanager
    async def open_response(self, outgoing: OutgoingRequest) -> AsyncGenerator[Any]:
        """Sends the request through the SDK, and yields the HTTP response."""
        response = await self.post(outgoing)
        try:
            yield response
        finally:
            await response.aclose()

    async def post(self, outgoing: OutgoingRequest) -> Any:
        """Sends the request through the SDK, and returns the HTTP response unparsed."""
        import httpx2

        sdk = self.import_sdk()
        # Clients for cloud platforms, and clients with middleware, need the body as a dict, because they read or
        # change the body. Any other client gets finished bytes, because sending bytes is faster.
        has_middleware = bool(getattr(self.client, "middleware", ()))
        reads_body = has_middleware or self.client.__class__ is not getattr(sdk, self.client_class)
        content = None if reads_body else dump_body(outgoing.body)
        return await self.client.post(
            outgoing.path,
            # `cast_to` makes the SDK return the response unparsed. A client that uses httpx returns an
            # httpx.Response.
            cast_to=httpx2.Response,
            **({"body": outgoing.body} if content is None else {"content": content}),
            options=dict(outgoing.options),
            stream=outgoing.stream,
            stream_cls=sdk.AsyncStream[object] if outgoing.stream else None,
        )

    def failure_from_exception(self, error: BaseException) -> Failure | None:
        """Returns the failure for an exception of the SDK or its HTTP client, and None for any other exception."""
        sdk, sdk_error = self.import_sdk(), cast("Any", error)
        if isinstance(error, sdk.APIConnectionError) or is_transport_error(error):
            return as_network_failure(error)
        if isinstance(error, sdk.APIStatusError):
            return self.failure_from_status_error(error)
        if isinstance(error, sdk.APIError):
            return parse_failure(sdk_error.body) or Failure(sdk_error.message, code=getattr(error, "code", None))
        lacks_key = isinstance(error, Exception) and self.no_key.search(str(error)) is not None
        if lacks_key or isinstance(error, getattr(sdk, self.error_class)):
            return Failure(str(error), code="authentication_error" if lacks_key else None)
        return None

    def failure_from_status_error(self, error: Any) -> Failure:
        """Returns the failure for an error of the SDK's class `APIStatusError`."""
        return self.failure_from_response(error.response)

    async def aclose(self) -> None:
        """Closes the client of the SDK."""
        await self.client.close()
