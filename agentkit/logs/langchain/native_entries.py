"""What LangChain keeps in a provider's own words, read as the loader of that provider's wire reads it."""

from __future__ import annotations

from typing import Any

from agentkit.errors import MessageError
from agentkit.messages.blocks import Block, InvalidBlock
from agentkit.models.registry import load_provider

__all__ = ["read_native_entry"]


def read_native_entry(wire: str, entry: Any, place: str, follower: str = "") -> Block:
    """The one block that an entry of a wire's log is; an InvalidBlock at this place for what it cannot read.

    `follower` is the id of the entry after it, where the wire ties the two together.
    """
    load = load_provider(wire).load_native
    entries = [entry, {"type": "item_reference", "id": follower}] if follower else [entry]
    try:
        blocks = load(entries)[0].blocks if load is not None else ()
    except MessageError as error:
        return InvalidBlock(entry, f"{error.place}: {error.reason}", place)
    block = next(iter(blocks), None)
    if block is None or isinstance(block, InvalidBlock):
        return InvalidBlock(entry, block.reason if block else "it says nothing", place)
    return block
