"""`find_template` and `find_response_template`: find templates by name, by path or by declaration."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agentkit.chat_templates.builtin_templates import BUILTIN_NAMES
from agentkit.chat_templates.chat_template import ChatTemplate
from agentkit.chat_templates.template_files import read_text
from agentkit.errors import OptionError
from agentkit.reprs import shorten_repr

if TYPE_CHECKING:
    from agentkit.chat_templates.responses.response_template import ResponseTemplate

__all__ = ["find_response_template", "find_template"]


def find_template(source: ChatTemplate | str | Path | None, place: str = "template") -> ChatTemplate:
    """Finds a chat template.

    Args:
        source: A template, the name of a built-in template, or a path: a folder with the files of a tokenizer, a
            GGUF file, or a file with the text of a template.
        place: Name of the option in errors.

    Raises:
        OptionError: `source` is None or has a wrong type, there is no template with this name or path, or a file
            is damaged.
        TemplateError: The text of the template is invalid.
        MissingExtraError: The package jinja2 is not installed. Or `source` is a GGUF file, and the package gguf is
            not installed.

    Example:
        >>> find_template("zephyr").name
        'zephyr'
    """
    if isinstance(source, ChatTemplate):
        return source
    if not isinstance(source, str | Path):
        value = "none was passed" if source is None else f"got {shorten_repr(source, 60)}"
        advice = (
            "Pass ChatTemplate.from_folder(…) with the files of the model, or the name of a built-in template."
        )
        raise OptionError(place, f"expected a chat template, {value}", advice)
    path = str(source)
    try:
        if os.path.isdir(path):  # `Path.is_dir` raises an error for a name that is too long
            return ChatTemplate.from_folder(path)
        if path.endswith(".gguf"):
            return ChatTemplate.from_gguf(path)
        text = read_text(Path(path))
    except OptionError as error:
        raise OptionError(place, error.reason, error.advice) from None
    if text is not None:
        return ChatTemplate(text, name=Path(path).name)
    if path not in BUILTIN_NAMES:
        reason = f"there is no built-in template and no file {shorten_repr(path, 200)}"
        raise OptionError(place, reason, f"Use {', '.join(BUILTIN_NAMES)}, or the path of a file or folder.")
    return ChatTemplate.builtin(path)


def find_response_template(source: ResponseTemplate | Mapping[str, Any] | str) -> ResponseTemplate:
    """Finds a response template.

    Args:
        source: A response template, its declaration, or the name of a built-in response template.

    Raises:
        OptionError: `source` has a wrong type or is invalid, or there is no response template with this name.
        MissingExtraError: The package regex is not installed.
    """
    from agentkit.chat_templates.responses.response_template import RESPONSE_NAMES, ResponseTemplate

    if isinstance(source, ResponseTemplate):
        return source
    if isinstance(source, Mapping):
        return ResponseTemplate(source)
    if source not in RESPONSE_NAMES:
        reason = f"expected a response template, got {shorten_repr(source, 60)}"
        advice = f"Pass a ResponseTemplate, a declaration, or one of the names {', '.join(RESPONSE_NAMES)}."
        raise OptionError("response_template", reason, advice)
    return ResponseTemplate.builtin(source)
