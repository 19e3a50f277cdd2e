"""`ChatTemplate`: writes a conversation in the text format that a model was trained on."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import KW_ONLY, dataclass, field
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias, Unpack, cast

from agentkit.argument_checks import check_choice, check_names, check_option, check_text
from agentkit.chat_templates.control_tokens import OnSpecialTokens, TextGuard, compile_control_tokens
from agentkit.chat_templates.media_placeholders import find_media
from agentkit.chat_templates.message_order import check_roles
from agentkit.chat_templates.omitted_texts import find_omitted_texts
from agentkit.chat_templates.prompt_end import find_prompt_end
from agentkit.chat_templates.rendered_chat import RenderedChat
from agentkit.chat_templates.template_messages import (
    WrittenMessages,
    adapt_message,
    write_messages,
    write_tools,
)
from agentkit.errors import OptionError, TemplateError
from agentkit.formatting.formatter import check_messages
from agentkit.jinja_environments.chat_rendering import (
    ChatVariables,
    Rendering,
    compile_chat,
    list_literals,
    render_chat,
)
from agentkit.jinja_environments.functions import create_clock
from agentkit.jinja_environments.prefix_rendering import PrefixRenderer
from agentkit.json_values import copy_json, make_json_safe
from agentkit.messages.features import Feature
from agentkit.messages.message import Msg
from agentkit.reprs import bounded_repr, describe_value, shorten_repr
from agentkit.tools.tool import ToolLike, as_tools

if TYPE_CHECKING:
    from agentkit.capabilities.capabilities import Capabilities
    from agentkit.chat_templates.template_formatter import ChatTemplateFormatter, ChatTemplateOptions
    from agentkit.chat_templates.template_probes import TemplateProbe
    from agentkit.chat_templates.template_report import TemplateReport

__all__ = ["ChatTemplate", "TemplateFunction"]

TemplateFunction: TypeAlias = Callable[[Sequence[Mapping[str, Any]], Mapping[str, Any]], str]
"""Function that takes the messages as dicts and a dict of all other variables, and returns the prompt text."""

_RESERVED: Final = frozenset({"chat_template", "messages"})
_OWN_VARIABLES: Final = frozenset({"add_generation_prompt", "documents", "messages", "strftime_now", "tools"})
"""Names of variables that a special token cannot have, because the token would replace the variable."""
_FUNCTION_ADVICE: Final = "Pass a function that takes the messages and a dict of variables."
_MEDIA: Final = Feature.IMAGE | Feature.AUDIO | Feature.VIDEO | Feature.DOCUMENT | Feature.RESULT_MEDIA


@dataclass(frozen=True, eq=False)
class ChatTemplate:
    r"""Template that writes a conversation in the text format that a model was trained on.

    Templates are written in Jinja, as in `tokenizer_config.json` of Hugging Face, and run in a sandbox.
    The text equals that of `apply_chat_template` in transformers 5 byte for byte.

    Attributes:
        jinja: Text of the template. None if there are only named templates, or a function.
        special_tokens: Texts of special tokens by name, such as `bos_token`. Templates read them as variables.
        additional_templates: Texts of further templates by name, such as `tool_use` (for requests with tools).
        name: Name of the template in errors and in the ledger.
        control_tokens: Tokens that the tokenizer reads as control tokens, such as `<|im_end|>`. If empty, agentkit
            searches the text of the template, and the text of small test conversations, for control tokens.
        response_template: Declaration of the format of replies (see `ResponseTemplate`). None if there is none.
        adds_bos: True if the tokenizer adds the bos token to each prompt. For a GGUF file, the value comes from
            the metadata that llama.cpp and Ollama read. None if the value is unknown.
        text_separator: Text between two text blocks of a message.
        validates: True if `render` checks the order of roles by default.
        function: Function that writes the text instead of a Jinja template. None for Jinja templates.
        tags: Texts before and after each message of a role, for a template from `from_tags`. None for other
            templates.

    Raises:
        OptionError: An argument has a wrong type, two arguments cannot be combined, or there is no template.
        TemplateError: The text of a template is invalid.
        MissingExtraError: The package jinja2 is not installed, but there is a Jinja template.

    Example:
        >>> from agentkit import Msg
        >>> from agentkit.chat_templates import ChatTemplate
        >>> template = ChatTemplate.builtin("im_start")
        >>> template.render([Msg("Bob", "Hello.", "user")]).text
        '<|im_start|>user\nHello.<|im_end|>\n<|im_start|>assistant\n'
    """

    jinja: str | None
    _: KW_ONLY
    special_tokens: Mapping[str, str] = field(default_factory=dict[str, str])
    additional_templates: Mapping[str, str] = field(default_factory=dict[str, str])
    name: str = "chat template"
    control_tokens: frozenset[str] = frozenset()
    response_template: Mapping[str, Any] | None = None
    adds_bos: bool | None = None
    text_separator: str = "\n"
    validates: bool = False
    function: TemplateFunction | None = None
    tags: Mapping[str, tuple[str, str]] | None = None

    __repr__ = bounded_repr

    def __post_init__(self) -> None:
        check_option("jinja", self.jinja, str | None, "Pass the text of a template.")
        check_option("name", self.name, str, "Pass the name of the template.")
        check_option("control_tokens", self.control_tokens, AbstractSet | list | tuple, "Pass a set of tokens.")
        for token in self.control_tokens:
            check_option("control_tokens", token, str, "Pass the texts of the tokens.")
        check_option("response_template", self.response_template, Mapping | None, "Pass a dict.")
        check_option("adds_bos", self.adds_bos, bool | None)
        check_option("text_separator", self.text_separator, str)
        check_option("validates", self.validates, bool)
        check_option("function", self.function, Callable | None, _FUNCTION_ADVICE)
        special_tokens = _copy_texts("special_tokens", self.special_tokens, "token")
        for name in sorted(special_tokens.keys() & _OWN_VARIABLES):
            reason = "a special token cannot have the same name as a variable of chat templates"
            raise OptionError(f"special_tokens[{name!r}]", reason, "Use another name.")
        copies: dict[str, Any] = {
            "special_tokens": special_tokens,
            "additional_templates": _copy_texts("additional_templates", self.additional_templates, "template"),
            "control_tokens": frozenset(self.control_tokens),
        }
        if self.response_template is not None:
            copies["response_template"] = make_json_safe(dict(self.response_template), "response_template")
        if self.tags is not None:
            from agentkit.chat_templates.tag_templates import check_tags, write_tag_template

            copies["tags"] = tags = check_tags(self.tags)
            if self.jinja != write_tag_template(tags):
                reason = "`jinja` is not the template that writes these tags"
                raise OptionError("tags", reason, "Use ChatTemplate.from_tags to create a template from tags.")
        for name, value in copies.items():
            object.__setattr__(self, name, value)
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
        for text in self._sources.values():
            compile_chat(text, self.name)

    # -- sources -----------------------------------------------------------------------------------------------

    @classmethod
    def builtin(cls, name: str) -> ChatTemplate:
        """Returns a built-in template by its name, such as `im_start`, `llama_3`, `mistral` or `zephyr`.

        See `agentkit.chat_templates.builtin_templates` for all names, and for differences from the original
        formats of the models. For a model with its own template, use `from_folder` or `from_gguf`.

        Raises:
            OptionError: There is no built-in template with this name.
        """
        from agentkit.chat_templates.builtin_templates import load_builtin

        return load_builtin(name)

    @classmethod
    def from_folder(cls, folder: str | Path) -> ChatTemplate:
        """Reads the template of a model from a folder with the files of its tokenizer.

        The templates are in `chat_template.jinja`, `additional_chat_templates/NAME.jinja`,
        `tokenizer_config.json` and `chat_template.json`. At least one of these files must contain a template. The
        special tokens and the control tokens are in `tokenizer_config.json` and `tokenizer.json`.

        Raises:
            OptionError: The folder does not exist or has no template, or a file cannot be read.
            TemplateError: The text of a template is invalid.
            MissingExtraError: The package jinja2 is not installed.
        """
        from agentkit.chat_templates.template_files import read_folder

        check_option("folder", folder, str | Path, "Pass the folder with the files of the tokenizer.")
        return read_folder(Path(folder))

    @classmethod
    def from_gguf(cls, path: str | Path) -> ChatTemplate:
        """Reads the template from a GGUF file of llama.cpp.

        Raises:
            MissingExtraError: The package gguf or jinja2 is not installed.
            OptionError: The file does not exist, is not a GGUF file, or has no template.
            TemplateError: The text of a template is invalid.
        """
        from agentkit.chat_templates.template_files import read_gguf

        check_option("path", path, str | Path, "Pass the path of a GGUF file.")
        return read_gguf(Path(path))

    @classmethod
    def from_tags(cls, tags: Mapping[str, tuple[str, str]], *, name: str = "tags") -> ChatTemplate:
        r"""Returns a template that writes fixed texts (tags) before and after each message, as in torchtune.

        Each role has its own tags. For a role without tags, the template writes only the text of each message.
        `RenderedChat.spans` includes the tags of replies.

        Args:
            tags: Texts before and after a message, by role: `{"user": ("U: ", "\n")}`. The roles are `system`,
                `user`, `assistant` and `tool`.
            name: Name of the template in errors and in the ledger.

        Raises:
            OptionError: `tags` is not a dict, a role is unknown, or its value is not a pair of strings.
        """
        from agentkit.chat_templates.tag_templates import check_tags, write_tag_template

        return cls(write_tag_template(check_tags(tags)), name=name, text_separator="", tags=tags)

    @classmethod
    def from_function(cls, function: TemplateFunction, *, name: str = "function") -> ChatTemplate:
        """Returns a template that calls a function to write the text.

        Args:
            function: Function that takes the messages as dicts, and a dict of all other variables, and returns the
                text.
            name: Name of the template in errors and in the ledger.

        Raises:
            OptionError: `function` is not callable.
        """
        check_option("function", function, Callable, _FUNCTION_ADVICE)
        return cls(None, name=name, function=function)

    # -- rendering ---------------------------------------------------------------------------------------------

    def render(
        self,
        /,
        msgs: Sequence[Msg],
        *,
        tools: Sequence[ToolLike] = (),
        documents: Sequence[Mapping[str, Any]] = (),
        add_generation_prompt: bool | None = None,
        continue_final_message: bool | str = False,
        now: datetime | None = None,
        on_special_tokens: OnSpecialTokens = "keep",
        validate: bool | None = None,
        chat_template: str | None = None,
        **variables: Any,
    ) -> RenderedChat:
        """Returns the text of a conversation, and the positions of its replies and media in this text.

        Args:
            msgs: The conversation. Names of speakers are passed to the template as `name`, which most templates do
                not write. Use `formatter(history=MultiAgentHistory(…))` for many speakers.
            tools: Tools that the model may call.
            documents: Documents that the model may cite, as dicts with `title` and `text`.
            add_generation_prompt: True to end the text with the start of an assistant turn. None means True if the
                last message is from a user or is a tool result, unless `continue_final_message` is set.
            continue_final_message: True to end the text after the text of the last message, which the model then
                continues. Pass a key of the last message, such as `reasoning_content`, to continue the
                value of this key instead.
            now: Time that the template reads. None means the current local time.
            on_special_tokens: Treatment of control tokens in texts of users, in tool results, in documents, in
                names of speakers, and in declarations of tools. `keep` keeps them, as in transformers. `raise`
                raises an error with the place of the text. `space` adds a space after the first character of each
                control token, so that tokenizers read the token as plain text.
            validate: True to check the order of roles. None means the attribute `validates` of the template.
            chat_template: Name of one of several templates: a name in `additional_templates`, or `default` for the
                template in `jinja`. None means `tool_use` if this template exists and there are tools, and
                `default` otherwise.
            **variables: Further variables of the template, such as `enable_thinking=False`.

        Raises:
            EmptyConversationError: There are no messages.
            MessageError: A message is invalid, the order of roles is wrong, or a text has a control token and
                `on_special_tokens` is `raise`.
            OptionError: An option is invalid, or `chat_template` is not the name of a template.
            TemplateError: The template refuses the messages, or the rendering exceeds a limit.
            MissingExtraError: The package jinja2 is not installed.
        """
        checked = check_messages(msgs)
        continued = _read_continued_key(continue_final_message, add_generation_prompt)
        check_option("validate", validate, bool | None)
        if self.validates if validate is None else validate:
            check_roles(checked)
        source, chat, written, guard = self._prepare(
            checked,
            tools=tools,
            documents=documents,
            now=now,
            on_special_tokens=on_special_tokens,
            chat_template=chat_template,
            **variables,
        )
        if add_generation_prompt is None:
            add_generation_prompt = not continued and chat.messages[-1]["role"] in ("user", "tool")
        chat = chat._replace(add_generation_prompt=add_generation_prompt)

        def render(variables: ChatVariables) -> Rendering:
            return self.render_variables(source, variables, continued)

        def render_again(msgs: Sequence[Msg]) -> str:
            return render(chat._replace(messages=self._adapt(self._write(msgs, guard).messages))).text

        text, spans = rendering = render(chat)
        never_written = self._list_never_written(chat, {type_ for _, _, type_ in written.texts})
        omitted = find_omitted_texts(text, written.texts, never_written, source, checked, render_again)
        return RenderedChat(
            text,
            spans,
            media=tuple(find_media(text, chat, written.media, render, self.probe.find_placeholder)),
            omitted=(*written.omitted, *omitted),
            prompt_end=len(text) if continued else find_prompt_end(rendering, chat, render),
            spaced_places=tuple(dict.fromkeys(guard.places)) if guard else (),
        )

    def wrap(self, msgs: Sequence[Msg]) -> list[Msg]:
        """Returns messages with the tags (fixed texts) of their roles as text blocks, as torchtune does.

        Raises:
            EmptyConversationError: There are no messages.
            OptionError: The template is not from `from_tags`.
        """
        from agentkit.chat_templates.tag_templates import wrap_messages

        if self.tags is None:
            reason = "only a template from ChatTemplate.from_tags has tags"
            raise OptionError("template", reason, "Use render() for this template.")
        return wrap_messages(check_messages(msgs), self.tags)

    # -- features ----------------------------------------------------------------------------------------------

    def check(self) -> TemplateReport:
        """Returns the features of the template. The first call renders small test conversations."""
        return self._report

    def capabilities(self) -> Capabilities:
        """Returns the capabilities of the template: the rules for its formatter, derived from `check`."""
        return self._capabilities

    def formatter(self, **options: Unpack[ChatTemplateOptions]) -> ChatTemplateFormatter:
        """Returns a formatter whose requests are `{"prompt": TEXT}`. See `ChatTemplateFormatter` for options."""
        from agentkit.chat_templates.template_formatter import ChatTemplateFormatter

        return ChatTemplateFormatter(template=self, **options)

    # -- methods for other modules -----------------------------------------------------------------------------

    def render_text(
        self,
        msgs: Sequence[Msg],
        /,
        *,
        add_generation_prompt: bool = False,
        **options: Any,
    ) -> Rendering:
        """Returns the text of a conversation and the spans of its replies.

        This method is faster than `render`, which also finds the other attributes of a `RenderedChat`.

        Args:
            msgs: The conversation. The method does not check the messages.
            add_generation_prompt: True to end the text with the start of an assistant turn.
            **options: The options `tools`, `documents`, `now`, `on_special_tokens` and `chat_template` of
                `render`, and further variables of the template.

        Raises:
            MessageError: As for `render`.
            OptionError: As for `render`.
            TemplateError: The template refuses the messages, or the rendering exceeds a limit.
        """
        source, chat, *_ = self._prepare(msgs, **options)
        return self.render_variables(source, chat._replace(add_generation_prompt=add_generation_prompt))

    def create_prefix_renderer(self, msgs: Sequence[Msg], /, **options: Any) -> PrefixRenderer:
        """Returns a renderer that writes all messages of a conversation, or only the first messages.

        The renderer counts messages as the template receives them: each tool result is a separate message.

        Args:
            msgs: The conversation. The method does not check the messages.
            **options: As for `render_text`.

        Raises:
            MessageError: As for `render`.
            OptionError: As for `render`.
            TemplateError: The template is from `from_function`.
        """
        if self.function is not None:
            raise TemplateError(self.name, "partial rendering requires a Jinja template, got a function")
        source, chat, *_ = self._prepare(msgs, **options)
        return PrefixRenderer(source, chat, self.name)

    def render_variables(self, source: str, chat: ChatVariables, continued: str | None = None) -> Rendering:
        """Renders messages that `write_messages` converted.

        Args:
            source: Text of the template, from `choose_source`.
            chat: Messages and other variables.
            continued: Key of the last message whose value the model continues. None if the text ends after the
                last message.

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
            OptionError: `name` is not a string, there is no template with this name, or no template `default`.
        """
        if self.function is not None:
            return ""
        check_text("chat_template", name)
        sources = self._sources
        chosen = ("tool_use" if has_tools and "tool_use" in sources else "default") if name is None else name
        if chosen not in sources:
            reason = f"no template is named {chosen!r} (existing names: {', '.join(map(repr, sorted(sources)))})"
            raise OptionError("chat_template", reason, "Pass one of these names.")
        return sources[chosen]

    def check_control_tokens(self, msgs: Sequence[Msg], tools: Sequence[ToolLike] = ()) -> None:
        """Raises an error if `render` would refuse the messages or tools with `on_special_tokens="raise"`.

        Raises:
            MessageError: A text of a user, a tool result, the name of a speaker or the declaration of a tool has a
                control token.
        """
        if guard := self._guard("raise"):
            self._write(check_messages(msgs), guard)
            guard.protect_json(write_tools(as_tools(tools)), "tools")

    @cached_property
    def control_pattern(self) -> re.Pattern[str] | None:
        """Pattern that matches the control tokens of the model. None if no tokens are known.

        If the attribute `control_tokens` is empty, the pattern matches the tokens in the string constants and the
        plain text of all templates. The pattern also matches tokens that a template builds, for example from a
        role.
        """
        tokens = self.control_tokens.union(self.special_tokens.values())
        if self.control_tokens:
            return compile_control_tokens(tokens, ())
        sources = [*self._sources.values()]
        literals = [text for source in sources for text in list_literals(source)]
        written = [text for source in sources or [""] for text in self.probe.list_role_texts(source)]
        return compile_control_tokens(tokens, [*literals, *written])

    @cached_property
    def probe(self) -> TemplateProbe:
        """Renderer of small conversations, which tests the features of the template."""
        from agentkit.chat_templates.template_probes import TemplateProbe

        return TemplateProbe(self)

    # -- parts of the methods ----------------------------------------------------------------------------------

    def _prepare(
        self,
        msgs: Sequence[Msg],
        /,
        *,
        tools: Sequence[ToolLike] = (),
        documents: Sequence[Mapping[str, Any]] = (),
        now: datetime | None = None,
        on_special_tokens: OnSpecialTokens = "keep",
        chat_template: str | None = None,
        **variables: Any,
    ) -> tuple[str, ChatVariables, WrittenMessages, TextGuard | None]:
        """Prepares a rendering. See `render` for the arguments.

        Returns:
            The text of the template, its variables (without a generation prompt), the converted messages, and the
            guard against control tokens in texts. The guard is None if control tokens are kept.
        """
        check_names("render()", variables.keys() & _RESERVED, ())
        check_names("render()", variables.keys() & {"strftime_now"}, (), "Pass the time as `now`.")
        check_option("now", now, datetime | None)
        check_choice("on_special_tokens", on_special_tokens, ("keep", "raise", "space"))
        guard = self._guard(on_special_tokens)
        source = self.choose_source(chat_template, bool(tools))
        written = self._write(msgs, guard)
        chat = ChatVariables(
            self._adapt(written.messages),
            write_tools(as_tools(tools)),
            _read_documents(documents),
            others=self._list_variables(now, variables),
        )
        if guard:
            protected = {name: guard.protect_json(getattr(chat, name), name) for name in ("tools", "documents")}
            chat = chat._replace(**protected)
        return source, chat, written, guard

    def _write(self, msgs: Sequence[Msg], guard: TextGuard | None) -> WrittenMessages:
        protect = guard.protect if guard else None
        return write_messages(msgs, self.text_separator, protect, self._media_kinds(msgs))

    def _guard(self, mode: OnSpecialTokens) -> TextGuard | None:
        if mode == "keep" or self.control_pattern is None:
            return None
        return TextGuard(self.control_pattern, mode)

    def _adapt(self, messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Returns messages with the types of values that the template requires.

        Some templates require content as a list of parts, or arguments of tool calls as JSON text.
        """
        if self.function is not None:
            return messages
        calls = [message for message in messages if "tool_calls" in message]
        needs_parts, needs_text_arguments = self.probe.needs_parts, bool(calls) and self.probe.needs_text_arguments
        if not (needs_parts or needs_text_arguments):
            return messages
        return [adapt_message(message, needs_parts, needs_text_arguments) for message in messages]

    def _list_variables(self, now: datetime | None, variables: Mapping[str, Any]) -> dict[str, Any]:
        clock = {"strftime_now": create_clock(now)} if now else {}
        return {**self.special_tokens, **(make_json_safe(variables) if variables else {}), **clock}

    def _media_kinds(self, msgs: Sequence[Msg]) -> frozenset[str]:
        for msg in msgs:
            if msg.features & _MEDIA:
                return self.check().media
        return frozenset()

    def _list_never_written(self, chat: ChatVariables, types: set[str]) -> list[str]:
        """Returns the types of blocks that the template never writes.

        The list is empty if the caller passed variables, because variables can change what the template writes.
        """
        if types <= {"text"} or chat.others.keys() - {*self.special_tokens, "strftime_now"}:
            return []
        return [type_ for type_ in sorted(types) if not self.probe.writes_block(type_)]

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
    def _sources(self) -> dict[str, str]:
        """Texts of all templates by name."""
        default = {} if self.jinja is None else {"default": self.jinja}
        return {**default, **self.additional_templates}

    @cached_property
    def _report(self) -> TemplateReport:
        from agentkit.chat_templates.template_probes import inspect_template

        return inspect_template(self)

    @cached_property
    def _capabilities(self) -> Capabilities:
        from agentkit.chat_templates.template_capabilities import as_capabilities

        return as_capabilities(self.check(), self.name)


def _read_continued_key(continue_final_message: bool | str, add_generation_prompt: bool | None) -> str | None:
    """Returns the key of the last message whose value the model continues. Returns None if there is no such key.

    Raises:
        OptionError: One of the options is invalid, or both are set.
    """
    check_option("add_generation_prompt", add_generation_prompt, bool | None)
    check_option("continue_final_message", continue_final_message, bool | str)
    if add_generation_prompt and continue_final_message:
        reason = "cannot be combined with add_generation_prompt=True"
        raise OptionError("continue_final_message", reason, "Pass add_generation_prompt=False.")
    return "content" if continue_final_message is True else continue_final_message or None


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


def _read_documents(documents: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]] | None:
    """Returns documents as JSON values. Returns None if there are no documents.

    Raises:
        OptionError: `documents` is not a list.
    """
    if isinstance(documents, str | bytes) or not isinstance(documents, Sequence):
        raise OptionError(
            "documents", f"expected a list, got {describe_value(documents)}", "Pass a list of dicts."
        )
    return cast("list[dict[str, Any]]", make_json_safe(list(documents))) if documents else None
