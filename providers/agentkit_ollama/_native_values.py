"""Conversion of SDK objects, and of the media in messages."""

from __future__ import annotations

import base64
import binascii
from typing import Any

from agentkit.provider_kit import (
    AudioBlock,
    Base64Source,
    ImageBlock,
    get_set_fields,
    sniff_media_type,
)

__all__ = ["parse_media", "unwrap_sdk_object"]


def unwrap_sdk_object(value: Any) -> Any:
    """Returns an SDK object as a dict of its set fields, or its only value. Returns other values unchanged.

    The function avoids `model_dump`, which would read a file if the text of an image is a path
    (ollama-python, `Image.serialize_model`).
    """
    fields = get_set_fields(value)
    if fields is None:
        return value
    return fields["value"] if fields.keys() == {"value"} else fields


def parse_media(value: object) -> ImageBlock | AudioBlock | None:
    """Parses an image or audio from base64 text or bytes, by its first bytes. Returns None for other values.

    The API names no media type, and takes audio in `images` (ollama: server/prompt.go).
    """
    if isinstance(value, bytes | bytearray):
        value = base64.b64encode(value).decode("ascii")
    if not isinstance(value, str) or not value.isascii():
        return None
    try:
        media_type = sniff_media_type(value, "image/png")
    except (binascii.Error, ValueError):
        return None
    if media_type is None or media_type.partition("/")[0] not in {"image", "audio"}:
        return None
    block = ImageBlock if media_type.startswith("image/") else AudioBlock
    return block(Base64Source(media_type, value))
