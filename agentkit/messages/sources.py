"""The sources of media: what they are, where they lie, and how their bytes are written."""

from __future__ import annotations

import base64
import os
import re
import stat
from dataclasses import field
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias, cast

from pydantic import BeforeValidator, Discriminator

from agentkit.errors import MessageError
from agentkit.json_values import as_text
from agentkit.messages.validation import Checked, Text, validated_dataclass

__all__ = [
    "Base64Source",
    "MAX_FILE_BYTES",
    "Source",
    "URLSource",
    "canonical_media_type",
    "encode_base64",
    "guess_media_type",
    "is_media_type",
    "is_text_type",
    "read_regular_file",
    "source_from_url",
]

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):")  # two letters at least: `C:\` is a drive

# RFC 6838, 4.2: restricted-name "/" restricted-name; parameters behind a semicolon.
_MEDIA_TYPE = re.compile(r"[A-Za-z0-9][\w!#$&^.+-]{0,126}/[A-Za-z0-9][\w!#$&^.+-]{0,126}(\s*;.*)?", re.ASCII)

_MEDIA_TYPES: dict[str, str] = {
    # By suffix. The standard library's table is not used: it reads the machine's own files.
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
    # Written in the wild, registered nowhere (AgentScope D21, D23; QwenPaw 3313).
    "image/jpg": "image/jpeg", "image/pjpeg": "image/jpeg", "image/x-png": "image/png",
    "audio/mp3": "audio/mpeg", "audio/x-mp3": "audio/mpeg", "audio/x-mpeg": "audio/mpeg",
    "audio/x-wav": "audio/wav", "audio/wave": "audio/wav", "audio/vnd.wave": "audio/wav",
    "audio/x-flac": "audio/flac", "audio/x-m4a": "audio/mp4", "audio/x-aiff": "audio/aiff",
    "video/x-mov": "video/quicktime", "application/x-pdf": "application/pdf",
}  # fmt: skip


def canonical_media_type(media_type: str) -> str:
    """The registered spelling: lower case, no parameters, `image/jpg` as `image/jpeg`."""
    plain = media_type.partition(";")[0].strip().lower()
    return _ALIASES.get(plain, plain)


def guess_media_type(url: str) -> str | None:
    """The media type that the end of a URL's or path's last segment names, or a data URL's head; or None.

    >>> guess_media_type("https://example.com/a.JPG?width=3")
    'image/jpeg'
    >>> guess_media_type("data:text/plain,see a.pdf")
    'text/plain'
    """
    data = _DATA_TYPE.match(url)
    if data is not None:
        named = data[1].strip() or "text/plain"  # RFC 2397, 2
        return canonical_media_type(named) if is_media_type(named) else None
    path = re.split(r"[?#]", url, maxsplit=1)[0] if _SCHEME.match(url) else url
    name = path.rpartition("/")[2]
    return _MEDIA_TYPES.get(name.rpartition(".")[2].lower()) if "." in name else None


def is_media_type(text: str) -> bool:
    """Whether a text is `type/subtype`, with parameters or without."""
    return _MEDIA_TYPE.fullmatch(text) is not None


def is_text_type(media_type: str) -> bool:
    """Whether media of a type are text."""
    return _TEXT_TYPES.fullmatch(media_type) is not None


_TEXT_TYPES = re.compile(r"text/.+|application/(json|xml|yaml|x-yaml|toml|javascript|x-ndjson)")


def _decoded(data: str) -> str:
    try:
        text = base64.b64decode(data).decode("utf-8-sig")
    except ValueError:
        return ""
    return "" if text.isspace() else text


@validated_dataclass
class URLSource(metaclass=Checked):
    """Media at a URL: http, https, file or data, or a scheme of a provider's own; a bare path is a file.

    A file is read only when the formatter was given `media_roots` that contain it.
    """

    url: Text
    media_type: Text | None = None
    type: Literal["url"] = "url"
    _read: tuple[object, object] | None = field(default=None, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not self.url.strip():
            raise MessageError("url", "the URL is blank", "Give a URL, or use Base64Source.")
        if self.media_type is not None and not is_media_type(self.media_type):
            reason = f"{self.media_type[:60]!r} is no media type"
            raise MessageError("media_type", reason, "Write it as in 'image/png'.")

    @property
    def scheme(self) -> str:
        """The scheme in lower case; `file` for a bare path."""
        found = _SCHEME.match(self.url)
        return found[1].lower() if found else "file"

    @property
    def guessed_type(self) -> str | None:
        """The declared media type, else the one that the URL's suffix names, canonical; or None."""
        named = self.media_type or guess_media_type(self.url)
        return canonical_media_type(named) if named else None


@validated_dataclass
class Base64Source(metaclass=Checked):
    """Media held in the message: base64 text (standard alphabet, no `data:` prefix) and its media type."""

    media_type: Text
    data: Text
    type: Literal["base64"] = "base64"
    _settled: object = field(default=None, init=False, repr=False, compare=False)
    _text: str | None = field(default=None, init=False, repr=False, compare=False)
    _url: str | None = field(default=None, init=False, repr=False, compare=False)
    _facts: dict[Any, Any] | None = field(default=None, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not is_media_type(self.media_type):
            reason = f"{self.media_type[:60]!r} is no media type"
            raise MessageError("media_type", reason, "Write it as in 'image/png'.")
        if self.data.startswith("data:"):
            raise MessageError("data", "this is a data: URL, not base64 text", "Use URLSource for it.")

    @property
    def facts(self) -> dict[Any, Any]:
        """The private notebook of the data: what was worked out of them, once."""
        if self._facts is None:
            _set_facts(self, {})
        return cast("dict[Any, Any]", self._facts)

    @property
    def text(self) -> str | None:
        """The text that the data are, decoded once; None for bytes that are no UTF-8, and for blank text."""
        if self._text is None:
            _set_source_text(self, _decoded(self.data))
        return self._text or None

    @property
    def data_url(self) -> str:
        """The same as a `data:` URL, put together once."""
        if self._url is None:
            _set_url(self, f"data:{self.media_type};base64,{self.data}")
        return cast("str", self._url)


_set_source_text = Base64Source.__dict__["_text"].__set__
_set_url = Base64Source.__dict__["_url"].__set__
_set_facts = Base64Source.__dict__["_facts"].__set__


def _is_source(found: object) -> object:
    if not isinstance(found, (URLSource, Base64Source, dict)):
        reason = f"{type(found).__name__} is no source"
        raise MessageError(
            "", reason, "Give a URLSource or Base64Source, or use from_url, from_path or from_bytes."
        )
    return cast("object", found)


Source: TypeAlias = Annotated[
    Annotated[URLSource | Base64Source, Discriminator("type")], BeforeValidator(_is_source)
]


def encode_base64(data: bytes | bytearray | memoryview) -> str:
    """Base64 text, made in pieces: none of them holds other threads up for long."""
    pieces = (base64.b64encode(data[start : start + _PIECE]) for start in range(0, len(data), _PIECE))
    return b"".join(pieces).decode("ascii")


_PIECE = 3 << 18  # bytes; divisible by three, so that the pieces join


MAX_FILE_BYTES = 100_000_000
"""Bytes: no larger file is read. No target takes as much, and the content is held twice."""

_OPEN = os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0)


def read_regular_file(path: str | Path, limit: int) -> bytes:
    """Returns the content of a regular file. Blocking, but a pipe is not waited for.

    Raises OSError if the file cannot be read, ValueError if it is no regular file or has more than `limit` bytes.
    """
    descriptor = os.open(path, _OPEN)
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise ValueError("it is no regular file")
        content = file.read(limit + 1)
    if len(content) > limit:
        raise ValueError(f"it has more than {limit:,} bytes")
    return content


_DATA_URL = re.compile(r"data:([^;,]+);base64,(.*)", re.DOTALL)


def source_from_url(found: object, media_type: str | None = None) -> Source | None:
    """The source of a URL or a data URL; None for what is none. `media_type` is what a URL does not say itself.

    >>> source_from_url("data:image/png;base64,AAAA")
    Base64Source(media_type='image/png', data='AAAA')
    """
    url = as_text(found)
    held = _DATA_URL.fullmatch(url)
    try:
        return Base64Source(held[1], held[2]) if held else URLSource(url, media_type)
    except MessageError:
        return None
