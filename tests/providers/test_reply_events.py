"""The events of a stream match its message, for every API and for damaged streams."""

from __future__ import annotations

import copy
import json
from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentkit import (
    FinishReason,
    MessageEnd,
    Msg,
    StreamEvent,
    TextBlock,
    TextDelta,
    ToolUseBlock,
    Usage,
    load_provider,
)
from agentkit.provider_kit import StreamParserBase
from agentkit.testing.replies import NormalizedReply, ReceivedCall, Reply
from agentkit.testing.routes import find_route
from tests.profiles import examples
from tests.providers.mangling import mangled
from tests.providers.streams import cut, cuts, parse_stream

PATHS = {
    "openai": "/v1/chat/completions",
    "openai-responses": "/v1/responses",
    "anthropic": "/v1/messages",
    "gemini": "/v1beta/models/gemini-3:streamGenerateContent",
    "ollama": "/api/chat",
    "dashscope": "/api/v1/services/aigc/text-generation/generation",
}
MSG = Msg(
    "assistant",
    [TextBlock("So 天气 🙂."), ToolUseBlock("a", "look", {"at": "杭州"}), ToolUseBlock("b", "look", {})],
    "assistant",
)
STARTS = ("text-start", "thinking-start", "tool-use-start")
UNDIVIDED = ("media", "opaque")


def _parser(provider: str) -> type[StreamParserBase]:
    parser = load_provider(provider).parser
    assert parser is not None
    return parser


def _events(provider: str) -> list[dict[str, Any]]:
    """Returns the native events of a reply, as a provider sends them."""
    target = find_route(PATHS[provider])
    assert target is not None
    body = {"stream_options": {"include_usage": True}, "parameters": {"incremental_output": True}}
    reply = NormalizedReply.normalize(MSG, Reply("", usage=Usage(10, 5), piece_size=4), {})
    call = ReceivedCall("model-1", body, is_streamed=True)
    events: list[dict[str, Any]] = json.loads(json.dumps([*target.service.build_events(reply, call)]))
    return events


EVENTS = {provider: _events(provider) for provider in PATHS}


def _encode_events(events: list[Any], lines: bool) -> bytes:
    frames = (json.dumps(event) + "\n" if lines else f"data: {json.dumps(event)}\n\n" for event in events)
    return "".join(frames).encode()


def _check_events(events: list[StreamEvent], reply: Msg) -> None:
    """Asserts that the message and each block start and end once, and that the events match the message."""
    kinds = [event.type for event in events]
    assert kinds.count("message-start") == kinds.count("message-end") == 1
    assert set(kinds[kinds.index("message-end") + 1 :]) <= {"usage"}
    begun: list[int] = []
    ended: set[int] = set()
    for event in events:
        index, kind = getattr(event, "index", None), event.type
        if kind in STARTS or (kind in UNDIVIDED and index not in begun):
            begun.append(index or 0)
        if index is not None:
            assert index in begun, kind
            assert index not in ended, kind
        if kind in UNDIVIDED or kind in ("text-end", "thinking-end", "tool-use-end"):
            ended.add(index or 0)
    assert begun == list(range(len(begun)))
    if reply.finish_reason not in (FinishReason.INTERRUPTED, FinishReason.ERROR):
        assert ended == set(begun)
    streamed, expected = _count_ends(events), _count_blocks(reply)
    assert not streamed - expected
    assert streamed == expected or ended != set(begun)  # an interrupted call has no end event


def _count_ends(events: list[StreamEvent]) -> Counter[str]:
    """Counts the contents of the end events, except empty texts."""
    ends = [_represent(event.block) for event in events if event.type == "tool-use-end"]
    ends += [f"{event.type[:-4]} {event.text}" for event in events if event.type == "text-end" and event.text]
    ends += [f"{event.type[:-4]} {event.text}" for event in events if event.type == "thinking-end" and event.text]
    return Counter(ends)


def _represent(block: ToolUseBlock) -> str:
    return repr(Msg("Friday", [block], "assistant").to_dict())


def _count_blocks(reply: Msg) -> Counter[str]:
    calls = [_represent(call) for call in reply.tool_uses]
    texts = [f"text {block.text}" for block in reply.blocks if block.type == "text" and block.text]
    thoughts = [f"thinking {block.thinking}" for block in reply.blocks if block.type == "thinking"]
    return Counter([*calls, *texts, *(text for text in thoughts if text != "thinking ")])


@pytest.mark.parametrize("provider", PATHS)
@examples(60)
@given(data=st.data())
def test_the_events_of_a_mangled_stream_match_its_message(provider: str, data: st.DataObject) -> None:
    events = copy.deepcopy(EVENTS[provider])
    order = data.draw(st.permutations(range(len(events)))) if data.draw(st.booleans()) else range(len(events))
    events = [events[index] for index in order]
    for index in data.draw(st.lists(st.integers(0, len(events) - 1), max_size=3)):
        events[index] = data.draw(mangled(events[index]))
    events = [_as_json(event) for event in events]
    reply, parsed = parse_stream(_parser(provider)(), copy.deepcopy(events))
    _check_events(parsed, reply)
    pieces = cut(_encode_events(events, provider == "ollama"), data.draw(cuts))
    again, _ = parse_stream(_parser(provider)(), pieces)
    assert repr(again.to_dict()) == repr(reply.to_dict())  # not ==: NaN is not equal to itself


def _as_json(event: Any) -> Any:
    """Returns an event that JSON can represent."""
    return json.loads(json.dumps(event, default=repr))


@pytest.mark.parametrize("provider", PATHS)
def test_events_after_the_end_add_no_blocks(provider: str) -> None:
    reply, _ = parse_stream(_parser(provider)(), EVENTS[provider])
    again, events = parse_stream(_parser(provider)(), [*EVENTS[provider], *EVENTS[provider]])
    assert again.blocks == reply.blocks
    _check_events(events, again)


def test_text_after_the_end_is_in_the_metadata() -> None:
    chunks = [{"choices": [{"index": 0, "delta": {"content": piece}}]} for piece in ("Yes.", "And", " so.")]
    end: dict[str, Any] = {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
    reply, events = parse_stream(_parser("openai")(), [chunks[0], end, *chunks[1:]])
    assert (reply.text, reply.finish_reason) == ("Yes.", FinishReason.STOP)
    assert reply.metadata is not None
    assert reply.metadata["reply"]["text_after_end"] == "And so."
    _check_events(events, reply)


@pytest.mark.parametrize(
    ("provider", "choice", "path"),
    [
        ("openai", {"delta": {"content": "a"}, "finish_reason": "stop"}, "choices"),
        ("gemini", {"content": {"parts": [{"text": "a"}]}, "finishReason": "STOP"}, "candidates"),
    ],
)
def test_a_finish_reason_in_every_chunk_ends_the_reply_once_and_loses_no_text(
    provider: str, choice: dict[str, Any], path: str
) -> None:
    reply, events = parse_stream(_parser(provider)(), [{path: [choice]}] * 3)
    assert (reply.text, reply.finish_reason) == ("aaa", FinishReason.STOP)
    _check_events(events, reply)
    empty: dict[str, Any] = {**choice, "delta": {}, "content": {}}
    _, last = parse_stream(_parser(provider)(), [{path: [choice]}, {path: [empty]}])
    assert sum(isinstance(event, MessageEnd) for event in last) == 1


def test_an_end_without_content_is_reported_immediately() -> None:
    parser = _parser("openai")()
    chunk: dict[str, Any] = {"choices": [{"delta": {"content": "a"}}]}
    end: dict[str, Any] = {"choices": [{"delta": {}, "finish_reason": "stop"}]}
    parser.feed(chunk)
    assert parser.feed(end)[-1] == MessageEnd(FinishReason.STOP, "stop")


def test_a_delta_of_a_finished_item_is_ignored() -> None:
    item = {"type": "message", "content": [{"type": "output_text", "text": "Hi."}]}
    late = {"type": "response.output_text.delta", "output_index": 0, "content_index": 0, "delta": "Hi."}
    done = {"type": "response.output_item.done", "output_index": 0, "item": item}
    end = {"type": "response.completed", "response": {"status": "completed"}}
    reply, events = parse_stream(_parser("openai-responses")(), [late, done, late, end])
    assert reply.text == "Hi."
    assert [event.text for event in events if isinstance(event, TextDelta)] == ["Hi."]


def test_text_at_the_position_of_an_image_is_not_an_error() -> None:
    def event(*parts: dict[str, str]) -> dict[str, Any]:
        return {"output": {"choices": [{"message": {"content": [*parts]}, "finish_reason": "null"}]}}

    first, second = {"image": "https://a.example/1.png"}, {"image": "https://a.example/2.png"}
    request = {"incremental_output": False}
    chunks = [event(first, second), event(first, {"text": "a"})]
    reply, _ = parse_stream(_parser("dashscope")(request=request), chunks)
    assert len(reply.media) == 2


def test_all_calls_in_one_argument_text_begin_in_an_interrupted_stream() -> None:
    call = {"index": 0, "id": "a", "function": {"name": "look", "arguments": '{"at": 1}{"at": 2}'}}
    reply, events = parse_stream(_parser("openai")(), [{"choices": [{"delta": {"tool_calls": [call]}}]}])
    assert [block.input for block in reply.tool_uses] == [{"at": 1}, {"at": 2}]
    assert [event.type for event in events].count("tool-use-start") == 2
