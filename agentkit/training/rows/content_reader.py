"""`ContentReader`: reads message content in the format of OpenAI Chat Completions, and the images of a row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, TypeGuard, cast

from agentkit.json_values import as_object, as_text
from agentkit.messages.blocks import AudioBlock, Block, ImageBlock, TextBlock, build_trusted_text
from agentkit.messages.message import Msg
from agentkit.messages.sniffing import sniff_media_type
from agentkit.messages.sources import Base64Source, Source, URLSource, encode_base64, source_from_url
from agentkit.reprs import shorten_repr
from agentkit.training.rows.row_values import check_object, get_list, get_text, get_unknown_values, refuse

__all__ = ["ContentReader", "IMAGE_COLUMNS", "is_refusal", "join_blocks"]

IMAGE_COLUMNS: Final = ("images", "image")
"""Columns with the images of a row: a list, and a single image."""
_TEXT: Final = ("text", "refusal", "content")
_IMAGE: Final = ("image_url", "image", "url", "path", "content")
_IMAGE_DATA: Final = ("bytes", "url", "path")
"""Keys of the image data in a dict. If a dict of the package `datasets` has bytes, its `path` is only a name."""


class ContentReader:
    """Reader for the content of the messages of one row.

    Attributes:
        images: Images of the row. Each image part without data takes the next image.
    """

    def __init__(self, images: Sequence[Any] = ()) -> None:
        self.images = images
        self._remaining = iter(images)

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> ContentReader:
        """Returns the reader for the messages of a row, with the images in the columns `images` and `image`.

        Raises:
            MessageError: The column `images` is not a list.
        """
        images, image = row.get("images"), row.get("image")
        if images is None is image:
            return _NO_IMAGES
        return cls([*get_list(row, "images", ""), *([] if image is None else [image])])

    def read(self, content: object, place: str) -> list[Block]:
        """Returns the blocks of message content, which is a string, a list of parts, or None (no blocks).

        Unknown keys of a part become the metadata of its block.

        Raises:
            MessageError: The content has another type, or a part is invalid.
        """
        if content is None:
            return []
        if isinstance(content, str):
            return [build_trusted_text(as_text(content, place))]
        if not isinstance(content, list):
            refuse(place, f"expected a string or a list of parts, got {shorten_repr(content, 60)}")
        parts = enumerate(cast("list[object]", content))
        return [self._read_part(check_object(part, f"{place}[{i}]"), f"{place}[{i}]") for i, part in parts]

    def _read_part(self, part: dict[str, Any], place: str) -> Block:
        kind = part.get("type")
        if kind in ("text", "refusal"):
            key = next((key for key in _TEXT if part.get(key) is not None), "")
            if not key:
                refuse(place, "the part has no text")
            metadata = get_unknown_values(part, {"type", key}, place)
            if kind == "refusal":
                metadata["refusal"] = True
            return TextBlock(get_text(part, key, place), metadata=metadata or None)
        if kind in ("image", "image_url"):
            key = next((key for key in _IMAGE if part.get(key) is not None), "")
            block = self.read_image(part.get(key), place)
            metadata = get_unknown_values(part, {"type", key}, place)
            if block.metadata:
                metadata[key or "image"] = block.metadata
            return replace(block, metadata=metadata) if metadata else block
        audio = as_object(part.get("input_audio"))
        if kind == "input_audio" and (data := get_text(audio, "data", place)):
            source = Base64Source(f"audio/{get_text(audio, 'format', place) or 'wav'}", data)
            metadata = get_unknown_values(part, {"type", "input_audio"}, place)
            if unknown := get_unknown_values(audio, {"data", "format"}, place):
                metadata["input_audio"] = unknown
            return AudioBlock(source, metadata=metadata or None)
        reason = f"expected a part with a text, an image or audio, got a part of type {shorten_repr(kind, 60)}"
        return refuse(place, reason)

    def read_image(self, value: Any, place: str) -> ImageBlock:
        """Returns an image block for a URL, a path, bytes, or a dict with one of these.

        Other keys of a dict, such as `detail`, become metadata. If the value is None, the block is the next image
        of the row.

        Raises:
            MessageError: The value has another type, or the row has no further image.
        """
        if value is None:
            value = next(self._remaining, None)
        metadata: dict[str, Any] = {}
        if isinstance(value, dict):
            image = cast("dict[str, Any]", value)
            key = next(
                (key for key in _IMAGE_DATA if isinstance(image.get(key), bytes if key == "bytes" else str)), ""
            )
            value, metadata = image.get(key), get_unknown_values(image, {key}, place)
        if isinstance(value, bytes):
            data = encode_base64(value)
            media_type = sniff_media_type(data, "image/png") or "image/png"
            return ImageBlock(Base64Source(media_type, data), metadata=metadata or None)
        source: Source | None = source_from_url(value)
        if source is None and isinstance(value, str) and value.startswith("data:"):
            source = URLSource(value)  # a malformed data URL: the error is raised when a request is built
        if source is None:
            refuse(place, f"expected the URL, path or bytes of an image, got {shorten_repr(value, 60)}")
        return ImageBlock(source, metadata=metadata or None)

    def place_images(self, msgs: list[Msg]) -> list[Msg]:
        """Returns the messages of the row, with all images of the row.

        If no message has a place for an image, all images are added to the start of the first user message, as in
        torchtune and trl.

        Raises:
            MessageError: The messages have places for only a part of the images, or there are images, but neither
                a place nor a user message.
        """
        remaining = list(self._remaining) if self.images else []
        if not remaining:
            return msgs
        index = next((index for index, msg in enumerate(msgs) if msg.role == "user"), None)
        used = len(self.images) - len(remaining)
        if used or index is None:
            refuse("images", f"the messages have places for {used} of the {len(self.images)} images of the row")
        blocks = [self.read_image(image, "images") for image in remaining]
        others = [block for block in msgs[index].blocks if block != TextBlock("")]
        return [*msgs[:index], replace(msgs[index], content=(*blocks, *others)), *msgs[index + 1 :]]


_NO_IMAGES: Final = ContentReader()
"""Reader for rows without images. This reader has no state, so all rows can share it."""


def join_blocks(blocks: Sequence[Block]) -> str | tuple[Block, ...]:
    """Returns the message content for blocks: a string for a single text without metadata, otherwise a tuple."""
    if len(blocks) == 1:
        block = blocks[0]
        if isinstance(block, TextBlock) and block.metadata is None:
            return block.text
    return tuple(blocks)


def is_refusal(block: Block) -> TypeGuard[TextBlock]:
    """Returns True if a block is a text in which the model refuses to answer."""
    return isinstance(block, TextBlock) and block.metadata is not None and block.metadata.get("refusal") is True
