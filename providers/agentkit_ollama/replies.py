"""Replies of /api/chat, whole and in lines."""

from __future__ import annotations

from typing import Any, ClassVar, Final, Unpack

from agentkit.provider_kit import (
    FinishReason,
    MessageError,
    Msg,
    ParserOptions,
    StreamEvent,
    StreamParserBase,
    Usage,
    as_list,
    as_object,
    as_text,
    as_token_count,
    make_json_safe,
)
from agentkit_ollama._native_values import medium, unwrapped

__all__ = ["OllamaStreamParser"]

_REASONS: Final = {"stop": FinishReason.STOP, "length": FinishReason.LENGTH}
"""ollama: llm/server.go, `DoneReason`. `load` and `unload` answer an empty conversation."""

_TIMES: Final = ("total_duration", "load_duration", "prompt_eval_duration", "eval_duration")

_THINKING: Final = (0,)
_TEXT: Final = (1,)
_MEDIA: Final = 2
_CALLS: Final = 3


class OllamaStreamParser(StreamParserBase):
    """Reads `ChatResponse`s, their dicts, or the json_lines of the stream (ollama: api/types.go, `ChatResponse`).

    A call comes whole, its arguments an object. Its id is only in the JSON: the SDK's objects have lost it, and
    one is made up, of `created_at` among other things, since a reply has no id. There is no reason for calls: a
    reply that has some ends in `tool_use`. `eval_count` has the thinking in it; the server tells neither that nor
    what it read from a cache. Durations are kept, in nanoseconds, in `metadata["reply"]["durations"]`.
    """

    provider: ClassVar[str] = "ollama"
    issuer: ClassVar[str] = "ollama"
    json_lines: ClassVar[bool] = True

    def __init__(self, **options: Unpack[ParserOptions]) -> None:
        super().__init__(**options)
        self._calls = 0
        self._media = 0
        self._logprobs: list[Any] = []

    @classmethod
    def parse_response(cls, reply: object, **options: Unpack[ParserOptions]) -> Msg:
        """A whole reply, as the SDK's object, its dict or JSON text, as a message. Raises MessageError."""
        return super().parse_response(_opened(reply), **options)

    def feed(self, chunk: object) -> list[StreamEvent]:
        """The events that one chunk brings: a `ChatResponse`, its dict, or raw bytes of the stream."""
        known = type(chunk)
        return super().feed(chunk if known is bytes or known is dict else _opened(chunk))

    def read_reply(self, reply: dict[str, Any]) -> None:
        """A whole reply, which looks like the one line of a stream."""
        if reply.get("error") is not None:
            reason = f"Ollama says: {_error(reply['error'])[:1_000]}"
            raise MessageError("reply", reason, "Mend the request, or send it again.")
        if not isinstance(reply.get("message"), dict):
            raise MessageError("reply", "it has no message", "Give a reply of /api/chat.")
        self.read_event(reply if "done" in reply else {**reply, "done": True})

    def read_event(self, event: dict[str, Any]) -> None:
        """One line."""
        if self.reply.model is None:
            self.reply.begin(None, event.get("model"), event.get("created_at"))
        message = as_object(event.get("message"))
        if message:
            self._read_message(message)
        if event.get("logprobs"):
            self._logprobs += as_list(event["logprobs"])
        if event.get("error") is not None:
            self.reply.fail(_error(event["error"]))
        elif event.get("done"):
            self.is_complete = True
            self._end(event)

    def close(self) -> None:
        """What is said of the text stands with it."""
        if self._logprobs:
            self.reply.add_metadata(_TEXT, logprobs=make_json_safe(self._logprobs))

    def _read_message(self, message: dict[str, Any]) -> None:
        thinking, content = message.get("thinking"), message.get("content")
        if thinking and isinstance(thinking, str):
            self.reply.add_thinking(_THINKING, thinking)
        if content and isinstance(content, str):
            self.reply.add_text(_TEXT, content)
        if message.get("images"):
            for found in as_list(message["images"]):
                self._read_medium(found)
        if message.get("tool_calls"):
            for found in as_list(message["tool_calls"]):
                self._read_call(as_object(found))

    def _read_medium(self, found: object) -> None:
        block = medium(found)
        if block is not None:
            self.reply.add_block((_MEDIA, self._media), block)
            self._media += 1

    def _read_call(self, found: dict[str, Any]) -> None:
        function = as_object(found.get("function"))
        if not function:
            return
        key = (_CALLS, self._calls)
        self._calls += 1
        self.reply.add_tool_call(key, found.get("id"), function.get("name"))
        self.reply.replace_arguments(key, function.get("arguments"))
        self.reply.close(key)

    def _end(self, event: dict[str, Any]) -> None:
        durations = {name: as_token_count(event[name]) for name in _TIMES if event.get(name) is not None}
        if durations:
            self.reply.notes["durations"] = durations
        read, written = event.get("prompt_eval_count"), event.get("eval_count")
        if read is not None or written is not None:
            self.reply.set_usage(Usage(as_token_count(read), as_token_count(written)))
        native = as_text(event.get("done_reason")) or None
        reason = _REASONS.get(native, FinishReason.OTHER) if native else FinishReason.STOP
        self.reply.end(reason, native)


def _error(found: object) -> str:
    """The text of an error; some proxies put it into an object."""
    return as_text(found) or as_text(as_object(found).get("message")) or str(make_json_safe(found))[:1_000]


def _opened(found: object) -> object:
    """The SDK's object as JSON values; raw text and bytes unchanged."""
    return found if isinstance(found, str | bytes | bytearray) else make_json_safe(found, "reply", unwrapped)
