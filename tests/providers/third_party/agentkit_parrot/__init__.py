"""Parrot: the smallest provider of a third party. Its API accepts only strings."""

from typing import Any, ClassVar

from agentkit import Msg, MultiAgentHistory, Tool
from agentkit.provider_kit import (
    Capabilities,
    FormatterBase,
    LegalConversation,
    ModelFact,
    NameRule,
    Provider,
    Request,
    RequestSpec,
    ToolCapabilities,
    TurnCapabilities,
    WireLayout,
    copy_json,
)

__all__ = ["PARROT", "PROVIDER", "ParrotChatFormatter", "ParrotMultiAgentFormatter"]

PARROT = Capabilities(
    name="Parrot",
    output="prompt",
    layout=WireLayout(
        turns="squawks",
        prompt="rules",
        tools="tricks",
        role="who",
        labels=frozenset({"who"}),
        silent=frozenset({"id", "failed"}),  # `failed` is a list of call ids
        reply_roles=frozenset({"bird"}),
        result_keys=frozenset({"results"}),
    ),
    turns=TurnCapabilities(
        text_joining="string",
        late_system="line",
        merge=True,
        first_user=True,
    ),
    tools=ToolCapabilities(
        results="together",
        call_ids=NameRule(limit=64),
        choices=frozenset({"auto"}),
    ),
)


class ParrotChatFormatter(FormatterBase):
    """Formatter for a list of squawks, the oldest first."""

    base: ClassVar[Capabilities] = PARROT
    facts: ClassVar[tuple[ModelFact, ...]] = (
        ModelFact("mute", {"turns.last_user": True}, "the cage's label", "2026-11-20"),
    )

    def convert(self, legal: LegalConversation, task: RequestSpec) -> Request:
        """Returns the request: the rules, and the squawks."""
        request: Request = {
            "rules": [msg.text for msg in legal.system.msgs],
            "squawks": [_squawk(msg) for msg in legal.turns.msgs],
        }
        return {**request, "tricks": [_trick(tool) for tool in task.tools]} if task.tools else request


class ParrotMultiAgentFormatter(ParrotChatFormatter):
    """Formatter for many speakers."""

    default_history = MultiAgentHistory


def _trick(tool: Tool) -> dict[str, Any]:
    return {"name": tool.name, "description": tool.description, "parameters": copy_json(tool.parameters)}


def _squawk(msg: Msg) -> dict[str, Any]:
    if msg.tool_results:
        results: dict[str, Any] = {
            "who": "keeper",
            "results": {result.id: result.text for result in msg.tool_results},
        }
        if failed := [result.id for result in msg.tool_results if result.is_error]:
            results["failed"] = failed
        return {**results, "text": msg.text} if msg.text else results
    squawk: dict[str, Any] = {"who": "bird" if msg.role == "assistant" else "keeper", "text": msg.text}
    calls = {use.id: {"trick": use.name, "arguments": use.arguments} for use in msg.tool_uses}
    return {**squawk, "calls": calls} if calls else squawk


PROVIDER = Provider("parrot", ParrotChatFormatter, ParrotMultiAgentFormatter, testing="agentkit_parrot.testing")
