"""Blocks of images, audio, video and documents."""

from __future__ import annotations

from dataclasses import field
from pathlib import Path
from typing import Literal, Self, TypeAlias

from agentkit.errors import MessageError
from agentkit.messages.basic_blocks import BlockBase
from agentkit.messages.media_types import guess_media_type
from agentkit.messages.opaque_state import OpaqueState
from agentkit.messages.sniffing import sniff_media_type
from agentkit.messages.sources import (
    MAX_FILE_BYTES,
    Base64Source,
    Source,
    URLSource,
    encode_base64,
    read_regular_file,
)
from agentkit.messages.validation import Text, validated_dataclass

__all__ = ["AudioBlock", "DocumentBlock", "ImageBlock", "MediaBlock", "VideoBlock"]


@validated_dataclass
class _MediaBase(BlockBase):
    """Base class of media blocks.

    Attributes:
        source: Data, or the URL of the data.
        state: Signature of media that a model produced (Gemini signs images), or further keys of the native part
            (see `OpaqueState.fields`).

    """

    source: Source
    state: OpaqueState | None = field(default=None, kw_only=True)

    @classmethod
    def from_bytes(cls, data: bytes, media_type: str) -> Self:
        """Returns a block that contains the data.

        Args:
            data: Content of the media file.
            media_type: Media type of the data, such as `image/png`.

        Raises:
            MessageError: `data` is not bytes, or `media_type` is not a media type.

        """
        if not isinstance(data, bytes | bytearray | memoryview):
            raise MessageError("data", f"expected bytes, got {type(data).__name__}", "Pass the bytes of the file.")
        return cls(Base64Source(media_type, encode_base64(data)))

    @classmethod
    def from_path(cls, path: str | Path, media_type: str | None = None) -> Self:
        """Reads a file and returns a block with its data. Blocks the thread while the file is read.

        The file may be anywhere: `media_roots` limits only files that a formatter reads.

        Args:
            path: Regular file of at most 100 million bytes.
            media_type: Media type of the file. None derives the type from the suffix or the first bytes.

        Raises:
            MessageError: The file cannot be read, is too large or is not a regular file, or its type is unknown.

        """
        if not isinstance(path, str | Path):
            raise MessageError("path", f"expected a path, got {type(path).__name__}", "Pass a str or a Path.")
        named_type = media_type or guess_media_type(Path(path).as_posix())
        try:
            content = read_regular_file(path, MAX_FILE_BYTES)
            named_type = named_type or sniff_media_type(encode_base64(content[:96]), "")
            if named_type is None:
                reason = "neither the suffix nor the content indicates a known media type"
                raise MessageError(str(path), reason, "Pass media_type.")
            return cls.from_bytes(content, named_type)
        except (OSError, ValueError) as error:
            if isinstance(error, MessageError):
                raise
            raise MessageError(str(path), f"the file cannot be read ({error})", "Check the path.") from None

    @classmethod
    def from_url(cls, url: str, media_type: str | None = None) -> Self:
        """Returns a block that refers to a URL.

        Args:
            url: URL of the media file.
            media_type: Media type of the file. None if unknown.

        Raises:
            MessageError: The URL is blank, or `media_type` is not a media type.

        """
        return cls(URLSource(url, media_type))


@validated_dataclass
class ImageBlock(_MediaBase):
    """Block of an image."""

    type: Literal["image"] = "image"


@validated_dataclass
class AudioBlock(_MediaBase):
    """Block of an audio recording."""

    type: Literal["audio"] = "audio"


@validated_dataclass
class VideoBlock(_MediaBase):
    """Block of a video."""

    type: Literal["video"] = "video"


@validated_dataclass
class DocumentBlock(_MediaBase):
    """Block of a document: PDF, plain text or an office file.

    Attributes:
        title: File name or heading.

    """

    title: Text | None = None
    type: Literal["document"] = "document"


MediaBlock: TypeAlias = ImageBlock | AudioBlock | VideoBlock | DocumentBlock
"""Block of any media kind."""
