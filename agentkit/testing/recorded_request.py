"""`RecordedRequest`: a request that the loopback server received."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import Any, Self

from agentkit.reprs import bounded_repr

__all__ = ["RecordedRequest"]


@dataclass(eq=False)
class RecordedRequest:
    """Request that the loopback server received.

    Attributes:
        provider: Name of the provider whose API has this path.
        path: URL path with the query.
        headers: Headers with lower-case names.
        body: Decoded JSON body. None if the body is not JSON.
        raw: Bytes of the body.
        model: Requested model. Empty if the request names no model.
        streamed: True if the request asks for a stream.
        refused: Error message that the server sent because the request is invalid, for example because of an
            unpaired tool call. None if the server accepted the request.
        disconnected: True if the client disconnected before the end of the reply.
    """

    provider: str
    path: str
    headers: dict[str, str] = field(repr=False)  # can contain an API key
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
            TimeoutError: If the request is not answered in time.
        """
        if not self._finished.wait(seconds):
            raise TimeoutError(f"the server did not answer the request to {self.path!r} within {seconds} s")
        return self

    def finish(self) -> None:
        """Marks the request as answered."""
        self._finished.set()
