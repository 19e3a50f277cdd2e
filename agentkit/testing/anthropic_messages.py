"""The wire of Anthropic's Messages. Shapes and the order of events: `anthropic.types`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Final

from agentkit.messages.blocks import Block, OpaqueBlock, TextBlock, ThinkingBlock, ToolUseBlock
from agentkit.messages.usage import FinishReason, Usage
from agentkit.testing import pairing
from agentkit.testing.replies import (
    LoopbackError,
    NormalizedReply,
    ReceivedCall,
    digest,
    notes_of,
    pieces,
    unsayable,
)
from agentkit.testing.wire import Wire, named_event

__all__ = ["AnthropicMessages"]

REASONS: Final[dict[str, str]] = {
    FinishReason.STOP: "end_turn",
    FinishReason.LENGTH: "max_tokens",
    FinishReason.TOOL_USE: "tool_use",
    FinishReason.CONTENT_FILTER: "refusal",
    FinishReason.REFUSAL: "refusal",
    FinishReason.PAUSE: "pause_turn",
}

TYPES: Final[dict[int, str]] = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    500: "api_error",
    504: "timeout_error",
    529: "overloaded_error",
}
"""The type of an error by its status (`anthropic.types.shared`)."""


class AnthropicMessages(Wire):
    """Replies of `POST /v1/messages`."""

    prompt_keys: ClassVar[tuple[str, ...]] = ("system", "messages", "tools")

    def whole(self, said: NormalizedReply, call: ReceivedCall) -> dict[str, Any]:
        content = [_block(block, said, at) for at, block in enumerate(said.msg.blocks)]
        ended = {"stop_reason": _word(said), "stop_sequence": None}
        return {**_message(said, call), "content": content, **ended, "usage": _usage(said.usage)}

    def events(self, said: NormalizedReply, call: ReceivedCall) -> Iterator[dict[str, Any]]:
        begun = {**_usage(said.usage), "output_tokens": 1}
        yield {"type": "message_start", "message": {**_message(said, call), "usage": begun}}
        for index, block in enumerate(said.msg.blocks):
            whole = _block(block, said, index)
            yield {"type": "content_block_start", "index": index, "content_block": _begun(whole)}
            if not index:
                yield {"type": "ping"}
            for delta in _deltas(whole, said.piece):
                yield {"type": "content_block_delta", "index": index, "delta": delta}
            yield {"type": "content_block_stop", "index": index}
        ended = {"stop_reason": _word(said), "stop_sequence": None}
        yield {"type": "message_delta", "delta": ended, "usage": _usage(said.usage)}
        yield {"type": "message_stop"}

    def frame(self, event: Mapping[str, Any], number: int) -> bytes:
        return named_event(event)

    def error(self, error: LoopbackError) -> dict[str, Any]:
        usual = "api_error" if error.status >= 500 else "invalid_request_error"
        kind = error.code or TYPES.get(error.status, usual)
        return {"type": "error", "error": {"type": kind, "message": error.message}, "request_id": "req_loopback"}

    def refusal(self, call: ReceivedCall) -> str | None:
        return pairing.of_anthropic(call.body)

    def count(self, body: Mapping[str, Any]) -> dict[str, Any] | None:
        return {"input_tokens": self.counted(body)}

    def headers(self, said_id: str) -> dict[str, str]:
        return {"request-id": f"req_{said_id}"}


def _message(said: NormalizedReply, call: ReceivedCall) -> dict[str, Any]:
    head = {"id": f"msg_{said.id}", "type": "message", "role": "assistant", "model": call.model}
    return {**head, "content": [], "stop_reason": None, "stop_sequence": None}


def _word(said: NormalizedReply) -> str:
    return REASONS.get(said.reason, str(said.reason))


def _usage(usage: Usage) -> dict[str, Any]:
    """Anthropic's figures: the prompt without what was read from a cache or written to one."""
    cached = usage.cache_read_tokens + usage.cache_write_tokens
    found: dict[str, Any] = {
        "input_tokens": usage.input_tokens - cached,
        "cache_creation_input_tokens": usage.cache_write_tokens,
        "cache_read_input_tokens": usage.cache_read_tokens,
        "output_tokens": usage.output_tokens,
    }
    if usage.reasoning_tokens:
        found["output_tokens_details"] = {"thinking_tokens": usage.reasoning_tokens}
    return found


def _block(block: Block, said: NormalizedReply, at: int) -> dict[str, Any]:
    fields = dict(getattr(getattr(block, "state", None), "fields", None) or {})
    if isinstance(block, TextBlock):
        return {"type": "text", "text": block.text, "citations": notes_of(block) or None, **fields}
    if isinstance(block, ToolUseBlock):
        return {"type": "tool_use", "id": block.id, "name": block.name, "input": block.copy_input(), **fields}
    if isinstance(block, ThinkingBlock):
        state = block.state
        if state and state.redacted_data:
            return {"type": "redacted_thinking", "data": state.redacted_data}
        signed = state.signature if state and state.signature else f"Eo{digest(f'{said.id} {at}', 40)}"
        return {"type": "thinking", "thinking": block.thinking, "signature": signed, **fields}
    if isinstance(block, OpaqueBlock):
        return dict(block.data)
    raise unsayable("Messages", block.type)


_FILLED: Final[dict[str, dict[str, Any]]] = {
    "text": {"text": "", "citations": None},
    "thinking": {"thinking": "", "signature": ""},
    "tool_use": {"input": {}},
    "server_tool_use": {"input": {}},
}
"""What deltas fill in, by the block's type: the block that is announced has it empty. Others come whole."""


def _begun(block: Mapping[str, Any]) -> dict[str, Any]:
    return {**block, **_FILLED.get(str(block.get("type")), {})}


def _deltas(block: Mapping[str, Any], size: int) -> Iterator[dict[str, Any]]:
    kind = block.get("type")
    if kind == "text":
        yield from ({"type": "text_delta", "text": piece} for piece in pieces(block["text"], size))
        yield from ({"type": "citations_delta", "citation": note} for note in block.get("citations") or ())
    elif kind == "thinking":
        yield from ({"type": "thinking_delta", "thinking": piece} for piece in pieces(block["thinking"], size))
        yield {"type": "signature_delta", "signature": block["signature"]}
    elif kind in {"tool_use", "server_tool_use"}:
        yield {"type": "input_json_delta", "partial_json": ""}
        arguments = json_text(block.get("input")) if block.get("input") else ""
        yield from ({"type": "input_json_delta", "partial_json": piece} for piece in pieces(arguments, size))


def json_text(found: object) -> str:
    """A value as the model writes it: a space behind commas and colons."""
    return json.dumps(found, ensure_ascii=False)
