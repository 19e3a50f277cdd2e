"""Replies of Anthropic: complete and streamed, and any chunks compared with the complete reply."""

from __future__ import annotations

import json
from typing import Any, Final, cast

import anyio
import pytest
from hypothesis import event as observe
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

from agentkit import (
    Budget,
    BudgetError,
    ErrorEvent,
    FinishReason,
    MessageEnd,
    MessageError,
    MessageStart,
    Msg,
    OpaqueBlock,
    OpaqueEvent,
    OpaqueState,
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
    load_provider,
    prefix_digest,
)
from agentkit_anthropic import PROVIDER, AnthropicChatFormatter, AnthropicStreamParser, parse_response
from tests.cases import each_case
from tests.profiles import examples
from tests.properties.test_cut_and_thinking import Server
from tests.providers import LOOK, problems, result, system, user
from tests.providers.calling import RawServer, write_answer
from tests.providers.mangling import mangled
from tests.providers.streams import cut, cuts, encode_events, parse_stream

CITATION: Final = {
    "type": "web_search_result_location",
    "cited_text": "Cats.",
    "encrypted_index": "Eo8B==",
    "title": "On cats",
    "url": "https://example.com/cats",
}
SEARCH: Final[dict[str, Any]] = {
    "type": "server_tool_use",
    "id": "srvtoolu_1",
    "name": "web_search",
    "input": {"query": "cats"},
}
SEARCH_RESULT: Final[dict[str, Any]] = {
    "type": "web_search_tool_result",
    "tool_use_id": "srvtoolu_1",
    "content": [
        {
            "type": "web_search_result",
            "url": "https://example.com/cats",
            "title": "On cats",
            "encrypted_content": "EqgfCioIARgB==",
            "page_age": None,
        }
    ],
}
REPLY: Final[dict[str, Any]] = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "claude-opus-5-5",
    "content": [
        {"type": "thinking", "thinking": "I search – 🐈.", "signature": "EsQC/+=="},
        SEARCH,
        SEARCH_RESULT,
        {"type": "redacted_thinking", "data": "Red/+=="},
        {"type": "text", "text": "Cats, 漢字, 🙂.", "citations": [CITATION]},
        {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {"place": "hière"}},
        {"type": "tool_use", "id": "toolu_2", "name": "wait", "input": {}, "caller": {"type": "direct"}},
    ],
    "stop_reason": "tool_use",
    "stop_sequence": None,
    "usage": {
        "input_tokens": 10,
        "cache_creation_input_tokens": 20,
        "cache_read_input_tokens": 300,
        "output_tokens": 40,
        "output_tokens_details": {"thinking_tokens": 7},
        "server_tool_use": {"web_search_requests": 1, "web_fetch_requests": 0},
    },
}

# -- a fake stream ---------------------------------------------------------------------------------------------


def as_deltas(block: dict[str, Any], places: list[int]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Returns the start of a streamed block and its deltas (platform docs, build-with-claude/streaming)."""
    kind = block["type"]
    deltas: list[dict[str, Any]] = []
    if kind == "text":
        deltas += [{"type": "text_delta", "text": piece} for piece in cut(block["text"], places)]
        cited = cast("list[Any]", block.get("citations") or [])
        deltas += [{"type": "citations_delta", "citation": citation} for citation in cited]
        start: dict[str, Any] = {"type": "text", "text": ""}
        return {**start, "citations": []} if cited else start, deltas
    if kind == "thinking":
        deltas += [{"type": "thinking_delta", "thinking": piece} for piece in cut(block["thinking"], places)]
        if block["signature"]:
            deltas.append({"type": "signature_delta", "signature": block["signature"]})
        return {**block, "thinking": "", "signature": ""}, deltas
    if kind in ("tool_use", "server_tool_use"):
        pieces = ["", *cut(json.dumps(block["input"]), places)] if block["input"] else []
        return {**block, "input": {}}, [
            {"type": "input_json_delta", "partial_json": citation} for citation in pieces
        ]
    return block, []


def as_events(reply: dict[str, Any], places: list[int]) -> list[dict[str, Any]]:
    """Returns a complete reply as the events of a stream."""
    last = ("output_tokens", "output_tokens_details", "server_tool_use")
    usage = reply["usage"]
    first: dict[str, Any] = {key: item for key, item in usage.items() if key not in last} | {"output_tokens": 1}
    head: dict[str, Any] = {**reply, "content": [], "stop_reason": None, "stop_sequence": None, "usage": first}
    head.pop("stop_details", None)
    events: list[dict[str, Any]] = [{"type": "message_start", "message": head}, {"type": "ping"}]
    for index, block in enumerate(reply["content"]):
        start, deltas = as_deltas(block, places)
        events.append({"type": "content_block_start", "index": index, "content_block": start})
        events += [{"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas]
        events.append({"type": "content_block_stop", "index": index})
    stop_fields = {key: reply.get(key) for key in ("stop_reason", "stop_sequence", "stop_details") if key in reply}
    end = {key: usage[key] for key in last if key in usage}
    events.append({"type": "message_delta", "delta": stop_fields, "usage": end})
    return [*events, {"type": "message_stop"}]


def as_sdk_events(events: list[dict[str, Any]]) -> list[Any]:
    """Returns the events as objects of the SDK, which drops pings."""
    from anthropic._models import construct_type
    from anthropic.types import RawMessageStreamEvent

    visible = (event for event in events if event["type"] != "ping")
    return [construct_type(value=json.loads(json.dumps(event)), type_=RawMessageStreamEvent) for event in visible]


def read_stream(events: list[Any]) -> tuple[Msg, list[StreamEvent]]:
    return parse_stream(AnthropicStreamParser(), events)


def read_reply(*blocks: dict[str, Any], **fields: Any) -> Msg:
    return parse_response({**REPLY, "content": list(blocks), "stop_reason": "end_turn", **fields})


def get_reply(msg: Msg) -> dict[str, Any]:
    return cast("dict[str, Any]", (msg.metadata or {})["reply"])


# -- complete replies ------------------------------------------------------------------------------------------


def test_a_complete_reply_becomes_exactly_this_message() -> None:
    state: dict[str, Any] = {"issuer": "anthropic", "model": "claude-opus-5-5"}
    assert parse_response(REPLY) == Msg(
        "assistant",
        [
            ThinkingBlock("I search – 🐈.", OpaqueState(**state, signature="EsQC/+==")),
            OpaqueBlock("anthropic", SEARCH),
            OpaqueBlock("anthropic", SEARCH_RESULT),
            ThinkingBlock("", OpaqueState(**state, redacted_data="Red/+==")),
            TextBlock(
                "Cats, 漢字, 🙂.",
                state=OpaqueState(**state, fields={"citations": [CITATION]}),
                metadata={"citations": [CITATION]},
            ),
            ToolUseBlock("toolu_1", "look", {"place": "hière"}),
            ToolUseBlock("toolu_2", "wait", {}, state=OpaqueState(**state, fields={"caller": {"type": "direct"}})),
        ],
        "assistant",
        metadata={
            "reply": {
                "provider": "anthropic",
                "finish_reason": "tool_use",
                "native_finish_reason": "tool_use",
                "id": "msg_1",
                "model": "claude-opus-5-5",
                "usage": {
                    "input_tokens": 330,
                    "output_tokens": 40,
                    "cache_read_tokens": 300,
                    "cache_write_tokens": 20,
                    "reasoning_tokens": 7,
                },
                "server_tool_use": {"web_search_requests": 1, "web_fetch_requests": 0},
            }
        },
    )


def test_an_sdk_object_its_dict_and_json_text_give_the_same_message() -> None:
    from anthropic._models import construct_type
    from anthropic.types import Message

    sdk_object = cast("Message", construct_type(value=json.loads(json.dumps(REPLY)), type_=Message))
    expected = parse_response(REPLY)
    assert parse_response(sdk_object) == expected
    assert parse_response(sdk_object.to_dict()) == expected
    assert parse_response(sdk_object.to_json()) == expected
    assert parse_response(json.dumps(REPLY)) == expected


def test_an_unknown_block_that_the_sdk_parses_as_text_is_sent_back_unchanged() -> None:
    from anthropic._models import construct_type
    from anthropic.types import Message
    from anthropic.types import TextBlock as SdkTextBlock

    block = {"type": "hologram", "depth": 3, "of": {"text": None}}
    reply = {**REPLY, "content": [block]}
    sdk_object = cast("Message", construct_type(value=json.loads(json.dumps(reply)), type_=Message))
    assert isinstance(sdk_object.content[0], SdkTextBlock)
    assert parse_response(sdk_object) == parse_response(reply)
    assert parse_response(sdk_object).blocks == (OpaqueBlock("anthropic", block),)
    assert read_stream(as_sdk_events(as_events(reply, [])))[0] == parse_response(reply)


def test_the_delta_of_a_compaction_sets_its_content() -> None:
    reply_block = {"type": "compaction", "content": "We spoke of cats.", "encrypted_content": "Enc=="}
    events = as_events(
        {**REPLY, "content": [{"type": "compaction", "content": None, "encrypted_content": None}]}, []
    )
    delta = {"type": "compaction_delta", "content": "We spoke of cats.", "encrypted_content": "Enc=="}
    events.insert(3, {"type": "content_block_delta", "index": 0, "delta": delta})
    assert (
        read_stream(events)[0].blocks == read_reply(reply_block).blocks == (OpaqueBlock("anthropic", reply_block),)
    )


@each_case(
    ("native", "reason"),
    [
        ("end_turn", "stop"),
        ("stop_sequence", "stop"),
        ("max_tokens", "length"),
        ("model_context_window_exceeded", "length"),
        ("tool_use", "tool_use"),
        ("pause_turn", "pause"),
        ("refusal", "refusal"),
        ("something_new", "other"),
        (None, "other"),
    ],
)
def test_each_stop_reason_is_mapped_and_the_native_reason_is_in_the_metadata(
    native: str | None, reason: str
) -> None:
    reply = {**REPLY, "content": [{"type": "text", "text": "Well."}], "stop_reason": native}
    msg = parse_response(reply)
    assert msg.finish_reason == FinishReason(reason)
    assert get_reply(msg).get("native_finish_reason") == native
    assert read_stream(as_events(reply, []))[0] == msg


def test_a_refusal_has_its_details_in_the_metadata() -> None:
    details = {"type": "refusal", "category": "cyber", "explanation": "No."}
    reply: dict[str, Any] = {**REPLY, "content": [], "stop_reason": "refusal", "stop_details": details}
    msg = parse_response(reply)
    assert (msg.finish_reason, msg.blocks) == (FinishReason.REFUSAL, ())
    assert get_reply(msg)["stop_details"] == details
    assert read_stream(as_sdk_events(as_events(reply, [])))[0] == msg


def test_thinking_that_the_server_dropped_is_in_the_metadata() -> None:
    dropped = [{"type": "thinking_dropped", "path": "messages.1.content.0", "reason": "prefix_binding_mismatch"}]
    reply = {**REPLY, "input_transformations": dropped}
    assert get_reply(parse_response(reply))["input_transformations"] == dropped
    assert read_stream(as_events(reply, []))[0] == parse_response(reply)


def test_the_expiry_of_a_container_is_equal_in_objects_and_dicts() -> None:
    from anthropic._models import construct_type
    from anthropic.types import Message

    reply = {**REPLY, "container": {"id": "container_1", "expires_at": "2026-11-21T10:00:00.5Z"}}
    sdk_object = construct_type(value=json.loads(json.dumps(reply)), type_=Message)
    assert parse_response(sdk_object) == parse_response(reply)
    assert get_reply(parse_response(reply))["container"]["id"] == "container_1"


def test_empty_content_and_empty_texts_become_no_blocks() -> None:
    assert read_reply().blocks == ()
    assert read_reply({"type": "text", "text": ""}, {"type": "text", "text": "Hi."}).blocks == (TextBlock("Hi."),)
    assert read_reply().finish_reason is FinishReason.STOP


def test_an_error_body_raises_an_error_with_the_message_of_the_provider() -> None:
    body = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}, "request_id": "r"}
    with pytest.raises(MessageError, match=r"Overloaded \(overloaded_error\)"):
        parse_response(body)


@each_case("value", [{}, {"choices": []}, {"candidates": []}, [], "[]", "no JSON", 3, None])
def test_a_value_that_is_not_an_anthropic_reply_raises_an_error(value: object) -> None:
    with pytest.raises(MessageError, match="reply"):
        parse_response(value)


# -- events ----------------------------------------------------------------------------------------------------


def test_a_stream_has_events_as_its_native_events_arrive() -> None:
    reply = {**REPLY, "content": [REPLY["content"][4], REPLY["content"][5], SEARCH], "usage": {"output_tokens": 5}}
    events = read_stream(as_events(reply, [3]))[1]
    kinds = [type(event) for event in events]
    assert kinds == [
        MessageStart, UsageEvent,
        TextStart, TextDelta, TextDelta, TextEnd,
        ToolUseStart, ToolUseDelta, ToolUseDelta, ToolUseEnd,
        OpaqueEvent,
        UsageEvent, MessageEnd,
    ]  # fmt: skip
    begun = [event.input for event in events if isinstance(event, ToolUseDelta)]
    assert begun[-1] == {"place": "hière"}


def test_usage_at_the_end_replaces_only_the_counts_that_it_contains() -> None:
    events = read_stream(as_events(REPLY, []))[1]
    usages = [event.usage for event in events if isinstance(event, UsageEvent)]
    assert usages == [Usage(330, 1, 300, 20, 0), Usage(330, 40, 300, 20, 7)]


def test_a_call_without_arguments_has_an_empty_object() -> None:
    reply: dict[str, Any] = {
        **REPLY,
        "content": [{"type": "tool_use", "id": "toolu_1", "name": "now", "input": {}}],
    }
    assert read_stream(as_events(reply, []))[0].tool_uses == (ToolUseBlock("toolu_1", "now", {}),)


def test_arguments_that_arrive_only_with_the_start_are_parsed() -> None:
    events = as_events({**REPLY, "content": [REPLY["content"][5]]}, [])
    remaining = [event for event in events if event["type"] != "content_block_delta"]
    remaining[2]["content_block"]["input"] = {"place": "here"}
    assert read_stream(remaining)[0].tool_uses[0].input == {"place": "here"}


def test_additional_events_of_the_sdk_helper_are_not_counted_twice() -> None:
    doubled: list[dict[str, Any]] = []
    for event in as_events(REPLY, [3]):
        doubled.append(event)
        delta = event.get("delta", {})
        if delta.get("type") == "text_delta":
            doubled.append({"type": "text", "text": delta["text"], "snapshot": "all so far"})
        elif delta.get("type") == "thinking_delta":
            doubled.append({"type": "thinking", "thinking": delta["thinking"], "snapshot": "all so far"})
        elif delta.get("type") == "signature_delta":
            doubled.append({"type": "signature", "signature": delta["signature"]})
        elif delta.get("type") == "citations_delta":
            doubled.append({"type": "citation", "citation": delta["citation"], "snapshot": [delta["citation"]]})
        elif delta.get("type") == "input_json_delta":
            doubled.append({"type": "input_json", "partial_json": delta["partial_json"], "snapshot": {}})
    assert read_stream(doubled)[0] == parse_response(REPLY)


def test_unknown_events_and_deltas_are_ignored() -> None:
    events = as_events(REPLY, [])
    events.insert(1, {"type": "content_block_improved", "index": 0})
    events.insert(4, {"type": "content_block_delta", "index": 0, "delta": {"type": "mood_delta", "mood": "good"}})
    assert read_stream(events)[0] == parse_response(REPLY)


def test_all_blocks_are_parsed_if_each_block_has_index_0() -> None:
    events = as_events({**REPLY, "content": REPLY["content"][4:]}, [3])
    numbered = [{**event, "index": 0} if "index" in event else event for event in events]
    assert read_stream(numbered)[0].blocks == read_reply(*REPLY["content"][4:], stop_reason="tool_use").blocks


def test_text_without_a_start_event_is_parsed() -> None:
    delta = {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Hi."}}
    assert read_stream([delta])[0].text == "Hi."


def test_an_error_in_the_stream_does_not_remove_the_earlier_blocks() -> None:
    error = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
    events = [event for event in as_events(REPLY, []) if event["type"] not in ("message_delta", "message_stop")]
    msg, parsed_events = read_stream([*events, error])
    assert msg.finish_reason is FinishReason.ERROR
    assert msg.blocks[:-1] == parse_response(REPLY).blocks[:-1]
    assert msg.blocks[-1].metadata == {"incomplete": True}  # its arguments may be missing
    assert get_reply(msg)["error"] == {"message": "Overloaded", "code": "overloaded_error"}
    assert ErrorEvent("Overloaded", "overloaded_error") in parsed_events


# -- interrupted streams ---------------------------------------------------------------------------------------


def test_an_error_event_without_a_type_is_an_error() -> None:
    parser = AnthropicStreamParser()
    error = {"error": {"type": "overloaded_error", "message": "Overloaded"}}
    events = parser.feed(b"event: error\ndata: " + json.dumps(error).encode() + b"\n\n")
    assert ErrorEvent("Overloaded", "overloaded_error") in events
    assert parser.finish().finish_reason is FinishReason.ERROR


def stream_interrupted(block: dict[str, Any], deltas: int, places: tuple[int, ...] = (8,)) -> Msg:
    """Returns the message of a reply of one block that was interrupted after some deltas."""
    events = as_events({**REPLY, "content": [block]}, list(places))
    return read_stream(events[: 3 + deltas])[0]


def next_request(reply: Msg, *following: Msg) -> list[dict[str, Any]]:
    request = AnthropicChatFormatter().lower([user("Look."), reply, *(following or (user("Go on."),))]).request
    assert problems("anthropic", request) == []
    return list(request["messages"])


def test_interrupted_thinking_has_no_signature_and_is_not_sent_back() -> None:
    msg = stream_interrupted({"type": "thinking", "thinking": "I think of cats.", "signature": "S"}, 2)
    assert msg.finish_reason is FinishReason.INTERRUPTED
    assert msg.blocks == (ThinkingBlock("I think of cats.", OpaqueState("anthropic", model="claude-opus-5-5")),)
    assert "cats" not in json.dumps(next_request(msg))


def test_an_interrupted_call_is_marked_incomplete_and_has_its_raw_input() -> None:
    msg = stream_interrupted({"type": "tool_use", "id": "toolu_1", "name": "look", "input": {"place": "here"}}, 2)
    (call,) = msg.tool_uses
    assert (call.input, call.metadata) == ({}, {"incomplete": True})
    assert call.raw_input == '{"place"'
    next_request(msg)


def test_a_call_that_the_limit_cut_is_incomplete() -> None:
    block = {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {"place": "here"}}
    events = as_events({**REPLY, "content": [block], "stop_reason": "max_tokens"}, [3])
    msg = read_stream([*events[:5], *events[6:]])[0]
    assert msg.finish_reason is FinishReason.LENGTH
    assert msg.tool_uses[0].metadata == {"incomplete": True}


@pytest.mark.parametrize("reason", ["max_tokens", "model_context_window_exceeded", "refusal"])
def test_a_last_call_without_arguments_that_the_limit_may_have_cut_is_incomplete(reason: str) -> None:
    block: dict[str, Any] = {"type": "tool_use", "id": "t", "name": "remove", "input": {}}
    reply = {**REPLY, "content": [block], "stop_reason": reason}
    msg, events = read_stream(as_events(reply, []))
    assert msg == parse_response(reply)
    assert msg.tool_uses[0].metadata == {"incomplete": True}
    assert [event.block for event in events if isinstance(event, ToolUseEnd)] == [*msg.tool_uses]


def test_a_call_without_arguments_is_complete_if_the_reply_continues_after_it() -> None:
    block: dict[str, Any] = {"type": "tool_use", "id": "t", "name": "look", "input": {}}
    content: list[Any] = [block, {"type": "text", "text": "And"}]
    reply = {**REPLY, "content": content, "stop_reason": "max_tokens"}
    msg, _ = read_stream(as_events(reply, []))
    assert msg == parse_response(reply)
    assert msg.tool_uses[0].metadata is None


def test_a_call_without_arguments_and_without_an_end_event_is_incomplete() -> None:
    block: dict[str, Any] = {"type": "tool_use", "id": "t", "name": "remove", "input": {}}
    msg, events = read_stream(as_events({**REPLY, "content": [block]}, [])[:-2])
    assert msg.tool_uses[0].metadata == {"incomplete": True}
    assert not [event for event in events if isinstance(event, ToolUseEnd)]


def test_an_interrupted_search_is_in_the_metadata_and_not_in_the_content() -> None:
    msg = stream_interrupted(SEARCH, 2)
    assert msg.blocks == ()
    cut_off = get_reply(msg)["incomplete_parts"]
    assert cut_off == [{**SEARCH, "input": {}, "partial_input": '{"query"'}]


def test_a_search_without_a_result_is_not_in_the_next_request() -> None:
    msg = read_stream(as_events({**REPLY, "content": [{"type": "text", "text": "I search."}, SEARCH]}, [])[:-2])[0]
    assert msg.blocks[-1] == OpaqueBlock("anthropic", SEARCH)
    assert next_request(msg)[1]["content"] == [{"type": "text", "text": "I search."}]


def test_a_paused_turn_is_sent_back_unchanged_as_the_last_turn() -> None:
    content: list[dict[str, Any]] = [
        {"type": "thinking", "thinking": "", "signature": "S"},
        {"type": "text", "text": "Wait."},
        SEARCH,
    ]
    paused = read_reply(*content, stop_reason="pause_turn")
    assert paused.finish_reason is FinishReason.PAUSE
    request = AnthropicChatFormatter().lower([user("Look."), paused]).request
    assert [turn["role"] for turn in request["messages"]] == ["user", "assistant"]
    assert request["messages"][1]["content"] == content


def test_a_search_and_its_result_in_the_next_reply_are_in_one_turn() -> None:
    paused = read_reply(SEARCH, stop_reason="pause_turn")
    continued = read_reply(SEARCH_RESULT, {"type": "text", "text": "Cats."})
    turn = next_request(paused, continued, user("Thanks."))[1]
    assert turn["content"] == [SEARCH, SEARCH_RESULT, {"type": "text", "text": "Cats."}]


def test_a_search_can_only_wait_for_results_of_client_tools() -> None:
    call: dict[str, Any] = {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {}}
    asked = read_reply(SEARCH, call, stop_reason="tool_use")
    answer = system(result("toolu_1", "A cat."))
    assert next_request(asked, answer)[1]["content"] == [SEARCH, call]
    assert next_request(asked, answer, user("And?"))[1]["content"] == [call]
    continued = read_reply(SEARCH_RESULT, {"type": "text", "text": "Cats."})
    assert next_request(asked, answer, continued, user("And?"))[1]["content"] == [SEARCH, call]


def test_half_a_pair_that_remains_after_a_cut_is_not_sent_and_is_in_the_ledger() -> None:
    continued = read_reply(SEARCH_RESULT, {"type": "text", "text": "Cats."})
    plan = AnthropicChatFormatter().lower([user("Look."), continued, user("Thanks.")])
    assert plan.request["messages"][1]["content"] == [{"type": "text", "text": "Cats."}]
    entry = next(entry for entry in plan.ledger.entries if entry.place == "msgs[1].content[0]")
    assert (entry.disposition.word, entry.reason) == (
        "dropped",
        "the matching request or response of the provider's tool is missing",
    )


def test_thinking_is_not_sent_if_no_block_follows_it_any_more() -> None:
    msg = read_reply({"type": "thinking", "thinking": "", "signature": "S"}, SEARCH, stop_reason="pause_turn")
    assert [turn["role"] for turn in next_request(msg)] == ["user"]


# -- the round trip --------------------------------------------------------------------------------------------


def test_a_parsed_reply_is_sent_back_unchanged() -> None:
    answers = [system(result("toolu_1", "A cat.")), system(result("toolu_2", "Done."))]
    assert next_request(parse_response(REPLY), *answers)[1]["content"] == REPLY["content"]


def test_thinking_is_sent_back_only_after_an_unchanged_prefix() -> None:
    formatter = AnthropicChatFormatter("claude-opus-5-5")
    msgs = [system("Be brief."), user("Look, please.")]
    plan = formatter.lower(msgs, tools=[LOOK])
    thought = {"type": "thinking", "thinking": "", "signature": "EsQC"}
    call: dict[str, Any] = {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {"place": "here"}}
    reply = {**REPLY, "content": [thought, call]}
    msg = parse_response(reply, request=plan.request, tool_names=plan.tool_names, name="Friday")
    assert msg.name == "Friday"
    thinking = msg.blocks[0]
    assert isinstance(thinking, ThinkingBlock)
    assert thinking.state
    assert thinking.state.prefix == prefix_digest(plan.request, load_provider("anthropic"))

    following = [msg, system(result("toolu_1", "A cat."))]
    assert formatter.lower([*msgs, *following], tools=[LOOK]).request["messages"][1]["content"] == [thought, call]
    for changed in ([*msgs[:1], user("Look!")], msgs[1:]):
        request = formatter.lower([*changed, *following], tools=[LOOK]).request
        assert request["messages"][1]["content"] == [call]
    assert formatter.lower([*msgs, *following]).request["messages"][1]["content"] == [call]


# -- through the SDK -------------------------------------------------------------------------------------------

QUESTION: Final[dict[str, Any]] = {
    "model": "claude-opus-5-5", "max_tokens": 16, "messages": [{"role": "user", "content": "Look."}],
}  # fmt: skip


@pytest.mark.anyio
async def test_a_stream_decoded_by_the_sdk_gives_the_complete_message() -> None:
    from anthropic import AsyncAnthropic

    with RawServer(
        write_answer(200, encode_events(as_events(REPLY, [2, 7]), named=True), "content-type: text/event-stream")
    ) as server:
        async with AsyncAnthropic(api_key="k", base_url=server.address, max_retries=0) as client:
            chunks = [chunk async for chunk in await client.messages.create(stream=True, **QUESTION)]
            async with client.messages.stream(**QUESTION) as helper:
                helped: list[Any] = [event async for event in helper]
                final = cast("Any", await helper.get_final_message())
    assert read_stream(chunks)[0] == parse_response(REPLY)
    assert len(helped) > len(chunks)
    assert read_stream(helped)[0] == parse_response(REPLY)
    assert parse_response(final).blocks == parse_response(REPLY).blocks


@pytest.mark.anyio
async def test_a_message_of_the_sdk_client_gives_the_complete_message() -> None:
    from anthropic import AsyncAnthropic

    with RawServer(write_answer(200, json.dumps(REPLY).encode(), "content-type: application/json")) as server:
        async with AsyncAnthropic(api_key="k", base_url=server.address, max_retries=0) as client:
            reply = cast("Any", await client.messages.create(**QUESTION))
    assert parse_response(reply) == parse_response(REPLY)


def test_the_provider_offers_its_parser() -> None:
    assert PROVIDER.parser is AnthropicStreamParser


# -- any chunking ----------------------------------------------------------------------------------------------

_texts = st.text(st.sampled_from('aé漢🙂 \n"\\{}:\r'), min_size=1, max_size=12)
_inputs = st.dictionaries(_texts, st.one_of(_texts, st.integers(), st.booleans(), st.none(), st.lists(_texts)))


def _block(kind: str, **fields: Any) -> dict[str, Any]:
    return {"type": kind, **fields}


_cited = st.sampled_from(([], [CITATION], [CITATION, CITATION]))
_blocks: st.SearchStrategy[dict[str, Any]] = st.one_of(
    st.builds(_block, st.just("text"), text=_texts),
    st.builds(_block, st.just("text"), text=_texts, citations=_cited),
    st.builds(_block, st.just("thinking"), thinking=_texts, signature=st.sampled_from(("S/+=", ""))),
    st.just(_block("thinking", thinking="", signature="Sig==")),
    st.just(_block("redacted_thinking", data="Red==")),
    st.builds(
        _block, st.just("server_tool_use"), id=st.just("srvtoolu_1"), name=st.just("web_search"), input=_inputs
    ),
    st.just(SEARCH_RESULT),
    st.builds(_block, st.just("tool_use"), id=st.just("toolu_1"), name=st.just("look"), input=_inputs),
    st.just(_block("container_upload", file_id="file_1")),
)


@st.composite
def replies(draw: DrawFn) -> dict[str, Any]:
    reason = draw(st.sampled_from(("end_turn", "tool_use", "pause_turn", "max_tokens", "new")))
    return {**REPLY, "content": draw(st.lists(_blocks, max_size=6)), "stop_reason": reason}


@examples(150)
@given(replies(), cuts, cuts, st.sampled_from(("dicts", "objects", "bytes", "named bytes")))
def test_any_chunks_give_the_message_of_the_complete_reply(
    reply: dict[str, Any], places: list[int], borders: list[int], encoding: str
) -> None:
    events = as_events(reply, places)
    chunks: list[Any] = events
    if encoding == "objects":
        chunks = as_sdk_events(events)
    elif encoding != "dicts":
        chunks = cut(encode_events(events, named=encoding == "named bytes"), borders)
    assert read_stream(chunks)[0] == parse_response(reply)


@examples(200)
@given(st.data())
def test_mangled_events_and_replies_raise_only_message_errors(data: st.DataObject) -> None:
    reply = data.draw(mangled(REPLY))
    try:
        msg = parse_response(reply)
    except MessageError:
        pass
    else:
        AnthropicChatFormatter().lower([user("Hi."), msg, user("Go on.")])
    events = as_events(REPLY, [3])
    broken = [data.draw(mangled(event)) if data.draw(st.integers(0, 4)) == 0 else event for event in events]
    parser = AnthropicStreamParser()
    for event in broken:
        if isinstance(event, dict):
            parser.feed(cast("dict[str, Any]", event))
    msg = parser.finish()
    assert Msg.from_dict(json.loads(json.dumps(msg.to_dict()))) == msg
    AnthropicChatFormatter().lower([user("Hi."), msg, user("Go on.")])


# -- an agent loop with a server that checks requests ----------------------------------------------------------


@examples(25)
@given(
    st.lists(st.sampled_from(("think", "search", "talk", "two")), min_size=5, max_size=10), st.integers(250, 600)
)
def test_thinking_is_sent_back_unchanged_and_no_request_is_refused(plot: list[str], limit: int) -> None:
    server = Server()
    formatter = AnthropicChatFormatter("claude-opus-5-5", budget=Budget(limit))
    msgs = [system("Be brief."), user("Find the library. " * 4)]

    async def run() -> None:
        contents: dict[str, list[dict[str, Any]]] = {}
        for number, kind in enumerate(plot):
            try:
                plan = await formatter.plan(msgs, tools=[LOOK])
            except BudgetError:
                return
            assert not server.get_refusals(plan.request)
            turns = json.dumps(plan.request["messages"])
            for proof, content in contents.items():
                if proof in turns:  # byte for byte, with all blocks of its reply
                    assert any(turn["content"] == content for turn in plan.request["messages"])
            content, proofs = _create_content(kind, number)
            server.issue(plan.request, proofs)
            contents |= dict.fromkeys(proofs, content)
            observe("thinking goes back" if any(proof in turns for proof in contents) else "no thinking goes back")
            observe("cut" if plan.cut else "not cut")
            parser = AnthropicStreamParser(request=plan.request, name="Friday")
            reply, _ = parse_stream(parser, as_events({**REPLY, "content": content}, [3]))
            msgs.extend([reply, *(system(result(call.id, "word " * 60)) for call in reply.tool_uses)])
            if not reply.tool_uses:
                msgs.append(user(f"Go on, {number}."))

    anyio.run(run)


def _create_content(kind: str, number: int) -> tuple[list[dict[str, Any]], list[str]]:
    """Returns the content of a reply, and the signatures of its thinking."""
    proofs = [f"proof-{number}-{index}" for index in range({"talk": 0, "two": 2}.get(kind, 1))]
    blocks: list[dict[str, Any]] = [{"type": "thinking", "thinking": "", "signature": proof} for proof in proofs]
    if kind == "search":
        id = f"srvtoolu_{number}"
        blocks += [{**SEARCH, "id": id}, {**SEARCH_RESULT, "tool_use_id": id}]
        return [*blocks, {"type": "text", "text": "Cats.", "citations": [CITATION]}], proofs
    if kind == "talk":
        return [{"type": "text", "text": f"Answer {number}."}], proofs
    return [
        *blocks,
        {"type": "tool_use", "id": f"toolu_{number}", "name": "look", "input": {"at": number}},
    ], proofs
