"""`ModelStream`, which yields the events of a reply as they arrive, and creates the message at the end."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Final, Self

from agentkit.errors import ContextLengthError, InputError, ModelError, NetworkError
from agentkit.ledger.plan import Plan
from agentkit.messages.message import Msg
from agentkit.messages.usage import FinishReason
from agentkit.models.call import ModelCall
from agentkit.models.reply_connection import ReplyConnection
from agentkit.replies.error_bodies import Failure, cut_text
from agentkit.replies.events import MessageStart, StreamEvent, UsageEvent
from agentkit.replies.parser import StreamParserBase

__all__ = ["ModelStream"]

_MAX_HEAD_TEXT: Final = 200  # maximum characters of an unreadable reply in an error text

_NO_CONTENT: Final = re.compile(rb"(\s|:[^\n]*(\n|$))*")
"""Pattern for blank lines and comments, which some servers send to keep a connection open."""


class ModelStream(AsyncIterator[StreamEvent]):
    """Iterator over the events of one reply. After the last event, `message` is the complete message.

        async with model.stream(msgs) as stream:
            async for event in stream:
                ...
        history.append(stream.message)

    `async with` opens the stream, and closes the connection at the end of the block. Without this block, the
    connection of an unfinished reply would stay open until garbage collection. On trio, garbage collection cannot
    close the connection.

    The events contain the provider's text unchanged. If the text starts with the viewer's name (`NAME:`),
    `message` omits the name.

    If the provider or the network reports an error, the stream first yields the events that arrived before the
    error, and then raises a ModelError. `message` then has the content that arrived, and can be appended to the
    conversation. The finish reason of the message shows how the reply ended.

    Attributes:
        request_id: Provider's id for the model call, from the response headers. None if the headers have no id.

    """

    def __init__(self, create_call: Callable[[], Awaitable[ModelCall]]) -> None:
        self._create_call = create_call
        self._call: ModelCall | None = None
        self._parser: StreamParserBase | None = None
        self._connection: ReplyConnection | None = None
        self._events: deque[StreamEvent] = deque()
        self._head = b""  # first bytes of the reply, for the error text of an unreadable reply
        self._has_events = False  # True after the first event of the reply
        # True once events can be yielded. After that, the request is not sent again with a shorter prompt.
        self._releases_events = False
        self._error: ModelError | None = None
        self._message: Msg | None = None
        self.request_id: str | None = None

    async def __aenter__(self) -> Self:
        if self._call is not None:
            raise InputError("stream", "the stream was already opened", "Call model.stream() for each reply.")
        try:
            self._call = await self._create_call()
            await self._open()
        except BaseException:
            self._finish_message()
            raise
        if self._error is not None:
            raise self._error
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> StreamEvent:
        while not (self._events and self._releases_events):
            if self._error is not None:
                error, self._error = self._error, None
                raise error
            if self._message is not None:
                raise StopAsyncIteration
            await self._read()
        return self._events.popleft()

    async def finish(self) -> Msg:
        """Reads the reply to its end and returns the message.

        Raises:
            ModelError: If the call fails, or if the stream breaks off with an error.

        """
        async for _ in self:
            pass
        return self.message

    @property
    def plan(self) -> Plan:
        """Plan of the request. If a shorter prompt was sent, this is the plan of the shorter prompt.

        Raises:
            InputError: If the stream was not opened.

        """
        if self._call is None:
            raise _not_open()
        return self._call.plan

    @property
    def message(self) -> Msg:
        """Message with all content that arrived.

        Raises:
            InputError: If the stream was not opened, or if it is still open and the reply has not ended.

        """
        if self._message is None:
            advice = "Use `message` after the last event, or after the `async with` block."
            raise InputError("stream.message", "the reply has not ended", advice)
        return self._message

    async def aclose(self) -> None:
        """Closes the connection, even if the task is canceled, and sets `message` to the content that arrived."""
        self._finish_message()
        self._events.clear()
        await self._close()

    async def _open(self) -> None:
        """Sends the request. If the provider refuses the prompt as too long, tries to send a shorter prompt."""
        assert self._call is not None
        self._events.clear()
        self._head = b""
        self.request_id = None
        self._has_events, self._releases_events = False, self._call.retry is None
        self._parser = self._call.create_parser()
        try:
            outgoing = self._call.build_request(stream=True)
            self._connection = await ReplyConnection.open(self._call.endpoint.stream(outgoing))
            self.request_id = self._connection.request_id
        except Exception as error:
            await self._fail(error)

    async def _read(self) -> None:
        """Reads one chunk. Stops after a complete reply, because some servers never close the connection."""
        if self._connection is None or self._parser is None:
            raise _not_open()
        if self._parser.is_complete and not self._connection.has_pieces:
            await self._connection.read_to_end()
            await self._end()
            return
        try:
            chunk = await self._connection.read()
            if not self._has_events and not self._head and type(chunk) is bytes:
                self._head = chunk[: 2 * _MAX_HEAD_TEXT]
            self._add_events(self._parser.feed(chunk))
        except StopAsyncIteration:
            await self._end()
            return
        except Exception as error:
            await self._fail(error)
            return
        if self._parser.reply.error is not None:
            await self._fail(_as_failure(self._parser))

    async def _end(self) -> None:
        """Finishes the message. A reply that contains an error or no event counts as a failed call."""
        assert self._parser is not None
        had_events = self._has_events
        self._finish_message()
        await self._close()
        message = self.message
        if self._parser.reply.error is not None:
            await self._fail(_as_failure(self._parser))
        elif not had_events and not message.blocks and message.finish_reason is FinishReason.INTERRUPTED:
            is_empty = self._parser.is_complete or _NO_CONTENT.fullmatch(self._head) is not None
            head = "" if is_empty else f": {cut_text(self._head.decode('utf-8', 'replace'), _MAX_HEAD_TEXT)}"
            await self._fail(Failure(f"the stream ended before its first event{head}", network=is_empty))

    def _add_events(self, events: list[StreamEvent]) -> None:
        self._events.extend(events)
        self._has_events = self._has_events or bool(events)
        # Before the first content, the provider can still refuse the prompt as too long. Until then, no event is
        # yielded, because a request with a shorter prompt may replace the refused request.
        if not self._releases_events and not all(isinstance(event, MessageStart | UsageEvent) for event in events):
            self._releases_events = self._parser is not None and self._parser.reply.error is None

    def _finish_message(self) -> None:
        """Sets the message to the content that arrived."""
        if self._parser is None or self._call is None or self._message is not None:
            return
        message = self._parser.finish()
        self._add_events(self._parser.drain())
        self._releases_events = True
        self._message = self._call.finish_message(message)

    async def _fail(self, error: Exception | Failure) -> None:
        """Handles an error of the model call.

        Immediately raises any error other than a ModelError. Sends a shorter prompt if the provider refused the
        prompt as too long and the application allows a shorter prompt. Otherwise, stores the ModelError. The
        stream raises the stored error after the events that arrived before the error.
        """
        assert self._call is not None
        raised = self._call.as_agentkit_error(error, self.request_id)
        cause = error if isinstance(error, Exception) else None
        await self._close()
        if not isinstance(raised, ModelError):
            self._finish_message()
            final = cause if raised is None else raised
            assert final is not None
            raise final
        if (
            isinstance(raised, ContextLengthError)
            and not self._releases_events
            and await self._call.replan(raised)
        ):
            self._message = None
            await self._open()
            return
        if self._message is None:
            if cause is not None and self._parser is not None and not isinstance(raised, NetworkError):
                # The SDK converted an error event to an exception, so the parser has not read the event.
                self._parser.reply.fail(raised.provider_message, raised.code, status=raised.status)
            self._finish_message()
        self._error = raised

    async def _close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.close()


def _as_failure(parser: StreamParserBase) -> Failure:
    """Returns the failure that an error event of the stream reported."""
    fields = dict(parser.reply.error or {})
    return Failure(fields.pop("message", ""), **fields)


def _not_open() -> InputError:
    return InputError("stream", "the stream is not open", "Use `async with model.stream(…) as stream:`.")
