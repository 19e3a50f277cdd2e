"""Detection of media types from the first bytes of data, and of image sizes from file headers.

agentkit has its own table of first bytes, so that requests do not depend on the installation. Only the inspected
bytes are decoded from base64.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable
from typing import Literal

from agentkit.messages.media_types import is_text_type
from agentkit.messages.sources import Base64Source

__all__ = ["has_signature", "image_size", "sniff_image_size", "sniff_media_type"]


_SIGNS: tuple[tuple[bytes, tuple[str, ...]], ...] = (
    # A row has a pattern of first bytes, the type that the bytes indicate, and other types with the same bytes.
    # Sources: the specifications of the formats, and WHATWG MIME Sniffing Standard, section 6.
    (rb"\x89PNG\r\n\x1a\n", ("image/png",)),
    (rb"\xff\xd8\xff", ("image/jpeg",)),
    (rb"GIF8[79]a", ("image/gif",)),
    (rb"RIFF.{4}WEBP", ("image/webp",)),
    (rb"BM.{4}\x00\x00\x00\x00", ("image/bmp",)),
    (rb"II\*\x00|MM\x00\*", ("image/tiff",)),
    (rb".{4}ftyp(heic|heix|hevc|hevx|heim|heis)", ("image/heic", "image/heif")),
    (rb".{4}ftyp(mif1|msf1)", ("image/heif", "image/heic", "image/avif")),
    (rb".{4}ftyp(avif|avis)", ("image/avif",)),
    (rb".{4}ftypM4A ", ("audio/mp4", "audio/aac")),
    (rb".{4}ftypqt  ", ("video/quicktime",)),
    (rb".{4}ftyp3g", ("video/3gpp", "audio/3gpp", "video/mp4")),
    (rb".{4}ftyp", ("video/mp4", "audio/mp4", "video/quicktime", "video/3gpp")),
    # A QuickTime file without the optional type atom begins with one of these atoms.
    # Source: QuickTime File Format, "Atoms".
    (rb"[\x00-\x1f].{3}(moov|mdat|wide|free|skip|pnot)", ("video/quicktime", "video/mp4", "audio/mp4")),
    (rb"(RIFF|RF64|RIFX).{4}WAVE", ("audio/wav",)),
    (rb"ID3[\x02-\x04]", ("audio/mpeg", "audio/aac", "audio/flac")),
    (rb"\xff[\xf2-\xf5\xfa-\xfd][\x00-\xeb]", ("audio/mpeg",)),
    (rb"\xff[\xf0\xf1\xf8\xf9][\x40-\x7f]", ("audio/aac",)),
    (rb"fLaC", ("audio/flac",)),
    (rb"OggS", ("audio/ogg", "video/ogg", "audio/opus")),
    (rb"FORM.{4}AIF[FC]", ("audio/aiff",)),
    (rb"RIFF.{4}AVI ", ("video/x-msvideo", "video/avi")),
    (rb"\x1aE\xdf\xa3.{0,60}webm", ("video/webm", "audio/webm")),
    (rb"\x1aE\xdf\xa3", ("video/x-matroska", "audio/x-matroska", "video/webm", "audio/webm")),
    (rb"FLV\x01", ("video/x-flv",)),
    (rb"\x00\x00\x01[\xb3\xba]", ("video/mpeg", "video/mpg")),
    (rb"(\xef\xbb\xbf)?\s*%PDF-", ("application/pdf",)),
    # HTML is recognized, because servers sometimes return an HTML error page instead of media.
    (rb"(?i:(\xef\xbb\xbf)?\s*(<!--.{0,40}-->\s*)?<(!doctype html|html|head|body)\b)", ("text/html",)),
)  # fmt: skip

_SIGNED = frozenset(media_type for _, types in _SIGNS for media_type in types if not is_text_type(media_type))
_HEAD = 128  # number of base64 characters to inspect at the start of the data


def has_signature(media_type: str) -> bool:
    """Returns True if files of a media type begin with bytes that identify the type."""
    return media_type in _SIGNED


def sniff_media_type(data: str, declared: str) -> str | None:
    """Returns the media type that the first bytes of base64 data indicate. Returns None if no type matches.

    If the declared type is a text type and the bytes look like text, returns the declared type. If the bytes match
    several types that include the declared type, returns the declared type. Otherwise, returns the most common
    matching type.

    Args:
        data: Base64 text.
        declared: Media type that the data is expected to have. Empty if unknown.

    Raises:
        ValueError: If the data cannot be decoded as base64.
    """
    head = base64.b64decode(data[:_HEAD])
    if is_text_type(declared) and _NO_TEXT.search(head) is None:
        return declared
    for sign, types in _SIGNS:
        if re.match(sign, head, re.DOTALL):
            return declared if declared in types else types[0]
    return None


_NO_TEXT = re.compile(rb"[\0-\x08\x0e-\x1a\x1c-\x1f\x7f]|\A\xff\xd8|\A\x89PNG|\A%PDF-")


def image_size(source: Base64Source) -> tuple[int, int] | None:
    """Returns the width and height of an image in pixels, from its header. Returns None if the size is unknown."""
    if "size" not in source.cache:
        source.cache["size"] = _measure(source.media_type, source.data)
    size: tuple[int, int] | None = source.cache["size"]
    return size


def sniff_image_size(data: str) -> tuple[int, int] | None:
    """Returns the width and height of a base64-encoded image in pixels. Returns None if the size is unknown.

    The first bytes of the data determine the image format.
    """
    try:
        return _measure(sniff_media_type(data, "") or "", data)
    except ValueError:  # the error occurs if the text is not base64
        return None


def _measure(media_type: str, data: str) -> tuple[int, int] | None:
    measure = _MEASURES.get(media_type)
    if measure is None or not data:
        return None
    try:
        width, height = measure(data)
    except (ValueError, IndexError):
        return None
    return (width, height) if width and height else None


def _bytes_at(data: str, start: int, count: int) -> bytes:
    """Returns `count` bytes of the data that a base64 text encodes, beginning with the byte at index `start`.

    Earlier bytes are not decoded.
    """
    first = start // 3
    header = base64.b64decode(data[first * 4 : -(-(start + count) // 3) * 4])[start - first * 3 :][:count]
    if len(header) < count:
        raise ValueError("the data ends inside the image header")
    return header


def _big_endian(data: bytes) -> int:
    return int.from_bytes(data, "big")


def _little_endian(data: bytes) -> int:
    return int.from_bytes(data, "little")


def _png(data: str) -> tuple[int, int]:
    """Reads the size of a PNG image from the IHDR chunk, which is the first chunk (PNG third edition, 11.2.1)."""
    header = _bytes_at(data, 12, 12)
    if header[:4] != b"IHDR":
        raise ValueError("the PNG image has no IHDR chunk")
    return _big_endian(header[4:8]), _big_endian(header[8:])


def _gif(data: str) -> tuple[int, int]:
    """Reads the size of a GIF image from the logical screen descriptor (GIF89a, 18)."""
    header = _bytes_at(data, 6, 4)
    return _little_endian(header[:2]), _little_endian(header[2:])


def _bmp(data: str) -> tuple[int, int]:
    """Reads the size of a BMP image from the BITMAPINFOHEADER.

    A negative height means that the file stores the top row first.
    """
    header = _bytes_at(data, 18, 8)
    height = int.from_bytes(header[4:], "little", signed=True)
    return _little_endian(header[:4]), abs(height)


def _webp(data: str) -> tuple[int, int]:
    """Reads the size of a lossy, lossless or extended WebP image (RFC 9649, 2.5 to 2.7)."""
    header = _bytes_at(data, 12, 18)
    if header[:4] == b"VP8X":
        return _little_endian(header[12:15]) + 1, _little_endian(header[15:18]) + 1
    if header[:4] == b"VP8L":
        bits = _little_endian(header[9:13])
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    if header[:4] != b"VP8 ":
        raise ValueError("the WebP image has no image chunk")
    return _little_endian(header[14:16]) & 0x3FFF, _little_endian(header[16:18]) & 0x3FFF


def _jpeg(data: str) -> tuple[int, int]:
    """Reads the size of a JPEG image from the segment with the frame header (ITU T.81, B.1.1 and B.2.2)."""
    position = 2
    for _ in range(_MARKERS):
        header = _bytes_at(data, position, 9)
        if header[0] != 0xFF:
            break
        marker = header[1]
        if marker == 0xFF:  # JPEG allows fill bytes (0xFF) before a marker
            position += 1
        elif 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):
            return _big_endian(header[7:9]), _big_endian(header[5:7])
        else:
            position += 2 + _big_endian(header[2:4])
    raise ValueError("the JPEG image has no frame header")


_MARKERS = 500  # maximum number of JPEG markers to read


def _tiff(data: str) -> tuple[int, int]:
    """Reads the size of a TIFF image from the first directory, whose entries are sorted by tag (TIFF 6.0, 2)."""
    order: Literal["big", "little"] = "little" if _bytes_at(data, 0, 1) == b"I" else "big"
    start = int.from_bytes(_bytes_at(data, 4, 4), order)
    sizes: dict[int, int] = {}
    for index in range(min(int.from_bytes(_bytes_at(data, start, 2), order), _TIFF_ENTRIES)):
        entry = _bytes_at(data, start + 2 + 12 * index, 12)
        length = 2 if int.from_bytes(entry[2:4], order) == _TIFF_SHORT else 4
        sizes[int.from_bytes(entry[:2], order)] = int.from_bytes(entry[8 : 8 + length], order)
    return sizes.get(256, 0), sizes.get(257, 0)


_TIFF_ENTRIES = 8  # number of entries to read; only tags 254 and 255 come before width (256) and height (257)
_TIFF_SHORT = 3  # TIFF field type for a number of two bytes

_MEASURES: dict[str, Callable[[str], tuple[int, int]]] = {
    "image/png": _png,
    "image/jpeg": _jpeg,
    "image/gif": _gif,
    "image/bmp": _bmp,
    "image/webp": _webp,
    "image/tiff": _tiff,
}
