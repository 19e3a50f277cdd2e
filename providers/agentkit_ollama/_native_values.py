"""Conversion of ollama-python objects to JSON values, and a parser for media in messages."""

from __future__ import annotations

import base64
import binascii
from typing import Any

from agentkit.provider_kit import AudioBlock, Base64Source, ImageBlock, get_set_fields, sniff_media_type

__all__ = ["parse_media", "unwrap_sdk_object"]


def unwrap_sdk_object(value: Any) -> Any:
    """Converts an SDK object to a dict without unset fields. Returns any other value unchanged.

    For an object with the single field `value`, such as an image, returns the value. The function does not use
    `model_dump`, because `model_dump` reads a file if the data of an image is the path of the file (ollama-python:
    `Image.serialize_model`).
    """
    fields = get_set_fields(value)
    if fields is None:
        return value
    return fields["value"] if fields.keys() == {"value"} else fields


def parse_media(value: object) -> ImageBlock | AudioBlock | None:
    """Creates an image or audio block from base64 text or bytes. Returns None for any other value.

    The function detects the media type from the first bytes, because messages have no field for the media type.
    The field `images` of a message can also contain audio (Ollama source: server/prompt.go).
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
