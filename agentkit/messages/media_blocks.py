"""Blocks for images, audio, videos and documents."""

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
from agentkit.reprs import describe_value

__all__ = ["AudioBlock", "DocumentBlock", "ImageBlock", "MediaBlock", "VideoBlock"]


@validated_dataclass
class _MediaBase(BlockBase):
    """Base class of media blocks.

    Attributes:
        source: Source of the media: base64 data or a URL.
        state: Opaque state, such as a signature or additional keys of the provider's block (see
            `OpaqueState.fields`). Gemini signs images that a model produced.
    """

    source: Source
    state: OpaqueState | None = field(default=None, kw_only=True)

    @classmethod
    def from_bytes(cls, data: bytes, media_type: str) -> Self:
        """Creates a block that contains the given data.

        Args:
            data: Content of the media file.
            media_type: Media type of the data, such as `image/png`.

        Raises:
            MessageError: If `data` is not a bytes, bytearray or memoryview object, or if `media_type` is not a
                media type.
        """
        if not isinstance(data, bytes | bytearray | memoryview):
            raise MessageError(
                "data", f"expected bytes, got {describe_value(data)}", "Pass the bytes of the file."
            )
        return cls(Base64Source(media_type, encode_base64(data)))

    @classmethod
    def from_path(cls, path: str | Path, media_type: str | None = None) -> Self:
        """Reads a file and creates a block that contains its data. Blocks the thread while the file is read.

        The option `media_roots` has no effect here, because it limits only the files that a formatter reads.

        Args:
            path: Path of a regular file of at most 100 million bytes.
            media_type: Media type of the file. If None, the suffix of the path determines the type. If the suffix
                is unknown, the first bytes of the file determine the type.

        Raises:
            MessageError: If an argument is invalid, or if the file cannot be read, is too large, is not a regular
                file, or has an unknown type.
        """
        if not isinstance(path, str | Path):
            raise MessageError("path", f"expected a path, got {describe_value(path)}", "Pass a str or a Path.")
        named_type = media_type or guess_media_type(Path(path).as_posix())
        try:
            content = read_regular_file(path, MAX_FILE_BYTES)
            named_type = named_type or sniff_media_type(encode_base64(content[:96]), "")
            if named_type is None:
                reason = "the media type is unknown: neither the suffix nor the content of the file indicates it"
                raise MessageError(str(path), reason, "Pass `media_type`, such as 'image/png'.")
            return cls.from_bytes(content, named_type)
        except (OSError, ValueError) as error:
            if isinstance(error, MessageError):
                raise
            raise MessageError(
                str(path), f"the file cannot be read ({error})", "Pass the path of a readable file."
            ) from None

    @classmethod
    def from_url(cls, url: str, media_type: str | None = None) -> Self:
        """Creates a block that refers to media at a URL. The URL is not read.

        Args:
            url: URL of the media file.
            media_type: Media type of the file, such as `image/png`. None if unknown.

        Raises:
            MessageError: If the URL is blank, or `media_type` is not a media type.
        """
        return cls(URLSource(url, media_type))


@validated_dataclass
class ImageBlock(_MediaBase):
    """Block for an image."""

    type: Literal["image"] = "image"


@validated_dataclass
class AudioBlock(_MediaBase):
    """Block for an audio clip."""

    type: Literal["audio"] = "audio"


@validated_dataclass
class VideoBlock(_MediaBase):
    """Block for a video."""

    type: Literal["video"] = "video"


@validated_dataclass
class DocumentBlock(_MediaBase):
    """Block for a document, such as a PDF, a plain text file or an office file.

    Attributes:
        title: File name or heading of the document. None if there is no title.
    """

    title: Text | None = None
    type: Literal["document"] = "document"


MediaBlock: TypeAlias = ImageBlock | AudioBlock | VideoBlock | DocumentBlock
"""Any media block: a block for an image, an audio clip, a video or a document."""
