"""`StreamParserBase`: base class of the parsers that convert a provider's native replies to messages.

A parser accepts a reply as a sequence of stream events or as one complete object, and returns a `Msg`. Parsers
perform no I/O and need no SDK.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, TypedDict, Unpack, cast

from agentkit.argument_checks import check_names, check_option, check_text
from agentkit.capabilities.wire_layout import WireLayout
from agentkit.errors import MessageError, OptionError
from agentkit.json_values import native_to_json, parse_json, reply_to_json
from agentkit.messages.message import Msg
from agentkit.messages.usage import FinishReason, Usage
from agentkit.replies.builder import ReplyBuilder
from agentkit.replies.error_bodies import cut_text, parse_failure
from agentkit.replies.events import StreamEvent
from agentkit.replies.sse import EventBytes, StreamOpening
from agentkit.reprs import describe_value

__all__ = ["ParserOptions", "StreamParserBase"]

_TOO_DEEP = "the JSON is nested too deeply"
_MAX_EVENT_TEXT = 200  # maximum number of characters of an invalid event in an error text
_BYTES = (bytes, bytearray, memoryview)


class ParserOptions(TypedDict, total=False):
    """Options of a parser. Most options describe the model call that returned the reply.

    Attributes:
        request: Request that the reply answers. Some providers accept a signed thinking block only if all content
            before this block is unchanged. For these providers, signed thinking blocks store a digest of the
            request as `prefix`. A tool call that arrives without an id gets an id that depends on this digest.
            None if the request is unknown.
        name: Speaker of the message. The default is `assistant`.
        tool_names: Mapping from the tool names in the request to the tool names in the conversation. Pass
            `plan.tool_names`. None if the names are the same.
        redact: Function that removes credentials from the text of an error. By default, the text is unchanged.
    """

    request: Mapping[str, Any] | None
    name: str
    tool_names: Mapping[str, str] | None
    redact: Callable[[str], str]


class StreamParserBase(ABC):
    """Base class of the parsers of native replies. One parser object parses one reply.

    `feed` accepts native events, or the raw bytes of the stream. The bytes may be split anywhere. `feed` returns
    events of the types in `agentkit.replies.events`. `finish` returns the message, even if the stream broke off.
    For a complete stream, this message equals the message that `parse_response` returns for the complete reply.

        parser = AnthropicStreamParser(request=request)
        for chunk in chunks:
            for event in parser.feed(chunk):
                ...
        reply = parser.finish()

    A subclass sets the class attributes, and adds the content of native events and replies to `self.reply`. If a
    specific event ends the stream, the subclass sets `is_complete` when this event arrives. A `ModelStream` then
    stops reading.

    Attributes:
        provider: Name of the provider.
        issuer: System that signs or encrypts opaque state in the replies, and accepts this state in requests.
        layout: Names of the keys in the provider's requests.
        binds_thinking: True if the provider accepts a thinking block only if all request content before this block
            is unchanged.
        raw_arguments: True if replies contain tool arguments as text. Tool calls then store the text as
            `raw_input`.
        json_lines: True if the stream has one JSON value on each line instead of server-sent events. If False,
            the parser also accepts JSON lines. It then parses the first line only after the second line arrives,
            because a single line may be a complete reply.
        request: Request that the reply answers. None if no request was passed.
        reply: Builder of the reply.
        is_complete: True after the event that ends the stream. Always False if the stream has no such event.

    Raises:
        OptionError: If an option is unknown or invalid.
    """

    provider: ClassVar[str]
    issuer: ClassVar[str]
    layout: ClassVar[WireLayout] = WireLayout()
    binds_thinking: ClassVar[bool] = False
    raw_arguments: ClassVar[bool] = False
    json_lines: ClassVar[bool] = False

    def __init__(self, **options: Unpack[ParserOptions]) -> None:
        check_names(type(self).__name__, options, ParserOptions.__annotations__)
        name = options.get("name", "assistant")
        check_text("name", name)
        request = options.get("request")
        if request is not None and not isinstance(request, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
            reason = f"expected a request as a mapping, got {describe_value(request)}"
            raise OptionError("request", reason, "Pass plan.request.")
        check_option("tool_names", options.get("tool_names"), Mapping | None)
        self.request: Mapping[str, Any] | None = request
        self.reply = ReplyBuilder(
            name=name,
            provider=self.provider,
            issuer=self.issuer,
            request=request,
            tool_names=options.get("tool_names") or {},
            raw_arguments=self.raw_arguments,
            layout=self.layout,
            binds_thinking=self.binds_thinking,
            redact=options.get("redact", str),
        )
        self._bytes = EventBytes()
        self._opening: StreamOpening | None = StreamOpening(json_lines=self.json_lines)
        self._msg: Msg | None = None
        self.is_complete = False

    @abstractmethod
    def read_event(self, event: dict[str, Any]) -> None:
        """Adds the content of one native event to `self.reply`. The event consists of JSON values."""

    @abstractmethod
    def read_reply(self, reply: dict[str, Any]) -> None:
        """Adds the content of a complete native reply to `self.reply`. The reply consists of JSON values.

        If the reply is an error, an implementation raises `reported_error(text)`.
        """

    def read_done(self) -> None:  # noqa: B027 - most streams end with another event
        """Handles the mark `data: [DONE]`, with which some providers end a stream. Does nothing by default."""

    def close(self) -> None:  # noqa: B027 - most providers need nothing here
        """Completes `self.reply` after the last event. Does nothing by default."""

    @classmethod
    def parse_response(cls, reply: object, **options: Unpack[ParserOptions]) -> Msg:
        """Parses a complete native reply and returns the message.

        Args:
            reply: Native reply as an SDK object, a dict, or JSON text.
            **options: Options of the parser, as described by `ParserOptions`.

        Raises:
            MessageError: If `reply` is not a JSON object, or if `read_reply` raises this error. A failure that
                `read_reply` records with `self.reply.fail` raises no error.
        """
        parser = cls(**options)
        native = reply_to_json(reply)
        if not isinstance(native, dict):
            reason = f"expected a JSON object, got {describe_value(native)}"
            raise MessageError("reply", reason, "Pass the complete reply as a dict, an SDK object or JSON text.")
        try:
            parser.read_reply(cast("dict[str, Any]", native))
            return parser.finish()
        except RecursionError:
            raise MessageError("reply", _TOO_DEEP, "Check that the server sent a valid reply.") from None

    def feed(self, chunk: object) -> list[StreamEvent]:
        """Parses the next chunk of the stream. Returns the events that are complete after this chunk.

        Args:
            chunk: Native event as an SDK object or a dict, or a piece of the raw stream as bytes or text.

        Raises:
            MessageError: If `chunk` has none of these types, if an event is too long or nested too deeply, or if
                `finish` was called before.
        """
        if self._msg is not None:
            raise MessageError("chunk", "`finish` was already called", "Create a new parser for each reply.")
        if isinstance(chunk, str):
            chunk = chunk.encode("utf-8", "surrogatepass")
        if isinstance(chunk, _BYTES):
            self._feed_bytes(bytes(cast("bytes", chunk)))
        else:
            self._read_native(native_to_json(chunk))
        return self.reply.drain()

    def finish(self) -> Msg:
        """Processes the end of the stream and returns the message.

        If the stream broke off, the message has the content that arrived, and its finish reason is `interrupted`.
        """
        if self._msg is None:
            if self._opening is not None:
                self._read_body(self._opening.pending)
            for data in self._bytes.finish():
                self._read_data(data, is_last=True)
            self.close()
            self._msg = self.reply.message()
        return self._msg

    def drain(self) -> list[StreamEvent]:
        """Returns the events that `finish` created, such as the ends of open blocks and the end of the message."""
        return self.reply.drain()

    @property
    def usage(self) -> Usage | None:
        """Latest token counts from the provider. None before the first report."""
        return self.reply.usage

    @property
    def finish_reason(self) -> FinishReason | None:
        """Finish reason of the reply. None until the reply ends."""
        return self.reply.finish_reason

    def _feed_bytes(self, piece: bytes) -> None:
        if self._opening is not None:
            piece = self._opening.feed(piece)
            if not self._opening.is_over:
                return
            self._opening = None
        for data in self._bytes.feed(piece):
            self._read_data(data)

    def _read_body(self, text: bytes) -> None:
        """Parses `text` as a complete reply, or as the events of a stream.

        A complete reply is one JSON object, or a list with one JSON object.
        """
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
        reply = cast("dict[str, Any]", body)
        if failure := parse_failure(reply):
            self.reply.fail(failure.message, failure.code, failure.request_id, status=failure.status)
            return
        try:
            self.read_reply(reply)
        except MessageError as error:
            self.reply.fail(error.reason)
        except RecursionError:
            self.reply.fail(_TOO_DEEP)

    def _read_data(self, data: bytes, *, is_last: bool = False) -> None:
        """Parses the data of one event. Ignores the last event of the stream if this event is incomplete."""
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
        elif not is_last:
            text = data[: 2 * _MAX_EVENT_TEXT].decode("utf-8", "replace")
            self.reply.fail(f"an event is not a JSON object: {cut_text(text, _MAX_EVENT_TEXT)}")

    def _read_native(self, event: dict[str, Any] | list[Any]) -> None:
        if not isinstance(event, dict):
            reason = f"expected an event, got {describe_value(event)}"
            raise MessageError("chunk", reason, "Pass a native event as a dict, or pass raw bytes.")
        try:
            self.read_event(event)
        except RecursionError:
            raise MessageError("chunk", _TOO_DEEP, "Check that the server sent a valid event.") from None
