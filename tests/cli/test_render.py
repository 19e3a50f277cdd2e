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
    assert call("render", str(file), "--template", str(source))[:2] == (0, "2")
    file.write_text(json.dumps({**dump_messages(MSGS), "tools": TOOLS}), "utf-8")
    assert call("render", str(file), "--template", str(source))[:2] == (0, "2look")
    (tmp_path / "chat_template.jinja").write_text("folder", "utf-8")
    assert call("render", str(file), "--template", str(tmp_path))[:2] == (0, "folder")


def test_omitted_blocks_are_listed(call: Call, file: Path, tmp_path: Path) -> None:
    source = tmp_path / "first.jinja"
    source.write_text("{{ messages[0].content }}", "utf-8")
    code, out, err = call("render", str(file), "--template", str(source))
    assert (code, out) == (0, "Où?")
    assert err == "agentkit: msgs[1].content[0]: omitted: the chat template does not write this content\n"


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


def test_a_tokenizer_neither_cuts_nor_pads(call: Call, file: Path, tmp_path: Path) -> None:
    tokenizer = cast("Any", tokenizers).Tokenizer(models.WordLevel({"?": 0, "Here": 1}, unk_token="?"))
    tokenizer.enable_truncation(2)
    tokenizer.enable_padding(length=99)
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    code, out, _ = call("render", str(file), "--template", "zephyr", "--tokens", str(tmp_path))
    assert (code, json.loads(out)["tokens"]) == (0, [0])


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
        (
            ("--template", "zephyr", "--tokens", "missing"),
            "--tokens: there is no tokenizer.json in the folder 'missing'",
        ),
        ((), "Missing option '--template'"),
        (("--template", ""), "--template: there is no built-in template and no file ''"),
        (("--template", "a" * 5_000), "--template: there is no built-in template and no file 'aaa"),
        (("--template", "latin.jinja"), "--template: the file 'latin.jinja' cannot be read"),
        (("--template", "empty"), "--template: the folder 'empty' has no chat template"),
        (("--template", "empty.gguf"), "--template: the file 'empty.gguf' is not a GGUF file"),
        (
            ("--template", "zephyr", "--tokens", "a" * 5_000),
            "--tokens: there is no tokenizer.json in the folder 'aaa",
        ),
        (
            ("--template", "zephyr", "--tokens", "damaged"),
            "--tokens: the file 'damaged/tokenizer.json' has no tok",
        ),
        (("--template", "zephyr", "--tokens", "words"), "encode: the tokenizer cannot encode a text ("),
    ],
)
def test_a_wrong_option_is_one_line(
    call: Call, file: Path, monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...], text: str
) -> None:
    folder = file.parent
    monkeypatch.chdir(folder)
    (folder / "latin.jinja").write_bytes(b"\xe9")
    (folder / "empty.gguf").touch()
    for name in ("empty", "damaged", "words"):
        (folder / name).mkdir()
    (folder / "damaged" / "tokenizer.json").write_bytes(b"{")
    tokenizer = cast("Any", tokenizers).Tokenizer(models.WordLevel({"Here": 1}, unk_token="?"))
    tokenizer.save(str(folder / "words" / "tokenizer.json"))
    code, out, err = call("render", str(file), *options)
    assert (code, out) == (2, "")
    assert text in err
    assert err.count("\n") == 1


def test_an_error_of_the_template_has_its_line(call: Call, file: Path, tmp_path: Path) -> None:
    source = tmp_path / "bad.jinja"
    source.write_text("\n{{ raise_exception('No.') }}", "utf-8")
    code, _, err = call("render", str(file), "--template", str(source))
    assert (code, err.startswith("agentkit: bad.jinja, line 2: No.")) == (2, True)


def test_a_log_of_a_provider_is_rendered(call: Call, tmp_path: Path) -> None:
    log = tmp_path / "log.json"
    log.write_text(
        json.dumps([{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Yes?"}]), "utf-8"
    )
    code, _, error = call("render", str(log), "--template", "chatml")
    assert (code, "--from openai on the command line" in error) == (2, True)
    assert call("render", str(log), "--template", "chatml", "--from", "openai")[1].endswith("Yes?<|im_end|>\n")
    code, _, error = call("render", str(log), "--template", "chatml", "--from", "opena")
    assert (code, "openai" in error) == (2, True)
