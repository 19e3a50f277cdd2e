"""`EndpointBase`: a provider's official SDK client, and how a finished request goes out through it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any, ClassVar, Self

from agentkit.failures import Failure

__all__ = ["EndpointBase"]


class EndpointBase(ABC):
    """One provider's SDK client. The SDK owns retries, credentials and transport; this owns nothing else.

    Requests go out as finished bodies, through the client's own `post` or its equivalent, and replies come back
    unparsed: the SDK's walk over its types is gone round, its retries and errors are kept.

    A provider's class imports its SDK in `open` alone, and works with any client of the SDK's that its user
    brings: Azure's, Bedrock's, Vertex's.
    """

    extra: ClassVar[str]
    """The extra of this distribution that installs the SDK."""

    def __init__(self, client: Any) -> None:
        self.client = client

    @classmethod
    @abstractmethod
    def open(cls, **options: Any) -> Self:
        """The SDK's async client, made with its own options (`api_key`, `base_url` …), which it checks.

        Raises MissingExtraError without the SDK, AuthError where the SDK wants a key that it was not given.
        """

    @abstractmethod
    def body(self, model: str, request: Mapping[str, Any], options: Mapping[str, Any], *, stream: bool) -> Any:
        """What goes out: the request, the model, and further parameters of the provider's. Pure."""

    @abstractmethod
    async def send(self, body: Any) -> Mapping[str, Any] | bytes:
        """The whole reply, as JSON text or values."""

    @abstractmethod
    def stream(self, body: Any) -> AbstractAsyncContextManager[AsyncIterator[Any]]:
        """The reply's raw bytes, or its events, as they come. Leaving the context closes the connection."""

    @abstractmethod
    def failure(self, error: BaseException) -> Failure | None:
        """What an error of the SDK's, or of its transport, says; None for an error that is neither's."""

    @abstractmethod
    async def aclose(self) -> None:
        """Close the client that `open` opened."""
