"""`TemplateSources`: the texts of a chat template, or a function that writes the prompts instead."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from functools import cached_property
from typing import Any, Final, TypeAlias

from agentkit.argument_checks import check_option, check_text
from agentkit.errors import OptionError, TemplateError
from agentkit.jinja_environments.chat_rendering import Rendering, compile_chat, render_chat
from agentkit.jinja_environments.chat_variables import ChatVariables
from agentkit.json_values import copy_json
from agentkit.reprs import bounded_repr, describe_value, shorten_repr

__all__ = ["FUNCTION_ADVICE", "TemplateFunction", "TemplateSources"]

TemplateFunction: TypeAlias = Callable[[Sequence[Mapping[str, Any]], Mapping[str, Any]], str]
"""Function that takes the messages as dicts and a dict of all other variables, and returns the prompt text."""

FUNCTION_ADVICE: Final = "Pass a function that takes the messages and a dict of variables."
_RESERVED_NAMES: Final = frozenset({"add_generation_prompt", "documents", "messages", "strftime_now", "tools"})
"""Variable names that a special token cannot have, because the token would replace the variable."""


@dataclass(frozen=True, eq=False)
class TemplateSources:
    """Texts of one or more templates, or a function. Each request uses one of the texts, or the function.

    The attributes are those of `ChatTemplate` with the same names.
    """

    jinja: str | None
    _: KW_ONLY
    special_tokens: Mapping[str, str] = field(default_factory=dict[str, str])
    additional_templates: Mapping[str, str] = field(default_factory=dict[str, str])
    name: str = "chat template"
    function: TemplateFunction | None = None

    __repr__ = bounded_repr

    def __post_init__(self) -> None:
        check_option("jinja", self.jinja, str | None, "Pass the text of a template.")
        check_option("name", self.name, str, "Pass the name of the template.")
        check_option("function", self.function, Callable | None, FUNCTION_ADVICE)
        special_tokens = _copy_texts("special_tokens", self.special_tokens, "token")
        for name in sorted(special_tokens.keys() & _RESERVED_NAMES):
            reason = "a special token cannot have the same name as a variable of chat templates"
            raise OptionError(f"special_tokens[{name!r}]", reason, "Use another name.")
        additional = _copy_texts("additional_templates", self.additional_templates, "template")
        object.__setattr__(self, "special_tokens", special_tokens)
        object.__setattr__(self, "additional_templates", additional)
        self._check_sources()

    def _check_sources(self) -> None:
        """Checks that there are either Jinja texts or a function, and compiles the texts."""
        has_texts = self.jinja is not None or bool(self.additional_templates)
        if self.function is None and not has_texts:
            advice = "Pass `jinja`, `additional_templates` or `function`."
            raise OptionError("jinja", "expected the text of a template, got None", advice)
        if self.function is not None and has_texts:
            reason = "cannot be combined with `jinja` or `additional_templates`"
            raise OptionError("function", reason, "Pass either the function or the texts of templates.")
        if self.jinja is not None and "default" in self.additional_templates:
            reason = "`jinja` is already the template with the name 'default'"
            raise OptionError("additional_templates['default']", reason, "Remove one of the two templates.")
        for text in self.sources.values():
            compile_chat(text, self.name)

    def render_variables(self, source: str, chat: ChatVariables, continued: str | None = None) -> Rendering:
        """Renders messages that `convert_messages` converted.

        Args:
            source: Text of the template, from `choose_source`.
            chat: Messages and other variables.
            continued: Key in the last message. The model continues the value of this key. None if the text ends
                after the last message.

        Raises:
            TemplateError: The template refuses the messages, its function fails, or the text exceeds a limit or
                has a lone surrogate.
        """
        if self.function is None:
            rendering = render_chat(source, chat, name=self.name, continued=continued)
        else:
            rendering = Rendering(self._call_function(self.function, chat))
        if not rendering.text.isascii():
            try:
                rendering.text.encode()
            except UnicodeEncodeError:
                reason = "the text has a lone surrogate, which UTF-8 cannot encode"
                raise TemplateError(self.name, reason) from None
        return rendering

    def choose_source(self, name: str | None, has_tools: bool) -> str:
        """Returns the text of the template for a request. Returns an empty string if a function writes the text.

        Args:
            name: Name of the template. None means `tool_use` if this template exists and there are tools, and
                `default` otherwise.
            has_tools: True if the request has tools.

        Raises:
            OptionError: `name` is not a string, or there is no template with the chosen name.
        """
        if self.function is not None:
            return ""
        check_text("chat_template", name)
        sources = self.sources
        chosen = ("tool_use" if has_tools and "tool_use" in sources else "default") if name is None else name
        if chosen not in sources:
            reason = f"no template is named {chosen!r} (existing names: {', '.join(map(repr, sorted(sources)))})"
            raise OptionError("chat_template", reason, "Pass one of these names.")
        return sources[chosen]

    def _call_function(self, function: TemplateFunction, chat: ChatVariables) -> str:
        # The function receives copies, because it can change its arguments.
        messages, tools, documents = map(copy_json, (list(chat.messages), chat.tools, chat.documents))
        others = {"tools": tools, "documents": documents, **chat.others}
        try:
            text = function(messages, {"add_generation_prompt": chat.add_generation_prompt, **others})
        except Exception as error:
            raise TemplateError(self.name, f"the function raised {shorten_repr(error, 200)}") from error
        if not isinstance(text, str):
            raise TemplateError(self.name, f"the function must return a string, got {describe_value(text)}")
        return text

    @cached_property
    def sources(self) -> dict[str, str]:
        """Texts of all templates by name."""
        default = {} if self.jinja is None else {"default": self.jinja}
        return {**default, **self.additional_templates}


def _copy_texts(option: str, texts: Mapping[str, str], noun: str) -> dict[str, str]:
    """Returns a copy of an option that is a dict of texts by name. Errors call a text `noun`, such as "token".

    Raises:
        OptionError: The option has a wrong type.
    """
    check_option(option, texts, Mapping, f"Pass a dict of {noun}s by name.")
    for name, text in texts.items():
        check_option(option, name, str, f"Pass the names of the {noun}s as strings.")
        check_option(f"{option}[{name!r}]", text, str, f"Pass the text of the {noun}.")
    return dict(texts)
