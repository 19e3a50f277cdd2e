"""What media are by their own first bytes: their type, and a picture's size.

Our own table, not a library's: the same in every installation, so that the same input gives the same request.
Only the bytes that are looked at are decoded from base64.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable

from agentkit.messages.sources import Base64Source, is_text_type

__all__ = ["has_signature", "image_size", "sniff_media_type"]


_SIGNS: tuple[tuple[bytes, tuple[str, ...]], ...] = (
    # How data begin, the type that this tells, and others that it is no evidence against (a container's).
    # After the formats' own specifications; the WHATWG MIME Sniffing Standard, section 6, lists most of them.
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
    # QuickTime File Format, "Atoms": files without a type atom, which need not come first either.
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
    # What a server sends instead of what was asked for.
    (rb"(?i:(\xef\xbb\xbf)?\s*(<!--.{0,40}-->\s*)?<(!doctype html|html|head|body)\b)", ("text/html",)),
)  # fmt: skip

_SIGNED = frozenset(one for _, types in _SIGNS for one in types if not is_text_type(one))
_HEAD = 128  # characters of base64 text that tell the type


def has_signature(media_type: str) -> bool:
    """Whether data of a type can be told by their first bytes."""
    return media_type in _SIGNED


def sniff_media_type(data: str, declared: str) -> str | None:
    """The media type of base64 text by its first bytes; the declared one if they do not speak against it.

    None when no known type begins like that. Text that is declared as text stays what it is called.
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
    """Width and height of a picture in pixels, from its header; None when it tells none. Looked at once."""
    if "size" not in source.cache:
        source.cache["size"] = _measured(source)
    size: tuple[int, int] | None = source.cache["size"]
    return size


def _measured(source: Base64Source) -> tuple[int, int] | None:
    measure = _MEASURES.get(source.media_type)
    if measure is None or not source.data:
        return None
    try:
        width, height = measure(source.data)
    except (ValueError, IndexError):
        return None
    return (width, height) if width and height else None


def _bytes_at(data: str, start: int, count: int) -> bytes:
    """Some bytes of base64 text, with nothing before them decoded."""
    first = start // 3
    found = base64.b64decode(data[first * 4 : -(-(start + count) // 3) * 4])[start - first * 3 :][:count]
    if len(found) < count:
        raise ValueError("the data end here")
    return found


def _big(found: bytes) -> int:
    return int.from_bytes(found, "big")


def _little(found: bytes) -> int:
    return int.from_bytes(found, "little")


def _png(data: str) -> tuple[int, int]:
    """PNG 3, 11.2.1: the IHDR chunk comes first."""
    found = _bytes_at(data, 12, 12)
    if found[:4] != b"IHDR":
        raise ValueError("no header chunk")
    return _big(found[4:8]), _big(found[8:])


def _gif(data: str) -> tuple[int, int]:
    """GIF89a, 18: the logical screen."""
    found = _bytes_at(data, 6, 4)
    return _little(found[:2]), _little(found[2:])


def _bmp(data: str) -> tuple[int, int]:
    """BITMAPINFOHEADER; a negative height means rows from the top."""
    found = _bytes_at(data, 18, 8)
    height = int.from_bytes(found[4:], "little", signed=True)
    return _little(found[:4]), abs(height)


def _webp(data: str) -> tuple[int, int]:
    """RFC 9649, 2.5 to 2.7: lossy, lossless and extended files."""
    found = _bytes_at(data, 12, 18)
    if found[:4] == b"VP8X":
        return _little(found[12:15]) + 1, _little(found[15:18]) + 1
    if found[:4] == b"VP8L":
        bits = _little(found[9:13])
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    if found[:4] != b"VP8 ":
        raise ValueError("no chunk of a picture")
    return _little(found[14:16]) & 0x3FFF, _little(found[16:18]) & 0x3FFF


def _jpeg(data: str) -> tuple[int, int]:
    """ITU T.81, B.1.1 and B.2.2: from marker to marker to the frame header."""
    at = 2
    for _ in range(_MARKERS):
        found = _bytes_at(data, at, 9)
        if found[0] != 0xFF:
            break
        marker = found[1]
        if marker == 0xFF:  # a fill byte
            at += 1
        elif 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):
            return _big(found[7:9]), _big(found[5:7])
        else:
            at += 2 + _big(found[2:4])
    raise ValueError("no frame header")


_MARKERS = 500

_MEASURES: dict[str, Callable[[str], tuple[int, int]]] = {
    "image/png": _png,
    "image/jpeg": _jpeg,
    "image/gif": _gif,
    "image/bmp": _bmp,
    "image/webp": _webp,
}
