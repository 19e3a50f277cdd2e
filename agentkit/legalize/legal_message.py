"""`LegalMessage`: one message as a target accepts it, with its notes and the media to move."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from agentkit.capabilities.media_rules import Kind
from agentkit.ledger.entries import Note
from agentkit.ledger.places import BlockPath
from agentkit.messages.blocks import MediaBlock
from agentkit.messages.message import Msg
from agentkit.messages.sources import Base64Source, URLSource

__all__ = ["Changes", "LegalMessage", "PromotedMedia"]

Changes: TypeAlias = Mapping[BlockPath, str | Base64Source]
"""Changes to the media of a message, by path: a smaller image, or the reason for omitting the media item."""


@dataclass(slots=True)
class PromotedMedia:
    """Media item to move to a separate user turn.

    Attributes:
        block: The media item.
        path: The path of the media item in its message.
        label: Text that tells the model where the media item comes from.
        call_id: Id of the tool call whose result had the media item. Empty outside of results.

    """

    block: MediaBlock
    path: BlockPath
    label: str
    call_id: str = ""


@dataclass(slots=True)
class LegalMessage:
    """Message as a target accepts it. Paths start at the message: (block,), or (block, item) in a tool result.

    Attributes:
        msg: The message. None if no block remains.
        origins: For each block of `msg`, the index of its block in the original message.
        notes: The notes for the ledger, with the paths of their blocks.
        promoted: The media to move to a separate user turn.
        media: The media that are sent as media, in the message or promoted.
        sizes: For each media kind, the number of `media`, and the characters of their base64 data.
        box_checks: Results of size checks for the limits of whole requests, by kind and box.
        call_ids: The original id of each tool call whose id changed.
        tool_names: The original name of each tool whose name changed.

    """

    msg: Msg | None
    origins: tuple[int, ...] = ()
    notes: list[tuple[BlockPath, Note]] = field(default_factory=list[tuple[BlockPath, Note]])
    promoted: list[PromotedMedia] = field(default_factory=list[PromotedMedia])
    media: list[tuple[BlockPath, Kind, Base64Source | URLSource]] = field(default_factory=list[Any])
    sizes: dict[str, tuple[int, int]] = field(default_factory=dict[str, tuple[int, int]])
    box_checks: dict[object, bool] = field(default_factory=dict[object, bool])
    call_ids: dict[str, str] = field(default_factory=dict[str, str])
    tool_names: dict[str, str] = field(default_factory=dict[str, str])

    def add_media(self, path: BlockPath, kind: Kind, source: Base64Source | URLSource) -> None:
        """Adds a media item that is sent as media."""
        self.media.append((path, kind, source))
        count, characters = self.sizes.get(kind, (0, 0))
        added = len(source.data) if isinstance(source, Base64Source) else 0
        self.sizes[kind] = (count + 1, characters + added)
