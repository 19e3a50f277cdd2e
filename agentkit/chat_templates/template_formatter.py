"""`ChatTemplateFormatter`: formatter whose requests contain the text that a chat template writes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Unpack

from agentkit.argument_checks import check_choice, check_option
from agentkit.capabilities.capabilities import Capabilities
from agentkit.chat_templates.control_tokens import OnSpecialTokens, list_control_tokens
from agentkit.chat_templates.rendered_chat import RenderedChat
from agentkit.chat_templates.template_capabilities import LAYOUT
from agentkit.errors import MessageError, OptionError
from agentkit.formatting.formatter import FormatterBase, FormatterOptions, RequestOptions, check_messages
from agentkit.formatting.omissions import format_name_reason
from agentkit.ledger.entries import Disposition, Note, Synthesis
from agentkit.ledger.places import format_place
from agentkit.ledger.plan import Plan
from agentkit.ledger.provenance import Provenance, TracedMessage
from agentkit.legalize.conversation import LegalConversation
from agentkit.legalize.request_spec import Request, RequestSpec
from agentkit.messages.features import Feature
from agentkit.messages.message import Msg, build_part

if TYPE_CHECKING:
    from agentkit.chat_templates.chat_template import ChatTemplate
    from agentkit.chat_templates.responses.response_template import ResponseTemplate

__all__ = ["ChatTemplateFormatter", "ChatTemplateOptions"]

_RESERVED_NAMES: Final = frozenset(
    {"add_generation_prompt", "continue_final_message", "messages", "msgs", "on_special_tokens", "strftime_now"}
    | {"tools", "validate"}
)
"""Names of variables that the option `variables` cannot contain.

The formatter sets these arguments of `ChatTemplate.render`, or `render` reserves the name.
"""
_ANY_NAME: Final = object()
_PLACE: Final = re.compile(r"msgs\[(\d+)\]\.(?:name|content\[(\d+)\])")


class ChatTemplateOptions(FormatterOptions, total=False):
    """Options of a `ChatTemplateFormatter`, in addition to the model and the template."""

    response_template: ResponseTemplate | Mapping[str, Any] | str | None
    variables: dict[str, Any] | None
    on_special_tokens: OnSpecialTokens
    server_adds_bos: bool | None


class ChatTemplateFormatter(FormatterBase):
    """Formatter whose requests are `{"prompt": TEXT}`. `ChatTemplate.formatter` returns such a formatter.

    The text ends with the start of an assistant turn if the template can write such a start. The formatters for
    APIs that accept the text of a prompt are subclasses of this class.

    Args:
        template: Chat template of the model, or a name or path for `find_template`.
        model: Name of the model.
        response_template: Format of the replies: a `ResponseTemplate`, its declaration, or the name of a built-in
            response template. None means the response template of the chat template. Without a response template,
            replies are plain text.
        variables: Further variables of the template, such as `{"enable_thinking": False}`.
        on_special_tokens: Treatment of control tokens in texts of users, in tool results, in names of speakers and
            in declarations of tools: `keep`, `raise` or `space`, as in `ChatTemplate.render`. With `raise`, the
            error has the place of the text. With `space`, the ledger lists the changed texts.
        server_adds_bos: True if the server adds the bos token to each prompt. The text of the request then omits
            the bos token at its start. None means the result of `assumes_server_bos`.
        **options: See `FormatterBase`.

    Raises:
        OptionError: There is no template, or an option is invalid.
        TemplateError: The text of the template is invalid.
        MissingExtraError: A package that the template requires is not installed.
    """

    base = Capabilities(name="chat template", output="prompt", layout=LAYOUT)

    def __init__(
        self,
        model: str | None = None,
        *,
        template: ChatTemplate | str | Path | None = None,
        response_template: ResponseTemplate | Mapping[str, Any] | str | None = None,
        variables: dict[str, Any] | None = None,
        on_special_tokens: OnSpecialTokens = "keep",
        server_adds_bos: bool | None = None,
        **options: Unpack[FormatterOptions],
    ) -> None:
        from agentkit.chat_templates.template_arguments import find_response_template, find_template

        check_option("variables", variables, dict | None)
        for name in variables or ():
            check_option("variables", name, str, "Pass the names of the variables as strings.")
            if name in _RESERVED_NAMES:
                advice = "Pass the time as `now`." if name == "strftime_now" else "Remove the variable."
                raise OptionError(f"variables.{name}", "the formatter sets this variable", advice)
        check_choice("on_special_tokens", on_special_tokens, ("keep", "raise", "space"))
        check_option("server_adds_bos", server_adds_bos, bool | None)
        self.template = find_template(template)
        source = self.template.response_template if response_template is None else response_template
        self.response_template = None if source is None else find_response_template(source)
        self.variables = dict(variables or {})
        self.on_special_tokens: OnSpecialTokens = on_special_tokens
        self.server_adds_bos = self.assumes_server_bos() if server_adds_bos is None else server_adds_bos
        super().__init__(model, **options)

    def assumes_server_bos(self) -> bool:
        """Returns True if servers of the API usually add the bos token to prompts. This class returns False."""
        return False

    def get_parser_options(self, plan: Plan) -> dict[str, Any]:
        """Returns the options `response_template` and `tools` of a `PromptReplyParser`."""
        return {"response_template": self.response_template, "tools": plan.tools}

    def capabilities(self, model: str | None = None) -> Capabilities:
        """Returns the capabilities of the template, changed by `model_rules`. `model` has no effect."""
        return self._rules if self.model_rules is None else self.model_rules.apply(self._rules)

    @cached_property
    def _rules(self) -> Capabilities:
        rules = self.template.capabilities()
        return rules if self.base.issuer is None else rules.override({"issuer": self.base.issuer})

    async def plan(
        self, msgs: Sequence[Msg], *, model: str | None = None, **options: Unpack[RequestOptions]
    ) -> Plan:
        """Returns the plan of a request.

        Raises:
            MessageError: A text has a control token, and `on_special_tokens` is `raise`. The check runs before any
                file or URL is read.
        """
        self._check_control_tokens(msgs, options)
        return await super().plan(msgs, model=model, **options)

    def lower(self, msgs: Sequence[Msg], *, model: str | None = None, **options: Unpack[RequestOptions]) -> Plan:
        """Returns the plan of a request without any I/O.

        Raises:
            MessageError: A text has a control token, and `on_special_tokens` is `raise`.
        """
        self._check_control_tokens(msgs, options)
        return super().lower(msgs, model=model, **options)

    def _check_control_tokens(self, msgs: Sequence[Msg], options: RequestOptions) -> None:
        if self.on_special_tokens == "raise":
            # With a history of many speakers, messages of other agents are texts in a turn of a user.
            own_name = getattr(self.history, "viewer", _ANY_NAME)
            checked = [
                msg
                if own_name in (_ANY_NAME, msg.name) or msg.role != "assistant"
                else build_part(msg, msg.blocks, "user")
                for msg in check_messages(msgs)
            ]
            self.template.check_control_tokens(checked, options.get("tools") or ())

    def convert(self, legal: LegalConversation, task: RequestSpec) -> Request:
        """Returns the request with the key `prompt`.

        Raises:
            MessageError: A text has a control token, and `on_special_tokens` is `raise`.
            TemplateError: The template refuses the conversation.
            OptionError: The response template does not belong to the chat template.
        """
        msgs = [*legal.system, *legal.turns]
        try:
            rendered = self.template.render(
                [traced.msg for traced in msgs],
                tools=task.tools,
                add_generation_prompt=True,
                on_special_tokens=self.on_special_tokens,
                validate=False,
                **self.variables,
            )
        except MessageError as error:
            origin = _find_origin(error.place, msgs)
            place = origin if isinstance(origin, str) else format_place(origin)
            raise MessageError(place, error.reason, error.advice) from None
        legal.notes.extend(_list_notes(rendered, msgs))
        if self.capabilities().turns.speaker_names and "system" not in self.template.check().named_roles:
            legal.notes.extend(_list_omitted_names(msgs))
        if self.response_template is not None:
            self._check_start(self.response_template, rendered.text)
        return {"prompt": self.finish_prompt(rendered.text)}

    def finish_prompt(self, text: str) -> str:
        """Returns the prompt of a request from the text that the template wrote.

        If the server adds the bos token, the prompt omits the bos token at the start of the text.
        """
        bos = self.template.special_tokens.get("bos_token", "")
        return text.removeprefix(bos) if self.server_adds_bos else text

    def _create_spec(self, options: RequestOptions, model: str | None) -> RequestSpec:
        spec = super()._create_spec(options, model)
        if not spec.tools or self.response_template is not None:
            return spec
        note = Synthesis("tools", "there is no response template, so tool calls in the text of a reply stay text")
        return replace(spec, syntheses=(*spec.syntheses, note))

    def _check_start(self, response_template: ResponseTemplate, prompt: str) -> None:
        try:
            response_template.find_start(prompt)
        except OptionError as error:
            reason = f"does not belong to the chat template {self.template.name!r}, because {error.reason}"
            raise OptionError("response_template", reason, "Pass the response template of this model.") from None

    def list_stop_texts(self) -> list[str]:
        """Returns the texts at which a server must stop. The only text is the text that ends a turn.

        The list is empty if this text is a control token, such as `<|im_end|>`, because servers always stop there.
        The list is also empty if the template writes no text after a reply.
        """
        stop, control = self.template.check().stop_token, self.template.control_pattern
        text = control.sub("", stop) if control else stop
        return [stop] if text.strip() else []

    def list_reply_tokens(self) -> list[str]:
        """Returns the control tokens in the markers of the response template.

        A server must not remove these tokens from replies, because the parser of the reply needs the markers.

        If the control tokens of the tokenizer are unknown, the result has all markers that are texts. The result
        then also has the parts of regular expressions that look like a control token. Without a response template,
        the result is empty.
        """
        if self.response_template is None:
            return []
        texts, patterns = self.response_template.list_marker_texts()
        tokens = self.template.control_tokens
        if not tokens:
            words = [word for pattern in patterns for word in list_control_tokens(pattern)]
            return sorted({text.strip() for text in (*texts, *words)})
        return sorted(token for token in tokens if any(token in text for text in (*texts, *patterns)))


def _list_notes(rendered: RenderedChat, msgs: Sequence[TracedMessage]) -> Iterator[tuple[Provenance, Note]]:
    """Yields a ledger note for each block whose text the prompt omits or changes, with the origin of the block."""
    for item in rendered.omitted:
        index, number = item.path
        block, origin = [*msgs[index].traced_blocks][number]
        yield origin, Note(Disposition.DROPPED, item.reason, lost=block.type != "thinking")
    for place in rendered.spaced_places:
        part = "speaker name" if place.startswith("msgs") and place.endswith(".name") else "text"
        reason = f"a space added inside each control token of the {part}"
        yield _find_origin(place, msgs), Note(Disposition.CARRIED, reason)


def _list_omitted_names(msgs: Sequence[TracedMessage]) -> Iterator[tuple[Provenance, Note]]:
    """Yields ledger notes for system messages whose speaker name the prompt omits."""
    for traced in msgs:
        msg = traced.msg
        if msg.role == "system" and msg.name not in ("", "system") and not msg.features & Feature.RESULT:
            note = Note(Disposition.CARRIED, format_name_reason(msg.name))
            yield from ((origin, note) for origin in traced.block_origins)


def _find_origin(place: str, msgs: Sequence[TracedMessage]) -> Provenance:
    """Returns the origin (the input block) of the block at a place of `msgs`.

    The origin of a speaker name is that of the first block of the message. Returns other places, such as
    `tools`, unchanged.
    """
    match = _PLACE.fullmatch(place)
    origins = msgs[int(match[1])].block_origins if match else ()
    return origins[int(match[2] or 0)] if match and origins else place
