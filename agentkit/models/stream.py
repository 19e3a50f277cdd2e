"""`ModelStream`: one reply while it comes."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, suppress
from functools import partial
from typing import Any, Protocol, Self

import anyio
import anyio.lowlevel

from agentkit.errors import AgentkitError, ContextLengthError, InputError, ModelError, NetworkError
from agentkit.event_loop import run_to_completion
from agentkit.ledger.plan import Plan
from agentkit.messages.message import Msg
from agentkit.messages.usage import FinishReason
from agentkit.replies.error_bodies import Failure
from agentkit.replies.events import MessageStart, StreamEvent, UsageEvent
from agentkit.replies.parser import StreamParserBase

__all__ = ["ModelStream", "Opened"]

_CLOSING = 5.0  # seconds that a peer has to say goodbye
_PIECE = 32 * 1024
"""Bytes that are read without a turn for others: well under a millisecond."""

_TOLD = 200  # bytes of an answer that is none

_GRACE = 0.25
"""Seconds to wait for the end of a complete reply's body: only a connection that is read to its end is reused."""

_NOTHING = re.compile(rb"(\s|:[^\n]*(\n|$))*")
"""Blank lines and comments, which some servers send to keep a connection open."""


class Opened(Protocol):
    """What a stream needs of the call that it belongs to."""

    plan: Plan

    def parser(self) -> StreamParserBase:
        """A reader for the reply to `plan`."""
        ...

    async def chunks(self) -> AbstractAsyncContextManager[AsyncIterator[Any]]:
        """The reply to `plan`, not opened yet."""
        ...

    def error_of(self, error: BaseException | Failure) -> AgentkitError | None:
        """The error of ours that it is; None for one that is neither the provider's nor the transport's."""
        ...

    def settled(self, msg: Msg) -> Msg:
        """The message as the conversation keeps it."""
        ...

    @property
    def may_replan(self) -> bool:
        """Whether a prompt that is too long will be made shorter."""
        ...

    async def replan(self, error: ContextLengthError) -> bool:
        """Make `plan` a shorter one, if it may be; whether it was."""
        ...


class ModelStream(AsyncIterator[StreamEvent]):
    """The events of one reply, as they come, and the message at the end.

        async with model.stream(msgs) as stream:
            async for event in stream:
                ...
        history.append(stream.message)

    It is opened and closed by `async with`, and by nothing else: a loop that is left early would leave a
    connection open until the garbage collector comes by, which cannot close it on trio and is too late on asyncio.
    Leaving the context closes the connection at once, whatever the reason.

    The deltas are the provider's; only the message has lost the `NAME:` of a viewer that the reply begins with.

    An error of the provider's or of the network is raised as ModelError by the next step of the loop, behind all
    that came before it. Afterwards `message` is what came: it can be appended to the conversation however the
    reply ended, its finish reason says how.

    plan        the plan that was sent. Set when the stream is open; a re-plan (ContextLengthError) sets it anew
    request_id  the provider's name for the call, as the answer's headers give it; None before, and where none does
    """

    def __init__(self, opening: Callable[[], Awaitable[Opened]]) -> None:
        self._opening = opening
        self._call: Opened | None = None
        self._parser: StreamParserBase | None = None
        self._context: AbstractAsyncContextManager[AsyncIterator[Any]] | None = None
        self._chunks: AsyncIterator[Any] | None = None
        self._pieces: deque[bytes] = deque()  # of a long chunk, to be read yet
        self._events: deque[StreamEvent] = deque()
        self._head = b""  # the first bytes, for the error where nothing comes of them
        self._began = False  # whether anything came that could be read
        self._shows = False  # whether the caller has begun to see the reply
        self._failed: ModelError | None = None
        self._message: Msg | None = None
        self.request_id: str | None = None

    async def __aenter__(self) -> Self:
        if self._call is not None:
            raise InputError("stream", "it was opened before", "Call model.stream anew for each reply.")
        try:
            self._call = await self._opening()
            await self._open()
        except BaseException:
            self._settle()
            raise
        if self._failed is not None:
            raise self._failed
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> StreamEvent:
        while not (self._events and self._shows):
            if self._failed is not None:
                error, self._failed = self._failed, None
                raise error
            if self._message is not None:
                raise StopAsyncIteration
            await self._read()
        return self._events.popleft()

    async def finish(self) -> Msg:
        """The message, read to its end. Raises ModelError where the reply failed."""
        async for _ in self:
            pass
        return self.message

    @property
    def plan(self) -> Plan:
        """The plan that was sent."""
        if self._call is None:
            raise InputError("stream", "it is not open", "Use `async with model.stream(…) as stream:`.")
        return self._call.plan

    @property
    def message(self) -> Msg:
        """What came, once the reply or the context is over."""
        if self._message is None:
            advice = "Read the stream to its end, or leave its context, first."
            raise InputError("stream.message", "the reply is not over", advice)
        return self._message

    async def aclose(self) -> None:
        """Close the connection. What came is the message, at once; a cancellation waits for the connection."""
        self._settle()
        self._events.clear()
        await self._close()

    # -- inside --------------------------------------------------------------------------------------------------

    async def _open(self) -> None:
        """Begin the call, and once more if it is too long and can be made shorter."""
        assert self._call is not None
        self._events.clear()
        self._pieces.clear()
        self._head = b""
        self.request_id = None
        self._began, self._shows = False, not self._call.may_replan
        self._parser = self._call.parser()
        try:
            self._context = await self._call.chunks()
            self._chunks = await self._context.__aenter__()
            self.request_id = getattr(self._chunks, "request_id", None)
        except Exception as error:
            self._context = None
            await self._fail(error)
        except BaseException:
            self._context = None
            raise

    async def _read(self) -> None:
        """Take one more chunk; none after the last event of the wire, which some servers never close behind."""
        if self._chunks is None or self._parser is None:
            raise InputError("stream", "it is not open", "Use `async with model.stream(…) as stream:`.")
        if self._parser.is_complete and not self._pieces:
            await _pass_over(self._chunks)
            await self._end()
            return
        try:
            chunk = await self._next(self._chunks)
            if not self._began and not self._head and type(chunk) is bytes:
                self._head = chunk[:_TOLD]
            self._take(self._parser.feed(chunk))
        except StopAsyncIteration:
            await self._end()
            return
        except Exception as error:
            await self._fail(error)
            return
        if self._parser.reply.error is not None:
            await self._fail(_failure_of(self._parser))

    async def _end(self) -> None:
        """There is no more."""
        assert self._parser is not None
        began = self._began
        self._settle()
        await self._close()
        message = self.message
        if self._parser.reply.error is not None:
            await self._fail(_failure_of(self._parser))
        elif not began and not message.blocks and message.finish_reason is FinishReason.INTERRUPTED:
            is_empty = self._parser.is_complete or _NOTHING.fullmatch(self._head) is not None
            came = "" if is_empty else f": {self._head.decode('utf-8', 'replace')}"
            await self._fail(Failure(f"the stream ended before it began{came}", network=is_empty))

    async def _next(self, chunks: AsyncIterator[Any]) -> Any:
        """The next chunk; a long one in pieces, since its transport let nobody else have a turn."""
        if self._pieces:
            await anyio.lowlevel.checkpoint()
            return self._pieces.popleft()
        chunk = await anext(chunks)
        if type(chunk) is not bytes or len(chunk) <= _PIECE:
            return chunk
        self._pieces.extend(chunk[at : at + _PIECE] for at in range(0, len(chunk), _PIECE))
        return self._pieces.popleft()

    def _take(self, events: list[StreamEvent]) -> None:
        self._events.extend(events)
        self._began = self._began or bool(events)
        # Where the call may be made anew, nothing is shown before there is something to see.
        if not self._shows and not all(isinstance(event, MessageStart | UsageEvent) for event in events):
            self._shows = self._parser is not None and self._parser.reply.error is None

    def _settle(self) -> None:
        """What came is all that comes."""
        if self._parser is None or self._call is None or self._message is not None:
            return
        message = self._parser.finish()
        self._take(self._parser.drain())
        self._shows = True
        self._message = self._call.settled(message)

    async def _fail(self, error: Exception | Failure) -> None:
        """Make an error one of ours, for the caller to meet behind what came; or try a shorter plan."""
        assert self._call is not None
        ours = self._call.error_of(error)
        cause = error if isinstance(error, Exception) else None
        await self._close()
        if ours is None:
            self._settle()
            assert cause is not None
            raise cause
        if not isinstance(ours, ModelError):
            self._settle()
            raise ours
        if ours is not cause:
            ours.request_id = ours.request_id or self.request_id
        if isinstance(ours, ContextLengthError) and not self._shows and await self._call.replan(ours):
            self._message = None
            await self._open()
            return
        if self._message is None:
            if cause is not None and self._parser is not None and not isinstance(ours, NetworkError):
                # What the SDK made of an event that is an error.
                self._parser.reply.fail(ours.provider_message, ours.code, status=ours.status)
            self._settle()
        self._failed = ours

    async def _close(self) -> None:
        """Close the connection, cancelled or not."""
        context, self._context = self._context, None
        chunks, self._chunks = self._chunks, None
        if context is not None:
            await run_to_completion(partial(_leave, context, chunks), _CLOSING)


async def _leave(
    context: AbstractAsyncContextManager[AsyncIterator[Any]], chunks: AsyncIterator[Any] | None
) -> None:
    if chunks is not None:
        await _stop(chunks)
    await context.__aexit__(None, None, None)


async def _pass_over(chunks: AsyncIterator[Any]) -> None:
    """Read a body to its end, if the end comes soon. What still comes is no part of the reply."""
    with anyio.move_on_after(_GRACE), suppress(Exception):
        async for _ in chunks:
            pass


async def _stop(chunks: AsyncIterator[Any]) -> None:
    """End an iterator where it waits, by a cancellation of its own.

    It may be generators within generators: they all end so, from the inside. Closing the outermost would leave the
    rest to the garbage collector.
    """
    with anyio.CancelScope(shield=True) as scope, suppress(Exception):
        scope.cancel()
        while True:
            await anext(chunks)


def _failure_of(parser: StreamParserBase) -> Failure:
    """The error that a stream reported."""
    found = dict(parser.reply.error or {})
    return Failure(found.pop("message", ""), **found)
