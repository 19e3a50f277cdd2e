"""`ModelClient`, which opens and closes the SDK client of a model for one event loop."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from math import inf
from threading import Lock
from typing import Any, Final

import anyio
import anyio.to_thread

from agentkit.credentials.credential_checks import check_client, clean_options, find_variable
from agentkit.credentials.redaction import create_redactor, redact_error
from agentkit.errors import AgentkitError, InputError, OptionError, ProviderError
from agentkit.event_loop import get_running_loop, has_ended, run_to_completion
from agentkit.models.endpoint import EndpointBase
from agentkit.models.registry import Provider, available_providers

__all__ = ["CLOSE_SECONDS", "ModelClient"]

CLOSE_SECONDS: Final = 5.0
"""Maximum time to close open connections, in seconds."""


class ModelClient:
    """Object that stores the SDK client of a model.

    The user passes the client, or the first model call opens a client. A client from the user works in any event
    loop that the SDK supports, and stays open until the user closes it. A client that `ModelClient` opens belongs
    to the event loop that is running when the client is opened. After this loop has ended, the next call opens a
    new client. If a client cannot be opened, the error shows no credentials.

    Attributes:
        options: Options for each SDK client that `ModelClient` opens.

    """

    def __init__(self, provider: Provider, client: Any, options: Mapping[str, Any]) -> None:
        self._provider = provider
        self.options = dict(options)
        self._is_own = client is None
        self._endpoint: EndpointBase | None = None
        if client is not None:
            endpoint_class = _get_endpoint_class(provider)
            endpoint_class.check(client)
            check_client(client)
            self._endpoint = endpoint_class(client)
        self._loop: Any = None  # event loop of a client that this object opened
        self._abandoned: EndpointBase | None = None  # endpoint to close, because its event loop has ended
        self._binding = Lock()
        self._opening = anyio.Lock()

    @property
    def endpoint(self) -> EndpointBase | None:
        """Endpoint that uses the client. None if no client is open."""
        return self._endpoint

    async def open(self) -> EndpointBase:
        """Returns the endpoint. Opens a client if no client is open.

        A worker thread opens the client, because the import of an SDK would block the event loop.

        Raises:
            InputError: If the client belongs to another event loop, which is still running.
            OptionError: If the SDK refuses the options.
            MissingExtraError: If the SDK is not installed.
            AuthError: If the SDK needs an API key, and none is configured.
            ProviderError: If the provider has no endpoint.

        """
        if self._is_own:
            self._bind()
        if self._endpoint is not None:
            return self._endpoint
        async with self._opening:
            await self._close_abandoned()
            if self._endpoint is None:
                # A cancellation must not interrupt the opening, because no code could then close the client.
                await run_to_completion(self._open, inf)
            assert self._endpoint is not None
            return self._endpoint

    async def aclose(self) -> None:
        """Closes a client that this object opened. A client from the user stays open."""
        if not self._is_own or self._loop is None:
            return
        self._bind()
        async with self._opening:
            await self._close_abandoned()
            endpoint, self._endpoint = self._endpoint, None
            if endpoint is not None:
                endpoint.closed = True
                await run_to_completion(endpoint.aclose, CLOSE_SECONDS)

    async def _open(self) -> None:
        opening = partial(_open_endpoint, _get_endpoint_class(self._provider), self.options)
        self._endpoint = await anyio.to_thread.run_sync(opening)

    def _bind(self) -> None:
        """Assigns the client to the running event loop, because connections and locks work in only one loop."""
        loop = get_running_loop()
        with self._binding:
            if self._loop is loop:
                return
            if self._loop is not None and not has_ended(self._loop):
                reason = "the client belongs to another event loop, which is still running"
                raise InputError("model", reason, "Create a ChatModel for each event loop.")
            self._loop, self._opening = loop, anyio.Lock()
            self._abandoned, self._endpoint = self._endpoint, None

    async def _close_abandoned(self) -> None:
        """Closes a client whose event loop has ended.

        Ignores errors, because the connections of the client ended with the event loop.
        """
        abandoned, self._abandoned = self._abandoned, None
        if abandoned is not None:
            with suppress(Exception):
                await abandoned.aclose()


def _get_endpoint_class(provider: Provider) -> type[EndpointBase]:
    if provider.endpoint is None:
        raise ProviderError(
            provider.name,
            "the package has no endpoint for model calls",
            available_providers(),
        )
    return provider.endpoint


def _open_endpoint(endpoint: type[EndpointBase], options: Mapping[str, Any]) -> EndpointBase:
    try:
        opened = endpoint.open(**clean_options("client_options", options))
    except Exception as error:
        refusal = _as_opening_error(error, options)
    else:
        check_client(opened.client)
        return opened
    # An error that is raised inside the `except` block has the SDK's error as its `__context__`. The SDK's error
    # may contain an API key, so agentkit's error is raised after the block.
    raise refusal


def _as_opening_error(error: Exception, options: Mapping[str, Any]) -> AgentkitError:
    """Returns the error for rejected client options. The error contains no credentials."""
    place = find_variable(error.object) if isinstance(error, UnicodeEncodeError) else None
    is_clean = redact_error(error, create_redactor(options, error, os.environ))
    if isinstance(error, AgentkitError):
        return error
    reason = str(error) if is_clean else f"{type(error).__name__} (text hidden, because it shows a credential)"
    refusal = OptionError(place or "client_options", reason, "Pass options that the SDK's client accepts.")
    if is_clean:
        refusal.__cause__ = error
    return refusal
