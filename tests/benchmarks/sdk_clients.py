"""Official SDK clients over a transport that answers from memory, and replies as the bytes of each wire."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, TypeAlias

import anyio.lowlevel

from agentkit import Msg, ToolUseBlock, Usage
from agentkit.testing.replies import NormalizedReply, ReceivedCall, Reply
from agentkit.testing.routes import find_route
from agentkit.testing.service import encode_json

__all__ = ["APIS", "Response", "StreamedReply", "CLIENTS", "build_stream", "build_response"]

APIS = {
    "OpenAI Chat": ("openai", "/v1/chat/completions"),
    "OpenAI Responses": ("openai-responses", "/v1/responses"),
    "Anthropic": ("anthropic", "/v1/messages"),
    "Gemini": ("gemini", "/v1beta/models/gemini-3:streamGenerateContent"),
    "Ollama": ("ollama", "/api/chat"),
    "DashScope": ("dashscope", "/api/v1/services/aigc/text-generation/generation"),
}
"""Wires by the name they are shown under: the provider, and where its service answers."""

_PIECE = 6  # characters a delta: about what a token is
_WORDS = "the report on rain in spring was moved to a shelf since nobody had asked for it "


@dataclass(frozen=True, slots=True)
class StreamedReply:
    """A reply of so many deltas, as native events and as the bytes of each."""

    events: Sequence[dict[str, Any]]
    frames: Sequence[bytes]

    @property
    def response(self) -> Response:
        """As a transport gives it: one event a chunk."""
        return Response(self.frames, "text/event-stream")


@dataclass(frozen=True, slots=True)
class Response:
    """What a transport answers every request with: the chunks of a body."""

    chunks: Sequence[bytes]
    media_type: str = "application/json"
    turns: bool = False  # whether others get a turn before each chunk, as with a network


Http: TypeAlias = Callable[[Any, Response], Any]


def _text(length: int) -> str:
    return (_WORDS * (length // len(_WORDS) + 1))[:length]


def _said(kind: str, number: int) -> Msg:
    """A text, or the arguments of one call, in so many pieces."""
    if kind == "text":
        return Msg("assistant", _text(number * _PIECE), "assistant")
    frame = len('{"content":""}')
    call = ToolUseBlock("call_1", "write_file", {"content": _text(number * _PIECE - frame)})
    return Msg("assistant", [call], "assistant")


def build_stream(api: str, kind: str, number: int) -> StreamedReply:
    """A reply as the wire streams it; `kind` is `text` or `tools`."""
    _, path = APIS[api]
    target = find_route(path)
    assert target is not None
    body: dict[str, Any] = {"stream_options": {"include_usage": True}, "parameters": {"incremental_output": True}}
    call = ReceivedCall("model-1", body, is_streamed=True)
    said = NormalizedReply.normalize(
        _said(kind, number), Reply("", usage=Usage(1_000, number), piece_size=_PIECE), {}
    )
    service = target.service
    events = [*service.build_events(said, call)]
    return StreamedReply(events, [*service.encode_events(events), *filter(None, [service.stream_end])])


def build_response(api: str) -> Response:
    """A short reply, whole."""
    _, path = APIS[api]
    target = find_route(path)
    assert target is not None
    msg = Msg("assistant", _text(200), "assistant")
    said = NormalizedReply.normalize(msg, Reply("", usage=Usage(1_000, 50)), {})
    call = ReceivedCall("model-1", {}, is_streamed=False)
    return Response([encode_json(target.service.build_reply(said, call))])


def _http(sdk: Any, response: Response) -> Any:
    """An async client of the HTTP library that an SDK is built on, which answers from memory."""
    http: Any = import_module(sdk.DefaultAsyncHttpxClient.__mro__[1].__module__.partition(".")[0])
    return _client(http, response)


def _client(http: Any, response: Response) -> Any:
    async def chunks(_: object) -> AsyncIterator[bytes]:
        for chunk in response.chunks:
            if response.turns:
                await anyio.lowlevel.checkpoint()
            yield chunk

    body = type("Body", (http.AsyncByteStream,), {"__aiter__": chunks})

    def answered(_: object) -> Any:
        return http.Response(200, headers={"content-type": response.media_type}, stream=body())

    return http.AsyncClient(transport=http.MockTransport(answered))


def _openai(response: Response) -> Any:
    sdk: Any = import_module("openai")
    return sdk.AsyncOpenAI(api_key="none", max_retries=0, http_client=_http(sdk, response))


def _anthropic(response: Response) -> Any:
    sdk: Any = import_module("anthropic")
    return sdk.AsyncAnthropic(api_key="none", max_retries=0, http_client=_http(sdk, response))


def _gemini(response: Response) -> Any:
    sdk, types = import_module("google.genai"), import_module("google.genai.types")
    http = _client(import_module("httpx2"), response)
    return sdk.Client(api_key="none", http_options=types.HttpOptions(httpx_async_client=http))


CLIENTS: dict[str, Callable[[Response], Any]] = {
    "OpenAI Chat": _openai,
    "OpenAI Responses": _openai,
    "Anthropic": _anthropic,
    "Gemini": _gemini,
}
"""The official SDK's async client of each wire, over a transport that gives one answer to everything."""
