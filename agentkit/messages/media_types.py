"""Media types: the registered spelling of a type, and the type that a URL or a file path indicates."""

from __future__ import annotations

import re

__all__ = ["canonical_media_type", "guess_media_type", "is_media_type", "is_text_type"]

# A scheme must have at least two characters here, because `C:` is a Windows drive.
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):")

# A media type is restricted-name "/" restricted-name (RFC 6838, 4.2), with optional parameters after a semicolon.
_MEDIA_TYPE = re.compile(r"[A-Za-z0-9][\w!#$&^.+-]{0,126}/[A-Za-z0-9][\w!#$&^.+-]{0,126}(\s*;.*)?", re.ASCII)

_MEDIA_TYPES: dict[str, str] = {
    # Media types by file suffix. The module `mimetypes` is not used, because its table differs between machines.
    "png": "image/png", "jpg": "image/jpeg", "jpeg": "image/jpeg", "gif": "image/gif",
    "webp": "image/webp", "bmp": "image/bmp", "tif": "image/tiff", "tiff": "image/tiff",
    "heic": "image/heic", "heif": "image/heif", "svg": "image/svg+xml",
    "wav": "audio/wav", "mp3": "audio/mpeg", "flac": "audio/flac", "ogg": "audio/ogg",
    "m4a": "audio/mp4", "aac": "audio/aac", "aiff": "audio/aiff",
    "mp4": "video/mp4", "mov": "video/quicktime", "mpeg": "video/mpeg", "mpg": "video/mpeg",
    "webm": "video/webm", "avi": "video/x-msvideo", "mkv": "video/x-matroska",
    "pdf": "application/pdf", "txt": "text/plain", "md": "text/markdown", "csv": "text/csv",
    "html": "text/html", "json": "application/json", "xml": "application/xml",
    "docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    "xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    "pptx": "application/vnd.openxmlformats-officedocument.presentationml.presentation",
}  # fmt: skip

_DATA_TYPE = re.compile(r"data:([^,;]*)", re.IGNORECASE)

_ALIASES: dict[str, str] = {
    # Maps common spellings that are not registered with IANA to the registered media types.
    "image/jpg": "image/jpeg", "image/pjpeg": "image/jpeg", "image/x-png": "image/png",
    "audio/mp3": "audio/mpeg", "audio/x-mp3": "audio/mpeg", "audio/x-mpeg": "audio/mpeg",
    "audio/x-wav": "audio/wav", "audio/wave": "audio/wav", "audio/vnd.wave": "audio/wav",
    "audio/x-flac": "audio/flac", "audio/x-m4a": "audio/mp4", "audio/x-aiff": "audio/aiff",
    "video/x-mov": "video/quicktime", "application/x-pdf": "application/pdf",
}  # fmt: skip


def canonical_media_type(media_type: str) -> str:
    """Returns the registered spelling of a media type, in lower case and without parameters.

    >>> canonical_media_type("image/JPG; q=1")
    'image/jpeg'
    """
    essence = media_type.partition(";")[0].strip().lower()
    return _ALIASES.get(essence, essence)


def guess_media_type(url: str) -> str | None:
    """Returns the media type that the suffix of a URL or a path indicates, or that a data URL declares.

    Returns None if the suffix is missing or unknown, or if a data URL declares an invalid type.

    >>> guess_media_type("https://example.com/a.JPG?width=3")
    'image/jpeg'
    >>> guess_media_type("data:text/plain,see a.pdf")
    'text/plain'
    """
    header = _DATA_TYPE.match(url)
    if header is not None:
        media_type = header[1].strip() or "text/plain"  # the default type of a data URL (RFC 2397, section 2)
        return canonical_media_type(media_type) if is_media_type(media_type) else None
    path = re.split(r"[?#]", url, maxsplit=1)[0] if _SCHEME.match(url) else url
    name = path.rpartition("/")[2]
    return _MEDIA_TYPES.get(name.rpartition(".")[2].lower()) if "." in name else None


def is_media_type(text: str) -> bool:
    """Returns True if a string has the form `type/subtype`, with or without parameters."""
    return _MEDIA_TYPE.fullmatch(text) is not None


def is_text_type(media_type: str) -> bool:
    """Returns True if files of a media type contain text. Examples: `text/plain` and `application/json`."""
    return _TEXT_TYPES.fullmatch(media_type) is not None


_TEXT_TYPES = re.compile(r"text/.+|application/(json|xml|yaml|x-yaml|toml|javascript|x-ndjson)")
