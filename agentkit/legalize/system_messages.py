"""Rewrites system messages for APIs that restrict them.

Some APIs accept only one system message, or none. Other APIs accept system messages only at the start.
"""

from __future__ import annotations

from dataclasses import replace

from agentkit.ledger.entries import SYSTEM_LINE, Disposition, Note
from agentkit.ledger.provenance import Provenance, TracedConversation
from agentkit.legalize.conversation import LegalConversation, StageContext
from agentkit.messages.blocks import Block, TextBlock
from agentkit.messages.features import Feature
from agentkit.messages.message import Msg, build_trusted
from agentkit.repair.normal_form import find_normal_form

__all__ = ["begin_with_system_prompt", "join_system_prompt", "write_late_system_lines"]

_MERGED = Note(Disposition.MERGED, "merged into the previous system message")
_MOVED = Note(Disposition.MOVED, "moved into the first user turn, because the API has no system role")


def join_system_prompt(conversation: LegalConversation, context: StageContext) -> LegalConversation:
    """Merges the messages of the system prompt into one message. This is a pipeline stage."""
    prompt = conversation.system
    if len(prompt.msgs) > 1:
        blocks, origins = _list_blocks(prompt)
        context.ledger.note_origins(origins[len(prompt.get(0).block_origins) :], _MERGED)
        msg = build_trusted(prompt.msgs[0].name, tuple(blocks), "system")
        conversation.system = TracedConversation([msg], [tuple(origins)])
    return conversation


def begin_with_system_prompt(conversation: LegalConversation, context: StageContext) -> LegalConversation:
    """Moves the system prompt to the start of the first turn. This is a pipeline stage.

    If the conversation does not begin with a user turn, a user turn with the system prompt is added at the start.
    """
    prompt, turns = conversation.system, conversation.turns
    if not prompt.msgs:
        return conversation
    blocks, origins = _list_blocks(prompt)
    context.ledger.note_origins(origins, _MOVED)
    joins = bool(turns.msgs) and turns.msgs[0].role == "user" and not turns.msgs[0].features & Feature.TOOL
    if joins:
        blocks += turns.msgs[0].blocks
        origins += turns.get(0).block_origins
    first = TracedConversation([build_trusted("user", tuple(blocks), "user")], [tuple(origins)])
    first.extend(turns.part(1 if joins else 0))
    conversation = conversation.with_turns(first)
    conversation.system = TracedConversation([], [])
    return conversation


def _list_blocks(prompt: TracedConversation) -> tuple[list[Block], list[Provenance]]:
    origins = [origin for traced in prompt for origin in traced.block_origins]
    return [block for msg in prompt.msgs for block in msg.blocks], origins


def write_late_system_lines(conversation: LegalConversation, context: StageContext) -> LegalConversation:
    """Replaces each system message after the system prompt by a user message. This is a pipeline stage.

    Each text of the user message begins with the speaker name of the system message.
    """
    turns = conversation.turns
    if not any(msg.features & Feature.SYSTEM for msg in turns.msgs):
        return conversation
    out = TracedConversation([], turns.origins.copy())
    for traced in turns:
        if traced.msg.features & Feature.SYSTEM:
            context.ledger.note_origins(traced.block_origins, SYSTEM_LINE)
            reason = "speaker name added to a system message that is sent as user text"
            context.ledger.add_synthesis("system line", reason)
            out.msgs.append(_as_user_message(traced.msg))
        else:
            out.msgs.append(traced.msg)
    out.normal_form = find_normal_form(out, 0)
    return conversation.with_turns(out)


def _as_user_message(msg: Msg) -> Msg:
    name = msg.name or msg.role
    blocks = tuple(
        replace(block, text=f"{name}: {block.text}") if isinstance(block, TextBlock) else block
        for block in msg.blocks
    )
    return build_trusted(msg.name, blocks, "user")
