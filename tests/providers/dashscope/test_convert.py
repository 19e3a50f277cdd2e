"""DashScope's native API: the path of each model, and texts that its SDK would read as paths of files."""

import asyncio
from pathlib import Path
from typing import Final

import pytest

from agentkit import (
    AudioBlock,
    ImageBlock,
    Msg,
    OpaqueBlock,
    OpaqueState,
    OptionError,
    TextBlock,
    ToolResultBlock,
    URLSource,
    VideoBlock,
)
from agentkit_dashscope import DashScopeChatFormatter, DashScopeMultiAgentFormatter
from tests.cases import each_case
from tests.providers import LOOK, assistant, call, get_texts, picture, system, user
from tests.wire.loopback import get_expected_body, send


@each_case(
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
@each_case("formatter", [DashScopeChatFormatter(), DashScopeMultiAgentFormatter()])
@each_case("text", TRAPS)
def test_a_user_text_that_names_a_local_file_is_sent_as_text(text: str, formatter: DashScopeChatFormatter) -> None:
    request = formatter.lower([user(text), assistant(text), user(text, picture(), name=text)]).request
    captured = asyncio.run(send("dashscope", request))
    assert captured.other_paths == []
    assert captured.body == get_expected_body("dashscope", request)
    assert any(text.splitlines()[-1] in part for part in get_texts(request["messages"][0]))


SENTENCE: Final = "No name of a file is so long as this one sentence is; " * 6


@each_case("text", [SENTENCE, f"{SENTENCE} and/or this", f"~/{SENTENCE}", "x" * 256, "https://x.org"])
def test_a_text_that_is_not_a_path_is_sent_unchanged(text: str) -> None:
    plan = DashScopeChatFormatter().lower([Msg("user", text, "user")])
    assert plan.request["messages"] == [{"role": "user", "content": [{"text": text}]}]
    assert plan.ledger.entries[0].details == ()


def test_the_ledger_notes_each_text_with_an_added_line_break() -> None:
    msgs = [Msg("user", "hi", "user"), Msg("assistant", "hi", "assistant"), Msg("user", "\nhi", "user")]
    note = "line break added before the text: otherwise the SDK could treat the text as a path and upload the file"
    unsaid = (note,)
    plan = DashScopeChatFormatter().lower(msgs)
    assert [entry.details for entry in plan.ledger.entries] == [unsaid, (), ()]
    for formatter in (DashScopeChatFormatter(path="text"), DashScopeMultiAgentFormatter()):
        assert not any(entry.details for entry in formatter.lower(msgs).ledger.entries)


@pytest.mark.usefixtures("_files")
@each_case("url", ["notes", "./notes.txt", "file:///etc/passwd", "~/notes", "/etc/passwd"])
@each_case("kind", [ImageBlock, AudioBlock, VideoBlock])
def test_media_at_the_path_of_a_local_file_are_not_uploaded(
    url: str, kind: type[ImageBlock | AudioBlock | VideoBlock]
) -> None:
    request = asyncio.run(DashScopeChatFormatter().format([user("See.", kind(URLSource(url)))]))
    captured = asyncio.run(send("dashscope", request))
    assert captured.other_paths == []
    assert [set(part) for part in request["messages"][0]["content"]] == [{"text"}, {"text"}]


def test_only_the_last_text_of_the_last_message_asks_the_model_to_continue() -> None:
    partial = TextBlock("It is", state=OpaqueState("dashscope", fields={"message.partial": True}))
    request = DashScopeChatFormatter().lower([user("Go."), assistant(partial, "late.")]).request
    assert request["messages"][-1] == {"role": "assistant", "content": [{"text": "It is"}, {"text": "late."}]}
    request = DashScopeChatFormatter().lower([user("Go."), assistant("It is", partial)]).request
    assert request["messages"][-1]["partial"] is True
    question = Msg("Bob", [partial], "user")
    assert "partial" not in DashScopeChatFormatter().lower([question]).request["messages"][-1]


def test_a_tool_result_that_names_a_local_file_is_sent_unchanged() -> None:
    output = (TextBlock("notes"), OpaqueBlock("dashscope", {"custom": 1}))
    msgs = [user("Go."), assistant(call("c1")), system(ToolResultBlock("c1", "look", output))]
    content = DashScopeChatFormatter().lower(msgs, tools=[LOOK]).request["messages"][-1]["content"]
    assert content == [{"text": "notes"}, {"custom": 1}]
