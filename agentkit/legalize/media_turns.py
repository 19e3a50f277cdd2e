"""Media turns: labeled user turns for media that an API refuses in their original turn."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import TypeAlias

from agentkit.ledger.entries import Disposition, Note
from agentkit.ledger.ledger import Ledger
from agentkit.ledger.provenance import Provenance, TracedMessage
from agentkit.legalize.legal_message import PromotedMedia
from agentkit.media.acceptance import address
from agentkit.messages.blocks import Block, build_trusted_text
from agentkit.messages.message import build_trusted

__all__ = ["TracedMedia", "build_media_turn"]

TracedMedia: TypeAlias = tuple[PromotedMedia, Provenance]
"""Media item to move, with the path of the input block that it comes from."""

_MOVED = Note(
    Disposition.MOVED,
    "moved into a separate user turn, because the API does not accept this media item in the original turn",
)


def build_media_turn(promoted: Sequence[TracedMedia], ledger: Ledger) -> TracedMessage:
    """Returns a user turn with the moved media.

    Labels in the turn name the messages or tool results that contained the media.
    """
    blocks: list[Block] = []
    origins: list[Provenance] = []
    for label, group in groupby(promoted, key=lambda pair: pair[0].label):
        items = list(group)
        noun = "image" if all(item.block.type == "image" for item, _ in items) else "media"
        blocks.append(build_trusted_text(f"<system-info>The following are the {noun} contents {label}:"))
        origins.append("promotion")
        for item, origin in items:
            location = address(item.block.source)
            source = f" from '{location}'" if location else ""
            blocks.extend((build_trusted_text(f"\n- The {item.block.type}{source}: "), item.block))
            origins.extend(("promotion", origin))
            ledger.note_origins([origin], _MOVED)
        blocks.append(build_trusted_text("</system-info>"))
        origins.append("promotion")
    ledger.add_synthesis("promotion", "text that tells the model where the moved media come from")
    return TracedMessage(build_trusted("user", tuple(blocks), "user"), tuple(origins))
