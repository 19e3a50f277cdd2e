"""`EmbeddedItem`: a message or item in a provider's format, within a log of AgentScope or LangChain."""

from __future__ import annotations

from typing import Any, NamedTuple

from agentkit.errors import MessageError
from agentkit.messages.blocks import Block, InvalidBlock
from agentkit.models.registry import load_provider

__all__ = ["EmbeddedItem"]


class EmbeddedItem(NamedTuple):
    """Message or item in a provider's wire format, within a log of another library.

    Attributes:
        wire: Name of the provider that defines the wire format.
        entry: JSON value of the message or item.
        next_id: Id of the item that follows a reasoning item of OpenAI. OpenAI accepts a reasoning item only
            together with the next item. Empty for all other entries, and if no item with an id follows.
    """

    wire: str
    entry: Any
    next_id: str = ""

    def read(self, place: str) -> Block:
        """Returns the block that the provider's loader reads from the entry.

        If the entry cannot be read, returns an `InvalidBlock` with the place in the log.
        """
        load = load_provider(self.wire).load_native
        entries = [self.entry, {"type": "item_reference", "id": self.next_id}] if self.next_id else [self.entry]
        try:
            block = next((block for msg in (load(entries) if load else ()) for block in msg.blocks), None)
        except MessageError as error:
            return InvalidBlock(self.entry, f"{error.place}: {error.reason}", place)
        if block is None or isinstance(block, InvalidBlock):
            return InvalidBlock(self.entry, block.reason if block else "the entry has no content", place)
        return block
