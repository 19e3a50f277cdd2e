"""Images, audio and video in replies: at URLs, or audio in pieces of base64 text."""

from __future__ import annotations

import base64
import binascii
from typing import Any, Final

from agentkit.provider_kit import AudioBlock, Base64Source, ImageBlock, MediaBlock, URLSource, VideoBlock, as_text

__all__ = ["BLOCK_TYPES", "ReplyAudio", "create_media_block"]

BLOCK_TYPES: Final[dict[str, type[ImageBlock | AudioBlock | VideoBlock]]] = {
    "image": ImageBlock,
    "audio": AudioBlock,
    "video": VideoBlock,
}


def create_media_block(media_kind: str, value: object) -> MediaBlock | None:
    """Returns the media item at a URL, or None if the value is not a URL."""
    url = as_text(value)
    return BLOCK_TYPES[media_kind](URLSource(url)) if url.strip() else None


class ReplyAudio:
    """Audio of a reply, which accompanies its text (model-studio, `output.audio`)."""

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._url: object = None

    def add(self, audio: dict[str, Any]) -> None:
        """Adds the audio of an event: a piece of the data, or in the last event the URL of the complete audio."""
        data = audio.get("data")
        if data and isinstance(data, str):
            self._pieces.append(data)
        self._url = audio.get("url") or self._url

    def create_block(self) -> MediaBlock | None:
        """Returns the audio at its URL, else the joined pieces, or None if there is no audio."""
        return create_media_block("audio", self._url) or self._join_pieces()

    def _join_pieces(self) -> AudioBlock | None:
        """Returns the pieces as a WAVE file, or as raw samples if they have no header."""
        try:
            data = b"".join(base64.b64decode(piece) for piece in self._pieces)
        except (binascii.Error, ValueError):
            return None
        media_type = "audio/wav" if data.startswith(b"RIFF") else "audio/pcm"
        return AudioBlock(Base64Source(media_type, base64.b64encode(data).decode("ascii"))) if data else None
