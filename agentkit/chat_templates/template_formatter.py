"""`ChatTemplateFormatter`: formatter whose requests are the text of a chat template."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from agentkit.argument_checks import check_option
from agentkit.capabilities.capabilities import Capabilities
from agentkit.chat_templates.template_capabilities import LAYOUT
from agentkit.formatting.formatter import FormatterBase, FormatterOptions
from agentkit.legalize.conversation import LegalConversation
from agentkit.legalize.request_spec import Request, RequestSpec

if TYPE_CHECKING:
    from agentkit.chat_templates.chat_template import ChatTemplate

__all__ = ["ChatTemplateFormatter"]


class ChatTemplateFormatter(FormatterBase):
    """Formatter whose requests are `{"prompt": TEXT}`. `ChatTemplate.formatter` creates it.

    The text ends with the start of an assistant turn, if the template can write it. Formatters of APIs that take
    the text of a prompt are subclasses.

    Args:
        template: Chat template of the model, or a name or path for `find_template`.
        model: Name of the model.
        variables: Further variables of the template, such as `{"enable_thinking": False}`.
        server_adds_bos: True if the server adds the bos token to each prompt. The text then omits the bos token
            that the template writes at its start. None means the usual behavior of the API's servers.
        **options: See `FormatterBase`.

    Raises:
        OptionError: There is no template, or an option is invalid.
    """

    base = Capabilities(name="chat template", output="prompt", layout=LAYOUT)

    def __init__(
        self,
        model: str | None = None,
        *,
        template: ChatTemplate | str | Path | None = None,
        variables: dict[str, Any] | None = None,
        server_adds_bos: bool | None = None,
        **options: Unpack[FormatterOptions],
    ) -> None:
        from agentkit.chat_templates.template_lookup import find_template

        check_option("variables", variables, dict | None)
        check_option("server_adds_bos", server_adds_bos, bool | None)
        self.template = find_template(template)
        self.variables = dict(variables or {})
        self.server_adds_bos = self.expects_bos() if server_adds_bos is None else server_adds_bos
        super().__init__(model, **options)

    def expects_bos(self) -> bool:
        """Returns True if servers of the API usually add the bos token to prompts of this template."""
        return False

    def capabilities(self, model: str | None = None) -> Capabilities:
        """Returns the rules of the template. They do not depend on the model."""
        return self._rules if self.model_rules is None else self.model_rules.apply(self._rules)

    @cached_property
    def _rules(self) -> Capabilities:
        rules = self.template.capabilities()
        return rules if self.base.issuer is None else rules.override({"issuer": self.base.issuer})

    def convert(self, legal: LegalConversation, task: RequestSpec) -> Request:
        """Returns the request with the key `prompt`.

        Raises:
            TemplateError: The template refuses the conversation.
        """
        msgs = [*legal.system.msgs, *legal.turns.msgs]
        rendered = self.template.render(
            msgs, tools=task.tools, add_generation_prompt=True, validate=False, **self.variables
        )
        bos = self.template.special_tokens.get("bos_token", "")
        return {"prompt": rendered.text.removeprefix(bos) if self.server_adds_bos else rendered.text}

    def list_stop_texts(self) -> list[str]:
        """Returns the texts at which a server must stop, because they end a turn but are no control tokens.

        Servers stop at control tokens that end a turn, such as `<|im_end|>`, without being asked.
        """
        from agentkit.chat_templates.control_tokens import find_control_tokens

        template, stop = self.template, self.template.check().stop_token
        if not stop:
            return []
        source, others = template.choose(None, has_tools=False), frozenset(template.special_tokens.values())
        control = find_control_tokens(source, template.control_tokens, others)
        return [stop] if control is None or control.sub("", stop).strip() else []
