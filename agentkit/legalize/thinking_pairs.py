"""Removal of reply blocks that an API accepts only together with the thinking before them.

For example, OpenAI Responses reports "Item 'ws_…' of type 'web_search_call' was provided without its required
'reasoning' item".
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import replace

from agentkit.capabilities.capabilities import Capabilities
from agentkit.ledger.entries import Disposition, Note
from agentkit.ledger.ledger import Ledger
from agentkit.ledger.places import BlockPath
from agentkit.ledger.provenance import Provenance, TracedConversation, TracedMessage
from agentkit.legalize.block_rules import find_omission_reason
from agentkit.legalize.conversation import LegalConversation, StageContext
from agentkit.messages.blocks import Block, ImageBlock, OpaqueBlock, ThinkingBlock
from agentkit.messages.features import Feature
from agentkit.messages.message import build_part

__all__ = ["find_orphaned_parts", "omit_orphaned_parts", "without_blocks"]

_REASON = "the API requires the thinking before this block, but the request omits that thinking"


def omit_orphaned_parts(conversation: LegalConversation, context: StageContext) -> LegalConversation:
    """Omits reply blocks that depend on omitted thinking. This is a pipeline stage."""

    def is_omitted(block: ThinkingBlock, _: Provenance) -> bool:
        return find_omission_reason(block, context.spec.capabilities, "assistant") is not None

    orphans = find_orphaned_parts(conversation.turns, context.ledger, context.spec.capabilities, is_omitted)
    return conversation.with_turns(without_blocks(conversation.turns, orphans))


def find_orphaned_parts(
    conversation: TracedConversation,
    ledger: Ledger,
    target: Capabilities,
    is_omitted: Callable[[ThinkingBlock, Provenance], bool],
) -> set[BlockPath]:
    """Returns the paths of reply blocks that depend on omitted thinking. Adds a ledger note about each block.

    A reply block depends on the last thinking block before it in the same message. Blocks that the target's
    provider did not issue are ignored.
    """
    orphans: set[BlockPath] = set()
    if target.opaque.needs_thinking is None:
        return orphans
    for traced in conversation:
        if not (traced.msg.features & Feature.THINKING and traced.msg.features & Feature.ASSISTANT):
            continue
        is_orphan = False
        for block, origin in traced.traced_blocks:
            if isinstance(block, ThinkingBlock):
                if block.state and block.state.issuer == target.issuer:
                    is_orphan = is_omitted(block, origin)
            elif is_orphan and not isinstance(origin, str) and _needs_thinking(block, target):
                is_dropped = isinstance(block, OpaqueBlock)
                ledger.note(origin, Note(Disposition.DROPPED if is_dropped else Disposition.CARRIED, _REASON))
                orphans.add(origin)
    return orphans


def _needs_thinking(block: Block, target: Capabilities) -> bool:
    if isinstance(block, OpaqueBlock):
        needs_thinking = target.opaque.needs_thinking
        return block.wire == target.wire and needs_thinking is not None and needs_thinking(block.data)
    state = block.state if isinstance(block, ImageBlock) and target.media.generated_by_id else None
    return state is not None and state.issuer == target.issuer and state.item_id is not None


def without_blocks(conversation: TracedConversation, omitted: Collection[BlockPath]) -> TracedConversation:
    """Returns the conversation without the blocks at the paths in `omitted`.

    An image at one of these paths stays in the conversation without its opaque state.
    """
    if not omitted:
        return conversation
    indexes = {path[0] for path in omitted}
    out = TracedConversation([], [])
    for traced in conversation:
        msg, origin = traced
        if isinstance(origin, int) and origin not in indexes:
            out.add(msg, origin)
            continue
        pairs = [*_list_remaining(traced, omitted)]
        blocks = tuple(block for block, _ in pairs)
        if blocks == msg.blocks:
            out.add(msg, origin)
        elif pairs:
            out.add(build_part(msg, blocks, msg.role), tuple(block_origin for _, block_origin in pairs))
    return out


def _list_remaining(traced: TracedMessage, omitted: Collection[BlockPath]) -> Iterator[tuple[Block, Provenance]]:
    for block, origin in traced.traced_blocks:
        if origin not in omitted:
            yield block, origin
        elif isinstance(block, ImageBlock):
            yield replace(block, state=None), origin
