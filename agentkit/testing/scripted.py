"""`ScriptedModel`: a ChatModel that plays given replies, for tests of what calls one."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self, TypeAlias, Unpack, cast

import anyio.lowlevel

from agentkit.argument_checks import check_option
from agentkit.errors import OptionError
from agentkit.messages.blocks import MediaBlock, OpaqueBlock, TextBlock, ThinkingBlock, ToolUseBlock
from agentkit.messages.message import Msg
from agentkit.messages.usage import FinishReason
from agentkit.models.chat_model import ChatModel, ModelOptions
from agentkit.models.endpoint import EndpointBase, OutgoingRequest
from agentkit.models.registry import Provider, load_provider
from agentkit.replies.error_bodies import Failure
from agentkit.replies.parser import StreamParserBase
from agentkit.reprs import bounded_repr

__all__ = ["ScriptedCall", "ScriptedModel", "ScriptedReply"]

ScriptedReply: TypeAlias = Msg | str | Exception
"""A reply: a message, its text alone, or an error that the call raises."""

_PIECE = 8  # characters a delta


@dataclass(frozen=True, slots=True)
class ScriptedCall:
    """A call that was played.

    request     what would have been sent: `plan.request`
    parameters  the further parameters of the call
    streamed    whether its reply came in events
    """

    request: Mapping[str, Any]
    parameters: Mapping[str, Any]
    streamed: bool

    __repr__ = bounded_repr


class ScriptedModel(ChatModel):
    """A model that plays given replies in order, whole or as a stream of real events.

        call = ToolUseBlock("1", "search", {"q": "tea"})
        model = ScriptedModel([Msg("Friday", [call], "assistant"), "Green tea."])
        reply = await model.generate(msgs, tools=[search])
        assert model.calls[0].request["tools"]

    Everything else is a ChatModel's: its formatter, that of `provider`, makes real requests; its options are
    ChatModel's. A message is played as it is, but that it says how it ended, as any reply does. An error is raised
    by the call, a ContextLengthError perhaps answered by a shorter plan. A call beyond the last reply raises
    OptionError.

    calls  what was asked, in order
    """

    def __init__(
        self,
        replies: Iterable[ScriptedReply],
        provider: str | Provider = "openai",
        model: str = "scripted",
        **options: Unpack[ModelOptions],
    ) -> None:
        check_option("provider", provider, str | Provider)
        script = _Script(_checked(replies))
        known = load_provider(provider) if isinstance(provider, str) else provider
        super().__init__(
            replace(known, parser=_ScriptParser, endpoint=_ScriptEndpoint), model, client=script, **options
        )
        self._script = script

    @property
    def calls(self) -> list[ScriptedCall]:
        """What was asked, in order."""
        return self._script.calls

    @property
    def requests(self) -> list[Mapping[str, Any]]:
        """The requests of the calls, in order."""
        return [call.request for call in self.calls]

    def play(self, *replies: ScriptedReply) -> None:
        """Play further replies, behind those that wait."""
        self._script.replies.extend(_checked(replies))


def _checked(replies: Iterable[ScriptedReply]) -> list[ScriptedReply]:
    if isinstance(replies, str | Msg):
        raise OptionError("replies", f"a {type(replies).__name__} is no list of replies", "Pass a list.")
    check_option("replies", replies, Iterable)
    found = list(replies)
    for at, reply in enumerate(found):
        check_option(f"replies[{at}]", reply, Msg | str | Exception)
    return found


class _Script:
    """The replies that wait, and the calls that were played."""

    def __init__(self, replies: Iterable[ScriptedReply]) -> None:
        self.replies: deque[ScriptedReply] = deque(replies)
        self.calls: list[ScriptedCall] = []

    def next(self) -> Msg | str:
        if not self.replies:
            reason = f"the script ended before call {len(self.calls)}"
            raise OptionError("replies", reason, "Give ScriptedModel a reply for every call.")
        reply = self.replies.popleft()
        if isinstance(reply, Exception):
            raise reply
        return reply


class _ScriptEndpoint(EndpointBase):
    """Answers with the script."""

    extra: ClassVar[str] = "dev"

    @classmethod
    def open(cls, **options: Any) -> Self:
        """A script is given, never opened."""
        raise OptionError("client", "a script is given as the client", "Use ScriptedModel.")

    def build_request(
        self, model: str, request: Mapping[str, Any], options: Mapping[str, Any], *, stream: bool
    ) -> OutgoingRequest:
        return OutgoingRequest(model, dict(request), stream, dict(options))

    async def _next(self, outgoing: OutgoingRequest) -> Msg | str:
        await anyio.lowlevel.checkpoint()
        self.client.calls.append(ScriptedCall(outgoing.body, outgoing.options, outgoing.stream))
        return cast("Msg | str", self.client.next())

    async def send(self, outgoing: OutgoingRequest) -> Mapping[str, Any]:
        return {"reply": await self._next(outgoing)}

    def stream(self, outgoing: OutgoingRequest) -> AbstractAsyncContextManager[AsyncIterator[Any]]:
        return self._stream(outgoing)

    @asynccontextmanager
    async def _stream(self, outgoing: OutgoingRequest) -> AsyncGenerator[AsyncIterator[Any]]:
        yield _played(await self._next(outgoing))

    def failure_from_exception(self, error: BaseException) -> Failure | None:
        return None

    def failure_from_reply(self, reply: object) -> Failure | None:
        return None

    async def aclose(self) -> None:
        pass


async def _played(reply: Msg | str) -> AsyncIterator[dict[str, Any]]:
    for chunk in _chunks(reply):
        await anyio.lowlevel.checkpoint()
        yield chunk


def _chunks(reply: Msg | str) -> Iterator[dict[str, Any]]:
    """A reply in the events of the script's own wire."""
    for at, block in enumerate((TextBlock(reply),) if isinstance(reply, str) else reply.blocks):
        if isinstance(block, TextBlock | ThinkingBlock):
            text = block.text if isinstance(block, TextBlock) else block.thinking
        else:
            text = block.arguments if isinstance(block, ToolUseBlock) else ""
        for start in range(0, max(1, len(text)), _PIECE):
            yield {"at": at, "block": block, "piece": text[start : start + _PIECE]}
        yield {"at": at}
    yield {"reply": reply}


class _ScriptParser(StreamParserBase):
    """Reads the script's own wire."""

    provider: ClassVar[str] = "scripted"
    issuer: ClassVar[str] = "scripted"
    raw_arguments: ClassVar[bool] = True
    _said: Msg | None = None

    def read_event(self, event: dict[str, Any]) -> None:
        """A piece of a block, a block's end, or the whole reply at the end."""
        if "reply" in event:
            self._end(event["reply"])
        elif "block" not in event:
            self.reply.close((event["at"],))
        else:
            self._piece((event["at"],), event["block"], event["piece"])

    def read_reply(self, reply: dict[str, Any]) -> None:
        """The reply, piece by piece."""
        for chunk in _chunks(reply["reply"]):
            self.read_event(chunk)

    def _piece(self, key: tuple[int], block: object, piece: str) -> None:
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
            self._said = reply
        self.reply.end(FinishReason.STOP if self._said is None else self._said.finish_reason or FinishReason.STOP)

    def finish(self) -> Msg:
        """The message of the script, once it was played to its end."""
        made = super().finish()
        if self._said is None or self._said.finish_reason is not None:
            return self._said or made
        metadata = {**(self._said.metadata or {}), **(made.metadata or {})}
        return replace(self._said, metadata=metadata)
