"""Rules of a target for media, and limits for the media of one request."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

from agentkit.reprs import bounded_repr

__all__ = ["Box", "MediaLimits", "MediaRule", "media_types"]


Kind: TypeAlias = Literal["image", "audio", "video", "document"]


def media_types(family: str, subtypes: str) -> frozenset[str]:
    """Returns media types, such as "image/png", for a family and its subtypes.

    `subtypes` is one string, in which spaces separate the subtypes.

    Example:
        >>> sorted(media_types("image", "png jpeg"))
        ['image/jpeg', 'image/png']
    """
    return frozenset(f"{family}/{subtype}" for subtype in subtypes.split())


class Box(NamedTuple):
    """Size limits for one image. 0 means that no limit is known.

    Attributes:
        side: Maximum length of the longer side, in pixels.
        pixels: Maximum number of pixels (width times height).
        data: Maximum length of the base64 text, in characters.
    """

    side: int = 0
    pixels: int = 0
    data: int = 0

    def holds(self, size: tuple[int, int] | None, data: int) -> bool:
        """Returns True if an image is within these limits.

        `size` is the width and height in pixels, and `data` is the length of the base64 text in characters. If
        `size` is None, only `data` is checked.
        """
        if self.data and data > self.data:
            return False
        if size is None:
            return True
        width, height = size
        return not (self.side and max(size) > self.side) and not (self.pixels and width * height > self.pixels)


@dataclass(frozen=True, slots=True, kw_only=True)
class MediaLimits:
    """Limits for all media of one kind in one request. 0 means that no limit is known.

    Attributes:
        count: Maximum number of media items.
        side: Maximum length of the longer side of an image, in pixels.
        crowd: Stricter limit for requests with many images: a number of images, and a length in pixels. In a
            request with more images than this number, the longer side of an image has at most this length.
        pixels: Maximum number of pixels of an image (width times height).
        data: Maximum length of the base64 text of one item, in characters.
        total: Maximum length of the base64 text of all items, in characters.
    """

    count: int = 0
    side: int = 0
    crowd: tuple[int, int] = (0, 0)
    pixels: int = 0
    data: int = 0
    total: int = 0

    __repr__ = bounded_repr

    def box(self, count: int) -> Box:
        """Returns the limits of each image in a request with `count` images."""
        max_count, side = self.crowd
        is_crowded = max_count and count > max_count
        return Box(min(side, self.side or side) if is_crowded else self.side, self.pixels, self.data)


@dataclass(frozen=True, slots=True, kw_only=True)
class MediaRule:
    """Rule of a target for one kind of media in user turns.

    Attributes:
        types: Media types that the target accepts. If empty, the target accepts all types of this kind.
        schemes: URL schemes, such as `https`. The provider downloads media from a URL with one of these schemes.
        url_types: Media types that the target accepts by URL. If empty, the types are the same as in `types`.
        embed: True if the target accepts base64 data.
        magic: First characters of base64 text, by which an API without a field for the media type recognizes the
            type. Data with other first characters is not accepted. If empty, the first characters are not
            checked.
        limits: Limits for one request. None if no limit is known.
    """

    types: frozenset[str] = frozenset()
    schemes: frozenset[str] = frozenset()
    url_types: frozenset[str] = frozenset()
    embed: bool = True
    magic: tuple[str, ...] = ()
    limits: MediaLimits | None = None

    __repr__ = bounded_repr

    def takes(self, kind: str, media_type: str) -> bool:
        """Returns True if the target accepts base64 data of the given kind and media type."""
        return self.embed and _matches(self.types, kind, media_type)

    def fetches(self, kind: str, media_type: str | None) -> bool:
        """Returns True if the target accepts the media type by URL, or if the media type is unknown (None)."""
        return media_type is None or _matches(self.url_types or self.types, kind, media_type)


def _matches(types: frozenset[str], kind: str, media_type: str) -> bool:
    if types:
        return media_type in types
    return kind == "document" or media_type.startswith(f"{kind}/")
