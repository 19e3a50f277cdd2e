"""`LoopbackServer`: a local HTTP server that imitates every provider's API, for tests with real SDK clients.

The server runs in threads and needs only the standard library, so it works with any event loop and any HTTP
client.
"""

from __future__ import annotations

import json
import threading
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from select import select
from socket import MSG_PEEK, SHUT_RDWR, socket
from socketserver import TCPServer
from typing import TYPE_CHECKING, Any, Self, cast
from urllib.parse import unquote, urlsplit

from agentkit.errors import OptionError
from agentkit.json_values import as_object
from agentkit.reprs import bounded_repr
from agentkit.testing.demo import demo_reply
from agentkit.testing.exchange import answer_error, answer_request
from agentkit.testing.replies import LoopbackError, PlayableReply
from agentkit.testing.routes import Route, RouteMatch, find_provider, find_route, load_routes
from agentkit.testing.service import encode_json

if TYPE_CHECKING:
    from types import TracebackType

    from agentkit.testing.exchange import Answer

__all__ = ["LoopbackServer", "RecordedRequest"]


@dataclass(eq=False)
class RecordedRequest:
    """Request that the server received.

    Attributes:
        provider: Name of the provider whose API has the path.
        path: URL path with the query.
        headers: Headers with lower-case names.
        body: Decoded JSON body. None if the body is not JSON.
        raw: Bytes of the body.
        model: Requested model.
        streamed: True if the request asks for a stream.
        refused: Error message that the server sent because of unpaired tool calls and results. None if the server
            accepted the request.
        disconnected: True if the client disconnected before the end of the reply.
    """

    provider: str
    path: str
    headers: dict[str, str] = field(repr=False)  # headers may contain an API key
    body: Any
    raw: bytes
    model: str = ""
    streamed: bool = False
    refused: str | None = None
    disconnected: bool = False
    _finished: threading.Event = field(default_factory=threading.Event, repr=False)

    __repr__ = bounded_repr

    def wait(self, seconds: float = 10.0) -> Self:
        """Waits until the server has answered the request. Returns the request.

        Args:
            seconds: Maximum waiting time in seconds.

        Raises:
            TimeoutError: The request is not answered in time.
        """
        if not self._finished.wait(seconds):
            raise TimeoutError(f"request to {self.path!r} is still not answered after {seconds} s")
        return self

    def finish(self) -> None:
        """Marks the request as answered."""
        self._finished.set()


class LoopbackServer:
    """Server on a free port of 127.0.0.1 with the APIs of all installed providers.

    A model call after the last reply is answered with an error. If a prepared reply cannot be sent, the call is
    also answered with an error, and the end of the `with` block raises this error. Examples are a reply that the
    wire format cannot represent, and a reply function that raises an exception.

    Args:
        replies: One reply for all calls, or a list of replies to send in order. `PlayableReply` lists the types.
        agent: True to answer each call with `demo_reply`.
        validate: True to refuse requests with unpaired tool calls or results. The response then has status 400 and
            the provider's error message.
        port: Port to listen on. 0 means any free port.

    Attributes:
        requests: Received requests, in order.
        strays: Requested paths that belong to no provider's API.
        faults: Exceptions that occurred in the server.

    Example:
        >>> from agentkit import Msg
        >>> replies = [Msg("Friday", "Hello.", "assistant"), LoopbackError(429, "Slow down.")]
        >>> with LoopbackServer(replies) as server:
        ...     base_url = server.url("openai")
        >>> server.requests
        []
    """

    def __init__(
        self,
        replies: PlayableReply | Sequence[PlayableReply] = "Hello.",
        *,
        agent: bool = False,
        validate: bool = True,
        port: int = 0,
    ) -> None:
        self._is_agent = agent
        self._default_reply: PlayableReply | None = None
        self._queue: deque[PlayableReply] = deque()
        if isinstance(replies, list | tuple):
            self._queue.extend(cast("Sequence[PlayableReply]", replies))
        elif not agent:
            self._default_reply = cast("PlayableReply", replies)
        self._validate = validate
        self._lock = threading.Lock()
        self._connections: set[socket] = set()
        self._routes: tuple[Route, ...] = load_routes()
        self._server = _Server(("127.0.0.1", port), _bind_handler(self, self._connections))
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True
        )
        self.requests: list[RecordedRequest] = []
        self.strays: list[str] = []
        self.faults: list[BaseException] = self._server.faults

    @property
    def port(self) -> int:
        """Port that the server listens on."""
        return int(self._server.server_address[1])

    @property
    def providers(self) -> list[str]:
        """Sorted names that `url` accepts."""
        return sorted({route.provider for route in self._routes})

    def url(self, provider: str | None = None) -> str:
        """Returns the base URL for a provider's SDK client.

        Args:
            provider: Name of a provider or of another service. `azure` gives an `azure_endpoint`.
                `anthropic-vertex` and `bedrock` are for Anthropic's clients of these clouds. None means the root
                URL of the server.

        Raises:
            OptionError: No fake service has this name.
        """
        base = "" if provider is None else self._find_provider(provider).base
        return f"http://127.0.0.1:{self.port}{base}"

    def client_options(self, provider: str) -> dict[str, Any]:
        """Returns options that make a `ChatModel` call this server.

        Pass the options as in `ChatModel("openai:any", client_options=…)`. The options disable retries.

        Raises:
            OptionError: No fake service has this name.
        """
        return self._find_provider(provider).service.client_options(self.url(provider))

    def _find_provider(self, name: str) -> Route:
        route = next((route for route in self._routes if route.provider == name), None)
        if route is None:
            names = ", ".join(self.providers)
            raise OptionError("provider", f"no fake service is named {name!r}", f"Pass one of {names}.")
        return route

    def play(self, *replies: PlayableReply) -> None:
        """Adds replies after those that are not sent yet. A reply for all calls is sent after the added ones."""
        with self._lock:
            self._queue.extend(replies)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, error_type: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._thread.join()
        self._close()
        if self.faults and error is None:
            raise self.faults[0]

    def serve_forever(self) -> None:
        """Serves requests in the current thread until the thread is interrupted."""
        try:
            self._server.serve_forever()
        finally:
            self._close()

    def _close(self) -> None:
        """Closes the open connections, and waits until the threads of the connections end."""
        for connection in [*self._connections]:
            _break(connection)
        self._server.server_close()

    def find_route(self, path: str) -> RouteMatch | None:
        """Finds the route for a path. Returns None if no service has the path."""
        return find_route(path, self._routes)

    def answer(self, route: RouteMatch, request: RecordedRequest) -> Answer:
        """Returns the response to a request. Removes the next prepared reply if the request needs one."""
        try:
            return answer_request(route, request, partial(self._next_reply, route), validate=self._validate)
        except Exception as fault:
            self.faults.append(fault)
            return answer_error(route.service, LoopbackError(400, f"LoopbackServer: {fault}"))

    def _next_reply(self, route: RouteMatch) -> PlayableReply:
        with self._lock:
            if self._queue:
                return self._queue.popleft()
        if self._is_agent:
            return partial(demo_reply, find_provider(route.provider))
        if self._default_reply is None:
            return LoopbackError(400, "LoopbackServer: no reply is left to play")
        return self._default_reply


# -- HTTP -------------------------------------------------------------------------------------------------------


class _Server(ThreadingHTTPServer):
    daemon_threads = False
    request_queue_size = 512

    def __init__(self, address: tuple[str, int], handler: type[BaseHTTPRequestHandler]) -> None:
        super().__init__(address, handler)
        self.faults: list[BaseException] = []

    def server_bind(self) -> None:
        """Binds the socket without looking up the host name, because the lookup can take seconds."""
        TCPServer.server_bind(self)
        self.server_name, self.server_port = "127.0.0.1", int(self.server_address[1])

    def handle_error(self, request: object, client_address: object) -> None:
        """Records the current exception, unless the client disconnected."""
        import sys

        error = sys.exc_info()[1]
        if error is not None and not isinstance(error, OSError):
            self.faults.append(error)


def _break(connection: socket) -> None:
    with suppress(OSError):  # the client may have disconnected
        connection.shutdown(SHUT_RDWR)


def _bind_handler(server: LoopbackServer, open_connections: set[socket]) -> type[BaseHTTPRequestHandler]:
    class Handler(_Handler):
        owner = server
        connections = open_connections

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
        """Suppresses the log lines that the base class writes to standard error."""

    def do_GET(self) -> None:
        self.owner.strays.append(self.path)
        self._send_whole(404, {}, encode_json({"error": {"message": f"no service at {self.path}"}}), None)

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers.get("content-length", "0")))
        route = self.owner.find_route(unquote(urlsplit(self.path).path))
        if route is None:
            self.do_GET()
            return
        request = self._record(route, raw)
        self.owner.requests.append(request)
        try:
            self._send(self.owner.answer(route, request), request)
        except OSError:
            request.disconnected = True
            self.close_connection = True
        finally:
            request.finish()

    def _record(self, route: RouteMatch, raw: bytes) -> RecordedRequest:
        headers = {name.lower(): value for name, value in self.headers.items()}
        try:
            body: Any = json.loads(raw)
        except ValueError:
            body = None
        fields = as_object(body)
        model = route.model or str(fields.get("model", ""))
        streamed = route.is_streamed(fields, headers)
        return RecordedRequest(route.provider, self.path, headers, body, raw, model, streamed)

    def _send(self, answer: Answer, request: RecordedRequest) -> None:
        if answer.frames is None:
            self._wait(answer.delay, request)
            self._send_whole(answer.status, answer.headers, answer.body, answer.cut_after_bytes)
        else:
            self._send_stream(answer, answer.frames, request)

    def _send_whole(self, status: int, headers: Mapping[str, str], body: bytes, cut: int | None) -> None:
        self._begin(status, {"content-type": "application/json", **headers, "content-length": str(len(body))})
        self.wfile.write(body[:cut])
        if cut is not None:
            self._cut()

    def _send_stream(self, answer: Answer, frames: Iterable[bytes], request: RecordedRequest) -> None:
        self._begin(answer.status, {**answer.headers, "transfer-encoding": "chunked"})
        remaining = answer.cut_after_bytes
        for number, frame in enumerate(frames):
            if number == answer.cut_after:
                return self._cut()
            self._wait(answer.delay, request)
            if remaining is not None and len(frame) >= remaining:
                self._chunk(frame[:remaining])
                return self._cut()
            self._chunk(frame)
            remaining = None if remaining is None else remaining - len(frame)
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
        if data:  # an empty chunk ends the body (RFC 9112, section 7.1)
            self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))

    def _wait(self, seconds: float, request: RecordedRequest) -> None:
        """Waits for some seconds. Raises `BrokenPipeError` as soon as the client disconnects."""
        ready, _, _ = select([self.connection], [], [], seconds)
        if ready and not self.connection.recv(1, MSG_PEEK):
            raise BrokenPipeError(f"the client of {request.path} disconnected")

    def _cut(self) -> None:
        self.close_connection = True
        _break(self.connection)
