"""`StreamParserBase`: a provider's native reply, whole or in events, to a `Msg`. No I/O, no SDK."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, TypedDict, Unpack, cast

from agentkit.argument_checks import check_names, check_option, check_text
from agentkit.errors import MessageError, OptionError
from agentkit.json_values import native_to_json, parse_json, reply_to_json
from agentkit.messages.message import Msg
from agentkit.messages.usage import FinishReason, Usage
from agentkit.replies.builder import ReplyBuilder
from agentkit.replies.error_bodies import parse_failure
from agentkit.replies.events import StreamEvent
from agentkit.replies.sse import EventArray, EventBytes, check_event_size

__all__ = ["ParserOptions", "StreamParserBase"]

_TOO_DEEP = "JSON that is nested too deeply"
_BYTES = (bytes, bytearray, memoryview)
_MARK = b"\xef\xbb\xbf"  # of the byte order


class ParserOptions(TypedDict, total=False):
    """What a reader may be told of the call.

    request     the request that the reply answers: thinking keeps the digest of it as its prefix, and the id that
                is made up for a call without one is of this turn
    name        the speaker of the message; `assistant` unless said
    tool_names  `plan.tool_names`: what tools are called in the conversation, where the wire has another spelling
    redact      takes credentials out of the text of an error that the provider reports
    """

    request: Mapping[str, Any] | None
    name: str
    tool_names: Mapping[str, str] | None
    redact: Callable[[str], str]


class StreamParserBase(ABC):
    """Reads one reply of one provider: feed it events as they come, or the whole reply at once.

    `feed` takes an event as the SDK's object or its dict, or raw bytes of the stream, cut anywhere. It returns
    the events of `agentkit.replies.events`. It raises only for chunks that no stream contains. `finish` returns
    the message so far, even if the stream broke off. Any chunking gives the message of `parse_response`.

        parser = AnthropicStreamParser(request=request)
        for chunk in chunks:
            for event in parser.feed(chunk):
                ...
        reply = parser.finish()

    A provider's class says who issues its opaque state, and reads events and whole replies into `self.reply`.
    Where the wire has a last event, the class sets `is_complete` when that event comes: a ModelStream reads no
    further.
    """

    provider: ClassVar[str]
    issuer: ClassVar[str]
    binds_thinking: ClassVar[bool] = False
    """Whether thinking keeps the digest of the request that it came in answer to."""
    raw_arguments: ClassVar[bool] = False
    """Whether the wire carries arguments as text, whole replies included: `raw_input` keeps it."""
    json_lines: ClassVar[bool] = False
    """Whether the events of the wire are lines of JSON, and no server-sent events."""
    json_array: ClassVar[bool] = False
    """Whether the wire may also send its events as the items of one JSON array."""

    def __init__(self, **options: Unpack[ParserOptions]) -> None:
        check_names(type(self).__name__, options, ParserOptions.__annotations__)
        name = options.get("name", "assistant")
        check_text("name", name)
        request = options.get("request")
        if request is not None and not isinstance(request, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise OptionError("request", f"a {type(request).__name__} is no request", "Give plan.request.")
        check_option("tool_names", options.get("tool_names"), Mapping | None)
        self.request: Mapping[str, Any] | None = request
        self.reply = ReplyBuilder(
            name=name,
            provider=self.provider,
            issuer=self.issuer,
            request=request,
            tool_names=options.get("tool_names") or {},
            raw_arguments=self.raw_arguments,
            binds_thinking=self.binds_thinking,
            redact=options.get("redact", str),
        )
        self._bytes: EventBytes | EventArray = EventBytes()
        self._opening: _Opening | None = _Opening(self.json_lines, self.json_array)
        self._msg: Msg | None = None
        self.is_complete = False
        """True once the last event of the wire came. Gemini's and DashScope's streams have none."""

    @abstractmethod
    def read_event(self, event: dict[str, Any]) -> None:
        """Read one native event, in plain JSON values, into `self.reply`."""

    @abstractmethod
    def read_reply(self, reply: dict[str, Any]) -> None:
        """Read a whole native reply, in plain JSON values, into `self.reply`."""

    def read_done(self) -> None:  # noqa: B027 - most wires end by an event of theirs
        """The stream says that it is complete: `data: [DONE]`."""

    def close(self) -> None:  # noqa: B027 - most wires have nothing to do
        """What is to be done when no more will come."""

    @classmethod
    def parse_response(cls, reply: object, **options: Unpack[ParserOptions]) -> Msg:
        """A whole reply, as the SDK's object, its dict or JSON text, as a message.

        Raises MessageError for what is no reply of this provider, a provider's error included.
        """
        parser = cls(**options)
        found = reply_to_json(reply)
        if not isinstance(found, dict):
            raise MessageError("reply", f"a {type(found).__name__} is no reply", "Give the whole reply.")
        try:
            parser.read_reply(cast("dict[str, Any]", found))
            return parser.finish()
        except RecursionError:
            raise MessageError("reply", _TOO_DEEP, "Pass the reply unchanged.") from None

    def feed(self, chunk: object) -> list[StreamEvent]:
        """The events that one chunk brings: an event of the SDK's, a dict, or raw bytes of the stream."""
        if self._msg is not None:
            raise MessageError("chunk", "the reply was finished", "Make a parser for each reply.")
        if isinstance(chunk, str):
            chunk = chunk.encode("utf-8", "surrogatepass")
        if isinstance(chunk, _BYTES):
            self._feed_bytes(bytes(cast("bytes", chunk)))
        else:
            self._read(native_to_json(chunk))
        return self.reply.drain()

    def finish(self) -> Msg:
        """The message, of all that came. A stream that broke off says so in its finish reason."""
        if self._msg is None:
            if self._opening is not None:
                self._read_body(self._opening.held)
            for data in self._bytes.finish():
                self._read_data(data, cut=True)
            self.close()
            self._msg = self.reply.message()
        return self._msg

    def drain(self) -> list[StreamEvent]:
        """The events that came with `finish`: the ends of what was open, and the message's."""
        return self.reply.drain()

    @property
    def usage(self) -> Usage | None:
        """The tokens that the provider has reported so far."""
        return self.reply.usage

    @property
    def finish_reason(self) -> FinishReason | None:
        """Why the reply ended; None as long as it has not."""
        return self.reply.finish_reason

    def _feed_bytes(self, piece: bytes) -> None:
        if self._opening is not None:
            piece = self._opening.feed(piece)
            if not self._opening.is_over:
                return
            if self._opening.is_array:
                self._bytes = EventArray()
            self._opening = None
        for data in self._bytes.feed(piece):
            self._read_data(data)

    def _read_body(self, text: bytes) -> None:
        """Read all that came as one JSON object, or else as events after all."""
        self._opening = None
        try:
            body = reply_to_json(text)
        except MessageError:
            body = None
        if isinstance(body, list) and len(cast("list[Any]", body)) == 1:
            body = cast("list[Any]", body)[0]
        if not isinstance(body, dict):
            self._feed_bytes(text)
            return
        whole = cast("dict[str, Any]", body)
        if failure := parse_failure(whole):
            self.reply.fail(failure.message, failure.code, failure.request_id, status=failure.status)
        else:
            try:
                self.read_reply(whole)
            except MessageError as error:
                self.reply.fail(error.reason)
            except RecursionError:
                self.reply.fail(_TOO_DEEP)

    def _read_data(self, data: bytes, *, cut: bool = False) -> None:
        """Read the data of one event. What the end of the stream cut in two is no event and no error."""
        event: dict[str, Any] | None
        try:
            event = parse_json(data)
        except MessageError:
            event = None
        if isinstance(event, dict):
            try:
                self.read_event(event)
            except RecursionError:
                self.reply.fail(_TOO_DEEP)
        elif data.strip() == b"[DONE]":
            self.is_complete = True
            self.read_done()
        elif not cut:
            self.reply.fail(f"an event that is no JSON object: {data[:200].decode('utf-8', 'replace')}")

    def _read(self, event: dict[str, Any] | list[Any]) -> None:
        if not isinstance(event, dict):
            raise MessageError("chunk", f"a {type(event).__name__} is no event", "Give a dict, or bytes.")
        try:
            self.read_event(event)
        except RecursionError:
            raise MessageError("chunk", _TOO_DEEP, "Pass the event unchanged.") from None


class _Opening:
    """The bytes that a stream begins with, held until it is known that they are events.

    A request for a stream may be answered by one JSON object: an error, or the whole reply of a server that does
    not stream. It may have many lines, or one, and one line may be the first of many events.
    """

    def __init__(self, lines: bool, arrays: bool) -> None:
        self.is_over = False
        self.is_array = False  # of events, where the wire has such
        self._lines = lines
        self._arrays = arrays
        self._held: list[bytes] = []
        self._size = 0
        self._is_json = False  # it begins like JSON
        self._is_body = False  # it is no event's line
        self._has_line = False  # its first line is an event, and only blanks came after it

    @property
    def held(self) -> bytes:
        return b"".join(self._held)

    def feed(self, piece: bytes) -> bytes:
        """All that came, once these are events; nothing before."""
        self._held.append(piece)
        self._size += len(piece)
        check_event_size(self._size)
        if self._has_line:
            self.is_over = bool(piece.strip())
            return self.held if self.is_over else b""
        if self._is_body or (self._is_json and b"\n" not in piece):
            return b""
        text = self.held.removeprefix(_MARK).lstrip()
        self._held = [text]
        self._is_json = text.startswith((b"{", b"["))
        self.is_array = self._arrays and text.startswith(b"[")
        if self.is_array:
            self.is_over = True
        else:
            self.is_over = self._are_lines(text) if self._is_json else len(text) > len(_MARK)
        return text if self.is_over else b""

    def _are_lines(self, text: bytes) -> bool:
        line, ending, behind = text.partition(b"\n")
        try:
            event = parse_json(line)
        except MessageError:
            self._is_body = bool(ending)
            return False
        if not ending:
            return False
        if self._lines:
            self._is_body = parse_failure(event) is not None
            return not self._is_body
        self._has_line = True
        return bool(behind.strip())
