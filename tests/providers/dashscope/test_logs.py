"""Logs of DashScope's native API: loading them, and loading the requests that the formatter writes."""

import json
from typing import Any, Final

import pytest
from dashscope.api_entities.dashscope_response import Message
from dashscope.v2.types.messages import normalize_messages
from hypothesis import given
from hypothesis import strategies as st

from agentkit import (
    AudioBlock,
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
from agentkit_dashscope import DashScopeChatFormatter, load_native
from tests.cases import each_case
from tests.conversations import histories
from tests.profiles import examples
from tests.providers import PNG_URL, WAV, assistant, call, picture, result, system, user

CALL: Final = {"id": "call_1", "type": "function", "function": {"name": "look", "arguments": '{"place": "here"}'}}
LOG: Final[list[Any]] = [
    {"role": "system", "content": [{"text": "You are Friday."}]},
    {"role": "user", "content": [{"image": PNG_URL, "min_pixels": 9}, {"text": "\nWhat is this?"}], "name": "Bob"},
    {"role": "assistant", "content": "", "reasoning_content": "Hm.", "tool_calls": [CALL]},
    {"role": "tool", "content": "A cat.", "tool_call_id": "call_1", "name": "look"},
    {
        "role": "assistant",
        "content": [{"text": "A cat.", "cache_control": {"type": "ephemeral"}}],
        "partial": True,
    },
]


def _fields(**fields: Any) -> OpaqueState:
    return OpaqueState("dashscope", fields=fields)


def test_each_native_message_becomes_one_message() -> None:
    image = ImageBlock(picture().source, state=_fields(min_pixels=9))
    assert load_native(LOG) == [
        system("You are Friday."),
        Msg("Bob", (image, TextBlock("What is this?")), "user"),
        Msg(
            "assistant",
            (
                ThinkingBlock("Hm.", OpaqueState("dashscope")),
                ToolUseBlock("call_1", "look", {"place": "here"}, '{"place": "here"}'),
            ),
            "assistant",
        ),
        Msg("system", (ToolResultBlock("call_1", "look", "A cat."),), "system"),
        Msg("assistant", (TextBlock("A cat.", state=_fields(**{"message.partial": True})),), "assistant"),
    ]


def test_a_request_and_sdk_objects_load_like_their_messages() -> None:
    expected = load_native(LOG)
    assert load_native({"model": "qwen-plus", "messages": LOG, "result_format": "message"}) == expected
    assert load_native({"model": "qwen-plus", "input": {"messages": LOG}, "parameters": {}}) == expected
    assert load_native([Message(**message) for message in LOG]) == expected
    assert load_native(normalize_messages(LOG)) == expected


def test_the_kind_of_media_is_a_key_or_the_type() -> None:
    parts: list[dict[str, Any]] = [
        {"image": "https://example.com/a.png"},
        {"audio": "https://example.com/a.wav"},
        {"video": "oss://bucket/a.mp4", "fps": 2},
        {"type": "audio", "data": WAV, "format": "wav"},
        {"video": ["https://example.com/1.png", "https://example.com/2.png"], "fps": 1},
    ]
    msg = load_native([{"role": "user", "content": parts}])[0]
    assert msg.blocks[:3] == (
        ImageBlock(URLSource("https://example.com/a.png")),
        AudioBlock(URLSource("https://example.com/a.wav")),
        VideoBlock(URLSource("oss://bucket/a.mp4"), state=_fields(fps=2)),
    )
    assert isinstance(msg.blocks[3], AudioBlock)
    assert msg.blocks[4:] == (OpaqueBlock("dashscope", parts[4]),)


def test_loading_does_not_change_the_log() -> None:
    before = json.dumps(LOG)
    load_native(LOG)
    assert json.dumps(LOG) == before


def test_the_error_mark_of_a_result_is_read() -> None:
    msgs = [user("Go."), assistant(call("c1")), system(result("c1", "No.", is_error=True))]
    loaded = load_native(DashScopeChatFormatter().lower(msgs).request)
    assert loaded[0].text == "Go."
    assert loaded[2].tool_results[0] == ToolResultBlock("c1", "look", "No.", True)


def test_an_unreadable_part_becomes_an_invalid_block_with_its_place() -> None:
    log = [
        3,
        {"role": "user", "content": 3},
        {"role": "user", "content": [{"video": ["/etc/passwd"]}, {"image": ""}, {"text": 3}]},
        {"role": "assistant", "content": "", "tool_calls": [{"id": "x"}]},
    ]
    invalid = [block for msg in load_native(log) for block in msg.blocks if isinstance(block, InvalidBlock)]
    assert [block.place for block in invalid] == [
        "messages[0]", "messages[1].content", "messages[2].content[0]", "messages[2].content[1]",
        "messages[2].content[2]", "messages[3].tool_calls[0]",
    ]  # fmt: skip


_FRAMES: Final = [f"https://example.com/{number}.png" for number in range(4)]


PARTS: Final[list[dict[str, Any]]] = [
    {"video": _FRAMES},
    {"video": _FRAMES, "fps": 2},
    {"video": "https://example.com/v.mp4", "fps": 2},
    {"image": PNG_URL, "min_pixels": 3_136, "max_pixels": 1_003_520},
    {"hologram": {"deep": [1]}},
    {"text": "\nHi.", "new": 1},
]


@each_case("part", PARTS)
def test_further_keys_of_a_part_are_sent_back(part: dict[str, Any]) -> None:
    log = [{"role": "user", "content": [part, {"text": "\nq"}]}]
    msgs = load_native(log)
    plan = DashScopeChatFormatter(on_loss="raise").lower(msgs)
    assert plan.request["messages"] == log
    stored = [Msg.from_dict(json.loads(json.dumps(msg.to_dict()))) for msg in msgs]
    assert DashScopeChatFormatter().lower(stored).request == plan.request
    marked = [{"role": "user", "content": [{**part, "cache_control": {"type": "ephemeral"}}, {"text": "\nq"}]}]
    assert load_native(marked) == msgs


def test_video_frames_of_the_new_client_are_sent_as_a_list() -> None:
    part = {"type": "video", "frames": _FRAMES, "fps": 2}
    assert load_native([{"role": "user", "content": [part]}])[0].blocks == (
        OpaqueBlock("dashscope", {"video": _FRAMES, "fps": 2}),
    )


@pytest.mark.parametrize("part", [{"video": _FRAMES}, {"hologram": 1}])
def test_an_opaque_part_is_a_loss_for_another_provider(part: dict[str, Any]) -> None:
    msgs = load_native([{"role": "user", "content": [part, {"text": "q"}]}])
    for formatter in (load_provider("openai").chat_formatter(), DashScopeChatFormatter(path="text")):
        assert len(formatter.lower(msgs).ledger.losses) == 1


def test_a_part_with_several_contents_becomes_several_blocks() -> None:
    (msg,) = load_native([{"role": "user", "content": [{"image": PNG_URL, "text": "q"}]}])
    assert [block.type for block in msg.blocks] == ["text", "image"]


@pytest.mark.parametrize("path", ["text", "multimodal"])
def test_partial_is_sent_only_with_the_last_message(path: Any) -> None:
    log = [{"role": "user", "content": "q"}, {"role": "assistant", "content": "The", "partial": True}]
    msgs = load_native(log)
    formatter = DashScopeChatFormatter(path=path)
    assert formatter.lower(msgs).request["messages"][1]["partial"] is True
    assert not any(
        "partial" in message for message in formatter.lower([*msgs, user("Go on.")]).request["messages"]
    )


def test_loading_and_formatting_again_adds_no_second_line_break() -> None:
    request: Any = [{"role": "user", "content": "hi"}]
    for _ in range(3):
        request = DashScopeChatFormatter().lower(load_native(request)).request
        assert request["messages"] == [{"role": "user", "content": [{"text": "\nhi"}]}]


@each_case("log", [{}, {"messages": 3}, 3, None, "x", {"input": {"prompt": "x"}}])
def test_a_value_that_is_not_a_log_is_refused(log: Any) -> None:
    with pytest.raises(MessageError) as caught:
        load_native(log)
    assert caught.value.place == "messages"


@examples(150)
@given(histories(5), st.sampled_from(("text", "multimodal")), st.sampled_from(PARTS))
def test_loading_a_formatted_request_returns_the_same_messages(
    msgs: list[Msg], path: Any, part: dict[str, Any]
) -> None:
    formatter = DashScopeChatFormatter(path=path)
    request = formatter.lower([*msgs, *load_native([{"role": "user", "content": [part]}])]).request
    assert formatter.lower(load_native(request)).request == request
