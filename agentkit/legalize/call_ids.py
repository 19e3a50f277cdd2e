"""Replaces call ids that a target refuses, or that several tool calls of one turn share."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import count
from operator import is_
from typing import TYPE_CHECKING

from agentkit.capabilities.capabilities import Capabilities
from agentkit.capabilities.name_rules import NameRule
from agentkit.ledger.provenance import TracedConversation
from agentkit.messages.blocks import Block, ToolUseBlock
from agentkit.messages.features import Feature
from agentkit.messages.message import Msg, build_trusted

if TYPE_CHECKING:
    from agentkit.legalize.conversation import LegalConversation, StageContext

__all__ = ["legal_call_id", "make_call_ids_distinct"]

_ANY_ID = NameRule(prefix="call_")
"""Rule for new call ids if the target has no rule for call ids."""


def legal_call_id(capabilities: Capabilities, call_id: str) -> str:
    """Returns the call id if the API accepts it. Otherwise, returns an accepted id derived from the call id."""
    rule = capabilities.tools.call_ids
    return rule.fit(call_id) if rule else call_id or "call_unnamed"


def make_call_ids_distinct(conversation: LegalConversation, context: StageContext) -> LegalConversation:
    """Replaces repeated call ids in a turn, so that each tool call has a different id. This is a pipeline stage.

    If several calls of a turn have the same id, the first call keeps the id. A later stage, `arrange_results`,
    puts the new ids into the tool results. `LegalConversation.call_ids` maps each new id to the original id.
    """
    turns, target = conversation.turns, context.spec.capabilities
    msgs = [
        _distinguish(msg, target, conversation.call_ids) if msg.features & Feature.REPEATED else msg
        for msg in turns.msgs
    ]
    if all(map(is_, msgs, turns.msgs)):
        return conversation
    return conversation.with_turns(TracedConversation(msgs, turns.origins.copy()))


def _distinguish(msg: Msg, capabilities: Capabilities, call_ids: dict[str, str]) -> Msg:
    used_ids = {*msg.tool_ids}
    numbers: dict[str, Iterator[int]] = {}
    blocks: list[Block] = []
    rule = capabilities.tools.call_ids or _ANY_ID
    for block in msg.blocks:
        if isinstance(block, ToolUseBlock):
            if block.id in numbers:
                candidates = (rule.fit(f"{block.id}#{number}") for number in numbers[block.id])
                new_id = next(candidate for candidate in candidates if candidate not in used_ids)
                call_ids[new_id] = call_ids.get(block.id, block.id)
                block = replace(block, id=new_id)
                used_ids.add(new_id)
            numbers.setdefault(block.id, count(2))
        blocks.append(block)
    return build_trusted(msg.name, tuple(blocks), msg.role)
