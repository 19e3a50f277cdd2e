"""Media types from the first bytes of data, and image sizes from headers."""

from __future__ import annotations

import base64
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from agentkit import AudioBlock, Base64Source, DocumentBlock, ImageBlock, Msg, URLSource, VideoBlock
from agentkit.messages.sniffing import image_size, sniff_image_size, sniff_media_type
from agentkit.provider_kit import MediaRule
from tests.cases import each_case
from tests.conftest import EchoFormatter, get_turns, target
from tests.conversations import DATA


def text(data: bytes) -> str:
    return base64.b64encode(data).decode()


FIRST_BYTES: list[tuple[bytes, str]] = [
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff\xe0", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"RIFF\x10\0\0\0WEBPVP8 ", "image/webp"),
    (b"BM\x46\0\0\0\0\0\0\0\x36", "image/bmp"),
    (b"II*\0", "image/tiff"),
    (b"MM\0*", "image/tiff"),
    (b"\0\0\0\x18ftypheic", "image/heic"),
    (b"\0\0\0\x18ftypmif1", "image/heif"),
    (b"\0\0\0\x18ftypavif", "image/avif"),
    (b"RIFF\x10\0\0\0WAVEfmt ", "audio/wav"),
    (b"ID3\x04\0", "audio/mpeg"),
    (b"\xff\xfb\x90\x64", "audio/mpeg"),
    (b"\xff\xf1\x50\x80", "audio/aac"),
    (b"fLaC\0", "audio/flac"),
    (b"OggS\0", "audio/ogg"),
    (b"FORM\0\0\0\x10AIFF", "audio/aiff"),
    (b"\0\0\0\x18ftypM4A ", "audio/mp4"),
    (b"\0\0\0\x18ftypisom", "video/mp4"),
    (b"\0\0\0\x14ftypqt  ", "video/quicktime"),
    (b"RIFF\x10\0\0\0AVI LIST", "video/x-msvideo"),
    (b"\x1aE\xdf\xa3\x9fB\x86\x81\1B\x82\x84webm", "video/webm"),
    (b"\x1aE\xdf\xa3\x9fB\x86\x81\1B\x82\x88matroska", "video/x-matroska"),
    (b"RF64\xff\xff\xff\xffWAVEds64", "audio/wav"),
    (b"\xff\xfd\x84\x04", "audio/mpeg"),
    (b"\0\0\0\x08wide\0\0\x10\0mdat", "video/quicktime"),
    (b"\0\0\x01\xb3", "video/mpeg"),
    (b"%PDF-1.7", "application/pdf"),
    (b"\r\n%PDF-1.7", "application/pdf"),
    (b"<!DOCTYPE html><html>", "text/html"),
    (b"\xef\xbb\xbf\n<!-- hi --> <HTML lang=en>", "text/html"),
]


@each_case(("head", "media_type"), FIRST_BYTES)
def test_the_first_bytes_indicate_the_media_type(head: bytes, media_type: str) -> None:
    for wrong in ("image/x-wrong", "text/plain" if media_type != "text/html" else ""):
        assert sniff_media_type(text(head + bytes(64) * (media_type != "text/html")), wrong) == media_type
    assert sniff_media_type(text(head), media_type) == media_type


@each_case(
    ("data", "declared"),
    [
        ("", "image/png"),
        (text(b"a"), "image/png"),
        (text(b"BM and more"), "image/png"),
        (text(b"RIFF\0\0\0\0ACON"), "audio/wav"),
        (text(b"<svg xmlns='http://www.w3.org/2000/svg'/>"), "image/svg+xml"),
    ],
)
def test_unknown_bytes_indicate_no_media_type(data: str, declared: str) -> None:
    assert sniff_media_type(data, declared) is None


@each_case(
    ("head", "declared"),
    [
        (b"\0\0\0\x18ftypisom", "audio/mp4"),
        (b"\0\0\0\x18ftypmp42", "video/quicktime"),
        (b"\x1aE\xdf\xa3webm", "audio/webm"),
        (b"OggS", "video/ogg"),
        (b"ID3\x03", "audio/aac"),
        (b"\0\0\0\x18ftypmif1", "image/heic"),
    ],
)
def test_the_declared_type_of_a_container_format_wins(head: bytes, declared: str) -> None:
    assert sniff_media_type(text(head), declared) == declared


@each_case("words", [b"<html>a page</html>", b"BM", b"GIF89a is a format", b"{}", "漢字".encode()])
@each_case("declared", ["text/plain", "text/html", "application/json"])
def test_the_declared_text_type_wins_for_text(words: bytes, declared: str) -> None:
    assert sniff_media_type(text(words), declared) == declared


@pytest.mark.parametrize("kind", [ImageBlock, AudioBlock, VideoBlock, DocumentBlock])
@pytest.mark.parametrize("way", ["base64", "file", "data URL"])
@pytest.mark.anyio
async def test_data_that_contradicts_its_type_is_omitted_with_a_reason(
    kind: Any, way: str, tmp_path: Path
) -> None:
    suffix, named = {
        ImageBlock: ("png", "image/png"), AudioBlock: ("mp3", "audio/mpeg"),
        VideoBlock: ("mp4", "video/mp4"), DocumentBlock: ("pdf", "application/pdf"),
    }[kind]  # fmt: skip
    (tmp_path / f"a.{suffix}").write_bytes(b"hello")
    source, reason = {
        "base64": (Base64Source(named, text(b"hello")), f"the data is not {named}"),
        "file": (URLSource(str(tmp_path / f"a.{suffix}")), f"the content of the file is not {named}"),
        "data URL": (URLSource(f"data:{named},hello"), f"the content of the data URL is not {named}"),
    }[way]
    formatter_type = target(media__video=MediaRule(), media__document=MediaRule())
    plan = await formatter_type(media_roots=[tmp_path]).plan([Msg("Bob", (kind(source),), "user")])
    assert plan.ledger.losses == [("msgs[0].content[0]", reason)]


def draw_image(kind: str, mode: str = "RGB", **options: Any) -> str:
    buffer = BytesIO()
    Image.new(mode, (321, 123)).save(buffer, kind, **options)
    return text(buffer.getvalue())


EXIF = b"Exif\0\0" + b"x" * 60_000
IMAGE_SIZES: list[tuple[str, str]] = [
    ("image/png", draw_image("PNG")),
    ("image/jpeg", draw_image("JPEG")),
    ("image/jpeg", draw_image("JPEG", exif=EXIF)),
    ("image/jpeg", draw_image("JPEG", progressive=True)),
    ("image/gif", draw_image("GIF")),
    ("image/bmp", draw_image("BMP")),
    ("image/webp", draw_image("WEBP")),
    ("image/webp", draw_image("WEBP", lossless=True)),
    ("image/webp", draw_image("WEBP", exif=b"Exif\0\0MM\0*")),
    ("image/tiff", draw_image("TIFF")),
    ("image/tiff", draw_image("TIFF", "I;16B")),
]


@each_case(("media_type", "data"), IMAGE_SIZES)
def test_a_header_contains_the_image_size(media_type: str, data: str) -> None:
    assert image_size(Base64Source(media_type, data)) == (321, 123)


@each_case(("media_type", "data"), IMAGE_SIZES)
def test_a_broken_header_gives_no_image_size(media_type: str, data: str) -> None:
    for end in range(0, 60, 4):
        assert image_size(Base64Source(media_type, data[:end])) in (None, (321, 123))
    assert image_size(Base64Source(media_type, text(base64.b64decode(data)[:6] + bytes(60)))) is None


def test_other_formats_give_no_image_size() -> None:
    assert image_size(Base64Source("image/x-icon", draw_image("ICO"))) is None


@each_case(("media_type", "data"), IMAGE_SIZES)
def test_the_size_is_read_without_a_media_type(media_type: str, data: str) -> None:
    assert sniff_image_size(data) == image_size(Base64Source(media_type, data))


# -- on the way to a request -------------------------------------------------------------------------------

PNG = DATA["image/png"]


@pytest.mark.parametrize("source", [Base64Source("image/jpeg", PNG), URLSource(f"data:image/jpg;base64,{PNG}")])
def test_the_sniffed_type_is_sent_and_recorded_in_the_ledger(source: Any) -> None:
    msg = Msg("Bob", (ImageBlock(source),), "user")
    plan = EchoFormatter().lower([msg])
    assert get_turns(plan)[0]["content"][0]["source"] == {"type": "base64", "media_type": "image/png", "data": PNG}
    (entry,) = plan.ledger.entries
    assert (entry.disposition.word, entry.lost) == ("carried", False)
    assert entry.reason == "media type sent as image/png instead of image/jpeg, according to the content"
    assert msg.media[0].source == source


@pytest.mark.parametrize("head", ['image/png;name="a,b.png";base64', "image/png;base64;x=y"])
def test_base64_text_after_an_unknown_header_is_not_encoded_again(head: str) -> None:
    plan = EchoFormatter().lower([Msg("Bob", (ImageBlock(URLSource(f"data:{head},{PNG}")),), "user")])
    reason = "the content of the data URL is not image/png"
    assert plan.ledger.losses == [("msgs[0].content[0]", reason)]


@each_case(
    ("block", "media_type"),
    [
        (ImageBlock(Base64Source("image/jpg", DATA["image/jpeg"])), "image/jpeg"),
        (ImageBlock(Base64Source("image/x-png", PNG)), "image/png"),
        (AudioBlock(Base64Source("audio/x-wav", DATA["audio/wav"])), "audio/wav"),
        (AudioBlock(Base64Source("AUDIO/MP3; q=1", DATA["audio/mpeg"])), "audio/mpeg"),
        (VideoBlock(URLSource(f"data:video/mp4;base64,{DATA['video/mp4']}")), "video/mp4"),
    ],
)
def test_an_alias_of_the_media_type_is_not_recorded(block: Any, media_type: str) -> None:
    plan = EchoFormatter().lower([Msg("Bob", (block,), "user")])
    assert get_turns(plan)[0]["content"][0]["source"]["media_type"] == media_type
    assert plan.ledger.entries[0].reason == "sent unchanged"


def test_data_in_a_data_url_is_sniffed() -> None:
    msg = Msg("Bob", (ImageBlock(URLSource(f"data:image/webp;base64,{PNG}")),), "user")
    assert get_turns(EchoFormatter().lower([msg]))[0]["content"][0]["source"]["media_type"] == "image/png"


def test_an_html_page_is_not_sent_as_an_image() -> None:
    msg = Msg("Bob", (ImageBlock(Base64Source("image/png", text(b"<!doctype html><p>Sorry</p>"))),), "user")
    assert EchoFormatter().lower([msg]).ledger.losses == [("msgs[0].content[0]", "Echo does not accept text/html")]


def test_the_sniffed_type_must_be_accepted_by_the_target() -> None:
    formatter_type = target(media__image=MediaRule(types=frozenset({"image/jpeg"})))
    plan = formatter_type().lower([Msg("Bob", (ImageBlock(Base64Source("image/jpeg", PNG)),), "user")])
    assert plan.ledger.losses == [("msgs[0].content[0]", "Echo does not accept image/png")]


def test_a_pdf_declared_as_text_is_sent_as_pdf() -> None:
    msg = Msg("Bob", (DocumentBlock(Base64Source("text/plain", DATA["application/pdf"])),), "user")
    assert get_turns(EchoFormatter().lower([msg]))[0]["content"][0]["source"]["media_type"] == "application/pdf"


def test_the_bytes_are_sniffed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    from agentkit.media import resolution as shelf

    looks: list[str] = []
    sniff = shelf.__dict__["sniff_media_type"]

    def sniff_and_record(data: str, declared: str) -> object:
        looks.append(declared)
        return sniff(data, declared)

    monkeypatch.setattr(shelf, "sniff_media_type", sniff_and_record)
    msg = Msg("Bob", (ImageBlock(Base64Source("image/jpg", PNG)),), "user")
    for formatter in (EchoFormatter(), EchoFormatter(), target(media__video=None)()):
        formatter.lower([msg])
    assert looks == ["image/jpeg"]
