"""What media cost: each model family's rule for pictures as data, and estimates for what has no rule."""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from io import BytesIO
from math import ceil, sqrt
from typing import Final, Protocol
from warnings import catch_warnings, simplefilter

from agentkit.capabilities.model_names import normalize_model_name
from agentkit.tokens.estimate import TextCounts
from agentkit.tokens.request_parts import MediaPart

__all__ = ["MediaPrices", "image_rule", "image_size"]


class ImageRule(Protocol):
    """A rule: what a picture of so many pixels costs at a level of detail."""

    def tokens(self, width: int, height: int, detail: str) -> int:
        """The tokens of one picture."""
        ...


@dataclass(frozen=True)
class Tiles:
    """Fit into 2048 x 2048, then the short side to 768, then count tiles of 512 (OpenAI guide, images-vision)."""

    base: int
    tile: int

    def tokens(self, width: int, height: int, detail: str) -> int:
        """`low` costs the base alone."""
        if detail == "low":
            return self.base
        scale = min(1, 2048 / max(width, height))
        scale *= min(1, 768 / (min(width, height) * scale))
        return self.base + self.tile * ceil(round(width * scale) / 512) * ceil(round(height * scale) / 512)


@dataclass(frozen=True)
class Patches:
    """Patches of 32 pixels, shrunk to a budget of them, times a factor (OpenAI guide, images-vision)."""

    factor: float
    budget: int = 1_536
    side: int = 2_048

    def tokens(self, width: int, height: int, detail: str) -> int:
        """`low` is a picture of at most 512 pixels a side."""
        side = 512 if detail == "low" else self.side
        if (longest := max(width, height)) > side:
            width, height = max(1, width * side // longest), max(1, height * side // longest)
        patches = ceil(width / 32) * ceil(height / 32)
        if patches > self.budget:
            ratio = sqrt(32 * 32 * self.budget / (width * height))
            wide, high = width * ratio / 32, height * ratio / 32
            ratio *= min(max(1, int(wide)) / wide, max(1, int(high)) / high)
            patches = min(self.budget, ceil(width * ratio / 32) * ceil(height * ratio / 32))
        return ceil(patches * self.factor)


@dataclass(frozen=True)
class Cells:
    """Cells of 28 pixels, the picture shrunk until edge and number hold (Claude docs, vision-coordinates)."""

    edge: int
    most: int

    def tokens(self, width: int, height: int, detail: str) -> int:
        """The largest size of the same shape that holds; there are no levels."""
        longest, shortest = max(width, height), min(width, height)
        low, high = 1, longest
        while low < high:
            middle = (low + high + 1) // 2
            low, high = (middle, high) if self._fits(middle, shortest * middle / longest) else (low, middle - 1)
        return self._cells(low, round(shortest * low / longest))

    def _fits(self, long: int, short: float) -> bool:
        padded = max(ceil(long / 28), ceil(round(short) / 28)) * 28
        return padded <= self.edge and self._cells(long, round(short)) <= self.most

    def _cells(self, long: int, short: int) -> int:
        return ceil(long / 28) * max(1, ceil(short / 28))


@dataclass(frozen=True)
class Squares:
    """258 a picture of at most 384 pixels a side, else 258 for each square of 768 (Gemini docs, tokens)."""

    def tokens(self, width: int, height: int, detail: str) -> int:
        """There are no levels."""
        return 258 if max(width, height) <= 384 else 258 * ceil(width / 768) * ceil(height / 768)


@dataclass(frozen=True)
class Levels:
    """A fixed price for each level of detail (Gemini docs, media-resolution)."""

    prices: Mapping[str, int]
    usual: int

    def tokens(self, width: int, height: int, detail: str) -> int:
        """The size does not matter."""
        return self.prices.get(detail.upper().removeprefix("MEDIA_RESOLUTION_"), self.usual)


@dataclass(frozen=True)
class Grid:
    """Sides rounded to a grid, one token a field and two around them (Model Studio docs, vision)."""

    step: int
    most: int = 16_384

    def tokens(self, width: int, height: int, detail: str) -> int:
        """At least four fields."""
        fields = max(1, round(width / self.step)) * max(1, round(height / self.step))
        return min(max(fields, 4), self.most) + 2


_GEMINI_3: Final = Levels({"LOW": 280, "MEDIUM": 560, "HIGH": 1_120, "ULTRA_HIGH": 2_240}, 1_120)

# By the beginning of the name, the first that holds (OpenAI: guides/images-vision; Claude: vision-coordinates;
# Gemini: media-resolution; Qwen: model-studio).
_RULES: Final[tuple[tuple[re.Pattern[str], ImageRule], ...]] = tuple(
    (re.compile(pattern), rule)
    for pattern, rule in (
        (r"gpt-4o-mini", Tiles(2_833, 5_667)),
        (r"gpt-4\.1-mini", Patches(1.62)),
        (r"gpt-4\.1-nano", Patches(2.46)),
        (r"gpt-(4o|4\.1|4\.5|4)|chatgpt-4o", Tiles(85, 170)),
        (r"o4-mini", Patches(1.72)),
        (r"o[13](-|$)", Tiles(75, 150)),
        (r"computer-use", Tiles(65, 129)),
        (r"gpt-5(\.4)?-mini", Patches(1.62)),
        (r"gpt-5(\.4)?-nano", Patches(2.46)),
        (r"gpt-5(\.[123])?-?codex|gpt-5\.[123]", Patches(1.2)),
        (r"gpt-5\.4", Patches(1.2, 2_500)),
        (r"gpt-5\.5", Patches(1.2, 10_000, 6_000)),
        (r"gpt-(5\.[6-9]|[6-9])", Patches(1.2, 30_000, 1 << 20)),
        (r"gpt-5", Tiles(70, 140)),
        (r"claude-(mythos|fable|(opus|sonnet|haiku)-(4[.-][7-9]|[5-9]))", Cells(2_576, 4_784)),
        (r"claude", Cells(1_568, 1_568)),
        (r"gemini-[12]", Squares()),
        (r"gemini", _GEMINI_3),
        (r"(qwen2\.5-vl|qvq)", Grid(28)),
        (r"qwen", Grid(32)),
    )
)


def image_rule(model: str) -> ImageRule | None:
    """The rule by which a model's pictures are priced, if one is known."""
    name = normalize_model_name(model)
    return next((rule for pattern, rule in _RULES if pattern.match(name)), None)


# How much of the base64 text is decoded to find a picture's size: headers are short, but for a JPEG's thumbnail
# and for formats whose reader wants the whole file.
_LOOKS: Final = (8_192, 262_144, None)
_FORMATS: Final = ("PNG", "JPEG", "GIF", "WEBP", "BMP", "TIFF")


def image_size(data: str) -> tuple[int, int] | None:
    """Width and height of a picture in base64 or in a data URL, from its header; None where they cannot be told.

    Needs Pillow, of the extra `tokens`; without it nothing is known.
    """
    try:
        from PIL import Image
    except ImportError:
        return None
    start = data.find(",") + 1 if data[:5].lower() == "data:" else 0
    for length in _LOOKS:
        head = data[start : start + length] if length else data[start:]
        try:
            with catch_warnings():
                simplefilter("ignore")  # a picture too large to open safely has a size all the same
                with Image.open(BytesIO(b64decode(head)), formats=_FORMATS) as picture:
                    return picture.size if min(picture.size) > 0 else None
        except Exception:  # broken files raise whatever their reader stumbles over
            if len(data) <= start + len(head):
                return None
    return None


def _packed(data: str) -> int:
    width, height = image_size(data) or (0, 0)
    return width << 32 | height


_UNKNOWN: Final = 1_500  # tokens of a medium that nothing is known of (guides/images-vision)
_BYTES_A_SECOND: Final = 16_000  # of sound: MP3 at 128 kbit/s, half a second of 16-bit speech
_TOKENS_A_SECOND: Final = {"audio": 32, "video": 300}  # the dearest that is documented (media-resolution)
_BYTES_A_PAGE: Final = 100_000
_TOKENS_A_PAGE: Final = 2_500  # text, 1,500 to 3,000, and picture of a page (token-counting)


class MediaPrices:
    """What media cost a model. A medium is looked at once: later prices are one look-up."""

    def __init__(self, model: str) -> None:
        self.rule = image_rule(model)
        self._sizes = TextCounts(_packed, 64_000_000)

    def price(self, medium: MediaPart) -> tuple[int, str]:
        """Its tokens, and why they are an estimate ("" if they are what the rule says). Never raises."""
        if medium.kind != "image":
            return self._by_length(medium)
        if isinstance(self.rule, Levels):
            return self.rule.tokens(1, 1, medium.detail), ""
        if not medium.data or "://" in medium.data[:12]:
            return _UNKNOWN, "the size of an image that is not in the request is not known"
        packed = self._sizes[medium.data]
        if not packed:
            return _UNKNOWN, "the size of an image could not be read (Pillow, of the extra 'tokens', reads it)"
        if self.rule is None:
            return _UNKNOWN, "no rule is known for what an image costs this model"
        return self.rule.tokens(packed >> 32, packed & 0xFFFF_FFFF, medium.detail), ""

    def total(self, media: Iterable[MediaPart]) -> tuple[int, list[str]]:
        """Of all, and the reasons why parts of it are an estimate."""
        priced = [self.price(medium) for medium in media]
        return sum(tokens for tokens, _ in priced), [reason for _, reason in priced if reason]

    def _by_length(self, medium: MediaPart) -> tuple[int, str]:
        """Sound and film by the seconds, documents by the pages that so many bytes hold."""
        size = 0 if "://" in medium.data[:12] else len(medium.data) * 3 // 4
        if medium.kind == "document":
            return max(_UNKNOWN, size // _BYTES_A_PAGE * _TOKENS_A_PAGE), "documents are estimated by their size"
        rate = _TOKENS_A_SECOND.get(medium.kind, 32)
        return -(-size * rate // _BYTES_A_SECOND) or _UNKNOWN, "sound and film are estimated by their size"
