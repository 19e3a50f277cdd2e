"""Logs of OpenAI's APIs, loaded as messages and written again."""

from __future__ import annotations

import json
from typing import Any, Final

import pytest
from hypothesis import given
from openai.types.chat import ChatCompletionMessage
from openai.types.responses import Response

from agentkit import (
    AudioBlock,
    Base64Source,
    DocumentBlock,
    ImageBlock,
    InvalidBlock,
    MessageError,
    Msg,
    OpaqueBlock,
    OpaqueState,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
    URLSource,
    VideoBlock,
    load_provider,
)
from agentkit_deepseek import load_native as load_deepseek
from agentkit_openai import load_chat, load_responses
from agentkit_vllm import load_native as load_vllm
from tests.cases import each_case
from tests.conversations import histories
from tests.profiles import examples
from tests.providers import chat, problems
from tests.providers.mangling import mangled_events

Json = dict[str, Any]
FAMILY: Final = ("openai", "openai-responses", "deepseek", "vllm", "dashscope-compatible")


def _load_log(provider: str, log: object) -> list[Msg]:
    load = load_provider(provider).load_native
    assert load is not None
    return load(log)


def _write_log(provider: str, request: Json, model: str | None = None) -> Json:
    return dict(chat(provider, model).lower(_load_log(provider, request)).request)


# -- round trips -----------------------------------------------------------------------------------------------


@examples(120)
@given(msgs=histories())
@each_case("provider", FAMILY)
def test_a_written_request_is_loaded_and_written_equally(provider: str, msgs: list[Msg]) -> None:
    # All names are legal. An illegal name is replaced by a name with a hash, which would be replaced again.
    msgs = [Msg(msg.role, msg.content, msg.role) for msg in msgs]
    written = dict(chat(provider).lower(msgs).request)
    turns = {key: value for key, value in written.items() if key != "tools"}
    again = _write_log(provider, written)
    assert {key: again[key] for key in turns} == turns


@each_case("provider", FAMILY)
def test_a_request_a_list_and_json_text_are_the_same_log(provider: str) -> None:
    request = dict(
        chat(provider).lower([Msg("user", "Hi.", "user"), Msg("assistant", "Ho.", "assistant")]).request
    )
    turns = request.get("messages") or request["input"]
    msgs = _load_log(provider, {"model": "m", "temperature": 1, **request})
    assert (
        msgs
        == _load_log(provider, turns)
        == _load_log(provider, json.dumps(turns))
        == _load_log(provider, tuple(turns))
    )


CHAT_LOG: Final[list[Json]] = [
    {"role": "system", "content": "You are Friday."},
    {"role": "user", "content": "Look, please.", "name": "Bob"},
    {
        "role": "assistant",
        "content": "I look.",
        "tool_calls": [
            {"id": "c1", "type": "function", "function": {"name": "look", "arguments": '{ "at": "here" }'}},
            {"id": "c2", "type": "custom", "custom": {"name": "sh", "input": "ls -l"}},
        ],
    },
    {"role": "tool", "tool_call_id": "c1", "content": "A cat."},
    {"role": "tool", "tool_call_id": "c2", "content": "cat.png"},
    {"role": "assistant", "content": "A cat is here."},
]


def test_a_log_of_chat_completions_is_loaded() -> None:
    state = OpaqueState("openai", fields={"type": "custom"})
    assert load_chat({"messages": CHAT_LOG, "model": "gpt-x"}) == [
        Msg("system", "You are Friday.", "system"),
        Msg("Bob", "Look, please.", "user"),
        Msg(
            "assistant",
            [
                TextBlock("I look."),
                ToolUseBlock("c1", "look", {"at": "here"}, '{ "at": "here" }'),
                ToolUseBlock("c2", "sh", {"input": "ls -l"}, state=state),
            ],
            "assistant",
        ),
        Msg("tool", [ToolResultBlock("c1", "look", "A cat.")], "system"),
        Msg("tool", [ToolResultBlock("c2", "sh", "cat.png")], "system"),
        Msg("assistant", "A cat is here.", "assistant"),
    ]
    again = _write_log("openai", {"messages": CHAT_LOG})
    assert again["messages"] == CHAT_LOG
    assert problems("openai", again) == []


MARKED: Final = (("openai", "gpt-6-sol"), ("openai-responses", "gpt-6-sol"), ("dashscope-compatible", None))


@pytest.mark.parametrize(("provider", "model"), MARKED)
def test_cache_markers_are_removed_and_can_be_set_again(provider: str, model: str | None) -> None:
    written = dict(chat(provider, model, cache_breakpoints="auto").lower(load_chat(CHAT_LOG)).request)
    assert "cache" in json.dumps(written)
    msgs = _load_log(provider, written)
    assert "cache" not in json.dumps([msg.to_dict() for msg in msgs])
    again = dict(chat(provider, model, cache_breakpoints="auto").lower(msgs).request)
    assert {**again, "tools": None} == {**written, "tools": None}


def test_a_custom_call_becomes_a_function_call_for_another_provider() -> None:
    (item,) = (
        call
        for msg in chat("deepseek").lower(load_chat(CHAT_LOG)).request["messages"]
        for call in msg.get("tool_calls", ())
        if call["id"] == "c2"
    )
    assert item["function"] == {"name": "sh", "arguments": '{"input":"ls -l"}'}


def test_sdk_messages_in_a_log_are_read_like_dicts() -> None:
    log = [*CHAT_LOG[:2], ChatCompletionMessage.model_validate(CHAT_LOG[2]), *CHAT_LOG[3:]]
    assert load_chat(log) == load_chat(CHAT_LOG)


def test_content_parts_become_blocks() -> None:
    parts: list[Any] = [
        {"type": "text", "text": "See.", "cache_control": {"type": "ephemeral"}},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA", "detail": "low"}},
        {"type": "image_url", "image_url": {"url": "https://x.org/a.png"}},
        {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "mp3"}},
        {"type": "input_audio", "input_audio": {"data": "data:;base64,AAAA", "format": "wav"}},
        {"type": "input_audio", "input_audio": {"data": "https://x.org/a.wav"}},
        {"type": "video_url", "video_url": {"url": "https://x.org/a.mp4"}},
        {"type": "file", "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,AAAA"}},
        {"type": "file", "file": {"file_id": "file-1"}},
        {"type": "text"},
        7,
    ]
    (msg,) = load_vllm([{"role": "user", "content": parts}])
    assert msg.blocks[:9] == (
        TextBlock("See."),
        ImageBlock(Base64Source("image/png", "AAAA"), state=OpaqueState("vllm", fields={"detail": "low"})),
        ImageBlock(URLSource("https://x.org/a.png")),
        AudioBlock(Base64Source("audio/mpeg", "AAAA")),
        AudioBlock(Base64Source("audio/wav", "AAAA")),
        AudioBlock(URLSource("https://x.org/a.wav")),
        VideoBlock(URLSource("https://x.org/a.mp4")),
        DocumentBlock(Base64Source("application/pdf", "AAAA"), title="a.pdf"),
        OpaqueBlock("vllm", parts[8]),
    )
    assert [(type(block), getattr(block, "place", "")) for block in msg.blocks[9:]] == [
        (InvalidBlock, "messages[0].content[9]"),
        (InvalidBlock, "messages[0].content[10]"),
    ]


def test_reasoning_in_a_log_has_the_issuer_of_its_server() -> None:
    message = {"role": "assistant", "content": "Yes.", "reasoning_content": "Hm."}
    (msg,) = load_deepseek([message])
    assert msg.blocks == (ThinkingBlock("Hm.", OpaqueState("deepseek")), TextBlock("Yes."))
    assert (
        _write_log("deepseek", {"messages": [{"role": "user", "content": "?"}, message]})["messages"][1] == message
    )


def test_a_legacy_function_call_and_its_result_become_a_pair() -> None:
    msgs = load_chat(
        [
            {"role": "assistant", "content": None, "function_call": {"name": "look", "arguments": "{}"}},
            {"role": "function", "name": "look", "content": "A cat."},
        ]
    )
    assert msgs[0].tool_uses[0].id == msgs[1].tool_results[0].id != ""


@each_case("entry", [7, None, "x", {"content": "?"}, {"role": "model", "content": "?"}, []])
def test_an_unreadable_message_becomes_an_invalid_block_with_its_place(entry: Any) -> None:
    msgs = load_chat([*CHAT_LOG, entry])
    (block,) = msgs[-1].blocks
    assert isinstance(block, InvalidBlock)
    assert block.place == "messages[6]"
    assert msgs[:-1] == load_chat(CHAT_LOG)


def test_arguments_that_are_not_an_object_stay_text() -> None:
    call = {"id": "a", "type": "function", "function": {"name": "look", "arguments": '{"cut'}}
    (msg,) = load_chat([{"role": "assistant", "content": None, "tool_calls": [call, None]}])
    assert msg.tool_uses == (ToolUseBlock("a", "look", {}, '{"cut'),)
    assert isinstance(msg.blocks[1], InvalidBlock)


@each_case("value", [7, None, "no json", {}, {"choices": []}, {"messages": "x"}, [1, 2], ["a"]])
@each_case("load", [load_chat, load_responses])
def test_a_value_that_is_not_a_log_raises_an_error(load: Any, value: object) -> None:
    with pytest.raises(MessageError):
        load(value)


def test_an_empty_list_is_an_empty_log() -> None:
    assert load_chat([]) == load_responses([]) == []


# -- Responses -------------------------------------------------------------------------------------------------

REASONING: Final[Json] = {
    "type": "reasoning",
    "summary": [{"type": "summary_text", "text": "**Plan**"}, {"type": "summary_text", "text": "Look."}],
    "encrypted_content": "gAAA==",
    "id": "rs_1",
}
SEARCH: Final[Json] = {
    "type": "web_search_call",
    "id": "ws_1",
    "status": "completed",
    "action": {"type": "search", "query": "cats"},
}
CITED: Final[Json] = {"type": "url_citation", "url": "x", "title": "X", "start_index": 0, "end_index": 1}
ITEMS: Final[list[Json]] = [
    {"type": "message", "role": "system", "content": "You are Friday."},
    {"type": "message", "role": "user", "content": [
        {"type": "input_text", "text": "See."},
        {"type": "input_image", "image_url": "https://x.org/a.png", "detail": "auto"},
    ]},
    REASONING,
    SEARCH,
    {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "phase": "commentary",
     "content": [{"type": "output_text", "text": "I look.", "annotations": []}]},
    {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "look", "arguments": "{}",
     "namespace": "eyes"},
    {"type": "custom_tool_call", "id": "ctc_1", "call_id": "c2", "name": "sh", "input": "ls"},
    {"type": "function_call_output", "call_id": "c1", "output": "A cat."},
    {"type": "custom_tool_call_output", "call_id": "c2", "output": "cat.png"},
    {"type": "message", "role": "assistant", "content": "A cat.", "phase": "final_answer"},
]  # fmt: skip


def test_a_log_of_items_is_loaded_and_written_equally() -> None:
    msgs = load_responses({"input": ITEMS, "store": False})
    assert [(msg.name, [block.type for block in msg.blocks]) for msg in msgs] == [
        ("system", ["text"]),
        ("user", ["text", "image"]),
        ("assistant", ["thinking", "opaque", "text", "tool_use", "tool_use"]),
        ("tool", ["tool_result"]),
        ("tool", ["tool_result"]),
        ("assistant", ["text"]),
    ]
    assert msgs[2].thinking == "**Plan**\n\nLook."
    assert [result.name for msg in msgs for result in msg.tool_results] == ["look", "sh"]
    assert _write_log("openai-responses", {"input": ITEMS})["input"] == ITEMS


def test_instructions_become_the_system_prompt_and_input_may_be_text() -> None:
    assert load_responses({"instructions": "Be brief.", "input": "Hi."}) == [
        Msg("system", "Be brief.", "system"),
        Msg("user", "Hi.", "user"),
    ]


def test_the_list_may_contain_the_output_of_a_reply() -> None:
    output: list[Json] = [
        {**REASONING, "status": None},
        {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "phase": "final_answer",
         "content": [{"type": "output_text", "text": "A cat.", "annotations": [CITED]}]},
    ]  # fmt: skip
    reply = Response.model_validate(
        {"id": "r", "created_at": 1, "model": "m", "object": "response", "output": output, "tools": [],
         "tool_choice": "auto", "parallel_tool_calls": True}
    )  # fmt: skip
    items = [{"type": "message", "role": "user", "content": "?"}, *reply.output]
    expected = load_responses([{"role": "user", "content": "?"}, *output])
    assert load_responses(items) == expected
    assert expected[1].blocks[1] == TextBlock(
        "A cat.",
        state=OpaqueState("openai", item_id="msg_1", fields={"phase": "final_answer"}),
        metadata={"citations": [CITED]},
    )
    assert load_responses(reply) == expected[1:]
    sent = _write_log("openai-responses", {"input": items})["input"]
    uncited: list[dict[str, Any]] = [{"type": "output_text", "text": "A cat.", "annotations": []}]
    assert sent == [items[0], REASONING, {**output[1], "content": uncited}]


def test_results_with_images_and_files_are_loaded() -> None:
    output = [
        {"type": "input_text", "text": "See."},
        {"type": "input_image", "image_url": "data:image/png;base64,AAAA", "detail": "auto"},
        {"type": "input_file", "file_url": "https://x.org/a.pdf"},
        {"type": "input_file", "file_id": "file-1"},
    ]
    (msg,) = load_responses([{"type": "function_call_output", "call_id": "c1", "output": output}])
    items = msg.tool_results[0].items
    assert items[:3] == (
        TextBlock("See."),
        ImageBlock(Base64Source("image/png", "AAAA")),
        DocumentBlock(URLSource("https://x.org/a.pdf")),
    )
    assert isinstance(items[3], OpaqueBlock)


def test_a_generated_image_becomes_an_image_block() -> None:
    item = {"type": "image_generation_call", "id": "ig_1", "status": "completed", "result": "AAAA"}
    (msg,) = load_responses([item])
    state = OpaqueState("openai", item_id="ig_1", fields={"image_generation_call": {"status": "completed"}})
    assert msg.blocks == (ImageBlock(Base64Source("image/png", "AAAA"), state=state, metadata={"id": "ig_1"}),)


@pytest.mark.parametrize("item", [7, None, {"role": "moon", "content": "?"}, [[]]])
def test_an_unreadable_item_becomes_an_invalid_block(item: Any) -> None:
    msgs = load_responses([*ITEMS, item])
    assert isinstance(msgs[-1].blocks[0], InvalidBlock)
    assert msgs[:-1] == load_responses(ITEMS)


# -- nothing is trusted ----------------------------------------------------------------------------------------


@examples(200)
@given(
    histories(4).flatmap(lambda msgs: mangled_events([*chat("openai").lower(msgs).request["messages"], *CHAT_LOG]))
)
def test_a_mangled_log_of_chat_completions_is_loaded(log: list[Json]) -> None:
    for load in (load_chat, load_vllm):
        try:
            msgs = load(log)
        except MessageError:
            continue
        assert [Msg.from_dict(msg.to_dict()) for msg in msgs] == msgs
        chat("openai").lower(msgs or [Msg("user", "Hi.", "user")])


@examples(200)
@given(
    histories(4).flatmap(
        lambda msgs: mangled_events([*chat("openai-responses").lower(msgs).request["input"], *ITEMS])
    )
)
def test_a_mangled_log_of_items_is_loaded(log: list[Json]) -> None:
    try:
        msgs = load_responses(log)
    except MessageError:
        return
    assert [Msg.from_dict(msg.to_dict()) for msg in msgs] == msgs
    chat("openai-responses").lower(msgs or [Msg("user", "Hi.", "user")])
