"""Replies of Ollama: complete and in lines, as objects, dicts and bytes."""

import json
from contextlib import suppress
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ollama import ChatResponse, Message

from agentkit import (
    AudioBlock,
    ErrorEvent,
    FinishReason,
    ImageBlock,
    MessageEnd,
    MessageError,
    MessageStart,
    Msg,
    OpaqueState,
    StreamEvent,
    TextBlock,
    TextDelta,
    ThinkingBlock,
    ToolUseBlock,
    ToolUseEnd,
    Usage,
)
from agentkit_ollama import OllamaStreamParser, parse_response
from tests.cases import each_case
from tests.profiles import examples
from tests.providers import PNG, WAV
from tests.providers.mangling import mangled, mangled_events
from tests.providers.streams import cut

CALL: Final = {"id": "call_a1b2c3d4", "function": {"index": 0, "name": "look", "arguments": {"place": "here"}}}
REPLY: Final[dict[str, Any]] = {
    "model": "qwen3",
    "created_at": "2026-11-20T10:00:00Z",
    "message": {
        "role": "assistant",
        "content": "I look at the 猫 🙂.",
        "thinking": "They want me to look.",
        "tool_calls": [CALL, {"function": {"name": "look", "arguments": {"place": "there"}}}],
    },
    "done": True,
    "done_reason": "stop",
    "total_duration": 9,
    "eval_duration": 5,
    "prompt_eval_count": 12,
    "eval_count": 34,
}


def _line(done: bool = False, **message: Any) -> dict[str, Any]:
    begun = {"model": "qwen3", "created_at": REPLY["created_at"], "done": False}
    fields = {key: REPLY[key] for key in REPLY if key != "message"} if done else begun
    return {**fields, "message": {"role": "assistant", **message}}


def _lines(reply: dict[str, Any], *cuts: int) -> list[dict[str, Any]]:
    """Returns the lines of a stream for a reply, with its texts in pieces."""
    message = reply["message"]
    lines = [_line(content="", thinking=piece) for piece in cut(message.get("thinking", ""), cuts)]
    lines += [_line(content=piece) for piece in cut(message.get("content", ""), cuts)]
    lines += [_line(content="", tool_calls=[call]) for call in message.get("tool_calls", [])]
    return [*lines, {**reply, "message": {"role": "assistant", "content": ""}}]


def _ndjson(lines: list[dict[str, Any]]) -> bytes:
    return b"".join(json.dumps(line).encode() + b"\n" for line in lines)


def _read_stream(*chunks: object) -> tuple[Msg, list[StreamEvent]]:
    parser = OllamaStreamParser()
    events = [event for chunk in chunks for event in parser.feed(chunk)]
    msg = parser.finish()
    return msg, events + parser.drain()


def test_a_complete_reply_becomes_a_message() -> None:
    msg = parse_response(REPLY)
    thought, text, first, second = msg.blocks
    assert thought == ThinkingBlock("They want me to look.", OpaqueState("ollama", model="qwen3"))
    assert text == TextBlock("I look at the 猫 🙂.")
    assert first == ToolUseBlock("call_a1b2c3d4", "look", {"place": "here"})
    assert isinstance(second, ToolUseBlock)
    assert (second.name, second.input, second.raw_input) == ("look", {"place": "there"}, None)
    assert second.id.startswith("call_")
    assert (msg.role, msg.usage, msg.finish_reason) == ("assistant", Usage(12, 34), FinishReason.TOOL_USE)
    assert msg.metadata == {
        "reply": {
            "provider": "ollama",
            "finish_reason": "tool_use",
            "native_finish_reason": "stop",
            "model": "qwen3",
            "usage": Usage(12, 34).to_dict(),
            "durations": {"total_duration": 9, "eval_duration": 5},
        }
    }


def test_the_same_call_in_another_turn_gets_another_id() -> None:
    calls = [{"function": {"name": "look", "arguments": {"place": "here"}}}] * 2
    body = {"model": "m", "message": {"role": "assistant", "content": "", "tool_calls": calls}, "done": True}
    turns = [parse_response({**body, "created_at": f"2026-11-20T10:00:0{second}Z"}) for second in range(2)]
    assert len({call.id for turn in turns for call in turn.tool_uses}) == 4
    assert turns[0] == parse_response({**body, "created_at": "2026-11-20T10:00:00Z"})


def test_an_sdk_object_is_read_like_its_dict_except_for_lost_ids() -> None:
    without = json.loads(json.dumps(REPLY))
    del without["message"]["tool_calls"][0]["id"]
    del without["message"]["tool_calls"][0]["function"]["index"]
    assert parse_response(ChatResponse.model_validate(REPLY)) == parse_response(without)
    assert parse_response(json.dumps(REPLY)) == parse_response(REPLY)
    lines = [ChatResponse.model_validate(line) for line in _lines(without, 3)]
    assert _read_stream(*lines)[0] == parse_response(without)


def test_the_path_of_a_file_in_a_reply_is_not_opened(tmp_path: Any) -> None:
    (tmp_path / "secret.png").write_bytes(b"\x89PNG\r\n\x1a\n secret")
    message = Message(role="assistant", content="See.", images=[{"value": str(tmp_path / "secret.png")}])  # type: ignore[list-item]
    msg = parse_response(ChatResponse(model="m", message=message, done=True))
    assert msg.blocks == (TextBlock("See."),)


@examples(80)
@given(st.lists(st.integers(0, 400), max_size=8), st.lists(st.integers(0, 4_000), max_size=8))
def test_any_chunks_of_a_stream_give_the_message_of_the_complete_reply(
    cuts: list[int], byte_cuts: list[int]
) -> None:
    reply = parse_response(REPLY)
    lines = _lines(REPLY, *cuts)
    assert _read_stream(*lines)[0] == reply
    raw = _ndjson(lines)
    assert _read_stream(*cut(raw, byte_cuts))[0] == reply
    assert _read_stream(raw.removesuffix(b"\n"))[0] == reply


def test_events_are_returned_as_soon_as_lines_are_complete() -> None:
    _, events = _read_stream(*_lines(REPLY, 6))
    kinds = [event.type for event in events]
    assert events[0] == MessageStart(None, "qwen3")
    assert kinds.count("tool-use-start") == kinds.count("tool-use-end") == 2
    assert kinds[-2:] == ["usage", "message-end"] or kinds[-1] == "message-end"
    assert events[-1] == MessageEnd(FinishReason.TOOL_USE, "stop")
    assert "".join(event.text for event in events if isinstance(event, TextDelta)) == "I look at the 猫 🙂."


def test_calls_may_share_a_line_or_have_separate_lines() -> None:
    calls: list[dict[str, Any]] = [{"function": {"name": name, "arguments": {}}} for name in ("a", "b", "c")]
    msg, _ = _read_stream(_line(tool_calls=calls), _line(done=True, content=""))
    several, _ = _read_stream(
        _line(tool_calls=calls[:1]), _line(tool_calls=calls[1:]), _line(done=True, content="")
    )
    assert msg == several
    assert [call.name for call in msg.tool_uses] == ["a", "b", "c"]
    assert len({call.id for call in msg.tool_uses}) == 3


@each_case(
    ("arguments", "expected"),
    [('{"place": "here"}', {"place": "here"}), ("", {}), (None, {}), ([1], {}), ({}, {})],
)
def test_arguments_are_an_object_or_json_text(arguments: Any, expected: Any) -> None:
    msg, events = _read_stream(_line(tool_calls=[{"function": {"name": "look", "arguments": arguments}}]))
    assert msg.tool_uses[0].input == expected
    assert [event.block for event in events if isinstance(event, ToolUseEnd)] == [*msg.tool_uses]


def test_truncated_argument_text_is_the_raw_input() -> None:
    msg, _ = _read_stream(_line(tool_calls=[{"function": {"name": "look", "arguments": '{"pla'}}]))
    assert (msg.tool_uses[0].input, msg.tool_uses[0].raw_input) == ({}, '{"pla')
    assert msg.tool_uses[0].metadata == {"incomplete": True}


@each_case(
    ("native", "expected"),
    [("stop", "stop"), ("length", "length"), ("load", "other"), ("something new", "other"), (None, "stop")],
)
def test_each_finish_reason_is_mapped_and_the_native_reason_is_recorded(native: str | None, expected: str) -> None:
    done = {"model": "m", "message": {"role": "assistant", "content": "x"}, "done": True}
    msg = parse_response({**done, "done_reason": native} if native else done)
    assert msg.finish_reason == expected
    assert (msg.metadata or {})["reply"].get("native_finish_reason") == native


def test_a_reply_without_counters_has_no_usage() -> None:
    assert parse_response({"message": {"role": "assistant", "content": "x"}, "done": True}).usage is None


def test_an_error_in_the_stream_does_not_remove_the_blocks_before_it() -> None:
    msg, events = _read_stream(_line(content="Half an"), b'{"error": "an error was encountered"}\n')
    assert msg.text == "Half an"
    assert msg.finish_reason is FinishReason.ERROR
    assert ErrorEvent("an error was encountered") in events
    assert (msg.metadata or {})["reply"]["error"] == {"message": "an error was encountered"}


def test_an_interrupted_stream_has_the_reason_interrupted() -> None:
    msg, events = _read_stream(*_lines(REPLY, 5)[:3])
    assert msg.finish_reason is FinishReason.INTERRUPTED
    assert events[-1] == MessageEnd(FinishReason.INTERRUPTED)


@pytest.mark.parametrize("body", [{"error": "model 'x' not found"}, '{"error": "model \'x\' not found"}'])
def test_the_text_of_an_error_reply_is_in_the_exception(body: Any) -> None:
    with pytest.raises(MessageError, match="model 'x' not found"):
        parse_response(body)


@each_case("body", [{}, {"response": "x"}, {"message": "x"}, "[]", "nothing", 3, None, []])
def test_a_value_that_is_not_a_reply_is_refused(body: Any) -> None:
    with pytest.raises(MessageError) as caught:
        parse_response(body)
    assert caught.value.place == "reply"


def test_the_media_type_of_a_reply_is_detected_from_its_bytes() -> None:
    msg = parse_response(_line(done=True, content="See.", images=[PNG, WAV, "%%%", "QUJD", 3]))
    text, picture, sound = msg.blocks
    assert text == TextBlock("See.")
    assert isinstance(picture, ImageBlock)
    assert isinstance(sound, AudioBlock)
    assert (picture.source.media_type, sound.source.media_type) == ("image/png", "audio/wav")


def test_log_probabilities_are_metadata_of_the_text() -> None:
    first, second = {"token": "a", "logprob": -0.1}, {"token": "b", "logprob": float("-inf")}
    lines = [
        {**_line(content="a"), "logprobs": [first]},
        {**_line(content="b"), "logprobs": [second]},
        _line(done=True, content=""),
    ]
    reply = parse_response({**_line(done=True, content="ab"), "logprobs": [first, second]})
    assert _read_stream(*lines)[0] == reply
    assert reply.blocks[0].metadata == {"logprobs": [first, {"token": "b", "logprob": None}]}


def test_a_reply_has_the_original_names_of_its_speaker_and_tools() -> None:
    msg = parse_response(REPLY, name="Friday", tool_names={"look": "look.at"})
    assert msg.name == "Friday"
    assert {call.name for call in msg.tool_uses} == {"look.at"}


@examples(150)
@given(mangled_events(_lines(REPLY, 7)))
def test_mangled_lines_never_raise(events: list[Any]) -> None:
    msg, _ = _read_stream(*events)
    assert Msg.from_dict(msg.to_dict()) == msg


@examples(100)
@given(mangled(REPLY))
def test_a_mangled_reply_is_parsed_or_raises_a_message_error(reply: Any) -> None:
    with suppress(MessageError):
        msg = parse_response(reply)
        assert Msg.from_dict(msg.to_dict()) == msg
