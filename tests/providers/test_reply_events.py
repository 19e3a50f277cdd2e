"""What a stream tells and what its message holds are the same, on every wire and whatever happened on the way."""

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

WIRES = {
    "openai": "/v1/chat/completions",
    "openai-responses": "/v1/responses",
    "anthropic": "/v1/messages",
    "gemini": "/v1beta/models/gemini-3:streamGenerateContent",
    "ollama": "/api/chat",
    "dashscope": "/api/v1/services/aigc/text-generation/generation",
}
SAID = Msg(
    "assistant",
    [TextBlock("So 天气 🙂."), ToolUseBlock("a", "look", {"at": "杭州"}), ToolUseBlock("b", "look", {})],
    "assistant",
)
OPEN = ("text-start", "thinking-start", "tool-use-start")
WHOLE = ("media", "opaque")


def _parser(provider: str) -> type[StreamParserBase]:
    parser = load_provider(provider).parser
    assert parser is not None
    return parser


def _events(provider: str) -> list[dict[str, Any]]:
    """The native events of one reply, as a service sends them."""
    target = find_route(WIRES[provider])
    assert target is not None
    body = {"stream_options": {"include_usage": True}, "parameters": {"incremental_output": True}}
    said = NormalizedReply.normalize(SAID, Reply("", usage=Usage(10, 5), piece_size=4), {})
    call = ReceivedCall("model-1", body, is_streamed=True)
    events: list[dict[str, Any]] = json.loads(json.dumps([*target.service.build_events(said, call)]))
    return events


EVENTS = {provider: _events(provider) for provider in WIRES}


def _raw(events: list[Any], lines: bool) -> bytes:
    frames = (json.dumps(event) + "\n" if lines else f"data: {json.dumps(event)}\n\n" for event in events)
    return "".join(frames).encode()


def _check(events: list[StreamEvent], reply: Msg) -> None:
    """One start and one end of the message; each block begins once, goes on in between, and ends once."""
    kinds = [event.type for event in events]
    assert kinds.count("message-start") == kinds.count("message-end") == 1
    assert set(kinds[kinds.index("message-end") + 1 :]) <= {"usage"}
    begun: list[int] = []
    ended: set[int] = set()
    for event in events:
        index, kind = getattr(event, "index", None), event.type
        if kind in OPEN or (kind in WHOLE and index not in begun):
            begun.append(index or 0)
        if index is not None:
            assert index in begun, kind
            assert index not in ended, kind
        if kind in WHOLE or kind in ("text-end", "thinking-end", "tool-use-end"):
            ended.add(index or 0)
    assert begun == list(range(len(begun)))
    if reply.finish_reason not in (FinishReason.INTERRUPTED, FinishReason.ERROR):
        assert ended == set(begun)
    told, held = _told(events), _held(reply)
    assert not told - held
    assert told == held or ended != set(begun)  # a call that the stream broke off in has no end


def _told(events: list[StreamEvent]) -> Counter[str]:
    """What the ends of the blocks say; what has nothing in it is no block."""
    told = [_exact(event.block) for event in events if event.type == "tool-use-end"]
    told += [f"{event.type[:-4]} {event.text}" for event in events if event.type == "text-end" and event.text]
    told += [f"{event.type[:-4]} {event.text}" for event in events if event.type == "thinking-end" and event.text]
    return Counter(told)


def _exact(block: ToolUseBlock) -> str:
    return repr(Msg("Friday", [block], "assistant").to_dict())


def _held(reply: Msg) -> Counter[str]:
    calls = [_exact(call) for call in reply.tool_uses]
    texts = [f"text {block.text}" for block in reply.blocks if block.type == "text" and block.text]
    thoughts = [f"thinking {block.thinking}" for block in reply.blocks if block.type == "thinking"]
    return Counter([*calls, *texts, *(said for said in thoughts if said != "thinking ")])


@pytest.mark.parametrize("provider", WIRES)
@examples(60)
@given(data=st.data())
def test_the_events_of_a_mangled_stream_say_what_its_message_says(provider: str, data: st.DataObject) -> None:
    events = copy.deepcopy(EVENTS[provider])
    order = data.draw(st.permutations(range(len(events)))) if data.draw(st.booleans()) else range(len(events))
    events = [events[at] for at in order]
    for at in data.draw(st.lists(st.integers(0, len(events) - 1), max_size=3)):
        events[at] = data.draw(mangled(events[at]))
    events = [_speakable(event) for event in events]
    reply, told = parse_stream(_parser(provider)(), copy.deepcopy(events))
    _check(told, reply)
    pieces = cut(_raw(events, provider == "ollama"), data.draw(cuts))
    again, _ = parse_stream(_parser(provider)(), pieces)
    assert repr(again.to_dict()) == repr(reply.to_dict())  # not ==: a number may be none


def _speakable(event: Any) -> Any:
    """An event as JSON can say it."""
    return json.loads(json.dumps(event, default=repr))


@pytest.mark.parametrize("provider", WIRES)
def test_what_comes_behind_the_end_is_no_part_of_the_reply(provider: str) -> None:
    reply, _ = parse_stream(_parser(provider)(), EVENTS[provider])
    again, told = parse_stream(_parser(provider)(), [*EVENTS[provider], *EVENTS[provider]])
    assert again.blocks == reply.blocks
    _check(told, again)


def test_text_behind_the_end_is_kept_in_the_metadata() -> None:
    said = [{"choices": [{"index": 0, "delta": {"content": piece}}]} for piece in ("Yes.", "And", " so.")]
    end: dict[str, Any] = {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
    reply, told = parse_stream(_parser("openai")(), [said[0], end, *said[1:]])
    assert (reply.text, reply.finish_reason) == ("Yes.", FinishReason.STOP)
    assert reply.metadata is not None
    assert reply.metadata["reply"]["behind_end"] == "And so."
    _check(told, reply)


@pytest.mark.parametrize(
    ("provider", "choice", "path"),
    [
        ("openai", {"delta": {"content": "a"}, "finish_reason": "stop"}, "choices"),
        ("gemini", {"content": {"parts": [{"text": "a"}]}, "finishReason": "STOP"}, "candidates"),
    ],
)
def test_a_reason_with_every_chunk_ends_the_reply_once_and_loses_nothing(
    provider: str, choice: dict[str, Any], path: str
) -> None:
    reply, told = parse_stream(_parser(provider)(), [{path: [choice]}] * 3)
    assert (reply.text, reply.finish_reason) == ("aaa", FinishReason.STOP)
    _check(told, reply)
    empty: dict[str, Any] = {**choice, "delta": {}, "content": {}}
    _, last = parse_stream(_parser(provider)(), [{path: [choice]}, {path: [empty]}])
    assert sum(isinstance(one, MessageEnd) for one in last) == 1


def test_an_end_without_content_is_told_at_once() -> None:
    parser = _parser("openai")()
    said: dict[str, Any] = {"choices": [{"delta": {"content": "a"}}]}
    end: dict[str, Any] = {"choices": [{"delta": {}, "finish_reason": "stop"}]}
    parser.feed(said)
    assert parser.feed(end)[-1] == MessageEnd(FinishReason.STOP, "stop")


def test_a_piece_of_an_item_that_is_done_is_passed_over() -> None:
    item = {"type": "message", "content": [{"type": "output_text", "text": "Hi."}]}
    late = {"type": "response.output_text.delta", "output_index": 0, "content_index": 0, "delta": "Hi."}
    done = {"type": "response.output_item.done", "output_index": 0, "item": item}
    end = {"type": "response.completed", "response": {"status": "completed"}}
    reply, told = parse_stream(_parser("openai-responses")(), [late, done, late, end])
    assert reply.text == "Hi."
    assert [event.text for event in told if isinstance(event, TextDelta)] == ["Hi."]


def test_text_in_the_place_of_a_picture_is_no_error() -> None:
    def event(*parts: dict[str, str]) -> dict[str, Any]:
        return {"output": {"choices": [{"message": {"content": [*parts]}, "finish_reason": "null"}]}}

    one, two = {"image": "https://a.example/1.png"}, {"image": "https://a.example/2.png"}
    request = {"incremental_output": False}
    chunks = [event(one, two), event(one, {"text": "a"})]
    reply, _ = parse_stream(_parser("dashscope")(request=request), chunks)
    assert len(reply.media) == 2


def test_a_number_of_calls_in_one_text_that_broke_off_all_begin() -> None:
    call = {"index": 0, "id": "a", "function": {"name": "look", "arguments": '{"at": 1}{"at": 2}'}}
    reply, told = parse_stream(_parser("openai")(), [{"choices": [{"delta": {"tool_calls": [call]}}]}])
    assert [block.input for block in reply.tool_uses] == [{"at": 1}, {"at": 2}]
    assert [event.type for event in told].count("tool-use-start") == 2
