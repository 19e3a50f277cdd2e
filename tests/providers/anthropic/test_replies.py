"""Anthropic's replies, whole and streamed: quirk by quirk, and any chunking against the whole."""

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
FOUND: Final[dict[str, Any]] = {
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
WHOLE: Final[dict[str, Any]] = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "claude-opus-5-5",
    "content": [
        {"type": "thinking", "thinking": "I search – 🐈.", "signature": "EsQC/+=="},
        SEARCH,
        FOUND,
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

# -- a server that streams -------------------------------------------------------------------------------------


def deltas_of(block: dict[str, Any], places: list[int]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """How a block is streamed: as it starts, and the deltas (platform docs, build-with-claude/streaming)."""
    kind = block["type"]
    deltas: list[dict[str, Any]] = []
    if kind == "text":
        deltas += [{"type": "text_delta", "text": piece} for piece in cut(block["text"], places)]
        cited = cast("list[Any]", block.get("citations") or [])
        deltas += [{"type": "citations_delta", "citation": one} for one in cited]
        start: dict[str, Any] = {"type": "text", "text": ""}
        return {**start, "citations": []} if cited else start, deltas
    if kind == "thinking":
        deltas += [{"type": "thinking_delta", "thinking": piece} for piece in cut(block["thinking"], places)]
        if block["signature"]:
            deltas.append({"type": "signature_delta", "signature": block["signature"]})
        return {**block, "thinking": "", "signature": ""}, deltas
    if kind in ("tool_use", "server_tool_use"):
        pieces = ["", *cut(json.dumps(block["input"]), places)] if block["input"] else []
        return {**block, "input": {}}, [{"type": "input_json_delta", "partial_json": one} for one in pieces]
    return block, []


def events_of(whole: dict[str, Any], places: list[int]) -> list[dict[str, Any]]:
    """A whole reply as the API streams it."""
    last = ("output_tokens", "output_tokens_details", "server_tool_use")
    usage = whole["usage"]
    first: dict[str, Any] = {key: item for key, item in usage.items() if key not in last} | {"output_tokens": 1}
    head: dict[str, Any] = {**whole, "content": [], "stop_reason": None, "stop_sequence": None, "usage": first}
    head.pop("stop_details", None)
    events: list[dict[str, Any]] = [{"type": "message_start", "message": head}, {"type": "ping"}]
    for index, block in enumerate(whole["content"]):
        start, deltas = deltas_of(block, places)
        events.append({"type": "content_block_start", "index": index, "content_block": start})
        events += [{"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas]
        events.append({"type": "content_block_stop", "index": index})
    told = {key: whole.get(key) for key in ("stop_reason", "stop_sequence", "stop_details") if key in whole}
    end = {key: usage[key] for key in last if key in usage}
    events.append({"type": "message_delta", "delta": told, "usage": end})
    return [*events, {"type": "message_stop"}]


def as_sdk_events(events: list[dict[str, Any]]) -> list[Any]:
    """The events as the SDK's stream gives them; it keeps pings to itself."""
    from anthropic._models import construct_type
    from anthropic.types import RawMessageStreamEvent

    known = (event for event in events if event["type"] != "ping")
    return [construct_type(value=json.loads(json.dumps(event)), type_=RawMessageStreamEvent) for event in known]


def streamed(events: list[Any]) -> tuple[Msg, list[StreamEvent]]:
    return parse_stream(AnthropicStreamParser(), events)


def read(*blocks: dict[str, Any], **rest: Any) -> Msg:
    return parse_response({**WHOLE, "content": list(blocks), "stop_reason": "end_turn", **rest})


def reply_of(msg: Msg) -> dict[str, Any]:
    return cast("dict[str, Any]", (msg.metadata or {})["reply"])


# -- whole -----------------------------------------------------------------------------------------------------


def test_a_whole_reply_is_exactly_this() -> None:
    state: dict[str, Any] = {"issuer": "anthropic", "model": "claude-opus-5-5"}
    assert parse_response(WHOLE) == Msg(
        "assistant",
        [
            ThinkingBlock("I search – 🐈.", OpaqueState(**state, signature="EsQC/+==")),
            OpaqueBlock("anthropic", SEARCH),
            OpaqueBlock("anthropic", FOUND),
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


def test_the_sdks_object_its_dict_and_json_text_read_alike() -> None:
    from anthropic._models import construct_type
    from anthropic.types import Message

    made = cast("Message", construct_type(value=json.loads(json.dumps(WHOLE)), type_=Message))
    expected = parse_response(WHOLE)
    assert parse_response(made) == expected
    assert parse_response(made.to_dict()) == expected
    assert parse_response(made.to_json()) == expected
    assert parse_response(json.dumps(WHOLE)) == expected


def test_an_unknown_block_that_the_sdk_takes_for_a_text_is_kept_as_it_is() -> None:
    from anthropic._models import construct_type
    from anthropic.types import Message
    from anthropic.types import TextBlock as SdkTextBlock

    block = {"type": "hologram", "depth": 3, "of": {"text": None}}
    whole = {**WHOLE, "content": [block]}
    made = cast("Message", construct_type(value=json.loads(json.dumps(whole)), type_=Message))
    assert isinstance(made.content[0], SdkTextBlock)
    assert parse_response(made) == parse_response(whole)
    assert parse_response(made).blocks == (OpaqueBlock("anthropic", block),)
    assert streamed(as_sdk_events(events_of(whole, [])))[0] == parse_response(whole)


def test_a_compaction_is_kept_and_assigned_by_its_delta() -> None:
    whole = {"type": "compaction", "content": "We spoke of cats.", "encrypted_content": "Enc=="}
    events = events_of(
        {**WHOLE, "content": [{"type": "compaction", "content": None, "encrypted_content": None}]}, []
    )
    told = {"type": "compaction_delta", "content": "We spoke of cats.", "encrypted_content": "Enc=="}
    events.insert(3, {"type": "content_block_delta", "index": 0, "delta": told})
    assert streamed(events)[0].blocks == read(whole).blocks == (OpaqueBlock("anthropic", whole),)


@pytest.mark.parametrize(
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
def test_each_stop_reason_has_its_word_and_the_native_one_beside_it(native: str | None, reason: str) -> None:
    whole = {**WHOLE, "content": [{"type": "text", "text": "Well."}], "stop_reason": native}
    found = parse_response(whole)
    assert found.finish_reason == FinishReason(reason)
    assert reply_of(found).get("native_finish_reason") == native
    assert streamed(events_of(whole, []))[0] == found


def test_a_refusal_says_why() -> None:
    details = {"type": "refusal", "category": "cyber", "explanation": "No."}
    whole: dict[str, Any] = {**WHOLE, "content": [], "stop_reason": "refusal", "stop_details": details}
    found = parse_response(whole)
    assert (found.finish_reason, found.blocks) == (FinishReason.REFUSAL, ())
    assert reply_of(found)["stop_details"] == details
    assert streamed(as_sdk_events(events_of(whole, [])))[0] == found


def test_thinking_that_the_server_dropped_is_told() -> None:
    dropped = [{"type": "thinking_dropped", "path": "messages.1.content.0", "reason": "prefix_binding_mismatch"}]
    whole = {**WHOLE, "input_transformations": dropped}
    assert reply_of(parse_response(whole))["input_transformations"] == dropped
    assert streamed(events_of(whole, []))[0] == parse_response(whole)


def test_a_containers_time_has_one_spelling() -> None:
    from anthropic._models import construct_type
    from anthropic.types import Message

    whole = {**WHOLE, "container": {"id": "container_1", "expires_at": "2026-11-21T10:00:00.5Z"}}
    made = construct_type(value=json.loads(json.dumps(whole)), type_=Message)
    assert parse_response(made) == parse_response(whole)
    assert reply_of(parse_response(whole))["container"]["id"] == "container_1"


def test_empty_content_and_empty_texts_say_nothing() -> None:
    assert read().blocks == ()
    assert read({"type": "text", "text": ""}, {"type": "text", "text": "Hi."}).blocks == (TextBlock("Hi."),)
    assert read().finish_reason is FinishReason.STOP


def test_an_error_body_is_refused_with_the_providers_words() -> None:
    body = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}, "request_id": "r"}
    with pytest.raises(MessageError, match=r"Overloaded \(overloaded_error\)"):
        parse_response(body)


@pytest.mark.parametrize("found", [{}, {"choices": []}, {"candidates": []}, [], "[]", "no JSON", 3, None])
def test_what_is_no_reply_of_anthropics_is_refused(found: object) -> None:
    with pytest.raises(MessageError, match="reply"):
        parse_response(found)


# -- events ----------------------------------------------------------------------------------------------------


def test_a_stream_tells_what_happens_as_it_happens() -> None:
    whole = {**WHOLE, "content": [WHOLE["content"][4], WHOLE["content"][5], SEARCH], "usage": {"output_tokens": 5}}
    events = streamed(events_of(whole, [3]))[1]
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


def test_figures_of_the_end_replace_those_of_the_start_and_the_others_stay() -> None:
    events = streamed(events_of(WHOLE, []))[1]
    told = [event.usage for event in events if isinstance(event, UsageEvent)]
    assert told == [Usage(330, 1, 300, 20, 0), Usage(330, 40, 300, 20, 7)]


def test_a_call_without_arguments_has_an_empty_object() -> None:
    whole: dict[str, Any] = {
        **WHOLE,
        "content": [{"type": "tool_use", "id": "toolu_1", "name": "now", "input": {}}],
    }
    assert streamed(events_of(whole, []))[0].tool_uses == (ToolUseBlock("toolu_1", "now", {}),)


def test_arguments_that_come_with_the_start_alone_are_kept() -> None:
    events = events_of({**WHOLE, "content": [WHOLE["content"][5]]}, [])
    kept = [event for event in events if event["type"] != "content_block_delta"]
    kept[2]["content_block"]["input"] = {"place": "here"}
    assert streamed(kept)[0].tool_uses[0].input == {"place": "here"}


def test_the_helpers_own_events_are_not_counted_twice() -> None:
    doubled: list[dict[str, Any]] = []
    for event in events_of(WHOLE, [3]):
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
    assert streamed(doubled)[0] == parse_response(WHOLE)


def test_unknown_events_and_deltas_are_passed_over() -> None:
    events = events_of(WHOLE, [])
    events.insert(1, {"type": "content_block_improved", "index": 0})
    events.insert(4, {"type": "content_block_delta", "index": 0, "delta": {"type": "mood_delta", "mood": "good"}})
    assert streamed(events)[0] == parse_response(WHOLE)


def test_a_server_that_begins_every_block_at_zero_loses_none() -> None:
    events = events_of({**WHOLE, "content": WHOLE["content"][4:]}, [3])
    numbered = [{**event, "index": 0} if "index" in event else event for event in events]
    assert streamed(numbered)[0].blocks == read(*WHOLE["content"][4:], stop_reason="tool_use").blocks


def test_text_without_its_start_is_kept() -> None:
    delta = {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Hi."}}
    assert streamed([delta])[0].text == "Hi."


def test_an_error_in_the_stream_keeps_what_came() -> None:
    error = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
    events = [event for event in events_of(WHOLE, []) if event["type"] not in ("message_delta", "message_stop")]
    found, told = streamed([*events, error])
    assert found.finish_reason is FinishReason.ERROR
    assert found.blocks[:-1] == parse_response(WHOLE).blocks[:-1]
    assert found.blocks[-1].metadata == {"incomplete": True}  # its arguments may be what did not come
    assert reply_of(found)["error"] == {"message": "Overloaded", "code": "overloaded_error"}
    assert ErrorEvent("Overloaded", "overloaded_error") in told


# -- what broke off --------------------------------------------------------------------------------------------


def test_an_error_whose_type_a_gateway_left_off_is_one() -> None:
    parser = AnthropicStreamParser()
    error = {"error": {"type": "overloaded_error", "message": "Overloaded"}}
    events = parser.feed(b"event: error\ndata: " + json.dumps(error).encode() + b"\n\n")
    assert ErrorEvent("Overloaded", "overloaded_error") in events
    assert parser.finish().finish_reason is FinishReason.ERROR


def broken_off(block: dict[str, Any], deltas: int, places: tuple[int, ...] = (8,)) -> Msg:
    """A reply of one block that broke off after some deltas."""
    events = events_of({**WHOLE, "content": [block]}, list(places))
    return streamed(events[: 3 + deltas])[0]


def next_request(reply: Msg, *behind: Msg) -> list[dict[str, Any]]:
    request = AnthropicChatFormatter().lower([user("Look."), reply, *(behind or (user("Go on."),))]).request
    assert problems("anthropic", request) == []
    return list(request["messages"])


def test_an_interrupted_thought_stays_without_proof_and_does_not_go_back() -> None:
    found = broken_off({"type": "thinking", "thinking": "I think of cats.", "signature": "S"}, 2)
    assert found.finish_reason is FinishReason.INTERRUPTED
    assert found.blocks == (ThinkingBlock("I think of cats.", OpaqueState("anthropic", model="claude-opus-5-5")),)
    assert "cats" not in json.dumps(next_request(found))


def test_an_interrupted_call_says_so_and_keeps_its_text() -> None:
    found = broken_off({"type": "tool_use", "id": "toolu_1", "name": "look", "input": {"place": "here"}}, 2)
    (call,) = found.tool_uses
    assert (call.input, call.metadata) == ({}, {"incomplete": True})
    assert call.raw_input == '{"place"'
    next_request(found)


def test_a_call_that_the_limit_cut_is_incomplete() -> None:
    block = {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {"place": "here"}}
    events = events_of({**WHOLE, "content": [block], "stop_reason": "max_tokens"}, [3])
    found = streamed([*events[:5], *events[6:]])[0]
    assert found.finish_reason is FinishReason.LENGTH
    assert found.tool_uses[0].metadata == {"incomplete": True}


@pytest.mark.parametrize("reason", ["max_tokens", "model_context_window_exceeded", "refusal"])
def test_a_last_call_without_arguments_that_the_limit_may_have_cut_is_incomplete(reason: str) -> None:
    block: dict[str, Any] = {"type": "tool_use", "id": "t", "name": "remove", "input": {}}
    whole = {**WHOLE, "content": [block], "stop_reason": reason}
    found, events = streamed(events_of(whole, []))
    assert found == parse_response(whole)
    assert found.tool_uses[0].metadata == {"incomplete": True}
    assert [event.block for event in events if isinstance(event, ToolUseEnd)] == [*found.tool_uses]


def test_a_call_without_arguments_is_complete_where_the_reply_went_on_behind_it() -> None:
    block: dict[str, Any] = {"type": "tool_use", "id": "t", "name": "look", "input": {}}
    content: list[Any] = [block, {"type": "text", "text": "And"}]
    whole = {**WHOLE, "content": content, "stop_reason": "max_tokens"}
    found, _ = streamed(events_of(whole, []))
    assert found == parse_response(whole)
    assert found.tool_uses[0].metadata is None


def test_a_call_without_arguments_whose_end_never_came_is_incomplete() -> None:
    block: dict[str, Any] = {"type": "tool_use", "id": "t", "name": "remove", "input": {}}
    found, events = streamed(events_of({**WHOLE, "content": [block]}, [])[:-2])
    assert found.tool_uses[0].metadata == {"incomplete": True}
    assert not [event for event in events if isinstance(event, ToolUseEnd)]


def test_a_search_that_broke_off_is_told_and_is_no_part_of_the_message() -> None:
    found = broken_off(SEARCH, 2)
    assert found.blocks == ()
    cut_off = reply_of(found)["incomplete_parts"]
    assert cut_off == [{**SEARCH, "input": {}, "partial_input": '{"query"'}]


def test_a_search_without_its_result_does_not_poison_the_next_request() -> None:
    found = streamed(events_of({**WHOLE, "content": [{"type": "text", "text": "I search."}, SEARCH]}, [])[:-2])[0]
    assert found.blocks[-1] == OpaqueBlock("anthropic", SEARCH)
    assert next_request(found)[1]["content"] == [{"type": "text", "text": "I search."}]


def test_a_paused_turn_goes_back_as_it_is_and_nothing_follows() -> None:
    content: list[dict[str, Any]] = [
        {"type": "thinking", "thinking": "", "signature": "S"},
        {"type": "text", "text": "Wait."},
        SEARCH,
    ]
    paused = read(*content, stop_reason="pause_turn")
    assert paused.finish_reason is FinishReason.PAUSE
    request = AnthropicChatFormatter().lower([user("Look."), paused]).request
    assert [turn["role"] for turn in request["messages"]] == ["user", "assistant"]
    assert request["messages"][1]["content"] == content


def test_a_search_is_answered_by_the_reply_that_goes_on() -> None:
    paused = read(SEARCH, stop_reason="pause_turn")
    rest = read(FOUND, {"type": "text", "text": "Cats."})
    turn = next_request(paused, rest, user("Thanks."))[1]
    assert turn["content"] == [SEARCH, FOUND, {"type": "text", "text": "Cats."}]


def test_a_search_may_wait_for_the_results_of_the_clients_tools_alone() -> None:
    call: dict[str, Any] = {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {}}
    asked = read(SEARCH, call, stop_reason="tool_use")
    answer = system(result("toolu_1", "A cat."))
    assert next_request(asked, answer)[1]["content"] == [SEARCH, call]
    assert next_request(asked, answer, user("And?"))[1]["content"] == [call]
    rest = read(FOUND, {"type": "text", "text": "Cats."})
    assert next_request(asked, answer, rest, user("And?"))[1]["content"] == [SEARCH, call]


def test_half_a_pair_that_a_cut_left_is_not_sent_and_the_ledger_says_so() -> None:
    rest = read(FOUND, {"type": "text", "text": "Cats."})
    plan = AnthropicChatFormatter().lower([user("Look."), rest, user("Thanks.")])
    assert plan.request["messages"][1]["content"] == [{"type": "text", "text": "Cats."}]
    entry = next(entry for entry in plan.ledger.entries if entry.place == "msgs[1].content[0]")
    assert (entry.disposition.word, entry.reason) == (
        "dropped",
        "the request or the response of a tool that the provider runs is missing",
    )


def test_thinking_that_nothing_stands_behind_any_more_goes_too() -> None:
    found = read({"type": "thinking", "thinking": "", "signature": "S"}, SEARCH, stop_reason="pause_turn")
    assert [turn["role"] for turn in next_request(found)] == ["user"]


# -- the round trip --------------------------------------------------------------------------------------------


def test_what_was_read_goes_back_word_for_word() -> None:
    answers = [system(result("toolu_1", "A cat.")), system(result("toolu_2", "Done."))]
    assert next_request(parse_response(WHOLE), *answers)[1]["content"] == WHOLE["content"]


def test_thinking_goes_back_behind_its_own_request_and_after_a_change_it_does_not() -> None:
    formatter = AnthropicChatFormatter("claude-opus-5-5")
    msgs = [system("Be brief."), user("Look, please.")]
    plan = formatter.lower(msgs, tools=[LOOK])
    thought = {"type": "thinking", "thinking": "", "signature": "EsQC"}
    call: dict[str, Any] = {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {"place": "here"}}
    whole = {**WHOLE, "content": [thought, call]}
    found = parse_response(whole, request=plan.request, tool_names=plan.tool_names, name="Friday")
    assert found.name == "Friday"
    thinking = found.blocks[0]
    assert isinstance(thinking, ThinkingBlock)
    assert thinking.state
    assert thinking.state.prefix == prefix_digest(plan.request, load_provider("anthropic"))

    behind = [found, system(result("toolu_1", "A cat."))]
    assert formatter.lower([*msgs, *behind], tools=[LOOK]).request["messages"][1]["content"] == [thought, call]
    for changed in ([*msgs[:1], user("Look!")], msgs[1:]):
        request = formatter.lower([*changed, *behind], tools=[LOOK]).request
        assert request["messages"][1]["content"] == [call]
    assert formatter.lower([*msgs, *behind]).request["messages"][1]["content"] == [call]


# -- through the SDK -------------------------------------------------------------------------------------------

ASKED: Final[dict[str, Any]] = {
    "model": "claude-opus-5-5", "max_tokens": 16, "messages": [{"role": "user", "content": "Look."}],
}  # fmt: skip


@pytest.mark.anyio
async def test_the_sdks_own_decoding_of_a_stream_gives_the_whole() -> None:
    from anthropic import AsyncAnthropic

    with RawServer(
        write_answer(200, encode_events(events_of(WHOLE, [2, 7]), named=True), "content-type: text/event-stream")
    ) as server:
        async with AsyncAnthropic(api_key="k", base_url=server.address, max_retries=0) as client:
            chunks = [chunk async for chunk in await client.messages.create(stream=True, **ASKED)]
            async with client.messages.stream(**ASKED) as helper:
                helped: list[Any] = [event async for event in helper]
                final = cast("Any", await helper.get_final_message())
    assert streamed(chunks)[0] == parse_response(WHOLE)
    assert len(helped) > len(chunks)
    assert streamed(helped)[0] == parse_response(WHOLE)
    assert parse_response(final).blocks == parse_response(WHOLE).blocks


@pytest.mark.anyio
async def test_the_sdks_own_message_gives_the_whole() -> None:
    from anthropic import AsyncAnthropic

    with RawServer(write_answer(200, json.dumps(WHOLE).encode(), "content-type: application/json")) as server:
        async with AsyncAnthropic(api_key="k", base_url=server.address, max_retries=0) as client:
            reply = cast("Any", await client.messages.create(**ASKED))
    assert parse_response(reply) == parse_response(WHOLE)


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
    st.just(FOUND),
    st.builds(_block, st.just("tool_use"), id=st.just("toolu_1"), name=st.just("look"), input=_inputs),
    st.just(_block("container_upload", file_id="file_1")),
)


@st.composite
def wholes(draw: DrawFn) -> dict[str, Any]:
    reason = draw(st.sampled_from(("end_turn", "tool_use", "pause_turn", "max_tokens", "new")))
    return {**WHOLE, "content": draw(st.lists(_blocks, max_size=6)), "stop_reason": reason}


@examples(150)
@given(wholes(), cuts, cuts, st.sampled_from(("dicts", "objects", "bytes", "named bytes")))
def test_any_chunking_gives_the_message_of_the_whole(
    whole: dict[str, Any], places: list[int], borders: list[int], form: str
) -> None:
    events = events_of(whole, places)
    chunks: list[Any] = events
    if form == "objects":
        chunks = as_sdk_events(events)
    elif form != "dicts":
        chunks = cut(encode_events(events, named=form == "named bytes"), borders)
    assert streamed(chunks)[0] == parse_response(whole)


@examples(200)
@given(st.data())
def test_no_mangled_event_and_no_mangled_reply_raises_anything_but_a_message_error(data: st.DataObject) -> None:
    whole = data.draw(mangled(WHOLE))
    try:
        found = parse_response(whole)
    except MessageError:
        pass
    else:
        AnthropicChatFormatter().lower([user("Hi."), found, user("Go on.")])
    events = events_of(WHOLE, [3])
    broken = [data.draw(mangled(event)) if data.draw(st.integers(0, 4)) == 0 else event for event in events]
    parser = AnthropicStreamParser()
    for event in broken:
        if isinstance(event, dict):
            parser.feed(cast("dict[str, Any]", event))
    found = parser.finish()
    assert Msg.from_dict(json.loads(json.dumps(found.to_dict()))) == found
    AnthropicChatFormatter().lower([user("Hi."), found, user("Go on.")])


# -- an agent whose replies are read, before a server that checks ----------------------------------------------


@examples(25)
@given(
    st.lists(st.sampled_from(("think", "search", "talk", "two")), min_size=5, max_size=10), st.integers(250, 600)
)
def test_thinking_goes_back_byte_for_byte_and_no_request_is_refused_for_it(plot: list[str], limit: int) -> None:
    server = Server()
    formatter = AnthropicChatFormatter("claude-opus-5-5", budget=Budget(limit))
    msgs = [system("Be brief."), user("Find the library. " * 4)]

    async def run() -> None:
        told: dict[str, list[dict[str, Any]]] = {}
        for number, kind in enumerate(plot):
            try:
                plan = await formatter.plan(msgs, tools=[LOOK])
            except BudgetError:
                return
            assert not server.refusals(plan.request)
            turns = json.dumps(plan.request["messages"])
            for proof, content in told.items():
                if proof in turns:  # byte for byte, with all that its reply said
                    assert any(turn["content"] == content for turn in plan.request["messages"])
            content, proofs = _content_of(kind, number)
            server.issue(plan.request, proofs)
            told |= dict.fromkeys(proofs, content)
            observe("thinking goes back" if any(proof in turns for proof in told) else "no thinking goes back")
            observe("cut" if plan.cut else "not cut")
            parser = AnthropicStreamParser(request=plan.request, name="Friday")
            reply, _ = parse_stream(parser, events_of({**WHOLE, "content": content}, [3]))
            msgs.extend([reply, *(system(result(call.id, "word " * 60)) for call in reply.tool_uses)])
            if not reply.tool_uses:
                msgs.append(user(f"Go on, {number}."))

    anyio.run(run)


def _content_of(kind: str, number: int) -> tuple[list[dict[str, Any]], list[str]]:
    """What a reply says, and the proofs of its thinking."""
    proofs = [f"proof-{number}-{at}" for at in range({"talk": 0, "two": 2}.get(kind, 1))]
    found: list[dict[str, Any]] = [{"type": "thinking", "thinking": "", "signature": proof} for proof in proofs]
    if kind == "search":
        id = f"srvtoolu_{number}"
        found += [{**SEARCH, "id": id}, {**FOUND, "tool_use_id": id}]
        return [*found, {"type": "text", "text": "Cats.", "citations": [CITATION]}], proofs
    if kind == "talk":
        return [{"type": "text", "text": f"Answer {number}."}], proofs
    return [*found, {"type": "tool_use", "id": f"toolu_{number}", "name": "look", "input": {"at": number}}], proofs
