"""Official SDK clients with a transport in memory, and replies in the format of each API."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import anyio.lowlevel

from agentkit import Msg, ToolUseBlock, Usage
from agentkit.testing.replies import NormalizedReply, ReceivedCall, Reply
from agentkit.testing.routes import find_route
from agentkit.testing.service import encode_json

__all__ = ["APIS", "Response", "StreamedReply", "CLIENTS", "build_stream", "build_response", "stream_message"]

APIS = {
    "OpenAI Chat": ("openai", "/v1/chat/completions"),
    "OpenAI Responses": ("openai-responses", "/v1/responses"),
    "Anthropic": ("anthropic", "/v1/messages"),
    "Gemini": ("gemini", "/v1beta/models/gemini-3:streamGenerateContent"),
    "Ollama": ("ollama", "/api/chat"),
    "DashScope": ("dashscope", "/api/v1/services/aigc/text-generation/generation"),
}
"""Provider and endpoint path of each API, by the name in tables."""

_DELTA_SIZE = 6  # characters in each delta: about one token
_WORDS = "the report on rain in spring was moved to a shelf since nobody had asked for it "


@dataclass(frozen=True, slots=True)
class StreamedReply:
    """Streamed reply, as native events and as the bytes of each event."""

    events: Sequence[dict[str, Any]]
    frames: Sequence[bytes]

    @property
    def response(self) -> Response:
        """HTTP response with one event in each chunk."""
        return Response(self.frames, "text/event-stream")


@dataclass(frozen=True, slots=True)
class Response:
    """HTTP response to every request of a client, with a body in chunks."""

    chunks: Sequence[bytes]
    media_type: str = "application/json"
    has_checkpoints: bool = False  # True to let other tasks run before each chunk, as a network does


def _build_text(length: int) -> str:
    return (_WORDS * (length // len(_WORDS) + 1))[:length]


def _build_msg(delta_kind: str, delta_count: int) -> Msg:
    """Returns a message with a text, or with a tool call, for `delta_count` deltas."""
    if delta_kind == "text":
        return Msg("assistant", _build_text(delta_count * _DELTA_SIZE), "assistant")
    frame = len('{"content":""}')
    call = ToolUseBlock("call_1", "write_file", {"content": _build_text(delta_count * _DELTA_SIZE - frame)})
    return Msg("assistant", [call], "assistant")


def build_stream(api: str, delta_kind: str, delta_count: int) -> StreamedReply:
    """Returns a streamed reply of an API. `delta_kind` is `text` or `tools`."""
    return stream_message(api, _build_msg(delta_kind, delta_count))


def stream_message(api: str, msg: Msg) -> StreamedReply:
    """Returns a message as a streamed reply of an API, with 6 characters in each delta."""
    _, path = APIS[api]
    route = find_route(path)
    assert route is not None
    body: dict[str, Any] = {"stream_options": {"include_usage": True}, "parameters": {"incremental_output": True}}
    call = ReceivedCall("model-1", body, is_streamed=True)
    usage = Usage(1_000, len(msg.text) // _DELTA_SIZE)
    reply = NormalizedReply.normalize(msg, Reply("", usage=usage, piece_size=_DELTA_SIZE), {})
    service = route.service
    events = [*service.build_events(reply, call)]
    return StreamedReply(events, [*service.encode_events(events), *filter(None, [service.stream_end])])


def build_response(api: str) -> Response:
    """Returns the HTTP response with a short reply that is not streamed."""
    _, path = APIS[api]
    route = find_route(path)
    assert route is not None
    msg = Msg("assistant", _build_text(200), "assistant")
    reply = NormalizedReply.normalize(msg, Reply("", usage=Usage(1_000, 50)), {})
    call = ReceivedCall("model-1", {}, is_streamed=False)
    return Response([encode_json(route.service.build_reply(reply, call))])


def _create_http_client(sdk: Any, response: Response) -> Any:
    """Returns an async client of the HTTP library that an SDK uses, with a transport in memory."""
    http: Any = import_module(sdk.DefaultAsyncHttpxClient.__mro__[1].__module__.partition(".")[0])
    return _create_mock_client(http, response)


def _create_mock_client(http: Any, response: Response) -> Any:
    async def chunks(_: object) -> AsyncIterator[bytes]:
        for chunk in response.chunks:
            if response.has_checkpoints:
                await anyio.lowlevel.checkpoint()
            yield chunk

    body = type("Body", (http.AsyncByteStream,), {"__aiter__": chunks})

    def respond(_: object) -> Any:
        return http.Response(200, headers={"content-type": response.media_type}, stream=body())

    return http.AsyncClient(transport=http.MockTransport(respond))


def _create_openai_client(response: Response) -> Any:
    sdk: Any = import_module("openai")
    return sdk.AsyncOpenAI(api_key="none", max_retries=0, http_client=_create_http_client(sdk, response))


def _create_anthropic_client(response: Response) -> Any:
    sdk: Any = import_module("anthropic")
    return sdk.AsyncAnthropic(api_key="none", max_retries=0, http_client=_create_http_client(sdk, response))


def _create_gemini_client(response: Response) -> Any:
    sdk, types = import_module("google.genai"), import_module("google.genai.types")
    http = _create_mock_client(import_module("httpx2"), response)
    return sdk.Client(api_key="none", http_options=types.HttpOptions(httpx_async_client=http))


CLIENTS: dict[str, Callable[[Response], Any]] = {
    "OpenAI Chat": _create_openai_client,
    "OpenAI Responses": _create_openai_client,
    "Anthropic": _create_anthropic_client,
    "Gemini": _create_gemini_client,
}
"""Function from a response to an async client of the SDK, by API. The client always gets this response."""
