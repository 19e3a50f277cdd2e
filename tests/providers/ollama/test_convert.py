"""Requests of Ollama chat."""

import asyncio
import base64
from pathlib import Path
from typing import Any, Final

import pytest

from agentkit import (
    AudioBlock,
    Base64Source,
    Block,
    DocumentBlock,
    ImageBlock,
    Msg,
    MultiAgentHistory,
    OpaqueState,
    ThinkingBlock,
    Tool,
    ToolResultBlock,
    URLSource,
)
from agentkit_ollama import OllamaChatFormatter, OllamaMultiAgentFormatter
from tests.providers import (
    LOOK,
    MP3,
    OTHER_PNG,
    PDF,
    PNG,
    PREAMBLE,
    WAV,
    assistant,
    call,
    picture,
    problems,
    result,
    system,
    user,
)
from tests.wire.loopback import send


def _messages(msgs: list[Msg]) -> list[dict[str, Any]]:
    request = OllamaChatFormatter().lower(msgs).request
    assert problems("ollama", request) == []
    return list(request["messages"])


TOOL_TALK: Final = [
    system("You are Friday."),
    user("Look, please."),
    assistant("I look.", call("call_1", place="here")),
    system(result("call_1", "A cat.")),
    assistant("A cat is here."),
]
CALLED: Final = {
    "role": "assistant",
    "content": "I look.",
    "tool_calls": [{"id": "call_1", "function": {"name": "look", "arguments": {"place": "here"}}}],
}
ANSWERED: Final = {"role": "tool", "content": "A cat.", "tool_name": "look", "tool_call_id": "call_1"}


def test_a_request_with_a_tool() -> None:
    assert _messages(TOOL_TALK) == [
        {"role": "system", "content": "You are Friday."},
        {"role": "user", "content": "Look, please."},
        CALLED,
        ANSWERED,
        {"role": "assistant", "content": "A cat is here."},
    ]


def test_many_speakers_are_one_string() -> None:
    request = OllamaMultiAgentFormatter().lower([*TOOL_TALK, user("Thanks.", name="Alice")]).request
    assert problems("ollama", request) == []
    assert request["messages"] == [
        {"role": "system", "content": "You are Friday."},
        {"role": "user", "content": f"{PREAMBLE}<history>\nBob: Look, please.\n</history>"},
        CALLED,
        ANSWERED,
        {"role": "user", "content": "<history>\nFriday: A cat is here.\nAlice: Thanks.\n</history>"},
    ]


def test_turns_of_the_viewer_have_the_role_assistant() -> None:
    formatter = OllamaMultiAgentFormatter(history=MultiAgentHistory(viewer="Friday"))
    request = formatter.lower([user("Hi."), assistant("Ho."), assistant("Ha.", name="Max")]).request
    assert request["messages"][1:] == [
        {"role": "assistant", "content": "Ho."},
        {"role": "user", "content": "<history>\nMax: Ha.\n</history>"},
    ]


def test_an_image_in_a_frame_has_a_mark_at_its_position() -> None:
    request = OllamaMultiAgentFormatter().lower([user("See.", picture(), "Nice?")]).request
    assert problems("ollama", request) == []
    assert request["messages"] == [
        {
            "role": "user",
            "content": f"{PREAMBLE}<history>\nBob: See.\n[image 1]\nBob: Nice?\n</history>",
            "images": [PNG],
        }
    ]


# --- calls and results (3.2, 3.3) ---


def test_content_is_never_null() -> None:
    messages = _messages([user("Go."), assistant(call("c1")), system(result("c1", "")), user(picture())])
    assert [message["content"] for message in messages] == ["Go.", "", "", "[image 1]"]


def test_results_have_the_order_of_their_calls() -> None:
    msgs = [
        user("Go."),
        assistant(call("c1", "a"), call("c2", "b")),
        system(result("c2", "B", name="b"), result("c1", "A", name="a")),
    ]
    assert [(m["tool_name"], m["content"]) for m in _messages(msgs)[2:]] == [("a", "A"), ("b", "B")]


def test_a_result_without_a_name_gets_the_name_of_its_call() -> None:
    messages = _messages([user("Go."), assistant(call("c1")), system(ToolResultBlock("c1", "", "A"))])
    assert messages[2]["tool_name"] == "look"


def test_truncated_arguments_are_sent_as_an_object() -> None:
    stored = {"type": "tool_use", "id": "c1", "name": "look", "input": '{"place": "he'}
    msg = Msg.from_dict({"name": "Friday", "role": "assistant", "content": [stored]})
    messages = _messages([user("Go."), msg, system(result("c1", "A"))])
    assert messages[1]["tool_calls"][0]["function"]["arguments"] == {"raw_input": '{"place": "he'}


def test_images_in_results_move_to_a_user_message_in_order() -> None:
    msgs = [
        user("Go."),
        assistant(call("c1"), call("c2")),
        system(result("c2", picture(OTHER_PNG))),
        system(result("c1", picture(PNG))),
        assistant("Seen."),
    ]
    messages = _messages(msgs)
    assert [message["role"] for message in messages] == [
        *("user", "assistant", "tool", "tool", "user", "assistant")
    ]
    assert messages[4]["images"] == [PNG, OTHER_PNG]


def test_the_text_of_a_failed_result_has_the_error_mark() -> None:
    messages = _messages([user("Go."), assistant(call("c1")), system(result("c1", "No.", is_error=True))])
    assert messages[2]["content"] == "[error] No."


# --- thinking and system ---


@pytest.mark.parametrize(
    ("state", "is_kept"), [(None, True), (OpaqueState("ollama"), True), (OpaqueState("deepseek"), False)]
)
def test_thinking_of_the_issuer_is_sent_beside_the_text(state: OpaqueState | None, is_kept: bool) -> None:
    messages = _messages([user("Go."), assistant(ThinkingBlock("Hm.", state), "Done.")])
    assert messages[1] == {"role": "assistant", "content": "Done."} | ({"thinking": "Hm."} if is_kept else {})


def test_a_late_system_message_becomes_a_user_line() -> None:
    assert _messages([system("A."), system("B."), user("Hi."), system("Be brief."), assistant("Ho.")]) == [
        {"role": "system", "content": "A.\nB."},
        {"role": "user", "content": "Hi."},
        {"role": "user", "content": "system: Be brief."},
        {"role": "assistant", "content": "Ho."},
    ]


@pytest.mark.parametrize("msgs", [[user(" ")], [assistant(ThinkingBlock("Hm."))]])
def test_no_request_has_an_empty_list_of_messages(msgs: list[Msg]) -> None:
    assert _messages(msgs)


# --- images: base64 alone, never a path (3.2, 3.3) ---


@pytest.mark.parametrize(
    ("block", "data"),
    [
        (picture(), PNG),
        (picture(base64.b64encode(b"\xff\xd8\xff\xe0 jpeg").decode(), "image/jpg"), "/9j/4CBqcGVn"),
        (ImageBlock(URLSource(f"data:image/png;base64,{PNG}")), PNG),
        (AudioBlock(Base64Source("audio/wav", WAV)), WAV),
        (AudioBlock(Base64Source("audio/mpeg", MP3)), MP3),
    ],
)
def test_images_and_audio_are_sent_as_base64_text(block: Block, data: str) -> None:
    assert _messages([user("See.", block)])[0]["images"] == [data]


PATHS: Final = ("Makefile", "etc/passwd/", "/etc/passwd", "README", "notes123", "/9j/nope", "iVBOR.png")


@pytest.mark.parametrize("path", PATHS)
def test_base64_text_that_is_the_path_of_a_file_is_not_sent(
    path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("Makefile", "README", "notes123"):
        Path(name).write_text("secret")
    request = OllamaChatFormatter().lower([user("See.", picture(path))]).request
    captured = asyncio.run(send("ollama", request))
    sent = str(captured.body)
    assert base64.b64encode(b"secret").decode() not in sent
    assert base64.b64encode(b"root:").decode()[:6] not in sent


@pytest.mark.parametrize(
    "url", ["file:///etc/passwd", "/etc/passwd", "Makefile", "./a.png", "file://localhost/etc/hosts"]
)
def test_a_file_is_not_read_without_a_media_root(url: str) -> None:
    formatter = OllamaChatFormatter()
    request = asyncio.run(formatter.format([user("See.", ImageBlock(URLSource(url)))]))
    assert "images" not in request["messages"][0]
    assert "[image left out because" in request["messages"][0]["content"]


def test_a_file_within_a_media_root_is_sent_as_base64_text(tmp_path: Path) -> None:
    path = tmp_path / "a.png"
    path.write_bytes(base64.b64decode(PNG))
    formatter = OllamaChatFormatter(media_roots=[tmp_path])
    request = asyncio.run(formatter.format([user("See.", ImageBlock(URLSource(str(path))))]))
    assert request["messages"][0]["images"] == [PNG]


@pytest.mark.parametrize(
    "block",
    [
        ImageBlock(URLSource("https://example.org/a.png")),
        DocumentBlock(Base64Source("application/pdf", PDF)),
        picture(base64.b64encode(b"<svg xmlns=''/>").decode(), "image/svg+xml"),
    ],
)
def test_media_that_the_server_refuses_are_described(block: Block) -> None:
    message = _messages([user("See.", block)])[0]
    assert "images" not in message
    assert "left out because" in message["content"]


# --- tools, choice, output (3.2) ---


def test_a_tool_is_declared_with_its_complete_schema() -> None:
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {"a": {"anyOf": [{"type": "string"}, {"type": "null"}]}},
    }
    request = OllamaChatFormatter().lower([user("Go.")], tools=[Tool("f", "Does.", schema)]).request
    assert request["tools"] == [
        {"type": "function", "function": {"name": "f", "description": "Does.", "parameters": schema}}
    ]


@pytest.mark.parametrize(
    ("choice", "has_tools"), [("auto", True), ("none", False), ("required", True), ("look", True)]
)
def test_tool_choice_none_omits_the_tools(choice: str, has_tools: bool) -> None:
    plan = OllamaChatFormatter().lower([user("Go.")], tools=[LOOK], tool_choice=choice)
    assert "tool_choice" not in plan.request
    assert ("tools" in plan.request) is has_tools
    assert choice == "auto" or "tool choice" in [synthesis.name for synthesis in plan.ledger.syntheses]


def test_an_output_schema_becomes_the_format() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string"}}}
    request = OllamaChatFormatter().lower([user("Go.")], response_format=schema).request
    assert request["format"] == schema
