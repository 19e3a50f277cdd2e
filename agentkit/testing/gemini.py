"""The wire of Gemini's generateContent. Shapes: `google.genai.types.GenerateContentResponse`, camelCase."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Final

from agentkit.messages.blocks import Block, MediaBlock, OpaqueBlock, TextBlock, ThinkingBlock, ToolUseBlock
from agentkit.messages.sources import Base64Source
from agentkit.messages.usage import FinishReason, Usage
from agentkit.testing import pairing
from agentkit.testing.replies import LoopbackError, NormalizedReply, ReceivedCall, digest, pieces, unsayable
from agentkit.testing.wire import Wire, encoded

__all__ = ["Gemini"]

REASONS: Final[dict[str, str]] = {
    FinishReason.STOP: "STOP",
    FinishReason.TOOL_USE: "STOP",
    FinishReason.LENGTH: "MAX_TOKENS",
    FinishReason.CONTENT_FILTER: "SAFETY",
    FinishReason.REFUSAL: "PROHIBITED_CONTENT",
    FinishReason.OTHER: "OTHER",
}

STATUSES: Final[dict[int, str]] = {
    # google.rpc.Code, as its HTTP mapping has it.
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    429: "RESOURCE_EXHAUSTED",
    500: "INTERNAL",
    503: "UNAVAILABLE",
    504: "DEADLINE_EXCEEDED",
}


class Gemini(Wire):
    """Replies of `:generateContent` and `:streamGenerateContent?alt=sse`."""

    prompt_keys: ClassVar[tuple[str, ...]] = ("systemInstruction", "contents", "tools")

    def whole(self, said: NormalizedReply, call: ReceivedCall) -> dict[str, Any]:
        parts = [_part(block, said, at) for at, block in enumerate(said.msg.blocks)]
        return _chunk(said, call, parts, _word(said), _usage(said.usage))

    def events(self, said: NormalizedReply, call: ReceivedCall) -> Iterator[dict[str, Any]]:
        begun = {"promptTokenCount": said.usage.input_tokens, "totalTokenCount": said.usage.input_tokens}
        for at, block in enumerate(said.msg.blocks):
            for part in _split(_part(block, said, at), said.piece):
                yield _chunk(said, call, [part], None, begun)
        yield _chunk(said, call, [], _word(said), _usage(said.usage))

    def frame(self, event: Mapping[str, Any], number: int) -> bytes:
        return b"data: " + encoded(event) + b"\r\n\r\n"

    def error(self, error: LoopbackError) -> dict[str, Any]:
        usual = "INTERNAL" if error.status >= 500 else "INVALID_ARGUMENT"
        status = error.code or STATUSES.get(error.status, usual)
        said: dict[str, Any] = {"code": error.status, "message": error.message, "status": status}
        if error.retry_after is not None:
            kind = "type.googleapis.com/google.rpc.RetryInfo"
            said["details"] = [{"@type": kind, "retryDelay": f"{error.retry_after:g}s"}]
        return {"error": said}

    def refusal(self, call: ReceivedCall) -> str | None:
        return pairing.of_gemini(call.body)

    def count(self, body: Mapping[str, Any]) -> dict[str, Any] | None:
        return {"totalTokens": self.counted(body.get("generateContentRequest") or body)}

    def headers(self, said_id: str) -> dict[str, str]:
        return {}


def _word(said: NormalizedReply) -> str:
    return REASONS.get(said.reason, str(said.reason))


def _chunk(
    said: NormalizedReply,
    call: ReceivedCall,
    parts: list[dict[str, Any]],
    reason: str | None,
    usage: Mapping[str, Any],
) -> dict[str, Any]:
    candidate: dict[str, Any] = {"content": {"parts": parts, "role": "model"}, "index": 0}
    if not parts:
        candidate["content"] = {"role": "model"}  # what the service sends when nothing is left to say
    if reason:
        candidate["finishReason"] = reason
    chunk = {"candidates": [candidate], "usageMetadata": dict(usage)}
    return {**chunk, "modelVersion": call.model, "responseId": said.id}


def _usage(usage: Usage) -> dict[str, Any]:
    """Gemini's figures: the reply without its thoughts."""
    found = {
        "promptTokenCount": usage.input_tokens,
        "candidatesTokenCount": usage.output_tokens - usage.reasoning_tokens,
        "totalTokenCount": usage.total_tokens,
    }
    rest = {"thoughtsTokenCount": usage.reasoning_tokens, "cachedContentTokenCount": usage.cache_read_tokens}
    return found | {key: count for key, count in rest.items() if count}


def _part(block: Block, said: NormalizedReply, at: int) -> dict[str, Any]:
    part = _bare(block)
    signature = getattr(getattr(block, "state", None), "thought_signature", None)
    if signature is None and isinstance(block, ToolUseBlock) and block is said.msg.tool_uses[0]:
        # Gemini 3 signs the first call of every step: ai.google.dev/gemini-api/docs/thought-signatures
        signature = base64.b64encode(digest(f"{said.id} {at}", 24).encode()).decode()
    return {**part, "thoughtSignature": signature} if signature else part


def _bare(block: Block) -> dict[str, Any]:
    if isinstance(block, TextBlock):
        return {"text": block.text}
    if isinstance(block, ThinkingBlock):
        return {"text": block.thinking, "thought": True}
    if isinstance(block, ToolUseBlock):
        return {"functionCall": {"id": block.id, "name": block.name, "args": block.copy_input()}}
    if isinstance(block, OpaqueBlock):
        return dict(block.data)
    if isinstance(block, MediaBlock) and isinstance(block.source, Base64Source):
        return {"inlineData": {"mimeType": block.source.media_type, "data": block.source.data}}
    raise unsayable("Gemini", block.type)


def _split(part: dict[str, Any], size: int) -> list[dict[str, Any]]:
    """A part in the pieces in which it comes: text in several, its signature on an empty last one."""
    if "text" not in part:
        return [part]
    kind = {"thought": True} if part.get("thought") else {}
    found = [{"text": piece, **kind} for piece in pieces(part["text"], size)]
    if "thoughtSignature" in part:
        found.append({"text": "", **kind, "thoughtSignature": part["thoughtSignature"]})
    return found
