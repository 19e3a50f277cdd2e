"""ChatModels whose SDK clients call a loopback server."""

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final, Protocol, Self

from agentkit import ChatModel
from agentkit.testing import LoopbackServer

__all__ = ["MODELS", "RawServer", "model_of", "options"]

MODELS: Final = {
    "anthropic": "claude-opus-5",
    "dashscope": "qwen-plus",
    "deepseek": "deepseek-v4",
    "gemini": "gemini-3-pro",
    "openai": "gpt-6-luna",
    "openai-responses": "gpt-6-luna",
}
_NO_RETRIES: Final = frozenset({"gemini", "ollama"})  # their clients try nothing again unless told to
_KEY: Final = "sk-loopback"


class Server(Protocol):
    """What has an address."""

    def url(self, provider: str | None = None) -> str: ...


class RawServer:
    """A server that answers any request with the same bytes, and closes the connection."""

    def __init__(self, answer: bytes) -> None:
        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                self.rfile.read(int(self.headers.get("content-length", "0")))
                self.wfile.write(answer)

            def log_message(self, format: str, *args: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})

    def url(self, provider: str | None = None) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


def options(provider: str, server: Server, retries: int = 0) -> dict[str, Any]:
    """The options of an SDK's client for a server: its address, a key, and how often to try again."""
    found: dict[str, Any] = {"base_url": server.url(provider), "api_key": _KEY}
    return found if provider in _NO_RETRIES else {**found, "max_retries": retries}


def model_of(provider: str, server: LoopbackServer, *, retries: int = 0, **given: Any) -> ChatModel:
    """A model of a provider, at a server."""
    given.setdefault("client_options", options(provider, server, retries))
    return ChatModel(provider, given.pop("model", MODELS.get(provider, "some-model")), **given)
