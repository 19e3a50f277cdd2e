"""Omits texts or thinking from messages with tool calls, if the target refuses or silently omits this content.

Some chat templates, such as Llama 3.1's, write only the call of a message with a tool call. Others, such as
gpt-oss's, write either the text or the thinking of such a message.
"""

from __future__ import annotations

from agentkit.ledger.entries import Disposition, Note
from agentkit.ledger.places import BlockPath
from agentkit.legalize.conversation import LegalConversation, StageContext
from agentkit.legalize.thinking_pairs import without_blocks
from agentkit.messages.blocks import TextBlock, ThinkingBlock
from agentkit.messages.features import Feature

__all__ = ["omit_call_texts", "omit_thinking_beside_texts"]

_LOST = Note(Disposition.DROPPED, "the API accepts no text in a message with tool calls", lost=True)
_BESIDE = Note(Disposition.DROPPED, "the API accepts no thinking in a message with tool calls and text")
_BLANK = Note(Disposition.DROPPED, "the text is empty or has only white space")


def omit_call_texts(conversation: LegalConversation, context: StageContext) -> LegalConversation:
    """Omits texts in messages with tool calls, which is a loss. This is a pipeline stage."""
    omitted: set[BlockPath] = set()
    for traced in conversation.turns:
        if not traced.msg.features & Feature.CALL:
            continue
        for block, origin in traced.traced_blocks:
            if isinstance(block, TextBlock) and not isinstance(origin, str):
                context.ledger.note(origin, _LOST if block.text.strip() else _BLANK)
                omitted.add(origin)
    return conversation.with_turns(without_blocks(conversation.turns, omitted))


def omit_thinking_beside_texts(conversation: LegalConversation, context: StageContext) -> LegalConversation:
    """Omits the thinking of messages that contain both tool calls and texts. This is a pipeline stage."""
    omitted: set[BlockPath] = set()
    for traced in conversation.turns:
        features = traced.msg.features
        if not (features & Feature.CALL and features & Feature.THINKING and traced.msg.text):
            continue
        for block, origin in traced.traced_blocks:
            if isinstance(block, ThinkingBlock) and not isinstance(origin, str):
                context.ledger.note(origin, _BESIDE)
                omitted.add(origin)
    return conversation.with_turns(without_blocks(conversation.turns, omitted))
