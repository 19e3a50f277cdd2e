r"""Chat templates: conversations in the text format that a model was trained on.

`ChatTemplate.render` converts messages and tools to the text of a prompt. The result also has the positions of the
replies in the text. `ResponseTemplate` parses the text of a reply into a message.

To read the source, start with the module `chat_template`. Then read `conversation_renderer`, `template_messages`
and `agentkit.jinja_environments.chat_rendering`. `template_sources` chooses among several templates. For replies,
read the package `responses`.

Example:
    >>> from agentkit import Msg
    >>> from agentkit.chat_templates import ChatTemplate
    >>> msgs = [Msg("system", "Be brief.", "system"), Msg("Bob", "Hello.", "user")]
    >>> ChatTemplate.builtin("zephyr").render(msgs).text
    '<|system|>\nBe brief.</s>\n<|user|>\nHello.</s>\n<|assistant|>\n'
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentkit.lazy_names import import_on_first_use

if TYPE_CHECKING:
    from agentkit.chat_templates.chat_template import ChatTemplate as ChatTemplate
    from agentkit.chat_templates.message_order import validate_messages as validate_messages
    from agentkit.chat_templates.rendered_chat import OmittedBlock as OmittedBlock
    from agentkit.chat_templates.rendered_chat import RenderedChat as RenderedChat
    from agentkit.chat_templates.rendered_chat import RenderedMedia as RenderedMedia
    from agentkit.chat_templates.responses.response_template import ResponseTemplate as ResponseTemplate
    from agentkit.chat_templates.template_formatter import ChatTemplateFormatter as ChatTemplateFormatter
    from agentkit.chat_templates.template_report import TemplateReport as TemplateReport
else:
    __all__, __getattr__, __dir__ = import_on_first_use(
        __name__,
        {
            "agentkit.chat_templates.chat_template": "ChatTemplate",
            "agentkit.chat_templates.message_order": "validate_messages",
            "agentkit.chat_templates.rendered_chat": "OmittedBlock RenderedChat RenderedMedia",
            "agentkit.chat_templates.responses.response_template": "ResponseTemplate",
            "agentkit.chat_templates.template_formatter": "ChatTemplateFormatter",
            "agentkit.chat_templates.template_report": "TemplateReport",
        },
    )
