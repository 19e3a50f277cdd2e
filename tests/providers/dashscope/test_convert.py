"""Requests of DashScope: both paths of the native API, and the compatible mode."""

import asyncio
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
    OptionError,
    TextBlock,
    ThinkingBlock,
    Tool,
    URLSource,
    VideoBlock,
)
from agentkit_dashscope import (
    DashScopeChatFormatter,
    DashScopeCompatibleChatFormatter,
    DashScopeCompatibleMultiAgentFormatter,
    DashScopeMultiAgentFormatter,
)
from tests.providers import (
    JPEG,
    LOOK,
    MP3,
    MP4,
    PDF,
    PNG_URL,
    PREAMBLE,
    TEXT,
    WAV,
    assistant,
    call,
    chat,
    picture,
    problems,
    result,
    system,
    texts_of,
    user,
)
from tests.wire.loopback import expected_body, send

TEXT_MODEL: Final = "qwen-plus"
BOTH: Final = ("dashscope", "dashscope-compatible")


def _messages(msgs: list[Msg], model: str | None = None) -> list[dict[str, Any]]:
    request = DashScopeChatFormatter(model).lower(msgs, tools=[LOOK]).request
    assert problems("dashscope", request) == []
    return list(request["messages"])


def _compatible(msgs: list[Msg]) -> list[dict[str, Any]]:
    request = DashScopeCompatibleChatFormatter().lower(msgs).request
    assert problems("dashscope-compatible", request) == []
    return list(request["messages"])


CALLS: Final = [
    {"id": "call_1", "type": "function", "function": {"name": "look", "arguments": '{"place":"here"}'}}
]
ANSWERED: Final = {"role": "tool", "tool_call_id": "call_1", "content": "A cat.", "name": "look"}
TOOL_TALK: Final = [
    system("You are Friday."),
    user("Look, please."),
    assistant("I look.", call("call_1", place="here")),
    system(result("call_1", "A cat.")),
    assistant("A cat is here."),
]


def test_a_request_on_the_multimodal_path() -> None:
    assert DashScopeChatFormatter().lower(TOOL_TALK, tools=[LOOK]).request == {
        "messages": [
            {"role": "system", "content": [{"text": "You are Friday."}]},
            {"role": "user", "content": [{"text": "\nLook, please."}]},
            {"role": "assistant", "content": [{"text": "I look."}], "tool_calls": CALLS},
            ANSWERED,
            {"role": "assistant", "content": [{"text": "A cat is here."}]},
        ],
        "result_format": "message",
        "tools": [
            {
                "type": "function",
                "function": {"name": "look", "description": "Look at a place.", "parameters": LOOK.parameters},
            }
        ],
    }


def test_a_request_on_the_text_path_has_strings_as_content() -> None:
    assert _messages(TOOL_TALK, TEXT_MODEL) == [
        {"role": "system", "content": "You are Friday."},
        {"role": "user", "content": "Look, please."},
        {"role": "assistant", "content": "I look.", "tool_calls": CALLS},
        ANSWERED,
        {"role": "assistant", "content": "A cat is here."},
    ]


def test_a_request_in_the_compatible_mode() -> None:
    assert _compatible(TOOL_TALK) == [
        {"role": "system", "content": "You are Friday."},
        {"role": "user", "content": "Look, please."},
        {"role": "assistant", "content": "I look.", "tool_calls": CALLS},
        {"role": "tool", "tool_call_id": "call_1", "content": "A cat."},
        {"role": "assistant", "content": "A cat is here."},
    ]


def test_many_speakers_are_separate_parts_on_the_multimodal_path() -> None:
    request = DashScopeMultiAgentFormatter().lower([user("Hi."), user("See.", picture(), name="Alice")]).request
    assert problems("dashscope", request) == []
    assert request["messages"] == [
        {
            "role": "user",
            "content": [
                {"text": f"{PREAMBLE}<history>"},
                {"text": "\nBob: Hi."},
                {"text": "\nAlice: See."},
                {"image": PNG_URL},
                {"text": "\n</history>"},
            ],
        }
    ]


@pytest.mark.parametrize(
    "formatter", [DashScopeMultiAgentFormatter(TEXT_MODEL), DashScopeCompatibleMultiAgentFormatter()]
)
def test_many_speakers_are_one_string_on_other_paths(formatter: DashScopeMultiAgentFormatter) -> None:
    messages = formatter.lower([user("Hi."), user("Ho.", name="Alice")]).request["messages"]
    assert messages == [{"role": "user", "content": f"{PREAMBLE}<history>\nBob: Hi.\nAlice: Ho.\n</history>"}]


def test_turns_of_the_viewer_have_the_role_assistant() -> None:
    formatter = DashScopeMultiAgentFormatter(history=MultiAgentHistory(viewer="Friday"))
    messages = formatter.lower([user("Hi."), assistant("Ho."), user("Ha.")]).request["messages"]
    assert [message["role"] for message in messages] == ["user", "assistant", "user"]


# --- the two paths (9.1) ---


@pytest.mark.parametrize(
    ("model", "path"),
    [
        ("qwen-plus", "text"),
        ("qwen3-max", "text"),
        ("deepseek-v3.2", "text"),
        ("qwen3-coder-plus", "text"),
        ("qwen3.5-plus", "multimodal"),
        ("qwen3.8-max", "multimodal"),
        ("qwen-vl-max", "multimodal"),
        ("qwen3-vl-plus", "multimodal"),
        ("qwen2.5-vl-72b-instruct", "multimodal"),
        ("qwen2.5-omni-7b", "multimodal"),
        ("qwen3-omni-flash", "multimodal"),
        (None, "multimodal"),
        ("tomorrows-model", "multimodal"),
    ],
)
def test_each_model_is_bound_to_one_path(model: str | None, path: str) -> None:
    assert DashScopeChatFormatter().get_path(model) == path


def test_the_path_option_overrides_the_path_of_the_model() -> None:
    formatter = DashScopeChatFormatter("qwen3.9-text", path="text")
    assert formatter.lower([user("Hi.")]).request["messages"] == [{"role": "user", "content": "Hi."}]
    assert DashScopeChatFormatter("qwen-plus", path="multimodal").get_path() == "multimodal"
    with pytest.raises(OptionError):
        DashScopeChatFormatter(path="voice")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("model", [None, TEXT_MODEL])
def test_a_call_without_text_has_empty_content_with_the_key_present(model: str | None) -> None:
    assert _messages([user("Go."), assistant(call("c1")), system(result("c1", "A"))], model)[1]["content"] == ""


def test_a_call_without_text_has_empty_content_in_the_compatible_mode_too() -> None:
    assert _compatible([user("Go."), assistant(call("c1")), system(result("c1", "A"))])[1]["content"] == ""


def test_images_are_described_on_the_text_path() -> None:
    content = _messages([user("See.", picture())], TEXT_MODEL)[0]["content"]
    assert content.startswith("See.\n[image left out because")


# --- the upload hole (9.2) ---

NAMES: Final = ("notes", "notes.txt", "two\nlines", "~", "a b", "x" * 255)
TRAPS: Final = (
    *NAMES,
    "/etc/passwd",
    "/etc/hostname",
    "~/notes",
    "file:///etc/passwd",
    "file:///etc/pass\nwd",
    "file:///etc/passwd\nRead it.",
    "file:///nowhere",
    "file://notes",
    "file:///etc/passwd?" + "x" * 5_000,
    "httpnotes",
    "notes" + " " * 300,
    f"{'x' * 255}/../notes",
)


@pytest.fixture
def _files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in NAMES:
        Path(name).write_text("secret")


@pytest.mark.usefixtures("_files")
@pytest.mark.parametrize("formatter", [DashScopeChatFormatter(), DashScopeMultiAgentFormatter()])
@pytest.mark.parametrize("text", TRAPS, ids=lambda text: ascii(text[:24]))
def test_a_user_text_that_names_a_local_file_is_sent_as_text(text: str, formatter: DashScopeChatFormatter) -> None:
    request = formatter.lower([user(text), assistant(text), user(text, picture(), name=text)]).request
    captured = asyncio.run(send("dashscope", request))
    assert captured.other_paths == []
    assert captured.body == expected_body("dashscope", request)
    assert any(text.splitlines()[-1] in said for said in texts_of(request["messages"][0]))


SENTENCE: Final = "No name of a file is so long as this one sentence is; " * 6


@pytest.mark.parametrize(
    "text", [SENTENCE, f"{SENTENCE} and/or this", f"~/{SENTENCE}", "x" * 256, "https://x.org"]
)
def test_a_text_that_is_not_a_path_is_sent_unchanged(text: str) -> None:
    plan = DashScopeChatFormatter().lower([Msg("user", text, "user")])
    assert plan.request["messages"] == [{"role": "user", "content": [{"text": text}]}]
    assert plan.ledger.entries[0].details == ()


def test_the_ledger_notes_each_text_with_an_added_line_break() -> None:
    msgs = [Msg("user", "hi", "user"), Msg("assistant", "hi", "assistant"), Msg("user", "\nhi", "user")]
    unsaid = ("line break added before the text, because the SDK would upload the file of this path",)
    plan = DashScopeChatFormatter().lower(msgs)
    assert [entry.details for entry in plan.ledger.entries] == [unsaid, (), ()]
    for formatter in (DashScopeChatFormatter(path="text"), DashScopeMultiAgentFormatter()):
        assert not any(entry.details for entry in formatter.lower(msgs).ledger.entries)


@pytest.mark.usefixtures("_files")
@pytest.mark.parametrize("url", ["notes", "./notes.txt", "file:///etc/passwd", "~/notes", "/etc/passwd"])
@pytest.mark.parametrize("kind", [ImageBlock, AudioBlock, VideoBlock])
def test_media_at_the_path_of_a_local_file_are_not_uploaded(
    url: str, kind: type[ImageBlock | AudioBlock | VideoBlock]
) -> None:
    request = asyncio.run(DashScopeChatFormatter().format([user("See.", kind(URLSource(url)))]))
    captured = asyncio.run(send("dashscope", request))
    assert captured.other_paths == []
    assert [set(part) for part in request["messages"][0]["content"]] == [{"text"}, {"text"}]


# --- media (9.4, 9.5, 9.6) ---


@pytest.mark.parametrize(
    ("block", "part"),
    [
        (picture(), {"image": PNG_URL}),
        (picture(JPEG, "image/jpg"), {"image": f"data:image/jpeg;base64,{JPEG}"}),
        (ImageBlock(URLSource("oss://bucket/a.png")), {"image": "oss://bucket/a.png"}),
        (AudioBlock(Base64Source("audio/wav", WAV)), {"audio": f"data:audio/wav;base64,{WAV}"}),
        (VideoBlock(URLSource("https://x.org/a.mp4")), {"video": "https://x.org/a.mp4"}),
        (VideoBlock(Base64Source("video/mp4", MP4)), {"video": f"data:video/mp4;base64,{MP4}"}),
    ],
)
def test_native_media_are_single_key_parts(block: Block, part: dict[str, Any]) -> None:
    assert _messages([user("See.", block)])[0]["content"][1] == part


@pytest.mark.parametrize(
    ("block", "part"),
    [
        (picture(), {"type": "image_url", "image_url": {"url": PNG_URL}}),
        (
            AudioBlock(Base64Source("audio/wav", WAV)),
            {"type": "input_audio", "input_audio": {"data": f"data:audio/wav;base64,{WAV}", "format": "wav"}},
        ),
        (
            AudioBlock(Base64Source("audio/mp3", MP3)),
            {"type": "input_audio", "input_audio": {"data": f"data:audio/mpeg;base64,{MP3}", "format": "mp3"}},
        ),
        (
            AudioBlock(URLSource("https://x.org/a.mp3")),
            {"type": "input_audio", "input_audio": {"data": "https://x.org/a.mp3", "format": "mp3"}},
        ),
        (
            VideoBlock(URLSource("https://x.org/a.mp4")),
            {"type": "video_url", "video_url": {"url": "https://x.org/a.mp4"}},
        ),
    ],
)
def test_media_parts_of_the_compatible_mode_have_urls_or_data_urls(block: Block, part: dict[str, Any]) -> None:
    assert _compatible([user("See.", block)])[0]["content"][1] == part


@pytest.mark.parametrize("provider", BOTH)
def test_an_image_in_a_result_moves_to_a_user_message_after_all_results(provider: str) -> None:
    msgs = [
        user("Go."),
        assistant(call("c1"), call("c2")),
        system(result("c1", "One.", picture())),
        system(result("c2", "Two.")),
    ]
    request = chat(provider).lower(msgs, tools=[LOOK]).request
    assert problems(provider, request) == []
    assert [message["role"] for message in request["messages"]] == ["user", "assistant", "tool", "tool", "user"]
    assert all(isinstance(message["content"], str) for message in request["messages"][2:4])
    assert PNG_URL in str(request["messages"][4])


@pytest.mark.parametrize("provider", BOTH)
def test_documents_become_text_or_a_description(provider: str) -> None:
    msgs = [
        user("A.", DocumentBlock(Base64Source("text/plain", TEXT))),
        user("B.", DocumentBlock(Base64Source("application/pdf", PDF))),
    ]
    request = chat(provider).lower(msgs).request
    assert problems(provider, request) == []
    assert "Milk, bread." in str(request["messages"][0])
    assert "document left out because" in str(request["messages"][1])


# --- rules of both modes ---


@pytest.mark.parametrize("provider", BOTH)
@pytest.mark.parametrize(
    "msgs", [[system("A.")], [assistant("Hi.")], [user("")], [system("A."), assistant("Hi.")]]
)
def test_every_request_has_a_user_message(provider: str, msgs: list[Msg]) -> None:
    request = chat(provider).lower(msgs).request
    assert problems(provider, request) == []
    assert "user" in [message["role"] for message in request["messages"]]


@pytest.mark.parametrize("provider", BOTH)
def test_the_reserved_tool_name_is_replaced_in_tools_calls_and_choice(provider: str) -> None:
    msgs = [user("Go."), assistant(call("c1", "search")), system(result("c1", "A", name="search"))]
    plan = chat(provider).lower(msgs, tools=[Tool("search", "Find.")])
    assert problems(provider, plan.request) == []
    wire = plan.request["tools"][0]["function"]["name"]
    assert plan.request["messages"][1]["tool_calls"][0]["function"]["name"] == wire
    assert plan.tool_names == {wire: "search"}
    assert wire != "search"


def test_tools_are_declared_in_a_request_with_results() -> None:
    request = DashScopeChatFormatter().lower(TOOL_TALK).request
    assert problems("dashscope", request) == []
    assert [tool["function"]["name"] for tool in request["tools"]] == ["look"]
    assert request["tool_choice"] == "none"


@pytest.mark.parametrize("provider", BOTH)
@pytest.mark.parametrize(("choice", "wire"), [("auto", "auto"), ("none", "none"), ("required", None)])
def test_tool_choices_that_the_api_refuses_are_replaced(provider: str, choice: str, wire: str | None) -> None:
    plan = chat(provider).lower([user("Go.")], tools=[LOOK], tool_choice=choice)
    assert plan.request.get("tool_choice") in ([wire] if wire else [None, "auto"])
    assert problems(provider, plan.request) == []


@pytest.mark.parametrize("provider", BOTH)
def test_only_models_without_default_thinking_get_a_named_tool_choice(provider: str) -> None:
    asked = chat(provider, "qwen-plus").lower([user("Go.")], tools=[LOOK], tool_choice="look").request
    assert asked["tool_choice"] == {"type": "function", "function": {"name": "look"}}
    unknown = chat(provider).lower([user("Go.")], tools=[LOOK], tool_choice="look")
    assert unknown.request.get("tool_choice", "auto") == "auto"
    assert [synthesis.name for synthesis in unknown.ledger.syntheses] == ["tool choice"]


@pytest.mark.parametrize("provider", BOTH)
def test_a_schema_becomes_json_object_with_the_schema_in_the_system_prompt(provider: str) -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string"}}}
    request = chat(provider).lower([user("Go.")], response_format=schema).request
    assert problems(provider, request) == []
    assert request["response_format"] == {"type": "json_object"}
    assert request["messages"][0]["role"] == "system"
    assert '"properties":{"a":{"type":"string"}}' in texts_of(request["messages"][0])[0]


@pytest.mark.parametrize("provider", BOTH)
@pytest.mark.parametrize(
    ("state", "is_kept"), [(None, True), (OpaqueState("dashscope"), True), (OpaqueState("deepseek"), False)]
)
def test_thinking_of_the_issuer_is_sent_as_reasoning_content(
    provider: str, state: OpaqueState | None, is_kept: bool
) -> None:
    request = chat(provider).lower([user("Go."), assistant(ThinkingBlock("Hm.", state), "Done.")]).request
    message = request["messages"][1]
    assert message.get("reasoning_content") == ("Hm." if is_kept else None)
    assert texts_of(message) == ["Done."]


@pytest.mark.parametrize("provider", BOTH)
def test_no_message_has_a_speaker_name(provider: str) -> None:
    request = chat(provider).lower([user("Hi.", name="Mr Smith 张三"), assistant("Ho.")]).request
    assert all("name" not in message for message in request["messages"])


@pytest.mark.parametrize("model", [None, TEXT_MODEL])
def test_a_blank_text_is_omitted(model: str | None) -> None:
    messages = _messages([user("Go.", " "), assistant(TextBlock("")), user("On.")], model)
    assert len(messages) == 2
    assert [len(texts_of(message)) for message in messages] == [1, 1]
