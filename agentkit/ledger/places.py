"""Places: paths of blocks in the caller's messages, and their text form."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TypeAlias

from agentkit.messages.blocks import Block, ToolResultBlock
from agentkit.messages.message import Msg

__all__ = ["BlockPath", "format_place", "list_paths"]

BlockPath: TypeAlias = tuple[int, ...]
"""Indexes (message, block), or (message, block, item of a tool result's output)."""

_STEPS = ("msgs", ".content", ".output")


def format_place(path: BlockPath) -> str:
    """Returns a path as errors and ledgers write it.

    >>> format_place((3, 1, 0))
    'msgs[3].content[1].output[0]'
    """
    return "".join(f"{step}[{index}]" for step, index in zip(_STEPS, path, strict=False))


def list_paths(msgs: Sequence[Msg], indexes: Iterable[int]) -> Iterator[tuple[BlockPath, Block]]:
    """Yields every block of the messages with these indexes, and the items of tool results, with their paths."""
    for index in indexes:
        for block_index, block in enumerate(msgs[index].blocks):
            yield (index, block_index), block
            if isinstance(block, ToolResultBlock) and not isinstance(block.output, str):
                for item_index, item in enumerate(block.output):
                    yield (index, block_index, item_index), item
