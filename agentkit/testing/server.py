"""`LoopbackServer`: a local HTTP server that imitates every provider's API, for tests with real SDK clients.

The server runs in its own threads, so it works with any event loop and any HTTP client. The server needs only the
standard library.
"""

from __future__ import annotations

import json
import threading
from collections import deque
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Self, cast
from urllib.parse import unquote, urlsplit

from agentkit.errors import OptionError
from agentkit.json_values import as_object
from agentkit.testing.demo_agent import demo_reply
from agentkit.testing.http_responses import Answer, answer_error, answer_request
from agentkit.testing.http_server import HttpServer
from agentkit.testing.recorded_request import RecordedRequest
from agentkit.testing.replies import LoopbackError, PlayableReply
from agentkit.testing.routes import Route, RouteMatch, find_provider, find_route, load_routes

if TYPE_CHECKING:
    from types import TracebackType

__all__ = ["LoopbackServer"]


class LoopbackServer:
    """Server on a free port of 127.0.0.1 with the APIs of all installed providers.

    If no reply remains for a model call, the server answers with an error. The server also answers with an error
    if an exception occurs while it prepares the response. The end of the `with` block then raises this exception.
    Possible causes are a reply that the wire format cannot represent, and a reply function that fails.

    Args:
        replies: One reply for all model calls, or a list of replies to send in order. `PlayableReply` lists the
            types.
        agent: True to answer with `demo_reply` when no reply of the list remains. A single reply in `replies` is
            then ignored.
        validate: True to refuse invalid requests, for example requests with unpaired tool calls or results. The
            response then has status 400 and the provider's error message.
        port: Port to listen on. 0 means any free port.

    Attributes:
        requests: Received requests, in order.
        strays: Requested paths that belong to no provider's API, and paths of GET requests.
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
        self._routes: tuple[Route, ...] = load_routes()
        self._server = HttpServer(port, self._receive)
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
        """Names that `url` accepts, sorted."""
        return sorted({route.provider for route in self._routes})

    def url(self, provider: str | None = None) -> str:
        """Returns the base URL for a provider's SDK client.

        Args:
            provider: Name from `providers`. For `azure`, pass the URL to the SDK client as `azure_endpoint`. Use
                `anthropic-vertex` and `bedrock` for Anthropic's SDK clients of these clouds. None means the root
                URL of the server.

        Raises:
            OptionError: If no fake service is named `provider`.
        """
        base = "" if provider is None else self._find_provider(provider).base
        return f"http://127.0.0.1:{self.port}{base}"

    def client_options(self, provider: str) -> dict[str, Any]:
        """Returns options that make a `ChatModel` call this server.

        Pass the options to `ChatModel`, for example
        `ChatModel("openai:any", client_options=server.client_options("openai"))`. The options disable retries.

        Args:
            provider: Name from `providers`.

        Raises:
            OptionError: If no fake service is named `provider`.
        """
        return self._find_provider(provider).service.client_options(self.url(provider))

    def _find_provider(self, name: str) -> Route:
        route = next((route for route in self._routes if route.provider == name), None)
        if route is None:
            names = ", ".join(self.providers)
            raise OptionError("provider", f"no fake service is named {name!r}", f"Pass one of {names}.")
        return route

    def play(self, *replies: PlayableReply) -> None:
        """Appends replies to the list of replies that the server will send.

        If the server was created with one reply for all calls, the server sends this reply when the list is empty.
        """
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
        self._server.close()
        if self.faults and error is None:
            raise self.faults[0]

    def serve_forever(self) -> None:
        """Serves requests in the current thread until the thread is interrupted."""
        try:
            self._server.serve_forever()
        finally:
            self._server.close()

    def _receive(
        self, path: str, headers: dict[str, str], raw: bytes | None
    ) -> tuple[RecordedRequest, Answer] | None:
        """Records a request. Returns the recorded request and the response, or None if no route matches."""
        route = None if raw is None else find_route(unquote(urlsplit(path).path), self._routes)
        if raw is None or route is None:
            self.strays.append(path)
            return None
        try:
            body: Any = json.loads(raw)
        except ValueError:
            body = None
        fields = as_object(body)
        model = route.model or str(fields.get("model", ""))
        streamed = route.service.is_streamed(route.verb, fields, headers)
        request = RecordedRequest(route.provider, path, headers, body, raw, model, streamed)
        self.requests.append(request)
        return request, self._answer(route, request)

    def _answer(self, route: RouteMatch, request: RecordedRequest) -> Answer:
        """Returns the response to a request. The response to a model call contains the next prepared reply."""
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
            return LoopbackError(400, "LoopbackServer: no prepared reply remains for this model call")
        return self._default_reply
