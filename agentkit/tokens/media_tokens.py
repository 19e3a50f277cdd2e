"""Number of tokens of media: published rules for images, and estimates for all other media.

Read `MediaPrices` first. The number for an image is exact if the model family has a published rule. If the rule
depends on the size of the image, the size must also be known. The numbers for audio, video and documents are
estimated from the length of their data.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import ceil, sqrt
from typing import Final, Protocol

from agentkit.capabilities.model_names import normalize_model_name
from agentkit.messages.sniffing import sniff_image_size
from agentkit.tokens.estimate import TextCounts
from agentkit.tokens.request_parts import MediaPart

__all__ = ["MediaPrices", "find_image_rule"]


class ImageRule(Protocol):
    """Rule that a model family uses to count the tokens of an image."""

    def tokens(self, width: int, height: int, detail: str) -> int:
        """Returns the number of tokens of one image.

        `width` and `height` are in pixels. `detail` is the level of detail as the API writes it, such as "low", or
        an empty string.
        """
        ...


@dataclass(frozen=True)
class Tiles:
    """Rule that counts tiles of 512 x 512 pixels.

    The image is first shrunk to fit into 2048 x 2048 pixels. Then the image is shrunk until its shorter side has
    at most 768 pixels. Source: OpenAI guide, images-vision.

    Attributes:
        base: Tokens that every image costs.
        tile: Additional tokens for each tile.
    """

    base: int
    tile: int

    def tokens(self, width: int, height: int, detail: str) -> int:
        """Returns the number of tokens of one image. With the detail "low", the image costs only `base`."""
        if detail == "low":
            return self.base
        scale = min(1, 2048 / max(width, height))
        scale *= min(1, 768 / (min(width, height) * scale))
        return self.base + self.tile * ceil(round(width * scale) / 512) * ceil(round(height * scale) / 512)


@dataclass(frozen=True)
class Patches:
    """Rule that counts patches of 32 x 32 pixels.

    The image is first shrunk until its longer side and its number of patches are within the limits. Source: OpenAI
    guide, images-vision.

    Attributes:
        factor: Tokens for each patch.
        max_patches: Maximum number of patches.
        side: Maximum length of the longer side, in pixels.
    """

    factor: float
    max_patches: int = 1_536
    side: int = 2_048

    def tokens(self, width: int, height: int, detail: str) -> int:
        """Returns the number of tokens of one image. The detail "low" limits the longer side to 512 pixels."""
        side = 512 if detail == "low" else self.side
        if (longest := max(width, height)) > side:
            width, height = max(1, width * side // longest), max(1, height * side // longest)
        patches = ceil(width / 32) * ceil(height / 32)
        if patches > self.max_patches:
            ratio = sqrt(32 * 32 * self.max_patches / (width * height))
            wide, high = width * ratio / 32, height * ratio / 32
            ratio *= min(max(1, int(wide)) / wide, max(1, int(high)) / high)
            patches = min(self.max_patches, ceil(width * ratio / 32) * ceil(height * ratio / 32))
        return ceil(patches * self.factor)


@dataclass(frozen=True)
class Cells:
    """Rule that counts cells of 28 x 28 pixels.

    The image is first shrunk until its longer side and its number of cells are within the limits. Source: Claude
    docs, vision-coordinates.

    Attributes:
        edge: Maximum length of the longer side, in pixels, after the length is rounded up to whole cells.
        max_cells: Maximum number of cells.
    """

    edge: int
    max_cells: int

    def tokens(self, width: int, height: int, detail: str) -> int:
        """Returns the number of tokens of one image. `detail` has no effect."""
        longest, shortest = max(width, height), min(width, height)
        low, high = 1, longest
        while low < high:
            middle = (low + high + 1) // 2
            low, high = (middle, high) if self._fits(middle, shortest * middle / longest) else (low, middle - 1)
        return self._cells(low, round(shortest * low / longest))

    def _fits(self, long: int, short: float) -> bool:
        padded = max(ceil(long / 28), ceil(round(short) / 28)) * 28
        return padded <= self.edge and self._cells(long, round(short)) <= self.max_cells

    def _cells(self, long: int, short: int) -> int:
        return ceil(long / 28) * max(1, ceil(short / 28))


@dataclass(frozen=True)
class Squares:
    """Rule that counts squares of 768 x 768 pixels, with 258 tokens for each square.

    An image whose sides both have at most 384 pixels costs 258 tokens. Source: Gemini docs, tokens.
    """

    def tokens(self, width: int, height: int, detail: str) -> int:
        """Returns the number of tokens of one image. `detail` has no effect."""
        return 258 if max(width, height) <= 384 else 258 * ceil(width / 768) * ceil(height / 768)


@dataclass(frozen=True)
class Levels:
    """Rule with a fixed number of tokens for each level of detail.

    Source: Gemini docs, media-resolution.

    Attributes:
        prices: Tokens for each level of detail. The names of the levels are in upper case.
        default: Tokens for any other level of detail.
    """

    prices: Mapping[str, int]
    default: int

    def tokens(self, width: int, height: int, detail: str) -> int:
        """Returns the number of tokens of one image. The size of the image has no effect."""
        return self.prices.get(detail.upper().removeprefix("MEDIA_RESOLUTION_"), self.default)


@dataclass(frozen=True)
class Grid:
    """Rule that divides an image into square fields.

    Each field costs one token, and each image costs two more tokens. An image has at least four fields. Source:
    Model Studio docs, vision.

    Attributes:
        step: Side length of a field, in pixels.
        max_fields: Maximum number of fields.
    """

    step: int
    max_fields: int = 16_384

    def tokens(self, width: int, height: int, detail: str) -> int:
        """Returns the number of tokens of one image. `detail` has no effect."""
        fields = max(1, round(width / self.step)) * max(1, round(height / self.step))
        return min(max(fields, 4), self.max_fields) + 2


_GEMINI_3: Final = Levels({"LOW": 280, "MEDIUM": 560, "HIGH": 1_120, "ULTRA_HIGH": 2_240}, 1_120)

# Each pattern matches the start of a normalized model name. The first match decides. Sources: OpenAI guide,
# images-vision; Claude docs, vision-coordinates; Gemini docs, media-resolution; Model Studio docs, vision.
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


def find_image_rule(model: str) -> ImageRule | None:
    """Returns the rule that counts the tokens of images for a model. Returns None if no rule is known."""
    name = normalize_model_name(model)
    return next((rule for pattern, rule in _RULES if pattern.match(name)), None)


_MAX_PIXELS: Final = 178_956_970  # in pixels, as in Pillow; a larger size indicates a damaged header


def _pack_size(data: str) -> int:
    """Returns the width and height of an image as one integer, because `TextCounts` caches integers.

    Returns 0 if the size is unknown.
    """
    text = data.partition(",")[2] if data[:5].lower() == "data:" else data
    if "\n" in text[:100]:  # some encoders insert line breaks into base64 text
        text = "".join(text.split())
    width, height = sniff_image_size(text) or (0, 0)
    return width << 32 | height if width * height <= _MAX_PIXELS else 0


_UNKNOWN: Final = 1_500  # tokens of a media item with unknown content (OpenAI guide, images-vision)
# Assumed data rate of audio and video: MP3 at 128 kbit/s. Uncompressed speech (16 bits, 16 kHz) has twice this
# rate.
_BYTES_PER_SECOND: Final = 16_000
_TOKENS_PER_SECOND: Final = {"audio": 32, "video": 300}  # highest documented rates (Gemini docs, media-resolution)
_BYTES_PER_PAGE: Final = 100_000
_TOKENS_PER_PAGE: Final = (
    2_500  # for the text (1,500 to 3,000) and the image of a page (Claude docs, token-counting)
)


class MediaPrices:
    """Token costs of media for one model. The sizes of images are cached."""

    def __init__(self, model: str) -> None:
        self.rule = find_image_rule(model)
        self._sizes = TextCounts(_pack_size, 64_000_000)

    def price(self, media: MediaPart) -> tuple[int, str]:
        """Returns the number of tokens of a media item, and the reason why the number is an estimate.

        The reason is empty if the number is exact.
        """
        if media.kind != "image":
            return self._price_by_length(media)
        if isinstance(self.rule, Levels):
            return self.rule.tokens(1, 1, media.detail), ""
        if not media.data or "://" in media.data[:12]:
            return _UNKNOWN, "the request has only a URL or an id of an image, so the image size is unknown"
        packed = self._sizes[media.data]
        if not packed:
            return _UNKNOWN, "the size of an image cannot be read from its data"
        if self.rule is None:
            return _UNKNOWN, "the number of tokens of an image is unknown for this model"
        return self.rule.tokens(packed >> 32, packed & 0xFFFF_FFFF, media.detail), ""

    def total(self, media: Iterable[MediaPart]) -> tuple[int, list[str]]:
        """Returns the number of tokens of all media, and the reasons why parts of the number are estimates."""
        prices = [self.price(item) for item in media]
        return sum(tokens for tokens, _ in prices), [reason for _, reason in prices if reason]

    def _price_by_length(self, media: MediaPart) -> tuple[int, str]:
        """Estimates the number of tokens of an audio clip, video or document from the length of its data."""
        size = 0 if "://" in media.data[:12] else len(media.data) * 3 // 4
        if media.kind == "document":
            tokens = max(_UNKNOWN, size // _BYTES_PER_PAGE * _TOKENS_PER_PAGE)
            return tokens, "the tokens of documents are estimated from the size of their data"
        rate = _TOKENS_PER_SECOND.get(media.kind, 32)
        tokens = -(-size * rate // _BYTES_PER_SECOND) or _UNKNOWN
        return tokens, "the tokens of audio and video are estimated from the size of their data"
