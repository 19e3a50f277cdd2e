"""Audio of spoken replies. The audio arrives complete, or in several pieces in a stream."""

from __future__ import annotations

import base64
from typing import Any

from agentkit.provider_kit import AudioBlock, Base64Source, as_object, as_text, get_state_fields

__all__ = ["AudioBuffer", "get_audio_id"]

_MEDIA_TYPES = {
    # Media types by audio format (openai-python: ChatCompletionAudioParam.format). The format pcm16 has no file
    # header and no standard media type.
    "wav": "audio/wav", "mp3": "audio/mpeg", "flac": "audio/flac", "aac": "audio/aac", "opus": "audio/ogg",
    "pcm16": "audio/pcm",
}  # fmt: skip

_SIGNATURES = {
    # Media types by the first characters of the base64 text. These characters encode the start of a file: RIFF,
    # ID3, an MPEG audio frame, fLaC or OggS.
    "UklGR": "audio/wav", "SUQz": "audio/mpeg", "//": "audio/mpeg", "ZkxhQ": "audio/flac", "T2dnU": "audio/ogg",
}  # fmt: skip


class AudioBuffer:
    """Buffer for the `audio` object of a reply.

    The object arrives complete or in pieces. The object contains base64 data, a transcript, an id, and the expiry
    time of the id.
    """

    def __init__(self) -> None:
        self._data: list[str] = []
        self._transcript: list[str] = []
        self._fields: dict[str, Any] = {}

    def add(self, piece: dict[str, Any]) -> None:
        """Adds the complete `audio` object, or a piece of the object."""
        self._data.append(as_text(piece.get("data")).strip())
        self._transcript.append(as_text(piece.get("transcript")))
        if id := as_text(piece.get("id")):
            self._fields.setdefault("id", id)
        if type(expiry := piece.get("expires_at")) is int and 0 < expiry < 1 << 53:
            self._fields["expires_at"] = expiry

    @property
    def is_complete(self) -> bool:
        """True if the last piece of the `audio` object has arrived. Only the last piece has an expiry time.

        Source: openai-python, ChoiceDeltaAudio.
        """
        return "expires_at" in self._fields

    @property
    def transcript(self) -> str:
        """Text of the transcript pieces that have arrived."""
        return "".join(self._transcript)

    @property
    def metadata(self) -> dict[str, Any]:
        """Metadata for the audio block: the transcript, id and expiry time that have arrived."""
        return {**({"transcript": self.transcript} if self.transcript else {}), **self._fields}

    @property
    def state(self) -> dict[str, Any]:
        """Opaque state for the audio block, as keyword arguments of `OpaqueState`.

        OpenAI accepts the id of the audio instead of the data. Requests to other APIs contain the transcript.
        """
        audio = {name: value for name, value in self.metadata.items() if name != "expires_at"}
        return {"fields": {"audio": audio}} if audio else {}

    def create_block(self, format: object) -> AudioBlock | None:
        """Creates the audio block. Returns None if no audio data arrived.

        Args:
            format: Audio format that the request asked for. If the format is None or unknown, the first characters
                of the data determine the media type. If these characters are unknown, the media type is
                `audio/pcm`.
        """
        data = _join_base64(self._data)
        media_type = _MEDIA_TYPES.get(as_text(format)) or next(
            (media_type for beginning, media_type in _SIGNATURES.items() if data.startswith(beginning)),
            "audio/pcm",
        )
        if data.startswith("data:"):
            data = data.partition(",")[2]
        return AudioBlock(Base64Source(media_type, data), metadata=self.metadata or None) if data else None


def get_audio_id(block: AudioBlock) -> str:
    """Returns the audio id that OpenAI accepts instead of the audio data, or an empty string if there is no id."""
    return as_text(as_object(get_state_fields(block.state).get("audio")).get("id"))


def _join_base64(pieces: list[str]) -> str:
    """Joins pieces of base64 text.

    Some servers encode all data and then split the text. Other servers encode each piece separately.
    """
    text = "".join(pieces)
    if "=" not in text.rstrip("="):
        return text
    try:
        return base64.b64encode(b"".join(base64.b64decode(piece) for piece in pieces)).decode("ascii")
    except ValueError:
        return text
