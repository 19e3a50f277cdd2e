"""`HttpServer`: handles the HTTP connections of the loopback server, and simulates connection faults."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from select import select
from socket import MSG_PEEK, SHUT_RDWR, socket
from socketserver import TCPServer
from typing import TypeAlias, cast

from agentkit.testing.http_responses import Answer
from agentkit.testing.recorded_request import RecordedRequest
from agentkit.testing.service import encode_json

__all__ = ["HttpServer", "Receive"]

Receive: TypeAlias = Callable[[str, dict[str, str], bytes | None], tuple[RecordedRequest, Answer] | None]
"""Function that takes the path, headers and body of a request. Returns the recorded request and the response.

The body is None for a GET request. The result is None if no route matches the path.
"""


class HttpServer(ThreadingHTTPServer):
    """HTTP server on a port of 127.0.0.1 with one thread for each connection.

    Attributes:
        receive: Function that records a request and returns its response (see `Receive`).
        faults: Exceptions that occurred in the threads.
        connections: Sockets of the open connections.
    """

    daemon_threads = False
    request_queue_size = 512

    def __init__(self, port: int, receive: Receive) -> None:
        super().__init__(("127.0.0.1", port), _Handler)
        self.receive = receive
        self.faults: list[BaseException] = []
        self.connections: set[socket] = set()

    def server_bind(self) -> None:
        """Binds the socket without looking up the host name, because the lookup can take seconds."""
        TCPServer.server_bind(self)
        self.server_name, self.server_port = "127.0.0.1", int(self.server_address[1])

    def handle_error(self, request: object, client_address: object) -> None:
        """Records the current exception. Ignores an `OSError`, which means that the client disconnected."""
        error = sys.exc_info()[1]
        if error is not None and not isinstance(error, OSError):
            self.faults.append(error)

    def close(self) -> None:
        """Closes the open connections, and waits until the threads of the connections end."""
        for connection in [*self.connections]:
            _break(connection)
        self.server_close()


def _break(connection: socket) -> None:
    with suppress(OSError):  # `shutdown` fails if the client has already disconnected
        connection.shutdown(SHUT_RDWR)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    @property
    def _http_server(self) -> HttpServer:
        return cast("HttpServer", self.server)

    def setup(self) -> None:
        super().setup()
        self._http_server.connections.add(self.connection)

    def finish(self) -> None:
        self._http_server.connections.discard(self.connection)
        super().finish()

    def log_message(self, format: str, *args: object) -> None:
        """Does nothing. The base class would write a log line to standard error."""

    def do_GET(self) -> None:
        self._respond(None)

    def do_POST(self) -> None:
        self._respond(self.rfile.read(int(self.headers.get("content-length", "0"))))

    def _respond(self, body: bytes | None) -> None:
        headers = {name.lower(): value for name, value in self.headers.items()}
        received = self._http_server.receive(self.path, headers, body)
        if received is None:
            error = {"error": {"message": f"no route matches the path {self.path}"}}
            self._send_whole(404, {}, encode_json(error), None)
            return
        request, answer = received
        try:
            self._send(answer, request)
        except OSError:
            request.disconnected = True
            self.close_connection = True
        finally:
            request.finish()

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
        if data:  # an empty chunk would end the body (RFC 9112, section 7.1)
            self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))

    def _wait(self, seconds: float, request: RecordedRequest) -> None:
        """Waits for a number of seconds. Raises `BrokenPipeError` as soon as the client disconnects."""
        ready, _, _ = select([self.connection], [], [], seconds)
        if ready and not self.connection.recv(1, MSG_PEEK):
            raise BrokenPipeError(f"the client of {request.path} disconnected")

    def _cut(self) -> None:
        self.close_connection = True
        _break(self.connection)
