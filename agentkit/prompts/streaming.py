"""`stream`: sends a typed prompt to a model, and yields the outputs as they arrive.

The events of the model contain the complete reply. Events of fields are between the events of the model. An event
of a field directly follows the event of the model that contains the text of the field.
"""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator, Iterable, Sequence
from typing import Any, Generic, Self, TypeAlias, TypeVar, cast

from agentkit.errors import InputError, ModelError, NoAnswerError, ParseError
from agentkit.messages.message import Msg
from agentkit.models.chat_model import ChatModel
from agentkit.models.stream import ModelStream
from agentkit.prompts.adapter import Adapter, HistoryItem
from agentkit.prompts.examples import Example
from agentkit.prompts.field_events import FieldEvent
from agentkit.prompts.field_stream_parser import FieldStreamParser
from agentkit.prompts.prediction import Attempt, Prediction
from agentkit.prompts.prompt_call import PromptCall
from agentkit.prompts.signature import Signature
from agentkit.prompts.streamed_text import StreamedText
from agentkit.replies.events import MessageEnd, StreamEvent
from agentkit.tools.tool import ToolLike

__all__ = ["PromptEvent", "PromptStream", "stream"]

T = TypeVar("T")

PromptEvent: TypeAlias = StreamEvent | FieldEvent
"""Event of the model, or event of a field."""


def stream(
    model: ChatModel,
    request: Signature[T],
    *,
    adapter: Adapter | None = None,
    examples: Iterable[Example] = (),
    history: Iterable[HistoryItem] = (),
    tools: Sequence[ToolLike] = (),
    mode: str | None = None,
    max_tokens: int | None = None,
    **parameters: Any,
) -> PromptStream[T]:
    r"""Returns a stream of the events of a typed prompt, for `async with`. See `PromptStream`.

    There are no retries. If the reply is not in the format of the adapter, the model is called once more with the
    fallback adapter. The events of the second reply then follow the events of the first reply, and begin with a
    MessageStart. If the stream has already yielded an event of a field, the model is not called again.

    Args:
        model: Model to call.
        request: Bound request: a signature that was called with values.
        adapter: Adapter that writes the messages. The default is `ChatAdapter(fallback=JSONAdapter())`.
        examples: Examples of the task.
        history: Messages, earlier turns and feedback that precede the request.
        tools: Tools that the model may call. Tool calls are part of the result. Outputs that the text of a reply
            with tool calls lacks are None.
        mode: Name of a mode of a `PromptAdapter`. None means the mode in the adapter's option `mode`.
        max_tokens: Maximum number of tokens of the reply. None means the `max_tokens` of the model.
        **parameters: Parameters under the provider's own names, such as `temperature=0`.

    Raises:
        OptionError: An argument is invalid.

    Example:
        >>> import asyncio
        >>> from agentkit.prompts import FieldDelta, FieldEnd, Signature, stream
        >>> from agentkit.testing import ScriptedModel
        >>> model = ScriptedModel(["[[ ## answer ## ]]\nGreen tea.\n\n[[ ## completed ## ]]"])
        >>> async def main():
        ...     async with stream(model, Signature("question -> answer")(question="Tea?")) as events:
        ...         async for event in events:
        ...             if isinstance(event, FieldDelta | FieldEnd):
        ...                 print(event)
        ...     return events.prediction.value
        >>> asyncio.run(main())
        FieldDelta(name='answer', text='Green')
        FieldDelta(name='answer', text=' tea.')
        FieldEnd(name='answer', value='Green tea.')
        Outputs(answer='Green tea.')
    """
    options = {"max_tokens": max_tokens, "parameters": parameters or None}
    return PromptStream(PromptCall.create(model, request, adapter, mode, examples, history, tools, **options))


class PromptStream(AsyncIterator[PromptEvent], Generic[T]):
    """Events of one typed prompt as they arrive, and the prediction at the end.

        async with stream(model, request) as events:
            async for event in events:
                ...
        prediction = events.prediction

    `async with` opens the stream, and closes the connection at the end of the block, even if the block is left
    early.

    If the reply has no value, iteration raises a NoAnswerError after the last event. If the model call fails,
    iteration raises a ModelError. After an error, the attribute `message` has the content that arrived.
    """

    def __init__(self, call: PromptCall) -> None:
        self._call = call
        self._msgs: list[Msg] = []
        self._stream: ModelStream | None = None
        self._parser: FieldStreamParser | None = None
        self._text = StreamedText()
        self._events: deque[PromptEvent] = deque()
        self._last_events: list[PromptEvent] = []  # MessageEnd and later events, sent after the events of fields
        self._has_fields = False  # True after the first event of a field
        self._fallback: tuple[PromptCall, list[Msg]] | None = None  # model call that the next `_read` makes
        self._has_ended = False
        self._attempts: list[Attempt] = []
        self._error: Exception | None = None
        self._prediction: Prediction[T] | None = None

    async def __aenter__(self) -> Self:
        if self._stream is not None:
            raise InputError("stream", "already opened", "Call prompts.stream() for each reply.")
        self._has_ended = True
        await self._open(self._call.format())
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> PromptEvent:
        while not self._events:
            if self._error is not None:
                error, self._error = self._error, None
                raise error
            if self._has_ended:
                raise StopAsyncIteration
            await self._read()
        return self._events.popleft()

    async def finish(self) -> Prediction[T]:
        """Reads the reply to its end and returns the prediction.

        Raises:
            NoAnswerError: The reply has no value.
            ModelError: The model call fails.
        """
        async for _ in self:
            pass
        return self.prediction

    @property
    def prediction(self) -> Prediction[T]:
        """Prediction with the value, the reply and all attempts.

        Raises:
            InputError: The reply has not been read to its end, or has no value.
        """
        if self._prediction is None:
            reason = "there is no prediction, because the reply has no value or was not read to its end"
            raise InputError("stream.prediction", reason, "Use `prediction` after the last event.")
        return self._prediction

    @property
    def message(self) -> Msg:
        """Reply with all content that arrived. After a fallback, this is the second reply.

        Raises:
            InputError: The stream was not opened, or the stream is still open and the reply has not ended.
        """
        if self._stream is None:
            raise _not_open()
        return self._stream.message

    async def aclose(self) -> None:
        """Closes the connection, even if the task is canceled."""
        self._has_ended = True
        self._events.clear()
        self._error = None
        if self._stream is not None:
            await self._stream.aclose()

    async def _open(self, msgs: list[Msg]) -> None:
        """Calls the model. An error other than a ModelError ends the iteration at once."""
        call = self._call
        self._has_ended = True
        self._msgs = msgs
        self._parser = call.adapter.stream_parser(call.signature)
        self._text = StreamedText(call.model.viewer)
        self._stream = call.model.stream(self._msgs, **call.call_options())
        await self._stream.__aenter__()
        self._has_ended = False

    async def _read(self) -> None:
        """Reads one event of the model, and adds the events of fields that the text of the event causes."""
        if self._stream is None or self._parser is None:
            raise _not_open()
        try:
            if self._fallback is not None:
                (self._call, msgs), self._fallback = self._fallback, None
                await self._open(msgs)
                return
            event = await self._stream.__anext__()
        except StopAsyncIteration:
            await self._end(self._stream, self._parser)
            return
        except ModelError as error:
            self._fail(error)
            return
        if self._last_events or isinstance(event, MessageEnd):
            self._last_events.append(event)
            return
        self._events.append(event)
        text = self._text.add_event(event)
        if text:
            self._add_fields(self._parser.feed(text))

    async def _end(self, stream: ModelStream, parser: FieldStreamParser) -> None:
        """Parses the complete reply."""
        self._has_ended = True
        reply, failure = stream.message, None
        self._add_fields(parser.end())
        try:
            outputs = await self._call.parse(reply)
        except ModelError as error:
            self._fail(error)
            return
        except ParseError as error:
            outputs, failure = {}, error
        self._attempts.append(Attempt(tuple(self._msgs), reply, failure))
        if failure is None:
            parser.finish(outputs)
            self._add_fields(parser.drain())
            self._prediction = self._call.create_prediction(outputs, self._msgs, reply, self._attempts)
            self._release_last_events()
        else:
            self._handle(failure)

    def _handle(self, error: ParseError) -> None:
        """Prepares a model call with the fallback adapter, or ends the stream with an error."""
        if error.failure == "no_structure" and not self._has_fields:
            self._fallback = self._call.create_fallback()
        if self._fallback is not None:
            self._release_last_events()
            self._has_ended = False
            return
        failure = NoAnswerError(self._attempts, error)
        failure.__cause__ = error
        self._fail(failure)

    def _fail(self, error: Exception) -> None:
        """Ends the stream with an error, which is raised after the events that arrived."""
        self._release_last_events()
        self._error = error
        self._has_ended = True

    def _release_last_events(self) -> None:
        self._events += self._last_events
        self._last_events.clear()

    def _add_fields(self, events: Sequence[FieldEvent]) -> None:
        self._events += cast("Sequence[PromptEvent]", events)
        self._has_fields = self._has_fields or bool(events)


def _not_open() -> InputError:
    return InputError("stream", "not open", "Use `async with prompts.stream(…) as stream:`.")
