"""Omits thinking of earlier messages, for targets that would omit this thinking silently.

Chat templates of reasoning models, such as Qwen3's, write only the thinking of the current turn.
"""

from __future__ import annotations

from agentkit.ledger.entries import Disposition, Note
from agentkit.ledger.places import BlockPath
from agentkit.legalize.conversation import LegalConversation, StageContext
from agentkit.legalize.thinking_pairs import without_blocks
from agentkit.messages.blocks import ThinkingBlock
from agentkit.messages.features import Feature
from agentkit.messages.message import Msg

__all__ = ["omit_earlier_thinking"]

_REASONS = {
    "turn": "the API ignores thinking before the last message of a user",
    "message": "the API ignores thinking in all messages except the last",
}


def omit_earlier_thinking(conversation: LegalConversation, context: StageContext) -> LegalConversation:
    """Omits thinking of messages outside the target's `ThinkingCapabilities.scope`. This is a pipeline stage."""
    turns, scope = conversation.turns, context.spec.capabilities.thinking.scope
    last = len(turns.msgs) - 1
    if scope == "turn":
        last = max((index for index, msg in enumerate(turns.msgs) if _is_user(msg)), default=0)
    omitted: set[BlockPath] = set()
    for index, traced in enumerate(turns):
        if index < last and traced.msg.features & Feature.THINKING:
            for block, origin in traced.traced_blocks:
                if isinstance(block, ThinkingBlock) and not isinstance(origin, str):
                    context.ledger.note(origin, Note(Disposition.DROPPED, _REASONS[scope]))
                    omitted.add(origin)
    return conversation.with_turns(without_blocks(turns, omitted))


def _is_user(msg: Msg) -> bool:
    return msg.role == "user" and not msg.features & (Feature.RESULT | Feature.CALL)
