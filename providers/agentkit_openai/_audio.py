"""The sound of a reply that is spoken, put together from the pieces of a stream."""

from __future__ import annotations

import base64
from typing import Any

from agentkit.provider_kit import (
    AudioBlock,
    Base64Source,
    as_object,
    as_text,
    get_state_fields,
)

__all__ = ["AudioBuffer", "spoken_id"]

_FORMATS = {
    # SDK: ChatCompletionAudioParam.format; pcm16 has no head and no media type that says its rate
    "wav": "audio/wav", "mp3": "audio/mpeg", "flac": "audio/flac", "aac": "audio/aac", "opus": "audio/ogg",
    "pcm16": "audio/pcm",
}  # fmt: skip

_HEADS = {
    # The beginnings of base64 text: RIFF, ID3, a frame of MPEG audio, fLaC, OggS.
    "UklGR": "audio/wav", "SUQz": "audio/mpeg", "//": "audio/mpeg", "ZkxhQ": "audio/flac", "T2dnU": "audio/ogg",
}  # fmt: skip


class AudioBuffer:
    """What `audio` says, whole or in pieces: base64 data, and its transcript, id and date of expiry beside it."""

    def __init__(self) -> None:
        self._data: list[str] = []
        self._said: list[str] = []
        self._rest: dict[str, Any] = {}

    def take(self, found: dict[str, Any]) -> None:
        """One more piece."""
        self._data.append(as_text(found.get("data")).strip())
        self._said.append(as_text(found.get("transcript")))
        if id := as_text(found.get("id")):
            self._rest.setdefault("id", id)
        if type(expiry := found.get("expires_at")) is int and 0 < expiry < 1 << 53:
            self._rest["expires_at"] = expiry

    @property
    def ends(self) -> bool:
        """Whether the last update came: the one that says when the sound expires (SDK: ChoiceDeltaAudio)."""
        return "expires_at" in self._rest

    @property
    def transcript(self) -> str:
        """What is said, as text."""
        return "".join(self._said)

    @property
    def metadata(self) -> dict[str, Any]:
        """What stands beside the data."""
        return {**({"transcript": self.transcript} if self.transcript else {}), **self._rest}

    @property
    def state(self) -> dict[str, Any]:
        """The opaque state of the block, as fields of OpaqueState: an id to go back by, words for all others."""
        kept = {name: said for name, said in self.metadata.items() if name != "expires_at"}
        return {"fields": {"audio": kept}} if kept else {}

    def block(self, format: object) -> AudioBlock | None:
        """The whole; None if no data came. `format` is what the request asked for, if that is known."""
        data = _joined(self._data)
        media_type = _FORMATS.get(as_text(format)) or next(
            (named for head, named in _HEADS.items() if data.startswith(head)), "audio/pcm"
        )
        if data.startswith("data:"):
            data = data.partition(",")[2]
        return AudioBlock(Base64Source(media_type, data), metadata=self.metadata or None) if data else None


def spoken_id(block: AudioBlock) -> str:
    """The id by which a sound of OpenAI's goes back; empty for any other."""
    return as_text(as_object(get_state_fields(block.state).get("audio")).get("id"))


def _joined(pieces: list[str]) -> str:
    """Base64 text from pieces that are cut out of one text, or encoded one by one."""
    text = "".join(pieces)
    if "=" not in text.rstrip("="):
        return text
    try:
        return base64.b64encode(b"".join(base64.b64decode(piece) for piece in pieces)).decode("ascii")
    except ValueError:
        return text
