"""Paths of blocks in the caller's messages. A place is a path as text, such as `msgs[3].content[1]`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TypeAlias

from agentkit.messages.blocks import Block, ToolResultBlock
from agentkit.messages.message import Msg

__all__ = ["BlockPath", "format_place", "list_paths"]

BlockPath: TypeAlias = tuple[int, ...]
"""Path of a block: (message index, block index). The path of a tool result item also has the index of the item."""

_STEPS = ("msgs", ".content", ".output")


def format_place(path: BlockPath) -> str:
    """Returns the path of a block as text, for error messages and ledgers.

    >>> format_place((3, 1, 0))
    'msgs[3].content[1].output[0]'
    """
    return "".join(f"{step}[{index}]" for step, index in zip(_STEPS, path, strict=False))


def list_paths(msgs: Sequence[Msg], indexes: Iterable[int]) -> Iterator[tuple[BlockPath, Block]]:
    """Yields (path, block) pairs for all blocks and all tool result items of the messages at `indexes`."""
    for index in indexes:
        for block_index, block in enumerate(msgs[index].blocks):
            yield (index, block_index), block
            if isinstance(block, ToolResultBlock) and not isinstance(block.output, str):
                for item_index, item in enumerate(block.output):
                    yield (index, block_index, item_index), item
