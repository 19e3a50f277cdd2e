"""Parser for complete and streamed replies of Ollama's `/api/chat`. Each line of a stream is a JSON object."""

from __future__ import annotations

import base64
import binascii
from typing import Any, Final, Unpack

from agentkit.provider_kit import (
    AudioBlock,
    Base64Source,
    ImageBlock,
    MessageError,
    Msg,
    ParserOptions,
    StreamEvent,
    StreamParserBase,
    as_list,
    as_object,
    list_keys,
    make_json_safe,
    reported_error,
    sniff_media_type,
)
from agentkit_ollama._reply_fields import parse_error, parse_reason, read_figures, unwrap
from agentkit_ollama.capabilities import LAYOUT

__all__ = ["OllamaStreamParser", "parse_media", "parse_response"]

_THINKING: Final = (0,)
_TEXT: Final = (1,)
_MEDIA: Final = 2
_CALLS: Final = 3


class OllamaStreamParser(StreamParserBase):
    """Parser for complete and streamed replies: `ChatResponse` objects of the SDK, their dicts, or stream lines.

    A tool call arrives complete, with its arguments as an object. SDK objects contain no call ids, so the parser
    derives an id from `created_at` and the tool call. The API has no finish reason for tool calls, so the parser
    sets the finish reason `tool_use` for a reply with tool calls.

    `eval_count` includes thinking tokens. The server does not report separate counts of thinking tokens and cached
    tokens. `metadata["reply"]["durations"]` of the message contains durations in nanoseconds.

    Source of these facts: api/types.go of Ollama, `ChatResponse`.
    """

    provider = "ollama"
    issuer = "ollama"
    layout = LAYOUT
    json_lines = True

    def __init__(self, **options: Unpack[ParserOptions]) -> None:
        super().__init__(**options)
        self._calls = 0
        self._media = 0
        self._logprobs: list[Any] = []

    @classmethod
    def parse_response(cls, reply: object, **options: Unpack[ParserOptions]) -> Msg:
        """Parses a complete reply: an object of the SDK, the dict of such an object, or JSON text.

        Raises:
            MessageError: The value is not a reply of /api/chat, or the reply is an error.
        """
        return super().parse_response(unwrap(reply), **options)

    def feed(self, chunk: object) -> list[StreamEvent]:
        """Parses the next chunk of the stream. Returns the events that are complete after this chunk.

        A chunk is a `ChatResponse` object, its dict, or raw bytes of the stream.
        """
        chunk_type = type(chunk)
        is_plain = chunk_type is bytes or chunk_type is dict
        return super().feed(chunk if is_plain else unwrap(chunk))

    def read_reply(self, reply: dict[str, Any]) -> None:
        """Adds the content of a complete reply to `self.reply`.

        Raises:
            MessageError: The reply has no message, or is an error.
        """
        if reply.get("error") is not None:
            raise reported_error(parse_error(reply["error"])[:1_000])
        if not isinstance(reply.get("message"), dict):
            reason = f"expected an object in which `message` is an object, got {list_keys(reply)}"
            raise MessageError("reply", reason, "Pass a reply of /api/chat.")
        self.read_event(reply if "done" in reply else {**reply, "done": True})

    def read_event(self, event: dict[str, Any]) -> None:
        """Adds the content of one line of a stream to `self.reply`."""
        if self.reply.model is None:
            self.reply.begin(None, event.get("model"), event.get("created_at"))
        message = as_object(event.get("message"))
        if message:
            self._read_message(message)
        if event.get("logprobs"):
            self._logprobs += as_list(event["logprobs"])
        if event.get("error") is not None:
            self.reply.fail(parse_error(event["error"]))
        elif event.get("done"):
            self.is_complete = True
            read_figures(self.reply, event)
            self.reply.end(*parse_reason(event))

    def close(self) -> None:
        """Adds the log probabilities of all stream lines to the metadata of the text block."""
        if self._logprobs:
            self.reply.add_metadata(_TEXT, logprobs=make_json_safe(self._logprobs))

    def _read_message(self, message: dict[str, Any]) -> None:
        thinking, content = message.get("thinking"), message.get("content")
        if thinking and isinstance(thinking, str):
            self.reply.add_thinking(_THINKING, thinking)
        if content and isinstance(content, str):
            self.reply.add_text(_TEXT, content)
        if message.get("images"):
            for image in as_list(message["images"]):
                self._read_media(image)
        if message.get("tool_calls"):
            for call in as_list(message["tool_calls"]):
                self._read_call(as_object(call))

    def _read_media(self, image: object) -> None:
        block = parse_media(image)
        if block is not None:
            self.reply.add_block((_MEDIA, self._media), block)
            self._media += 1

    def _read_call(self, call: dict[str, Any]) -> None:
        function = as_object(call.get("function"))
        if not function:
            return
        key = (_CALLS, self._calls)
        self._calls += 1
        self.reply.add_tool_call(key, call.get("id"), function.get("name"))
        self.reply.replace_arguments(key, function.get("arguments"))
        self.reply.close(key)


def parse_media(value: object) -> ImageBlock | AudioBlock | None:
    """Creates an image or audio block from base64 text or bytes. Returns None for any other value.

    The function detects the media type from the first bytes, because messages have no field for the media type.
    The field `images` of a message can also contain audio (Ollama source: server/prompt.go).
    """
    if isinstance(value, bytes | bytearray):
        value = base64.b64encode(value).decode("ascii")
    if not isinstance(value, str) or not value.isascii():
        return None
    try:
        media_type = sniff_media_type(value, "image/png")
    except (binascii.Error, ValueError):
        return None
    if media_type is None or media_type.partition("/")[0] not in {"image", "audio"}:
        return None
    block = ImageBlock if media_type.startswith("image/") else AudioBlock
    return block(Base64Source(media_type, value))


parse_response = OllamaStreamParser.parse_response
