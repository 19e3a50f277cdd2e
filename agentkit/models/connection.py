"""`ReplyConnection`, the open HTTP connection of one streamed reply."""

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
"""Time limit for closing the connection of a streamed reply."""

_END_SECONDS: Final = 0.25
"""Time limit for reading the rest of the HTTP body after a complete reply.

HTTP clients reuse a connection only after the body of the response was read to its end.
"""

_PIECE_BYTES: Final = 32 * 1024
"""Maximum size of the pieces into which a long chunk is split. Parsing a piece takes less than a millisecond."""


class ReplyConnection:
    """Connection of one streamed reply, which yields the chunks of the reply.

    Attributes:
        request_id: Provider's id for the call, from the response headers. None if the headers have no id.

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
            StopAsyncIteration: The reply has ended.

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
        """Reads and discards the rest of the HTTP body after a complete reply, within a short time limit."""
        with anyio.move_on_after(_END_SECONDS), suppress(Exception):
            async for _ in self._chunks:
                pass

    async def close(self) -> None:
        """Closes the connection, even if the task is canceled. Closing a closed connection does nothing."""
        context, self._context = self._context, None
        if context is not None:
            await run_to_completion(partial(self._leave, context), _CLOSE_SECONDS)

    async def _leave(self, context: AbstractAsyncContextManager[AsyncIterator[Any]]) -> None:
        """Cancels the iteration over the chunks, then exits the context manager.

        The chunks may come from nested generators. A cancellation ends the innermost generator first. Closing
        only the outer generator would leave the inner generators to the garbage collector.
        """
        with anyio.CancelScope(shield=True) as scope, suppress(Exception):
            scope.cancel()
            while True:
                await anext(self._chunks)
        await context.__aexit__(None, None, None)
