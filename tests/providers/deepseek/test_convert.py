"""Requests of DeepSeek."""

from typing import Any, Final

import pytest

from agentkit import (
    Base64Source,
    Block,
    DocumentBlock,
    ImageBlock,
    Msg,
    MultiAgentHistory,
    OpaqueState,
    ThinkingBlock,
    URLSource,
    VideoBlock,
)
from agentkit_deepseek import DeepSeekChatFormatter, DeepSeekMultiAgentFormatter
from tests.providers import (
    LOOK,
    MP4,
    PDF,
    PNG_URL,
    PREAMBLE,
    TEXT,
    assistant,
    call,
    picture,
    problems,
    result,
    system,
    user,
)


def _messages(msgs: list[Msg], model: str | None = None, **asked: Any) -> list[dict[str, Any]]:
    request = DeepSeekChatFormatter(model).lower(msgs, **asked).request
    assert problems("deepseek", request) == [] or model == "deepseek-chat"
    return list(request["messages"])


CALLS: Final = [
    {"id": "call_00_a", "type": "function", "function": {"name": "look", "arguments": '{"place":"here"}'}}
]
TOOL_TALK: Final = [
    system("You are Friday."),
    user("Look, please."),
    assistant(ThinkingBlock("Where?", OpaqueState("deepseek")), call("call_00_a", place="here")),
    system(result("call_00_a", "A cat.")),
    assistant("A cat is here."),
    user("Thanks.", name="Alice"),
]


def test_a_chat_with_a_tool_gives_the_expected_request() -> None:
    assert _messages(TOOL_TALK) == [
        {"role": "system", "content": "You are Friday."},
        {"role": "user", "content": "Look, please.", "name": "Bob"},
        {
            "role": "assistant",
            "content": None,
            "name": "Friday",
            "reasoning_content": "Where?",
            "tool_calls": CALLS,
        },
        {"role": "tool", "tool_call_id": "call_00_a", "content": "A cat."},
        {"role": "assistant", "content": "A cat is here.", "name": "Friday", "reasoning_content": ""},
        {"role": "user", "content": "Thanks.", "name": "Alice"},
    ]


def test_many_speakers_give_the_expected_strings() -> None:
    request = DeepSeekMultiAgentFormatter().lower(TOOL_TALK).request
    assert problems("deepseek", request) == []
    assert request["messages"] == [
        {"role": "system", "content": "You are Friday."},
        {"role": "user", "content": f"{PREAMBLE}<history>\nBob: Look, please.\n</history>"},
        {
            "role": "assistant",
            "content": None,
            "name": "Friday",
            "reasoning_content": "Where?",
            "tool_calls": CALLS,
        },
        {"role": "tool", "tool_call_id": "call_00_a", "content": "A cat."},
        {"role": "user", "content": "<history>\nFriday: A cat is here.\nAlice: Thanks.\n</history>"},
    ]


def test_turns_of_the_viewer_have_their_reasoning() -> None:
    formatter = DeepSeekMultiAgentFormatter(history=MultiAgentHistory(viewer="Friday"))
    messages = formatter.lower(TOOL_TALK).request["messages"]
    own = [message for message in messages if message["role"] == "assistant"]
    assert [message["reasoning_content"] for message in own] == ["Where?", ""]


# --- reasoning_content (7.3) ---


@pytest.mark.parametrize(
    ("block", "sent"),
    [
        (ThinkingBlock("Mine.", OpaqueState("deepseek")), "Mine."),
        (ThinkingBlock("Unmarked."), "Unmarked."),
        (ThinkingBlock("Claude's.", OpaqueState("anthropic", signature="s")), ""),
        (ThinkingBlock("OpenAI's.", OpaqueState("openai", encrypted_content="e")), ""),
    ],
)
def test_each_assistant_message_has_the_reasoning_key_even_for_thinking_of_another_model(
    block: ThinkingBlock, sent: str
) -> None:
    messages = _messages([user("Go."), assistant(block, "I look.", call("c1")), system(result("c1", "A"))])
    assert messages[1]["reasoning_content"] == sent


def test_several_thinking_blocks_of_a_turn_are_joined() -> None:
    thoughts = [ThinkingBlock("One."), ThinkingBlock("Two.")]
    assert _messages([user("Go."), assistant(*thoughts, "Done.")])[1]["reasoning_content"] == "One.\nTwo."


def test_other_roles_have_no_reasoning_key() -> None:
    for message in _messages(TOOL_TALK):
        assert ("reasoning_content" in message) is (message["role"] == "assistant")


def test_the_alias_without_thinking_gets_no_reasoning() -> None:
    assert all("reasoning_content" not in message for message in _messages(TOOL_TALK, "deepseek-chat"))


# --- content (7.2) ---


def test_content_is_a_string_in_every_role() -> None:
    msgs = [
        system("A.", "B."),
        user("One.", "Two."),
        assistant("Three.", "Four.", call("c1")),
        system(result("c1", "Five.", "Six.")),
    ]
    assert [message["content"] for message in _messages(msgs)] == [
        *("A.\nB.", "One.\nTwo.", "Three.\nFour.", "- Five.\n- Six.")
    ]


def test_a_text_model_gets_the_description_of_an_image() -> None:
    assert _messages([user("See.", picture())])[0]["content"].startswith("See.\n[image left out because")


def test_the_vision_model_gets_images_only_in_user_messages() -> None:
    msgs = [user("See.", picture()), assistant(call("c1")), system(result("c1", "One.", picture()))]
    messages = _messages(msgs, "deepseek-flash")
    part = {"type": "image_url", "image_url": {"url": PNG_URL}}
    assert messages[0]["content"] == [{"type": "text", "text": "See."}, part]
    assert [message["role"] for message in messages] == ["user", "assistant", "tool", "user"]
    assert isinstance(messages[2]["content"], str)
    assert part in messages[3]["content"]


@pytest.mark.parametrize(
    ("block", "told"),
    [
        (VideoBlock(Base64Source("video/mp4", MP4)), "[video left out because"),
        (DocumentBlock(Base64Source("application/pdf", PDF)), "[document left out because"),
        (DocumentBlock(Base64Source("text/plain", TEXT)), "Milk, bread."),
        (ImageBlock(URLSource("ftp://x.org/a.png")), "[image left out because"),
    ],
)
def test_content_that_the_api_refuses_is_described(block: Block, told: str) -> None:
    assert told in _messages([user("See.", block)], "deepseek-flash")[0]["content"]


@pytest.mark.parametrize("name", ["Mr Smith", "张三", "a/b"])
def test_a_speaker_name_has_only_portable_characters(name: str) -> None:
    wire = _messages([user("Hi.", name=name)])[0]["name"]
    assert wire.isascii()
    assert wire.replace("_", "").replace("-", "").isalnum()


def test_a_call_id_of_any_length_is_unchanged() -> None:
    long = "chatcmpl-tool-" + "0" * 32
    messages = _messages([user("Go."), assistant(call(long)), system(result(long, "A"))])
    assert messages[1]["tool_calls"][0]["id"] == messages[2]["tool_call_id"] == long


@pytest.mark.parametrize("msgs", [[user("")], [assistant(ThinkingBlock("Hm."))]])
def test_a_request_is_never_empty(msgs: list[Msg]) -> None:
    assert _messages(msgs)


# --- tools and output (7.4) ---


@pytest.mark.parametrize(
    ("choice", "wire"), [("auto", "auto"), ("none", "none"), ("required", None), ("look", None)]
)
def test_a_forced_tool_choice_becomes_auto_in_thinking_mode(choice: str, wire: str | None) -> None:
    plan = DeepSeekChatFormatter().lower([user("Go.")], tools=[LOOK], tool_choice=choice)
    assert problems("deepseek", plan.request) == []
    assert plan.request.get("tool_choice") in ([wire] if wire else [None, "auto"])
    assert bool(wire) or "tool choice" in [made.name for made in plan.ledger.syntheses]


def test_a_schema_becomes_json_object_and_a_text() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string"}}}
    request = DeepSeekChatFormatter().lower([user("Go.")], response_format=schema).request
    assert problems("deepseek", request) == []
    assert request["response_format"] == {"type": "json_object"}
    assert "JSON" in request["messages"][0]["content"]
