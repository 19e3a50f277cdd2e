"""`MediaCache`: media that were downloaded, for the requests of one application."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable
from dataclasses import dataclass

import anyio

from agentkit.errors import OptionError
from agentkit.media.resizing import list_copies
from agentkit.messages.sources import Base64Source
from agentkit.reprs import shorten_repr

__all__ = ["MediaCache"]


class MediaCache:
    """LRU cache of downloaded media, shared by all `Fetch` options that it is passed to.

    Concurrent requests for one URL cause one download. Failed downloads are not cached. A cache belongs to one
    event loop; a program with several event loops needs one cache for each.

    Attributes:
        max_bytes: Limit of the cached data, in bytes. The size of an entry is that of its base64 text, its data
            URL, and the smaller copies of an image.

    """

    def __init__(self, max_bytes: int = 256_000_000) -> None:
        """Creates an empty cache.

        Args:
            max_bytes: Limit of the cached data, in bytes.

        Raises:
            OptionError: `max_bytes` is not an integer of at least 0.

        """
        if type(max_bytes) is not int or max_bytes < 0:
            reason = f"must be a number of bytes, got {shorten_repr(max_bytes, 60)}"
            raise OptionError("max_bytes", reason, "Pass an int of at least 0.")
        self.max_bytes = max_bytes
        self._entries: OrderedDict[Hashable, _Entry] = OrderedDict()
        self._bytes = 0
        self._downloads: dict[Hashable, _Download] = {}

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def bytes(self) -> int:
        """Size of the cached data, as `max_bytes` counts it."""
        return self._bytes

    def clear(self) -> None:
        """Removes all entries. Downloads in progress still reach the requests that wait for them."""
        self._entries.clear()
        self._bytes = 0

    async def get(self, key: Hashable, load: Callable[[], Awaitable[Base64Source | str]]) -> Base64Source | str:
        """Returns the entry of a key, or the result of `load`, which concurrent calls share."""
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
            # The task that downloaded was canceled: try again.

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
        """Updates the size of an entry, whose image may have new smaller copies.

        If the cache then exceeds its limit, the least recently used entries are removed.
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
    """Cached source, and its size when it was last measured."""

    source: Base64Source
    size: int = 0


@dataclass(slots=True)
class _Download:
    """Download in progress, and its result at the end. The result of a canceled download is None."""

    done: anyio.Event
    result: Base64Source | str | None = None


_OVERHEAD = 500  # bytes of an entry beside its data, about


def _measure(source: Base64Source) -> int:
    return _OVERHEAD + 2 * sum(len(copy.data) for copy in (source, *list_copies(source)))
