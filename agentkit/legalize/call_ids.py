"""Call ids as a target accepts them, and distinct ids for calls of one turn."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import count

from agentkit.capabilities.capabilities import Capabilities
from agentkit.capabilities.name_rules import NameRule
from agentkit.ledger.provenance import TracedConversation
from agentkit.messages.blocks import Block, ToolUseBlock
from agentkit.messages.features import Feature
from agentkit.messages.message import Msg, build_trusted

__all__ = ["distinguish_calls", "legal_call_id"]

_ANY_ID = NameRule(prefix="call_")
"""Rule of the ids that are created for targets without a rule for call ids."""


def legal_call_id(capabilities: Capabilities, call_id: str) -> str:
    """Returns a call id as the API accepts it."""
    rule = capabilities.tools.call_ids
    return rule.fit(call_id) if rule else call_id or "call_unnamed"


def distinguish_calls(
    turns: TracedConversation, capabilities: Capabilities, call_ids: dict[str, str]
) -> TracedConversation:
    """Returns the turns with distinct call ids in each turn of calls.

    The results still have the repeated ids: `order_results` changes them.

    Args:
        turns: The turns.
        capabilities: The rules of the target.
        call_ids: The original ids of changed call ids. The function adds the new ids.

    """
    if not any(msg.features & Feature.REPEATED for msg in turns.msgs):
        return turns
    msgs = [
        _distinguish(msg, capabilities, call_ids) if msg.features & Feature.REPEATED else msg for msg in turns.msgs
    ]
    return TracedConversation(msgs, turns.origins.copy())


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
