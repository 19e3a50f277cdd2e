"""The wire of Anthropic's Messages on Amazon Bedrock. Shapes: AWS, `InvokeModelWithResponseStream`."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Final
from zlib import crc32

from agentkit.testing.anthropic_messages import AnthropicMessages
from agentkit.testing.replies import LoopbackError, NormalizedReply, ReceivedCall
from agentkit.testing.wire import encoded

__all__ = ["BedrockMessages", "event_frame"]

EXCEPTIONS: Final[dict[int, str]] = {
    400: "ValidationException",
    403: "AccessDeniedException",
    404: "ResourceNotFoundException",
    408: "ModelTimeoutException",
    424: "ModelErrorException",
    429: "ThrottlingException",
    500: "InternalServerException",
    503: "ServiceUnavailableException",
}
"""An error's name by its status (AWS: InvokeModel, errors). Within a stream it begins with a small letter."""

_STRING: Final = b"\x07"  # the type of a header's value


class BedrockMessages(AnthropicMessages):
    """Replies of `POST /model/MODEL/invoke`, and of `invoke-with-response-stream`, whose events are binary."""

    media_type: ClassVar[str] = "application/vnd.amazon.eventstream"

    def events(self, said: NormalizedReply, call: ReceivedCall) -> Iterator[dict[str, Any]]:
        """Those of Messages; the last one has the service's own figures."""
        counted = {"inputTokenCount": said.usage.input_tokens, "outputTokenCount": said.usage.output_tokens}
        for event in super().events(said, call):
            last = event["type"] == "message_stop"
            yield {**event, "amazon-bedrock-invocationMetrics": counted} if last else event

    def frame(self, event: Mapping[str, Any], number: int) -> bytes:
        if event.get("type") == "error":
            error = event["error"]
            named = {":exception-type": error["type"], ":message-type": "exception"}
            return event_frame(named, encoded({"message": error["message"]}))
        named = {":event-type": "chunk", ":message-type": "event"}
        return event_frame(named, encoded({"bytes": b64encode(encoded(event)).decode()}))

    def error(self, error: LoopbackError) -> dict[str, Any]:
        return {"message": error.message}

    def error_event(self, error: LoopbackError) -> dict[str, Any]:
        name = _name(error)
        said = {"type": name[:1].lower() + name[1:], "message": error.message}
        return {"type": "error", "error": said}

    def refusal(self, call: ReceivedCall) -> str | None:
        if "anthropic_version" not in call.body:
            return "Malformed input request: required key [anthropic_version] not found"
        for key in ("model", "stream"):
            if key in call.body:
                return f"Malformed input request: extraneous key [{key}] is not permitted"
        return super().refusal(call)

    def count(self, body: Mapping[str, Any]) -> dict[str, Any] | None:
        return None

    def headers(self, said_id: str) -> dict[str, str]:
        return {"x-amzn-requestid": f"req_{said_id}"}

    def error_headers(self, error: LoopbackError) -> dict[str, str]:
        return {"x-amzn-errortype": _name(error)}


def _name(error: LoopbackError) -> str:
    usual = "InternalServerException" if error.status >= 500 else "ValidationException"
    return error.code or EXCEPTIONS.get(error.status, usual)


def event_frame(headers: Mapping[str, str], payload: bytes) -> bytes:
    """A message in the encoding `application/vnd.amazon.eventstream` (AWS: event stream encoding).

    Its length, that of its headers, and their checksum; the headers, the payload, and the checksum of it all.
    """
    named = b"".join(
        _header(name, text) for name, text in {**headers, ":content-type": "application/json"}.items()
    )
    prelude = _number(16 + len(named) + len(payload)) + _number(len(named))
    message = prelude + _number(crc32(prelude)) + named + payload
    return message + _number(crc32(message))


def _header(name: str, text: str) -> bytes:
    key, found = name.encode(), text.encode()
    return bytes([len(key)]) + key + _STRING + len(found).to_bytes(2, "big") + found


def _number(found: int) -> bytes:
    return found.to_bytes(4, "big")
