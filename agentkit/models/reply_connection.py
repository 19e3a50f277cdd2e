"""`ReplyConnection`, which reads and closes the HTTP connection of one streamed reply."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, suppress
from functools import partial
from typing import Any, Final

import anyio
import anyio.lowlevel

from agentkit.event_loop import run_to_completion

__all__ = ["ReplyConnection"]

_CLOSE_SECONDS: Final = 5.0
"""Maximum time to close the connection of a streamed reply, in seconds."""

_END_SECONDS: Final = 0.25
"""Maximum time to read the remaining HTTP body after a complete reply, in seconds.

The body is read, because HTTP clients reuse a connection only after the end of the body.
"""

_PIECE_BYTES: Final = 32 * 1024
"""Maximum size of a piece of a long chunk, in bytes. Parsing such a piece takes less than a millisecond."""


class ReplyConnection:
    """HTTP connection of one streamed reply. `read` returns the reply chunk by chunk.

    Attributes:
        request_id: Provider's id for the model call, from the response headers. None if the headers have no id.

    """

    def __init__(
        self, context: AbstractAsyncContextManager[AsyncIterator[Any]], chunks: AsyncIterator[Any]
    ) -> None:
        self._context: AbstractAsyncContextManager[AsyncIterator[Any]] | None = context
        self._chunks = chunks
        self._pieces: deque[bytes] = deque()  # unread pieces of a long chunk
        self.request_id: str | None = getattr(chunks, "request_id", None)

    @classmethod
    async def open(cls, context: AbstractAsyncContextManager[AsyncIterator[Any]]) -> ReplyConnection:
        """Sends the request by entering the endpoint's context manager, and returns the connection."""
        return cls(context, await context.__aenter__())

    @property
    def has_pieces(self) -> bool:
        """True if pieces of a long chunk are still unread."""
        return bool(self._pieces)

    async def read(self) -> Any:
        """Returns the next chunk, or the next piece of a long chunk. Other tasks can run between the pieces.

        Raises:
            StopAsyncIteration: If the reply has ended.

        """
        if self._pieces:
            await anyio.lowlevel.checkpoint()
            return self._pieces.popleft()
        chunk = await anext(self._chunks)
        if type(chunk) is not bytes or len(chunk) <= _PIECE_BYTES:
            return chunk
        self._pieces.extend(chunk[start : start + _PIECE_BYTES] for start in range(0, len(chunk), _PIECE_BYTES))
        return self._pieces.popleft()

    async def read_to_end(self) -> None:
        """Reads and discards the remaining HTTP body after a complete reply, for at most `_END_SECONDS`."""
        with anyio.move_on_after(_END_SECONDS), suppress(Exception):
            async for _ in self._chunks:
                pass

    async def close(self) -> None:
        """Closes the connection, even if the task is canceled. Further calls do nothing."""
        context, self._context = self._context, None
        if context is not None:
            await run_to_completion(partial(self._leave, context), _CLOSE_SECONDS)

    async def _leave(self, context: AbstractAsyncContextManager[AsyncIterator[Any]]) -> None:
        """Cancels the iteration over the chunks, then exits the context manager.

        The chunks can come from nested generators. A cancellation ends the innermost generator first. If only the
        outer generator were closed, the inner generators would stay open until garbage collection.
        """
        with anyio.CancelScope(shield=True) as scope, suppress(Exception):
            scope.cancel()
            while True:
                await anext(self._chunks)
        await context.__aexit__(None, None, None)
