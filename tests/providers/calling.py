"""ChatModels whose SDK clients call a loopback server."""

import threading
from collections.abc import Callable
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final, Protocol, Self

from agentkit import ChatModel, Msg
from agentkit.testing import LoopbackServer
from tests.providers import user

__all__ = [
    "BURST",
    "HELLO",
    "MODELS",
    "SDKS",
    "RawRequest",
    "RawServer",
    "StallingServer",
    "make_raw_model",
    "create_model",
    "open_stream",
    "options",
    "read_stream",
    "write_answer",
]

HELLO: Final = [user("Is anybody there?")]
BURST: Final = "So many words. " * 40
"""Text that a server streams in many pieces."""

MODELS: Final = {
    "anthropic": "claude-opus-5",
    "dashscope": "qwen-plus",
    "deepseek": "deepseek-v4",
    "gemini": "gemini-3-pro",
    "openai": "gpt-6-luna",
    "openai-responses": "gpt-6-luna",
}
SDKS: Final = {
    "anthropic": {"anthropic"},
    "dashscope": {"dashscope"},
    "dashscope-compatible": {"openai"},
    "deepseek": {"openai"},
    "gemini": {"google"},
    "ollama": {"ollama"},
    "openai": {"openai"},
    "openai-responses": {"openai"},
    "vllm": {"openai"},
}
"""Packages of the SDKs, whose errors are the causes of the errors of agentkit."""
_NO_RETRIES: Final = frozenset({"gemini", "ollama", "ollama-raw"})  # their clients retry only on request
_KEY: Final = "sk-loopback"


class Server(Protocol):
    """Server with an address."""

    def url(self, provider: str | None = None) -> str: ...


@dataclass(frozen=True)
class RawRequest:
    """A request that a `RawServer` received. Names of headers are lowercase."""

    path: str
    headers: dict[str, str]
    body: bytes


class RawServer:
    """A server that answers each request with bytes, fixed or from a function, and closes the connection."""

    def __init__(self, answer: bytes | Callable[[RawRequest], bytes]) -> None:
        self.answer = answer
        self.requests: list[RawRequest] = []
        owner = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers.get("content-length", "0")))
                headers = {name.lower(): value for name, value in self.headers.items()}
                owner.requests.append(RawRequest(self.path, headers, body))
                owner.reply(self)

            do_GET = do_POST  # noqa: N815

            def log_message(self, format: str, *args: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})

    def reply(self, handler: BaseHTTPRequestHandler) -> None:
        """Sends the answer."""
        handler.wfile.write(self.answer if isinstance(self.answer, bytes) else self.answer(self.requests[-1]))

    @property
    def address(self) -> str:
        """The URL of the server, without a path."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def url(self, provider: str | None = None) -> str:
        return f"{self.address}/v1"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


class StallingServer(RawServer):
    """A server that begins its answer, if any, and then sends nothing more and never closes."""

    def __init__(self, answer: bytes = b"") -> None:
        super().__init__(answer)
        self.over = threading.Event()

    def reply(self, handler: BaseHTTPRequestHandler) -> None:
        super().reply(handler)
        self.over.wait(30)

    def __exit__(self, *_: object) -> None:
        self.over.set()
        super().__exit__()


def options(provider: str, server: Server, retries: int = 0) -> dict[str, Any]:
    """Returns the options of an SDK client for a server: its address, a key, and the number of retries."""
    client_options: dict[str, Any] = {"base_url": server.url(provider), "api_key": _KEY}
    return client_options if provider in _NO_RETRIES else {**client_options, "max_retries": retries}


def create_model(provider: str, server: LoopbackServer, *, retries: int = 0, **arguments: Any) -> ChatModel:
    """Returns a model of a provider that calls a server."""
    arguments.setdefault("client_options", options(provider, server, retries))
    return ChatModel(provider, arguments.pop("model", MODELS.get(provider, "some-model")), **arguments)


def make_raw_model(provider: str, server: RawServer, **more: Any) -> ChatModel:
    """Returns a model at a server with fixed replies."""
    return ChatModel(provider, "some-model", client_options=options(provider, server), **more)


async def read_stream(model: ChatModel, msgs: list[Msg], **options: Any) -> tuple[list[str], Msg]:
    """Returns the types of the events of a stream, and its message."""
    async with model.stream(msgs, **options) as stream:
        kinds = [str(event.type) async for event in stream]
    return kinds, stream.message


def open_stream(body: bytes) -> bytes:
    """Returns the head of a streamed response without a length, and the start of its body."""
    return b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n" + body


def write_answer(status: int, body: bytes, *headers: str) -> bytes:
    """Returns a complete HTTP response."""
    head = [f"HTTP/1.1 {status} Answer", f"content-length: {len(body)}", "connection: close", *headers, "", ""]
    return "\r\n".join(head).encode() + body
