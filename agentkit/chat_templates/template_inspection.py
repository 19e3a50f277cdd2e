"""`inspect_template`: renders small conversations to find the features of a chat template."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from agentkit.chat_templates.probe_messages import (
    CALL,
    LONG_CALL,
    LONG_RESULT,
    REPLY,
    RESULT,
    SYSTEM,
    THINKING,
    TOOL,
    USER,
    USER_WITH_PARTS,
    create_message,
)
from agentkit.chat_templates.template_report import TemplateReport

if TYPE_CHECKING:
    from agentkit.chat_templates.chat_template import ChatTemplate
    from agentkit.chat_templates.template_probe import TemplateProbe

__all__ = ["inspect_template"]


def inspect_template(template: ChatTemplate) -> TemplateReport:
    """Renders small conversations, and returns the features of the template."""
    probe = template.probe
    marks_spans, stop_token, ends_with_stop_token = probe.inspect_reply_end()
    losses = None if template.response_template is None else _find_losses(probe, template.response_template)
    return TemplateReport(
        system=probe.writes_system,
        several_system=probe.writes(
            [SYSTEM, create_message("system", "Otherword"), USER], "Systemword", "Otherword"
        ),
        late_system=probe.writes_late_system(),
        consecutive_roles=probe.writes([USER, create_message("user", "Otherword")], "Userword", "Otherword")
        and probe.writes([USER, REPLY, create_message("assistant", "Otherword"), USER], "Replyword", "Otherword"),
        assistant_first=probe.writes_assistant_first(),
        needs_user=probe.needs_user(),
        named_roles=probe.find_named_roles(),
        generation_prompt=probe.render_text([USER]) != probe.render_text([USER], add_generation_prompt=True),
        tools=probe.writes([USER], "probe_tool", tools=[TOOL]) and probe.writes([USER], "Toolword", tools=[TOOL]),
        calls=probe.writes_calls,
        parallel_calls=probe.writes_parallel_calls,
        call_texts=not probe.writes_calls or probe.writes_call_texts,
        call_thinking_and_text=probe.writes_call_thinking_and_text(),
        any_call_id=probe.writes([USER, LONG_CALL, LONG_RESULT], "Firstword")
        or not probe.writes([USER, CALL, RESULT], "Firstword"),
        results=probe.writes_results,
        thinking=probe.writes_thinking,
        call_thinking=probe.writes_call_thinking,
        earlier_thinking=probe.writes([USER, THINKING, USER, REPLY], "Thinkingword"),
        parts=probe.render_text([USER_WITH_PARTS]) == probe.render_text([USER]),
        needs_parts=probe.needs_parts,
        media=frozenset(kind for kind in ("image", "audio", "video") if probe.find_placeholder(kind)),
        trims=probe.trims(),
        extends_prefix=probe.extends_prefix(),
        marks_spans=marks_spans,
        ends_with_stop_token=ends_with_stop_token,
        stop_token=stop_token,
        reads_clock=probe.reads_clock(),
        round_trip_losses=losses,
    )


def _find_losses(probe: TemplateProbe, spec: Mapping[str, Any]) -> frozenset[str] | None:
    from agentkit.chat_templates.round_trips import find_round_trip_losses

    return find_round_trip_losses(probe, spec)
