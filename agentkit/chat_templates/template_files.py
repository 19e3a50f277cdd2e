"""Reads chat templates from the files of a model: a folder as on Hugging Face, or a GGUF file.

In a folder, `chat_template.jinja` has precedence over `tokenizer_config.json`. Files in the folder
`additional_chat_templates` have precedence over the named templates in `tokenizer_config.json` (Hugging Face, chat
templates).
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, cast

from agentkit.chat_templates.chat_template import ChatTemplate
from agentkit.errors import MissingExtraError, OptionError
from agentkit.json_values import as_list, as_object
from agentkit.reprs import shorten_repr

__all__ = ["read_folder", "read_gguf", "read_json", "read_text"]

_GGUF_TEMPLATE: Final = "tokenizer.chat_template"
_GGUF_TOKENS: Final = ("bos", "eos", "unknown", "padding", "eot", "eom")
_GGUF_USED: Final = re.compile(
    r"tokenizer\.chat_template(\..*)?|tokenizer\.ggml\.(model|pre|tokens|token_type|add_bos_token|\w+_token_id)"
)
_GGUF_ADDS_BOS: Final = "tokenizer.ggml.add_bos_token"
_BOS_PRETOKENIZERS: Final = frozenset(
    {"llama3", "llama-v3", "llama-bpe", "falcon3", "falcon-h1", "pixtral", "midm-2.0", "lfm2", "jina-v5-nano"}
    | {"tekken", "chameleon"}
)
"""Names in `tokenizer.ggml.pre` for which llama.cpp adds the bos token if `add_bos_token` is missing.

Source: llama.cpp, src/llama-vocab.cpp (read 2026-11-26).
"""
_CONTROL_TYPE: Final = 3  # type of a control token in `tokenizer.ggml.token_type` (llama.cpp: llama_token_type)


def read_folder(folder: Path) -> ChatTemplate:
    """Reads a template from the files of a tokenizer.

    Raises:
        OptionError: The folder does not exist or has no template, or a file cannot be read.
        TemplateError: The text of a template is invalid.
        MissingExtraError: The package jinja2 is not installed.
    """
    if not os.path.isdir(folder):  # `Path.is_dir` raises an error for a name that is too long
        reason = f"the folder {shorten_repr(str(folder), 200)} does not exist"
        raise OptionError("folder", reason, "Pass the folder with the files of the tokenizer.")
    config = read_json(folder / "tokenizer_config.json")
    sources = {
        **_read_sources(read_json(folder / "chat_template.json").get("chat_template")),
        **_read_sources(config.get("chat_template")),
        **dict(_read_jinja_files(folder)),
    }
    if not sources:
        reason = f"the folder {shorten_repr(str(folder), 200)} has no chat template"
        raise OptionError("folder", reason, "Pass a folder with a chat template, or use a built-in template.")
    return ChatTemplate(
        sources.pop("default", None),
        special_tokens=_read_special_tokens(config),
        additional_templates=sources,
        name=folder.name or "chat template",
        control_tokens=frozenset(_list_control_tokens(folder, config)),
        response_template=as_object(config.get("response_template")) or None,
    )


def read_json(path: Path) -> dict[str, Any]:
    """Returns the JSON object in a file. Returns an empty dict if there is no such file, or no object in the file.

    Raises:
        OptionError: The file cannot be read, or is not valid JSON.
    """
    text = read_text(path) or "{}"
    try:
        return as_object(json.loads(text))
    except (ValueError, RecursionError) as error:
        reason = f"the file {shorten_repr(str(path), 200)} is not valid JSON ({error})"
        raise OptionError("folder", reason, "Download the file again.") from None


def read_text(path: Path) -> str | None:
    """Returns the text of a file. Returns None if there is no such file.

    Raises:
        OptionError: The file cannot be read, or is not UTF-8.
    """
    if not os.path.isfile(path):
        return None
    try:
        return path.read_text("utf-8")
    except (OSError, ValueError) as error:
        reason = f"the file {shorten_repr(str(path), 200)} cannot be read ({error})"
        advice = "Check the permissions and the encoding, or download the file again."
        raise OptionError("folder", reason, advice) from None


def _read_sources(value: object) -> dict[str, str]:
    """Returns templates by name. `value` is one template, or a list of dicts with `name` and `template`."""
    if isinstance(value, str):
        return {"default": value}
    items = [as_object(item) for item in cast("list[object]", value)] if isinstance(value, list) else []
    return {str(item["name"]): str(item["template"]) for item in items if "name" in item and "template" in item}


def _read_jinja_files(folder: Path) -> Iterator[tuple[str, str]]:
    for path in sorted(folder.glob("additional_chat_templates/*.jinja")):
        if (text := read_text(path)) is not None:
            yield path.stem, text
    if (text := read_text(folder / "chat_template.jinja")) is not None:
        yield "default", text


def _read_token(token: object) -> str:
    """Returns the text of a token: a string, or the `content` of a dict. Returns "" for other values."""
    return token if isinstance(token, str) else str(as_object(token).get("content", ""))


def _read_special_tokens(config: Mapping[str, Any]) -> dict[str, str]:
    """Returns the special tokens by name, such as `bos_token`. Templates read them as variables."""
    tokens = {name: token for name, token in config.items() if name.endswith("_token")}
    for name in ("extra_special_tokens", "model_specific_special_tokens"):
        tokens.update(as_object(config.get(name)))
    return {
        name: text
        for name, token in tokens.items()
        if not isinstance(token, bool) and (text := _read_token(token))
    }


def _list_control_tokens(folder: Path, config: Mapping[str, Any]) -> Iterator[str]:
    """Yields the added tokens of a tokenizer. The tokenizer encodes each added token in a text as one token."""
    added = as_list(read_json(folder / "tokenizer.json").get("added_tokens"))
    for token in (*added, *as_object(config.get("added_tokens_decoder")).values()):
        if text := _read_token(token).strip():
            yield text


def read_gguf(path: Path) -> ChatTemplate:
    """Reads the template of a GGUF file.

    Raises:
        MissingExtraError: The package gguf or jinja2 is not installed.
        OptionError: The file does not exist, is not a GGUF file, or has no template.
        TemplateError: The text of a template is invalid.
    """
    try:
        from gguf import GGUFReader
    except ImportError:
        raise MissingExtraError("gguf", "templates", "Reading a GGUF file") from None
    if not os.path.isfile(path):
        reason = f"the file {shorten_repr(str(path), 200)} does not exist"
        raise OptionError("path", reason, "Pass the path of a GGUF file.")
    try:
        fields = {
            name: item.contents()
            for name, item in cast("Any", GGUFReader(str(path))).fields.items()
            if _GGUF_USED.fullmatch(name)
        }
    except (ArithmeticError, LookupError, MemoryError, OSError, TypeError, ValueError) as error:
        reason = f"the file {shorten_repr(str(path), 200)} is not a GGUF file, or is damaged ({error})"
        raise OptionError("path", reason, "Pass the path of a GGUF file.") from None
    prefix = f"{_GGUF_TEMPLATE}."
    sources = {name.removeprefix(prefix): str(fields[name]) for name in fields if name.startswith(prefix)}
    if _GGUF_TEMPLATE in fields:
        sources["default"] = str(fields[_GGUF_TEMPLATE])
    if not sources:
        reason = f"the file {shorten_repr(str(path), 200)} has no chat template"
        raise OptionError("path", reason, "Pass a file with a chat template, or use a built-in template.")
    tokens = [*_read_gguf_tokens(fields)]
    return ChatTemplate(
        sources.pop("default", None),
        special_tokens=_read_gguf_special_tokens(fields, [text for text, _ in tokens]),
        additional_templates=sources,
        name=path.stem,
        control_tokens=frozenset(text for text, kind in tokens if kind == _CONTROL_TYPE),
        adds_bos=_adds_bos(fields),
    )


def _adds_bos(fields: Mapping[str, Any]) -> bool:
    """Returns True if the tokenizer of llama.cpp adds the bos token to a text."""
    if _GGUF_ADDS_BOS in fields:
        return bool(fields[_GGUF_ADDS_BOS])
    model, pre = (str(fields.get(key, "")) for key in ("tokenizer.ggml.model", "tokenizer.ggml.pre"))
    return model == "llama" or pre in _BOS_PRETOKENIZERS


def _read_gguf_tokens(fields: Mapping[str, Any]) -> Iterator[tuple[str, int]]:
    """Yields the text and the type of each token. The type is 0 if it is unknown."""
    kinds = as_list(fields.get("tokenizer.ggml.token_type"))
    for index, text in enumerate(as_list(fields.get("tokenizer.ggml.tokens"))):
        yield str(text), cast("int", kinds[index]) if index < len(kinds) else 0


def _read_gguf_special_tokens(fields: Mapping[str, Any], texts: list[str]) -> dict[str, str]:
    tokens: dict[str, str] = {}
    for name in _GGUF_TOKENS:
        index = fields.get(f"tokenizer.ggml.{name}_token_id")
        if isinstance(index, int) and 0 <= index < len(texts):
            tokens[{"unknown": "unk_token", "padding": "pad_token"}.get(name, f"{name}_token")] = texts[index]
    return tokens
