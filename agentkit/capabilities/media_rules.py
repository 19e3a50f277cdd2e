"""Rules and limits of media."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

from agentkit.reprs import bounded_repr

__all__ = ["Box", "MediaLimits", "MediaRule", "excess", "media_types"]


def excess(count: int, limit: int) -> int:
    """How many of the oldest go when there are `count`: a multiple of a fifth of the limit."""
    return round_up_to_step(count - limit, max(limit // LIMIT_STEPS, 1)) if limit and count > limit else 0


Kind: TypeAlias = Literal["image", "audio", "video", "document"]


def media_types(family: str, subtypes: str) -> frozenset[str]:
    """Media types of one family: `media_types("image", "png jpeg")`."""
    return frozenset(f"{family}/{subtype}" for subtype in subtypes.split())


class Box(NamedTuple):
    """What one picture must fit in: its longer side and its area in pixels, its base64 text in characters.

    0 is no limit.
    """

    side: int = 0
    pixels: int = 0
    data: int = 0

    def holds(self, size: tuple[int, int] | None, data: int) -> bool:
        """Whether a picture of that size (None: unknown) and so many characters fits in."""
        if self.data and data > self.data:
            return False
        if size is None:
            return True
        width, height = size
        return not (self.side and max(size) > self.side) and not (self.pixels and width * height > self.pixels)


@dataclass(frozen=True, slots=True, kw_only=True)
class MediaLimits:
    """How much of one kind of media a target takes in one request. 0 is no known limit.

    count   how many
    side    the longer side of a picture, in pixels
    crowd   (count, side): with more pictures than `count`, the longer side of each
    pixels  the area of a picture, in pixels
    data    the base64 text of one, in characters
    total   the base64 text of all together, in characters
    """

    count: int = 0
    side: int = 0
    crowd: tuple[int, int] = (0, 0)
    pixels: int = 0
    data: int = 0
    total: int = 0

    __repr__ = bounded_repr

    def box(self, count: int) -> Box:
        """What each picture must fit in, when there are so many."""
        most, side = self.crowd
        crowded = most and count > most
        return Box(min(side, self.side or side) if crowded else self.side, self.pixels, self.data)


@dataclass(frozen=True, slots=True, kw_only=True)
class MediaRule:
    """How a target takes one kind of media in its user turns.

    types      the media types it takes; empty: any of the kind
    schemes    the URL schemes that it fetches itself
    url_types  the media types it takes by URL, if not the same
    embed      whether it takes base64
    magic      where the wire names no type: the beginnings of base64 text that it knows; other data is not sent
    limits     how much of the kind one request may hold; None: no known limit
    """

    types: frozenset[str] = frozenset()
    schemes: frozenset[str] = frozenset()
    url_types: frozenset[str] = frozenset()
    embed: bool = True
    magic: tuple[str, ...] = ()
    limits: MediaLimits | None = None

    __repr__ = bounded_repr

    def takes(self, kind: str, media_type: str) -> bool:
        """Whether data of the type is taken as media of the kind."""
        return self.embed and _among(self.types, kind, media_type)

    def fetches(self, kind: str, media_type: str | None) -> bool:
        """Whether a URL of the type is taken; an unknown type (None) may be."""
        return media_type is None or _among(self.url_types or self.types, kind, media_type)


def _among(types: frozenset[str], kind: str, media_type: str) -> bool:
    if types:
        return media_type in types
    return kind == "document" or media_type.startswith(f"{kind}/")


LIMIT_STEPS = 5  # a limit is kept in steps of a fifth


def round_up_to_step(over: int, step: int) -> int:
    """The least multiple of a step that is at least `over`."""
    return -(-over // step) * step
