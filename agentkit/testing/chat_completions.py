"""The wire of OpenAI's Chat Completions, and what servers of the same shape do differently.

Shapes: `openai.types.chat.ChatCompletion` and `ChatCompletionChunk`; the vendors' own documents for the rest.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from agentkit.messages.blocks import AudioBlock, TextBlock, ThinkingBlock, ToolUseBlock
from agentkit.messages.sources import Base64Source
from agentkit.messages.usage import FinishReason, Usage
from agentkit.testing import pairing
from agentkit.testing.replies import (
    LoopbackError,
    NormalizedReply,
    ReceivedCall,
    is_refusal,
    notes_of,
    pieces,
    unsayable,
)
from agentkit.testing.wire import Wire

__all__ = ["ChatCompletions", "DIALECTS", "Dialect", "openai_error"]

CREATED: Final = 1_760_000_000

REASONS: Final[dict[str, str]] = {
    FinishReason.STOP: "stop",
    FinishReason.LENGTH: "length",
    FinishReason.TOOL_USE: "tool_calls",
    FinishReason.CONTENT_FILTER: "content_filter",
    FinishReason.REFUSAL: "stop",
}

TYPES: Final[dict[int, tuple[str, str | None]]] = {
    # Type and code that stand in OpenAI's error object, by status.
    400: ("invalid_request_error", None),
    401: ("invalid_request_error", "invalid_api_key"),
    403: ("invalid_request_error", "unsupported_country_region_territory"),
    404: ("invalid_request_error", "model_not_found"),
    429: ("requests", "rate_limit_exceeded"),
    500: ("server_error", None),
    503: ("server_error", "overloaded"),
}


@dataclass(frozen=True, slots=True)
class Dialect:
    """What a server of this shape does in its own way.

    thinking      the key that reasoning stands under; None: the server never shows it
    later_id      the id that later pieces of a call repeat; None: they have none
    usage_inside  whether the usage stands in the last chunk that has a choice
    hits          whether it reports the cache in keys of its own as well
    prompt_chunk  whether a chunk about the prompt comes first, without a choice
    code_number   whether the error's code is the status as a number
    """

    thinking: str | None = None
    later_id: str | None = None
    usage_inside: bool = False
    hits: bool = False
    prompt_chunk: bool = False
    code_number: bool = False


DIALECTS: Final[dict[str, Dialect]] = {
    "openai": Dialect(),
    "azure": Dialect(prompt_chunk=True),  # Azure puts `prompt_filter_results` in a chunk of its own
    "deepseek": Dialect(thinking="reasoning_content", usage_inside=True, hits=True),
    "dashscope-compatible": Dialect(thinking="reasoning_content", later_id=""),
    "vllm": Dialect(thinking="reasoning", code_number=True),  # docs/features/reasoning_outputs.md
}


class ChatCompletions(Wire):
    """Replies of `POST /chat/completions`."""

    ending: ClassVar[bytes] = b"data: [DONE]\n\n"
    prompt_keys: ClassVar[tuple[str, ...]] = ("messages", "tools")

    def __init__(self, dialect: Dialect) -> None:
        self.dialect = dialect

    def whole(self, said: NormalizedReply, call: ReceivedCall) -> dict[str, Any]:
        choice = {"index": 0, "message": self._message(said), "logprobs": None, "finish_reason": _word(said)}
        head = _head(said, call, "chat.completion")
        return {**head, "choices": [choice], "usage": self._usage(said.usage)}

    def _message(self, said: NormalizedReply) -> dict[str, Any]:
        text = "".join(one.text for one in _texts(said, refused=False))
        refused = "".join(one.text for one in _texts(said, refused=True))
        calls = [_tool_call(use) for use in said.msg.tool_uses]
        message: dict[str, Any] = {"role": "assistant", "content": text or None, "refusal": refused or None}
        if self.dialect.thinking:
            message[self.dialect.thinking] = self._thoughts(said) or None
        notes = [note for one in _texts(said, refused=False) for note in notes_of(one)]
        rest: dict[str, Any] = {"annotations": notes, "tool_calls": calls, "audio": _audio(said)}
        return message | {key: item for key, item in rest.items() if item}

    def _thoughts(self, said: NormalizedReply) -> str:
        thoughts = "".join(one.thinking for one in said.msg.blocks if isinstance(one, ThinkingBlock))
        if thoughts and not self.dialect.thinking:
            raise unsayable("Chat Completions", "thinking")
        return thoughts

    def events(self, said: NormalizedReply, call: ReceivedCall) -> Iterator[dict[str, Any]]:
        head = _head(said, call, "chat.completion.chunk")
        options: Mapping[str, Any] = call.body.get("stream_options") or {}
        asked = options.get("include_usage") is True
        if self.dialect.prompt_chunk:
            empty: dict[str, Any] = {"id": "", "object": "", "created": 0, "model": "", "choices": []}
            yield {**empty, "prompt_filter_results": [{"prompt_index": 0, "content_filter_results": {}}]}
        beside: dict[str, Any] = {"usage": None} if asked and not self.dialect.usage_inside else {}
        for delta in self._deltas(said):
            yield {**head, "choices": [_choice(delta, None)], **beside}
        usage = self._usage(said.usage)
        last = {**head, "choices": [_choice({}, _word(said))], **beside}
        if self.dialect.usage_inside:
            yield {**last, "usage": usage}
            return
        yield last
        if asked:
            yield {**head, "choices": [], "usage": usage}

    def _deltas(self, said: NormalizedReply) -> Iterator[dict[str, Any]]:
        calls_alone = not any(isinstance(block, TextBlock) for block in said.msg.blocks)
        first: dict[str, Any] = {"role": "assistant", "content": None if calls_alone else ""}
        thoughts, key = self._thoughts(said), self.dialect.thinking
        yield first | ({key: ""} if key and thoughts else {"refusal": None})
        if key:
            yield from ({"content": None, key: piece} for piece in pieces(thoughts, said.piece))
        for block in said.msg.blocks:
            if isinstance(block, TextBlock):
                yield from self._text_deltas(block, said.piece)
        for index, use in enumerate(said.msg.tool_uses):
            yield from self._call_deltas(index, use, said.piece)
        yield from _audio_deltas(_audio(said), said.piece)

    def _text_deltas(self, block: TextBlock, size: int) -> Iterator[dict[str, Any]]:
        key = "refusal" if is_refusal(block) else "content"
        yield from ({key: piece} for piece in pieces(block.text, size))
        if notes := notes_of(block):
            yield {"annotations": notes}

    def _call_deltas(self, index: int, use: ToolUseBlock, size: int) -> Iterator[dict[str, Any]]:
        function = {"name": use.name, "arguments": ""}
        yield {"tool_calls": [{"index": index, "id": use.id, "type": "function", "function": function}]}
        repeated: dict[str, Any] = {} if self.dialect.later_id is None else {"id": self.dialect.later_id}
        for piece in pieces(use.arguments, size):
            yield {"tool_calls": [{"index": index, **repeated, "function": {"arguments": piece}}]}

    def _usage(self, usage: Usage) -> dict[str, Any]:
        read, written = usage.cache_read_tokens, usage.cache_write_tokens
        found: dict[str, Any] = {
            "prompt_tokens": usage.input_tokens,
            "completion_tokens": usage.output_tokens,
            "total_tokens": usage.total_tokens,
            "prompt_tokens_details": {"cached_tokens": read},
            "completion_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
        }
        if written:
            found["prompt_tokens_details"]["cache_write_tokens"] = written
        if self.dialect.hits:
            found |= {"prompt_cache_hit_tokens": read, "prompt_cache_miss_tokens": usage.input_tokens - read}
        return found

    def error(self, error: LoopbackError) -> dict[str, Any]:
        return openai_error(error, code_number=self.dialect.code_number)

    def refusal(self, call: ReceivedCall) -> str | None:
        return pairing.of_chat(call.body)


def openai_error(error: LoopbackError, *, code_number: bool = False) -> dict[str, Any]:
    """OpenAI's error object, or vLLM's, whose code is the status."""
    if code_number:
        said = {"message": error.message, "type": error.code or "BadRequestError", "param": None}
        return {"error": {**said, "code": error.status}}
    kind, code = TYPES.get(
        error.status, ("server_error" if error.status >= 500 else "invalid_request_error", None)
    )
    return {"error": {"message": error.message, "type": kind, "param": None, "code": error.code or code}}


def _head(said: NormalizedReply, call: ReceivedCall, kind: str) -> dict[str, Any]:
    return {"id": f"chatcmpl-{said.id}", "object": kind, "created": CREATED, "model": call.model}


def _word(said: NormalizedReply) -> str:
    return REASONS.get(said.reason, str(said.reason))


def _choice(delta: Mapping[str, Any], reason: str | None) -> dict[str, Any]:
    return {"index": 0, "delta": delta, "logprobs": None, "finish_reason": reason}


def _texts(said: NormalizedReply, *, refused: bool) -> list[TextBlock]:
    return [one for one in said.msg.blocks if isinstance(one, TextBlock) and is_refusal(one) is refused]


def _tool_call(use: ToolUseBlock) -> dict[str, Any]:
    return {"id": use.id, "type": "function", "function": {"name": use.name, "arguments": use.arguments}}


def _audio(said: NormalizedReply) -> dict[str, Any] | None:
    """The audio object: the sound, and what is said in it, which the block's metadata may have."""
    for block in said.msg.blocks:
        if isinstance(block, AudioBlock) and isinstance(block.source, Base64Source):
            words = (block.metadata or {}).get("transcript", "")
            held = {"data": block.source.data, "expires_at": CREATED + 3600, "transcript": words}
            return {"id": f"audio_{said.id}", **held}
    unsaid = [block.type for block in said.msg.blocks if block.type not in {"text", "thinking", "tool_use"}]
    if unsaid:
        raise unsayable("Chat Completions", unsaid[0])
    return None


def _audio_deltas(audio: Mapping[str, Any] | None, size: int) -> Iterator[dict[str, Any]]:
    if audio is None:
        return
    yield {"audio": {"id": audio["id"], "transcript": ""}}
    yield from ({"audio": {"transcript": piece}} for piece in pieces(audio["transcript"], size))
    yield from ({"audio": {"data": piece}} for piece in pieces(audio["data"], 4 * 1024))
    yield {"audio": {"expires_at": audio["expires_at"]}}
