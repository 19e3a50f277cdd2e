"""Fake Chat Completions services of OpenAI, Azure and other vendors, for `agentkit.testing.LoopbackServer`.

Fake replies have the format of `openai.types.chat.ChatCompletion` and `ChatCompletionChunk`. Differences between
vendors come from the vendors' documents.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from agentkit.provider_kit import (
    AudioBlock,
    Base64Source,
    FinishReason,
    TextBlock,
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
    get_citations,
    is_refusal,
    unsupported_block,
)

__all__ = ["CREATED", "FakeChatCompletions", "ROUTES", "build_error", "chat_route", "find_unpaired_message"]

CREATED: Final = 1_760_000_000
"""Creation time of every fake reply, in Unix seconds."""

_REASONS: Final[dict[str, str]] = {
    FinishReason.STOP: "stop",
    FinishReason.LENGTH: "length",
    FinishReason.TOOL_USE: "tool_calls",
    FinishReason.CONTENT_FILTER: "content_filter",
    FinishReason.REFUSAL: "stop",
}

_ERROR_TYPES: Final[dict[int, tuple[str, str | None]]] = {
    # Type and code of OpenAI's error object, by HTTP status.
    400: ("invalid_request_error", None),
    401: ("invalid_request_error", "invalid_api_key"),
    403: ("invalid_request_error", "unsupported_country_region_territory"),
    404: ("invalid_request_error", "model_not_found"),
    429: ("requests", "rate_limit_exceeded"),
    500: ("server_error", None),
    503: ("server_error", "overloaded"),
}


@dataclass(frozen=True)
class FakeChatCompletions(FakeService):
    """Fake service for `POST /chat/completions`. The attributes describe differences from OpenAI.

    Attributes:
        reasoning_field: Message key that contains reasoning. None if replies have no reasoning.
        later_id: Id in all pieces of a streamed tool call after the first piece. None if these pieces have no id.
        has_usage_in_last_choice: True if the last chunk with a choice also reports the usage.
        has_cache_hit_keys: True if the usage also reports cached tokens under DeepSeek's keys.
        has_prompt_chunk: True if a stream begins with a chunk about the prompt. This chunk has no choice.
        has_numeric_code: True if the code of an error is the HTTP status.
    """

    reasoning_field: str | None = None
    later_id: str | None = None
    has_usage_in_last_choice: bool = False
    has_cache_hit_keys: bool = False
    has_prompt_chunk: bool = False
    has_numeric_code: bool = False

    client_defaults: ClassVar[Mapping[str, Any]] = {"max_retries": 0}
    stream_end = b"data: [DONE]\n\n"
    prompt_keys = ("messages", "tools")

    def build_reply(self, reply: NormalizedReply, call: ReceivedCall) -> dict[str, Any]:
        reason = reply.map_reason(_REASONS)
        choice = {"index": 0, "message": self._message(reply), "logprobs": None, "finish_reason": reason}
        head = _head(reply, call, "chat.completion")
        return {**head, "choices": [choice], "usage": self._usage(reply.usage)}

    def _message(self, reply: NormalizedReply) -> dict[str, Any]:
        texts = [block for block in reply.msg.blocks if isinstance(block, TextBlock)]
        message: dict[str, Any] = {
            "role": "assistant",
            "content": "".join(block.text for block in texts if not is_refusal(block)) or None,
            "refusal": "".join(block.text for block in texts if is_refusal(block)) or None,
        }
        thinking = self._thinking(reply)
        if self.reasoning_field:
            message[self.reasoning_field] = thinking or None
        optional: dict[str, Any] = {
            "annotations": [item for block in texts if not is_refusal(block) for item in get_citations(block)],
            "tool_calls": [
                {"id": use.id, "type": "function", "function": {"name": use.name, "arguments": use.arguments}}
                for use in reply.msg.tool_uses
            ],
            "audio": _audio(reply),
        }
        return message | {key: value for key, value in optional.items() if value}

    def _thinking(self, reply: NormalizedReply) -> str:
        if reply.thinking and not self.reasoning_field:
            raise unsupported_block("Chat Completions", "thinking")
        return reply.thinking

    def build_events(self, reply: NormalizedReply, call: ReceivedCall) -> Iterator[dict[str, Any]]:
        head = _head(reply, call, "chat.completion.chunk")
        includes_usage = as_object(call.body.get("stream_options")).get("include_usage") is True
        in_last_choice = self.has_usage_in_last_choice
        if self.has_prompt_chunk:
            empty: dict[str, Any] = {"id": "", "object": "", "created": 0, "model": "", "choices": []}
            yield {**empty, "prompt_filter_results": [{"prompt_index": 0, "content_filter_results": {}}]}
        no_usage: dict[str, Any] = {"usage": None} if includes_usage and not in_last_choice else {}
        for delta in self._deltas(reply):
            yield {**head, "choices": [_choice(delta, None)], **no_usage}
        usage = {"usage": self._usage(reply.usage)}
        last_choice = {"choices": [_choice({}, reply.map_reason(_REASONS))]}
        yield {**head, **last_choice, **(usage if in_last_choice else no_usage)}
        if includes_usage and not in_last_choice:
            yield {**head, "choices": [], **usage}

    def _deltas(self, reply: NormalizedReply) -> Iterator[dict[str, Any]]:
        has_text = any(isinstance(block, TextBlock) for block in reply.msg.blocks)
        first: dict[str, Any] = {"role": "assistant", "content": "" if has_text else None}
        thinking, key = self._thinking(reply), self.reasoning_field
        yield first | ({key: ""} if key and thinking else {"refusal": None})
        if key:
            yield from ({"content": None, key: piece} for piece in reply.split(thinking))
        for block in reply.msg.blocks:
            if isinstance(block, TextBlock):
                yield from _text_deltas(block, reply)
        for index, use in enumerate(reply.msg.tool_uses):
            yield from self._call_deltas(index, use, reply)
        yield from _audio_deltas(_audio(reply), reply)

    def _call_deltas(self, index: int, use: ToolUseBlock, reply: NormalizedReply) -> Iterator[dict[str, Any]]:
        function = {"name": use.name, "arguments": ""}
        yield {"tool_calls": [{"index": index, "id": use.id, "type": "function", "function": function}]}
        repeated: dict[str, Any] = {} if self.later_id is None else {"id": self.later_id}
        for piece in reply.split(use.arguments):
            yield {"tool_calls": [{"index": index, **repeated, "function": {"arguments": piece}}]}

    def _usage(self, usage: Usage) -> dict[str, Any]:
        read, written = usage.cache_read_tokens, usage.cache_write_tokens
        counts: dict[str, Any] = {
            "prompt_tokens": usage.input_tokens,
            "completion_tokens": usage.output_tokens,
            "total_tokens": usage.total_tokens,
            "prompt_tokens_details": {"cached_tokens": read},
            "completion_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
        }
        if written:
            counts["prompt_tokens_details"]["cache_write_tokens"] = written
        if self.has_cache_hit_keys:
            counts |= {"prompt_cache_hit_tokens": read, "prompt_cache_miss_tokens": usage.input_tokens - read}
        return counts

    def build_error(self, error: LoopbackError) -> dict[str, Any]:
        return build_error(error, has_numeric_code=self.has_numeric_code)

    def find_fault(self, call: ReceivedCall) -> str | None:
        messages = as_list(call.body.get("messages"))
        return find_unpaired_message(messages) if messages else _NO_MESSAGES


def build_error(error: LoopbackError, *, has_numeric_code: bool = False) -> dict[str, Any]:
    """Builds an error body in OpenAI's format, or in vLLM's format if `has_numeric_code` is True."""
    if has_numeric_code:
        fields = {"message": error.message, "type": error.code or "BadRequestError", "param": None}
        return {"error": {**fields, "code": error.status}}
    error_type, code = _ERROR_TYPES.get(error.status) or _ERROR_TYPES[500 if error.status >= 500 else 400]
    return {"error": {"message": error.message, "type": error_type, "param": None, "code": error.code or code}}


def _head(reply: NormalizedReply, call: ReceivedCall, object_type: str) -> dict[str, Any]:
    return {"id": f"chatcmpl-{reply.id}", "object": object_type, "created": CREATED, "model": call.model}


def _choice(delta: Mapping[str, Any], reason: str | None) -> dict[str, Any]:
    return {"index": 0, "delta": delta, "logprobs": None, "finish_reason": reason}


def _text_deltas(block: TextBlock, reply: NormalizedReply) -> Iterator[dict[str, Any]]:
    key = "refusal" if is_refusal(block) else "content"
    yield from ({key: piece} for piece in reply.split(block.text))
    if citations := get_citations(block):
        yield {"annotations": citations}


def _audio(reply: NormalizedReply) -> dict[str, Any] | None:
    """Returns the audio object of a reply, or None if the reply has no audio block with data.

    The transcript comes from the metadata of the audio block.
    """
    for block in reply.msg.blocks:
        if isinstance(block, AudioBlock) and isinstance(block.source, Base64Source):
            transcript = (block.metadata or {}).get("transcript", "")
            sound = {"data": block.source.data, "expires_at": CREATED + 3600, "transcript": transcript}
            return {"id": f"audio_{reply.id}", **sound}
    reply.check_blocks("Chat Completions")
    return None


def _audio_deltas(audio: Mapping[str, Any] | None, reply: NormalizedReply) -> Iterator[dict[str, Any]]:
    if audio is None:
        return
    yield {"audio": {"id": audio["id"], "transcript": ""}}
    yield from ({"audio": {"transcript": piece}} for piece in reply.split(audio["transcript"]))
    yield from ({"audio": {"data": piece}} for piece in reply.split(audio["data"], 4 * 1024))
    yield {"audio": {"expires_at": audio["expires_at"]}}


# -- refused requests ---------------------------------------------------------------------------------------------

_NO_MESSAGES: Final = "Invalid 'messages': empty array. Expected an array with minimum length 1."
_UNANSWERED: Final = (
    "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. "
    "The following tool_call_ids did not have response messages: {ids}"
)
_ORPHAN: Final = (
    "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'."
)


def find_unpaired_message(messages: Iterable[object]) -> str | None:
    """Returns the API's error message for an unpaired tool call or tool message, or None if all are paired.

    Tool messages must directly follow the message with their tool calls. The error messages are copied from
    recorded responses.
    """
    open_ids: list[str] = []
    answerable: set[str] = set()
    for message in map(as_object, messages):
        if message.get("role") == "tool":
            call_id = str(message.get("tool_call_id"))
            if call_id not in answerable:
                return _ORPHAN
            open_ids = [id for id in open_ids if id != call_id]
            continue
        if open_ids:
            break
        open_ids = [str(as_object(call).get("id")) for call in as_list(message.get("tool_calls"))]
        answerable = set(open_ids)
    return _UNANSWERED.format(ids=", ".join(open_ids)) if open_ids else None


def chat_route(provider: str, service: FakeChatCompletions) -> Route:
    """Returns a route to a fake service with the base path `/PROVIDER/v1`."""
    return Route(provider, f"/{provider}/v1/chat/completions", service, base=f"/{provider}/v1")


ROUTES: Final = (
    Route("openai", r"(?:/v1)?/chat/completions", FakeChatCompletions(), base="/v1"),
    Route(
        "azure",  # Azure sends `prompt_filter_results` in a separate chunk
        r"/openai/(?:v1|deployments/(?P<model>[^/]+))/chat/completions",
        FakeChatCompletions(has_prompt_chunk=True),
    ),
    chat_route("openrouter", FakeChatCompletions(reasoning_field="reasoning", has_numeric_code=True)),
    chat_route("mistral", FakeChatCompletions(has_usage_in_last_choice=True)),
    chat_route("llamacpp", FakeChatCompletions(reasoning_field="reasoning_content", has_numeric_code=True)),
    chat_route("compatible", FakeChatCompletions()),
)
