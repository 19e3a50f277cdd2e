"""Fake `/v1/completions` service of a local server, for `agentkit.testing.LoopbackServer`.

Fake replies have the format of `openai.types.Completion`. The field `text` has the text of the message that
a test passed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Final

from agentkit.provider_kit import FinishReason, Usage, as_object
from agentkit.testing import FakeService, LoopbackError, NormalizedReply, ReceivedCall, Route
from agentkit_openai.testing import CREATED, build_error

__all__ = ["FakeCompletions", "ROUTES"]

_REASONS: Final[dict[str, str]] = {
    FinishReason.STOP: "stop",
    FinishReason.TOOL_USE: "stop",
    FinishReason.REFUSAL: "stop",
    FinishReason.LENGTH: "length",
}
_TYPES: Final = frozenset({"text"})


class FakeCompletions(FakeService):
    """Fake service for `POST /v1/completions`."""

    client_defaults: ClassVar[Mapping[str, Any]] = {"max_retries": 0}
    stream_end = b"data: [DONE]\n\n"
    prompt_keys = ("prompt",)

    def build_reply(self, reply: NormalizedReply, call: ReceivedCall) -> dict[str, Any]:
        reply.check_blocks("/v1/completions", _TYPES)
        choices = [_choice(reply.text, reply.map_reason(_REASONS))]
        return {**_head(reply, call), "choices": choices, "usage": _usage(reply.usage)}

    def build_events(self, reply: NormalizedReply, call: ReceivedCall) -> Iterator[dict[str, Any]]:
        reply.check_blocks("/v1/completions", _TYPES)
        head = _head(reply, call)
        for piece in reply.split(reply.text):
            yield {**head, "choices": [_choice(piece, None)]}
        yield {**head, "choices": [_choice("", reply.map_reason(_REASONS))]}
        if as_object(call.body.get("stream_options")).get("include_usage") is True:
            yield {**head, "choices": [], "usage": _usage(reply.usage)}

    def build_error(self, error: LoopbackError) -> dict[str, Any]:
        return build_error(error, has_numeric_code=True)

    def find_fault(self, call: ReceivedCall) -> str | None:
        return None if isinstance(call.body.get("prompt"), str) else "prompt: Input should be a valid string"


def _head(reply: NormalizedReply, call: ReceivedCall) -> dict[str, Any]:
    return {"id": f"cmpl-{reply.id}", "object": "text_completion", "created": CREATED, "model": call.model}


def _choice(text: str, reason: str | None) -> dict[str, Any]:
    return {"index": 0, "text": text, "logprobs": None, "finish_reason": reason}


def _usage(usage: Usage) -> dict[str, Any]:
    counts = {"prompt_tokens": usage.input_tokens, "completion_tokens": usage.output_tokens}
    return {**counts, "total_tokens": usage.total_tokens}


ROUTES: Final = (Route("openai-completions", r"(?:/v1)?/completions", FakeCompletions(), base="/v1"),)
