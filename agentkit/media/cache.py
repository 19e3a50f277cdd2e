"""`MediaCache`: media that were fetched, kept by their caller for the next request."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable
from dataclasses import dataclass

import anyio

from agentkit.errors import OptionError
from agentkit.media.resizing import copies_of
from agentkit.messages.sources import Base64Source

__all__ = ["MediaCache"]


class MediaCache:
    """Fetched media, the least recently used of which goes first. Give one to each `Fetch` that may share it.

    max_bytes  what it holds at most, counted as it is kept: base64 text, the data URL made of it, and the smaller
               copies that a target needed of a picture, which stay with it

    An address is downloaded once, however many tasks ask for it at the same time. For one event loop: a
    program of several gives each its own. What could not be had is asked for again by the next request.
    """

    def __init__(self, max_bytes: int = 256_000_000) -> None:
        if type(max_bytes) is not int or max_bytes < 0:
            raise OptionError("max_bytes", f"{max_bytes!r} is no number of bytes", "Give a whole number.")
        self.max_bytes = max_bytes
        self._kept: OrderedDict[Hashable, _Entry] = OrderedDict()
        self._bytes = 0
        self._pending: dict[Hashable, _Pending] = {}

    def __len__(self) -> int:
        return len(self._kept)

    @property
    def bytes(self) -> int:
        """How much is held now, as `max_bytes` counts it."""
        return self._bytes

    def clear(self) -> None:
        """Forget everything; what is being downloaded still reaches those who wait for it."""
        self._kept.clear()
        self._bytes = 0

    async def get(self, key: Hashable, load: Callable[[], Awaitable[Base64Source | str]]) -> Base64Source | str:
        """What is kept under a key, or else what `load` gives: one call of it for all who ask meanwhile."""
        while True:
            if (kept := self._kept.get(key)) is not None:
                self._kept.move_to_end(key)
                return kept.source
            pending = self._pending.get(key)
            if pending is None:
                return await self._load(key, load)
            await pending.done.wait()
            if pending.found is not None:
                return pending.found
            # Who was loading it has been cancelled: it is somebody else's turn.

    async def _load(self, key: Hashable, load: Callable[[], Awaitable[Base64Source | str]]) -> Base64Source | str:
        pending = self._pending[key] = _Pending(anyio.Event())
        try:
            pending.found = await load()
        finally:
            del self._pending[key]
            pending.done.set()
        if isinstance(pending.found, Base64Source):
            self._keep(key, pending.found)
        return pending.found

    def _keep(self, key: Hashable, found: Base64Source) -> None:
        if _size(found) <= self.max_bytes:
            self._kept[key] = _Entry(found)
            self.recount(key)

    def recount(self, key: Hashable) -> None:
        """Count anew what is kept under a key: smaller copies may have been made of it since."""
        if (entry := self._kept.get(key)) is None:
            return
        size = _size(entry.source)
        self._bytes += size - entry.size
        entry.size = size
        while self._bytes > self.max_bytes:
            _, gone = self._kept.popitem(last=False)
            self._bytes -= gone.size


@dataclass(slots=True)
class _Entry:
    """A source that is kept, and its size when it was last counted."""

    source: Base64Source
    size: int = 0


@dataclass(slots=True)
class _Pending:
    """A download that is under way, and its result once there is one."""

    done: anyio.Event
    found: Base64Source | str | None = None


_SMALL = 500  # what an entry takes besides its data, about


def _size(found: Base64Source) -> int:
    return _SMALL + 2 * sum(len(one.data) for one in (found, *copies_of(found)))
