"""`LegalMessage`: one message rewritten to obey the rules of a target, with notes for the ledger."""

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
"""Changes to the media of a message. The keys are the paths of media items (see `LegalMessage`).

A value is a smaller copy of the image, or the reason why the request omits the media item.
"""


@dataclass(slots=True)
class PromotedMedia:
    """Media item to move to a separate user turn.

    Attributes:
        label: Text that tells the model which message or tool result the media item comes from.
        call_id: Id of the tool call, if the media item comes from a tool result. Otherwise empty.
    """

    block: MediaBlock
    path: BlockPath
    label: str
    call_id: str = ""


@dataclass(slots=True)
class LegalMessage:
    """Message rewritten to obey the rules of a target.

    The path of a block is a tuple with the index of the block. For an item of a tool result, the tuple also has
    the index of the item.

    Attributes:
        msg: The message. None if no block remains.
        origins: For each block of `msg`, the index of the corresponding block in the original message.
        notes: The paths of changed or omitted blocks, each with a note for the ledger.
        media: The media items that the request contains, in this message or in a separate user turn. Media items
            that a text replaces are not listed.
        sizes: For each media kind, the number of items in `media` and the total length of their base64 data, in
            characters.
        box_checks: Cached checks of media sizes. A key is a media kind and its limits (`Box`). A value is True if
            all media of this kind are within the limits.
        call_ids: Maps each new call id to the original id that it replaces.
        tool_names: Maps each new tool name to the original name that it replaces.
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
        """Adds a media item to `media` and `sizes`."""
        self.media.append((path, kind, source))
        count, characters = self.sizes.get(kind, (0, 0))
        added = len(source.data) if isinstance(source, Base64Source) else 0
        self.sizes[kind] = (count + 1, characters + added)
