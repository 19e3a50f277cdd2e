"""Fake services for DashScope's native API and its compatible mode, for `agentkit.testing.LoopbackServer`.

The JSON has the fields of `dashscope.api_entities.dashscope_response`. Events of the native API also have the
lines `id`, `event` and `:HTTP_STATUS`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from copy import deepcopy
from typing import Any, ClassVar, Final

from agentkit.provider_kit import FinishReason, ToolUseBlock, Usage, as_list, as_object
from agentkit.testing import FakeService, LoopbackError, NormalizedReply, ReceivedCall, Route, encode_json
from agentkit_openai.testing import FakeChatCompletions, find_unpaired_message

__all__ = ["FakeDashScope", "ROUTES"]

_REASONS: Final[dict[str, str]] = {
    FinishReason.STOP: "stop",
    FinishReason.LENGTH: "length",
    FinishReason.TOOL_USE: "tool_calls",
    FinishReason.REFUSAL: "stop",
}


class FakeDashScope(FakeService):
    """Fake service for DashScope's native API, on its text path or its multimodal path.

    Attributes:
        is_multimodal: True for the multimodal path, on which the content of replies is a list of parts.
    """

    prompt_keys = ("input",)
    error_codes: ClassVar[Mapping[int, str]] = {
        # Source of the error codes: Model Studio docs (help.aliyun.com/zh/model-studio/error-code).
        400: "InvalidParameter",
        401: "InvalidApiKey",
        403: "AccessDenied",
        404: "ModelNotFound",
        429: "Throttling.RateQuota",
        500: "InternalError",
        503: "ServiceUnavailable",
    }

    def __init__(self, *, is_multimodal: bool) -> None:
        self.is_multimodal = is_multimodal

    def build_reply(self, reply: NormalizedReply, call: ReceivedCall) -> dict[str, Any]:
        reply.check_blocks("DashScope")
        message = {"role": "assistant", "content": self._content(reply.text)}
        calls = [_call(index, use, use.arguments) for index, use in enumerate(reply.msg.tool_uses)]
        optional = {"reasoning_content": reply.thinking, "tool_calls": calls}
        message |= {key: value for key, value in optional.items() if value}
        return self._envelope(reply, call, message, reply.map_reason(_REASONS))

    def build_events(self, reply: NormalizedReply, call: ReceivedCall) -> Iterator[dict[str, Any]]:
        reply.check_blocks("DashScope")
        parameters = as_object(call.body.get("parameters"))
        is_incremental = parameters.get("incremental_output", self.is_multimodal)
        deltas = [*_deltas(reply), {"role": "assistant", "content": ""}]
        for number, message in enumerate(deltas if is_incremental else _accumulate(deltas), 1):
            message = {**message, "content": self._content(message["content"])}
            # In all events except the last, DashScope's finish reason is the string "null".
            reason = reply.map_reason(_REASONS) if number == len(deltas) else "null"
            yield self._envelope(reply, call, message, reason)

    def _content(self, text: str) -> Any:
        if not self.is_multimodal:
            return text
        return [{"text": text}] if text else []

    def _envelope(
        self, reply: NormalizedReply, call: ReceivedCall, message: dict[str, Any], reason: str
    ) -> dict[str, Any]:
        output: dict[str, Any] = {"choices": [{"finish_reason": reason, "message": message}]}
        if as_object(call.body.get("parameters")).get("result_format") == "text":
            output = {"text": message["content"], "finish_reason": reason}
        return {"output": output, "usage": _usage(reply.usage), "request_id": reply.id}

    def encode_event(self, event: Mapping[str, Any], number: int) -> bytes:
        status, name = ("400", b"error") if "code" in event else ("200", b"result")
        status = str(event.get("status_code", status))
        head = b"id:%d\nevent:%s\n:HTTP_STATUS/%s\n" % (number, name, status.encode())
        return head + b"data:" + encode_json(event) + b"\n\n"

    def build_error(self, error: LoopbackError) -> dict[str, Any]:
        return {"code": self.get_error_code(error), "message": error.message, "request_id": "loopback"}

    def build_error_event(self, error: LoopbackError) -> dict[str, Any]:
        return {**self.build_error(error), "status_code": error.status}

    def find_fault(self, call: ReceivedCall) -> str | None:
        """Returns the API's error message if the request is invalid, otherwise None.

        A valid request has messages, in which each tool call has a tool message, and each tool message has a tool
        call. DashScope's error message consists of a prefix and the error message of OpenAI's API.
        """
        messages = as_list(as_object(call.body.get("input")).get("messages"))
        if not messages:
            return "[] is too short - 'messages'"
        fault = find_unpaired_message(messages)
        return f"<400> InternalError.Algo.InvalidParameter: {fault.replace(chr(39), chr(34))}" if fault else None

    def is_streamed(self, verb: str, body: Mapping[str, Any], headers: Mapping[str, str]) -> bool:
        return headers.get("x-dashscope-sse") == "enable"


def _accumulate(deltas: Iterable[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yields the messages of a cumulative stream, in which each event repeats all earlier text and tool calls."""
    message: dict[str, Any] = {"role": "assistant", "content": "", "reasoning_content": ""}
    for delta in deltas:
        for key in ("content", "reasoning_content"):
            message[key] += delta.get(key, "")
        for piece in delta.get("tool_calls", ()):
            calls = message.setdefault("tool_calls", [])
            if piece["index"] == len(calls):
                calls.append(deepcopy(piece))
            else:
                calls[-1]["function"]["arguments"] += piece["function"]["arguments"]
        yield deepcopy(message)


def _deltas(reply: NormalizedReply) -> Iterator[dict[str, Any]]:
    role = {"role": "assistant"}
    for piece in reply.split(reply.thinking):
        yield {**role, "content": "", "reasoning_content": piece}
    for piece in reply.split(reply.text):
        yield {**role, "content": piece, "reasoning_content": ""}
    for index, use in enumerate(reply.msg.tool_uses):
        yield {**role, "content": "", "tool_calls": [_call(index, use, "")]}
        for piece in reply.split(use.arguments):  # only the first piece of a tool call has an id
            delta = {"index": index, "id": "", "type": "function", "function": {"arguments": piece}}
            yield {**role, "content": "", "tool_calls": [delta]}


def _call(index: int, use: ToolUseBlock, arguments: str) -> dict[str, Any]:
    function = {"name": use.name, "arguments": arguments}
    return {"index": index, "id": use.id, "type": "function", "function": function}


def _usage(usage: Usage) -> dict[str, Any]:
    return {
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "total_tokens": usage.total_tokens,
        "prompt_tokens_details": {"cached_tokens": usage.cache_read_tokens},
        "output_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
    }


_NATIVE: Final = "/api/v1/services/aigc"

ROUTES: Final = (
    Route(
        "dashscope", rf"{_NATIVE}/text-generation/generation", FakeDashScope(is_multimodal=False), base="/api/v1"
    ),
    Route(
        "dashscope",
        rf"{_NATIVE}/multimodal-generation/generation",
        FakeDashScope(is_multimodal=True),
        base="/api/v1",
    ),
    Route(
        "dashscope-compatible",
        r"/compatible-mode/v1/chat/completions",
        FakeChatCompletions(reasoning_field="reasoning_content", later_id=""),
        base="/compatible-mode/v1",
    ),
)
