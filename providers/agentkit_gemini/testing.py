"""Fake generateContent service for `agentkit.testing.LoopbackServer`.

The JSON has the fields of `google.genai.types.GenerateContentResponse`, in camelCase.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Final

from agentkit.provider_kit import (
    Base64Source,
    Block,
    FinishReason,
    MediaBlock,
    OpaqueBlock,
    TextBlock,
    ThinkingBlock,
    ToolUseBlock,
    Usage,
    as_list,
    as_object,
)
from agentkit.testing import (
    FakeService,
    LoopbackError,
    NormalizedReply,
    ReceivedCall,
    Route,
    encode_json,
    hash_text,
    unsupported_block,
)

__all__ = ["FakeGemini", "ROUTES"]

_REASONS: Final[dict[str, str]] = {
    FinishReason.STOP: "STOP",
    FinishReason.TOOL_USE: "STOP",
    FinishReason.LENGTH: "MAX_TOKENS",
    FinishReason.CONTENT_FILTER: "SAFETY",
    FinishReason.REFUSAL: "PROHIBITED_CONTENT",
    FinishReason.OTHER: "OTHER",
}


class FakeGemini(FakeService):
    """Fake service for `:generateContent`, `:streamGenerateContent?alt=sse` and `:countTokens`."""

    id_header = ""
    prompt_keys = ("systemInstruction", "contents", "tools")
    error_codes: ClassVar[Mapping[int, str]] = {
        # Source of the status names: google.rpc.Code.
        400: "INVALID_ARGUMENT",
        401: "UNAUTHENTICATED",
        403: "PERMISSION_DENIED",
        404: "NOT_FOUND",
        429: "RESOURCE_EXHAUSTED",
        500: "INTERNAL",
        503: "UNAVAILABLE",
        504: "DEADLINE_EXCEEDED",
    }

    def build_reply(self, reply: NormalizedReply, call: ReceivedCall) -> dict[str, Any]:
        parts = [_part(block, reply, index) for index, block in enumerate(reply.msg.blocks)]
        return _chunk(reply, call, parts, reply.map_reason(_REASONS), _usage(reply.usage))

    def build_events(self, reply: NormalizedReply, call: ReceivedCall) -> Iterator[dict[str, Any]]:
        prompt_tokens = reply.usage.input_tokens
        usage = {"promptTokenCount": prompt_tokens, "totalTokenCount": prompt_tokens}
        for index, block in enumerate(reply.msg.blocks):
            for part in _split_part(_part(block, reply, index), reply):
                yield _chunk(reply, call, [part], None, usage)
        yield _chunk(reply, call, [], reply.map_reason(_REASONS), _usage(reply.usage))

    def encode_event(self, event: Mapping[str, Any], number: int) -> bytes:
        return b"data: " + encode_json(event) + b"\r\n\r\n"

    def build_error(self, error: LoopbackError) -> dict[str, Any]:
        status = self.get_error_code(error)
        fields: dict[str, Any] = {"code": error.status, "message": error.message, "status": status}
        if error.retry_after is not None:
            retry_info = "type.googleapis.com/google.rpc.RetryInfo"
            fields["details"] = [{"@type": retry_info, "retryDelay": f"{error.retry_after:g}s"}]
        return {"error": fields}

    def find_fault(self, call: ReceivedCall) -> str | None:
        """Returns the API's error message if the request is invalid, otherwise None.

        A valid request has contents, in which the function responses match the preceding function calls. The error
        messages are copied from recorded replies of the API.
        """
        contents = [as_object(content) for content in as_list(call.body.get("contents"))]
        if not contents:
            return "* GenerateContentRequest.contents: contents is not specified"
        open_count = 0
        for index, content in enumerate(contents):
            parts = [as_object(part) for part in as_list(content.get("parts"))]
            calls = sum(_has_key(part, "functionCall", "function_call") for part in parts)
            responses = sum(_has_key(part, "functionResponse", "function_response") for part in parts)
            if responses and not open_count:
                return "Please ensure that function response turn comes immediately after a function call turn."
            if open_count and responses != open_count and not calls:
                return (
                    "Please ensure that the number of function response parts is equal to the number of function "
                    "call parts of the function call turn."
                )
            if calls and not index:
                return (
                    "Please ensure that function call turn comes immediately after a user turn or after a "
                    "function response turn."
                )
            open_count = calls + (open_count if calls else 0)  # the API treats adjacent model turns as one turn
        return None

    def is_streamed(self, verb: str, body: Mapping[str, Any], headers: Mapping[str, str]) -> bool:
        return verb == "streamGenerateContent"

    def count(self, verb: str, body: Mapping[str, Any]) -> dict[str, Any] | None:
        if verb != "countTokens":
            return None
        return {"totalTokens": self.count_prompt(body.get("generateContentRequest") or body)}

    def client_options(self, url: str) -> dict[str, Any]:
        return {"api_key": "loopback", "http_options": {"base_url": url, "api_version": "v1beta"}}


def _has_key(part: Mapping[str, Any], *keys: str) -> bool:
    return any(part.get(key) is not None for key in keys)


def _chunk(
    reply: NormalizedReply,
    call: ReceivedCall,
    parts: list[dict[str, Any]],
    reason: str | None,
    usage: Mapping[str, Any],
) -> dict[str, Any]:
    # If a chunk has no parts, such as the last chunk of a stream, the API omits the key `parts`.
    content: dict[str, Any] = {"parts": parts, "role": "model"} if parts else {"role": "model"}
    candidate: dict[str, Any] = {"content": content, "index": 0}
    if reason:
        candidate["finishReason"] = reason
    chunk = {"candidates": [candidate], "usageMetadata": dict(usage)}
    return {**chunk, "modelVersion": call.model, "responseId": reply.id}


def _usage(usage: Usage) -> dict[str, Any]:
    """Returns token usage in Gemini's format, in which the candidate tokens exclude the thinking tokens."""
    counts = {
        "promptTokenCount": usage.input_tokens,
        "candidatesTokenCount": usage.output_tokens - usage.reasoning_tokens,
        "totalTokenCount": usage.total_tokens,
    }
    optional = {"thoughtsTokenCount": usage.reasoning_tokens, "cachedContentTokenCount": usage.cache_read_tokens}
    return counts | {key: count for key, count in optional.items() if count}


def _part(block: Block, reply: NormalizedReply, index: int) -> dict[str, Any]:
    part = _unsigned_part(block)
    signature = getattr(getattr(block, "state", None), "thought_signature", None)
    if signature is None and isinstance(block, ToolUseBlock) and block is reply.msg.tool_uses[0]:
        # In Gemini 3, the first tool call of every reply has a signature (Gemini docs: thought-signatures).
        signature = base64.b64encode(hash_text(f"{reply.id} {index}", 24).encode()).decode()
    return {**part, "thoughtSignature": signature} if signature else part


def _unsigned_part(block: Block) -> dict[str, Any]:
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
    raise unsupported_block("Gemini", block.type)


def _split_part(part: dict[str, Any], reply: NormalizedReply) -> list[dict[str, Any]]:
    """Splits a text part into pieces. Returns any other part as a single piece.

    If the part has a signature, the last piece contains the signature and no text.
    """
    if "text" not in part:
        return [part]
    thought = {"thought": True} if part.get("thought") else {}
    pieces = [{"text": piece, **thought} for piece in reply.split(part["text"])]
    if "thoughtSignature" in part:
        pieces.append({"text": "", **thought, "thoughtSignature": part["thoughtSignature"]})
    return pieces


ROUTES: Final = (
    Route(
        "gemini",
        r"/(?:[^:]+/)?models/(?P<model>[^:]+):(?P<verb>generateContent|streamGenerateContent|countTokens)",
        FakeGemini(),
    ),
)
