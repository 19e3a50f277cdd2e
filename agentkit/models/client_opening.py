"""Opening of an SDK client. No error of it shows a credential."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from agentkit.credentials.client_options import check_client, clean_options, find_variable
from agentkit.credentials.redaction import create_redactor, redact_error
from agentkit.errors import AgentkitError, OptionError, ProviderError
from agentkit.models.endpoint import EndpointBase
from agentkit.models.registry import Provider, available_providers

__all__ = ["get_endpoint", "open_endpoint"]


def get_endpoint(provider: Provider) -> type[EndpointBase]:
    """Returns the endpoint class of a provider. Raises ProviderError if its models cannot be called."""
    if provider.endpoint is None:
        raise ProviderError(provider.name, "it has no endpoint to call", available_providers())
    return provider.endpoint


def open_endpoint(endpoint: type[EndpointBase], options: Mapping[str, Any]) -> EndpointBase:
    """Returns an endpoint with a new client.

    Raises:
        OptionError: If the SDK refuses the options. The error shows no credential of options or environment.
        MissingExtraError: If the SDK is not installed.
        AuthError: If the SDK needs a key and finds none.
    """
    try:
        opened = endpoint.open(**clean_options("client_options", options))
    except Exception as error:
        refusal = _as_opening_error(error, options)
    else:
        check_client(opened.client)
        return opened
    raise refusal  # outside the handler, so that an error that shows a key does not become its context


def _as_opening_error(error: Exception, options: Mapping[str, Any]) -> AgentkitError:
    """Returns the error for an SDK that refuses its options, without credentials of options or environment."""
    place = find_variable(error.object) if isinstance(error, UnicodeEncodeError) else None
    is_clean = redact_error(error, create_redactor(options, error, os.environ))
    if isinstance(error, AgentkitError):
        return error
    reason = str(error) if is_clean else f"{type(error).__name__} (its text shows a credential)"
    refusal = OptionError(place or "client_options", reason, "Pass options that the SDK's client accepts.")
    if is_clean:
        refusal.__cause__ = error
    return refusal
