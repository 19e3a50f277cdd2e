"""Checks of a provider's parser: streamed and whole replies agree, nothing is lost, broken replies do no harm."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias, cast

from agentkit.errors import AgentkitError, MessageError
from agentkit.messages.blocks import OpaqueState
from agentkit.messages.message import Msg
from agentkit.models.registry import Provider
from agentkit.replies.parser import StreamParserBase
from agentkit.testing.findings import collect_findings, describe_error, iterate_scalars, json_text
from agentkit.testing.replies import Reply

__all__ = ["ExpectedSample", "Sample", "reply_faults"]

Events: TypeAlias = "Sequence[Mapping[str, Any]] | bytes"

Sample: TypeAlias = "tuple[object, Events]"
"""A native reply, whole, and the same as a stream: its events as dicts, or its raw bytes."""

ExpectedSample: TypeAlias = "tuple[object, Events, Reply]"
"""The same with what the reply says."""

_ODD: Final[tuple[dict[str, Any], ...]] = (
    {},
    {"type": "an.event.of.tomorrow", "delta": None},
    {"choices": None, "candidates": [None], "message": 7, "output": [], "usage": {"input_tokens": -1}},
)
"""Events of no stream, which must do no harm."""


def reply_faults(provider: Provider, samples: Sequence[Sample | ExpectedSample]) -> Iterator[str]:
    """What fails, as sentences."""
    parser, samples = provider.parser, copy.deepcopy(samples)
    if parser is None:
        if samples:
            yield "parser: there are samples, and no parser to read them"
        return
    name = parser.__name__
    yield from collect_findings(name, _harmed(parser))
    yield from collect_findings(name, _issuer(provider, parser))
    for number, (whole, events, *expected) in enumerate(samples):
        place = f"{name}, samples[{number}]"
        yield from collect_findings(place, _sample(provider, whole, events))
        yield from collect_findings(place, _read_whole(parser, whole, *expected[:1]))
        yield from collect_findings(place, _broken(parser, whole, events))
        yield from collect_findings(place, _sent_back(provider, whole))
    yield from collect_findings(name, _leaks(parser, samples))


def _issuer(provider: Provider, parser: type[StreamParserBase]) -> Iterator[str]:
    issuer = provider.chat_formatter.base.issuer
    if issuer is not None and parser.issuer != issuer:
        yield f"its issuer is {parser.issuer!r}, and that of the formatter {issuer!r}: no thinking would go back"


def _harmed(parser: type[StreamParserBase]) -> Iterator[str]:
    read = parser()
    for event in _ODD:
        try:
            read.feed(event)
        except MessageError:
            continue
        except Exception as error:
            yield f"an unknown event raises {describe_error(error)}"
    if read.finish().finish_reason is None:
        yield "a stream that breaks off gives a message without a finish reason"


# -- one reply ----------------------------------------------------------------------------------------------------


def _sample(provider: Provider, whole: object, events: Events) -> Iterator[str]:
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
    if reply.role != "assistant":
        yield f"the message has the role {reply.role!r}"


def _read_whole(parser: type[StreamParserBase], whole: object, expected: Reply | None = None) -> Iterator[str]:
    """All that a reply says is in the message: its texts, arguments and usage, as far as they can be told."""
    reply = parser.parse_response(whole)
    if expected is not None:
        yield from _unexpected(reply, expected)
    said = "\n".join(str(leaf) for _, leaf in iterate_scalars(reply.to_dict()))
    for key, leaf in iterate_scalars(cast("object", whole if isinstance(whole, dict) else {})):
        if isinstance(leaf, str) and " " in leaf.strip() and not leaf.startswith(("{", "[")) and leaf not in said:
            yield f"{leaf[:60]!r} of {key!r} is not in the message"
        if isinstance(leaf, str) and leaf.startswith("{") and not _is_among(leaf, reply):
            yield f"the arguments {leaf[:60]!r} are in no call of the message"
        if _COUNT.search(key) and isinstance(leaf, int) and leaf > 0 and reply.usage is None:
            yield f"the reply has usage ({key!r} is {leaf}), and the message has none"


_COUNT: Final = re.compile(r"tokens?(_?count)?$|eval_count$", re.IGNORECASE)


def _is_among(text: str, reply: Msg) -> bool:
    try:
        value = json.loads(text)
    except ValueError:
        return True  # no arguments
    return any(use.input == value for use in reply.tool_uses) or text in json_text(reply.to_dict())


def _unexpected(reply: Msg, expected: Reply) -> Iterator[str]:
    said = expected.content
    if not isinstance(said, Msg):
        said = Msg("assistant", str(said), "assistant")
    wanted, found = _content(said), _content(reply)
    for kind in wanted:
        if found[kind] != wanted[kind]:
            yield f"{kind}: {found[kind]!r} is read, and {wanted[kind]!r} was said"
    if expected.finish_reason is not None and reply.finish_reason is not expected.finish_reason:
        yield f"finish reason: {reply.finish_reason} is read, and {expected.finish_reason} was said"
    if expected.usage is not None and reply.usage != expected.usage:
        yield f"usage: {reply.usage} is read, and {expected.usage} was said"


def _content(msg: Msg) -> dict[str, Any]:
    return {
        "text": msg.text,
        "thinking": [(block.thinking, _proof(block.state)) for block in msg.blocks if block.type == "thinking"],
        "calls": [(use.name, use.input) for use in msg.tool_uses],
    }


def _proof(state: OpaqueState | None) -> tuple[str | None, ...]:
    if state is None:
        return ()
    return (state.signature, state.redacted_data, state.encrypted_content, state.thought_signature)


def _sent_back(provider: Provider, whole: object) -> Iterator[str]:
    """The message goes back to its provider: nothing in it is a loss."""
    reply = cast("type[StreamParserBase]", provider.parser).parse_response(whole)
    plan = provider.chat_formatter().lower([Msg("Ann", "hi", "user"), reply, Msg("Ann", "go on", "user")])
    for place, reason in plan.ledger.losses:
        yield f"the message does not go back to its own provider: {place} is lost ({reason})"
    texts = [str(leaf) for _, leaf in iterate_scalars(plan.request)]
    if reply.text.strip() and "\n" not in reply.text and not any(reply.text in text for text in texts):
        yield "the text of the message does not go back to its own provider"


# -- what goes wrong ----------------------------------------------------------------------------------------------


def _broken(parser: type[StreamParserBase], whole: object, events: Events) -> Iterator[str]:
    """A reply with a part missing, and a stream that ends anywhere, raise nothing but errors of agentkit."""
    for label, part in _without_parts(whole):
        try:
            parser.parse_response(part)
        except AgentkitError:
            continue
        except Exception as error:
            yield f"a reply {label} raises {describe_error(error)}"
    for end in range(0, len(events), max(1, len(events) // 20)):
        try:
            reply = _streamed(parser, events[:end], 10_000_000)
        except Exception as error:
            yield f"a stream that ends after {end} of {len(events)} raises {describe_error(error)}"
            break
        if reply.finish_reason is None:
            yield f"a stream that ends after {end} of {len(events)} gives a message without a finish reason"
            break


def _without_parts(whole: object) -> Iterator[tuple[str, object]]:
    """A reply without each of its keys, and with null and a number under it, two levels deep."""
    if not isinstance(whole, dict):
        return
    reply = cast("dict[str, Any]", whole)
    for key, value in reply.items():
        yield f"without {key!r}", {name: item for name, item in reply.items() if name != key}
        for other in (None, 3, [None], {"": None}):
            yield f"with {other!r} under {key!r}", {**reply, key: other}
        inner: Any = value
        if isinstance(value, list) and value:
            inner = cast("list[Any]", value)[0]
        for label, part in _without_parts(cast("object", inner)):
            yield f"{label} in {key!r}", {**reply, key: [part] if isinstance(value, list) else part}


def _leaks(parser: type[StreamParserBase], samples: Sequence[Sample | ExpectedSample]) -> Iterator[str]:
    """A reply is read as the same message whatever was read before."""
    first = [parser.parse_response(whole) for whole, *_ in samples]
    again = [parser.parse_response(whole) for whole, *_ in reversed(samples)][::-1]
    for number, (reply, other) in enumerate(zip(first, again, strict=True)):
        if reply != other:
            yield f"samples[{number}] is read as another message the second time: {_unlike(reply, other)}"


def _streamed(parser: type[StreamParserBase], events: Events, size: int) -> Msg:
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
