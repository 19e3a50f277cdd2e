"""Conversion of a message's blocks to the lines and media of a history frame."""

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
from agentkit.messages.features import Feature, scan_features
from agentkit.messages.message import Msg

__all__ = ["FramedBlocks", "Piece", "frame_blocks", "has_line", "is_reply_part", "is_tool_block"]

Piece: TypeAlias = TextBlock | MediaBlock | OpaqueBlock | InvalidBlock
"""Block of a history frame. The text of a text block is a line break, followed by one line of the frame."""


def has_line(block: Block, msg: Msg) -> bool:
    """Returns True if a history frame can contain a block of a message.

    Frames omit tool blocks, thinking blocks, and opaque blocks of replies.
    """
    return not (is_tool_block(block) or isinstance(block, ThinkingBlock) or is_reply_part(block, msg))


def is_tool_block(block: Block) -> bool:
    """Returns True if a block is a tool call or a tool result."""
    return isinstance(block, ToolUseBlock | ToolResultBlock)


def is_reply_part(block: Block, msg: Msg) -> bool:
    """Returns True if a block is an opaque block of a reply.

    Only the API that produced the reply accepts such a block.
    """
    return isinstance(block, OpaqueBlock) and bool(msg.features & Feature.ASSISTANT)


@dataclass(frozen=True, slots=True)
class FramedBlocks:
    """One speaker's blocks, converted to the blocks of a history frame.

    Attributes:
        pieces: The blocks of the frame: lines of text, media and opaque blocks.
        origins: The origin of each piece: the index of its input block, or a name such as `line` for a text that
            the policy wrote.
        features: The `Feature` bits of the pieces.
        omitted: The indexes of the input blocks that the frame omits.
    """

    pieces: tuple[Piece, ...]
    origins: tuple[str | int, ...]
    features: int
    omitted: tuple[int, ...]


def frame_blocks(speaker: str, pieces: Sequence[Piece | None]) -> FramedBlocks:
    """Converts one speaker's blocks to the blocks of a history frame.

    `pieces` has one entry for each input block: the block to write, or None to omit the input block. If the first
    block to write is not text, a line with the speaker's name is inserted before it.
    """
    framed: list[tuple[Piece, str | int]] = []
    for index, piece in enumerate(pieces):
        if isinstance(piece, TextBlock):
            framed.append((piece, "line"))
        elif piece is not None:
            if not framed:
                framed.append((build_trusted_text(f"\n{speaker}:"), "speaker"))
            framed.append((piece, index))
    blocks = tuple(piece for piece, _ in framed)
    features = scan_features(blocks) if blocks else 0
    omitted = tuple(index for index, piece in enumerate(pieces) if piece is None)
    return FramedBlocks(blocks, tuple(origin for _, origin in framed), features, omitted)
