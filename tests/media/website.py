"""A real website on 127.0.0.1, and a simulated network: host names, their addresses, and the connections."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address
from socket import gaierror
from typing import Any, TypeAlias

import anyio
import pytest
import trio

__all__ = ["PUBLIC", "Answer", "Internet", "Page", "Website", "answer", "redirect", "website"]

PUBLIC = "93.184.216.34"
"""Address of the public network. In tests, connections to it reach the website."""

Answer: TypeAlias = BaseHTTPRequestHandler
Page: TypeAlias = Callable[[Answer], None]


@dataclass(slots=True)
class Website:
    """Pages by path, and the received requests with path and headers."""

    port: int = 0
    pages: dict[str, Page] = field(default_factory=dict[str, Page])
    requests: list[tuple[str, dict[str, str]]] = field(default_factory=list[tuple[str, dict[str, str]]])

    def url(self, path: str, host: str = "127.0.0.1", scheme: str = "http") -> str:
        """Returns the URL of a page."""
        return f"{scheme}://{host}:{self.port}{path}"

    @property
    def paths(self) -> list[str]:
        """Requested paths in order."""
        return [path for path, _ in self.requests]


def answer(body: bytes, media_type: str | None = "image/png", status: int = 200, **headers: str) -> Page:
    """Returns a page with a body."""

    def page(handler: Answer) -> None:
        handler.send_response(status)
        if media_type is not None:
            handler.send_header("Content-Type", media_type)
        for name, value in {"Content_Length": str(len(body)), **headers}.items():
            handler.send_header(name.replace("_", "-"), value)
        handler.end_headers()
        handler.wfile.write(body)

    return page


def redirect(to: str, status: int = 302) -> Page:
    """Returns a page that redirects to another URL."""
    return answer(b"moved", "text/plain", status, Location=to)


@contextmanager
def website(tls: ssl.SSLContext | None = None) -> Generator[Website]:
    """Yields a website on a free port."""
    site = Website()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            site.requests.append((self.path, dict(self.headers.items())))
            page = site.pages.get(self.path, answer(b"not here", "text/plain", 404))
            try:
                page(self)
            except OSError:
                self.close_connection = True  # the client closed the connection

        def log_message(self, format: str, *args: object) -> None:
            """Writes no log to stderr."""

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, request: Any, client_address: Any) -> None:
            """Ignores clients that refuse the certificate."""

    server = Server(("127.0.0.1", 0), Handler)
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    site.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield site
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class Internet:
    """Simulated network. A connection to a public address reaches this machine, unless the address is `down`.

    Attributes:
        names: Addresses by host name: a list for each lookup, the last list for all later lookups.
        looked_up: Host names of the lookups.
        reached: Addresses of the connections.
        down: Addresses that refuse connections.

    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.names: dict[str, list[list[str]]] = {}
        self.looked_up: list[str] = []
        self.reached: list[str] = []
        self.down: set[str] = set()
        self._look_up: Any = socket.getaddrinfo
        self._anyio: Any = anyio.connect_tcp
        self._trio: Any = trio.open_tcp_stream
        monkeypatch.setattr(socket, "getaddrinfo", self.getaddrinfo)
        monkeypatch.setattr(anyio, "connect_tcp", self._connect_anyio)
        monkeypatch.setattr(trio, "open_tcp_stream", self._connect_trio)

    def getaddrinfo(self, host: str, port: int, *more: Any, **options: Any) -> Any:
        """Returns the addresses of a host name. Numeric addresses go to the real resolver."""
        answers = self.names.get(host)
        if answers is None:
            if host.endswith(".test"):
                raise gaierror(f"no such host: {host}")
            return self._look_up(host, port, *more, **options)
        self.looked_up.append(host)
        addresses = answers.pop(0) if len(answers) > 1 else answers[0]
        return [(0, 0, 0, "", (address, port)) for address in addresses]

    def _routed(self, host: str) -> str:
        self.reached.append(host)
        if host in self.down:
            raise OSError("connection refused")
        return "127.0.0.1" if ip_address(host).is_global else host

    async def _connect_anyio(self, remote_host: str, remote_port: int, **options: Any) -> Any:
        return await self._anyio(remote_host=self._routed(remote_host), remote_port=remote_port, **options)

    async def _connect_trio(self, host: str, port: int, **options: Any) -> Any:
        return await self._trio(self._routed(host), port, **options)
