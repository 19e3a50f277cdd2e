"""Tool results without an open tool call: their content as a text of the user, or dropped; a loss either way."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from agentkit.ledger.ledger import BlockPath, Disposition, Ledger, Note
from agentkit.messages.blocks import Block, TextBlock, ToolResultBlock, build_trusted_text
from agentkit.tools.tool_texts import result_text

__all__ = ["UNMATCHED_MARK", "describe_unmatched", "drop_unmatched"]

UNMATCHED_MARK = "agentkit_unmatched_result"
"""Metadata key of a message that holds a result as text. No speaker said the text, so it is never the task."""

_Origin: TypeAlias = BlockPath | str


def describe_unmatched(
    block: ToolResultBlock, name: str, origin: _Origin, ledger: Ledger
) -> Iterator[tuple[Block, _Origin]]:
    """Yields the result's text, then its other items, each with its origin."""
    reason = _reason(block)
    described, moved = Note(Disposition.DESCRIBED, reason, True), Note(Disposition.MOVED, reason, True)
    _note(ledger, origin, described)
    yield build_trusted_text(result_text(block, name)), origin
    for path, item in _items(block, origin):
        is_text = isinstance(item, TextBlock)
        _note(ledger, path, described if is_text else moved)
        if not is_text:
            yield item, path


def drop_unmatched(block: ToolResultBlock, origin: _Origin, ledger: Ledger, *, lost: bool) -> None:
    """Records the result and its items as dropped."""
    note = Note(Disposition.DROPPED, _reason(block), lost)
    _note(ledger, origin, note)
    for path, _ in _items(block, origin):
        _note(ledger, path, note)


def _reason(block: ToolResultBlock) -> str:
    return f"no open tool call has id {block.id[:64]!r}"


def _items(block: ToolResultBlock, origin: _Origin) -> Iterator[tuple[_Origin, Block]]:
    for at, item in enumerate(() if isinstance(block.output, str) else block.output):
        yield origin if isinstance(origin, str) else (*origin, at), item


def _note(ledger: Ledger, origin: _Origin, note: Note) -> None:
    if not isinstance(origin, str):
        ledger.note(origin, note)
