"""Complete and streamed replies of OpenAI Responses, and how they are sent back."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import replace
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn
from openai.types.responses import Response

from agentkit import (
    Base64Source,
    ErrorEvent,
    FinishReason,
    ImageBlock,
    MessageEnd,
    MessageError,
    Msg,
    OpaqueBlock,
    OpaqueEvent,
    OpaqueState,
    TextBlock,
    TextDelta,
    ThinkingBlock,
    ThinkingDelta,
    ToolResultBlock,
    ToolUseBlock,
    ToolUseDelta,
    ToolUseEnd,
    Usage,
    load_provider,
    prefix_digest,
)
from agentkit_openai import OpenAIResponsesFormatter, OpenAIResponsesStreamParser, parse_response
from tests.cases import each_case
from tests.profiles import examples
from tests.providers import problems, user
from tests.providers.mangling import mangled, mangled_events
from tests.providers.openai.streams import sdk_events, sse
from tests.providers.streams import cut, cuts, parse_stream

Json = dict[str, Any]


def _reply(*output: Json, status: str | None = "completed", **fields: Any) -> Json:
    return {
        "id": "resp_1",
        "object": "response",
        "model": "gpt-x",
        "status": status,
        "output": [*output],
        **fields,
    }


def _message(*texts: str, id: str = "msg_1", **fields: Any) -> Json:
    content: list[Json] = [
        {"type": "output_text", "text": text, "annotations": [], "logprobs": []} for text in texts
    ]
    return {
        "type": "message",
        "id": id,
        "role": "assistant",
        "status": "completed",
        "content": content,
        **fields,
    }


def _thought(*summary: str, id: str = "rs_1", **fields: Any) -> Json:
    parts = [{"type": "summary_text", "text": text} for text in summary]
    return {"type": "reasoning", "id": id, "summary": parts, "encrypted_content": "gAAA==", **fields}


def _call(call_id: str = "call_1", arguments: str = "{}", is_async: bool | None = None, **fields: Any) -> Json:
    call = {"type": "function_call", "id": f"fc_{call_id}", "call_id": call_id, "name": "look"}
    late = {} if is_async is None else {"async": is_async}
    return {**call, "arguments": arguments, "status": "completed", **late, **fields}


SEARCH: Final[Json] = {
    "type": "web_search_call",
    "id": "ws_1",
    "status": "completed",
    "action": {"type": "search", "query": "cats"},
}


def _blocks(*output: Json) -> tuple[Any, ...]:
    return parse_response(_reply(*output)).blocks


def _state(**fields: Any) -> OpaqueState:
    return OpaqueState("openai", model="gpt-x", **fields)


def _read_stream(*events: object) -> Msg:
    return parse_stream(OpenAIResponsesStreamParser(), events)[0]


# -- complete replies ------------------------------------------------------------------------------------------


def test_a_reply_becomes_an_assistant_message_in_the_order_of_the_output() -> None:
    usage = {
        "input_tokens": 100,
        "output_tokens": 50,
        "input_tokens_details": {"cached_tokens": 60, "cache_write_tokens": 30},
        "output_tokens_details": {"reasoning_tokens": 40},
        "total_tokens": 150,
    }
    msg = parse_response(_reply(_thought("Hm."), SEARCH, _message("I look."), _call(), usage=usage), name="Friday")
    assert msg == Msg(
        "Friday",
        [
            ThinkingBlock(
                "Hm.", _state(encrypted_content="gAAA==", item_id="rs_1", fields={"followed_by": "ws_1"})
            ),
            OpaqueBlock("openai-responses", SEARCH),
            TextBlock("I look.", state=_state(item_id="msg_1")),
            ToolUseBlock("call_1", "look", {}, "{}", _state(item_id="fc_call_1")),
        ],
        "assistant",
        metadata={
            "reply": {
                "provider": "openai-responses",
                "finish_reason": "tool_use",
                "native_finish_reason": "completed",
                "id": "resp_1",
                "model": "gpt-x",
                "usage": Usage(100, 50, 60, 30, 40).to_dict(),
            }
        },
    )


def test_the_id_of_a_call_is_its_call_id_or_else_the_id_of_its_item() -> None:
    assert _blocks(_call("call_9"))[0].id == "call_9"
    assert _blocks({**_call(), "call_id": None})[0].id == "fc_call_1"


def test_thinking_has_the_prefix_digest_of_its_request() -> None:
    request = {"input": [{"role": "user", "content": "Go."}]}
    block = parse_response(_reply(_thought(), _message("Done.")), request=request).blocks[0]
    state = _state(encrypted_content="gAAA==", item_id="rs_1", fields={"followed_by": "msg_1"})
    assert block == ThinkingBlock(
        "", replace(state, prefix=prefix_digest(request, load_provider("openai-responses")))
    )
    unproven = parse_response(_reply(_thought(encrypted_content=None), _message("Done.")), request=request).blocks[
        0
    ]
    assert unproven == ThinkingBlock("", _state(item_id="rs_1"))


def test_each_text_of_a_message_has_its_phase() -> None:
    state = _state(fields={"phase": "commentary"})
    assert _blocks(_message("One.", "Two.", phase="commentary")) == (
        TextBlock("One.", state=state),
        TextBlock("Two.", state=state),
    )


def test_a_phase_of_the_complete_item_applies_to_earlier_texts() -> None:
    message = _message("Hm.", "Hi.", phase="commentary")
    refused: Json = {
        **_message(id="msg_2", phase="final_answer"),
        "content": [{"type": "refusal", "refusal": "No."}],
    }
    begun: list[Json] = [{**item, "content": []} for item in (_message(), _message(id="msg_2"))]
    events = [
        _event("output_item.added", output_index=0, item=begun[0]),
        _event("output_text.delta", output_index=0, content_index=0, item_id="msg_1", delta="Hm."),
        _event("output_text.delta", output_index=0, content_index=1, item_id="msg_1", delta="Hi."),
        _event("output_item.added", output_index=1, item=begun[1]),
        _event("refusal.delta", output_index=1, content_index=0, item_id="msg_2", delta="No."),
    ]
    done = [
        _event("output_item.done", output_index=index, item=item) for index, item in enumerate((message, refused))
    ]
    reply = parse_response(_reply(message, refused))
    assert _read_stream(_created(), *events, *done, _completed(message, refused)) == reply
    assert _read_stream(_created(), *events, _completed(message, refused)) == reply
    bare: list[Json] = [{**item, "content": []} for item in (message, refused)]
    assert _read_stream(_created(), *events, _completed(*bare)).blocks == reply.blocks


def test_namespace_caller_and_async_of_a_call_are_in_its_state() -> None:
    caller = {"type": "program", "caller_id": "p1"}
    block = _blocks(_call(namespace="eyes", caller=caller, is_async=True))[0]
    assert block.state == _state(fields={"namespace": "eyes", "caller": caller, "async": True})


def test_the_text_of_a_custom_tool_becomes_its_only_argument() -> None:
    item = {"type": "custom_tool_call", "id": "ctc_1", "call_id": "call_1", "name": "sh", "input": "ls -l"}
    assert _blocks(item) == (
        ToolUseBlock("call_1", "sh", {"input": "ls -l"}, state=_state(fields={"type": "custom"})),
    )


def test_a_refusal_becomes_a_marked_text() -> None:
    message = {**_message(), "content": [{"type": "refusal", "refusal": "No."}]}
    msg = parse_response(_reply(message))
    assert msg.content == (TextBlock("No.", state=_state(fields={"type": "refusal"}), metadata={"refusal": True}),)
    assert msg.finish_reason is FinishReason.REFUSAL


def test_annotations_become_citations_of_the_text() -> None:
    cited = {"type": "url_citation", "url": "https://x.org", "title": "X", "start_index": 0, "end_index": 2}
    message = _message("As X says.")
    message["content"][0]["annotations"] = [cited]
    assert _blocks(message) == (TextBlock("As X says.", metadata={"citations": [cited]}),)


def test_a_generated_image_becomes_an_image_and_a_failed_call_stays_opaque() -> None:
    item = {"type": "image_generation_call", "id": "ig_1", "status": "completed", "output_format": "webp"}
    assert _blocks({**item, "result": "AAAA", "revised_prompt": "A cat."}) == (
        ImageBlock(
            Base64Source("image/webp", "AAAA"),
            state=_state(
                item_id="ig_1",
                fields={
                    "image_generation_call": {
                        "status": "completed",
                        "output_format": "webp",
                        "revised_prompt": "A cat.",
                    }
                },
            ),
            metadata={"id": "ig_1", "revised_prompt": "A cat."},
        ),
    )
    failed = {**item, "status": "failed", "result": None}
    assert _blocks(failed) == (OpaqueBlock("openai-responses", failed),)


def test_reasoning_text_is_read_if_there_is_no_summary() -> None:
    item = {
        "type": "reasoning",
        "id": "rs_1",
        "summary": [],
        "content": [{"type": "reasoning_text", "text": "Hm."}],
    }
    assert _blocks(item)[0].thinking == "Hm."
    assert _blocks({**item, "summary": [{"type": "summary_text", "text": "Short."}]})[0].thinking == "Short."


@each_case(
    ("status", "fields", "reason", "native"),
    [
        ("completed", {}, FinishReason.STOP, "completed"),
        (
            "incomplete",
            {"incomplete_details": {"reason": "max_output_tokens"}},
            FinishReason.LENGTH,
            "max_output_tokens",
        ),
        (
            "incomplete",
            {"incomplete_details": {"reason": "content_filter"}},
            FinishReason.CONTENT_FILTER,
            "content_filter",
        ),
        ("incomplete", {"incomplete_details": {"reason": "steered"}}, FinishReason.OTHER, "steered"),
        ("incomplete", {"incomplete_details": None}, FinishReason.OTHER, "incomplete"),
        ("cancelled", {}, FinishReason.INTERRUPTED, "cancelled"),
        ("in_progress", {}, FinishReason.INTERRUPTED, "in_progress"),
        ("failed", {"error": {"code": "server_error", "message": "out of order"}}, FinishReason.ERROR, "failed"),
        (None, {"usage": None, "text": None}, FinishReason.STOP, None),
    ],
)
def test_each_status_is_mapped_to_a_finish_reason(
    status: str | None, fields: Json, reason: FinishReason, native: str | None
) -> None:
    msg = parse_response(_reply(_message("Hi."), status=status, **fields))
    assert msg.finish_reason is reason
    assert (msg.metadata or {})["reply"].get("native_finish_reason") == native


def test_a_failed_reply_has_the_error_of_the_provider() -> None:
    msg = parse_response(_reply(status="failed", error={"code": "server_error", "message": "out of order"}))
    assert (msg.metadata or {})["reply"]["error"] == {"message": "out of order", "code": "server_error"}


def test_arguments_truncated_by_the_token_limit_stay_text_and_are_marked() -> None:
    details = {"reason": "max_output_tokens"}
    item = _call(arguments='{"pla', status="incomplete")
    block = parse_response(_reply(item, status="incomplete", incomplete_details=details)).tool_uses[0]
    assert block == ToolUseBlock("call_1", "look", {}, '{"pla', metadata={"incomplete": True})


def test_reasoning_that_openai_removed_from_the_prompt_is_recorded() -> None:
    removed = [{"id": "rs_0", "type": "reasoning", "action": "removed", "reason": "prefix_mismatch"}]
    msg = parse_response(_reply(_message("Hi."), input_transformations=removed))
    assert (msg.metadata or {})["reply"]["input_transformations"] == removed


def test_an_sdk_object_a_dict_and_json_text_give_the_same_message() -> None:
    native = _reply(_thought("a", "b"), SEARCH, _message("Hi.", phase="final_answer"), _call(is_async=True))
    fields: Json = {"created_at": 1, "tools": [], "tool_choice": "auto", "parallel_tool_calls": True}
    sdk = Response.model_validate({**native, **fields})
    assert parse_response(sdk) == parse_response(native) == parse_response(json.dumps(native))


@pytest.mark.parametrize("value", [{"error": {"message": "out of order"}}, {"output": 7}, {"object": "list"}])
def test_a_value_that_is_not_a_reply_raises_an_error(value: Json) -> None:
    with pytest.raises(MessageError):
        OpenAIResponsesStreamParser.parse_response(value)


@each_case("output", [[], [None], [7], [{}], [{"type": None}], [{"type": "message"}]])
def test_an_output_without_content_becomes_an_empty_message(output: Any) -> None:
    assert parse_response({**_reply(), "output": output}).content == ()


# -- streams, quirk by quirk -----------------------------------------------------------------------------------


def _event(kind: str, **fields: Any) -> Json:
    return {"type": f"response.{kind}", "sequence_number": 1, **fields}


def _created() -> Json:
    return _event("created", response={**_reply(status="in_progress")})


def _completed(*output: Json, **fields: Any) -> Json:
    return _event("completed", response=_reply(*output, **fields))


def test_a_stream_returns_events_as_native_events_arrive() -> None:
    call = _call(arguments='{"place":"here"}')
    parser = OpenAIResponsesStreamParser()
    events = [
        event
        for chunk in [
            _created(),
            _event("output_item.added", output_index=0, item=_thought()),
            _event("reasoning_summary_text.delta", output_index=0, item_id="rs_1", summary_index=0, delta="Hm."),
            _event("output_item.done", output_index=0, item=_thought("Hm.")),
            _event("output_item.added", output_index=1, item=SEARCH),
            _event("output_item.done", output_index=1, item=SEARCH),
            _event("output_item.added", output_index=2, item=_message()),
            _event("output_text.delta", output_index=2, content_index=0, delta="I look."),
            _event("output_item.done", output_index=2, item=_message("I look.")),
            _event("output_item.added", output_index=3, item={**call, "arguments": ""}),
            _event("function_call_arguments.delta", output_index=3, delta='{"place":"he'),
            _event("function_call_arguments.delta", output_index=3, delta='re"}'),
            _event("output_item.done", output_index=3, item=call),
            _completed(_thought("Hm."), SEARCH, _message("I look."), call),
        ]
        for event in parser.feed(chunk)
    ]
    assert [event.type for event in events] == [
        *("message-start", "thinking-start", "thinking-delta", "thinking-end", "opaque"),
        *("text-start", "text-delta", "text-end"),
        *("tool-use-start", "tool-use-delta", "tool-use-delta", "tool-use-end", "message-end"),
    ]
    assert [event.input for event in events if isinstance(event, ToolUseDelta)] == [
        {"place": "he"},
        {"place": "here"},
    ]
    assert events[-1] == MessageEnd(FinishReason.TOOL_USE, "completed")
    assert parser.finish() == parse_response(_reply(_thought("Hm."), SEARCH, _message("I look."), call))


def test_the_proof_of_reasoning_is_that_of_the_complete_item() -> None:
    early = {**_thought(), "encrypted_content": "half"}
    msg = _read_stream(
        _event("output_item.added", output_index=0, item=early),
        _event("output_item.done", output_index=0, item=_thought()),
        _event("output_item.done", output_index=1, item=_message("Hi.")),
        _completed(),
    )
    state = _state(encrypted_content="gAAA==", item_id="rs_1", fields={"followed_by": "msg_1"})
    assert msg.blocks[0] == ThinkingBlock("", state)


def test_a_complete_item_replaces_its_pieces() -> None:
    msg = _read_stream(
        _created(),
        _event("output_text.delta", output_index=0, content_index=0, delta="Hxllo"),
        _event("output_item.done", output_index=0, item=_message("Hello.")),
        _event("function_call_arguments.delta", output_index=1, delta='{"x":'),
        _event("output_item.done", output_index=1, item=_call(arguments='{"x":1}')),
        _completed(),
    )
    assert msg == parse_response(_reply(_message("Hello."), _call(arguments='{"x":1}')))


def test_items_without_an_index_are_assigned_by_id() -> None:
    first, second = _call("call_1", '{"x":1}'), _call("call_2", '{"x":2}')
    msg = _read_stream(
        _created(),
        _event("output_item.added", item={**first, "arguments": ""}),
        _event("output_item.added", item={**second, "arguments": ""}),
        _event("function_call_arguments.delta", item_id=first["id"], delta='{"x"'),
        _event("function_call_arguments.delta", item_id=second["id"], delta='{"x":2}'),
        _event("function_call_arguments.delta", item_id=first["id"], delta=":1}"),
        _event("output_item.done", item=first),
        _event("output_item.done", item=second),
        _completed(first, second),
    )
    assert msg == parse_response(_reply(first, second))


def test_items_without_an_index_and_an_id_are_assigned_by_order() -> None:
    first, second = ({**_call(name, "{}"), "id": None} for name in ("call_1", "call_2"))
    events = [
        event
        for item in (first, second)
        for event in (
            _event("output_item.added", item={**item, "arguments": ""}),
            _event("function_call_arguments.delta", delta="{}"),
            _event("output_item.done", item=item),
        )
    ]
    assert _read_stream(_created(), *events, _completed()) == parse_response(_reply(first, second))


def test_items_with_an_index_may_have_another_id_in_each_event() -> None:
    msg = _read_stream(
        _created(),
        _event("output_item.added", output_index=0, item=_message(id="a")),
        _event("output_text.delta", output_index=0, item_id="b", content_index=0, delta="Hi."),
        _event("output_item.done", output_index=0, item=_message("Hi.", id="c")),
        _completed(_message("Hi.", id="d")),
    )
    assert msg == parse_response(_reply(_message("Hi.")))


def test_items_that_all_have_the_index_0_are_separated() -> None:
    items = (_message("Hi."), _call("call_1"), _call("call_2"))
    events = [
        event
        for item in items
        for event in (
            _event("output_item.added", output_index=0, item={**item, "content": [], "arguments": ""}),
            _event("output_item.done", output_index=0, item=item),
        )
    ]
    assert _read_stream(_created(), *events, _completed()) == parse_response(_reply(*items))


def test_items_without_events_are_read_from_the_last_event() -> None:
    items = (_thought("Hm."), SEARCH, _message("Hi."), _call())
    expected = parse_response(_reply(*items))
    assert _read_stream(_created(), _completed(*items)) == expected
    assert _read_stream(_event("output_item.done", output_index=2, item=items[2]), _completed(*items)) == expected


def test_a_stream_without_complete_items_is_read_from_its_pieces() -> None:
    msg = _read_stream(
        _created(),
        _event("output_text.delta", output_index=0, content_index=0, delta="He"),
        _event("output_text.done", output_index=0, content_index=0, text="Hello."),
        _event("output_text.done", output_index=0, content_index=1, text="More."),
        _event("output_item.added", output_index=1, item={**_call(), "arguments": ""}),
        _event("function_call_arguments.done", output_index=1, arguments='{"x":1}'),
        _completed(),
    )
    assert msg == parse_response(_reply(_message("Hello.", "More."), _call(arguments='{"x":1}')))


def test_an_item_that_is_complete_twice_is_read_once() -> None:
    done = _event("output_item.done", output_index=0, item=SEARCH)
    _, events = parse_stream(OpenAIResponsesStreamParser(), [_created(), done, done, _completed(SEARCH)])
    assert sum(isinstance(event, OpaqueEvent) for event in events) == 1


def test_citations_of_a_truncated_text_are_read() -> None:
    cited = {"type": "url_citation", "url": "https://x.org"}
    msg = _read_stream(
        _event("output_text.delta", output_index=0, content_index=0, delta="As X"),
        _event("output_text.annotation.added", output_index=0, content_index=0, annotation=cited),
    )
    assert msg.content == (TextBlock("As X", metadata={"citations": [cited]}),)
    assert msg.finish_reason is FinishReason.INTERRUPTED


def test_parts_of_a_streamed_summary_are_separated() -> None:
    msg = _read_stream(
        _event("reasoning_summary_text.delta", output_index=0, summary_index=0, delta="Pl"),
        _event("reasoning_summary_text.delta", output_index=0, summary_index=0, delta="an."),
        _event("reasoning_summary_text.delta", output_index=0, summary_index=1, delta="Look."),
        _event("reasoning_text.delta", output_index=0, content_index=0, delta="At length."),
    )
    assert msg.thinking == "Plan.\n\nLook."


@pytest.mark.parametrize(
    "error",
    [
        {"type": "error", "code": "server_error", "message": "out of order", "param": None},
        {"type": "error", "error": {"code": "server_error", "message": "out of order"}},
        {"error": {"code": "server_error", "message": "out of order"}},
        _event("failed", response={"error": {"code": "server_error", "message": "out of order"}}),
    ],
)
def test_an_error_in_a_stream_is_recorded_and_earlier_content_stays(error: Json) -> None:
    delta = _event("output_text.delta", output_index=0, content_index=0, delta="Half a")
    msg, events = parse_stream(OpenAIResponsesStreamParser(), [_created(), delta, error])
    assert ErrorEvent("out of order", "server_error") in events
    assert (msg.text, msg.finish_reason) == ("Half a", FinishReason.ERROR)


def test_an_interrupted_stream_keeps_its_content_and_marks_the_incomplete_call() -> None:
    msg = _read_stream(
        _created(),
        _event("output_text.delta", output_index=0, content_index=0, delta="I look"),
        _event("output_item.added", output_index=1, item={**_call(), "arguments": ""}),
        _event("function_call_arguments.delta", output_index=1, delta='{"pla'),
    )
    assert msg.finish_reason is FinishReason.INTERRUPTED
    assert msg.content == (
        TextBlock("I look"),
        ToolUseBlock("call_1", "look", {}, '{"pla', metadata={"incomplete": True}),
    )


# -- there and back --------------------------------------------------------------------------------------------


def _list_sent_items(reply: Msg, *msgs: Msg) -> list[Json]:
    request = OpenAIResponsesFormatter().lower([user("Go."), reply, *msgs]).request
    assert problems("openai-responses", request) == []
    return list(request["input"])[1:]


def test_a_reply_is_sent_back_item_for_item() -> None:
    caller = {"type": "program", "caller_id": "p1"}
    items = [
        _thought("**Plan**", "Look."),
        SEARCH,
        _message("I look.", phase="commentary"),
        _thought(id="rs_2"),
        _call("call_1", '{ "x": 1 }', namespace="eyes", caller=caller),
        {"type": "custom_tool_call", "id": "ctc_1", "call_id": "call_2", "name": "sh", "input": "ls"},
    ]
    results = [Msg("tool", [ToolResultBlock(id, output="A.")], "system") for id in ("call_1", "call_2")]
    call = {key: value for key, value in items[4].items() if key != "status"}
    assert _list_sent_items(parse_response(_reply(*items)), *results) == [
        items[0],
        SEARCH,
        {**items[2], "content": [{"type": "output_text", "text": "I look.", "annotations": []}]},
        items[3],
        call,
        items[5],
        {"type": "function_call_output", "call_id": "call_1", "output": "A."},
        {"type": "custom_tool_call_output", "call_id": "call_2", "output": "A."},
    ]


@each_case(
    "item",
    [
        _thought(),
        _thought("One."),
        _thought("One.", "Two."),
        _thought("One.\n\nTwo."),
        _thought("", "One."),
        _thought(content=[{"type": "reasoning_text", "text": "Hm."}]),
        _thought("Short.", content=[{"type": "reasoning_text", "text": "Long."}]),
    ],
)
def test_reasoning_is_sent_back_part_for_part(item: Json) -> None:
    assert _list_sent_items(parse_response(_reply(item, _message("Hi."))))[0] == item


def test_reasoning_stays_valid_after_items_of_hosted_tools() -> None:
    formatter = OpenAIResponsesFormatter("gpt-6.2")
    first = [user("Go.")]
    request = formatter.lower(first).request
    items = [_thought(id="rs_1"), SEARCH, _thought(id="rs_2", encrypted_content="gBBB=="), _message("Hi.")]
    reply = parse_response(_reply(*items), request=request)
    sent = formatter.lower([*first, reply, user("On.")]).request["input"]
    assert [item["id"] for item in sent if item.get("type") == "reasoning"] == ["rs_1", "rs_2"]
    changed = formatter.lower([user("Go!"), reply, user("On.")]).request["input"]
    assert [item for item in changed if item.get("type") == "reasoning"] == []


SHELL: Final[Json] = {"type": "shell_call", "id": "sh_1", "call_id": "call_s", "action": {"commands": ["ls"]}}
SHELL_OUTPUT: Final[Json] = {"type": "shell_call_output", "call_id": "call_s", "output": []}
QUESTION: Final[Json] = {
    "type": "mcp_approval_request",
    "id": "ar_1",
    "arguments": "{}",
    "name": "f",
    "server_label": "s",
}
ALLOWED: Final[Json] = {"type": "mcp_approval_response", "approval_request_id": "ar_1", "approve": True}


@pytest.mark.parametrize(("asks", "answers"), [(SHELL, SHELL_OUTPUT), (QUESTION, ALLOWED)])
def test_a_request_of_the_model_is_sent_back_only_with_its_response(asks: Json, answers: Json) -> None:
    reply = parse_response(_reply(_thought(), asks))
    answer = Msg("assistant", [OpaqueBlock("openai-responses", answers)], "assistant")
    formatter = OpenAIResponsesFormatter()
    assert formatter.lower([user("Go."), reply, answer]).request["input"][1:] == [_thought(), asks, answers]
    for half in (reply, answer):
        assert formatter.lower([user("Go."), half, user("On.")]).request["input"] == [
            {"type": "message", "role": "user", "content": "Go."},
            {"type": "message", "role": "user", "content": "On."},
        ]


def test_the_provider_reads_what_it_writes() -> None:
    provider = load_provider("openai-responses")
    assert provider.parser is OpenAIResponsesStreamParser
    assert provider.load_native is not None


# -- any chunking ----------------------------------------------------------------------------------------------

_words = st.text(st.sampled_from('aB {}"\\\n\r é漢🙂\u2028:'), max_size=12)
_arguments = st.sampled_from(('{"x":1}', "{}", '{"q": "漢 é"}', "", '{"cut": "he'))


@st.composite
def _items(draw: DrawFn) -> list[Json]:
    items: list[Json] = []
    for index in range(draw(st.integers(0, 5))):
        kind = draw(st.sampled_from(("message", "reasoning", "call", "custom", "search", "refusal")))
        if kind == "message":
            phase = draw(st.sampled_from(({}, {"phase": "commentary"})))
            items.append(_message(*draw(st.lists(_words, max_size=2)), id=f"msg_{index}", **phase))
        elif kind == "refusal":
            items.append(
                {**_message(id=f"msg_{index}"), "content": [{"type": "refusal", "refusal": draw(_words)}]}
            )
        elif kind == "reasoning":
            items.append(_thought(*draw(st.lists(_words, max_size=2)), id=f"rs_{index}"))
        elif kind == "call":
            items.append(_call(f"call_{index}", draw(_arguments)))
        elif kind == "custom":
            call = {"type": "custom_tool_call", "id": f"ctc_{index}", "call_id": f"call_{index}", "name": "sh"}
            items.append({**call, "input": draw(_words)})
        else:
            items.append({**SEARCH, "id": f"ws_{index}"})
    return items


def _pieces(draw: DrawFn, text: str) -> list[str]:
    borders = sorted(draw(st.lists(st.integers(0, len(text)), max_size=3)))
    return [text[start:stop] for start, stop in zip([0, *borders], [*borders, len(text)], strict=True)]


def _draw_events(draw: DrawFn, item: Json, where: Json) -> list[Json]:
    """Returns the events of an item. `where` has its `output_index` and `item_id`, if the server sends them."""
    events: list[Json] = []
    if item["type"] == "message":
        for number, part in enumerate(item["content"]):
            kind = "refusal" if part["type"] == "refusal" else "output_text"
            text = part["refusal" if kind == "refusal" else "text"]
            events += [
                _event(f"{kind}.delta", content_index=number, delta=piece, **where)
                for piece in _pieces(draw, text)
            ]
    elif item["type"] == "reasoning":
        for number, part in enumerate(item["summary"]):
            events += [
                _event("reasoning_summary_text.delta", summary_index=number, delta=piece, **where)
                for piece in _pieces(draw, part["text"])
            ]
    elif item["type"] in ("function_call", "custom_tool_call"):
        custom = item["type"] == "custom_tool_call"
        kind = "custom_tool_call_input" if custom else "function_call_arguments"
        text = item["input" if custom else "arguments"]
        events += [_event(f"{kind}.delta", delta=piece, **where) for piece in _pieces(draw, text)]
        events.append(_event(f"{kind}.done", **{"input" if custom else "arguments": text}, **where))
    return events


SERVER_BEHAVIORS: Final = ("plain", "gaps", "no index", "no events", "no end", "rotating ids", "no deltas")


@st.composite
def replies(draw: DrawFn) -> tuple[Json, list[Json]]:
    """Strategy for a complete reply and the same reply in events, as different gateways send them."""
    items = draw(_items())
    status = draw(st.sampled_from(("completed", "incomplete")))
    details = {"reason": "max_output_tokens"} if status == "incomplete" else None
    usage = draw(st.sampled_from((None, {"input_tokens": 9, "output_tokens": 2})))
    reply = _reply(*items, status=status, incomplete_details=details, usage=usage)
    habit = draw(
        st.sampled_from(("plain", "gaps", "no index", "no events", "no end", "rotating ids", "no deltas"))
    )
    events = [_created()]
    for position, item in enumerate(items):
        index = {} if habit == "no index" else {"output_index": 2 * position + 1 if habit == "gaps" else position}
        where = {**index, "item_id": f"x{draw(st.integers(0, 9))}" if habit == "rotating ids" else item["id"]}
        empty: Json = {**item, "content": [], "summary": [], "arguments": "", "input": ""}
        if habit != "no events":
            events.append(_event("output_item.added", **index, item=empty))
        if habit not in ("no events", "no deltas"):
            events += _draw_events(draw, item, where)
        if habit != "no events":
            events.append(_event("output_item.done", **index, item=item))
    end: Json = {**reply, "output": []} if habit == "no end" else reply
    return reply, [*events, _event(status, response=end)]


@examples(200)
@given(replies(), cuts)
def test_any_chunking_gives_the_message_of_the_complete_reply(
    reply: tuple[Json, list[Json]], borders: list[int]
) -> None:
    complete, events = reply
    expected = parse_response(complete)
    assert _read_stream(*events) == expected
    assert parse_stream(OpenAIResponsesStreamParser(), cut(sse(events), borders))[0] == expected


@examples(50)
@given(replies())
def test_events_of_the_sdk_client_give_the_same_message(reply: tuple[Json, list[Json]]) -> None:
    complete, events = reply
    assert parse_stream(OpenAIResponsesStreamParser(), sdk_events("responses", sse(events)))[0] == parse_response(
        complete
    )
    assert parse_response(Response.construct(**complete)) == parse_response(complete)


@examples(100)
@given(replies())
def test_the_events_agree_with_the_message(reply: tuple[Json, list[Json]]) -> None:
    msg, events = parse_stream(OpenAIResponsesStreamParser(), reply[1])
    deltas = "".join(event.text for event in events if isinstance(event, TextDelta))
    assert deltas == "".join(block.text for block in msg.blocks if isinstance(block, TextBlock))
    thoughts = "".join(event.text for event in events if isinstance(event, ThinkingDelta))
    assert thoughts == "".join(block.thinking for block in msg.blocks if isinstance(block, ThinkingBlock))
    assert [event.block for event in events if isinstance(event, ToolUseEnd)] == [*msg.tool_uses]
    assert sum(isinstance(event, MessageEnd) for event in events) == 1


@examples(200)
@given(replies().flatmap(lambda reply: mangled_events(reply[1])), cuts)
def test_mangled_events_never_raise(events: list[Json], borders: list[int]) -> None:
    msg, _ = parse_stream(OpenAIResponsesStreamParser(), events)
    assert Msg.from_dict(msg.to_dict()) == msg
    OpenAIResponsesFormatter().lower([user("Go."), msg])
    parse_stream(OpenAIResponsesStreamParser(), cut(sse(events), borders))


@examples(200)
@given(replies().flatmap(lambda reply: mangled(reply[0])))
def test_a_mangled_reply_is_parsed_or_raises_an_error(reply: Any) -> None:
    with suppress(MessageError):
        msg = parse_response(reply)
        assert Msg.from_dict(msg.to_dict()) == msg


CALL_WITH_OUTPUT: Final[list[Json]] = [
    {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAA=="},
    {"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{}", "caller": {"type": "program"}},
    {"type": "function_call_output", "call_id": "c1", "output": "x", "status": "completed"},
    {
        "type": "message",
        "role": "assistant",
        "content": [{"type": "output_text", "text": "Done.", "annotations": []}],
    },
]


def test_a_call_with_its_output_is_opaque_and_sent_back_with_it() -> None:
    msg = parse_response(_reply(*CALL_WITH_OUTPUT))
    assert msg.blocks[1:3] == (
        OpaqueBlock("openai-responses", CALL_WITH_OUTPUT[1]),
        OpaqueBlock("openai-responses", CALL_WITH_OUTPUT[2]),
    )
    assert (msg.tool_uses, msg.finish_reason) == ((), FinishReason.STOP)
    plan = OpenAIResponsesFormatter("gpt-5").lower([Msg("Bob", "Hi.", "user"), msg, Msg("Bob", "And?", "user")])
    kinds = [item.get("type", "message") for item in plan.request["input"]]
    assert kinds == ["message", "reasoning", "function_call", "function_call_output", "message", "message"]


def test_a_streamed_call_with_its_output_equals_the_complete_one() -> None:
    parser = OpenAIResponsesStreamParser()
    for index, item in enumerate(CALL_WITH_OUTPUT):
        parser.feed({"type": "response.output_item.added", "output_index": index, "item": item})
        parser.feed({"type": "response.output_item.done", "output_index": index, "item": item})
    reply = _reply(*CALL_WITH_OUTPUT)
    parser.feed({"type": "response.completed", "response": reply})
    assert parser.finish() == parse_response(reply)


def test_a_call_truncated_before_its_arguments_is_marked() -> None:
    parser = OpenAIResponsesStreamParser()
    call = {"type": "function_call", "call_id": "c1", "name": "rm", "arguments": ""}
    parser.feed({"type": "response.output_item.added", "output_index": 0, "item": call})
    cut = {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}
    parser.feed({"type": "response.incomplete", "response": cut})
    assert parser.finish().tool_uses[0].metadata == {"incomplete": True}


def test_incomplete_items_of_hosted_tools_are_recorded_in_the_metadata() -> None:
    parser = OpenAIResponsesStreamParser()
    item = {"type": "code_interpreter_call", "id": "ci_1", "status": "in_progress"}
    parser.feed({"type": "response.output_item.added", "output_index": 0, "item": item})
    assert (parser.finish().metadata or {})["reply"]["incomplete_parts"] == [item]
