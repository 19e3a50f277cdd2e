"""What the SDK's objects and the wire's media hold, as plain values."""

from __future__ import annotations

import base64
import binascii
from typing import Any, cast

from agentkit.provider_kit import AudioBlock, Base64Source, ImageBlock, sniff_media_type

__all__ = ["medium", "unwrapped"]


def unwrapped(found: Any) -> Any:
    """An object of the SDK's as a dict of what was set in it, or the one value of it; anything else unchanged.

    Not by `model_dump`: a picture's text that is the path of a file would be read from the disk
    (ollama-python, `Image.serialize_model`).
    """
    known: Any = getattr(found, "model_fields_set", None)
    if isinstance(known, set):
        names = [name for name in cast("Any", type(found)).model_fields if name in known]
        values = {str(name): getattr(found, name) for name in names}
        return values["value"] if values.keys() == {"value"} else values
    return found


def medium(found: object) -> ImageBlock | AudioBlock | None:
    """A picture or a sound from base64 text or bytes: its first bytes tell which. None for anything else.

    The wire names no media type, and takes sounds among the pictures (ollama: server/prompt.go).
    """
    if isinstance(found, bytes | bytearray):
        found = base64.b64encode(found).decode("ascii")
    if not isinstance(found, str) or not found.isascii():
        return None
    try:
        media_type = sniff_media_type(found, "image/png")
    except (binascii.Error, ValueError):
        return None
    if media_type is None or media_type.partition("/")[0] not in {"image", "audio"}:
        return None
    block = ImageBlock if media_type.startswith("image/") else AudioBlock
    return block(Base64Source(media_type, found))
