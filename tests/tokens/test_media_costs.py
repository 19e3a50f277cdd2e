"""What pictures cost: the published rules at their published examples, and reading a picture's size."""

from __future__ import annotations

import base64
import struct
import sys
import zlib
from io import BytesIO

import pytest
from PIL import Image

from agentkit.provider_kit import MediaPart
from agentkit.tokens.media_costs import MediaPrices, image_rule, image_size


@pytest.mark.parametrize(
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
def test_the_rules_give_what_their_documents_say(
    model: str, width: int, height: int, detail: str, tokens: int
) -> None:
    rule = image_rule(model)
    assert rule
    assert rule.tokens(width, height, detail) == tokens


@pytest.mark.parametrize(
    "model", ["gpt-4o", "gpt-5.2", "gpt-5.5", "gpt-6", "claude-opus-5", "gemini-2.0", "qwen-vl-max"]
)
@pytest.mark.parametrize("size", [(1, 1), (1, 100_000), (100_000, 1), (7, 20_000), (65_535, 65_535)])
def test_any_size_has_a_price(model: str, size: tuple[int, int]) -> None:
    rule = image_rule(model)
    assert rule
    assert 0 < rule.tokens(*size, "auto") <= 6_000_000


def encoded(kind: str, width: int = 640, height: int = 480) -> str:
    file = BytesIO()
    Image.effect_noise((width, height), 90).convert("RGB").save(file, kind)
    return base64.b64encode(file.getvalue()).decode()


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "GIF", "WEBP", "BMP", "TIFF"])
def test_a_pictures_size_is_read_from_base64_and_from_data_urls(kind: str) -> None:
    data = encoded(kind)
    assert image_size(data) == image_size(f"data:image/{kind.lower()};base64,{data}") == (640, 480)


def test_only_the_beginning_of_a_picture_is_needed() -> None:
    assert image_size(encoded("PNG")[:12_000]) == (640, 480)
    assert image_size(encoded("JPEG")[:12_000]) == (640, 480)


@pytest.mark.parametrize(
    "data", ["", "====", "aGkh", "not base64 at all!", "data:image/png;base64,", "data:", "é"]
)
def test_what_is_no_picture_has_no_size(data: str) -> None:
    assert image_size(data) is None


def test_a_picture_too_large_to_open_has_no_size_and_raises_nothing() -> None:
    head = struct.pack(">IIBBBBB", 1 << 30, 1 << 30, 8, 2, 0, 0, 0)
    chunk = struct.pack(">I", 13) + b"IHDR" + head + struct.pack(">I", zlib.crc32(b"IHDR" + head))
    assert image_size(base64.b64encode(b"\x89PNG\r\n\x1a\n" + chunk).decode()) is None


def test_without_pillow_a_picture_has_a_fixed_price_and_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    medium = MediaPart("image", encoded("PNG"))
    monkeypatch.setitem(sys.modules, "PIL", None)
    price, reason = MediaPrices("gpt-4o").price(medium)
    assert price == 1_500
    assert "Pillow" in reason


def test_a_picture_is_looked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    prices, medium = MediaPrices("gpt-4o"), MediaPart("image", encoded("PNG"))
    assert prices.price(medium) == (85 + 2 * 170, "")
    monkeypatch.setitem(sys.modules, "PIL", None)
    assert prices.price(medium) == (85 + 2 * 170, "")


@pytest.mark.parametrize("kind", ["audio", "video", "document"])
def test_other_media_are_estimated_by_their_size(kind: str) -> None:
    prices = MediaPrices("gpt-4o")
    small, large = (prices.price(MediaPart(kind, "A" * size)) for size in (100_000, 4_000_000))
    assert 0 < small[0] < large[0] < 100_000
    assert small[1]
    assert (
        prices.price(MediaPart(kind, ""))[0] == prices.price(MediaPart(kind, "https://example.com/x"))[0] == 1_500
    )
