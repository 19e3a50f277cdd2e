"""Sources of media (base64 data or a URL), and functions that read files and encode base64."""

from __future__ import annotations

import base64
import os
import re
import stat
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias, cast

from pydantic import BeforeValidator, Discriminator

from agentkit.errors import MessageError
from agentkit.json_values import as_text
from agentkit.messages.media_types import canonical_media_type, guess_media_type, is_media_type
from agentkit.messages.validation import Text, Validated, slot_setter, validated_dataclass
from agentkit.reprs import describe_value, shorten_repr

__all__ = [
    "Base64Source",
    "MAX_FILE_BYTES",
    "Source",
    "URLSource",
    "cache_file_content",
    "encode_base64",
    "read_regular_file",
    "source_from_url",
]

# A scheme must have at least two characters here, because `C:` is a Windows drive.
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):")


def _check_media_type(media_type: str) -> None:
    if not is_media_type(media_type):
        reason = f"expected a media type, got {shorten_repr(media_type, 60)}"
        raise MessageError("media_type", reason, "Pass a type such as 'image/png'.")


# -- sources --------------------------------------------------------------------------------------------------


class _CachedContent(Validated):
    """Base class that adds a slot for content that was read from a URL."""

    __slots__ = ("cached_content",)

    cached_content: tuple[object, object] | None
    """Pair `(file version, content)`. The version changes if the file changes. None before the first read."""


@validated_dataclass
class URLSource(_CachedContent):
    """Source of media at a URL or in a file.

    Attributes:
        url: URL with the scheme http, https, file or data, or with a scheme that a provider defines. Text without
            a scheme is the path of a file. A formatter reads files only from its `media_roots`.
        media_type: Media type of the data, such as `image/png`. None if unknown.

    Raises:
        MessageError: If the URL is blank, or `media_type` is not a media type.
    """

    url: Text
    media_type: Text | None = None
    type: Literal["url"] = "url"

    def __post_init__(self) -> None:
        if not self.url.strip():
            raise MessageError("url", "the URL is blank", "Pass a URL, or use Base64Source for data.")
        if self.media_type is not None:
            _check_media_type(self.media_type)
        cache_file_content(self, None)

    @property
    def scheme(self) -> str:
        """The scheme of the URL in lower case. A path without a scheme has the scheme `file`."""
        match = _SCHEME.match(self.url)
        return match[1].lower() if match else "file"

    @property
    def guessed_type(self) -> str | None:
        """The media type in its registered spelling, from `media_type` or from the URL. None if unknown."""
        media_type = self.media_type or guess_media_type(self.url)
        return canonical_media_type(media_type) if media_type else None


cache_file_content = slot_setter(_CachedContent, "cached_content")
"""Function that sets the attribute `cached_content` of a `URLSource`."""


class _CachedResults(Validated):
    """Base class that adds a slot for results computed from base64 data."""

    __slots__ = ("cache",)

    cache: dict[Any, Any]
    """Results computed from the data, such as the image size. The keys name the results."""


@validated_dataclass
class Base64Source(_CachedResults):
    """Source of media that contains the data as base64 text.

    Attributes:
        media_type: Media type of the data, such as `image/png`.
        data: Base64 text in the standard alphabet, without a `data:` prefix.

    Raises:
        MessageError: If `media_type` is not a media type, or `data` is a data URL.
    """

    media_type: Text
    data: Text
    type: Literal["base64"] = "base64"

    def __post_init__(self) -> None:
        _check_media_type(self.media_type)
        if self.data.startswith("data:"):
            raise MessageError("data", "expected base64 text, got a data: URL", "Use URLSource for a data: URL.")
        _set_cache(self, {})

    @property
    def text(self) -> str | None:
        """The data decoded as UTF-8 text. None if the data is not valid UTF-8, or if the text is blank."""
        if "text" not in self.cache:
            self.cache["text"] = _decode_text(self.data)
        text: str | None = self.cache["text"]
        return text

    @property
    def data_url(self) -> str:
        """The data and its media type as a `data:` URL."""
        if "data_url" not in self.cache:
            self.cache["data_url"] = f"data:{self.media_type};base64,{self.data}"
        url: str = self.cache["data_url"]
        return url


_set_cache = slot_setter(_CachedResults, "cache")


def _decode_text(data: str) -> str | None:
    try:
        text = base64.b64decode(data).decode("utf-8-sig")
    except ValueError:
        return None
    return None if not text or text.isspace() else text


def _check_is_source(value: object) -> object:
    if not isinstance(value, (URLSource, Base64Source, dict)):
        reason = f"expected a URLSource or Base64Source, got {describe_value(value)}"
        raise MessageError(
            "", reason, "Pass a source, or create the block with from_url, from_path or from_bytes."
        )
    return cast("object", value)


Source: TypeAlias = Annotated[
    Annotated[URLSource | Base64Source, Discriminator("type")], BeforeValidator(_check_is_source)
]
"""Source of media: either base64 data or a URL."""

_DATA_URL = re.compile(r"data:([^;,]+);base64,(.*)", re.DOTALL)


def source_from_url(url: object, media_type: str | None = None) -> Source | None:
    """Converts a URL to a media source. A base64 data URL becomes a `Base64Source`.

    Returns None if the value is not a valid URL, or if the media type is invalid.

    Args:
        url: URL from a provider's message. The function returns None for a value that is not a string.
        media_type: Media type of the data. Not used for a base64 data URL, which declares its own type.

    Example:
        >>> source_from_url("data:image/png;base64,AAAA")
        Base64Source(media_type='image/png', data='AAAA')
    """
    text = as_text(url)
    match = _DATA_URL.fullmatch(text)
    try:
        return Base64Source(match[1], match[2]) if match else URLSource(text, media_type)
    except MessageError:
        return None


# -- bytes ----------------------------------------------------------------------------------------------------


def encode_base64(data: bytes | bytearray | memoryview) -> str:
    """Encodes data as base64 text. Pieces are encoded one by one, so that other threads can run in between."""
    pieces = (base64.b64encode(data[start : start + _PIECE]) for start in range(0, len(data), _PIECE))
    return b"".join(pieces).decode("ascii")


_PIECE = 3 << 18  # bytes to encode at a time; a multiple of three, because other lengths need padding

MAX_FILE_BYTES = 100_000_000
"""Maximum size of a file in bytes. No provider accepts a larger file."""

_OPEN_FLAGS = os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0)


def read_regular_file(path: str | Path, max_bytes: int) -> bytes:
    """Reads the content of a regular file, and refuses other paths such as directories, pipes and devices.

    The function blocks the thread while the file is read.

    Raises:
        OSError: If the file cannot be read.
        ValueError: If the path is not a regular file, or if the file is too large.
    """
    descriptor = os.open(path, _OPEN_FLAGS)
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise ValueError("the path is not a regular file")
        content = file.read(max_bytes + 1)
    if len(content) > max_bytes:
        raise ValueError(f"the file has more than {max_bytes:,} bytes")
    return content
