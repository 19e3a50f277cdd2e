"""Parser for Amazon Bedrock's event streams, which wrap each event in a binary message."""

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

# Source of these sizes: AWS docs, event stream encoding.
_PRELUDE_BYTES = 12  # the message length, the length of the headers, and a checksum of both
_MIN_BYTES = 16  # length of a message without headers and payload
_MAX_BYTES = 25 << 20  # maximum message length; botocore refuses a payload of more than 24 MiB

_PIECE_BYTES = 8 * 1024
"""Maximum number of bytes to parse before other tasks can run. Parsing these bytes takes about a millisecond."""


async def bedrock_events(pieces: AsyncIterator[bytes]) -> AsyncGenerator[dict[str, Any]]:
    """Yields events in Anthropic's format from Bedrock's binary messages.

    The function uses botocore's parser directly. The Anthropic SDK's parser would first load botocore's
    description of the whole Bedrock service. This would block the event loop for a tenth of a second. Source of
    the format: AWS docs, InvokeModelWithResponseStream.

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
    """Returns the events in complete binary messages. Raises MessageError if botocore cannot parse a message."""
    buffer.add_data(data)
    try:
        events = [_parse_event(message.headers, message.payload) for message in buffer]
    except (struct.error, LookupError, UnicodeDecodeError, BinasciiError) as error:
        raise MessageError(
            "reply", f"unreadable message in the event stream ({error})", "Send the request again."
        ) from error
    return [event for event in events if event is not None]


class _FrameBuffer:
    """Buffer that collects the pieces of a stream and returns only complete messages.

    botocore's own buffer also accepts pieces, but copies all stored bytes for each new piece. To avoid these
    copies, `bedrock_events` passes only complete messages to botocore.
    """

    def __init__(self) -> None:
        self._data = bytearray()

    def feed(self, piece: bytes) -> bytes:
        """Adds a piece of the stream. Returns the bytes of all messages that the piece completes.

        Raises MessageError if the length of a message is invalid.
        """
        self._data += piece
        end = 0
        while len(self._data) - end >= _PRELUDE_BYTES:
            size = int.from_bytes(self._data[end : end + 4], "big")
            if not _MIN_BYTES <= size <= _MAX_BYTES:
                raise MessageError(
                    "reply",
                    f"expected event stream messages of {_MIN_BYTES} to {_MAX_BYTES:,} bytes, got {size:,} bytes",
                    "Send the request again.",
                )
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
        raise MissingExtraError("botocore", "bedrock", "Reading a Bedrock stream") from None
    return module.EventStreamBuffer()


def _parse_event(headers: dict[str, Any], payload: bytes) -> dict[str, Any] | None:
    """Returns the event in a binary message, or None if the message contains no event.

    For an AWS exception, returns an error event in Anthropic's format.
    """
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
