"""`ChatTemplateFormatter`: formatter whose requests are the text of a chat template."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Unpack

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

    The text ends with the start of an assistant turn, if the template can write it.

    Args:
        template: Chat template of the model.
        model: Name of the model.
        variables: Further variables of the template, such as `{"enable_thinking": False}`.
        **options: See `FormatterBase`.
    """

    base = Capabilities(name="chat template", output="prompt", layout=LAYOUT)

    def __init__(
        self,
        model: str | None = None,
        *,
        template: ChatTemplate,
        variables: dict[str, Any] | None = None,
        **options: Unpack[FormatterOptions],
    ) -> None:
        self.template = template
        self.variables = dict(variables or {})
        super().__init__(model, **options)

    def capabilities(self, model: str | None = None) -> Capabilities:
        """Returns the rules of the template. They do not depend on the model."""
        capabilities = self.template.capabilities()
        return capabilities if self.model_rules is None else self.model_rules.apply(capabilities)

    def convert(self, legal: LegalConversation, task: RequestSpec) -> Request:
        """Returns the request with the key `prompt`.

        Raises:
            TemplateError: The template refuses the conversation.
        """
        msgs = [*legal.system.msgs, *legal.turns.msgs]
        rendered = self.template.render(
            msgs, tools=task.tools, add_generation_prompt=True, validate=False, **self.variables
        )
        return {"prompt": rendered.text}
