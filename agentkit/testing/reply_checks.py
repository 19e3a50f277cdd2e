"""What must hold of a provider's parser: a stream is the whole reply, and nothing that comes harms it."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias, cast

from agentkit.errors import MessageError
from agentkit.messages import Msg
from agentkit.registry import Provider
from agentkit.streaming import StreamParserBase

__all__ = ["Sample", "reply_faults"]

Sample: TypeAlias = tuple[object, "Sequence[Mapping[str, Any]] | bytes"]
"""A native reply, whole, and the same as a stream: its events as dicts, or its raw bytes."""

_ODD: Final[tuple[dict[str, Any], ...]] = (
    {},
    {"type": "an.event.of.tomorrow", "delta": None},
    {"choices": None, "candidates": [None], "message": 7, "output": [], "usage": {"input_tokens": -1}},
)
"""Events of no stream, which must do no harm."""


def reply_faults(provider: Provider, samples: Sequence[Sample]) -> Iterator[str]:
    """What fails, as sentences."""
    parser = provider.parser
    if parser is None:
        if samples:
            yield "parser: there are samples, and no parser to read them"
        return
    yield from _harmed(parser)
    for number, (whole, events) in enumerate(samples):
        yield from (f"{parser.__name__}, samples[{number}]: {fault}" for fault in _sample(provider, whole, events))


def _harmed(parser: type[StreamParserBase]) -> Iterator[str]:
    read = parser()
    for event in _ODD:
        try:
            read.feed(event)
        except MessageError:
            continue
        except Exception as error:
            yield f"{parser.__name__}: an unknown event raises {type(error).__name__}: {error}"
    if read.finish().finish_reason is None:
        yield f"{parser.__name__}: a stream that breaks off gives a message without a finish reason"


def _sample(provider: Provider, whole: object, events: Sequence[Mapping[str, Any]] | bytes) -> Iterator[str]:
    parser = cast("type[StreamParserBase]", provider.parser)
    given = copy.deepcopy((whole, events))
    reply = parser.parse_response(whole)
    if parser.parse_response(json.dumps(whole) if isinstance(whole, dict) else whole) != reply:
        yield "the JSON text of a reply is read as another message than its dict"
    for size in (1, 7, 10_000_000) if isinstance(events, bytes) else (1,):
        streamed = _streamed(parser, events, size)
        if streamed != reply:
            yield f"the stream in pieces of {size} is read as another message: {_unlike(reply, streamed)}"
    if (whole, events) != given:
        yield "what was read was changed"
    if Msg.from_dict(reply.to_dict()) != reply:
        yield "the message is another one once it was stored and loaded"
    if reply.finish_reason is None:
        yield "the message has no finish reason"
    provider.chat().lower([Msg("Ann", "hi", "user"), reply])


def _streamed(parser: type[StreamParserBase], events: Sequence[Mapping[str, Any]] | bytes, size: int) -> Msg:
    read = parser()
    if isinstance(events, bytes):
        for start in range(0, len(events), size):
            read.feed(events[start : start + size])
    else:
        for event in events:
            read.feed(event)
    return read.finish()


def _unlike(one: Msg, other: Msg) -> str:
    """The first field in which two messages differ."""
    ours, theirs = one.to_dict(), other.to_dict()
    for key in ours:
        if ours[key] != theirs.get(key):
            return f"{key} is {ours[key]!r}, and in the stream {theirs.get(key)!r}"
    return "a field that is not stored"
