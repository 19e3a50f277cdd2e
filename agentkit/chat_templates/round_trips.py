"""`find_round_trip_losses`: finds the replies whose text changes when they are parsed and rendered again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from agentkit.chat_templates.probe_messages import (
    CALL,
    REPLY,
    THINKING,
    TOOL,
    TWO_CALLS,
    USER,
    has_words,
)
from agentkit.chat_templates.responses.response_template import ResponseTemplate
from agentkit.chat_templates.template_messages import convert_messages
from agentkit.errors import AgentkitError
from agentkit.jinja_environments.functions import create_clock

if TYPE_CHECKING:
    from agentkit.chat_templates.template_probe import TemplateProbe

__all__ = ["find_round_trip_losses"]

_CLOCK: Final = create_clock(datetime(2001, 1, 1, 1))
_REPLIES: Final[dict[str, tuple[dict[str, Any], tuple[str, ...]]]] = {
    "text": (REPLY, ("Replyword",)),
    "thinking": (THINKING, ("Thinkingword", "Replyword")),
    "call": (CALL, ("Firstword",)),
    "text and call": ({**CALL, "content": "Replyword"}, ("Replyword", "Firstword")),
    "several calls": (TWO_CALLS, ("Firstword", "Secondword")),
}
"""Maps each kind of reply to a message, and to the words that its rendered text must contain in this order."""


def find_round_trip_losses(probe: TemplateProbe, spec: Mapping[str, Any]) -> frozenset[str] | None:
    """Renders replies of several kinds, parses their texts, and renders the parsed messages.

    The result omits a kind that the chat template does not write and for which the response template has no field.

    Args:
        probe: Renderer of the chat template.
        spec: Declaration of the response template.

    Returns:
        The kinds of replies whose text changes or is incomplete, as in `TemplateReport.round_trip_losses`. None if
        the response template is invalid, or if the package regex is not installed.
    """
    try:
        responses = ResponseTemplate(spec)
    except AgentkitError:
        return None
    losses = {kind for kind in _REPLIES if not _is_reply_unchanged(probe, responses, kind)}
    if "text" not in losses and not _is_bare_text_unchanged(probe, responses):
        losses.add("bare text")
    return frozenset(losses)


def _is_bare_text_unchanged(probe: TemplateProbe, responses: ResponseTemplate) -> bool:
    """Returns True if a reply without `<think></think>` keeps its text, or if the template adds no such tags."""
    prompt = _render(probe, [], add_generation_prompt=True)
    text = _render(probe, [REPLY])
    if prompt is None or text is None:
        return True
    bare = text[text.rindex("Replyword") :]
    msg = responses.parse(bare, prompt)
    return msg.text != "Replyword" or _render(probe, convert_messages([msg]).messages) == prompt + bare


def _is_reply_unchanged(probe: TemplateProbe, responses: ResponseTemplate, kind: str) -> bool:
    """Returns True if parsing and rendering do not change a reply, or if neither template supports its kind."""
    reply, words = _REPLIES[kind]
    prompt = _render(probe, [], add_generation_prompt=True)
    text = _render(probe, [reply])
    if prompt is None or text is None or not has_words(text, words):
        return not responses.has_fields(thinking=kind == "thinking", calls="call" in kind)
    if not text.startswith(prompt):
        return False
    try:
        msg = responses.parse(text[len(prompt) :], prompt)
        messages = convert_messages([msg]).messages
    except AgentkitError:
        return False
    return _render(probe, messages) == text


def _render(probe: TemplateProbe, messages: Sequence[Mapping[str, Any]], **others: Any) -> str | None:
    return probe.render_text([USER, *messages], tools=[TOOL], strftime_now=_CLOCK, **others)
