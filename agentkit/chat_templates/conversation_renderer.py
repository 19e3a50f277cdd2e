"""`ConversationRenderer`: renders one conversation with a chat template, and locates its blocks in the text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Final, cast

from agentkit.argument_checks import check_choice, check_names, check_option
from agentkit.chat_templates.control_tokens import OnSpecialTokens
from agentkit.chat_templates.media_placeholders import find_media
from agentkit.chat_templates.omitted_texts import find_omitted_texts
from agentkit.chat_templates.prompt_end import find_prompt_end
from agentkit.chat_templates.rendered_chat import RenderedChat
from agentkit.chat_templates.template_messages import (
    CALL_TYPES,
    ConvertedMessages,
    adapt_message,
    convert_messages,
    convert_tools,
)
from agentkit.errors import OptionError
from agentkit.jinja_environments.chat_rendering import Rendering
from agentkit.jinja_environments.chat_variables import ChatVariables
from agentkit.jinja_environments.functions import create_clock
from agentkit.json_values import make_json_safe
from agentkit.messages.features import Feature
from agentkit.messages.message import Msg
from agentkit.reprs import describe_value
from agentkit.tools.tool import ToolLike, as_tools

if TYPE_CHECKING:
    from agentkit.chat_templates.chat_template import ChatTemplate

__all__ = ["ConversationRenderer"]

_MEDIA: Final = Feature.IMAGE | Feature.AUDIO | Feature.VIDEO | Feature.DOCUMENT | Feature.RESULT_MEDIA


class ConversationRenderer:
    """Renderer of one conversation. The conversation and the options are converted for the template once.

    Args:
        template: Chat template.
        msgs: The conversation. The class does not check the messages.
        **variables: Further variables of the template. All other arguments are those of `ChatTemplate.render`.

    Attributes:
        source: Text of the template. Empty if the template is a Python function.
        chat: Variables of the template, without a generation prompt.

    Raises:
        MessageError: A text has a control token, and `on_special_tokens` is `raise`.
        OptionError: An option is invalid, or `chat_template` is not the name of a template.
    """

    def __init__(
        self,
        template: ChatTemplate,
        msgs: Sequence[Msg],
        /,
        *,
        tools: Sequence[ToolLike] = (),
        documents: Sequence[Mapping[str, Any]] = (),
        now: datetime | None = None,
        on_special_tokens: OnSpecialTokens = "keep",
        chat_template: str | None = None,
        **variables: Any,
    ) -> None:
        if variables:
            check_names("render()", variables.keys() & {"messages"}, ())
            check_names("render()", variables.keys() & {"strftime_now"}, (), "Pass the time as `now`.")
        check_option("now", now, datetime | None)
        check_choice("on_special_tokens", on_special_tokens, ("keep", "raise", "space"))
        self._template = template
        self._msgs = msgs
        self._guard = guard = template.create_guard(on_special_tokens)
        self.source = template.choose_source(chat_template, bool(tools))
        self._converted = self._convert(msgs)
        self._types = {type_ for _, _, type_ in self._converted.texts}
        tool_schemas, document_values = convert_tools(as_tools(tools)), _read_documents(documents)
        if guard:
            tool_schemas = guard.protect_json(tool_schemas, "tools")
            document_values = guard.protect_json(document_values, "documents")
        clock = {"strftime_now": create_clock(now)} if now else {}
        others: dict[str, Any] = {**template.special_tokens, **(make_json_safe(variables) if variables else {})}
        messages = self._adapt(self._converted.messages)
        self.chat = ChatVariables(messages, tool_schemas, document_values, others={**others, **clock})

    def _convert(self, msgs: Sequence[Msg]) -> ConvertedMessages:
        protect = self._guard.protect if self._guard else None
        return convert_messages(msgs, self._template.text_separator, protect, self._list_media_kinds(msgs))

    def _list_media_kinds(self, msgs: Sequence[Msg]) -> frozenset[str]:
        """Returns the kinds of media for which the template has a placeholder. Empty if there are no media."""
        for msg in msgs:
            if msg.features & _MEDIA:
                return self._template.check().media
        return frozenset()

    def _adapt(self, messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Returns messages whose values have the types that the template requires.

        Some templates require content as a list of parts, or arguments of tool calls as JSON text.
        """
        if self._template.function is not None:
            return messages
        probe, has_calls = self._template.probe, not CALL_TYPES.isdisjoint(self._types)
        needs_parts, needs_text_arguments = probe.needs_parts, has_calls and probe.needs_text_arguments
        if not (needs_parts or needs_text_arguments):
            return messages
        return [adapt_message(message, needs_parts, needs_text_arguments) for message in messages]

    def render(self, *, add_generation_prompt: bool) -> Rendering:
        """Returns the text of the conversation and the spans of its replies.

        Args:
            add_generation_prompt: True to end the text with the start of an assistant turn.

        Raises:
            TemplateError: The template refuses the messages, or the rendering exceeds a limit.
        """
        chat = self.chat._replace(add_generation_prompt=add_generation_prompt)
        return self._template.render_variables(self.source, chat)

    def render_and_locate(self, *, add_generation_prompt: bool, continued: str | None = None) -> RenderedChat:
        """Returns the text of the conversation, and the positions of its replies and media in this text.

        Args:
            add_generation_prompt: As for `render`.
            continued: Key in the last message. The model continues the value of this key. None if the text ends
                after the last message.

        Raises:
            TemplateError: As for `render`.
        """
        chat = self.chat._replace(add_generation_prompt=add_generation_prompt)
        render = partial(self._template.render_variables, self.source, continued=continued)

        def render_msgs(msgs: Sequence[Msg]) -> str:
            return render(chat._replace(messages=self._adapt(self._convert(msgs).messages))).text

        text, spans = rendering = render(chat)
        converted, probe = self._converted, self._template.probe
        omitted = find_omitted_texts(
            text, converted.texts, self._list_never_written(), self.source, self._msgs, render_msgs
        )
        return RenderedChat(
            text,
            spans,
            media=tuple(find_media(text, chat, converted.media, render, probe.find_placeholder)),
            omitted=(*converted.omitted, *omitted),
            prompt_end=len(text) if continued else find_prompt_end(rendering, chat, render),
            spaced_places=tuple(dict.fromkeys(self._guard.places)) if self._guard else (),
        )

    def _list_never_written(self) -> list[str]:
        """Returns the types of blocks that the template never writes.

        The list is empty if the caller passed variables, because variables can change what the template writes.
        """
        if self._types <= {"text"} or self.chat.others.keys() - {*self._template.special_tokens, "strftime_now"}:
            return []
        return [type_ for type_ in sorted(self._types) if not self._template.probe.writes_block(type_)]


def _read_documents(documents: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]] | None:
    """Returns documents as JSON values. Returns None if there are no documents.

    Raises:
        OptionError: `documents` is not a list.
    """
    if isinstance(documents, str | bytes) or not isinstance(documents, Sequence):
        reason = f"expected a list, got {describe_value(documents)}"
        raise OptionError("documents", reason, "Pass a list of dicts.")
    return cast("list[dict[str, Any]]", make_json_safe(list(documents))) if documents else None
