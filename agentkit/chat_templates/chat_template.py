"""`ChatTemplate`: writes a conversation in the text format that a model was trained on."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import KW_ONLY, dataclass
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from agentkit.argument_checks import check_option
from agentkit.chat_templates.control_tokens import OnSpecialTokens, TextGuard, compile_control_tokens
from agentkit.chat_templates.conversation_renderer import ConversationRenderer
from agentkit.chat_templates.message_order import check_roles
from agentkit.chat_templates.rendered_chat import RenderedChat
from agentkit.chat_templates.template_messages import convert_messages, convert_tools
from agentkit.chat_templates.template_sources import FUNCTION_ADVICE, TemplateFunction, TemplateSources
from agentkit.errors import OptionError, TemplateError
from agentkit.formatting.formatter import check_messages
from agentkit.jinja_environments.chat_rendering import Rendering
from agentkit.jinja_environments.prefix_rendering import PrefixRenderer
from agentkit.json_values import make_json_safe
from agentkit.messages.message import Msg
from agentkit.reprs import bounded_repr
from agentkit.tools.tool import ToolLike, as_tools

if TYPE_CHECKING:
    from agentkit.capabilities.capabilities import Capabilities
    from agentkit.chat_templates.template_formatter import ChatTemplateFormatter, ChatTemplateOptions
    from agentkit.chat_templates.template_probe import TemplateProbe
    from agentkit.chat_templates.template_report import TemplateReport

__all__ = ["ChatTemplate"]


@dataclass(frozen=True, eq=False)
class ChatTemplate(TemplateSources):
    r"""Template that writes a conversation in the text format that a model was trained on.

    Templates are written in Jinja, as in `tokenizer_config.json` of Hugging Face, and run in a sandbox.
    The text equals that of `apply_chat_template` in transformers 5 byte for byte.

    Attributes:
        jinja: Text of the template. None if all texts are in `additional_templates`, or if `function` writes them.
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

    _: KW_ONLY
    control_tokens: frozenset[str] = frozenset()
    response_template: Mapping[str, Any] | None = None
    adds_bos: bool | None = None
    text_separator: str = "\n"
    validates: bool = False
    tags: Mapping[str, tuple[str, str]] | None = None

    __repr__ = bounded_repr

    def __post_init__(self) -> None:
        check_option("control_tokens", self.control_tokens, AbstractSet | list | tuple, "Pass a set of tokens.")
        for token in self.control_tokens:
            check_option("control_tokens", token, str, "Pass the texts of the tokens.")
        check_option("response_template", self.response_template, Mapping | None, "Pass a dict.")
        check_option("adds_bos", self.adds_bos, bool | None)
        check_option("text_separator", self.text_separator, str)
        check_option("validates", self.validates, bool)
        copies: dict[str, Any] = {"control_tokens": frozenset(self.control_tokens)}
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
        super().__post_init__()  # last, because it compiles the texts

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
            OptionError: `tags` is not a dict, a role is unknown, or the value of a role is not a pair of strings.
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
        check_option("function", function, Callable, FUNCTION_ADVICE)
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
        renderer = ConversationRenderer(
            self,
            checked,
            tools=tools,
            documents=documents,
            now=now,
            on_special_tokens=on_special_tokens,
            chat_template=chat_template,
            **variables,
        )
        if add_generation_prompt is None:
            add_generation_prompt = not continued and renderer.chat.messages[-1]["role"] in ("user", "tool")
        return renderer.render_and_locate(add_generation_prompt=add_generation_prompt, continued=continued)

    def wrap(self, msgs: Sequence[Msg]) -> list[Msg]:
        """Returns the messages with a tag (fixed text) before and after their content, as text blocks.

        Each role has its own tags. An empty tag adds no block. torchtune adds tags in the same way.

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
        return ConversationRenderer(self, msgs, **options).render(add_generation_prompt=add_generation_prompt)

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
        renderer = ConversationRenderer(self, msgs, **options)
        return PrefixRenderer(renderer.source, renderer.chat, self.name)

    def check_control_tokens(self, msgs: Sequence[Msg], tools: Sequence[ToolLike] = ()) -> None:
        """Raises an error if `render` would refuse the messages or tools with `on_special_tokens="raise"`.

        Raises:
            MessageError: A text of a user, a tool result, the name of a speaker or the declaration of a tool has a
                control token.
        """
        if guard := self.create_guard("raise"):
            convert_messages(check_messages(msgs), self.text_separator, guard.protect)
            guard.protect_json(convert_tools(as_tools(tools)), "tools")

    def create_guard(self, mode: OnSpecialTokens) -> TextGuard | None:
        """Returns a guard against control tokens in texts. Returns None if control tokens are kept or unknown."""
        if mode == "keep" or self.control_pattern is None:
            return None
        return TextGuard(self.control_pattern, mode)

    @cached_property
    def control_pattern(self) -> re.Pattern[str] | None:
        """Pattern that matches the control tokens of the model. None if no tokens are known."""
        return compile_control_tokens(self)

    @cached_property
    def probe(self) -> TemplateProbe:
        """Renderer of small conversations, which tests the features of the template."""
        from agentkit.chat_templates.template_probe import TemplateProbe

        return TemplateProbe(self)

    # -- parts of the methods ----------------------------------------------------------------------------------

    @cached_property
    def _report(self) -> TemplateReport:
        from agentkit.chat_templates.template_inspection import inspect_template

        return inspect_template(self)

    @cached_property
    def _capabilities(self) -> Capabilities:
        from agentkit.chat_templates.template_capabilities import as_capabilities

        return as_capabilities(self.check(), self.name)


def _read_continued_key(continue_final_message: bool | str, add_generation_prompt: bool | None) -> str | None:
    """Returns the key of the last message whose value the model continues. Returns None if there is no such key.

    Raises:
        OptionError: One of the two options has a wrong type, or both options are set.
    """
    check_option("add_generation_prompt", add_generation_prompt, bool | None)
    check_option("continue_final_message", continue_final_message, bool | str)
    if add_generation_prompt and continue_final_message:
        reason = "cannot be combined with add_generation_prompt=True"
        raise OptionError("continue_final_message", reason, "Pass add_generation_prompt=False.")
    return "content" if continue_final_message is True else continue_final_message or None
