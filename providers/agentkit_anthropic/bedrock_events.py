"""The events of a stream of Bedrock's, out of the binary messages that they come in."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import AsyncIterator
from importlib import import_module
from typing import Any

import anyio.lowlevel
import anyio.to_thread

from agentkit import MissingExtraError, mapping_of, plain, text_of

__all__ = ["MEDIA_TYPE", "bedrock_events"]

MEDIA_TYPE = "application/vnd.amazon.eventstream"

_PIECE = 8 * 1024
"""Bytes that are read without a turn for others: about a millisecond."""


async def bedrock_events(pieces: AsyncIterator[bytes]) -> AsyncIterator[dict[str, Any]]:
    """Events of Messages, of which each message holds one (AWS: InvokeModelWithResponseStream, ResponseStream).

    The messages are read by botocore, as the SDK does. What the SDK asks of it besides, the model of the whole
    service to parse an event by, takes a tenth of a second on the event loop, and is gone round.
    Raises MissingExtraError without botocore.
    """
    messages = await anyio.to_thread.run_sync(_buffer)
    async for piece in pieces:
        for at in range(0, len(piece), _PIECE):
            if at:
                await anyio.lowlevel.checkpoint()
            messages.add_data(piece[at : at + _PIECE])
            for message in messages:
                if (event := _event(message.headers, message.payload)) is not None:
                    yield event


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
    body = mapping_of(plain(payload)) if payload else {}
    if kind == "exception":
        return _error(headers.get(":exception-type"), body.get("message") or body.get("Message"))
    held = body.get("bytes")
    return mapping_of(plain(b64decode(held))) if isinstance(held, str) else None


def _error(code: object, said: object) -> dict[str, Any]:
    error = {"type": text_of(code) or "error", "message": text_of(said) or text_of(code)}
    return {"type": "error", "error": error}
