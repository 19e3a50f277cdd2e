"""Requests of vLLM's OpenAI-compatible server."""

import re
from typing import Any, Final

import pytest

from agentkit import (
    AudioBlock,
    Base64Source,
    Block,
    DocumentBlock,
    ImageBlock,
    ModelRules,
    Msg,
    MultiAgentHistory,
    OpaqueState,
    ThinkingBlock,
    URLSource,
    VideoBlock,
)
from agentkit.provider_kit import RESULT_TURN
from agentkit_vllm import VLLMChatFormatter, VLLMMultiAgentFormatter
from tests.providers import (
    LOOK,
    MP4,
    OTHER_PNG,
    PDF,
    PNG_URL,
    PREAMBLE,
    TEXT,
    WAV,
    assistant,
    call,
    picture,
    problems,
    result,
    system,
    user,
)

MISTRAL: Final = "mistralai/Mistral-Small-3.2-24B-Instruct"


def _messages(msgs: list[Msg], model: str | None = None) -> list[dict[str, Any]]:
    request = VLLMChatFormatter(model).lower(msgs).request
    assert problems("vllm", request) == []
    return list(request["messages"])


CALLS: Final = [
    {"id": "call00001", "type": "function", "function": {"name": "look", "arguments": '{"place":"here"}'}}
]
TOOL_TALK: Final = [
    system("You are Friday."),
    user("Look, please."),
    assistant("I look.", call("call00001", place="here")),
    system(result("call00001", "A cat.")),
    assistant("A cat is here."),
    user("Thanks.", name="Alice"),
]


def test_a_chat_with_a_tool_gives_the_expected_request_without_names() -> None:
    assert _messages(TOOL_TALK) == [
        {"role": "system", "content": "You are Friday."},
        {"role": "user", "content": "Look, please."},
        {"role": "assistant", "content": "I look.", "tool_calls": CALLS},
        {"role": "tool", "tool_call_id": "call00001", "content": "A cat."},
        {"role": "assistant", "content": "A cat is here."},
        {"role": "user", "content": "Thanks."},
    ]


def test_many_speakers_give_one_string() -> None:
    request = VLLMMultiAgentFormatter().lower(TOOL_TALK).request
    assert problems("vllm", request) == []
    assert request["messages"] == [
        {"role": "system", "content": "You are Friday."},
        {"role": "user", "content": f"{PREAMBLE}<history>\nBob: Look, please.\n</history>"},
        {"role": "assistant", "content": "I look.", "tool_calls": CALLS},
        {"role": "tool", "tool_call_id": "call00001", "content": "A cat."},
        {"role": "assistant", "content": RESULT_TURN},
        {"role": "user", "content": "<history>\nFriday: A cat is here.\nAlice: Thanks.\n</history>"},
    ]


def test_turns_of_the_viewer_are_assistant_messages() -> None:
    formatter = VLLMMultiAgentFormatter(history=MultiAgentHistory(viewer="Friday"))
    request = formatter.lower([user("Hi."), assistant("Ho."), assistant("Ha.", name="Max")]).request
    assert problems("vllm", request) == []
    assert [message["role"] for message in request["messages"]] == ["user", "assistant", "user"]


def test_an_image_in_a_frame_divides_its_text_into_two_parts() -> None:
    request = VLLMMultiAgentFormatter().lower([user("See.", picture()), user("Ho.", name="Ann")]).request
    assert problems("vllm", request) == []
    assert request["messages"][0]["content"] == [
        {"type": "text", "text": f"{PREAMBLE}<history>\nBob: See."},
        {"type": "image_url", "image_url": {"url": PNG_URL}},
        {"type": "text", "text": "Ann: Ho.\n</history>"},
    ]


# --- shape for the strictest templates (8.1) ---


def test_leading_system_messages_are_merged_and_a_late_one_becomes_a_user_line() -> None:
    assert _messages([system("A."), system("B."), user("Hi."), system("Brief."), assistant("Ho.")]) == [
        {"role": "system", "content": "A.\nB."},
        {"role": "user", "content": "Hi.\nsystem: Brief."},
        {"role": "assistant", "content": "Ho."},
    ]


def test_roles_alternate_and_the_user_comes_first() -> None:
    msgs = [assistant("A."), assistant("B."), user("C."), user("D.", name="Ann"), assistant("E.")]
    assert [message["role"] for message in _messages(msgs)] == ["user", "assistant", "user", "assistant"]


def test_messages_between_results_become_one_user_turn_after_them() -> None:
    msgs = [
        user("Go."),
        assistant(call("c1"), call("c2")),
        system(result("c1", "One.", picture())),
        user("Hurry."),
        system(result("c2", picture(OTHER_PNG))),
        user("Please."),
    ]
    messages = _messages(msgs)
    roles = ["user", "assistant", "tool", "tool", "assistant", "user"]
    assert [message["role"] for message in messages] == roles
    assert all(isinstance(message["content"], str) for message in messages[2:5])
    parts = messages[5]["content"]
    assert sum(part["type"] == "image_url" for part in parts) == 2
    assert [part["text"] for part in parts if part["type"] == "text"][-2:] == ["Hurry.", "Please."]


def test_text_content_is_a_string_in_every_role() -> None:
    msgs = [user("One.", "Two."), assistant("Three.", "Four."), user("Five.")]
    assert [message["content"] for message in _messages(msgs)] == ["One.\nTwo.", "Three.\nFour.", "Five."]


@pytest.mark.parametrize("msgs", [[user("")], [assistant(ThinkingBlock("Hm."))], [system(result("c", "Orphan."))]])
def test_a_request_is_never_empty(msgs: list[Msg]) -> None:
    assert _messages(msgs)


# --- reasoning (8.2) ---


@pytest.mark.parametrize(
    ("state", "kept"),
    [(None, True), (OpaqueState("vllm"), True), (OpaqueState("anthropic", signature="s"), False)],
)
def test_reasoning_has_a_separate_key_and_is_never_a_part(state: OpaqueState | None, kept: bool) -> None:
    message = _messages([user("Go."), assistant(ThinkingBlock("Hm.", state), "Done.")])[1]
    assert message == {"role": "assistant", "content": "Done."} | ({"reasoning": "Hm."} if kept else {})


# --- ids (8.1, 8.3) ---


@pytest.mark.parametrize("call_id", ["functions.name:0", "chatcmpl-tool-" + "0" * 32])
def test_call_ids_of_kimi_are_unchanged(call_id: str) -> None:
    msgs = [user("Go."), assistant(call(call_id)), system(result(call_id, "A"))]
    named = _messages(msgs, "moonshotai/Kimi-K2-Instruct")
    declared = VLLMChatFormatter("mine", model_rules=ModelRules(call_ids="any")).lower(msgs).request["messages"]
    for messages in (named, declared):
        assert messages[1]["tool_calls"][0]["id"] == messages[2]["tool_call_id"] == call_id


@pytest.mark.parametrize("ids", [("call_1", "call_2"), ("same", "same"), ("", ""), ("abcdefghi", "abcdefgh")])
@pytest.mark.parametrize("model", [None, "served-under-an-alias", MISTRAL])
def test_call_ids_have_nine_letters_or_digits_for_any_model_name(ids: tuple[str, str], model: str | None) -> None:
    first, second = ids
    msgs = [user("Go."), assistant(call(first), call(second)), system(result(first, "A"), result(second, "B"))]
    plan = VLLMChatFormatter(model).lower(msgs)
    assert problems("vllm", plan.request) == []
    asked = [one["id"] for one in plan.request["messages"][1]["tool_calls"]]
    assert all(re.fullmatch("[A-Za-z0-9]{9}", one) for one in asked)
    assert [m["tool_call_id"] for m in plan.request["messages"][2:]] == asked
    assert [plan.call_ids.get(one, one) for one in asked] == [first, second]


# --- media (8.1) ---


@pytest.mark.parametrize(
    ("block", "part"),
    [
        (picture(), {"type": "image_url", "image_url": {"url": PNG_URL}}),
        (
            AudioBlock(Base64Source("audio/wav", WAV)),
            {"type": "audio_url", "audio_url": {"url": f"data:audio/wav;base64,{WAV}"}},
        ),
        (
            VideoBlock(Base64Source("video/mp4", MP4)),
            {"type": "video_url", "video_url": {"url": f"data:video/mp4;base64,{MP4}"}},
        ),
        (VideoBlock(URLSource("https://x.org/a")), {"type": "video_url", "video_url": {"url": "https://x.org/a"}}),
    ],
)
def test_media_become_url_parts(block: Block, part: dict[str, Any]) -> None:
    assert _messages([user("See.", block)])[0]["content"] == [{"type": "text", "text": "See."}, part]


@pytest.mark.parametrize(
    ("block", "told"),
    [
        (DocumentBlock(Base64Source("application/pdf", PDF)), "[document left out because"),
        (DocumentBlock(Base64Source("text/plain", TEXT)), "Milk, bread."),
        (ImageBlock(URLSource("file:///srv/a.png")), "[image left out because"),
    ],
)
def test_a_document_is_described(block: Block, told: str) -> None:
    assert told in _messages([user("See.", block)])[0]["content"]


# --- tools and output (8.3) ---


@pytest.mark.parametrize(
    ("choice", "wire"),
    [
        ("auto", "auto"),
        ("none", "none"),
        ("required", "required"),
        ("look", {"type": "function", "function": {"name": "look"}}),
    ],
)
def test_each_tool_choice_is_accepted(choice: str, wire: object) -> None:
    request = VLLMChatFormatter().lower([user("Go.")], tools=[LOOK], tool_choice=choice).request
    assert problems("vllm", request) == []
    assert request["tool_choice"] == wire


def test_a_schema_is_sent_as_a_schema() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string"}}}
    request = VLLMChatFormatter().lower([user("Go.")], response_format=schema).request
    assert request["response_format"]["type"] == "json_schema"
    assert request["response_format"]["json_schema"]["schema"] == schema
