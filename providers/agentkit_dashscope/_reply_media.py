"""Parsers for media in replies. Images, audio and video are URLs. Audio can also arrive as base64 pieces."""

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
    """Returns a media block for a URL, or None if the value is blank or not a string."""
    url = as_text(value)
    return BLOCK_TYPES[media_kind](URLSource(url)) if url.strip() else None


class ReplyAudio:
    """Spoken audio in addition to the text of a reply (Model Studio docs: `output.audio`)."""

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._url: object = None

    def add(self, audio: dict[str, Any]) -> None:
        """Adds the audio of an event: a piece of base64 data, or (in the last event) the URL of the audio."""
        data = audio.get("data")
        if data and isinstance(data, str):
            self._pieces.append(data)
        self._url = audio.get("url") or self._url

    def create_block(self) -> MediaBlock | None:
        """Returns a block for the audio, or None if the reply has no audio.

        The block contains the URL of the audio, or the joined data if no URL arrived.
        """
        return create_media_block("audio", self._url) or self._join_pieces()

    def _join_pieces(self) -> AudioBlock | None:
        """Returns an audio block with the joined data, or None if there is no data or if the data is invalid.

        Data without a WAVE header is treated as raw PCM samples.
        """
        try:
            data = b"".join(base64.b64decode(piece) for piece in self._pieces)
        except (binascii.Error, ValueError):
            return None
        media_type = "audio/wav" if data.startswith(b"RIFF") else "audio/pcm"
        return AudioBlock(Base64Source(media_type, base64.b64encode(data).decode("ascii"))) if data else None
