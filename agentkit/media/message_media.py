"""`MessageMedia`: the media of one message, looked up once, and whether anything is left to be done for them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import cast

from agentkit.capabilities.media_rules import Box
from agentkit.media.resizing import needs_fitting
from agentkit.media.resolution import ResolvedMedia
from agentkit.messages.blocks import MediaBlock, ToolResultBlock
from agentkit.messages.features import Feature
from agentkit.messages.message import Msg, get_cached, set_cached
from agentkit.messages.sources import Base64Source, Source, URLSource

__all__ = ["MessageMedia", "all_media", "is_fresh", "media_of"]


@dataclass(slots=True, eq=False)
class MessageMedia:
    """The media of one message, inside tool results as well, and how many of them are pictures.

    `closed` says that all are in the message itself: none names a file or an address.
    """

    blocks: tuple[MediaBlock, ...]
    pictures: int
    closed: bool
    _ready: bool = False
    _box: Box | None = None  # the last that all pictures were found to fit in

    @property
    def ready(self) -> bool:
        """Whether all are in the message itself and were looked at: once they were, it stays so."""
        if not self._ready and self.closed:
            self._ready = not any(is_fresh(block.source) for block in self.blocks)
        return self._ready

    def fits(self, box: Box) -> bool:
        """Whether the pictures, as far as they are in the message itself, are small enough for a target."""
        if self._box != box:
            shelf = ResolvedMedia()
            found = [shelf.resolve(block.source) for block in self.blocks if block.type == "image"]
            if any(needs_fitting(one, box) for one in found if isinstance(one, Base64Source)):
                return False
            self._box = box
        return True


def media_of(msg: Msg) -> MessageMedia:
    """The media of one message: looked for once in its life."""
    found = cast("MessageMedia | None", get_cached(msg, MessageMedia))
    return set_cached(msg, MessageMedia, _look(msg)) if found is None else found


def all_media(msgs: Sequence[Msg]) -> list[MessageMedia]:
    """The media of those messages that have any."""
    return [media_of(msg) for msg in msgs if msg.features & _MASK]


_MASK = Feature.MEDIA | Feature.RESULT_MEDIA


def is_fresh(source: Source) -> bool:
    """Whether it is base64 text, or any other data URL, that nobody has looked at yet."""
    if isinstance(source, Base64Source):
        return "settled" not in source.cache
    return source.cached_content is None and source.scheme == "data"


def _look(msg: Msg) -> MessageMedia:
    blocks = tuple(_blocks(msg))
    sources = (block.source for block in blocks)
    closed = not any(isinstance(source, URLSource) and source.scheme != "data" for source in sources)
    return MessageMedia(blocks, sum(block.type == "image" for block in blocks), closed)


def _blocks(msg: Msg) -> Iterator[MediaBlock]:
    for block in msg.blocks:
        if isinstance(block, ToolResultBlock):
            for item in block.items:
                if isinstance(item, MediaBlock):
                    yield item
        elif isinstance(block, MediaBlock):
            yield block
