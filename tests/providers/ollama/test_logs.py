"""Logs of Ollama: loading them, and loading the requests that the formatter writes."""

import json
from typing import Any, Final

import pytest
from hypothesis import given
from ollama import Message

from agentkit import (
    AudioBlock,
    ImageBlock,
    InvalidBlock,
    MessageError,
    Msg,
    OpaqueState,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
)
from agentkit_ollama import OllamaChatFormatter, load_native
from tests.cases import each_case
from tests.conversations import histories
from tests.profiles import examples
from tests.providers import OTHER_PNG, PNG, WAV, assistant, call, picture, result, system, user

CALL: Final = {"id": "call_1", "function": {"name": "look", "arguments": {"place": "here"}}}
LOG: Final[list[Any]] = [
    {"role": "system", "content": "You are Friday."},
    {"role": "user", "content": "What is this?", "images": [PNG]},
    {"role": "assistant", "content": "I look.", "thinking": "Hm.", "tool_calls": [CALL]},
    {"role": "tool", "content": "A cat.", "tool_name": "look", "tool_call_id": "call_1"},
    {"role": "assistant", "content": "A cat."},
]


def test_each_native_message_becomes_one_message() -> None:
    assert load_native(LOG) == [
        system("You are Friday."),
        Msg("user", (picture(), TextBlock("What is this?")), "user"),
        Msg(
            "assistant",
            (
                ThinkingBlock("Hm.", OpaqueState("ollama")),
                TextBlock("I look."),
                ToolUseBlock("call_1", "look", {"place": "here"}),
            ),
            "assistant",
        ),
        Msg("system", (ToolResultBlock("call_1", "look", "A cat."),), "system"),
        assistant("A cat.", name="assistant"),
    ]


def test_a_request_and_sdk_objects_load_like_their_messages() -> None:
    assert load_native({"model": "qwen3", "messages": LOG, "stream": False}) == load_native(LOG)
    plain = [message for message in LOG if message["role"] != "tool" and "tool_calls" not in message]
    dicts: list[Any] = [
        {**message, "images": [{"value": PNG}]} if "images" in message else message for message in plain
    ]
    objects = [Message(**message) for message in dicts]
    assert load_native(objects) == load_native(plain)
    assert load_native(LOG[1]) == load_native([LOG[1]])


def test_the_path_of_a_file_in_a_log_is_not_opened(tmp_path: Any) -> None:
    path = str(tmp_path / "secret.png")
    (tmp_path / "secret.png").write_bytes(b"\x89PNG\r\n\x1a\n secret")
    for item in (Message(role="user", content="x", images=[{"value": path}]), {"role": "user", "images": [path]}):  # type: ignore[list-item]
        assert isinstance(load_native([item])[0].blocks[0], InvalidBlock)


def test_loading_does_not_change_the_log() -> None:
    before = json.dumps(LOG)
    load_native(LOG)
    assert json.dumps(LOG) == before


def test_images_and_audio_are_placed_at_their_marks() -> None:
    content = "See:\n[image 1]\nand hear:\n\n[audio 2]\n[image 3]"
    msg = load_native([{"role": "user", "content": content, "images": [PNG, WAV, OTHER_PNG]}])[0]
    kinds = [block.text if isinstance(block, TextBlock) else block.type for block in msg.blocks]
    assert kinds == ["See:", "image", "and hear:\n", "audio", "image"]
    assert isinstance(msg.blocks[3], AudioBlock)
    assert isinstance(msg.blocks[4], ImageBlock)


def test_results_without_ids_are_matched_by_name_and_order() -> None:
    def calls(*names: str) -> dict[str, Any]:
        return {
            "role": "assistant",
            "tool_calls": [{"function": {"name": name, "arguments": {}}} for name in names],
        }

    def answer(name: str) -> dict[str, Any]:
        return {"role": "tool", "content": name, **({"tool_name": name} if name else {})}

    msgs = load_native([calls("a", "b", "a"), answer("b"), answer("a"), answer("a"), calls("a"), answer("")])
    first, second, third = (block.id for block in msgs[0].tool_uses)
    assert [msg.tool_results[0].id for msg in msgs[1:4]] == [second, first, third]
    assert msgs[5].tool_results[0].id == msgs[4].tool_uses[0].id
    assert msgs[5].tool_results[0].name == "a"
    assert len({first, second, third, msgs[4].tool_uses[0].id}) == 4


def test_arguments_may_be_text_that_is_not_json() -> None:
    calls = [{"function": {"name": "f", "arguments": text}} for text in ('{"a": 1}', '{"a"')]
    complete, broken = load_native([{"role": "assistant", "tool_calls": calls}])[0].tool_uses
    assert (complete.input, complete.raw_input) == ({"a": 1}, '{"a": 1}')
    assert broken.raw_is_broken


def test_the_error_mark_of_a_result_is_read() -> None:
    msgs = [user("Go."), assistant(call("c1")), system(result("c1", "No.", is_error=True))]
    request = OllamaChatFormatter().lower(msgs).request
    assert load_native(request)[2].tool_results[0] == ToolResultBlock("c1", "look", "No.", True)


def test_an_unreadable_part_becomes_an_invalid_block_with_its_place() -> None:
    log = [
        "hello",
        {"role": "user", "content": ["x"], "images": ["%%%"]},
        {"role": "critic", "content": "x"},
    ]
    msgs = load_native([*log, {"role": "assistant", "tool_calls": [3]}])
    invalid = [block for msg in msgs for block in msg.blocks if isinstance(block, InvalidBlock)]
    assert [block.place for block in invalid] == [
        "messages[0]", "messages[1].content", "messages[1].images[0]", "messages[3].tool_calls[0]"
    ]  # fmt: skip
    assert (msgs[2].name, msgs[2].role) == ("critic", "user")


def test_unknown_keys_of_a_message_become_metadata() -> None:
    assert load_native([{"role": "user", "content": "x", "at": 3}])[0].metadata == {"at": 3}


@each_case("log", [{}, {"messages": 3}, 3, None, "x", {"contents": []}])
def test_a_value_that_is_not_a_log_is_refused(log: Any) -> None:
    with pytest.raises(MessageError) as caught:
        load_native(log)
    assert caught.value.place == "messages"


@examples(150)
@given(histories(5))
def test_loading_a_formatted_request_returns_the_same_messages(msgs: list[Msg]) -> None:
    request = OllamaChatFormatter().lower(msgs).request
    loaded = load_native(request)
    assert OllamaChatFormatter().lower(loaded).request == request
