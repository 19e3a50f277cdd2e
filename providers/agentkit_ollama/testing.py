"""Fake `/api/chat` service for `agentkit.testing.LoopbackServer`. Streams have one JSON object per line.

The JSON has the fields of `ChatResponse` (Ollama source: api/types.go).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Final

from agentkit.provider_kit import FinishReason
from agentkit.testing import FakeService, LoopbackError, NormalizedReply, ReceivedCall, Route, encode_json

__all__ = ["FakeOllama", "ROUTES", "end_fields", "head_fields"]

_CREATED: Final = "2026-01-01T00:00:00Z"

_REASONS: Final[dict[str, str]] = {
    FinishReason.STOP: "stop",
    FinishReason.TOOL_USE: "stop",
    FinishReason.REFUSAL: "stop",
    FinishReason.LENGTH: "length",
}


class FakeOllama(FakeService):
    """Fake service for Ollama's `POST /api/chat`."""

    media_type = "application/x-ndjson"
    id_header = ""
    prompt_keys: ClassVar[tuple[str, ...]] = ("messages", "tools")

    def build_reply(self, reply: NormalizedReply, call: ReceivedCall) -> dict[str, Any]:
        reply.check_blocks("Ollama")
        message: dict[str, Any] = {"role": "assistant", "content": reply.text}
        optional = {"thinking": reply.thinking, "tool_calls": _calls(reply)}
        message |= {key: value for key, value in optional.items() if value}
        return {**head_fields(call), "message": message, **end_fields(reply)}

    def build_events(self, reply: NormalizedReply, call: ReceivedCall) -> Iterator[dict[str, Any]]:
        reply.check_blocks("Ollama")
        for message in _messages(reply):
            yield {**head_fields(call), "message": {"role": "assistant", **message}, "done": False}
        yield {**head_fields(call), "message": {"role": "assistant", "content": ""}, **end_fields(reply)}

    def encode_event(self, event: Mapping[str, Any], number: int) -> bytes:
        return encode_json(event) + b"\n"

    def build_error(self, error: LoopbackError) -> dict[str, Any]:
        return {"error": error.message}

    def is_streamed(self, verb: str, body: Mapping[str, Any], headers: Mapping[str, str]) -> bool:
        return body.get("stream", True) is True

    def client_options(self, url: str) -> dict[str, Any]:
        return {"host": url}


def _messages(reply: NormalizedReply) -> Iterator[dict[str, Any]]:
    """Yields the chunks of a stream: first thinking, then text, then one chunk for each tool call."""
    yield from ({"content": "", "thinking": piece} for piece in reply.split(reply.thinking))
    yield from ({"content": piece} for piece in reply.split(reply.text))
    yield from ({"content": "", "tool_calls": [call]} for call in _calls(reply))


def _calls(reply: NormalizedReply) -> list[dict[str, Any]]:
    return [
        {"id": use.id, "function": {"index": index, "name": use.name, "arguments": use.copy_input()}}
        for index, use in enumerate(reply.msg.tool_uses)
    ]


def head_fields(call: ReceivedCall) -> dict[str, Any]:
    """Returns the first fields of a reply and of each line of a stream."""
    return {"model": call.model, "created_at": _CREATED}


def end_fields(reply: NormalizedReply) -> dict[str, Any]:
    """Returns the last fields of a reply: finish reason, durations in nanoseconds, and token counts."""
    counts = {"prompt_eval_count": reply.usage.input_tokens, "eval_count": reply.usage.output_tokens}
    times = {"total_duration": 3_000_000, "load_duration": 1_000_000, "prompt_eval_duration": 1_000_000}
    end = {"done": True, "done_reason": reply.map_reason(_REASONS)}
    return {**end, **times, "eval_duration": 1_000_000, **counts}


ROUTES: Final = (Route("ollama", r"/api/chat", FakeOllama()),)
