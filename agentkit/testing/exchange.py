"""One exchange: a request, and the bytes that answer it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, cast

from agentkit.errors import OptionError
from agentkit.messages.message import Msg
from agentkit.testing.replies import LoopbackError, NormalizedReply, PlayableReply, ReceivedCall, Reply
from agentkit.testing.routes import Target
from agentkit.testing.wire import Wire, encoded

__all__ = ["Answer", "AnswerContext", "answer_to", "first_of"]


class AnswerContext(Protocol):
    """What an answer depends on."""

    model: str
    streamed: bool
    refused: str | None
    body: Any


@dataclass(frozen=True, slots=True)
class Answer:
    """What goes back: a whole `body`, or the `frames` of a stream."""

    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    body: bytes = b""
    frames: Iterable[bytes] | None = None
    delay: float = 0.0
    cut_after: int | None = None
    cut_after_bytes: int | None = None


def first_of(target: Target, error: LoopbackError) -> Answer:
    """An error as the whole answer."""
    headers = {**target.wire.headers("loopback"), **target.wire.error_headers(error)}
    if error.retry_after is not None:
        headers["retry-after"] = f"{error.retry_after:g}"
    return Answer(error.status, headers, encoded(target.wire.error(error)))


def answer_to(
    target: Target, asked: AnswerContext, choose: Callable[[], PlayableReply], *, validate: bool
) -> Answer:
    """The answer to a request. `choose` gives the reply, and is asked only when one is due."""
    found: object = asked.body
    if not isinstance(found, dict):
        return first_of(target, LoopbackError(400, "We could not parse the JSON body of your request."))
    body = cast("dict[str, Any]", found)
    call = ReceivedCall(target.provider, asked.model, body, asked.streamed)
    if target.counts:
        counted = target.wire.count(body)
        return Answer(body=encoded(counted))
    asked.refused = target.wire.refusal(call) if validate else None
    if asked.refused is not None:
        return first_of(target, LoopbackError(400, asked.refused))
    return _played(target, call, choose())


def _played(target: Target, call: ReceivedCall, given: PlayableReply) -> Answer:
    while callable(given):
        try:
            given = given(dict(call.body))
        except LoopbackError as error:
            given = error
    if isinstance(given, LoopbackError):
        return first_of(target, given)
    reply = given if isinstance(given, Reply) else Reply(given)
    if isinstance(reply.said, str):
        reply = replace(reply, said=Msg("assistant", reply.said, "assistant"))
    answer = _streamed(target.wire, call, reply) if call.streamed else _whole(target, call, reply)
    headers = {**answer.headers, **(reply.headers or {})}
    return replace(answer, headers=headers, delay=reply.delay, cut_after_bytes=reply.cut_after_bytes)


def _whole(target: Target, call: ReceivedCall, reply: Reply) -> Answer:
    said = reply.said
    if reply.error is not None:
        return first_of(target, reply.error)
    if isinstance(said, Msg):
        found = NormalizedReply.of(said, reply, target.wire.prompt(call.body))
        return Answer(headers=target.wire.headers(found.id), body=encoded(target.wire.whole(found, call)))
    if isinstance(said, bytes):
        return Answer(body=said)
    if isinstance(said, Mapping):
        return Answer(body=encoded(said))
    raise OptionError("replies", "these are events, and the call asks for a whole reply", "Give a dict, or a Msg.")


def _streamed(wire: Wire, call: ReceivedCall, reply: Reply) -> Answer:
    said, id = reply.said, "loopback"
    ending = wire.ending
    if isinstance(said, Msg):
        found = NormalizedReply.of(said, reply, wire.prompt(call.body))
        events: Iterable[Mapping[str, Any] | bytes] = [*wire.events(found, call)]
        id = found.id
    elif isinstance(said, bytes):
        events, ending = [said], b""
    elif isinstance(said, list | tuple):
        events = cast("list[Mapping[str, Any] | bytes]", said)
    else:
        reason = "this is a whole reply, and the call asks for a stream"
        raise OptionError("replies", reason, "Give a list of events, or a Msg.")
    headers = {"content-type": wire.media_type, "cache-control": "no-cache", **wire.headers(id)}
    frames = _frames(wire, [*events], reply, ending)
    return Answer(headers=headers, frames=frames, cut_after=reply.cut_after)


def _frames(wire: Wire, events: list[Mapping[str, Any] | bytes], reply: Reply, ending: bytes) -> Iterator[bytes]:
    if reply.error is not None:
        events, ending = [*events[: reply.error_after], wire.error_event(reply.error)], b""
    yield from wire.frames(events)
    if ending:
        yield ending
