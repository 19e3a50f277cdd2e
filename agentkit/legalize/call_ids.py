"""Call ids: rewrites ids that a target refuses, and repeated ids of the calls in one turn."""

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
"""Rule for new call ids where the target has no rule of its own."""


def legal_call_id(capabilities: Capabilities, call_id: str) -> str:
    """Returns the call id, or an id derived from it if the API does not accept the call id."""
    rule = capabilities.tools.call_ids
    return rule.fit(call_id) if rule else call_id or "call_unnamed"


def distinguish_calls(
    turns: TracedConversation, capabilities: Capabilities, call_ids: dict[str, str]
) -> TracedConversation:
    """Returns the turns with new ids for tool calls that repeat the id of another call in the same turn.

    The function does not change the ids of the results. `order_results` does that later. `call_ids` maps each
    changed call id to its original id. The function adds an entry for each new id.
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
