"""`MessageMedia`: the media of one message, collected once and cached on the message."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from agentkit.capabilities.media_rules import Box
from agentkit.media.resizing import needs_fitting
from agentkit.media.resolution import ResolvedMedia
from agentkit.messages.blocks import MediaBlock, ToolResultBlock
from agentkit.messages.features import Feature
from agentkit.messages.message import Msg, cache_result
from agentkit.messages.sources import Base64Source, Source, URLSource

__all__ = ["MessageMedia", "get_all_media", "get_media", "is_fresh"]


@dataclass(slots=True, eq=False)
class MessageMedia:
    """Media of one message, including the media in its tool results.

    Attributes:
        closed: True if the message itself contains the data of all its media. No media source is then a file or a
            remote URL.
    """

    blocks: tuple[MediaBlock, ...]
    image_count: int
    closed: bool
    _ready: bool = False
    _box: Box | None = None  # size limits of the last successful check by `fits`

    @property
    def ready(self) -> bool:
        """True if the message contains the data of all its media, and all data is checked.

        The value never changes from True to False.
        """
        if not self._ready and self.closed:
            self._ready = not any(is_fresh(block.source) for block in self.blocks)
        return self._ready

    def fits(self, box: Box) -> bool:
        """Returns True if all images in the message are within the limits in `box`.

        Files and remote URLs are ignored.
        """
        if self._box != box:
            resolved = ResolvedMedia()
            sources = [resolved.resolve(block.source) for block in self.blocks if block.type == "image"]
            if any(needs_fitting(source, box) for source in sources if isinstance(source, Base64Source)):
                return False
            self._box = box
        return True


def get_media(msg: Msg) -> MessageMedia:
    """Returns the media of a message. The message caches the result."""
    return cache_result(msg, MessageMedia, _collect)


def get_all_media(msgs: Sequence[Msg]) -> list[MessageMedia]:
    """Returns a `MessageMedia` for each message that has media. Skips messages without media."""
    return [get_media(msg) for msg in msgs if msg.features & _MASK]


_MASK = Feature.MEDIA | Feature.RESULT_MEDIA


def is_fresh(source: Source) -> bool:
    """Returns True if a media source contains data that is not checked yet."""
    if isinstance(source, Base64Source):
        return "checked" not in source.cache
    return source.cached_content is None and source.scheme == "data"


def _collect(msg: Msg) -> MessageMedia:
    blocks = tuple(_iterate(msg))
    sources = (block.source for block in blocks)
    closed = not any(isinstance(source, URLSource) and source.scheme != "data" for source in sources)
    return MessageMedia(blocks, sum(block.type == "image" for block in blocks), closed)


def _iterate(msg: Msg) -> Iterator[MediaBlock]:
    for block in msg.blocks:
        if isinstance(block, ToolResultBlock):
            for item in block.items:
                if isinstance(item, MediaBlock):
                    yield item
        elif isinstance(block, MediaBlock):
            yield block
