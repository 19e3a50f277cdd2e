"""`Wire`: how one kind of service says a reply, whole and as a stream of events."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, ClassVar

from agentkit.testing.replies import LoopbackError, NormalizedReply, ReceivedCall, tokens_in

__all__ = ["Wire", "encoded", "named_event"]


class Wire(ABC):
    """One service's words for replies, events and errors."""

    media_type: ClassVar[str] = "text/event-stream"
    ending: ClassVar[bytes] = b""
    """What stands behind the last event of a stream that ends well."""

    prompt_keys: ClassVar[tuple[str, ...]]
    """The keys of a request that the prompt is made of; their JSON text is what is counted."""

    @abstractmethod
    def whole(self, said: NormalizedReply, call: ReceivedCall) -> dict[str, Any]:
        """The reply in one object."""

    @abstractmethod
    def events(self, said: NormalizedReply, call: ReceivedCall) -> Iterator[dict[str, Any]]:
        """The reply as the events of a stream."""

    @abstractmethod
    def error(self, error: LoopbackError) -> dict[str, Any]:
        """The body of an answer that is an error."""

    def error_event(self, error: LoopbackError) -> dict[str, Any]:
        """An error within a stream."""
        return self.error(error)

    def frame(self, event: Mapping[str, Any], number: int) -> bytes:
        """An event in the bytes of the stream; `number` counts from 1."""
        return b"data: " + encoded(event) + b"\n\n"

    def refusal(self, call: ReceivedCall) -> str | None:
        """What the service says of a request that it cannot take: broken pairs, missing keys."""
        return None

    def count(self, body: Mapping[str, Any]) -> dict[str, Any] | None:
        """The answer of the service's own token counter; None where it has none."""
        return None

    def prompt(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """The part of a request that is counted."""
        return {key: body[key] for key in self.prompt_keys if key in body}

    def counted(self, body: Mapping[str, Any]) -> int:
        """The tokens of a request's prompt."""
        return tokens_in(json.dumps(self.prompt(body), ensure_ascii=False))

    def headers(self, said_id: str) -> dict[str, str]:
        """Headers of the service's own."""
        return {"x-request-id": f"req_{said_id}"}

    def error_headers(self, error: LoopbackError) -> dict[str, str]:
        """Headers that say which error it is, where the service has some."""
        return {}

    def frames(self, events: Iterable[Mapping[str, Any] | bytes]) -> Iterator[bytes]:
        """Events in the bytes of the stream; bytes stay what they are."""
        for number, event in enumerate(events, 1):
            yield event if isinstance(event, bytes) else self.frame(event, number)


def encoded(found: object) -> bytes:
    """A value as compact JSON."""
    return json.dumps(found, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")


def named_event(event: Mapping[str, Any]) -> bytes:
    """A server-sent event whose name is its type."""
    return b"event: " + str(event.get("type", "message")).encode() + b"\ndata: " + encoded(event) + b"\n\n"
