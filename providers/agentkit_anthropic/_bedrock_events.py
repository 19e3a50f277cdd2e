"""The events of a stream of Bedrock's, out of the binary messages that they come in."""

from __future__ import annotations

import struct
from base64 import b64decode
from binascii import Error as BinasciiError
from collections.abc import AsyncGenerator, AsyncIterator
from importlib import import_module
from typing import Any

import anyio.lowlevel
import anyio.to_thread

from agentkit.provider_kit import MessageError, MissingExtraError, as_object, as_text, native_to_json

__all__ = ["MEDIA_TYPE", "bedrock_events"]

MEDIA_TYPE = "application/vnd.amazon.eventstream"

_PRELUDE = 12  # bytes: the lengths of a message and of its headers, and their checksum (AWS: event streams)
_SHORTEST = 16  # bytes of a message: the prelude, and the message's own checksum
_LONGEST = 25 << 20  # bytes of a message; botocore refuses a payload of more than 24 MiB

_PIECE = 8 * 1024
"""Bytes that are read without a turn for others: about a millisecond."""


async def bedrock_events(pieces: AsyncIterator[bytes]) -> AsyncGenerator[dict[str, Any]]:
    """Events of Messages, of which each message holds one (AWS: InvokeModelWithResponseStream, ResponseStream).

    The messages are read by botocore, as the SDK does. What the SDK asks of it besides, the model of the whole
    service to parse an event by, takes a tenth of a second on the event loop, and is gone round.
    Raises MissingExtraError without botocore.
    """
    messages = await anyio.to_thread.run_sync(_buffer)
    frames = _Frames()
    async for piece in pieces:
        for at in range(0, len(piece), _PIECE):
            if at:
                await anyio.lowlevel.checkpoint()
            for event in _events(messages, frames.take(piece[at : at + _PIECE])):
                yield event


def _events(messages: Any, data: bytes) -> list[dict[str, Any]]:
    """The events in whole messages. Raises MessageError for a message that botocore stumbles over."""
    messages.add_data(data)
    try:
        found = [_event(message.headers, message.payload) for message in messages]
    except (struct.error, LookupError, UnicodeDecodeError, BinasciiError) as error:
        reason = f"a message of the event stream cannot be read ({error})"
        raise MessageError("reply", reason, "Send the request again.") from error
    return [event for event in found if event is not None]


class _Frames:
    """Cuts bytes into whole messages: botocore copies all that it holds with each piece that it gets."""

    def __init__(self) -> None:
        self._held = bytearray()

    def take(self, piece: bytes) -> bytes:
        """The messages that are complete with a piece. Raises MessageError for a length that no message has."""
        self._held += piece
        end = 0
        while len(self._held) - end >= _PRELUDE:
            size = int.from_bytes(self._held[end : end + 4], "big")
            if not _SHORTEST <= size <= _LONGEST:
                reason = f"a message of the event stream claims to have {size:,} bytes"
                raise MessageError("reply", reason, "Send the request again.")
            if len(self._held) - end < size:
                break
            end += size
        whole = bytes(self._held[:end])
        del self._held[:end]
        return whole


def _buffer() -> Any:
    try:
        module: Any = import_module("botocore.eventstream")  # it has no types
    except ImportError:
        raise MissingExtraError("botocore", "bedrock", "Reading a stream of Bedrock's") from None
    return module.EventStreamBuffer()


def _event(headers: dict[str, Any], payload: bytes) -> dict[str, Any] | None:
    """The event that a message holds; an exception in the form that Anthropic's own streams have for an error."""
    kind = headers.get(":message-type")
    if kind == "error":
        return _error(headers.get(":error-code"), headers.get(":error-message"))
    body = as_object(native_to_json(payload)) if payload else {}
    if kind == "exception":
        return _error(headers.get(":exception-type"), body.get("message") or body.get("Message"))
    held = body.get("bytes")
    return as_object(native_to_json(b64decode(held))) if isinstance(held, str) else None


def _error(code: object, said: object) -> dict[str, Any]:
    error = {"type": as_text(code) or "error", "message": as_text(said) or as_text(code)}
    return {"type": "error", "error": error}
