"""`ScriptedModel`: a `ChatModel` that returns prepared replies, for tests of code that calls models."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self, TypeAlias, Unpack

import anyio.lowlevel

from agentkit.argument_checks import check_option
from agentkit.errors import OptionError
from agentkit.messages.blocks import MediaBlock, OpaqueBlock, TextBlock, ThinkingBlock, ToolUseBlock
from agentkit.messages.message import Msg
from agentkit.messages.usage import FinishReason
from agentkit.models.chat_model import ChatModel
from agentkit.models.endpoint import EndpointBase, OutgoingRequest
from agentkit.models.model_options import ModelOptions
from agentkit.models.registry import Provider, load_provider
from agentkit.replies.error_bodies import Failure
from agentkit.replies.parser import ParserOptions, StreamParserBase
from agentkit.reprs import bounded_repr, shorten_repr

__all__ = ["ScriptedCall", "ScriptedModel", "ScriptedReply"]

ScriptedReply: TypeAlias = Msg | str | Exception
"""Prepared reply of a `ScriptedModel`: a message, a string, or an exception that the model call raises."""

_PIECE_SIZE = 8  # maximum number of characters in each event of a stream


@dataclass(frozen=True, slots=True)
class ScriptedCall:
    """Model call that a `ScriptedModel` has received.

    Attributes:
        request: Request of the call, equal to `Plan.request`.
        parameters: Provider parameters of the call.
        streamed: True if the reply was streamed.
    """

    request: Mapping[str, Any]
    parameters: Mapping[str, Any]
    streamed: bool

    __repr__ = bounded_repr


class ScriptedModel(ChatModel):
    """`ChatModel` that returns prepared replies in order, complete or as a stream of events.

    The formatter of `provider` builds the requests. A prepared message is returned unchanged, except that a finish
    reason is added if the message has no finish reason. If the prepared reply is an exception, the model call
    raises the exception. As with any `ChatModel`, a `ContextLengthError` can lead to a second call with a shorter
    prompt. If no reply remains for a call, the call raises an `OptionError`.

    Args:
        replies: Prepared replies, in order.
        provider: Provider whose formatter builds the requests, or its name.
        model: Name of the model for the requests.
        options: Options of `ChatModel`.

    Raises:
        OptionError: If `replies` is not a list of replies.
        ProviderError: If no provider has this name.

    Example:
        >>> import asyncio
        >>> model = ScriptedModel(["Green tea."])
        >>> asyncio.run(model.generate([Msg("Bob", "Tea?", "user")])).text
        'Green tea.'
        >>> model.calls[0].request["messages"]
        [{'role': 'user', 'content': 'Tea?', 'name': 'Bob'}]
    """

    def __init__(
        self,
        replies: Iterable[ScriptedReply],
        provider: str | Provider = "openai",
        model: str = "scripted",
        **options: Unpack[ModelOptions],
    ) -> None:
        check_option("provider", provider, str | Provider)
        script = _Script(_check_replies(replies))
        loaded = load_provider(provider) if isinstance(provider, str) else provider
        super().__init__(
            replace(loaded, parser=_ScriptParser, endpoint=_ScriptEndpoint), model, client=script, **options
        )
        self._script = script

    @property
    def calls(self) -> list[ScriptedCall]:
        """Model calls that the model has received, in order."""
        return self._script.calls

    @property
    def requests(self) -> list[Mapping[str, Any]]:
        """Requests of the model calls, in order."""
        return [call.request for call in self.calls]

    def play(self, *replies: ScriptedReply) -> None:
        """Appends prepared replies to the list of replies that the model will return."""
        self._script.replies.extend(_check_replies(replies))


def _check_replies(replies: Iterable[ScriptedReply]) -> list[ScriptedReply]:
    if isinstance(replies, str | Msg):
        reason = f"expected a list of replies, got {shorten_repr(replies, 60)}"
        raise OptionError("replies", reason, "Pass the replies in a list.")
    check_option("replies", replies, Iterable)
    checked = list(replies)
    for index, reply in enumerate(checked):
        check_option(f"replies[{index}]", reply, Msg | str | Exception)
    return checked


class _Script:
    def __init__(self, replies: Iterable[ScriptedReply]) -> None:
        self.replies: deque[ScriptedReply] = deque(replies)
        self.calls: list[ScriptedCall] = []

    async def answer(self, outgoing: OutgoingRequest) -> Msg | str:
        """Records a model call. Returns the next prepared reply, or raises the reply if it is an exception."""
        await anyio.lowlevel.checkpoint()
        self.calls.append(ScriptedCall(outgoing.body, outgoing.options, outgoing.stream))
        if not self.replies:
            reason = f"no prepared reply remains for model call number {len(self.calls)}"
            raise OptionError("replies", reason, "Pass ScriptedModel one reply for each model call.")
        reply = self.replies.popleft()
        if isinstance(reply, Exception):
            raise reply
        return reply


class _ScriptEndpoint(EndpointBase):
    """Endpoint that returns the prepared replies."""

    extra: ClassVar[str] = "dev"

    @classmethod
    def open(cls, **options: Any) -> Self:
        """Raises `OptionError`, because only a `ScriptedModel` can create this endpoint."""
        raise OptionError("client", "this endpoint cannot create a client", "Use ScriptedModel, not ChatModel.")

    def build_request(
        self, model: str, request: Mapping[str, Any], options: Mapping[str, Any], *, stream: bool
    ) -> OutgoingRequest:
        return OutgoingRequest(model, dict(request), stream, dict(options))

    async def send(self, outgoing: OutgoingRequest) -> Mapping[str, Any]:
        return {"reply": await self.client.answer(outgoing)}

    @asynccontextmanager
    async def stream(self, outgoing: OutgoingRequest) -> AsyncGenerator[AsyncIterator[Any]]:
        yield _stream_chunks(await self.client.answer(outgoing))

    def failure_from_exception(self, error: BaseException) -> Failure | None:
        return None

    async def aclose(self) -> None:
        pass


async def _stream_chunks(reply: Msg | str) -> AsyncIterator[dict[str, Any]]:
    for chunk in _chunks(reply):
        await anyio.lowlevel.checkpoint()
        yield chunk


def _chunks(reply: Msg | str) -> Iterator[dict[str, Any]]:
    for index, block in enumerate((TextBlock(reply),) if isinstance(reply, str) else reply.blocks):
        if isinstance(block, TextBlock | ThinkingBlock):
            text = block.text if isinstance(block, TextBlock) else block.thinking
        else:
            text = block.arguments if isinstance(block, ToolUseBlock) else ""
        for start in range(0, max(1, len(text)), _PIECE_SIZE):
            yield {"index": index, "block": block, "piece": text[start : start + _PIECE_SIZE]}
        yield {"index": index}
    yield {"reply": reply}


class _ScriptParser(StreamParserBase):
    provider: ClassVar[str] = "scripted"
    issuer: ClassVar[str] = "scripted"
    raw_arguments: ClassVar[bool] = True
    _played: Msg | None = None

    def __init__(self, **options: Any) -> None:
        # Formatters of prompts pass further options, such as a response template. A prepared reply needs none.
        super().__init__(**{name: options[name] for name in options.keys() & ParserOptions.__annotations__})

    def read_event(self, event: dict[str, Any]) -> None:
        """Processes a piece of a block, the end of a block, or (as the last event) the complete reply."""
        if "reply" in event:
            self._end(event["reply"])
        elif "block" not in event:
            self.reply.close((event["index"],))
        else:
            self._add_piece((event["index"],), event["block"], event["piece"])

    def read_reply(self, reply: dict[str, Any]) -> None:
        """Parses a complete reply by converting it to events."""
        for chunk in _chunks(reply["reply"]):
            self.read_event(chunk)

    def _add_piece(self, key: tuple[int], block: object, piece: str) -> None:
        if isinstance(block, TextBlock):
            self.reply.add_text(key, piece)
        elif isinstance(block, ThinkingBlock):
            self.reply.add_thinking(key, piece)
        elif isinstance(block, ToolUseBlock):
            self.reply.add_tool_call(key, block.id, block.name, piece)
        elif isinstance(block, MediaBlock | OpaqueBlock):
            self.reply.add_block(key, block)

    def _end(self, reply: Msg | str) -> None:
        if isinstance(reply, Msg):
            self._played = reply
        self.reply.end(
            FinishReason.STOP if self._played is None else self._played.finish_reason or FinishReason.STOP
        )

    def finish(self) -> Msg:
        """Returns the prepared message.

        If the prepared reply is a string, or if the stream broke off, returns a message with the blocks that
        arrived.
        """
        msg = super().finish()
        if self._played is None or self._played.finish_reason is not None:
            return self._played or msg
        metadata = {**(self._played.metadata or {}), **(msg.metadata or {})}
        return replace(self._played, metadata=metadata)
