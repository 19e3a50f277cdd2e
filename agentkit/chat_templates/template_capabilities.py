"""`as_capabilities`: converts the report about a chat template to capabilities for formatters."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from agentkit.capabilities.capabilities import Capabilities
from agentkit.capabilities.groups import ThinkingCapabilities, ToolCapabilities, TurnCapabilities
from agentkit.capabilities.local_model_rules import MISTRAL_CALL_IDS
from agentkit.capabilities.wire_layout import WireLayout

if TYPE_CHECKING:
    from agentkit.chat_templates.template_report import TemplateReport

__all__ = ["LAYOUT", "as_capabilities"]

LAYOUT: Final = WireLayout(turns="prompt", is_rendered=True)
"""Wire layout of the requests `{"prompt": TEXT}`: the key `prompt` has the whole conversation."""


def as_capabilities(report: TemplateReport, name: str) -> Capabilities:
    """Converts the report about a template to capabilities.

    The capabilities accept no media, because a request `{"prompt": TEXT}` has only placeholders for media.
    """
    return Capabilities(
        name=f"the chat template {name!r}",
        output="prompt",
        layout=LAYOUT,
        turns=TurnCapabilities(
            text_joining="string",
            system_role=report.system,
            late_system="native" if report.late_system else "line",
            one_system=not report.several_system,
            alternate=not report.consecutive_roles,
            first_user=not report.assistant_first,
            needs_user=report.needs_user,
            # Without a system role, the first user turn contains the system prompt and has no speaker name.
            speaker_names=report.system and {"user", "assistant"} <= report.named_roles,
            speaker_refused="",
        ),
        tools=ToolCapabilities(
            role=report.calls and report.results,
            declarations=report.tools,
            choices=frozenset({"auto"}),
            parallel_calls=report.parallel_calls,
            call_texts=report.call_texts,
            call_ids=None if report.any_call_id else MISTRAL_CALL_IDS,
        ),
        thinking=ThinkingCapabilities(
            mode="text" if report.thinking else "never",
            scope="all" if report.earlier_thinking else "turn" if report.call_thinking else "message",
            beside_call_texts=report.call_thinking_and_text,
        ),
    )
