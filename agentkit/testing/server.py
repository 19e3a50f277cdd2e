"""`LoopbackServer`: a server on this machine that speaks every wire, for tests through the real SDK clients.

Standard library alone, in threads of its own: it serves any event loop and any HTTP client alike.
"""

from __future__ import annotations

import json
import threading
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from select import select
from socket import MSG_PEEK, SHUT_RDWR, socket
from socketserver import TCPServer
from typing import TYPE_CHECKING, Any, Self, cast
from urllib.parse import unquote, urlsplit

from agentkit.errors import OptionError
from agentkit.reprs import bounded_repr
from agentkit.testing.demo import demo_reply
from agentkit.testing.exchange import answer_to, first_of
from agentkit.testing.replies import LoopbackError, PlayableReply
from agentkit.testing.routes import BASES, Target, find_route
from agentkit.testing.wire import encoded

if TYPE_CHECKING:
    from types import TracebackType

    from agentkit.testing.exchange import Answer

__all__ = ["LoopbackServer", "RecordedRequest"]


@dataclass(eq=False)
class RecordedRequest:
    """A request that the server got.

    provider      whose wire it came on; `path` is the whole path with its query
    headers       with their names in lower case
    body          the decoded JSON, `raw` its bytes
    model         the model that is asked for
    streamed      whether a stream is asked for
    refused       what the server said of broken pairs; None: it took the request
    disconnected  whether the client went away before the reply was over
    """

    provider: str
    path: str
    headers: dict[str, str] = field(repr=False)  # a key may be among them
    body: Any
    raw: bytes
    model: str = ""
    streamed: bool = False
    refused: str | None = None
    disconnected: bool = False
    _over: threading.Event = field(default_factory=threading.Event, repr=False)

    __repr__ = bounded_repr

    def wait(self, seconds: float = 10.0) -> Self:
        """This request when its exchange is over. Raises TimeoutError if it is not after so many seconds."""
        if not self._over.wait(seconds):
            raise TimeoutError(f"{self.path} is still being answered after {seconds} s")
        return self

    def over(self) -> None:
        """Mark the exchange as over."""
        self._over.set()


class LoopbackServer:
    """A server on a free port of 127.0.0.1 that speaks every wire.

        with LoopbackServer([Msg("Friday", "Hello.", "assistant"), LoopbackError(429, "Slow down.")]) as server:
            client = AsyncOpenAI(api_key="none", base_url=server.url("openai"))
            ...
            assert server.requests[0].body["messages"] == [...]

    replies   one reply for every call, or a list of them to be played in order; see `PlayableReply`
    agent     answer by the rule of `demo_reply`
    validate  answer 400 in the provider's words where calls and results do not pair
    port      0 for any free one

    `requests` are the calls that came, in their order; `strays` the paths that are no service's.

    A call beyond the list is answered with an error. What went wrong in the server itself (a reply that the wire
    has no words for, a function that raises) is answered as an error too, kept in `faults`, and raised when the
    context ends.
    """

    def __init__(
        self,
        replies: PlayableReply | Sequence[PlayableReply] = "Hello.",
        *,
        agent: bool = False,
        validate: bool = True,
        port: int = 0,
    ) -> None:
        self._always: PlayableReply | None = demo_reply if agent else None
        self._queue: deque[PlayableReply] = deque()
        if isinstance(replies, list | tuple):
            self._queue.extend(cast("Sequence[PlayableReply]", replies))
        elif not agent:
            self._always = cast("PlayableReply", replies)
        self._validate = validate
        self._lock = threading.Lock()
        self._connections: set[socket] = set()
        self._server = _Server(("127.0.0.1", port), _handler(self, self._connections))
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True
        )
        self.requests: list[RecordedRequest] = []
        self.strays: list[str] = []
        self.faults: list[BaseException] = self._server.faults

    @property
    def port(self) -> int:
        """The port that it listens on."""
        return int(self._server.server_address[1])

    def url(self, provider: str | None = None) -> str:
        """The base URL for a provider's SDK client; the server's own without one.

        `azure` is an `azure_endpoint`, `anthropic-vertex` and `bedrock` are those of Anthropic's clients there.
        """
        base = "" if provider is None else BASES.get(provider)
        if base is None:
            known = ", ".join(sorted(BASES))
            raise OptionError("provider", f"no wire of {provider!r} is spoken here", f"Take one of {known}.")
        return f"http://127.0.0.1:{self.port}{base}"

    def client_options(self, provider: str) -> dict[str, Any]:
        """What makes a ChatModel call this server: `ChatModel("openai:any", client_options=…)`. No retries."""
        url = self.url(provider)
        if provider == "ollama":
            return {"host": url}
        if provider == "gemini":
            return {"api_key": "loopback", "http_options": {"base_url": url, "api_version": "v1beta"}}
        retries = {} if provider == "dashscope" else {"max_retries": 0}
        return {"api_key": "loopback", "base_url": url, **retries}

    def play(self, *replies: PlayableReply) -> None:
        """Play further replies, behind those that wait and before the one for every call."""
        with self._lock:
            self._queue.extend(replies)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._thread.join()
        self._close()
        if self.faults and error is None:
            raise self.faults[0]

    def serve_forever(self) -> None:
        """Serve in this thread until it is interrupted."""
        try:
            self._server.serve_forever()
        finally:
            self._close()

    def _close(self) -> None:
        """End the connections that are kept alive, and wait for their threads."""
        for connection in [*self._connections]:
            _break(connection)
        self._server.server_close()

    def answer(self, target: Target, request: RecordedRequest) -> Answer:
        """The answer to a request; the next reply is used up by it."""
        try:
            return answer_to(target, request, self._next, validate=self._validate)
        except Exception as fault:
            self.faults.append(fault)
            return first_of(target, LoopbackError(400, f"LoopbackServer: {fault}"))

    def _next(self) -> PlayableReply:
        with self._lock:
            if self._queue:
                return self._queue.popleft()
        if self._always is None:
            return LoopbackError(400, "LoopbackServer: no reply is left to play")
        return self._always


# -- HTTP -------------------------------------------------------------------------------------------------------


class _Server(ThreadingHTTPServer):
    daemon_threads = False
    request_queue_size = 512

    def __init__(self, address: tuple[str, int], handler: type[BaseHTTPRequestHandler]) -> None:
        super().__init__(address, handler)
        self.faults: list[BaseException] = []

    def server_bind(self) -> None:
        """Bind without asking what this machine is called, which can take seconds."""
        TCPServer.server_bind(self)
        self.server_name, self.server_port = "127.0.0.1", int(self.server_address[1])

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that goes away is nothing to report."""
        import sys

        error = sys.exc_info()[1]
        if error is not None and not isinstance(error, OSError):
            self.faults.append(error)


def _break(connection: socket) -> None:
    with suppress(OSError):  # it may be gone already
        connection.shutdown(SHUT_RDWR)


def _handler(server: LoopbackServer, open: set[socket]) -> type[BaseHTTPRequestHandler]:
    class Handler(_Handler):
        owner = server
        connections = open

    return Handler


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    owner: LoopbackServer
    connections: set[socket]

    def setup(self) -> None:
        super().setup()
        self.connections.add(self.connection)

    def finish(self) -> None:
        self.connections.discard(self.connection)
        super().finish()

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing on standard error."""

    def do_GET(self) -> None:
        self.owner.strays.append(self.path)
        self._whole(404, {}, encoded({"error": {"message": f"no service at {self.path}"}}), None)

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers.get("content-length", "0")))
        target = find_route(unquote(urlsplit(self.path).path))
        if target is None:
            self.do_GET()
            return
        request = self._recorded(target, raw)
        self.owner.requests.append(request)
        try:
            self._send(self.owner.answer(target, request), request)
        except OSError:
            request.disconnected = True
            self.close_connection = True
        finally:
            request.over()

    def _recorded(self, target: Target, raw: bytes) -> RecordedRequest:
        headers = {name.lower(): value for name, value in self.headers.items()}
        try:
            found: Any = json.loads(raw)
        except ValueError:
            found = None
        body = cast("dict[str, Any]", found) if isinstance(found, dict) else {}
        model = target.model or str(body.get("model", ""))
        streamed = target.streamed(body, headers)
        return RecordedRequest(target.provider, self.path, headers, found, raw, model, streamed)

    def _send(self, answer: Answer, request: RecordedRequest) -> None:
        if answer.frames is None:
            self._await(answer.delay, request)
            self._whole(answer.status, answer.headers, answer.body, answer.cut_after_bytes)
        else:
            self._stream(answer, answer.frames, request)

    def _whole(self, status: int, headers: Mapping[str, str], body: bytes, cut: int | None) -> None:
        self._begin(status, {"content-type": "application/json", **headers, "content-length": str(len(body))})
        self.wfile.write(body[:cut])
        if cut is not None:
            self._cut()

    def _stream(self, answer: Answer, frames: Iterable[bytes], request: RecordedRequest) -> None:
        self._begin(answer.status, {**answer.headers, "transfer-encoding": "chunked"})
        left = answer.cut_after_bytes
        for number, frame in enumerate(frames):
            if number == answer.cut_after:
                return self._cut()
            self._await(answer.delay, request)
            if left is not None and len(frame) >= left:
                self._chunk(frame[:left])
                return self._cut()
            self._chunk(frame)
            left = None if left is None else left - len(frame)
        if answer.cut_after is not None:
            return self._cut()
        self.wfile.write(b"0\r\n\r\n")
        return None

    def _begin(self, status: int, headers: Mapping[str, str]) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()

    def _chunk(self, data: bytes) -> None:
        if data:  # an empty chunk would end the body
            self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))

    def _await(self, seconds: float, request: RecordedRequest) -> None:
        """Wait so long, or until the client goes away."""
        ready, _, _ = select([self.connection], [], [], seconds)
        if ready and not self.connection.recv(1, MSG_PEEK):
            raise BrokenPipeError(f"the client of {request.path} went away")

    def _cut(self) -> None:
        self.close_connection = True
        _break(self.connection)
