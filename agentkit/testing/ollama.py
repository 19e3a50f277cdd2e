"""The wire of Ollama's `/api/chat`: one JSON object a line. Shapes: `ChatResponse` in api/types.go."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Final

from agentkit.messages.blocks import TextBlock, ThinkingBlock, ToolUseBlock
from agentkit.messages.usage import FinishReason
from agentkit.testing.replies import LoopbackError, NormalizedReply, ReceivedCall, pieces, unsayable
from agentkit.testing.wire import Wire, encoded

__all__ = ["Ollama"]

CREATED: Final = "2026-01-01T00:00:00Z"

REASONS: Final[dict[str, str]] = {
    FinishReason.STOP: "stop",
    FinishReason.TOOL_USE: "stop",
    FinishReason.REFUSAL: "stop",
    FinishReason.LENGTH: "length",
}


class Ollama(Wire):
    """Replies of `POST /api/chat`."""

    media_type: ClassVar[str] = "application/x-ndjson"
    prompt_keys: ClassVar[tuple[str, ...]] = ("messages", "tools")

    def whole(self, said: NormalizedReply, call: ReceivedCall) -> dict[str, Any]:
        _check(said)
        text = "".join(one.text for one in said.msg.blocks if isinstance(one, TextBlock))
        thoughts = "".join(one.thinking for one in said.msg.blocks if isinstance(one, ThinkingBlock))
        message: dict[str, Any] = {"role": "assistant", "content": text}
        rest = {"thinking": thoughts, "tool_calls": _calls(said)}
        message |= {key: item for key, item in rest.items() if item}
        return {**_head(call), "message": message, **_end(said)}

    def events(self, said: NormalizedReply, call: ReceivedCall) -> Iterator[dict[str, Any]]:
        _check(said)
        for message in _messages(said):
            yield {**_head(call), "message": {"role": "assistant", **message}, "done": False}
        yield {**_head(call), "message": {"role": "assistant", "content": ""}, **_end(said)}

    def frame(self, event: Mapping[str, Any], number: int) -> bytes:
        return encoded(event) + b"\n"

    def error(self, error: LoopbackError) -> dict[str, Any]:
        return {"error": error.message}

    def headers(self, said_id: str) -> dict[str, str]:
        return {}


def _check(said: NormalizedReply) -> None:
    unsaid = [block.type for block in said.msg.blocks if block.type not in {"text", "thinking", "tool_use"}]
    if unsaid:
        raise unsayable("Ollama", unsaid[0])


def _messages(said: NormalizedReply) -> Iterator[dict[str, Any]]:
    """Thoughts first, then text, then the calls, each whole."""
    for block in said.msg.blocks:
        if isinstance(block, ThinkingBlock):
            yield from ({"content": "", "thinking": piece} for piece in pieces(block.thinking, said.piece))
    for block in said.msg.blocks:
        if isinstance(block, TextBlock):
            yield from ({"content": piece} for piece in pieces(block.text, said.piece))
    yield from ({"content": "", "tool_calls": [one]} for one in _calls(said))


def _calls(said: NormalizedReply) -> list[dict[str, Any]]:
    return [_call(index, use) for index, use in enumerate(said.msg.tool_uses)]


def _call(index: int, use: ToolUseBlock) -> dict[str, Any]:
    function = {"index": index, "name": use.name, "arguments": use.copy_input()}
    return {"id": use.id, "function": function}


def _head(call: ReceivedCall) -> dict[str, Any]:
    return {"model": call.model, "created_at": CREATED}


def _end(said: NormalizedReply) -> dict[str, Any]:
    """The end of a reply, with its figures: tokens, and durations in nanoseconds."""
    counts = {"prompt_eval_count": said.usage.input_tokens, "eval_count": said.usage.output_tokens}
    times = {"total_duration": 3_000_000, "load_duration": 1_000_000, "prompt_eval_duration": 1_000_000}
    end = {"done": True, "done_reason": REASONS.get(said.reason, str(said.reason))}
    return {**end, **times, "eval_duration": 1_000_000, **counts}
