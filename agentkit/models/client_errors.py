"""`find_client_error`, which recognizes errors that a wrong use of a client causes.

Examples are a closed client, a client of another event loop, an invalid URL, and an invalid header. None of these
errors is retryable, because a retry with the same client fails again.
"""

from __future__ import annotations

import re
from typing import Final

from agentkit.errors import NetworkError, OptionError
from agentkit.replies.error_bodies import Failure

__all__ = ["create_closed_error", "find_client_error"]

_FOREIGN_LOOP: Final = re.compile(
    r"no running event loop|different (event )?loop|loop is closed|called from async context"
)
"""Pattern for error texts about connections or locks that belong to another event loop.

asyncio, trio and HTTP clients write these texts.
"""
_CLOSED_CLIENT: Final = re.compile(r"client has been closed|client is closed|session is closed", re.IGNORECASE)
_ADDRESS_ERRORS: Final = frozenset({"InvalidURL", "NonHttpUrlClientError", "UnsupportedProtocol"})
"""Names of the classes that httpx and aiohttp raise for an invalid URL."""


def find_client_error(
    error: BaseException, failure: Failure | None, provider: str, *, closed: bool
) -> NetworkError | OptionError | None:
    """Returns the error to raise if a wrong use of the client caused an exception. Returns None otherwise.

    Args:
        error: The exception of the SDK or its HTTP client.
        failure: Failure that the endpoint read from the exception. None if the exception is not an error of the
            API or of the network.
        provider: Name of the provider.
        closed: True if the `ChatModel` was closed.
    """
    if _is_header_error(error):
        reason = "the API key or a header contains a character that HTTP headers do not allow"
        return OptionError("client", reason, "Pass the exact API key, and header values in printable ASCII.")
    runtime_error = _find_runtime_error(error)
    if closed and (runtime_error or (failure and failure.network)):
        return create_closed_error(provider)
    if runtime_error and _CLOSED_CLIENT.search(str(runtime_error)):
        advice = "Keep the client open until the last call has ended."
        return _client_error(provider, f"the client is closed ({runtime_error})", advice)
    if runtime_error and _FOREIGN_LOOP.search(str(runtime_error)):
        advice = "Create a ChatModel with its own client for each event loop."
        reason = f"the client has open connections in another event loop ({runtime_error})"
        return _client_error(provider, reason, advice)
    if failure and failure.network and _is_address_error(error):
        return _client_error(
            provider, failure.message, "Pass a base_url that begins with 'http://' or 'https://'."
        )
    return None


def create_closed_error(provider: str) -> NetworkError:
    """Returns the error to raise for a call during which the `ChatModel` was closed."""
    return _client_error(
        provider, "the model was closed during the call", "Close the model only after all its calls have ended."
    )


def _client_error(provider: str, reason: str, advice: str) -> NetworkError:
    return NetworkError(provider, reason, retryable=False, advice=advice)


def _is_address_error(error: BaseException | None) -> bool:
    """Returns True if an HTTP client rejected the URL. In this case, a retry cannot help."""
    while error is not None and type(error).__name__ not in _ADDRESS_ERRORS:
        error = error.__cause__ or error.__context__
    return error is not None


def _is_header_error(error: BaseException | None) -> bool:
    """Returns True if an HTTP client rejected the value of a header.

    For such a value, httpx and aiohttp raise UnicodeEncodeError. h11 raises an error with the text "Illegal
    header".
    """
    while error is not None:
        if isinstance(error, UnicodeEncodeError) or "Illegal header" in str(error):
            return True
        error = error.__cause__
    return False


def _find_runtime_error(error: BaseException) -> RuntimeError | None:
    """Returns `error` if it is a RuntimeError, or else its cause if the cause is a RuntimeError, or else None.

    Ignores subclasses of RuntimeError.
    """
    return next((item for item in (error, error.__cause__) if type(item) is RuntimeError), None)
