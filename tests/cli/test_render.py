"""The command `render`: the text of a conversation, its spans, its tokens, and errors."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeAlias, cast

import pytest
import tokenizers
from tokenizers import models, pre_tokenizers

from agentkit import Msg, dump_messages
from agentkit.chat_templates import ChatTemplate
from tests.cli.test_cli import call as call_command

Call: TypeAlias = Callable[..., tuple[int, str, str]]

MSGS: Final = [Msg("Bob", "Où?", "user"), Msg("Friday", "Here.", "assistant")]
TOOLS: Final[list[dict[str, Any]]] = [
    {"name": "look", "description": "Looks.", "parameters": {"type": "object", "properties": {}}}
]


@pytest.fixture
def call(capsysbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch) -> Call:
    """Runs the command, and returns exit code, standard output and standard error."""
    return partial(call_command, capsysbinary, monkeypatch)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "conversation.json"
    path.write_text(json.dumps(dump_messages(MSGS)), "utf-8")
    return path


def test_the_command_writes_the_text(call: Call, file: Path, tmp_path: Path) -> None:
    assert call("render", str(file), "--template", "zephyr") == (
        0,
        ChatTemplate.builtin("zephyr").render(MSGS).text,
        "",
    )
    source = tmp_path / "own.jinja"
    source.write_text("{{ messages | length }}{{ tools[0].function.name if tools }}", "utf-8")
    assert call("render", str(file), "--template", str(source)) == (0, "2", "")
    file.write_text(json.dumps({**dump_messages(MSGS), "tools": TOOLS}), "utf-8")
    assert call("render", str(file), "--template", str(source)) == (0, "2look", "")
    (tmp_path / "chat_template.jinja").write_text("folder", "utf-8")
    assert call("render", str(file), "--template", str(tmp_path)) == (0, "folder", "")


def test_the_output_has_spans_and_tokens(call: Call, file: Path, tmp_path: Path) -> None:
    tokenizer = cast("Any", tokenizers).Tokenizer(models.WordLevel({"?": 0, "Here": 1}, unk_token="?"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    rendered = ChatTemplate.builtin("zephyr").render(MSGS)
    code, out, err = call("render", str(file), "--template", "zephyr", "--spans", "--tokens", str(tmp_path))
    assert (code, err) == (0, "")
    assert json.loads(out) == {
        "text": rendered.text,
        "omitted": [],
        "spans": [list(span) for span in rendered.spans],
        "prompt_end": rendered.prompt_end,
        "tokens": tokenizer.encode(rendered.text, add_special_tokens=False).ids,
    }


def test_each_line_is_a_conversation(call: Call, tmp_path: Path) -> None:
    path = tmp_path / "conversations.jsonl"
    stored = dump_messages(MSGS)
    path.write_text("\n".join([json.dumps(stored), "[]", json.dumps(stored)]), "utf-8")
    code, out, _ = call("render", str(path), "--template", "chatml", "--lines")
    first, second, third = map(json.loads, out.splitlines())
    assert code == 2
    assert first == third == {"text": ChatTemplate.builtin("chatml").render(MSGS).text, "omitted": []}
    assert second["error"]["class"] == "EmptyConversationError"


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (("--template", "zefyr"), "--template: there is no built-in template and no file 'zefyr'"),
        (("--template", "zephyr", "--tokens", "missing"), "--tokens: 'missing' has no tokenizer.json"),
        ((), "Missing option '--template'"),
    ],
)
def test_a_wrong_option_is_one_line(call: Call, file: Path, options: tuple[str, ...], text: str) -> None:
    code, out, err = call("render", str(file), *options)
    assert (code, out) == (2, "")
    assert text in err
    assert err.count("\n") == 1


def test_an_error_of_the_template_has_its_line(call: Call, file: Path, tmp_path: Path) -> None:
    source = tmp_path / "bad.jinja"
    source.write_text("\n{{ raise_exception('No.') }}", "utf-8")
    code, _, err = call("render", str(file), "--template", str(source))
    assert (code, err.startswith("agentkit: bad.jinja, line 2: No.")) == (2, True)
