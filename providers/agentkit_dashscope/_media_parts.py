"""Pictures, sounds and films in replies: at URLs, or a sound in pieces of base64 text."""

from __future__ import annotations

import base64
import binascii
from typing import Any, Final

from agentkit.provider_kit import AudioBlock, Base64Source, ImageBlock, MediaBlock, URLSource, VideoBlock, as_text

__all__ = ["KINDS", "Sound", "medium"]

KINDS: Final[dict[str, type[ImageBlock | AudioBlock | VideoBlock]]] = {
    "image": ImageBlock,
    "audio": AudioBlock,
    "video": VideoBlock,
}


def medium(kind: str, found: object) -> MediaBlock | None:
    """The medium at a URL; None for what is no URL."""
    url = as_text(found)
    return KINDS[kind](URLSource(url)) if url.strip() else None


class Sound:
    """The sound of a reply, beside its text (model-studio, `output.audio`)."""

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._url: object = None

    def take(self, found: dict[str, Any]) -> None:
        """What an event says of it: a piece, or in the end where all of it is."""
        data = found.get("data")
        if data and isinstance(data, str):
            self._pieces.append(data)
        self._url = found.get("url") or self._url

    def block(self) -> MediaBlock | None:
        """The sound at its URL, else what came in pieces, as a WAVE file or bare samples; None for neither."""
        return medium("audio", self._url) or self._joined()

    def _joined(self) -> AudioBlock | None:
        try:
            data = b"".join(base64.b64decode(piece) for piece in self._pieces)
        except (binascii.Error, ValueError):
            return None
        media_type = "audio/wav" if data.startswith(b"RIFF") else "audio/pcm"
        return AudioBlock(Base64Source(media_type, base64.b64encode(data).decode("ascii"))) if data else None
