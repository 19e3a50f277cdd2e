"""Parsers of replies: the behavior that all parsers share, tested with a parser of a simple wire format."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agentkit import (
    Base64Source,
    FinishReason,
    ImageBlock,
    MessageEnd,
    MessageError,
    MessageStart,
    OpaqueBlock,
    OpaqueState,
    OptionError,
    StreamEvent,
    TextBlock,
    TextDelta,
    TextEnd,
    TextStart,
    ThinkingBlock,
    ToolUseBlock,
    ToolUseDelta,
    ToolUseEnd,
    ToolUseStart,
    Usage,
    UsageEvent,
    dump_messages,
    load_messages,
    prefix_digest,
)
from agentkit.provider_kit import StreamParserBase, WireLayout
from tests.cases import each_case

PICTURE = ImageBlock(Base64Source("image/png", "iVBORw0KGgo="))


class Plain(StreamParserBase):
    """Parser of a wire format whose events are calls of the methods of ReplyBuilder."""

    provider = "plain"
    issuer = "plainly"
    binds_thinking = True
    raw_arguments = True

    def read_event(self, event: dict[str, Any]) -> None:
        for name, arguments in event.items():
            getattr(self.reply, name)(*arguments)

    def read_reply(self, reply: dict[str, Any]) -> None:
        for event in reply["events"]:
            self.read_event(event)


def read(*chunks: dict[str, Any], **options: Any) -> tuple[Plain, list[StreamEvent]]:
    parser = Plain(**options)
    events = [event for chunk in chunks for event in parser.feed(chunk)]
    return parser, events


def test_a_text_has_start_delta_and_end_events_and_is_in_the_message() -> None:
    parser, events = read(
        {"begin": ["r1", "m1"]},
        {"add_text": [(0,), "Hel"]},
        {"add_text": [(0,), "lo."]},
        {"set_usage": [Usage(3, 2)]},
        {"end": [FinishReason.STOP, "stop"]},
    )
    assert events == [
        MessageStart("r1", "m1"),
        TextStart(0),
        TextDelta(0, "Hel"),
        TextDelta(0, "lo."),
        UsageEvent(Usage(3, 2)),
        TextEnd(0, "Hello."),
        MessageEnd(FinishReason.STOP, "stop"),
    ]
    reply = parser.finish()
    assert (reply.name, reply.role, reply.content) == ("assistant", "assistant", (TextBlock("Hello."),))
    assert reply.usage == parser.usage == Usage(3, 2)
    assert reply.finish_reason is parser.finish_reason is FinishReason.STOP
    assert reply.metadata == {
        "reply": {
            "provider": "plain",
            "finish_reason": "stop",
            "native_finish_reason": "stop",
            "id": "r1",
            "model": "m1",
            "usage": Usage(3, 2).to_dict(),
        }
    }
    assert load_messages(dump_messages([reply])) == [reply]


def test_blocks_have_the_order_of_their_keys_in_any_order_of_arrival() -> None:
    parser, _ = read(
        {"add_tool_call": [(2, 1), "b", "look", "{}"]},
        {"add_text": [(1,), "Hm."]},
        {"add_tool_call": [(2, 0), "a", "look", "{}"]},
        {"add_block": [(3,), PICTURE]},
        {"end": [FinishReason.STOP]},
    )
    text, first, second, picture = parser.finish().blocks
    assert isinstance(first, ToolUseBlock)
    assert isinstance(second, ToolUseBlock)
    assert (text, first.id, second.id, picture) == (TextBlock("Hm."), "a", "b", PICTURE)
    assert parser.finish_reason is FinishReason.TOOL_USE


def test_a_call_event_has_the_arguments_that_can_be_parsed_so_far() -> None:
    parser, events = read(
        {"add_tool_call": [(0,), "c1", "look", '{"place": "Ber']},
        {"add_tool_call": [(0,), "c1", "look", 'lin"}']},
        {"end": [FinishReason.TOOL_USE, "tool_calls"]},
    )
    deltas = [event for event in events if isinstance(event, ToolUseDelta)]
    assert [event.input for event in deltas] == [{"place": "Ber"}, {"place": "Berlin"}]
    assert events[1] == ToolUseStart(0, "c1", "look")
    block = ToolUseBlock("c1", "look", {"place": "Berlin"}, '{"place": "Berlin"}')
    assert ToolUseEnd(0, block) in events
    assert parser.finish().blocks == (block,)


def test_a_call_without_an_id_always_gets_the_same_id() -> None:
    ids = set[str]()
    for _ in range(2):
        parser, _ = read({"add_tool_call": [(0,), None, "look"]}, {"end": [FinishReason.STOP]})
        (block,) = parser.finish().tool_uses
        assert (block.input, block.raw_input) == ({}, None)
        ids.add(block.id)
    assert len(ids) == 1
    assert next(iter(ids)).startswith("call_")


def test_a_late_id_and_name_count_and_repeated_ones_are_ignored() -> None:
    parser, events = read(
        {"add_tool_call": [(0,), None, None, "{"]},
        {"add_tool_call": [(0,), "c1", None, ""]},
        {"add_tool_call": [(0,), "other", "look", "}"]},
        {"end": [FinishReason.STOP]},
    )
    assert ToolUseStart(0, "", "") in events
    assert [(block.id, block.name) for block in parser.finish().tool_uses] == [("c1", "look")]


@each_case(
    ("text", "inputs"),
    [
        ('{"a": 1}{"a": 2}', [{"a": 1}, {"a": 2}]),
        ('{}{"a": 1}', [{"a": 1}]),
        ('{"a": 1}{"a": 1}', [{"a": 1}]),
        ("{}{}", [dict[str, int]()]),
    ],
)
def test_concatenated_objects_are_separate_calls(text: str, inputs: list[Any]) -> None:
    parser, events = read({"add_tool_call": [(0,), "c1", "look", text]}, {"end": [FinishReason.STOP]})
    blocks = parser.finish().tool_uses
    assert [block.input for block in blocks] == inputs
    assert len({block.id for block in blocks}) == len(inputs)
    assert not any(block.raw_is_broken for block in blocks)
    assert [event.block for event in events if isinstance(event, ToolUseEnd)] == [*blocks]


def test_an_interrupted_stream_has_its_content_and_the_reason_interrupted() -> None:
    parser, _ = read({"add_text": [(0,), "I look"]}, {"add_tool_call": [(1,), "c1", "look", '{"place": "Ber']})
    reply = parser.finish()
    assert reply.text == "I look"
    (call,) = reply.tool_uses
    assert (call.input, call.raw_input, call.raw_is_broken) == ({}, '{"place": "Ber', True)
    assert call.metadata == {"incomplete": True}
    assert reply.finish_reason is FinishReason.INTERRUPTED
    assert parser.drain() == [TextEnd(0, "I look"), MessageEnd(FinishReason.INTERRUPTED)]
    assert parser.drain() == []


def test_an_empty_stream_is_an_empty_message() -> None:
    reply = Plain().finish()
    assert reply.content == ()
    assert reply.finish_reason is FinishReason.INTERRUPTED


def test_an_error_in_the_stream_is_an_event_and_a_reason() -> None:
    parser, events = read({"add_text": [(0,), "Hm"]}, {"fail": ["overloaded", "529"]})
    assert events[-1].type == "error"
    reply = parser.finish()
    assert reply.finish_reason is FinishReason.ERROR
    assert reply.metadata is not None
    assert reply.metadata["reply"]["error"] == {"message": "overloaded", "code": "529"}


def test_a_character_that_is_split_over_two_pieces_is_joined() -> None:
    parser, events = read(
        {"add_text": [(0,), "a\ud83d"]}, {"add_text": [(0,), "\ude00b\ud83d"]}, {"add_text": [(0,), "c"]}
    )
    assert parser.finish().text == "a\N{GRINNING FACE}b\N{REPLACEMENT CHARACTER}c"
    for event in events:
        json.dumps(getattr(event, "text", ""), ensure_ascii=False).encode()


def test_thinking_with_a_proof_has_the_digest_of_its_request() -> None:
    request = {"messages": [{"role": "user", "content": "Hi"}]}
    parser = Plain(request=request)
    parser.feed({"add_thinking": [(0,), "Hm."]})
    parser.reply.add_state((0,), signature="c2ln")
    parser.feed({"add_thinking": [(1,), "Well."], "add_text": [(2,), "Hi."]})
    proven, bare, _ = parser.finish().blocks
    digest = prefix_digest(request, WireLayout())
    assert proven == ThinkingBlock("Hm.", OpaqueState("plainly", signature="c2ln", prefix=digest))
    assert bare == ThinkingBlock("Well.", OpaqueState("plainly"))


def test_metadata_of_a_block_is_merged_and_lists_grow() -> None:
    parser, _ = read({"add_text": [(0,), "Hi."]})
    parser.reply.add_metadata((0,), citations=[{"url": "a"}])
    parser.reply.add_metadata((0,), citations=[{"url": "b"}])
    parser.reply.add_metadata((9,), citations=[{"url": "of nothing"}])
    (block,) = parser.finish().blocks
    assert block.metadata == {"citations": [{"url": "a"}, {"url": "b"}]}


def test_a_complete_text_replaces_its_pieces() -> None:
    parser, events = read({"add_text": [(0,), "Hel"]}, {"replace_text": [(0,), "Hello."]})
    assert TextDelta(0, "lo.") in events
    assert parser.finish().text == "Hello."


def test_calls_get_the_original_names_of_the_tools() -> None:
    parser, _ = read({"add_tool_call": [(0,), "c", "a_b", "{}"]}, tool_names={"a_b": "a.b"})
    assert parser.finish().tool_uses[0].name == "a.b"


def test_raw_bytes_have_the_same_events_in_any_chunking() -> None:
    stream = b'data: {"add_text": [[0], "Hel"]}\n\ndata: {"add_text": [[0], "lo."]}\n\ndata: [DONE]\n\n'
    for size in (1, 7, 1_000):
        parser = _Lists()
        for start in range(0, len(stream), size):
            parser.feed(stream[start : start + size])
        assert parser.finish().text == "Hello."


class _Lists(Plain):
    def read_event(self, event: dict[str, Any]) -> None:
        super().read_event({name: [tuple(key), *arguments] for name, (key, *arguments) in event.items()})


def test_bytes_other_than_json_are_an_error_in_the_stream() -> None:
    parser = Plain()
    (start, error) = parser.feed(b"data: <html>\n\n")
    assert (start.type, error.type) == ("message-start", "error")
    assert parser.finish().finish_reason is FinishReason.ERROR


def test_a_finished_reply_refuses_further_chunks() -> None:
    parser = Plain()
    assert parser.finish() is parser.finish()
    with pytest.raises(MessageError, match="`finish` was already called"):
        parser.feed({})


@each_case("chunk", [[], 3, None, object()])
def test_a_value_that_is_not_a_chunk_is_refused(chunk: Any) -> None:
    with pytest.raises(MessageError):
        Plain().feed(chunk)


def test_options_are_checked_on_creation() -> None:
    with pytest.raises(OptionError, match="request"):
        Plain(request=3)  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]
    with pytest.raises(OptionError, match="name"):
        Plain(name="\ud800")
    with pytest.raises(OptionError, match="Did you mean 'name'"):
        Plain(nam="x")  # type: ignore[call-arg] # pyright: ignore[reportCallIssue]


def test_an_opaque_block_stays_at_its_position() -> None:
    searched = OpaqueBlock("plain", {"type": "search"})
    parser, events = read({"add_block": [(0,), searched]}, {"add_text": [(1,), "Found."]})
    assert events[1].type == "opaque"
    assert parser.finish().blocks == (searched, TextBlock("Found."))


def test_an_incomplete_last_event_is_an_interruption_and_not_an_error() -> None:
    parser = _Lists()
    parser.feed(b'data: {"add_text": [[0], "Hel"]}\n\ndata: {"add_text": [[0], "l')
    assert parser.finish().text == "Hel"
    assert parser.finish_reason is FinishReason.INTERRUPTED


def test_tool_names_that_are_not_a_mapping_are_refused_on_creation() -> None:
    with pytest.raises(OptionError, match="tool_names"):
        Plain(tool_names=5)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize(("json_lines", "counts"), [(True, [1, 1]), (False, [0, 2])])
def test_without_json_lines_the_first_line_waits_for_the_second(json_lines: bool, counts: list[int]) -> None:
    class LineParser(StreamParserBase):
        provider = issuer = "lines"

        def read_event(self, event: dict[str, Any]) -> None:
            events.append(event)

        def read_reply(self, reply: dict[str, Any]) -> None:
            raise NotImplementedError

    LineParser.json_lines = json_lines
    events: list[dict[str, Any]] = []
    parser, sizes = LineParser(), list[int]()
    for line in (b'{"text": "a"}\n', b'{"text": "b"}\n'):
        before = len(events)
        parser.feed(line)
        sizes.append(len(events) - before)
    assert sizes == counts
