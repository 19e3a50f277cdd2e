"""Templates in the files of a model: a folder of a tokenizer, and a GGUF file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agentkit import Msg, OptionError
from agentkit.chat_templates import ChatTemplate
from tests.cases import each_case

USER = Msg("Bob", "Hi <|end|>", "user")


def write_json(path: Path, value: Any) -> None:
    path.write_text(json.dumps(value), encoding="utf-8")


def test_a_folder_has_the_template_and_the_tokens(tmp_path: Path) -> None:
    config: dict[str, Any] = {
        "chat_template": "{{ bos_token }}{{ messages[0].content }}{{ image_token }}",
        "bos_token": {"content": "<s>", "lstrip": False},
        "eos_token": "</s>",
        "unk_token": None,
        "add_bos_token": True,
        "extra_special_tokens": {"image_token": "<image>"},
        "added_tokens_decoder": {"1": {"content": "<|start|>"}},
        "response_template": {"fields": {}},
    }
    write_json(tmp_path / "tokenizer_config.json", config)
    write_json(tmp_path / "tokenizer.json", {"added_tokens": [{"content": "<|end|>", "special": True}]})
    template = ChatTemplate.from_folder(tmp_path)
    assert template.render([USER]).text == "<s>Hi <|end|><image>"
    assert template.render([USER], on_special_tokens="space").text == "<s>Hi < |end|><image>"
    assert template.special_tokens == {
        "bos_token": "<s>",
        "eos_token": "</s>",
        "image_token": "<image>",
    }
    assert (template.name, template.control_tokens) == (tmp_path.name, frozenset({"<|end|>", "<|start|>"}))
    assert template.response_template == {"fields": {}}


def test_files_have_precedence_over_the_configuration(tmp_path: Path) -> None:
    named = [
        {"name": name, "template": text} for name, text in (("default", "a"), ("rag", "b"), ("tool_use", "c"))
    ]
    write_json(tmp_path / "tokenizer_config.json", {"chat_template": named})
    write_json(tmp_path / "chat_template.json", {"chat_template": "old"})
    template = ChatTemplate.from_folder(str(tmp_path))
    assert (template.jinja, template.additional_templates) == ("a", {"rag": "b", "tool_use": "c"})
    (tmp_path / "chat_template.jinja").write_text("d", encoding="utf-8")
    (tmp_path / "additional_chat_templates").mkdir()
    (tmp_path / "additional_chat_templates" / "rag.jinja").write_text("e", encoding="utf-8")
    template = ChatTemplate.from_folder(tmp_path)
    assert (template.jinja, template.additional_templates) == ("d", {"rag": "e", "tool_use": "c"})
    (tmp_path / "tokenizer_config.json").unlink()
    (tmp_path / "chat_template.jinja").unlink()
    assert ChatTemplate.from_folder(tmp_path).jinja == "old"


@each_case(
    ("content", "reason"),
    [(None, "has no chat template"), ("{", "is not valid JSON"), ("[]", "has no chat template")],
)
def test_a_folder_without_a_template_is_refused(tmp_path: Path, content: str | None, reason: str) -> None:
    if content is not None:
        (tmp_path / "tokenizer_config.json").write_text(content, encoding="utf-8")
    with pytest.raises(OptionError, match=reason):
        ChatTemplate.from_folder(tmp_path)
    with pytest.raises(OptionError, match="does not exist"):
        ChatTemplate.from_folder(tmp_path / "missing")


def write_gguf(
    path: Path, template: str | None, others: dict[str, str], adds_bos: bool | None = None, pre: str = ""
) -> None:
    from gguf import GGUFWriter

    writer: Any = GGUFWriter(str(path), "llama")
    if template is not None:
        writer.add_chat_template([{"name": name, "template": text} for name, text in others.items()] or template)
        if others:
            writer.add_string("tokenizer.chat_template", template)
    writer.add_token_list(["<s>", "</s>", "<|end|>", "a"])
    writer.add_token_types([3, 3, 3, 1])
    if adds_bos is not None:
        writer.add_add_bos_token(adds_bos)
    if pre:
        writer.add_tokenizer_model("llama" if pre == "llama" else "gpt2")
        writer.add_tokenizer_pre(pre)
    writer.add_bos_token_id(0)
    writer.add_eos_token_id(1)
    writer.add_pad_token_id(99)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def test_a_gguf_file_has_the_template_and_the_tokens(tmp_path: Path) -> None:
    path = tmp_path / "model.gguf"
    write_gguf(path, "{{ bos_token }}{{ messages[0].content }}", {"tool_use": "tools"})
    template = ChatTemplate.from_gguf(path)
    assert template.render([USER], on_special_tokens="space").text == "<s>Hi < |end|>"
    assert template.additional_templates == {"tool_use": "tools"}
    assert template.special_tokens == {"bos_token": "<s>", "eos_token": "</s>"}
    assert (template.name, template.control_tokens) == ("model", frozenset({"<s>", "</s>", "<|end|>"}))


@each_case(
    ("adds_bos", "pre", "expected"),
    [
        (None, "", False),
        (True, "", True),
        (False, "llama-bpe", False),
        (None, "llama-bpe", True),
        (None, "tekken", True),
        (None, "qwen2", False),
        (None, "llama", True),
    ],
)
def test_a_gguf_file_says_whether_the_server_adds_the_bos_token(
    adds_bos: bool | None, pre: str, expected: bool, tmp_path: Path
) -> None:
    write_gguf(tmp_path / "model.gguf", "{{ bos_token }}", {}, adds_bos, pre)
    assert ChatTemplate.from_gguf(tmp_path / "model.gguf").adds_bos is expected


def test_a_gguf_file_without_a_template_is_refused(tmp_path: Path) -> None:
    write_gguf(tmp_path / "model.gguf", None, {})
    with pytest.raises(OptionError, match="has no chat template"):
        ChatTemplate.from_gguf(tmp_path / "model.gguf")
    (tmp_path / "text.gguf").write_text("no model")
    with pytest.raises(OptionError, match="is not a GGUF file"):
        ChatTemplate.from_gguf(tmp_path / "text.gguf")
    with pytest.raises(OptionError, match="does not exist"):
        ChatTemplate.from_gguf(tmp_path / "missing.gguf")


@each_case(
    ("name", "content"),
    [
        ("chat_template.jinja", b"\xff\xfe"),
        ("additional_chat_templates/rag.jinja", b"\xff"),
        ("tokenizer_config.json", b"[" * 200_000),
        ("tokenizer_config.json", b"\xff"),
    ],
)
def test_a_damaged_file_of_a_folder_is_refused(tmp_path: Path, name: str, content: bytes) -> None:
    (tmp_path / "additional_chat_templates").mkdir(exist_ok=True)
    (tmp_path / name).write_bytes(content)
    with pytest.raises(OptionError, match="ownload the file again"):
        ChatTemplate.from_folder(tmp_path)
    (tmp_path / name).unlink()


def test_tokens_of_an_unknown_form_are_ignored(tmp_path: Path) -> None:
    (tmp_path / "chat_template.jinja").write_text("a", encoding="utf-8")
    write_json(tmp_path / "tokenizer.json", {"added_tokens": 5})
    assert ChatTemplate.from_folder(tmp_path).control_tokens == frozenset()


def test_a_damaged_gguf_file_gives_an_option_error(tmp_path: Path) -> None:
    path = tmp_path / "model.gguf"
    write_gguf(path, "a template", {})
    content = path.read_bytes()
    key = content.index(b"tokenizer.ggml.eos_token_id") + len("tokenizer.ggml.eos_token_id")
    damaged = [content.replace(b"a template", b"\xff template"), content[: key + 4], content[:-9]]
    damaged += [content[:size] for size in range(0, key, 40)]
    for part in damaged:
        path.write_bytes(part)
        with pytest.raises(OptionError, match=r"GGUF file|no chat template"):
            ChatTemplate.from_gguf(path)


@each_case("source", [None, 5, b"a", "a" * 5_000])
def test_a_source_that_is_no_path_is_refused(source: Any) -> None:
    for read in (ChatTemplate.from_folder, ChatTemplate.from_gguf):
        with pytest.raises(OptionError, match=r"^(folder|path): "):
            read(source)
