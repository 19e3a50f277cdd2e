"""`render_chat`: renders messages with the chat template of a model, as transformers does.

The rules are those of `apply_chat_template` in transformers 5 (`transformers/utils/chat_template_utils.py`). The
tests compare the texts of agentkit and transformers.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from agentkit.errors import MissingExtraError, TemplateError
from agentkit.jinja_environments.chat_continuation import find_continued_end, mark_continued_text
from agentkit.jinja_environments.chat_variables import ChatVariables, build_values
from agentkit.jinja_environments.environments import model_environment
from agentkit.jinja_environments.generation_spans import (
    MARKS,
    SPAN_END,
    SPAN_START,
    choose_marks,
    count_marks,
    create_mark_printer,
    remove_marks,
)
from agentkit.jinja_environments.template_errors import find_template_line

if TYPE_CHECKING:
    from jinja2 import Template
    from jinja2.sandbox import ImmutableSandboxedEnvironment

__all__ = ["ChatTemplateCode", "Rendering", "compile_chat", "list_literals", "render_chat"]

_MAX_SOURCE: Final = 100_000  # characters. To compile one character, Python needs up to 5 KB of memory


class Rendering(NamedTuple):
    """Text of a rendered conversation.

    Attributes:
        text: The text.
        spans: Start and end of the output of each block `{% generation %}`, as indexes of `text`.
    """

    text: str
    spans: tuple[tuple[int, int], ...] = ()


class ChatTemplateCode(NamedTuple):
    """Compiled chat template.

    Attributes:
        template: Compiled template of jinja.
        has_spans: True if the source contains `endgeneration`, so the template may have a block `generation`.
        captures_spans: True if the template captures the output of a block `generation`, for example with `set`.
    """

    template: Template
    has_spans: bool
    captures_spans: bool


def render_chat(
    source: str, chat: ChatVariables, *, name: str = "chat template", continued: str | None = None
) -> Rendering:
    """Renders messages with a chat template.

    Keys of a message with the value None are omitted. Thinking is available as `reasoning_content` and `thinking`.

    Args:
        source: Text of the template.
        chat: Variables of the template.
        name: Name of the template in errors.
        continued: Key in the last message, such as `content`. The model continues the value of this key, so the
            text ends after this value. None if the text ends after the last message.

    Raises:
        TemplateError: The template is invalid, refuses the messages, or exceeds a limit. With `continued`, also if
            the last message has no value to continue, or if the template does not write this value.
        MissingExtraError: The package jinja2 is not installed.
    """
    code, values = compile_chat(source, name), build_values(chat)
    if not continued:
        return _render(code, values, name)
    continued_text = mark_continued_text(values["messages"], continued, source, name)
    text, spans = _render(code, values, name)
    end = find_continued_end(text, continued_text, name)
    return Rendering(text[:end], tuple((start, min(stop, end)) for start, stop in spans if start < end))


def compile_chat(source: str, name: str = "chat template") -> ChatTemplateCode:
    """Compiles a chat template. The results are cached.

    Raises:
        TemplateError: The template is invalid, too long or nested too deeply.
        MissingExtraError: The package jinja2 is not installed.
    """
    if len(source) > _MAX_SOURCE:
        raise TemplateError(name, f"the template has {len(source):,} characters. The limit is {_MAX_SOURCE:,}")
    try:
        return _compile(source)
    except MissingExtraError:
        raise
    except Exception as error:  # a template can cause any error
        raise _as_syntax_error(error, name) from error


def _as_syntax_error(error: Exception, name: str) -> TemplateError:
    from jinja2 import TemplateSyntaxError

    if isinstance(error, TemplateSyntaxError):
        return TemplateError(name, error.message or str(error), error.lineno)
    if isinstance(error, RecursionError | MemoryError | SyntaxError):  # raised by Python's compiler
        return TemplateError(name, "the template is nested too deeply")
    return TemplateError(name, str(error))  # for example, a ValueError about a number with too many digits


@lru_cache(64)
def _compile(source: str) -> ChatTemplateCode:
    environment = _get_environment()
    from jinja2 import nodes

    tree = environment.parse(source)
    has_spans = "endgeneration" in source
    captures: Any = (nodes.Macro, nodes.CallBlock, nodes.FilterBlock, nodes.AssignBlock)
    captures_spans = has_spans and any(
        name.name == SPAN_START for node in tree.find_all(captures) for name in node.find_all(nodes.Name)
    )
    return ChatTemplateCode(environment.from_string(tree), has_spans, captures_spans)


@cache
def _get_environment() -> ImmutableSandboxedEnvironment:
    return model_environment()


def _render(code: ChatTemplateCode, values: dict[str, Any], name: str) -> Rendering:
    if not code.has_spans:
        return Rendering(_render_text(code.template, values, name))
    rendering, is_certain = _render_marked(code, values, MARKS, name)
    if not is_certain:  # a value contains a mark, or a filter changed a mark
        rendering, is_certain = _render_marked(code, values, choose_marks(values), name)
    if code.captures_spans or not is_certain:
        text = _render_text(code.template, values, name)
        return rendering if is_certain and rendering.text == text else Rendering(text)
    return rendering


def _render_marked(
    code: ChatTemplateCode, values: dict[str, Any], marks: tuple[str, str], name: str
) -> tuple[Rendering, bool]:
    """Renders with a mark at both ends of each span.

    The second value is True if the text contains exactly as many marks as the template printed.
    """
    start, end = map(create_mark_printer, marks)
    marked = _render_text(code.template, {**values, SPAN_START: start, SPAN_END: end}, name)
    rendering = Rendering(*remove_marks(marked, *marks))
    return rendering, len(marked) - len(rendering.text) == count_marks(start) + count_marks(end)


def _render_text(template: Template, values: Mapping[str, Any], name: str) -> str:
    try:
        return template.render(values)
    except Exception as error:  # a template can raise any error
        raise _as_rendering_error(error, name) from error


def _as_rendering_error(error: Exception, name: str) -> TemplateError:
    _, line = find_template_line(error, {"<template>"})
    reason = "the template is nested too deeply" if isinstance(error, RecursionError) else str(error)
    return TemplateError(name, reason or type(error).__name__, line)


def list_literals(source: str) -> list[str]:
    """Returns the string constants of a chat template, and its texts outside of statements and expressions.

    Raises:
        TemplateError: The template is invalid.
        MissingExtraError: The package jinja2 is not installed.
    """
    from jinja2 import nodes

    compile_chat(source)
    literals: list[str] = []
    for node in _get_environment().parse(source).find_all((nodes.TemplateData, nodes.Const)):
        text = getattr(node, "data", None) or getattr(node, "value", None)
        if isinstance(text, str):
            literals.append(text)
    return literals
