"""`MediaCache`: a cache of downloaded media for several requests."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable
from dataclasses import dataclass

import anyio

from agentkit.argument_checks import check_int
from agentkit.media.resizing import list_copies
from agentkit.messages.sources import Base64Source

__all__ = ["MediaCache"]


class MediaCache:
    """LRU cache of downloaded media.

    Pass one cache to several `Fetch` options to share the downloads. Concurrent requests for one URL share one
    download. Failed downloads are not cached. A program with several event loops needs a separate cache for each
    event loop.

    Attributes:
        max_bytes: Maximum size of the cached data, in bytes. The size of an entry includes its base64 text, its
            data URL, and the resized copies of an image.
    """

    def __init__(self, max_bytes: int = 256_000_000) -> None:
        """Creates an empty cache.

        Args:
            max_bytes: Maximum size of the cached data, in bytes.

        Raises:
            OptionError: `max_bytes` is not an integer of at least 0.
        """
        check_int("max_bytes", max_bytes, 0, "Pass a number of bytes.")
        self.max_bytes = max_bytes
        self._entries: OrderedDict[Hashable, _Entry] = OrderedDict()
        self._bytes = 0
        self._downloads: dict[Hashable, _Download] = {}

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def bytes(self) -> int:
        """Size of the cached data in bytes, measured in the same way as for `max_bytes`."""
        return self._bytes

    def clear(self) -> None:
        """Removes all entries. Requests that wait for a download in progress still receive its result."""
        self._entries.clear()
        self._bytes = 0

    async def get(self, key: Hashable, load: Callable[[], Awaitable[Base64Source | str]]) -> Base64Source | str:
        """Returns the cached source for a key. Calls `load` to download the source if the key is not cached.

        Concurrent calls with the same key share one call of `load`.

        Returns:
            The source, or the reason why the download failed.
        """
        while True:
            if (entry := self._entries.get(key)) is not None:
                self._entries.move_to_end(key)
                return entry.source
            download = self._downloads.get(key)
            if download is None:
                return await self._load(key, load)
            await download.done.wait()
            if download.result is not None:
                return download.result
            # Another task ran the download and was canceled, so the loop tries again.

    async def _load(self, key: Hashable, load: Callable[[], Awaitable[Base64Source | str]]) -> Base64Source | str:
        download = self._downloads[key] = _Download(anyio.Event())
        try:
            result = download.result = await load()
        finally:
            del self._downloads[key]
            download.done.set()
        if isinstance(result, Base64Source) and _measure(result) <= self.max_bytes:
            self._entries[key] = _Entry(result)
            self.update_size(key)
        return result

    def update_size(self, key: Hashable) -> None:
        """Measures a cache entry again, because its image may have new resized copies.

        If the cache then exceeds `max_bytes`, the least recently used entries are removed.
        """
        if (entry := self._entries.get(key)) is None:
            return
        size = _measure(entry.source)
        self._bytes += size - entry.size
        entry.size = size
        while self._bytes > self.max_bytes:
            _, oldest = self._entries.popitem(last=False)
            self._bytes -= oldest.size


@dataclass(slots=True)
class _Entry:
    """Cached source with its last measured size, in bytes."""

    source: Base64Source
    size: int = 0


@dataclass(slots=True)
class _Download:
    """Download in progress.

    `result` is None before the end of the download, and also after a canceled download.
    """

    done: anyio.Event
    result: Base64Source | str | None = None


_OVERHEAD = 500  # approximate number of bytes that a cache entry needs in addition to its data


def _measure(source: Base64Source) -> int:
    return _OVERHEAD + 2 * sum(len(copy.data) for copy in (source, *list_copies(source)))
