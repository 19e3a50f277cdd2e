"""Replies of DashScope's native API: complete, in increments and cumulative, of both paths and SDKs."""

import base64
import copy
import json
from contextlib import suppress
from typing import Any, Final

import pytest
from dashscope.api_entities.dashscope_response import (
    DashScopeAPIResponse,
    GenerationResponse,
    MultiModalConversationResponse,
)
from dashscope.v2.types.completions import parse_chunk, parse_completion
from hypothesis import given
from hypothesis import strategies as st

from agentkit import (
    AudioBlock,
    Base64Source,
    ErrorEvent,
    FinishReason,
    ImageBlock,
    MessageEnd,
    MessageError,
    Msg,
    OpaqueState,
    StreamEvent,
    TextBlock,
    TextDelta,
    ThinkingBlock,
    ToolUseBlock,
    ToolUseDelta,
    URLSource,
    Usage,
)
from agentkit_dashscope import DashScopeStreamParser, parse_response
from tests.cases import each_case
from tests.profiles import examples
from tests.providers import WAV
from tests.providers.mangling import mangled, mangled_events
from tests.providers.streams import cut

USAGE: Final = {
    "input_tokens": 20,
    "output_tokens": 30,
    "total_tokens": 50,
    "prompt_tokens_details": {"cached_tokens": 8},
    "output_tokens_details": {"reasoning_tokens": 12},
}
THOUGHT: Final = "They ask for 天气. So I look."
TEXT: Final = "Let me look 🙂. Let me look."
CALLS: Final = (("call_1", "look", '{"place": "杭州", "days": 2}'), ("call_2", "look", "{}"))


def _call(index: int, id: str, name: str, arguments: str) -> dict[str, Any]:
    return {"index": index, "id": id, "type": "function", "function": {"name": name, "arguments": arguments}}


def _event(
    content: Any = "", reason: str = "null", calls: list[Any] | None = None, thinking: str | None = None
) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": content}
    if thinking is not None:
        message["reasoning_content"] = thinking
    if calls is not None:
        message["tool_calls"] = calls
    output = {"choices": [{"message": message, "finish_reason": reason}]}
    return {"output": output, "usage": USAGE, "request_id": "req-1"}


REPLY: Final = _event(TEXT, "tool_calls", [_call(index, *call) for index, call in enumerate(CALLS)], THOUGHT)
MULTIMODAL: Final = _event(
    [{"text": TEXT}], "tool_calls", [_call(index, *call) for index, call in enumerate(CALLS)], THOUGHT
)


def _create_increments(cuts: list[int], listed: bool = False) -> list[dict[str, Any]]:
    """Returns the events of the reply as increments. Later deltas of a call have the id "" and no name."""

    def as_content(piece: str) -> Any:
        return ([{"text": piece}] if piece else []) if listed else piece

    events: list[dict[str, Any]] = [_event(as_content(""), thinking=piece) for piece in cut(THOUGHT, cuts)]
    events += [_event(as_content(piece), thinking="") for piece in cut(TEXT, cuts)]
    for index, (id, name, arguments) in enumerate(CALLS):
        events.append(_event(as_content(""), calls=[_call(index, id, name, "")]))
        for piece in cut(arguments, cuts):
            delta = {"index": index, "id": "", "type": "function", "function": {"arguments": piece}}
            events.append(_event(as_content(""), calls=[delta]))
    return [*events, _event(as_content(""), "tool_calls")]


def _create_cumulative_events(cuts: list[int], listed: bool = False) -> list[dict[str, Any]]:
    """Returns cumulative events of the reply."""
    thinking, text = "", ""
    events: list[dict[str, Any]] = []
    calls: list[Any] = []

    def event(reason: str = "null") -> None:
        content: Any = ([{"text": text}] if text else []) if listed else text
        events.append(_event(content, reason, copy.deepcopy(calls) or None, thinking))

    for piece in cut(THOUGHT, cuts):
        thinking += piece
        event()
    for piece in cut(TEXT, cuts):
        text += piece
        event()
    for index, (id, name, arguments) in enumerate(CALLS):
        calls.append(_call(index, id, name, ""))
        for piece in cut(arguments, cuts):
            calls[-1]["function"]["arguments"] += piece
            event()
    event("tool_calls")
    return events


def _sse(events: list[dict[str, Any]]) -> bytes:
    """Returns the bytes that DashScope sends: no blank after `data:`, and additional lines."""
    lines = [
        f"id:{index}\nevent:result\n:HTTP_STATUS/200\ndata:{json.dumps(event, ensure_ascii=False)}\n\n"
        for index, event in enumerate(events, 1)
    ]
    return "".join(lines).encode()


def _read_stream(*chunks: object, **options: Any) -> tuple[Msg, list[StreamEvent]]:
    parser = DashScopeStreamParser(**options)
    events = [event for chunk in chunks for event in parser.feed(chunk)]
    msg = parser.finish()
    return msg, events + parser.drain()


cuts_of_texts = st.lists(st.integers(0, 60), max_size=8)


def test_a_complete_reply_becomes_a_message() -> None:
    msg = parse_response(REPLY)
    assert msg.blocks == (
        ThinkingBlock(THOUGHT, OpaqueState("dashscope")),
        TextBlock(TEXT),
        ToolUseBlock("call_1", "look", {"place": "杭州", "days": 2}, CALLS[0][2]),
        ToolUseBlock("call_2", "look", {}, "{}"),
    )
    usage = Usage(20, 30, cache_read_tokens=8, reasoning_tokens=12)
    assert (msg.usage, msg.finish_reason) == (usage, FinishReason.TOOL_USE)
    assert msg.metadata == {
        "reply": {
            "provider": "dashscope",
            "finish_reason": "tool_use",
            "native_finish_reason": "tool_calls",
            "id": "req-1",
            "usage": usage.to_dict(),
        }
    }
    assert parse_response(MULTIMODAL) == msg
    assert parse_response(json.dumps(REPLY)) == msg


def test_a_reply_with_result_format_text_is_read() -> None:
    reply = {"output": {"text": "Hello", "finish_reason": "stop", "choices": None}, "request_id": "r"}
    msg = parse_response(reply)
    assert (msg.text, msg.finish_reason) == ("Hello", FinishReason.STOP)
    events = [{"output": {"text": text, "finish_reason": "null"}, "request_id": "r"} for text in ("He", "Hello")]
    assert _read_stream(*events, reply)[0] == msg


@pytest.mark.parametrize("kind", [GenerationResponse, MultiModalConversationResponse])
def test_objects_of_the_classic_sdk_are_read_as_dicts(kind: Any) -> None:
    def answer(event: dict[str, Any]) -> Any:
        body = copy.deepcopy(event)
        return kind.from_api_response(
            DashScopeAPIResponse(200, body["request_id"], "", "", body["output"], body["usage"], {})
        )

    response = answer(REPLY)
    with pytest.raises(AttributeError):
        _ = response.output.choices[0].nothing
    assert parse_response(response) == parse_response(REPLY)
    events = _create_increments([3, 5])
    assert _read_stream(*map(answer, events))[0] == parse_response(REPLY)


def test_objects_of_the_new_client_are_read_as_dicts() -> None:
    assert parse_response(parse_completion(REPLY)) == parse_response(REPLY)
    chunks = [parse_chunk(event) for event in _create_increments([3, 5], listed=True)]
    assert _read_stream(*chunks)[0] == parse_response(REPLY)


@examples(80)
@given(cuts_of_texts, st.booleans(), st.lists(st.integers(0, 9_000), max_size=6), st.booleans())
def test_any_chunks_of_increments_give_the_message_of_the_complete_reply(
    cuts: list[int], listed: bool, byte_cuts: list[int], has_request: bool
) -> None:
    request = {"incremental_output": True} if has_request else None
    events = _create_increments(cuts, listed)
    reply = parse_response(REPLY, request=request)
    assert _read_stream(*events, request=request)[0] == reply
    assert _read_stream(*cut(_sse(events), byte_cuts), request=request)[0] == reply


@examples(80)
@given(cuts_of_texts, st.booleans(), st.booleans())
def test_any_chunks_of_cumulative_events_give_the_message_of_the_complete_reply(
    cuts: list[int], listed: bool, has_request: bool
) -> None:
    request = {"parameters": {"incremental_output": False}} if has_request else None
    assert _read_stream(*_create_cumulative_events(cuts, listed), request=request)[0] == parse_response(REPLY)


def test_deltas_of_a_cumulative_stream_have_only_new_text() -> None:
    _, events = _read_stream(*_create_cumulative_events([4, 9]))
    assert [event.text for event in events if isinstance(event, TextDelta)] == cut(TEXT, [4, 9])
    arguments = [event.text for event in events if isinstance(event, ToolUseDelta) and event.index == 2]
    assert arguments == cut(CALLS[0][2], [4, 9])


@each_case(
    ("pieces", "expected"),
    [
        (["ha", "ha", ""], "haha"),
        (["ha", "ha", "ha", "ho", ""], "hahahaho"),
        (["1", "10", "5", ""], "1105"),
        (["a", "ab", "abc", "abcd"], "abcd"),
        (["Hello"], "Hello"),
        (["Hello", "Hello"], "Hello"),
    ],
)
def test_later_events_prove_that_events_are_increments(pieces: list[str], expected: str) -> None:
    events = [_event(piece, "stop" if index == len(pieces) - 1 else "null") for index, piece in enumerate(pieces)]
    assert _read_stream(*events)[0].text == expected


def test_incremental_output_of_the_request_decides() -> None:
    events = [_event("ha"), _event("ha", "stop")]
    assert _read_stream(*events, request={"incremental_output": True})[0].text == "haha"
    assert _read_stream(*events, request={"incremental_output": False})[0].text == "ha"


def test_the_string_null_is_not_a_finish_reason() -> None:
    parser = DashScopeStreamParser()
    parser.feed(_event("x"))
    assert parser.finish_reason is None
    assert parser.feed(_event("", "length"))[-1] == MessageEnd(FinishReason.LENGTH, "length")


def test_events_without_the_first_choice_are_ignored() -> None:
    second = {"index": 1, "message": {"content": "another"}, "finish_reason": "stop"}
    odd: list[Any] = [
        {"output": {"choices": []}},
        {"output": {"choices": [second]}},
        {"output": None},
        {"request_id": "x"},
    ]
    assert _read_stream(*odd, _event("x", "stop"))[0].text == "x"


def test_a_reply_of_the_compatible_mode_is_recognized() -> None:
    choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "Hello"}}
    msg = parse_response({"id": "chatcmpl-1", "object": "chat.completion", "model": "m", "choices": [choice]})
    assert (msg.text, (msg.metadata or {})["reply"]["provider"]) == ("Hello", "dashscope-compatible")


def test_an_error_with_http_status_200_is_an_error_event() -> None:
    error = {"code": "InternalError.Algo", "message": "It broke.", "request_id": "req-1"}
    msg, events = _read_stream(_event("Half"), b"event:error\ndata:" + json.dumps(error).encode() + b"\n\n")
    assert ErrorEvent("It broke.", "InternalError.Algo") in events
    assert (msg.text, msg.finish_reason) == ("Half", FinishReason.ERROR)
    error = {"message": "It broke.", "code": "InternalError.Algo", "request_id": "req-1"}
    assert (msg.metadata or {})["reply"]["error"] == error


def test_a_content_filter_within_a_stream_is_the_finish_reason() -> None:
    msg, _ = _read_stream(_event("Half"), {"code": "DataInspectionFailed", "message": "Output data may be …"})
    assert (msg.text, msg.finish_reason) == ("Half", FinishReason.CONTENT_FILTER)


def test_the_text_of_an_error_reply_is_in_the_exception() -> None:
    returned = GenerationResponse.from_api_response(
        DashScopeAPIResponse(400, "r", "InvalidParameter", "Range of input length should be [1, 6000]")
    )
    with pytest.raises(MessageError, match=r"Range of input length should be \[1, 6000\] \(InvalidParameter\)"):
        parse_response(returned)


@each_case("body", [{}, {"output": {}}, {"output": {"choices": []}}, "[]", "x", 3, {"choices": 3}])
def test_a_value_that_is_not_a_reply_is_refused(body: Any) -> None:
    with pytest.raises(MessageError) as caught:
        parse_response(body)
    assert caught.value.place == "reply"


def test_an_interrupted_stream_has_the_arguments_received_before_the_end() -> None:
    events = [_event(calls=[_call(0, "call_1", "look", "")]), _event(calls=[_call(0, "", "", '{"place": "h')])]
    msg, _ = _read_stream(*events)
    assert msg.finish_reason is FinishReason.INTERRUPTED
    assert msg.tool_uses[0].raw_input == '{"place": "h'
    assert msg.tool_uses[0].metadata == {"incomplete": True}
    assert msg.usage is not None


@pytest.mark.parametrize("arguments", ["", {}])
def test_a_truncated_reply_marks_a_last_call_without_arguments_as_incomplete(arguments: Any) -> None:
    calls = [_call(0, *CALLS[0]), _call(1, "call_2", "remove", arguments)]
    event = _event(reason="length", calls=calls)
    msg, _ = _read_stream(event)
    assert msg == parse_response(event)
    assert [block.metadata for block in msg.tool_uses] == [None, {"incomplete": True}]


@pytest.mark.parametrize("arguments", ["{}", {"a": 1}])
def test_complete_arguments_of_a_truncated_reply_are_not_marked(arguments: Any) -> None:
    msg = parse_response(_event(reason="length", calls=[_call(0, "call_1", "look", arguments)]))
    assert msg.tool_uses[0].metadata is None


def test_calls_without_an_index_are_assigned_by_position() -> None:
    calls = [{"id": id, "function": {"name": "look", "arguments": "{}"}} for id in ("a", "b")]
    assert [call.id for call in parse_response(_event("", "tool_calls", calls)).tool_uses] == ["a", "b"]


def test_calls_with_one_index_are_distinguished_by_id() -> None:
    events = [_event(calls=[_call(0, id, "look", f'{{"at": "{id}"}}')]) for id in ("a", "b", "c")]
    msg, _ = _read_stream(*events, _event("", "tool_calls"))
    assert [(call.id, call.input) for call in msg.tool_uses] == [(id, {"at": id}) for id in ("a", "b", "c")]
    complete = [_call(0, id, "look", f'{{"at": "{id}"}}') for id in ("a", "b", "c")]
    assert parse_response(_event("", "tool_calls", complete)) == msg


@each_case("more", [{"index": 0}, {}, {"index": 0, "id": ""}, {"index": 0, "id": "call_1"}])
@each_case("arguments", ['{"a":1}', "{}"])
def test_another_name_after_complete_arguments_begins_another_call(more: dict[str, Any], arguments: str) -> None:
    names = ("read", "delete") if more.get("id") else ("read", "delete", "read")
    calls = [{**more, "function": {"name": name, "arguments": arguments}} for name in names]
    msg, _ = _read_stream(*(_event(calls=[call]) for call in calls), _event(reason="tool_calls"))
    assert [(block.name, block.input) for block in msg.tool_uses] == [
        (name, json.loads(arguments)) for name in names
    ]
    assert len({block.id for block in msg.tool_uses}) == len(names)


def test_generated_images_keep_their_position() -> None:
    parts = [{"text": "Here "}, {"text": "it is: "}, {"image": "https://example.com/a.png"}, {"text": "Nice?"}]
    reply = parse_response(_event(parts, "stop"))
    picture = ImageBlock(URLSource("https://example.com/a.png"))
    assert reply.blocks == (TextBlock("Here it is: "), picture, TextBlock("Nice?"))
    in_pieces = [_event([part]) for part in parts]
    assert _read_stream(*in_pieces, _event([], "stop"))[0] == reply
    prefixes = [_event(parts[:count]) for count in range(1, 5)]
    assert _read_stream(*prefixes, _event(parts, "stop"))[0] == reply


def test_further_keys_of_parts_become_notes() -> None:
    words = {"words_info": [{"text": "A", "location": [1, 2]}]}
    msg = parse_response(_event([{"text": "A", "ocr_result": words}], "stop"))
    assert msg.text == "A"
    assert (msg.metadata or {})["reply"]["content_extras"] == [{"ocr_result": words}]


def test_audio_is_a_url_or_joined_pieces() -> None:
    reply = {"output": {"audio": {"url": "https://example.com/a.wav", "data": ""}, "finish_reason": "stop"}}
    assert parse_response(reply).blocks == (AudioBlock(URLSource("https://example.com/a.wav")),)
    data = base64.b64decode(WAV)
    pieces = [base64.b64encode(piece).decode() for piece in (data[:5], data[5:])]
    events = [{"output": {"audio": {"data": piece}, "finish_reason": "null"}} for piece in pieces]
    msg, _ = _read_stream(*events, {"output": {"audio": {"data": ""}, "finish_reason": "stop"}})
    assert msg.blocks == (AudioBlock(Base64Source("audio/wav", WAV)),)


def test_search_results_become_citations_of_the_text() -> None:
    results = [{"index": 1, "title": "T", "url": "https://example.com", "site_name": "S"}]
    events = [_event("Sun"), _event("ny.", "stop")]
    for event in events:
        event["output"]["search_info"] = {"search_results": results}
    msg, _ = _read_stream(*events)
    assert msg.blocks == (TextBlock("Sunny.", metadata={"citations": results}),)


@examples(200)
@given(mangled_events([*_create_increments([3, 9]), *_create_cumulative_events([5], listed=True)]))
def test_mangled_events_never_raise(events: list[Any]) -> None:
    msg, _ = _read_stream(*events)
    assert Msg.from_dict(msg.to_dict()) == msg


@examples(150)
@given(st.sampled_from([REPLY, MULTIMODAL]).flatmap(mangled))
def test_a_mangled_reply_is_parsed_or_raises_a_message_error(reply: Any) -> None:
    with suppress(MessageError):
        msg = parse_response(reply)
        assert Msg.from_dict(msg.to_dict()) == msg
