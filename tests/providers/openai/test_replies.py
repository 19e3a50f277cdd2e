"""Complete and streamed replies of OpenAI Chat Completions and of compatible vendors."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy
from openai.types.chat import ChatCompletion, ChatCompletionChunk

from agentkit import (
    Base64Source,
    ErrorEvent,
    FinishReason,
    ImageBlock,
    MessageEnd,
    MessageError,
    Msg,
    OpaqueState,
    TextBlock,
    TextDelta,
    ThinkingBlock,
    ToolUseBlock,
    ToolUseDelta,
    ToolUseEnd,
    Usage,
    UsageEvent,
)
from agentkit.provider_kit import StreamParserBase
from agentkit_dashscope import DashScopeCompatibleChatStreamParser
from agentkit_deepseek import DeepSeekChatStreamParser
from agentkit_deepseek import parse_response as parse_deepseek
from agentkit_openai import OpenAIChatStreamParser, parse_response
from agentkit_vllm import VLLMChatStreamParser
from agentkit_vllm import parse_response as parse_vllm
from tests.cases import each_case
from tests.profiles import examples
from tests.providers.mangling import mangled, mangled_events
from tests.providers.openai.streams import sdk_events, sse
from tests.providers.streams import cut, cuts, parse_stream

Json = dict[str, Any]


def _reply(message: Json, finish: str | None = "stop", **fields: Any) -> Json:
    choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": finish}
    return {"id": "c1", "object": "chat.completion", "model": "gpt-x", "choices": [choice], **fields}


def _chunk(delta: Json, finish: str | None = None, **fields: Any) -> Json:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return {"id": "c1", "object": "chat.completion.chunk", "model": "gpt-x", "choices": [choice], **fields}


def _piece(index: int | None = None, arguments: Any = None, **fields: Any) -> Json:
    """Returns an entry of the `tool_calls` of a delta."""
    function = {key: fields[key] for key in ("name",) if key in fields}
    if arguments is not None:
        function["arguments"] = arguments
    entry: Json = {"type": "function", "function": function}
    if "id" in fields:
        entry["id"] = fields["id"]
    return entry if index is None else {"index": index, **entry}


def _call(id: str, name: str, arguments: str) -> Json:
    return {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}


def _read_stream(*chunks: object, parser: StreamParserBase | None = None) -> Msg:
    return parse_stream(parser or OpenAIChatStreamParser(), chunks)[0]


def _read_calls(*entries: list[Json]) -> list[tuple[str, str, Json]]:
    """Returns the calls of a stream whose deltas have these lists of entries."""
    chunks = [_chunk({"tool_calls": pieces}) for pieces in entries]
    msg = _read_stream(*chunks, _chunk({}, "tool_calls"))
    return [(call.id, call.name, call.input) for call in msg.tool_uses]


FIRST: Final = ("a", "look", {"x": 1})
SECOND: Final = ("b", "find", {"y": 2})

# -- complete replies ------------------------------------------------------------------------------------------


def test_a_reply_becomes_an_assistant_message() -> None:
    usage = {"prompt_tokens": 10, "completion_tokens": 2, "total_tokens": 12}
    assert parse_response(_reply({"content": "Hello."}, usage=usage), name="Friday") == Msg(
        "Friday",
        [TextBlock("Hello.")],
        "assistant",
        metadata={
            "reply": {
                "provider": "openai",
                "finish_reason": "stop",
                "native_finish_reason": "stop",
                "id": "c1",
                "model": "gpt-x",
                "usage": Usage(10, 2).to_dict(),
            }
        },
    )


def test_calls_keep_their_argument_text_and_the_finish_reason_is_tool_use() -> None:
    msg = parse_response(_reply({"content": None, "tool_calls": [_call("a", "look", '{ "x": 1 }')]}, "stop"))
    assert msg.tool_uses == (ToolUseBlock("a", "look", {"x": 1}, '{ "x": 1 }'),)
    assert msg.finish_reason is FinishReason.TOOL_USE


def test_an_sdk_object_a_dict_and_json_text_give_the_same_message() -> None:
    native = _reply({"content": "Hi.", "tool_calls": [_call("a", "look", "{}")]}, "tool_calls")
    sdk = ChatCompletion.model_validate({**native, "created": 1})
    assert parse_response(sdk) == parse_response(native) == parse_response(json.dumps(native))


def test_a_replaced_tool_name_is_restored() -> None:
    native = _reply({"tool_calls": [_call("a", "web_search_1", "{}")]}, "tool_calls")
    assert parse_response(native, tool_names={"web_search_1": "web.search"}).tool_uses[0].name == "web.search"


_REFUSED = OpaqueState("openai", model="gpt-x", fields={"refusal": True})


def test_a_refusal_becomes_a_marked_text() -> None:
    msg = parse_response(_reply({"content": None, "refusal": "No."}))
    assert msg.content == (TextBlock("No.", state=_REFUSED, metadata={"refusal": True}),)
    assert msg.finish_reason is FinishReason.REFUSAL


def test_annotations_become_citations_of_the_text() -> None:
    cited = {"type": "url_citation", "url_citation": {"url": "https://x.org", "title": "X", "start_index": 0}}
    msg = parse_response(_reply({"content": "As X says.", "annotations": [cited]}))
    assert msg.content == (TextBlock("As X says.", metadata={"citations": [cited]}),)


def test_an_audio_reply_becomes_audio_with_a_transcript() -> None:
    audio: Json = {"id": "au1", "data": "UklGRgAAAABXQVZF", "transcript": "Hello.", "expires_at": 1_800_000_000}
    msg = parse_response(_reply({"content": None, "audio": audio}))
    native = {"transcript": "Hello.", "id": "au1", "expires_at": 1_800_000_000}
    (block,) = msg.media
    assert (block.source, block.metadata) == (Base64Source("audio/wav", audio["data"]), native)
    assert block.state is not None
    assert (block.state.issuer, block.state.fields) == ("openai", {"audio": {"transcript": "Hello.", "id": "au1"}})


def test_the_media_type_of_audio_is_that_of_the_requested_format() -> None:
    request = {"audio": {"voice": "alloy", "format": "pcm16"}}
    msg = parse_response(_reply({"audio": {"id": "au1", "data": "AAAA"}}), request=request)
    (block,) = msg.media
    assert (block.source, block.metadata) == (Base64Source("audio/pcm", "AAAA"), {"id": "au1"})


def test_the_text_of_a_custom_tool_becomes_its_only_argument() -> None:
    custom = {"id": "a", "type": "custom", "custom": {"name": "sh", "input": "ls -l"}}
    block = parse_response(_reply({"tool_calls": [custom]}, "tool_calls")).tool_uses[0]
    assert (block.name, block.input, block.raw_input) == ("sh", {"input": "ls -l"}, None)
    assert block.state == OpaqueState("openai", model="gpt-x", fields={"type": "custom"})


def test_a_legacy_function_call_gets_a_created_id() -> None:
    msg = parse_response(_reply({"function_call": {"name": "look", "arguments": '{"x":1}'}}, "function_call"))
    assert msg.tool_uses[0].name == "look"
    assert msg.tool_uses[0].id.startswith("call_")


def test_content_in_parts_is_read_too() -> None:
    parts = [
        {"type": "text", "text": "See: "},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}},
        {"type": "refusal", "refusal": "No more."},
        "bare",
        7,
    ]
    assert parse_response(_reply({"content": parts})).content == (
        TextBlock("See: "),
        ImageBlock(Base64Source("image/png", "AAAA")),
        TextBlock("bare"),
        TextBlock("No more.", state=_REFUSED, metadata={"refusal": True}),
    )


def _choices(*pieces: tuple[int, str, str | None]) -> list[Json]:
    """Returns one chunk for each choice."""
    return [
        {**_chunk({}), "choices": [{"index": index, "delta": {"content": text}, "finish_reason": reason}]}
        for index, text, reason in pieces
    ]


def test_choice_0_is_read_in_any_order_of_choices() -> None:
    chunks = _choices((1, "B", None), (0, "A", None), (1, "", "stop"), (0, "", "length"))
    msg = _read_stream(*chunks)
    assert (msg.text, msg.finish_reason) == ("A", FinishReason.LENGTH)


def test_without_choice_0_the_first_choice_is_read() -> None:
    msg = _read_stream(*_choices((1, "B", None), (2, "C", None), (1, "!", "stop")))
    assert (msg.text, msg.finish_reason) == ("B!", FinishReason.STOP)


def _read_separate_calls(*calls: tuple[str, str], **keys: Any) -> list[tuple[str, Any]]:
    """Returns the calls of a stream with one chunk for each call."""
    chunks = [
        _chunk({"tool_calls": [{**keys, "function": {"name": name, "arguments": text}}]}) for name, text in calls
    ]
    return [(call.name, call.input) for call in _read_stream(*chunks, _chunk({}, "tool_calls")).tool_uses]


@pytest.mark.parametrize("keys", [{"index": 0}, {}, {"index": 0, "id": ""}, {"index": 0, "id": "c1"}])
def test_another_name_after_complete_arguments_begins_another_call(keys: Json) -> None:
    both = (("read", '{"a":1}'), ("delete", '{"a":2}'))
    assert _read_separate_calls(*both, **keys) == [("read", {"a": 1}), ("delete", {"a": 2})]
    assert _read_separate_calls(("read", "{}"), ("delete", "{}"), **keys) == [("read", {}), ("delete", {})]


def test_a_name_that_is_repeated_with_each_piece_starts_a_single_call() -> None:
    pieces = (("read", '{"a"'), ("read", ":1}"), ("read", ""))
    assert _read_separate_calls(*pieces, index=0) == [("read", {"a": 1})]


def test_the_same_call_in_two_turns_gets_two_ids() -> None:
    called = {"tool_calls": [{"type": "function", "function": {"name": "look", "arguments": "{}"}}]}
    native = {**_reply({"content": None, **called}), "id": None}
    first = parse_response(native, request={"messages": [{"role": "user", "content": "Look."}]})
    later = parse_response(native, request={"messages": [{"role": "user", "content": "Look again."}]})
    msgs = (
        parse_response({**native, "created": 1_800_000_000}),
        parse_response({**native, "created": 1_800_000_009}),
    )
    ids = [msg.tool_uses[0].id for msg in (first, later, *msgs)]
    assert len({*ids}) == 4
    again = parse_response(native, request={"messages": [{"role": "user", "content": "Look."}]})
    assert again == first


def test_a_bare_error_in_a_stream_is_an_error() -> None:
    parser = OpenAIChatStreamParser()
    parser.feed(b'event: error\ndata: {"message":"overloaded","code":503}\n\n')
    msg = parser.finish()
    assert msg.finish_reason is FinishReason.ERROR
    assert (msg.metadata or {})["reply"]["error"]["message"] == "overloaded"


def test_only_the_first_choice_is_read() -> None:
    native = _reply({"content": "first"})
    native["choices"].append({"index": 1, "message": {"content": "second"}, "finish_reason": "stop"})
    assert parse_response(native).text == "first"
    other = {**_chunk({"content": "second"}), "choices": [{"index": 1, "delta": {"content": "second"}}]}
    assert _read_stream(_chunk({"content": "first"}), other, _chunk({}, "stop")).text == "first"


@each_case(
    ("word", "reason"),
    [
        ("stop", FinishReason.STOP),
        ("length", FinishReason.LENGTH),
        ("content_filter", FinishReason.CONTENT_FILTER),
        ("insufficient_system_resource", FinishReason.ERROR),
        ("abort", FinishReason.INTERRUPTED),
        ("tool_calls", FinishReason.OTHER),  # the reply has no tool calls
        ("sunset", FinishReason.OTHER),
        (None, FinishReason.OTHER),
    ],
)
def test_each_native_finish_reason_is_mapped_and_recorded(word: str | None, reason: FinishReason) -> None:
    msg = parse_response(_reply({"content": "Hi."}, word))
    assert msg.finish_reason is reason
    assert (msg.metadata or {})["reply"].get("native_finish_reason") == word


def test_arguments_truncated_by_the_token_limit_stay_text_and_are_marked() -> None:
    block = parse_response(_reply({"tool_calls": [_call("a", "look", '{"x": "lib')]}, "length")).tool_uses[0]
    assert (block.input, block.raw_input, block.metadata) == ({}, '{"x": "lib', {"incomplete": True})
    empty = parse_response(_reply({"tool_calls": [_call("a", "look", "")]}, "length")).tool_uses[0]
    assert empty.metadata == {"incomplete": True}


@each_case("arguments", ["", " ", "{}", "null", '""', None, {}, []])
def test_missing_arguments_become_an_empty_object(arguments: Any) -> None:
    block = parse_response(_reply({"tool_calls": [_call("a", "look", arguments)]}, "tool_calls")).tool_uses[0]
    assert (block.input, block.metadata) == ({}, None)


def test_arguments_in_an_object_are_read_unchanged() -> None:
    entry = _piece(0, {"x": [1, {}]}, id="a", name="look")
    assert _read_calls([entry]) == [("a", "look", {"x": [1, {}]})]
    assert parse_response(_reply({"tool_calls": [entry]})).tool_uses[0].input == {"x": [1, {}]}


@pytest.mark.parametrize(
    "body",
    [
        {"error": {"message": "out of order", "type": "server_error", "code": 500}},
        {"object": "error", "message": "out of order", "code": 400},
        {"error": "out of order"},
    ],
)
def test_an_error_body_raises_an_error_with_the_text_of_the_provider(body: Json) -> None:
    with pytest.raises(MessageError, match="out of order"):
        parse_response(body)


@each_case("value", [{}, {"id": "c1"}, [], "[]", "no json", 7, None])
def test_a_value_that_is_not_a_reply_raises_an_error(value: object) -> None:
    with pytest.raises(MessageError):
        parse_response(value)


@each_case("choices", [[], [None], [{}], [{"message": None}], [{"message": {"content": None}}]])
def test_a_reply_without_content_becomes_an_empty_message(choices: Any) -> None:
    assert parse_response({"id": None, "model": None, "choices": choices, "usage": None}).content == ()


# -- usage -----------------------------------------------------------------------------------------------------


@each_case(
    ("value", "usage"),
    [
        (
            {
                "prompt_tokens": 100,
                "completion_tokens": 50,
                "prompt_tokens_details": {"cached_tokens": 60, "cache_write_tokens": 30},
                "completion_tokens_details": {"reasoning_tokens": 40},
            },
            Usage(100, 50, 60, 30, 40),
        ),
        (
            {
                "prompt_tokens": 100,
                "completion_tokens": 50,
                "prompt_cache_hit_tokens": 64,
                "prompt_cache_miss_tokens": 36,
            },
            Usage(100, 50, 64),
        ),
        (
            {
                "prompt_tokens": 100,
                "completion_tokens": 5,
                "prompt_tokens_details": {"cached_tokens": 0, "cache_creation_input_tokens": 90},
            },
            Usage(100, 5, 0, 90),
        ),
        (
            {"prompt_tokens": 7, "completion_tokens": None, "prompt_tokens_details": None, "total_tokens": "many"},
            Usage(7),
        ),
        ({"prompt_tokens": -1, "completion_tokens": 1e30}, None),
        ({}, None),
        (None, None),
        ("x", None),
    ],
)
def test_usage_of_all_vendors_is_mapped_to_the_same_fields(value: Any, usage: Usage | None) -> None:
    assert parse_response(_reply({"content": "Hi."}, usage=value)).usage == usage


USAGE: Final = {"prompt_tokens": 9, "completion_tokens": 2}


@pytest.mark.parametrize(
    "chunks",
    [
        [_chunk({"content": "Hi."}), _chunk({}, "stop"), {**_chunk({}), "choices": [], "usage": USAGE}],
        [_chunk({"content": "Hi."}), _chunk({}, "stop", usage=USAGE)],
        [
            _chunk({"content": "Hi."}, usage={"prompt_tokens": 9, "completion_tokens": 1}),
            _chunk({}, "stop", usage=USAGE),
            {"choices": [], "usage": {"prompt_tokens": 0, "completion_tokens": 0}},
        ],
    ],
    ids=["in a separate chunk", "in the last chunk", "in every chunk"],
)
def test_usage_may_arrive_in_any_chunk(chunks: list[Json]) -> None:
    msg, events = parse_stream(OpenAIChatStreamParser(), chunks)
    assert msg.usage == Usage(9, 2)
    assert [event.usage for event in events if isinstance(event, UsageEvent)][-1] == Usage(9, 2)


# -- streams, quirk by quirk -----------------------------------------------------------------------------------


def test_a_stream_returns_events_as_chunks_arrive() -> None:
    chunks = [
        _chunk({"role": "assistant", "content": ""}),
        _chunk({"content": "I "}),
        _chunk({"content": "look."}),
        _chunk({"tool_calls": [_piece(0, "", id="a", name="look")]}),
        _chunk({"tool_calls": [_piece(0, '{"pla')]}),
        _chunk({"tool_calls": [_piece(0, 'ce":"here"}')]}),
        _chunk({}, "tool_calls"),
    ]
    parser = OpenAIChatStreamParser()
    events = [event for chunk in chunks for event in parser.feed(chunk)]
    assert [event.type for event in events] == [
        *("message-start", "text-start", "text-delta", "text-delta", "tool-use-start", "tool-use-delta"),
        *("tool-use-delta", "text-end", "tool-use-end", "message-end"),
    ]
    deltas = [event for event in events if isinstance(event, ToolUseDelta)]
    assert [event.input for event in deltas] == [{}, {"place": "here"}]
    assert events[-1] == MessageEnd(FinishReason.TOOL_USE, "tool_calls")
    assert parser.finish().text == "I look."


def test_an_entry_without_an_index_continues_the_latest_call() -> None:
    entries = [[_piece(None, '{"x"', id="a", name="look")], [_piece(None, ":1}")]]
    assert _read_calls(*entries, [_piece(None, '{"y":2}', id="b", name="find")]) == [FIRST, SECOND]


@each_case("numbers", [(0, 1), (1, 2), (3, 9), (0, 0), (None, None)])
def test_calls_with_any_indexes_are_separated(numbers: tuple[int | None, int | None]) -> None:
    first, second = numbers
    assert _read_calls(
        [_piece(first, "", id="a", name="look")],
        [_piece(first, '{"x"')],
        [_piece(first, ":1}")],
        [_piece(second, '{"y"', id="b", name="find")],
        [_piece(second, ":2}")],
    ) == [FIRST, SECOND]


def test_calls_are_in_the_order_of_their_indexes() -> None:
    assert _read_calls(
        [_piece(5, '{"y":2}', id="b", name="find")], [_piece(2, '{"x":1}', id="a", name="look")]
    ) == [
        FIRST,
        SECOND,
    ]


@pytest.mark.parametrize("later", ["a", "", None])
def test_a_repeated_or_empty_id_continues_the_call(later: str | None) -> None:
    assert _read_calls([_piece(0, '{"x"', id="a", name="look")], [_piece(0, ":1}", id=later, name="")]) == [FIRST]


def test_a_repeated_name_is_not_doubled() -> None:
    assert _read_calls([_piece(0, '{"x"', id="a", name="look")], [_piece(0, ":1}", id="a", name="look")]) == [
        FIRST
    ]


def test_a_name_and_an_id_may_arrive_separately_and_late() -> None:
    assert _read_calls([_piece(0, name="look")], [_piece(0, id="a")], [_piece(0, '{"x":1}')]) == [FIRST]
    assert _read_calls([_piece(0, '{"x":1}')], [_piece(0, id="a")], [_piece(0, name="look")]) == [FIRST]
    assert _read_calls([_piece(None, name="look")], [_piece(None, '{"x":1}', id="a")]) == [FIRST]


def test_entries_with_the_same_index_are_assigned_by_id() -> None:
    assert _read_calls(
        [_piece(0, '{"x"', id="a", name="look")],
        [_piece(0, '{"y"', id="b", name="find")],
        [_piece(0, ":1}", id="a")],
        [_piece(0, ":2}", id="b")],
    ) == [FIRST, SECOND]


@pytest.mark.parametrize("index", [0, None])
def test_complete_calls_in_one_delta_are_separate_even_without_ids(index: int | None) -> None:
    calls = _read_calls([_piece(index, '{"x":1}', name="look"), _piece(index, '{"x":1}', name="look")])
    assert [(name, arguments) for _, name, arguments in calls] == [("look", {"x": 1})] * 2
    assert len({id for id, _, _ in calls}) == 2


def test_several_objects_in_one_argument_text_become_separate_calls() -> None:
    calls = _read_calls([_piece(0, '{"x":1}', id="a", name="look")], [_piece(0, '{"x":2}')])
    assert [arguments for _, _, arguments in calls] == [{"x": 1}, {"x": 2}]


def test_entries_of_nulls_are_ignored() -> None:
    nothing = [None, 7, {}, {"index": 0, "id": None, "function": None}, {"function": {"name": None}}]
    assert _read_calls(nothing) == []  # type: ignore[arg-type]
    assert parse_response(_reply({"content": "Hi.", "tool_calls": nothing})).tool_uses == ()
    empty = {"function_call": {"name": "", "arguments": ""}}
    assert _read_stream(_chunk({"content": "Hi.", **empty}), _chunk({}, "stop")).tool_uses == ()


def test_a_call_without_an_id_gets_the_same_created_id_in_any_chunking() -> None:
    reply = parse_response(_reply({"tool_calls": [_call("", "look", '{"x":1}')]}, "tool_calls"))
    for index in (0, 1, 7, None):
        pieces = (_piece(index, '{"x"', name="look"), _piece(index, ":1}"))
        chunks = [_chunk({"tool_calls": [piece]}) for piece in pieces]
        assert _read_stream(*chunks, _chunk({}, "tool_calls")) == reply


def test_a_streamed_custom_call_equals_the_complete_one() -> None:
    entry = {"index": 0, "id": "a", "type": "custom", "custom": {"name": "sh", "input": ""}}
    pieces = [{"index": 0, "custom": {"input": piece}} for piece in ("ls ", "-l")]
    chunks = [_chunk({"tool_calls": [delta]}) for delta in (entry, *pieces)]
    complete = {"id": "a", "type": "custom", "custom": {"name": "sh", "input": "ls -l"}}
    assert _read_stream(*chunks, _chunk({}, "tool_calls")) == parse_response(
        _reply({"tool_calls": [complete]}, "tool_calls")
    )


def test_pieces_of_a_refusal_are_joined() -> None:
    msg = _read_stream(_chunk({"refusal": "I "}), _chunk({"refusal": "won't."}), _chunk({}, "stop"))
    assert msg == parse_response(_reply({"refusal": "I won't."}))


def test_pieces_of_audio_become_one_block_at_the_end() -> None:
    complete = {"id": "au1", "data": "UklGRgAAAABXQVZF", "transcript": "Hello.", "expires_at": 9}
    pieces: list[Json] = [
        {"id": "au1", "transcript": "Hel"},
        {"data": "UklGRgAA"},
        {"data": "AABXQVZF", "transcript": "lo."},
    ]
    chunks = [_chunk({"audio": piece}) for piece in pieces]
    expected = parse_response(_reply({"audio": complete}))
    assert _read_stream(*chunks, _chunk({"audio": {"expires_at": 9}}, "stop")) == expected
    assert _read_stream(*chunks, _chunk({}, "stop"), _chunk({"audio": {"expires_at": 9}})) == expected


def test_complete_audio_ends_a_reply_without_a_finish_reason() -> None:
    msg = _read_stream(_chunk({"audio": {"data": "AAAA"}}), _chunk({"audio": {"expires_at": 9}}))
    assert msg.finish_reason is FinishReason.STOP
    assert len(msg.media) == 1


def test_an_audio_reply_without_a_finish_reason_ends_equally_in_any_chunking() -> None:
    sound = {"id": "au1", "data": "UklGRgAAAABXQVZF", "transcript": "Hello."}
    chunks = [_chunk({"audio": sound}), _chunk({"audio": {"expires_at": 9}})]
    reply = parse_response(_reply({"audio": {**sound, "expires_at": 9}}, None))
    assert reply.finish_reason is FinishReason.STOP
    assert _read_stream(*chunks) == reply
    assert _read_stream(sse(chunks)) == reply  # the bytes end with [DONE]
    assert _read_stream(sse(chunks).removesuffix(b"data: [DONE]\n\n")) == reply


def test_separately_encoded_pieces_of_audio_are_joined_as_bytes() -> None:
    msg = _read_stream(_chunk({"audio": {"data": "SUQz"}}), _chunk({"audio": {"data": "AA=="}}),
                    _chunk({"audio": {"data": "AQ=="}}), _chunk({}, "stop"))  # fmt: skip
    assert msg.media[0].source == Base64Source("audio/mpeg", "SUQzAAE=")


def test_a_transcript_without_audio_becomes_a_text() -> None:
    msg = _read_stream(_chunk({"audio": {"id": "au1", "transcript": "Hello."}}))
    assert msg.text == "Hello."


def test_citations_may_arrive_in_any_delta() -> None:
    cited = [{"type": "url_citation", "n": 1}, {"type": "url_citation", "n": 2}]
    chunks = [_chunk({"annotations": cited[:1]}), _chunk({"content": "Hi."}), _chunk({"annotations": cited[1:]})]
    expected = parse_response(_reply({"content": "Hi.", "annotations": cited}))
    assert _read_stream(*chunks, _chunk({}, "stop")) == expected
    assert _read_stream(*chunks[:2], _chunk({}, "stop"), chunks[2]) == expected


def test_chunks_without_choices_are_ignored() -> None:
    first: Json = {"id": "", "model": "", "choices": [], "prompt_filter_results": [{}]}
    assert _read_stream(first, _chunk({"content": "Hi."}), _chunk({}, "stop")).text == "Hi."


def test_id_and_model_of_a_reply_may_arrive_in_separate_chunks() -> None:
    msg = _read_stream({**_chunk({"content": "Hi."}), "id": None}, _chunk({}, "stop"))
    assert msg == parse_response(_reply({"content": "Hi."}))


def test_a_divided_character_is_joined() -> None:
    raw = sse([_chunk({"content": "\ud83d"}), _chunk({"content": "\ude00"}), _chunk({"refusal": "\ud83d"}),
               _chunk({"refusal": "\ude00"}), _chunk({}, "stop")])  # fmt: skip
    assert [block.text for block in _read_stream(raw).blocks if isinstance(block, TextBlock)] == ["😀", "😀"]


@pytest.mark.parametrize("word", [None, "", "null"])
def test_a_reply_continues_while_the_finish_reason_is_null(word: str | None) -> None:
    msg = _read_stream(_chunk({"content": "a"}, word), _chunk({"content": "b"}, word), _chunk({}, "stop"))
    assert (msg.text, msg.finish_reason) == ("ab", FinishReason.STOP)


def test_log_probabilities_and_padding_are_ignored() -> None:
    chunk = _chunk({"content": "Hi.", "obfuscation": "x9"})
    chunk["choices"][0]["logprobs"] = {"content": [{"token": "Hi."}]}
    assert _read_stream(chunk, _chunk({}, "stop")).content == (TextBlock("Hi."),)


@pytest.mark.parametrize(
    "error",
    [
        {"error": {"message": "overloaded", "code": "server_error"}},
        {"object": "error", "message": "overloaded", "code": "server_error"},
        {"choices": [{"index": 0, "error": {"message": "overloaded", "code": "server_error"},
                      "finish_reason": "error", "delta": {}}]},
        {"choices": [{"index": 0, "delta": {"content": ""}, "finish_reason": "error"}],
         "error": {"message": "overloaded", "code": "server_error"}},
    ],
)  # fmt: skip
def test_an_error_in_a_stream_is_recorded_and_earlier_content_stays(error: Json) -> None:
    msg, events = parse_stream(OpenAIChatStreamParser(), [_chunk({"content": "Half a"}), error])
    assert ErrorEvent("overloaded", "server_error") in events
    assert (msg.text, msg.finish_reason) == ("Half a", FinishReason.ERROR)
    assert (msg.metadata or {})["reply"]["error"] == {"message": "overloaded", "code": "server_error"}


def test_an_interrupted_stream_keeps_its_content_and_marks_the_incomplete_call() -> None:
    msg = _read_stream(
        _chunk({"content": "I look"}), _chunk({"tool_calls": [_piece(0, '{"pla', id="a", name="look")]})
    )
    assert msg.finish_reason is FinishReason.INTERRUPTED
    assert msg.content == (
        TextBlock("I look"),
        ToolUseBlock("a", "look", {}, '{"pla', metadata={"incomplete": True}),
    )


# -- the vendors -----------------------------------------------------------------------------------------------


@each_case(
    ("parser", "field", "issuer"),
    [
        (DeepSeekChatStreamParser, "reasoning_content", "deepseek"),
        (VLLMChatStreamParser, "reasoning", "vllm"),
        (VLLMChatStreamParser, "reasoning_content", "vllm"),
        (DashScopeCompatibleChatStreamParser, "reasoning_content", "dashscope"),
        (OpenAIChatStreamParser, "reasoning_content", "openai"),
    ],
)
def test_reasoning_becomes_thinking_with_its_issuer(
    parser: type[StreamParserBase], field: str, issuer: str
) -> None:
    expected = (ThinkingBlock("Hm. So.", OpaqueState(issuer, model="gpt-x")), TextBlock("Yes."))
    assert parser.parse_response(_reply({"content": "Yes.", field: "Hm. So."})).content == expected
    chunks = [
        _chunk({"role": "assistant", "content": None, field: ""}),
        _chunk({"content": None, field: "Hm. "}),
        _chunk({"content": "", field: "So."}),
        _chunk({"content": "Yes.", field: None}, "stop"),
    ]
    assert _read_stream(*chunks, parser=parser()).content == expected


def test_reasoning_in_two_keys_is_read_once() -> None:
    both = {"reasoning": "Hm.", "reasoning_content": "Hm."}
    expected = parse_vllm(_reply({"content": "Yes.", **both}))
    assert expected.thinking == "Hm."
    assert (
        _read_stream(_chunk(both), _chunk({"content": "Yes."}, "stop"), parser=VLLMChatStreamParser()) == expected
    )


def test_reasoning_without_a_proof_has_no_prefix_digest() -> None:
    msg = parse_deepseek(_reply({"content": "Yes.", "reasoning_content": "Hm."}), request={"messages": []})
    assert msg.blocks[0] == ThinkingBlock("Hm.", OpaqueState("deepseek", model="gpt-x"))


def test_a_recorded_stream_of_dashscope_is_read() -> None:
    # DashScope's compatible mode sends the id once, then empty ids, always the type, and separate usage.
    entries = [
        {"index": 0, "id": "call_1", "type": "function", "function": {"name": "look", "arguments": ""}},
        {"index": 0, "id": "", "type": "function", "function": {"arguments": '{"x"'}},
        {"index": 0, "id": "", "type": "function", "function": {"arguments": ":1}"}},
    ]
    chunks: list[Json] = [
        _chunk({"role": "assistant", "content": None, "reasoning_content": "Hm."}),
        *(_chunk({"content": None, "tool_calls": [entry]}) for entry in entries),
        _chunk({}, "tool_calls"),
        {"choices": [], "usage": USAGE},
    ]
    msg = _read_stream(*chunks, parser=DashScopeCompatibleChatStreamParser())
    assert [(call.id, call.name, call.input) for call in msg.tool_uses] == [("call_1", "look", {"x": 1})]
    assert msg.usage == Usage(9, 2)


# -- any chunking ----------------------------------------------------------------------------------------------

_WORDS: SearchStrategy[str] = st.text(st.sampled_from('aB {}"\\\n\r é漢🙂\u2028:'), max_size=12)
_ARGUMENTS = st.sampled_from(('{"x":1}', "{}", '{"q": "漢 é", "n": [1, {"k": null}]}', "", '{"cut": "he', "{"))


@st.composite
def replies(draw: DrawFn) -> tuple[Json, list[Json]]:
    """Strategy for a complete reply and the same reply in chunks, as different servers send them."""
    calls = [
        _call(f"call_{index}", draw(st.sampled_from(("look", "find"))), draw(_ARGUMENTS))
        for index in range(draw(st.integers(0, 3)))
    ]
    message: Json = {
        "content": draw(st.one_of(st.none(), _WORDS)),
        "refusal": draw(st.one_of(st.none(), st.none(), _WORDS)),
        "reasoning_content": draw(st.one_of(st.none(), _WORDS)),
        "annotations": draw(st.sampled_from(([], [{"type": "url_citation"}]))),
        "tool_calls": calls or draw(st.sampled_from((None, []))),
    }
    finish = draw(st.sampled_from(("stop", "length", "tool_calls", "content_filter", "odd")))
    usage = draw(st.sampled_from((None, USAGE)))
    return _reply(message, finish, usage=usage), _draw_chunks(draw, message, finish, usage)


def _draw_pieces(draw: DrawFn, text: str) -> list[str]:
    borders = sorted(draw(st.lists(st.integers(0, len(text)), max_size=4)))
    return [text[start:stop] for start, stop in zip([0, *borders], [*borders, len(text)], strict=True)]


def _draw_chunks(draw: DrawFn, message: Json, finish: str, usage: Json | None) -> list[Json]:
    chunks = [_chunk({"role": "assistant", "content": ""})]
    for field in ("reasoning_content", "content", "refusal"):
        chunks += [_chunk({field: piece}) for piece in _draw_pieces(draw, message[field] or "")]
    if message["annotations"]:
        chunks.append(_chunk({"annotations": message["annotations"]}))
    numbering = draw(st.sampled_from(("from 0", "from 1", "gaps", "all 0", "none")))
    for position, call in enumerate(message["tool_calls"] or []):
        index = {"from 0": position, "from 1": position + 1, "gaps": 3 * position + 2, "all 0": 0, "none": None}[
            numbering
        ]
        chunks += [_chunk({"tool_calls": [entry]}) for entry in _draw_entries(draw, index, call)]
    together = draw(st.booleans())
    chunks.append(_chunk({}, finish, usage=usage if together else None))
    return chunks if together else [*chunks, {"id": "c1", "choices": [], "usage": usage}]


def _draw_entries(draw: DrawFn, index: int | None, call: Json) -> list[Json]:
    name, arguments = call["function"]["name"], call["function"]["arguments"]
    pieces = _draw_pieces(draw, arguments)
    repeats = draw(st.sampled_from(({}, {"id": call["id"]}, {"id": ""}, {"id": call["id"], "name": name})))
    if index is not None and "id" in repeats:
        repeats = {**repeats, "id": call["id"]} if repeats["id"] else repeats
    first = _piece(index, pieces[0], id=call["id"], name=name)
    return [first, *(_piece(index, piece, **repeats) for piece in pieces[1:])]


@examples(150)
@given(replies(), cuts, st.sampled_from(("\n", "\r\n", "\r")))
def test_any_chunking_gives_the_message_of_the_complete_reply(
    reply: tuple[Json, list[Json]], borders: list[int], break_: str
) -> None:
    complete, chunks = reply
    expected = parse_response(complete)
    assert _read_stream(*chunks) == expected
    assert _read_stream(*(ChatCompletionChunk.construct(**chunk) for chunk in chunks)) == expected
    assert parse_stream(OpenAIChatStreamParser(), cut(sse(chunks, break_), borders))[0] == expected


@examples(40)
@given(replies())
def test_chunks_of_the_sdk_client_give_the_same_message(reply: tuple[Json, list[Json]]) -> None:
    complete, chunks = reply
    assert parse_stream(OpenAIChatStreamParser(), sdk_events("chat", sse(chunks)))[0] == parse_response(complete)
    assert parse_response(ChatCompletion.construct(**complete)) == parse_response(complete)


@examples(100)
@given(replies())
def test_the_events_agree_with_the_message(reply: tuple[Json, list[Json]]) -> None:
    msg, events = parse_stream(OpenAIChatStreamParser(), reply[1])
    deltas = "".join(event.text for event in events if isinstance(event, TextDelta))
    assert deltas == "".join(block.text for block in msg.blocks if isinstance(block, TextBlock))
    assert [event.block for event in events if isinstance(event, ToolUseEnd)] == [*msg.tool_uses]
    assert sum(isinstance(event, MessageEnd) for event in events) == 1
    assert events[0].type == "message-start"


@examples(200)
@given(replies().flatmap(lambda reply: mangled_events(reply[1])), cuts)
def test_mangled_events_never_raise(chunks: list[Json], borders: list[int]) -> None:
    for parser in (OpenAIChatStreamParser(), VLLMChatStreamParser()):
        msg, _ = parse_stream(parser, chunks)
        assert Msg.from_dict(msg.to_dict()) == msg
    parse_stream(OpenAIChatStreamParser(), cut(sse(chunks), borders))


@examples(200)
@given(replies().flatmap(lambda reply: mangled(reply[0])))
def test_a_mangled_reply_is_parsed_or_raises_an_error(reply: Any) -> None:
    with suppress(MessageError):
        msg = parse_response(reply)
        assert Msg.from_dict(msg.to_dict()) == msg


def test_a_finished_stream_without_a_finish_reason_is_complete() -> None:
    delta = {"index": 0, "delta": {"content": "Hi."}, "finish_reason": None}
    parser = OpenAIChatStreamParser()
    parser.feed(f"data: {json.dumps({'choices': [delta]})}\n\n")
    parser.feed("data: [DONE]\n\n")
    reply = {"choices": [{"index": 0, "message": {"role": "assistant", "content": "Hi."}, "finish_reason": None}]}
    assert parser.finish() == OpenAIChatStreamParser.parse_response(reply)
    assert parser.finish_reason is FinishReason.OTHER
