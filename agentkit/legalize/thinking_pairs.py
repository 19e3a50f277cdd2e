"""Parts of a reply that their API accepts only with the thinking before them.

OpenAI Responses: "Item 'ws_…' of type 'web_search_call' was provided without its required 'reasoning' item".
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import replace

from agentkit.capabilities.capabilities import Capabilities
from agentkit.ledger.entries import Disposition, Note
from agentkit.ledger.ledger import Ledger
from agentkit.ledger.places import BlockPath
from agentkit.ledger.provenance import Provenance, TracedConversation, block_origins
from agentkit.legalize.blocks import thinking_obstacle
from agentkit.messages.blocks import Block, ImageBlock, OpaqueBlock, ThinkingBlock
from agentkit.messages.features import Feature
from agentkit.messages.message import build_part

__all__ = ["orphaned_parts", "without_blocks", "without_orphaned_parts"]

_REASON = "the API refuses this block without the thinking before it, which is not sent"


def without_orphaned_parts(draft: TracedConversation, ledger: Ledger, form: Capabilities) -> TracedConversation:
    """Returns the draft without parts of replies whose thinking the target does not take back."""
    return without_blocks(
        draft,
        orphaned_parts(draft, ledger, form, lambda block, _: bool(thinking_obstacle(block, form, "assistant"))),
    )


def orphaned_parts(
    draft: TracedConversation,
    ledger: Ledger,
    form: Capabilities,
    is_omitted: Callable[[ThinkingBlock, Provenance], bool],
) -> set[BlockPath]:
    """Returns the origins of parts of the target's own replies whose thinking is omitted, and notes them.

    The thinking of a part is the last of the target's own before it in its message.
    """
    gone: set[BlockPath] = set()
    if form.opaque.needs_thinking is None or (
        draft.normal_form and not draft.normal_form.features & Feature.THINKING
    ):
        return gone
    for msg, whole in zip(draft.msgs, draft.origins, strict=True):
        if not (msg.features & Feature.THINKING and msg.features & Feature.ASSISTANT):
            continue
        is_orphan = False
        for block, origin in zip(msg.blocks, block_origins(msg, whole), strict=True):
            if isinstance(block, ThinkingBlock):
                if block.state and block.state.issuer == form.issuer:
                    is_orphan = is_omitted(block, origin)
            elif is_orphan and not isinstance(origin, str) and _needs_thinking(block, form):
                is_part = isinstance(block, OpaqueBlock)
                ledger.note(origin, Note(Disposition.DROPPED if is_part else Disposition.CARRIED, _REASON))
                gone.add(origin)
    return gone


def _needs_thinking(block: Block, form: Capabilities) -> bool:
    if isinstance(block, OpaqueBlock):
        return block.wire == form.wire and bool(
            form.opaque.needs_thinking and form.opaque.needs_thinking(block.data)
        )
    state = block.state if isinstance(block, ImageBlock) and form.media.generated_by_id else None
    return state is not None and state.issuer == form.issuer and state.item_id is not None


def without_blocks(draft: TracedConversation, gone: Collection[BlockPath]) -> TracedConversation:
    """Returns the draft without some blocks of its messages. Images stay, without their state."""
    if not gone:
        return draft
    numbers = {path[0] for path in gone}
    out = TracedConversation([], [])
    for msg, whole in zip(draft.msgs, draft.origins, strict=True):
        if isinstance(whole, int) and whole not in numbers:
            out.add(msg, whole)
            continue
        origins = block_origins(msg, whole)
        pairs = [*_remaining(msg.blocks, origins, gone)]
        blocks = tuple(block for block, _ in pairs)
        if blocks == msg.blocks:
            out.add(msg, whole)
        elif pairs:
            out.add(build_part(msg, blocks, msg.role), tuple(origin for _, origin in pairs))
    return out


def _remaining(
    blocks: tuple[Block, ...], origins: tuple[Provenance, ...], gone: Collection[BlockPath]
) -> Iterator[tuple[Block, Provenance]]:
    for block, origin in zip(blocks, origins, strict=True):
        if origin not in gone:
            yield block, origin
        elif isinstance(block, ImageBlock):
            yield replace(block, state=None), origin
