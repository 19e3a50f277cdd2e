"""`describe_report`: the capabilities of a chat template. The pipeline then repairs what the template refuses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from agentkit.capabilities.capabilities import Capabilities
from agentkit.capabilities.groups import ThinkingCapabilities, ToolCapabilities, TurnCapabilities
from agentkit.capabilities.model_rules import MISTRAL_CALL_IDS
from agentkit.capabilities.wire_layout import WireLayout

if TYPE_CHECKING:
    from agentkit.chat_templates.template_report import TemplateReport

__all__ = ["LAYOUT", "describe_report"]

LAYOUT: Final = WireLayout(turns="prompt", is_rendered=True)
"""Keys of the requests `{"prompt": TEXT}`."""


def describe_report(report: TemplateReport, name: str) -> Capabilities:
    """Returns the capabilities of a template.

    Prompts contain no media, because `{"prompt": TEXT}` has only the placeholders.
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
        ),
        tools=ToolCapabilities(
            role=report.calls and report.results,
            declarations=report.tools,
            choices=frozenset({"auto"}),
            parallel_calls=report.parallel_calls,
            call_ids=None if report.any_call_id else MISTRAL_CALL_IDS,
        ),
        thinking=ThinkingCapabilities(
            mode="text" if report.thinking else "never",
            scope="all" if report.earlier_thinking else "turn" if report.call_thinking else "message",
        ),
    )
