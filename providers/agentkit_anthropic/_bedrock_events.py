"""Parsing of Bedrock's event streams, whose events are in binary messages."""

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

_PRELUDE_BYTES = 12  # lengths of the message and of its headers, and their checksum (AWS: event streams)
_MIN_BYTES = 16  # of a message: the prelude, and the checksum of the message
_MAX_BYTES = 25 << 20  # of a message; botocore refuses a payload of more than 24 MiB

_PIECE_BYTES = 8 * 1024
"""Bytes that are parsed between two turns of other tasks: about a millisecond."""


async def bedrock_events(pieces: AsyncIterator[bytes]) -> AsyncGenerator[dict[str, Any]]:
    """Yields the events of Anthropic's API, one per message (AWS: InvokeModelWithResponseStream, ResponseStream).

    botocore parses the messages, as in the SDK. The SDK also loads botocore's model of the whole service, which
    takes a tenth of a second on the event loop. This function does not need the model.

    Raises:
        MissingExtraError: botocore is not installed.
        MessageError: A message is invalid.

    """
    buffer = await anyio.to_thread.run_sync(_create_buffer)
    frames = _FrameBuffer()
    async for piece in pieces:
        for start in range(0, len(piece), _PIECE_BYTES):
            if start:
                await anyio.lowlevel.checkpoint()
            for event in _parse_events(buffer, frames.feed(piece[start : start + _PIECE_BYTES])):
                yield event


def _parse_events(buffer: Any, data: bytes) -> list[dict[str, Any]]:
    """Returns the events in complete messages. Raises MessageError for a message that botocore cannot parse."""
    buffer.add_data(data)
    try:
        events = [_parse_event(message.headers, message.payload) for message in buffer]
    except (struct.error, LookupError, UnicodeDecodeError, BinasciiError) as error:
        reason = f"unreadable message in the event stream ({error})"
        raise MessageError("reply", reason, "Send the request again.") from error
    return [event for event in events if event is not None]


class _FrameBuffer:
    """Buffer that returns only complete messages, because botocore copies its whole buffer for each piece."""

    def __init__(self) -> None:
        self._data = bytearray()

    def feed(self, piece: bytes) -> bytes:
        """Adds a piece and returns the messages that are complete. Raises MessageError for an invalid length."""
        self._data += piece
        end = 0
        while len(self._data) - end >= _PRELUDE_BYTES:
            size = int.from_bytes(self._data[end : end + 4], "big")
            if not _MIN_BYTES <= size <= _MAX_BYTES:
                reason = f"invalid length of a message in the event stream: {size:,} bytes"
                raise MessageError("reply", reason, "Send the request again.")
            if len(self._data) - end < size:
                break
            end += size
        messages = bytes(self._data[:end])
        del self._data[:end]
        return messages


def _create_buffer() -> Any:
    try:
        module: Any = import_module("botocore.eventstream")  # botocore has no type annotations
    except ImportError:
        raise MissingExtraError("botocore", "bedrock", "Reading a stream of Bedrock") from None
    return module.EventStreamBuffer()


def _parse_event(headers: dict[str, Any], payload: bytes) -> dict[str, Any] | None:
    """Returns the event of a message. An exception of AWS becomes an error event of Anthropic's API."""
    message_type = headers.get(":message-type")
    if message_type == "error":
        return _build_error(headers.get(":error-code"), headers.get(":error-message"))
    body = as_object(native_to_json(payload)) if payload else {}
    if message_type == "exception":
        return _build_error(headers.get(":exception-type"), body.get("message") or body.get("Message"))
    data = body.get("bytes")
    return as_object(native_to_json(b64decode(data))) if isinstance(data, str) else None


def _build_error(code: object, message: object) -> dict[str, Any]:
    error = {"type": as_text(code) or "error", "message": as_text(message) or as_text(code)}
    return {"type": "error", "error": error}
