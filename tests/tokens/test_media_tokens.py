"""Prices of media: the published image rules with their published examples, and sizes of images."""

from __future__ import annotations

import base64
import struct
import sys
import zlib
from functools import cache
from io import BytesIO

import pytest
from PIL import Image

from agentkit.messages.sniffing import sniff_image_size
from agentkit.provider_kit import MediaPart
from agentkit.tokens.media_tokens import MediaPrices, find_image_rule
from tests.cases import each_case


@each_case(
    ("model", "width", "height", "detail", "tokens"),
    [
        ("gpt-4o", 1024, 1024, "high", 765),
        ("gpt-4o", 2048, 4096, "high", 1_105),
        ("gpt-4o", 4096, 8192, "low", 85),
        ("gpt-4o-mini", 512, 512, "auto", 2_833 + 5_667),
        ("openai/gpt-4.1", 100, 100, "auto", 255),
        ("gpt-5-mini", 1024, 1024, "auto", 1_659),
        ("o4-mini", 1800, 2400, "auto", 2_498),
        ("gpt-6", 1024, 1024, "auto", 1_229),
        ("claude-3-7-sonnet", 1920, 1080, "", 1_560),
        ("claude-3-7-sonnet", 1080, 1920, "", 1_560),
        ("claude-opus-4-7", 1920, 1080, "", 2_691),
        ("claude-opus-5", 3840, 2160, "", 4_784),
        ("claude-haiku-4-5", 3840, 2160, "", 1_560),
        ("gemini-2.5-pro", 384, 384, "", 258),
        ("gemini-2.5-pro", 1536, 769, "", 1_032),
        ("gemini-4-pro", 3000, 3000, "", 1_120),
        ("gemini-3-flash", 3000, 3000, "MEDIA_RESOLUTION_LOW", 280),
        ("qwen3-vl-plus", 1024, 1024, "", 1_026),
        ("qwen2.5-vl-72b", 28, 28, "", 6),
    ],
)
def test_rules_agree_with_their_documents(model: str, width: int, height: int, detail: str, tokens: int) -> None:
    rule = find_image_rule(model)
    assert rule
    assert rule.tokens(width, height, detail) == tokens


@each_case("model", ["gpt-4o", "gpt-5.2", "gpt-5.5", "gpt-6", "claude-opus-5", "gemini-2.0", "qwen-vl-max"])
@each_case("size", [(1, 1), (1, 100_000), (100_000, 1), (7, 20_000), (65_535, 65_535)])
def test_any_size_has_a_price(model: str, size: tuple[int, int]) -> None:
    rule = find_image_rule(model)
    assert rule
    assert 0 < rule.tokens(*size, "auto") <= 6_000_000


@cache
def encode_image(kind: str, width: int = 640, height: int = 480) -> str:
    file = BytesIO()
    Image.effect_noise((width, height), 90).convert("RGB").save(file, kind)
    return base64.b64encode(file.getvalue()).decode()


IMAGE_PRICE = (85 + 2 * 170, "")  # tokens of an image of 640 x 480 pixels for gpt-4o


def price(data: str) -> tuple[int, str]:
    return MediaPrices("gpt-4o").price(MediaPart("image", data))


@each_case("kind", ["PNG", "JPEG", "GIF", "WEBP", "BMP", "TIFF"])
def test_the_image_size_is_read_from_base64_and_from_data_urls(kind: str) -> None:
    data = encode_image(kind)
    assert sniff_image_size(data) == (640, 480)
    assert price(data) == price(f"data:image/{kind.lower()};base64,{data}") == IMAGE_PRICE


@each_case("kind", ["PNG", "JPEG", "GIF", "WEBP", "BMP", "TIFF"])
def test_base64_text_may_have_line_breaks(kind: str) -> None:
    lines = base64.encodebytes(base64.b64decode(encode_image(kind))).decode()
    assert price(lines) == IMAGE_PRICE


def test_only_the_start_of_an_image_is_needed() -> None:
    assert price(encode_image("PNG")[:12_000]) == IMAGE_PRICE
    assert price(encode_image("JPEG")[:12_000]) == IMAGE_PRICE


@each_case("data", ["", "====", "aGkh", "not base64 at all!", "data:image/png;base64,", "data:", "é"])
def test_data_of_no_image_have_no_size(data: str) -> None:
    assert sniff_image_size(data) is None
    assert price(data)[0] == 1_500


def test_a_header_with_too_many_pixels_counts_as_damaged() -> None:
    head = struct.pack(">IIBBBBB", 1 << 30, 1 << 30, 8, 2, 0, 0, 0)
    chunk = struct.pack(">I", 13) + b"IHDR" + head + struct.pack(">I", zlib.crc32(b"IHDR" + head))
    assert price(base64.b64encode(b"\x89PNG\r\n\x1a\n" + chunk).decode())[0] == 1_500


def test_an_unreadable_size_has_a_fixed_price_and_a_reason() -> None:
    assert price("aGkh") == (1_500, "the size of an image cannot be read from its data")


def test_the_image_size_is_read_without_pillow(monkeypatch: pytest.MonkeyPatch) -> None:
    data = encode_image("PNG")
    monkeypatch.setitem(sys.modules, "PIL", None)
    assert price(data) == IMAGE_PRICE


def test_the_size_of_an_image_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    prices, media = MediaPrices("gpt-4o"), MediaPart("image", encode_image("PNG"))
    assert prices.price(media) == IMAGE_PRICE
    monkeypatch.setattr("agentkit.tokens.media_tokens.sniff_image_size", None)
    assert prices.price(media) == IMAGE_PRICE


@pytest.mark.parametrize("kind", ["audio", "video", "document"])
def test_other_media_are_estimated_by_their_size(kind: str) -> None:
    prices = MediaPrices("gpt-4o")
    small, large = (prices.price(MediaPart(kind, "A" * size)) for size in (100_000, 4_000_000))
    assert 0 < small[0] < large[0] < 100_000
    assert small[1]
    assert (
        prices.price(MediaPart(kind, ""))[0] == prices.price(MediaPart(kind, "https://example.com/x"))[0] == 1_500
    )
