"""`Fetch`: how media at http and https URLs are downloaded, if at all, and from where never.

An address in a message is anybody's text. So a host is resolved here, all its addresses are judged before
any is connected to, and the connection goes to one of exactly these: nothing resolves the name a second time.
Every redirect is judged anew.
"""

from __future__ import annotations

import logging
import socket
from collections.abc import AsyncGenerator, Hashable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import cache, partial
from importlib import import_module
from socket import SOCK_STREAM, gaierror
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import anyio
import anyio.lowlevel
from anyio.lowlevel import RunVar

from agentkit.argument_checks import check_option
from agentkit.errors import MissingExtraError, OptionError
from agentkit.loggers import get_logger
from agentkit.media.cache import MediaCache
from agentkit.media.resolution import in_utf8, true_type, warm
from agentkit.messages.media_types import canonical_media_type, is_media_type, is_text_type
from agentkit.messages.sources import (
    Base64Source,
    URLSource,
    encode_base64,
)
from agentkit.reprs import bounded_repr

if TYPE_CHECKING:
    import ssl

    import httpx2

__all__ = ["Fetch", "fetch_media", "recount"]


_log = get_logger("media")


@dataclass(frozen=True, kw_only=True)
class Fetch:
    """How a formatter downloads media that its target cannot fetch by itself. Needs the extra `fetch`.

    max_bytes      the largest body that is taken
    timeout        seconds for one download, from looking up the name to the last byte
    max_redirects  how many redirects are followed
    max_concurrency  how many downloads one request has under way at the same time
    allow_private  whether this machine and private networks may be asked too: for servers of your own.
                   Addresses where clouds hand out keys, all link-local ones among them, stay out of bounds
    cache          where downloads are kept for the next request; without one, each request downloads again

    Only http and https, never from https back to http. No proxy, cookie, credential or compression is used.
    """

    max_bytes: int = 20_000_000
    timeout: float = 30.0
    max_redirects: int = 5
    max_concurrency: int = 8
    allow_private: bool = False
    cache: MediaCache | None = None

    __repr__ = bounded_repr

    def __post_init__(self) -> None:
        for name, least in (("max_bytes", 1), ("max_redirects", 0), ("max_concurrency", 1)):
            given: object = getattr(self, name)
            if type(given) is not int or given < least:
                raise OptionError(f"fetch.{name}", f"{given!r} is no number from {least} on", "Give one.")
        if type(self.timeout) not in (int, float) or not 0 < self.timeout < float("inf"):
            raise OptionError("fetch.timeout", f"{self.timeout!r} is no number of seconds", "Give one above 0.")
        check_option("fetch.allow_private", self.allow_private, bool)
        check_option("fetch.cache", self.cache, MediaCache | None)

    def check_installed(self) -> None:
        """Raise MissingExtraError unless the HTTP client is installed."""
        from importlib.util import find_spec

        if find_spec("httpx2") is None:
            raise MissingExtraError("httpx2", "fetch", "Fetching media")


async def fetch_media(source: URLSource, fetch: Fetch) -> Base64Source | str:
    """What stands at a URL, with its media type, or a reason why there is nothing: no secret in it, no error."""
    load = partial(_logged, source, fetch)
    return await (load() if fetch.cache is None else fetch.cache.get(_key(source, fetch), load))


def recount(sources: Iterable[URLSource], fetch: Fetch) -> None:
    """Have the cache count the smaller copies that were made of what it holds."""
    if fetch.cache is not None:
        for source in sources:
            fetch.cache.recount(_key(source, fetch))


def _key(source: URLSource, fetch: Fetch) -> Hashable:
    """Under which a download is kept: nobody gets what his own terms forbid."""
    return source.url, source.media_type, fetch.max_bytes, fetch.timeout, fetch.max_redirects, fetch.allow_private


class _RefusedError(Exception):
    """Nothing may or can be had from there."""


async def _logged(source: URLSource, fetch: Fetch) -> Base64Source | str:
    found = await _fetch(source, fetch)
    if _log.isEnabledFor(logging.DEBUG):
        host = _host(source.url)
        if isinstance(found, str):
            _log.debug("not fetched from %s: %s", host, found)
        else:
            _log.debug("fetched from %s: %s, %d characters of base64", host, found.media_type, len(found.data))
    return found


def _host(url: str) -> str:
    """Returns the host of a URL: the rest may hold a key."""
    try:
        return urlsplit(url).hostname or "an unknown host"
    except ValueError:
        return "an unknown host"


async def _fetch(source: URLSource, fetch: Fetch) -> Base64Source | str:
    try:
        with anyio.fail_after(fetch.timeout):
            body, named = await _download(source.url, fetch)
            return await anyio.to_thread.run_sync(_as_source, source, body, named)
    except _RefusedError as refused:
        return str(refused)
    except TimeoutError:
        return f"a remote URL that took longer than {fetch.timeout:g} seconds"
    except gaierror:
        return "a remote URL whose host is not known"
    except Exception:  # whatever a server makes a client raise: one picture is not the conversation
        return "a remote URL that cannot be fetched"


# -- the way there -----------------------------------------------------------------------------------------


async def _download(address: str, fetch: Fetch) -> tuple[bytearray, str]:
    """The body, and the media type that the server gave it."""
    await anyio.to_thread.run_sync(_load_client)
    import httpx2

    url = httpx2.URL(address.strip())
    for _ in range(fetch.max_redirects + 1):
        async with _opened(url, fetch) as response:
            if not response.has_redirect_location:
                return await _body(response, fetch.max_bytes), response.headers.get("content-type", "")
            url = _next(url, response.headers["location"])
    raise _RefusedError(f"a remote URL that redirects more than {fetch.max_redirects} times")


@cache
def _load_client() -> None:
    """Import what a download needs, which takes a while: once, and in a thread."""
    import httpx2

    import_module("agentkit.media.addresses")  # only who fetches pays for the tables
    httpx2.AsyncHTTPTransport(verify=False, trust_env=False)  # it imports the rest when it is made


def _next(url: httpx2.URL, location: str) -> httpx2.URL:
    there = url.join(location)
    if url.scheme == "https" and there.scheme == "http":
        raise _RefusedError("a remote URL that redirects from https to http")
    return there


@asynccontextmanager
async def _opened(url: httpx2.URL, fetch: Fetch) -> AsyncGenerator[httpx2.Response, None]:
    """The answer of one hop, its body unread, over a connection of its own to an address that was judged."""
    import httpx2

    if url.scheme not in ("http", "https") or not url.host:
        raise _RefusedError("a remote URL that is not http or https all the way")
    if url.userinfo:
        raise _RefusedError("a remote URL with credentials in it")
    addresses = await _judged(url, fetch)
    context = await _tls() if url.scheme == "https" else False
    async with httpx2.AsyncHTTPTransport(verify=context, trust_env=False) as transport:
        response = await _ask(transport, url, addresses, fetch.timeout / len(addresses))
        try:
            yield response
        finally:
            await response.aclose()


async def _judged(url: httpx2.URL, fetch: Fetch) -> list[str]:
    """The addresses of a host, if every one of them may be asked."""
    from agentkit.media.addresses import is_local, is_public

    host = url.raw_host.decode("ascii")
    addresses = await resolve(host.strip("[]"), url.port or (443 if url.scheme == "https" else 80))
    allowed = all(is_public(one) or (fetch.allow_private and is_local(one)) for one in addresses)
    if not addresses or not allowed:
        raise _RefusedError("a remote URL at an address that is not public")
    return addresses


async def resolve(host: str, port: int) -> list[str]:
    """The addresses of a host, each once, in the resolver's order.

    In threads of our own: a name server that does not answer holds up nobody who uses the event loop's few.
    """
    limiter = _lookups.get(None)
    if limiter is None:
        limiter = anyio.CapacityLimiter(_LOOKUPS)
        _lookups.set(limiter)
    look_up = partial(socket.getaddrinfo, host, port, type=SOCK_STREAM)
    found = await anyio.to_thread.run_sync(look_up, abandon_on_cancel=True, limiter=limiter)
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


_LOOKUPS = 16  # at the same time
_lookups: RunVar[anyio.CapacityLimiter] = RunVar("agentkit_lookups")


async def _ask(
    transport: httpx2.AsyncHTTPTransport, url: httpx2.URL, addresses: list[str], patience: float
) -> httpx2.Response:
    """The answer of the first address that can be connected to, under the name that the URL has."""
    import httpx2

    for left, address in zip(reversed(range(len(addresses))), addresses, strict=True):
        request = httpx2.Request(
            "GET",
            url.copy_with(host=address),
            headers={**_HEADERS, "Host": url.netloc.decode("ascii")},
            # The name for SNI and for checking the certificate.
            extensions={"sni_hostname": url.raw_host.decode("ascii"), "timeout": {"connect": patience}},
        )
        try:
            return await transport.handle_async_request(request)
        except (httpx2.ConnectError, httpx2.ConnectTimeout):
            if not left:
                raise
    raise AssertionError("there was an address")


_HEADERS = {"Accept": "*/*", "Accept-Encoding": "identity", "Connection": "close", "User-Agent": "agentkit"}


async def _tls() -> ssl.SSLContext:
    """The machine's trusted roots, loaded once and off the event loop."""
    return await anyio.to_thread.run_sync(tls_context)


@cache
def tls_context() -> ssl.SSLContext:
    """The client's own context, whatever the environment says."""
    import httpx2

    return httpx2.create_ssl_context(trust_env=False)


# -- what came of it ---------------------------------------------------------------------------------------


async def _body(response: httpx2.Response, max_bytes: int) -> bytearray:
    """The body as it was sent, as long as it stays within the limit: a server's word on its length is none.

    Tiny pieces cost time, not bytes: hence a limit to their number too. (Interim answers without end, as
    `100 Continue`, are the client's own affair: they end with the timeout.)
    """
    status = response.status_code
    if status != 200:
        raise _RefusedError(f"a remote URL that was answered with status {status}")
    if response.headers.get("content-encoding", "identity").lower() != "identity":
        raise _RefusedError("a remote URL whose content comes compressed though it was asked for as it is")
    too_large = _RefusedError(f"a remote URL whose content is larger than {max_bytes} bytes")
    said = response.headers.get("content-length", "")
    if said.isdecimal() and int(said) > max_bytes:
        raise too_large
    refusal: _RefusedError | None = None
    body, pieces = bytearray(), 0
    with anyio.CancelScope() as scope:
        async for piece in response.aiter_raw():
            pieces += 1
            if len(body) + len(piece) > max_bytes:
                refusal = too_large
            elif pieces > _PIECES + max_bytes // _PIECE:
                refusal = _RefusedError("a remote URL whose content comes in absurdly many pieces")
            if refusal is None:
                body += piece
            else:
                scope.cancel()  # ends the client's generators from within: trio warns of any left half-way
            if pieces % _BETWEEN == 0:  # the client takes apart what has arrived without a pause
                await anyio.lowlevel.cancel_shielded_checkpoint()
    if refusal is not None:
        raise refusal
    return body


_PIECES, _PIECE = 4096, 512  # a body may come in so many pieces, and one more for each so many bytes allowed
_BETWEEN = 32  # pieces between two turns of the event loop


def _as_source(source: URLSource, body: bytearray, named: str) -> Base64Source | str:
    """The body as base64 text, with the type that its own bytes tell, or else the one it was given."""
    data = encode_base64(body)
    if not data:
        return "a remote URL with nothing at it"
    claimed = _claimed(source, named)
    media_type = true_type(data, claimed)
    if media_type is None:
        what = f"is no {claimed}" if claimed else "has no known media type"
        return f"a remote URL whose content {what}"
    named_charset = source.media_type or named
    found = Base64Source(media_type, in_utf8(data, named_charset) if is_text_type(media_type) else data)
    warm(found)
    return found


def _claimed(source: URLSource, named: str) -> str | None:
    """The media type that the block, the server or the URL names, in this order; None if none says anything."""
    server = canonical_media_type(named) if is_media_type(named) else ""
    candidates = (source.media_type or "", "" if server in _SAYS_NOTHING else server, source.guessed_type or "")
    return next((canonical_media_type(one) for one in candidates if one), None)


_SAYS_NOTHING = frozenset({"application/octet-stream", "binary/octet-stream", "application/x-download"})
