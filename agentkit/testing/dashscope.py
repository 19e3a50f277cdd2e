"""The native wire of DashScope, of its text models and its multimodal ones.

Shapes: `dashscope.api_entities.dashscope_response`. Events have `id`, `event` and `:HTTP_STATUS` lines.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Final

from agentkit.messages.blocks import TextBlock, ThinkingBlock, ToolUseBlock
from agentkit.messages.usage import FinishReason, Usage
from agentkit.testing import pairing
from agentkit.testing.replies import LoopbackError, NormalizedReply, ReceivedCall, pieces, unsayable
from agentkit.testing.wire import Wire, encoded

__all__ = ["DashScope"]

REASONS: Final[dict[str, str]] = {
    FinishReason.STOP: "stop",
    FinishReason.LENGTH: "length",
    FinishReason.TOOL_USE: "tool_calls",
    FinishReason.REFUSAL: "stop",
}

CODES: Final[dict[int, str]] = {
    400: "InvalidParameter",
    401: "InvalidApiKey",
    403: "AccessDenied",
    404: "ModelNotFound",
    429: "Throttling.RateQuota",
    500: "InternalError",
    503: "ServiceUnavailable",
}
"""The code of an error by its status: help.aliyun.com/zh/model-studio/error-code."""


class DashScope(Wire):
    """Replies of the native paths. `parts`: content is a list of parts, as multimodal models have it."""

    prompt_keys: ClassVar[tuple[str, ...]] = ("input",)

    def __init__(self, *, parts: bool) -> None:
        self.parts = parts

    def whole(self, said: NormalizedReply, call: ReceivedCall) -> dict[str, Any]:
        _check(said)
        message = {"role": "assistant", "content": self._content(_text(said))}
        rest = {"reasoning_content": _thoughts(said), "tool_calls": _calls(said)}
        message |= {key: item for key, item in rest.items() if item}
        return self._reply(said, call, message, _word(said))

    def events(self, said: NormalizedReply, call: ReceivedCall) -> Iterator[dict[str, Any]]:
        _check(said)
        asked: Mapping[str, Any] = call.body.get("parameters") or {}
        incremental = asked.get("incremental_output", self.parts)
        known = _Known()
        for message in self._deltas(said):
            shown = message if incremental else known.with_more(message)
            shown = {**shown, "content": self._content(shown["content"])}
            yield self._reply(said, call, shown, "null")  # a string, while the stream goes on
        last = {"role": "assistant", "content": ""} if incremental else known.with_more({"content": ""})
        yield self._reply(said, call, {**last, "content": self._content(last["content"])}, _word(said))

    def _deltas(self, said: NormalizedReply) -> Iterator[dict[str, Any]]:
        role = {"role": "assistant"}
        for piece in pieces(_thoughts(said), said.piece):
            yield {**role, "content": "", "reasoning_content": piece}
        for piece in pieces(_text(said), said.piece):
            yield {**role, "content": piece, "reasoning_content": ""}
        for index, use in enumerate(said.msg.tool_uses):
            for delta in _call_deltas(index, use, said.piece):
                yield {**role, "content": "", "tool_calls": [delta]}

    def _content(self, text: str) -> Any:
        if not self.parts:
            return text
        return [{"text": text}] if text else []

    def _reply(
        self, said: NormalizedReply, call: ReceivedCall, message: dict[str, Any], reason: str
    ) -> dict[str, Any]:
        output: dict[str, Any] = {"choices": [{"finish_reason": reason, "message": message}]}
        asked: Mapping[str, Any] = call.body.get("parameters") or {}
        if asked.get("result_format") == "text":
            output = {"text": message["content"], "finish_reason": reason}
        return {"output": output, "usage": _usage(said.usage), "request_id": said.id}

    def frame(self, event: Mapping[str, Any], number: int) -> bytes:
        status, name = ("400", b"error") if "code" in event else ("200", b"result")
        found = str(event.get("status_code", status)).encode()
        head = b"id:%d\nevent:%s\n:HTTP_STATUS/%s\n" % (number, name, found)
        return head + b"data:" + encoded(event) + b"\n\n"

    def error(self, error: LoopbackError) -> dict[str, Any]:
        usual = "InternalError" if error.status >= 500 else "InvalidParameter"
        code = error.code or CODES.get(error.status, usual)
        return {"code": code, "message": error.message, "request_id": "loopback"}

    def error_event(self, error: LoopbackError) -> dict[str, Any]:
        return {**self.error(error), "status_code": error.status}

    def refusal(self, call: ReceivedCall) -> str | None:
        return pairing.of_dashscope(call.body)


class _Known:
    """What a cumulative stream has said so far."""

    def __init__(self) -> None:
        self.message: dict[str, Any] = {"role": "assistant", "content": "", "reasoning_content": ""}

    def with_more(self, delta: Mapping[str, Any]) -> dict[str, Any]:
        for key in ("content", "reasoning_content"):
            self.message[key] += delta.get(key, "")
        for piece in delta.get("tool_calls", ()):
            calls = self.message.setdefault("tool_calls", [])
            if piece["index"] == len(calls):
                calls.append({**piece, "function": dict(piece["function"])})
            else:
                calls[-1]["function"]["arguments"] += piece["function"]["arguments"]
        calls = [{**one, "function": dict(one["function"])} for one in self.message.get("tool_calls", ())]
        return {**self.message, **({"tool_calls": calls} if calls else {})}


def _check(said: NormalizedReply) -> None:
    unsaid = [block.type for block in said.msg.blocks if block.type not in {"text", "thinking", "tool_use"}]
    if unsaid:
        raise unsayable("DashScope", unsaid[0])


def _word(said: NormalizedReply) -> str:
    return REASONS.get(said.reason, str(said.reason))


def _text(said: NormalizedReply) -> str:
    return "".join(one.text for one in said.msg.blocks if isinstance(one, TextBlock))


def _thoughts(said: NormalizedReply) -> str:
    return "".join(one.thinking for one in said.msg.blocks if isinstance(one, ThinkingBlock))


def _calls(said: NormalizedReply) -> list[dict[str, Any]]:
    return [_call(index, use, use.id, use.arguments) for index, use in enumerate(said.msg.tool_uses)]


def _call(index: int, use: ToolUseBlock, id: str, arguments: str) -> dict[str, Any]:
    function = {"name": use.name, "arguments": arguments}
    return {"index": index, "id": id, "type": "function", "function": function}


def _call_deltas(index: int, use: ToolUseBlock, size: int) -> Iterator[dict[str, Any]]:
    """The pieces of a call: the name on the first, an empty id on the later ones."""
    yield _call(index, use, use.id, "")
    for piece in pieces(use.arguments, size):
        yield {"index": index, "id": "", "type": "function", "function": {"arguments": piece}}


def _usage(usage: Usage) -> dict[str, Any]:
    return {
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "total_tokens": usage.total_tokens,
        "prompt_tokens_details": {"cached_tokens": usage.cache_read_tokens},
        "output_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
    }
