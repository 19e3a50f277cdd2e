"""`Fetch`, the options for downloading media, and `fetch_media`, which downloads the media at one URL.

`agentkit.media.safe_http` connects to the server and reads the body. This module converts the body to a media
source. If the download fails, this module returns a reason for the ledger.
"""

from __future__ import annotations

import logging
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from functools import partial
from socket import gaierror
from urllib.parse import urlsplit

import anyio

from agentkit.argument_checks import check_int, check_option
from agentkit.errors import MissingExtraError, OptionError
from agentkit.loggers import get_logger
from agentkit.media.cache import MediaCache
from agentkit.media.resolution import convert_to_utf8, detect_type, fill_caches
from agentkit.media.safe_http import DownloadRefusedError, download
from agentkit.messages.media_types import canonical_media_type, is_media_type, is_text_type
from agentkit.messages.sources import (
    Base64Source,
    URLSource,
    encode_base64,
)
from agentkit.reprs import bounded_repr, shorten_repr

__all__ = ["Fetch", "fetch_media", "update_cache_sizes"]


_log = get_logger("media")


@dataclass(frozen=True, kw_only=True)
class Fetch:
    """Options for downloading media from URLs that a provider does not open itself. Needs the extra `fetch`.

    Only http and https URLs are downloaded. A redirect from https to http is refused. The HTTP client uses no
    proxy, no cookies, no credentials and no compression.

    Attributes:
        max_bytes: Maximum size of one download, in bytes.
        timeout: Time limit for one download in seconds, from the DNS lookup to the last byte.
        max_redirects: Maximum number of redirects in one download.
        max_concurrency: Maximum number of concurrent downloads for one request.
        allow_private: True allows downloads from this machine and from private networks, such as a company's own
            servers. Link-local addresses and cloud metadata services are always refused.
        cache: Cache of downloads for later requests. If None, each request downloads its media again.

    Raises:
        OptionError: An option is outside its range or has a wrong type.
    """

    max_bytes: int = 20_000_000
    timeout: float = 30.0
    max_redirects: int = 5
    max_concurrency: int = 8
    allow_private: bool = False
    cache: MediaCache | None = None

    __repr__ = bounded_repr

    def __post_init__(self) -> None:
        for name, minimum in (("max_bytes", 1), ("max_redirects", 0), ("max_concurrency", 1)):
            check_int(f"fetch.{name}", getattr(self, name), minimum)
        if type(self.timeout) not in (int, float) or not 0 < self.timeout < float("inf"):
            reason = f"must be a positive number of seconds, got {shorten_repr(self.timeout, 60)}"
            raise OptionError("fetch.timeout", reason, "Pass a finite number above 0.")
        check_option("fetch.allow_private", self.allow_private, bool)
        check_option("fetch.cache", self.cache, MediaCache | None)

    def check_installed(self) -> None:
        """Raises MissingExtraError if the HTTP client (the package `httpx2`) is not installed."""
        from importlib.util import find_spec

        if find_spec("httpx2") is None:
            raise MissingExtraError("httpx2", "fetch", "Fetching media")


async def fetch_media(source: URLSource, fetch: Fetch) -> Base64Source | str:
    """Returns the media at a URL from the cache or from a download.

    Returns:
        The media source, or the reason why the download failed. The reason does not show the URL, because a URL
        can contain a secret.
    """
    load = partial(_fetch_logged, source, fetch)
    return await (load() if fetch.cache is None else fetch.cache.get(_cache_key(source, fetch), load))


def update_cache_sizes(sources: Iterable[URLSource], fetch: Fetch) -> None:
    """Measures cached media again, because images may have new resized copies."""
    if fetch.cache is not None:
        for source in sources:
            fetch.cache.update_size(_cache_key(source, fetch))


def _cache_key(source: URLSource, fetch: Fetch) -> Hashable:
    """Returns the cache key of a download.

    The key includes the limits of `fetch`. Therefore a request with strict limits never uses media that an earlier
    request downloaded with looser limits.
    """
    return source.url, source.media_type, fetch.max_bytes, fetch.timeout, fetch.max_redirects, fetch.allow_private


async def _fetch_logged(source: URLSource, fetch: Fetch) -> Base64Source | str:
    result = await _fetch(source, fetch)
    if _log.isEnabledFor(logging.DEBUG):
        host = _find_host(source.url)
        if isinstance(result, str):
            _log.debug("no media fetched from %s: %s", host, result)
        else:
            _log.debug(
                "media fetched from %s: %s, %d base64 characters", host, result.media_type, len(result.data)
            )
    return result


def _find_host(url: str) -> str:
    """Returns the host of a URL for a log line.

    The other parts of the URL are not logged, because they may contain a secret key.
    """
    try:
        return urlsplit(url).hostname or "an unknown host"
    except ValueError:
        return "an unknown host"


async def _fetch(source: URLSource, fetch: Fetch) -> Base64Source | str:
    try:
        with anyio.fail_after(fetch.timeout):
            body, content_type = await download(
                source.url,
                max_bytes=fetch.max_bytes,
                max_redirects=fetch.max_redirects,
                connect_timeout=fetch.timeout,
                allow_private=fetch.allow_private,
            )
            return await anyio.to_thread.run_sync(_as_source, source, body, content_type)
    except DownloadRefusedError as refusal:
        return str(refusal)
    except TimeoutError:
        return f"the download from the URL took longer than {fetch.timeout:g} seconds"
    except gaierror:
        return "the host of the URL is unknown"
    except Exception:  # a server can cause any error, and a failed download must not end the conversation
        return "the download from the URL failed"


def _as_source(source: URLSource, body: bytearray, content_type: str) -> Base64Source | str:
    """Converts the body of a response to a media source, or returns the reason why the body is refused.

    The first bytes of the body determine the media type. If these bytes are unknown, the declared type is used.
    """
    data = encode_base64(body)
    if not data:
        return "the URL has no content"
    declared = _declared_type(source, content_type)
    media_type = detect_type(data, declared)
    if media_type is None:
        if declared:
            return f"the content of the URL is not {declared}"
        return "the content of the URL has an unknown media type"
    if is_text_type(media_type):
        data = convert_to_utf8(data, source.media_type or content_type)
    result = Base64Source(media_type, data)
    fill_caches(result)
    return result


def _declared_type(source: URLSource, content_type: str) -> str | None:
    """Returns the media type from the media block, else from the server, else from the suffix of the URL.

    A generic type from the server, such as `application/octet-stream`, is ignored. Returns None if all three types
    are missing.
    """
    server = canonical_media_type(content_type) if is_media_type(content_type) else ""
    candidates = (source.media_type, "" if server in _GENERIC_TYPES else server, source.guessed_type)
    return next((canonical_media_type(media_type) for media_type in candidates if media_type), None)


_GENERIC_TYPES = frozenset({"application/octet-stream", "binary/octet-stream", "application/x-download"})
