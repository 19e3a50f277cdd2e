"""Treatment of tool results that match no tool call: they become text of a user message, or are dropped."""

from __future__ import annotations

from collections.abc import Iterator

from agentkit.ledger.entries import Disposition, Note
from agentkit.ledger.ledger import Ledger
from agentkit.ledger.provenance import Provenance
from agentkit.messages.blocks import Block, TextBlock, ToolResultBlock, build_trusted_text
from agentkit.tools.result_texts import result_text

__all__ = ["UNMATCHED_MARK", "describe_unmatched", "drop_unmatched"]

UNMATCHED_MARK = "agentkit_unmatched_result"
"""Metadata key of a user message whose text is a tool result.

The search for the first user message skips messages with this key, because no user wrote their text.
"""


def describe_unmatched(
    block: ToolResultBlock, tool_name: str, origin: Provenance, ledger: Ledger
) -> Iterator[tuple[Block, Provenance]]:
    """Yields the text of a tool result as one text block, and then the media and opaque blocks of the result.

    Each block is paired with its origin (the path of its input block). The ledger records the result and all its
    items.
    """
    reason = _format_reason(block)
    described, moved = Note(Disposition.DESCRIBED, reason, True), Note(Disposition.MOVED, reason, True)
    ledger.note_origins([origin], described)
    yield build_trusted_text(result_text(block, tool_name)), origin
    for item_origin, item in _list_items(block, origin):
        is_text = isinstance(item, TextBlock)
        ledger.note_origins([item_origin], described if is_text else moved)
        if not is_text:
            yield item, item_origin


def drop_unmatched(block: ToolResultBlock, origin: Provenance, ledger: Ledger, *, lost: bool) -> None:
    """Records in the ledger that a tool result and its items are dropped.

    If `lost` is True, the ledger records a loss.
    """
    note = Note(Disposition.DROPPED, _format_reason(block), lost)
    ledger.note_origins([origin, *(item_origin for item_origin, _ in _list_items(block, origin))], note)


def _format_reason(block: ToolResultBlock) -> str:
    return f"no earlier tool call with id {block.id[:64]!r} needs a result"


def _list_items(block: ToolResultBlock, origin: Provenance) -> Iterator[tuple[Provenance, Block]]:
    for index, item in enumerate(() if isinstance(block.output, str) else block.output):
        yield origin if isinstance(origin, str) else (*origin, index), item
