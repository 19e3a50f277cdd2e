"""Parser for replies of Ollama's `/api/generate` in raw mode. Each line of a stream is a JSON object."""

from __future__ import annotations

from typing import Any, Final, Unpack

from agentkit.provider_kit import (
    MessageError,
    Msg,
    ParserOptions,
    PromptReplyParser,
    StreamEvent,
    as_list,
    list_keys,
    reported_error,
)
from agentkit_ollama._reply_fields import parse_error, parse_reason, read_figures, unwrap
from agentkit_ollama.raw.convert import OllamaRawFormatter

__all__ = ["OllamaRawParser"]

_THINKING: Final = (-1,)  # block key that sorts before the keys of all blocks from the text


class OllamaRawParser(PromptReplyParser):
    """Parser for complete and streamed replies: `GenerateResponse` objects, their dicts, or stream lines.

    `metadata["reply"]` of the message has the dict `durations`, in nanoseconds. If the request asked for log
    probabilities, `metadata["reply"]` also has the list `logprobs`.

    Source of these facts: api/types.go of Ollama, `GenerateResponse`.
    """

    provider = "ollama-raw"
    issuer = "ollama"
    layout = OllamaRawFormatter.base.layout
    json_lines = True

    @classmethod
    def parse_response(cls, reply: object, **options: Unpack[ParserOptions]) -> Msg:
        """Parses a complete reply: an object of the SDK, the dict of such an object, or JSON text.

        Raises:
            MessageError: The value is not a reply of /api/generate, or the reply is an error.
        """
        return super().parse_response(unwrap(reply), **options)

    def feed(self, chunk: object) -> list[StreamEvent]:
        """Parses the next chunk of the stream. Returns the events that are complete after this chunk.

        A chunk is a `GenerateResponse` object, its dict, or raw bytes of the stream.
        """
        chunk_type = type(chunk)
        return super().feed(chunk if chunk_type is dict else unwrap(chunk))

    def read_reply(self, reply: dict[str, Any]) -> None:
        """Adds the content of a complete reply to `self.reply`.

        Raises:
            MessageError: The reply has no text, or is an error.
        """
        if reply.get("error") is not None:
            raise reported_error(parse_error(reply["error"])[:1_000])
        if not isinstance(reply.get("response"), str):
            reason = f"expected an object in which `response` is a string, got {list_keys(reply)}"
            raise MessageError("reply", reason, "Pass a reply of /api/generate.")
        self.read_event(reply if "done" in reply else {**reply, "done": True})

    def read_event(self, event: dict[str, Any]) -> None:
        """Adds the content of one line of a stream to `self.reply`."""
        if self.reply.model is None:
            self.reply.begin(None, event.get("model"), event.get("created_at"))
        if (thinking := event.get("thinking")) and isinstance(thinking, str):
            self.reply.add_thinking(_THINKING, thinking)
        self.add_text(event.get("response"))
        if event.get("logprobs"):
            self.reply.notes.setdefault("logprobs", []).extend(as_list(event["logprobs"]))
        if event.get("error") is not None:
            self.reply.fail(parse_error(event["error"]))
        elif event.get("done"):
            self.is_complete = True
            read_figures(self.reply, event)
            self.end_text(*parse_reason(event))
