"""System messages for APIs that accept a single one, none at all, or none after the first turn."""

from __future__ import annotations

from dataclasses import replace

from agentkit.ledger.entries import SYSTEM_LINE, Disposition, Note
from agentkit.ledger.ledger import Ledger
from agentkit.ledger.provenance import TracedConversation
from agentkit.messages.blocks import TextBlock
from agentkit.messages.features import Feature
from agentkit.messages.message import Msg, build_trusted
from agentkit.repair.normal_form import find_normal_form

__all__ = ["join_messages", "prepend_prompt", "write_system_lines"]

_MERGED = Note(Disposition.MERGED, "merged into the previous system message")
_MOVED = Note(Disposition.MOVED, "moved into the first user turn: the target has no system role")


def join_messages(prompt: TracedConversation, ledger: Ledger) -> TracedConversation:
    """Returns one system message with the blocks of all messages of the system prompt."""
    blocks = tuple(block for msg in prompt.msgs for block in msg.blocks)
    parts = [traced.block_origins for traced in prompt]
    origins = tuple(origin for part in parts for origin in part)
    ledger.note_origins(origins[len(parts[0]) :], _MERGED)
    return TracedConversation([build_trusted(prompt.msgs[0].name, blocks, "system")], [origins])


def prepend_prompt(prompt: TracedConversation, turns: TracedConversation, ledger: Ledger) -> TracedConversation:
    """Returns the turns with the system prompt at the start of the first user turn. Adds a user turn if needed."""
    blocks = [block for msg in prompt.msgs for block in msg.blocks]
    origins = [origin for traced in prompt for origin in traced.block_origins]
    ledger.note_origins(origins, _MOVED)
    joins = bool(turns.msgs) and turns.msgs[0].role == "user" and not turns.msgs[0].features & Feature.TOOL
    if joins:
        blocks += turns.msgs[0].blocks
        origins += turns.get(0).block_origins
    first = TracedConversation([build_trusted("user", tuple(blocks), "user")], [tuple(origins)])
    first.extend(turns.part(1 if joins else 0))
    return first


def write_system_lines(turns: TracedConversation, ledger: Ledger) -> TracedConversation:
    """Returns the turns with each system message replaced by a user message.

    Each text of the user message begins with the name of the system message's speaker.
    """
    if not any(msg.features & Feature.SYSTEM for msg in turns.msgs):
        return turns
    out = TracedConversation([], turns.origins.copy())
    for traced in turns:
        if traced.msg.features & Feature.SYSTEM:
            ledger.note_origins(traced.block_origins, SYSTEM_LINE)
            ledger.add_synthesis("system line", "speaker name added to a system message that is sent as user text")
            out.msgs.append(_as_user_message(traced.msg))
        else:
            out.msgs.append(traced.msg)
    out.normal_form = find_normal_form(out, 0)
    return out


def _as_user_message(msg: Msg) -> Msg:
    name = msg.name or msg.role
    blocks = tuple(
        replace(block, text=f"{name}: {block.text}") if isinstance(block, TextBlock) else block
        for block in msg.blocks
    )
    return build_trusted(msg.name, blocks, "user")
