"""Sends HTTP requests for media, by default to public network addresses only.

A URL in a message is untrusted text. Therefore this module looks up the host name once, checks all addresses of
the host, and connects only to a checked address. A second lookup could return an unchecked address. Each redirect
is checked in the same way.
"""

from __future__ import annotations

import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from functools import cache, partial
from importlib import import_module
from socket import SOCK_STREAM
from typing import TYPE_CHECKING

import anyio
import anyio.lowlevel
from anyio.lowlevel import RunVar

if TYPE_CHECKING:
    import ssl

    import httpx2

__all__ = ["DownloadRefusedError", "download", "resolve", "tls_context"]


class DownloadRefusedError(Exception):
    """Error for a URL that must not be opened, or whose response is refused.

    The error text becomes part of the ledger reason for the omitted media.
    """


async def download(
    url: str, *, max_bytes: int, max_redirects: int, connect_timeout: float, allow_private: bool
) -> tuple[bytearray, str]:
    """Downloads a URL. Returns the body, and the content type that the server declares.

    `max_bytes` is the maximum size of the body. `connect_timeout` is in seconds, and is divided among the
    addresses of a host. `allow_private` allows connections to this machine and to private networks.

    Raises:
        DownloadRefusedError: The URL or a redirect must not be opened, or the response is refused because of its
            status or body.
        Exception: The HTTP client raised a network error.
    """
    await anyio.to_thread.run_sync(_load_client)
    import httpx2

    target = httpx2.URL(url.strip())
    for _ in range(max_redirects + 1):
        async with _connect(target, connect_timeout, allow_private) as response:
            if not response.has_redirect_location:
                return await _read_body(response, max_bytes), response.headers.get("content-type", "")
            target = _next_url(target, response.headers["location"])
    raise DownloadRefusedError(f"the URL redirects more than {max_redirects} times")


@cache
def _load_client() -> None:
    """Imports the HTTP client, and the module that checks if an IP address is public or local.

    The imports are slow, so this function runs in a worker thread.
    """
    import httpx2

    import_module("agentkit.media.addresses")
    httpx2.AsyncHTTPTransport(verify=False, trust_env=False)  # creating a transport imports more modules


def _next_url(url: httpx2.URL, location: str) -> httpx2.URL:
    target = url.join(location)
    if url.scheme == "https" and target.scheme == "http":
        raise DownloadRefusedError("the URL redirects from https to http")
    return target


@asynccontextmanager
async def _connect(
    url: httpx2.URL, connect_timeout: float, allow_private: bool
) -> AsyncGenerator[httpx2.Response, None]:
    """Connects to a checked address of the host, and yields the response before its body is read."""
    import httpx2

    if url.scheme not in ("http", "https") or not url.host:
        raise DownloadRefusedError("the URL, or a redirect, is not an http or https URL")
    if url.userinfo:
        raise DownloadRefusedError("the URL, or a redirect, contains credentials")
    addresses = await _resolve_checked(url, allow_private)
    context = await anyio.to_thread.run_sync(tls_context) if url.scheme == "https" else False
    async with httpx2.AsyncHTTPTransport(verify=context, trust_env=False) as transport:
        response = await _send(transport, url, addresses, connect_timeout / len(addresses))
        try:
            yield response
        finally:
            await response.aclose()


async def _resolve_checked(url: httpx2.URL, allow_private: bool) -> list[str]:
    """Returns the addresses of a host. Raises DownloadRefusedError if any address is not allowed."""
    from agentkit.media.addresses import is_local, is_public

    host = url.raw_host.decode("ascii")
    addresses = await resolve(host.strip("[]"), url.port or (443 if url.scheme == "https" else 80))
    allowed = all(is_public(address) or (allow_private and is_local(address)) for address in addresses)
    if not addresses or not allowed:
        raise DownloadRefusedError("the host of the URL has an IP address that is not public")
    return addresses


async def resolve(host: str, port: int) -> list[str]:
    """Returns the addresses of a host without duplicates, in the order that the operating system returns.

    DNS lookups run in separate worker threads, so that a slow name server delays no other work.
    """
    limiter = _lookup_limiter.get(None)
    if limiter is None:
        limiter = anyio.CapacityLimiter(_MAX_LOOKUPS)
        _lookup_limiter.set(limiter)
    look_up = partial(socket.getaddrinfo, host, port, type=SOCK_STREAM)
    entries = await anyio.to_thread.run_sync(look_up, abandon_on_cancel=True, limiter=limiter)
    return list(dict.fromkeys(str(entry[4][0]) for entry in entries))


_MAX_LOOKUPS = 16  # maximum number of concurrent DNS lookups
_lookup_limiter: RunVar[anyio.CapacityLimiter] = RunVar("agentkit_lookups")


async def _send(
    transport: httpx2.AsyncHTTPTransport, url: httpx2.URL, addresses: list[str], connect_timeout: float
) -> httpx2.Response:
    """Returns the response from the first address that accepts a connection.

    The `Host` header contains the host name of the URL, not the IP address.
    """
    import httpx2

    for address in addresses:
        request = httpx2.Request(
            "GET",
            url.copy_with(host=address),
            headers={**_HEADERS, "Host": url.netloc.decode("ascii")},
            # The URL of the request has the IP address instead of the host name.
            # TLS needs the host name for SNI and for checking the certificate.
            extensions={"sni_hostname": url.raw_host.decode("ascii"), "timeout": {"connect": connect_timeout}},
        )
        try:
            return await transport.handle_async_request(request)
        except (httpx2.ConnectError, httpx2.ConnectTimeout):
            if address == addresses[-1]:
                raise
    raise AssertionError("addresses: expected at least one IP address, got none. Pass the result of resolve().")


_HEADERS = {"Accept": "*/*", "Accept-Encoding": "identity", "Connection": "close", "User-Agent": "agentkit"}


@cache
def tls_context() -> ssl.SSLContext:
    """Returns a TLS context with the default root certificates. Environment variables have no effect.

    The first call reads files and blocks the calling thread. Later calls return the same context.
    """
    import httpx2

    return httpx2.create_ssl_context(trust_env=False)


async def _read_body(response: httpx2.Response, max_bytes: int) -> bytearray:
    """Reads the body of a response.

    Raises DownloadRefusedError if the status is not 200, or if the body is compressed or too large.

    `max_bytes` limits the received bytes, because a server can declare a wrong length. The number of chunks has a
    limit too, because reading very many small chunks is slow. If a server never stops sending interim responses
    such as `100 Continue`, the timeout in `fetch_media` ends the download.
    """
    status = response.status_code
    if status != 200:
        raise DownloadRefusedError(f"the request to the URL returned status {status}")
    if response.headers.get("content-encoding", "identity").lower() != "identity":
        raise DownloadRefusedError("the server at the URL compressed the content, which the request did not allow")
    too_large = DownloadRefusedError(f"the content of the URL is larger than {max_bytes} bytes")
    declared_length = response.headers.get("content-length", "")
    if declared_length.isdecimal() and int(declared_length) > max_bytes:
        raise too_large
    refusal: DownloadRefusedError | None = None
    body, count = bytearray(), 0
    with anyio.CancelScope() as scope:
        async for chunk in response.aiter_raw():
            count += 1
            if len(body) + len(chunk) > max_bytes:
                refusal = too_large
            elif count > _BASE_CHUNKS + max_bytes // _BYTES_PER_CHUNK:
                refusal = DownloadRefusedError("the server at the URL split the content into too many pieces")
            if refusal is None:
                body += chunk
            else:
                # `cancel` also closes the generators of the HTTP client. Trio would warn about open generators.
                scope.cancel()
            if count % _CHUNKS_PER_CHECKPOINT == 0:  # the HTTP client does not let other tasks run between chunks
                await anyio.lowlevel.cancel_shielded_checkpoint()
    if refusal is not None:
        raise refusal
    return body


# A body may have at most 4096 chunks, plus one chunk for each 512 bytes of `max_bytes`.
_BASE_CHUNKS, _BYTES_PER_CHUNK = 4096, 512
_CHUNKS_PER_CHECKPOINT = 32
