"""Checks that a parser loses no content, never crashes, and returns equal messages for a reply and its stream."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias, cast

from agentkit.errors import AgentkitError, MessageError
from agentkit.json_values import parse_json
from agentkit.messages.blocks import OpaqueState, ThinkingBlock
from agentkit.messages.message import Msg
from agentkit.messages.usage import Usage
from agentkit.models.registry import Provider
from agentkit.replies.parser import StreamParserBase
from agentkit.testing.findings import collect_findings, describe_error
from agentkit.testing.probes import SENT
from agentkit.testing.replies import Reply
from agentkit.testing.request_marks import iterate_scalars, json_text

__all__ = ["Sample", "reply_faults"]

Events: TypeAlias = "Sequence[Mapping[str, Any]] | bytes"

Sample: TypeAlias = "tuple[object, Events] | tuple[object, Events, Reply]"
"""Tuple of a complete native reply and its stream, which is a list of events or raw bytes.

An optional third item is a `Reply` with the expected message, usage and finish reason.
"""

_UNKNOWN_EVENTS: Final[tuple[dict[str, Any], ...]] = (
    {},
    {"type": "an.event.of.tomorrow", "delta": None},
    {"choices": None, "candidates": [None], "message": 7, "output": [], "usage": {"input_tokens": -1}},
)
"""Events that no API sends. A parser must ignore these events or raise `MessageError`."""


def reply_faults(provider: Provider, samples: Sequence[Sample]) -> Iterator[str]:
    """Yields a sentence for each fault of a provider's parser."""
    parser, samples = provider.parser, copy.deepcopy(samples)
    if parser is None:
        if samples:
            yield "parser: samples were passed, but the provider has no parser"
        return
    name = parser.__name__
    yield from collect_findings(name, _check_unknown_events(parser))
    yield from collect_findings(name, _check_issuer(provider, parser))
    for number, (whole, events, *expected) in enumerate(samples):
        place = f"{name}, samples[{number}]"
        yield from collect_findings(place, _check_sample(provider, whole, events))
        yield from collect_findings(place, _check_whole(parser, whole, *expected[:1]))
        yield from collect_findings(place, _check_broken(parser, whole, events))
        yield from collect_findings(place, _check_send_back(provider, whole))
    yield from collect_findings(name, _check_repetition(parser, samples))
    yield from collect_findings(name, _check_usage(parser, samples))


def _check_issuer(provider: Provider, parser: type[StreamParserBase]) -> Iterator[str]:
    issuer = provider.chat_formatter.base.issuer
    if issuer is not None and parser.issuer != issuer:
        yield f"`issuer` is {parser.issuer!r}, but the issuer of the formatter is {issuer!r}. Use the same issuer"


def _check_unknown_events(parser: type[StreamParserBase]) -> Iterator[str]:
    reader = parser()
    for event in _UNKNOWN_EVENTS:
        try:
            reader.feed(event)
        except MessageError:
            continue
        except Exception as error:
            yield f"an unknown event raises {describe_error(error)} instead of a MessageError"
    if reader.finish().finish_reason is None:
        yield "a stream that breaks off results in a message without a finish reason"


# -- one reply ----------------------------------------------------------------------------------------------------


def _check_sample(provider: Provider, whole: object, events: Events) -> Iterator[str]:
    parser = cast("type[StreamParserBase]", provider.parser)
    originals = copy.deepcopy((whole, events))
    reply = parser.parse_response(whole)
    if parser.parse_response(json.dumps(whole) if isinstance(whole, dict) else whole) != reply:
        yield "the JSON text of a reply results in a different message than the dict of the reply"
    for size in (1, 7, 10_000_000) if isinstance(events, bytes) else (1,):
        streamed = _read_stream(parser, events, size)
        if streamed != reply:
            pieces = f"{size} bytes at a time" if isinstance(events, bytes) else "event by event"
            difference = _find_difference(reply, streamed)
            fault = "results in a different message than the complete reply"
            yield f"the stream, read {pieces}, {fault}: {difference}"
    if (whole, events) != originals:
        yield "the parser changed its input"
    if Msg.from_dict(reply.to_dict()) != reply:
        yield "storing and loading the message changes the message"
    if reply.finish_reason is None:
        yield "the message has no finish reason"
    if reply.role != "assistant":
        yield f"the message has the role {reply.role!r}, expected 'assistant'"


def _check_whole(parser: type[StreamParserBase], whole: object, expected: Reply | None = None) -> Iterator[str]:
    """Checks that the message has all texts, all arguments and the usage of a complete native reply."""
    reply = parser.parse_response(whole)
    if expected is not None:
        yield from _check_expected(reply, expected)
        yield from _check_call_ids(reply, expected, parse_json(whole) if isinstance(whole, str | bytes) else whole)
    message_text = "\n".join(str(leaf) for _, leaf in iterate_scalars(reply.to_dict()))
    for key, leaf in iterate_scalars(cast("object", whole if isinstance(whole, dict) else {})):
        if (
            isinstance(leaf, str)
            and " " in leaf.strip()
            and not leaf.startswith(("{", "["))
            and leaf not in message_text
        ):
            yield f"the text {leaf[:60]!r} under the key {key!r} is not in the message"
        if isinstance(leaf, str) and leaf.startswith("{") and not _is_among(leaf, reply):
            yield f"no tool call of the message has the arguments {leaf[:60]!r}"
        if _COUNT.search(key) and isinstance(leaf, int | float) and leaf > 0 and reply.usage is None:
            yield f"the reply has usage ({key!r} is {leaf}), but the message has no usage"


_COUNT: Final = re.compile(r"tokens?(_?count)?$|eval_count$", re.IGNORECASE)


def _is_among(text: str, reply: Msg) -> bool:
    try:
        value = json.loads(text)
    except ValueError:
        return True  # text that is not JSON cannot be the arguments of a tool call
    return any(use.input == value for use in reply.tool_uses) or text in json_text(reply.to_dict())


def _check_expected(reply: Msg, expected: Reply) -> Iterator[str]:
    content = expected.content
    msg = content if isinstance(content, Msg) else Msg("assistant", str(content), "assistant")
    actual = _summarize(reply)
    for name, value in _summarize(msg).items():
        if actual[name] != value:
            yield f"{name}: expected {value!r}, got {actual[name]!r}"
    if expected.finish_reason is not None and reply.finish_reason is not expected.finish_reason:
        yield f"finish reason: expected {expected.finish_reason}, got {reply.finish_reason}"
    if expected.usage is not None and (reply.usage or Usage()) != expected.usage:
        yield f"usage: expected {expected.usage}, got {reply.usage}"


def _check_call_ids(reply: Msg, expected: Reply, native: object) -> Iterator[str]:
    """Checks each expected tool call id that the native reply contains under a key such as `call_id`."""
    uses = expected.content.tool_uses if isinstance(expected.content, Msg) else ()
    ids = {leaf for key, leaf in iterate_scalars(native) if key.lower().endswith("id") and isinstance(leaf, str)}
    for use, parsed in zip(uses, reply.tool_uses, strict=False):
        if use.id in ids and parsed.id != use.id:
            yield f"call id: expected {use.id!r}, got {parsed.id!r}"


def _summarize(msg: Msg) -> dict[str, Any]:
    return {
        "text": msg.text,
        "thinking": [(block.thinking, _proof(block.state)) for block in msg.blocks if block.type == "thinking"],
        "calls": [(use.name, use.input) for use in msg.tool_uses],
    }


def _proof(state: OpaqueState | None) -> dict[str, str]:
    values = {name: getattr(state, name, None) for name in _PROOF_FIELDS}
    return {name: value for name, value in values.items() if value is not None}


_PROOF_FIELDS: Final = ("signature", "redacted_data", "encrypted_content", "thought_signature")


def _check_send_back(provider: Provider, whole: object) -> Iterator[str]:
    """Checks that a parsed message can be sent back to its provider without loss."""
    reply = cast("type[StreamParserBase]", provider.parser).parse_response(whole)
    plan = provider.chat_formatter().lower([Msg("Ann", "hi", "user"), reply, Msg("Ann", "go on", "user")])
    for place, reason in plan.ledger.losses:
        yield f"a request that sends the message back to its provider loses {place} ({reason})"
    texts = [str(leaf) for _, leaf in iterate_scalars(plan.request)]
    sent = {entry.place for entry in plan.ledger.entries if entry.disposition.word in SENT}
    for index, block in enumerate(reply.blocks):
        if isinstance(block, ThinkingBlock) and f"msgs[1].content[{index}]" in sent:
            values = {block.thinking, *_proof(block.state).values()} - {""}
            if values and not any(value in text for value in values for text in texts):
                yield f"the thinking {block.thinking[:60]!r} is not sent back, but the ledger lists it as sent"
    if reply.text.strip() and "\n" not in reply.text and not any(reply.text in text for text in texts):
        yield "the text of the message is not sent back to its provider"


# -- incomplete replies -------------------------------------------------------------------------------------------


def _check_broken(parser: type[StreamParserBase], whole: object, events: Events) -> Iterator[str]:
    """Checks that incomplete replies and streams cause no unexpected errors.

    Parsing an incomplete reply may raise only `AgentkitError`. Parsing an incomplete stream must raise no error,
    and must return a message with a finish reason.
    """
    for label, part in _remove_parts(whole):
        try:
            parser.parse_response(part)
        except AgentkitError:
            continue
        except Exception as error:
            yield f"a reply {label} raises {describe_error(error)}"
    total = f"{len(events)} {'bytes' if isinstance(events, bytes) else 'events'}"
    for end in range(0, len(events), max(1, len(events) // 20)):
        try:
            reply = _read_stream(parser, events[:end], 10_000_000)
        except Exception as error:
            yield f"a stream that ends after {end} of {total} raises {describe_error(error)}"
            break
        if reply.finish_reason is None:
            yield f"a stream that ends after {end} of {total} results in a message without a finish reason"
            break


def _remove_parts(whole: object) -> Iterator[tuple[str, object]]:
    """Yields changed copies of a reply, each with a description of the change: a missing key or a new value."""
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
        for label, part in _remove_parts(cast("object", inner)):
            yield f"{label} in {key!r}", {**reply, key: [part] if isinstance(value, list) else part}


def _check_repetition(parser: type[StreamParserBase], samples: Sequence[Sample]) -> Iterator[str]:
    """Checks that parsing the same reply again returns the same message, even after other replies."""
    first = [parser.parse_response(whole) for whole, *_ in samples]
    again = [parser.parse_response(whole) for whole, *_ in reversed(samples)][::-1]
    for number, (reply, other) in enumerate(zip(first, again, strict=True)):
        if reply != other:
            difference = _find_difference(reply, other)
            yield f"samples[{number}] results in a different message if parsed again: {difference}"


def _check_usage(parser: type[StreamParserBase], samples: Sequence[Sample]) -> Iterator[str]:
    """Checks that at least one sample reports usage. Otherwise, a parser that ignores usage would pass."""
    has_usage = any(
        parser.parse_response(whole).usage or any(reply.usage is not None for reply in expected)
        for whole, _, *expected in samples
    )
    if samples and not has_usage:
        yield (
            "no sample has usage. Add a sample with token usage. If the API reports no usage, add the expected "
            "`Reply(…, usage=Usage())` as the third item of a sample"
        )


def _read_stream(parser: type[StreamParserBase], events: Events, size: int) -> Msg:
    reader = parser()
    if isinstance(events, bytes):
        for start in range(0, len(events), size):
            reader.feed(events[start : start + size])
    else:
        for event in events:
            reader.feed(event)
    return reader.finish()


def _find_difference(msg: Msg, other: Msg) -> str:
    """Returns a description of the first field in which two messages differ."""
    fields, other_fields = msg.to_dict(), other.to_dict()
    for key, value in fields.items():
        if value != other_fields.get(key):
            return f"{key!r} is {value!r} in one message and {other_fields.get(key)!r} in the other"
    return "the difference is in a field that `to_dict` omits"
