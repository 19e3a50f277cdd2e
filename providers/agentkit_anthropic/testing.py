"""Fake Messages services for `agentkit.testing.LoopbackServer`: Anthropic, Vertex AI and Amazon Bedrock.

The JSON formats and the order of events follow `anthropic.types`, and for Bedrock the AWS documentation of
`InvokeModelWithResponseStream`.
"""

from __future__ import annotations

import json
import struct
from base64 import b64encode
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Final
from zlib import crc32

from agentkit.provider_kit import (
    Block,
    FinishReason,
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
    get_citations,
    hash_text,
    unsupported_block,
)

__all__ = ["FakeBedrock", "FakeMessages", "ROUTES", "encode_binary_event"]

_REASONS: Final[dict[str, str]] = {
    FinishReason.STOP: "end_turn",
    FinishReason.LENGTH: "max_tokens",
    FinishReason.TOOL_USE: "tool_use",
    FinishReason.CONTENT_FILTER: "refusal",
    FinishReason.REFUSAL: "refusal",
    FinishReason.PAUSE: "pause_turn",
}


class FakeMessages(FakeService):
    """Fake service for `POST /v1/messages`."""

    client_defaults: ClassVar[Mapping[str, Any]] = {"max_retries": 0}
    names_events = True
    id_header = "request-id"
    prompt_keys = ("system", "messages", "tools")
    error_codes: ClassVar[Mapping[int, str]] = {
        # Source of the error types: Anthropic SDK, `anthropic.types.shared`.
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

    def build_reply(self, reply: NormalizedReply, call: ReceivedCall) -> dict[str, Any]:
        content = [_part(block, reply, index) for index, block in enumerate(reply.msg.blocks)]
        return {**_message(reply, call), "content": content, **_end(reply), "usage": _usage(reply.usage)}

    def build_events(self, reply: NormalizedReply, call: ReceivedCall) -> Iterator[dict[str, Any]]:
        first_usage = {**_usage(reply.usage), "output_tokens": 1}
        yield {"type": "message_start", "message": {**_message(reply, call), "usage": first_usage}}
        for index, block in enumerate(reply.msg.blocks):
            part = _part(block, reply, index)
            empty = {**part, **_EMPTY.get(str(part.get("type")), {})}
            yield {"type": "content_block_start", "index": index, "content_block": empty}
            if not index:
                yield {"type": "ping"}
            for delta in _deltas(part, reply):
                yield {"type": "content_block_delta", "index": index, "delta": delta}
            yield {"type": "content_block_stop", "index": index}
        yield {"type": "message_delta", "delta": _end(reply), "usage": _usage(reply.usage)}
        yield {"type": "message_stop"}

    def build_error(self, error: LoopbackError) -> dict[str, Any]:
        inner = {"type": self.get_error_code(error), "message": error.message}
        return {"type": "error", "error": inner, "request_id": "req_loopback"}

    def find_fault(self, call: ReceivedCall) -> str | None:
        """Returns the API's error text if the request is invalid, otherwise None.

        A valid request has `messages`, and `max_tokens` or `anthropic_version`. The message after tool calls
        contains the results of exactly these calls.
        """
        if "max_tokens" not in call.body and "anthropic_version" not in call.body:
            return "max_tokens: Field required"
        messages = [as_object(message) for message in as_list(call.body.get("messages"))]
        if not messages:
            return "messages: at least one message is required"
        call_ids: list[str] = []
        for index, message in enumerate([*messages, {}]):
            result_ids = _part_ids(message, "tool_result", "tool_use_id")
            if missing := [id for id in call_ids if id not in result_ids]:
                return _MISSING_RESULTS.format(index - 1, ", ".join(missing))
            if orphans := [id for id in result_ids if id not in call_ids]:
                return _ORPHAN_RESULT.format(index, orphans[0])
            call_ids = _part_ids(message, "tool_use", "id")
        return None

    def is_streamed(self, verb: str, body: Mapping[str, Any], headers: Mapping[str, str]) -> bool:
        return verb == "streamRawPredict" or body.get("stream") is True

    def count(self, verb: str, body: Mapping[str, Any]) -> dict[str, Any] | None:
        return {"input_tokens": self.count_prompt(body)} if verb == "count_tokens" else None


def _message(reply: NormalizedReply, call: ReceivedCall) -> dict[str, Any]:
    head = {"id": f"msg_{reply.id}", "type": "message", "role": "assistant", "model": call.model}
    return {**head, "content": [], "stop_reason": None, "stop_sequence": None}


def _end(reply: NormalizedReply) -> dict[str, Any]:
    return {"stop_reason": reply.map_reason(_REASONS), "stop_sequence": None}


def _usage(usage: Usage) -> dict[str, Any]:
    """Returns usage in Anthropic's format. The input tokens exclude tokens read from or written to a cache."""
    cached = usage.cache_read_tokens + usage.cache_write_tokens
    counts: dict[str, Any] = {
        "input_tokens": usage.input_tokens - cached,
        "cache_creation_input_tokens": usage.cache_write_tokens,
        "cache_read_input_tokens": usage.cache_read_tokens,
        "output_tokens": usage.output_tokens,
    }
    if usage.reasoning_tokens:
        counts["output_tokens_details"] = {"thinking_tokens": usage.reasoning_tokens}
    return counts


def _part(block: Block, reply: NormalizedReply, index: int) -> dict[str, Any]:
    fields = dict(getattr(getattr(block, "state", None), "fields", None) or {})
    if isinstance(block, TextBlock):
        return {"type": "text", "text": block.text, "citations": get_citations(block) or None, **fields}
    if isinstance(block, ToolUseBlock):
        return {"type": "tool_use", "id": block.id, "name": block.name, "input": block.copy_input(), **fields}
    if isinstance(block, ThinkingBlock):
        state = block.state
        if state and state.redacted_data:
            return {"type": "redacted_thinking", "data": state.redacted_data}
        signature = state.signature if state else None
        signature = signature or f"Eo{hash_text(f'{reply.id} {index}', 40)}"
        return {"type": "thinking", "thinking": block.thinking, "signature": signature, **fields}
    if isinstance(block, OpaqueBlock):
        return dict(block.data)
    raise unsupported_block("Messages", block.type)


_EMPTY: Final[dict[str, dict[str, Any]]] = {
    "text": {"text": "", "citations": None},
    "thinking": {"thinking": "", "signature": ""},
    "tool_use": {"input": {}},
    "server_tool_use": {"input": {}},
}
"""Maps part types to the fields that are empty in the start event of a part. Later events contain their values."""


def _deltas(part: Mapping[str, Any], reply: NormalizedReply) -> Iterator[dict[str, Any]]:
    match part.get("type"):
        case "text":
            yield from ({"type": "text_delta", "text": piece} for piece in reply.split(part["text"]))
            yield from ({"type": "citations_delta", "citation": item} for item in part.get("citations") or ())
        case "thinking":
            yield from ({"type": "thinking_delta", "thinking": piece} for piece in reply.split(part["thinking"]))
            yield {"type": "signature_delta", "signature": part["signature"]}
        case "tool_use" | "server_tool_use":
            yield {"type": "input_json_delta", "partial_json": ""}
            arguments = json.dumps(part["input"], ensure_ascii=False) if part.get("input") else ""
            yield from ({"type": "input_json_delta", "partial_json": piece} for piece in reply.split(arguments))
        case _:
            pass


# These error texts are copied from recorded responses.
_MISSING_RESULTS: Final = (
    "messages.{}: `tool_use` ids were found without `tool_result` blocks immediately after: {}. Each `tool_use` "
    "block must have a corresponding `tool_result` block in the next message."
)
_ORPHAN_RESULT: Final = (
    "messages.{}.content.0: unexpected `tool_use_id` found in `tool_result` blocks: {}. Each `tool_result` block "
    "must have a corresponding `tool_use` block in the previous message."
)


def _part_ids(message: Mapping[str, Any], part_type: str, key: str) -> list[str]:
    parts = map(as_object, as_list(message.get("content")))
    return [str(part.get(key)) for part in parts if part.get("type") == part_type]


# -- Amazon Bedrock -----------------------------------------------------------------------------------------------


class FakeBedrock(FakeMessages):
    """Fake service for Bedrock's operations `invoke` and `invoke-with-response-stream` (with binary events)."""

    media_type = "application/vnd.amazon.eventstream"
    id_header = "x-amzn-requestid"
    error_codes: ClassVar[Mapping[int, str]] = {
        # Source of the error codes: AWS docs, errors of InvokeModel.
        400: "ValidationException",
        403: "AccessDeniedException",
        404: "ResourceNotFoundException",
        408: "ModelTimeoutException",
        424: "ModelErrorException",
        429: "ThrottlingException",
        500: "InternalServerException",
        503: "ServiceUnavailableException",
    }

    def build_events(self, reply: NormalizedReply, call: ReceivedCall) -> Iterator[dict[str, Any]]:
        """Yields the events of the Messages API. The last event also has Bedrock's token counts."""
        counts = {"inputTokenCount": reply.usage.input_tokens, "outputTokenCount": reply.usage.output_tokens}
        for event in super().build_events(reply, call):
            is_last = event["type"] == "message_stop"
            yield {**event, "amazon-bedrock-invocationMetrics": counts} if is_last else event

    def encode_event(self, event: Mapping[str, Any], number: int) -> bytes:
        if event.get("type") == "error":
            error = event["error"]
            headers = {":exception-type": error["type"], ":message-type": "exception"}
            return encode_binary_event(headers, encode_json({"message": error["message"]}))
        headers = {":event-type": "chunk", ":message-type": "event"}
        return encode_binary_event(headers, encode_json({"bytes": b64encode(encode_json(event)).decode()}))

    def build_error(self, error: LoopbackError) -> dict[str, Any]:
        return {"message": error.message}

    def build_error_event(self, error: LoopbackError) -> dict[str, Any]:
        name = self.get_error_code(error)  # in a stream, Bedrock's error names begin with a lower-case letter
        return {"type": "error", "error": {"type": name[:1].lower() + name[1:], "message": error.message}}

    def find_fault(self, call: ReceivedCall) -> str | None:
        if "anthropic_version" not in call.body:
            return "Malformed input request: required key [anthropic_version] not found"
        for key in ("model", "stream"):
            if key in call.body:
                return f"Malformed input request: extraneous key [{key}] is not permitted"
        return super().find_fault(call)

    def is_streamed(self, verb: str, body: Mapping[str, Any], headers: Mapping[str, str]) -> bool:
        return verb == "invoke-with-response-stream"

    def build_error_headers(self, error: LoopbackError) -> dict[str, str]:
        return {"x-amzn-errortype": self.get_error_code(error)}


_STRING_TYPE: Final = 7  # type number of headers with string values, in AWS's event stream encoding


def encode_binary_event(headers: Mapping[str, str], payload: bytes) -> bytes:
    """Returns a binary message in the format `application/vnd.amazon.eventstream`.

    The message starts with its length, the length of its headers, and a checksum of both lengths. The headers, the
    payload, and a checksum of all preceding bytes follow. Source: AWS docs, event stream encoding.
    """
    headers = {**headers, ":content-type": "application/json"}
    head = b"".join(_encode_header(name.encode(), text.encode()) for name, text in headers.items())
    prelude = struct.pack(">II", 16 + len(head) + len(payload), len(head))
    message = prelude + struct.pack(">I", crc32(prelude)) + head + payload
    return message + struct.pack(">I", crc32(message))


def _encode_header(name: bytes, text: bytes) -> bytes:
    return struct.pack(f">B{len(name)}sBH", len(name), name, _STRING_TYPE, len(text)) + text


_MESSAGES: Final = FakeMessages()

ROUTES: Final = (
    Route("anthropic", r"/v1/messages(?:/(?P<verb>count_tokens))?", _MESSAGES),
    Route(
        "anthropic-vertex",
        r"/.*/publishers/anthropic/(?:[^:]+/)?models/(?P<model>[^:]+):(?P<verb>rawPredict|streamRawPredict)",
        _MESSAGES,
        base="/v1",
    ),
    Route("bedrock", r"/model/(?P<model>[^/]+)/(?P<verb>invoke(?:-with-response-stream)?)", FakeBedrock()),
)
