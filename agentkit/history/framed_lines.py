"""Blocks as lines of a history frame, for one message at a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from agentkit.messages.blocks import (
    Block,
    InvalidBlock,
    MediaBlock,
    OpaqueBlock,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
    build_trusted_text,
)
from agentkit.messages.features import Feature
from agentkit.messages.message import Msg, build_trusted

__all__ = ["FramedBlocks", "Piece", "frame_blocks", "has_line", "is_reply_part", "is_tool_block"]

Piece: TypeAlias = TextBlock | MediaBlock | OpaqueBlock | InvalidBlock
"""Block of a history frame. A text block is a line, with the line break before it."""


def has_line(block: Block, msg: Msg) -> bool:
    """Returns True if a frame has a line or a piece for the block: no tool block, thinking or part of a reply."""
    return not (is_tool_block(block) or isinstance(block, ThinkingBlock) or is_reply_part(block, msg))


def is_tool_block(block: Block) -> bool:
    """Returns True for tool calls and tool results."""
    return isinstance(block, ToolUseBlock | ToolResultBlock)


def is_reply_part(block: Block, msg: Msg) -> bool:
    """Returns True for an opaque block in a reply, which only its own API accepts."""
    return isinstance(block, OpaqueBlock) and bool(msg.features & Feature.ASSISTANT)


@dataclass(frozen=True, slots=True)
class FramedBlocks:
    """Blocks of one speaker as pieces of a frame.

    Attributes:
        pieces: The lines, media and opaque blocks.
        origins: For each piece, the name of a synthesis, or the index of its block.
        features: The features of the media and opaque blocks.
        omitted: The indexes of the blocks without a piece.

    """

    pieces: tuple[Piece, ...]
    origins: tuple[str | int, ...]
    features: int
    omitted: tuple[int, ...]


def frame_blocks(speaker: str, pieces: Sequence[Piece | None]) -> FramedBlocks:
    """Returns the pieces for the blocks of one speaker. None is a block without a piece.

    If the first piece is not a line, a line with the speaker's name only comes before it.
    """
    framed: list[tuple[Piece, str | int]] = []
    for index, piece in enumerate(pieces):
        if isinstance(piece, TextBlock):
            framed.append((piece, "line"))
        elif piece is not None:
            if not framed:
                framed.append((build_trusted_text(f"\n{speaker}:"), "speaker"))
            framed.append((piece, index))
    media = tuple(piece for piece, _ in framed if not isinstance(piece, TextBlock))
    features = build_trusted("", media, "user").features if media else 0
    omitted = tuple(index for index, piece in enumerate(pieces) if piece is None)
    return FramedBlocks(
        tuple(piece for piece, _ in framed), tuple(origin for _, origin in framed), features, omitted
    )
