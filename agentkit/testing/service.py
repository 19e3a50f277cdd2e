"""`FakeService`: the base class of the fake HTTP APIs that the loopback server serves."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, ClassVar

from agentkit.testing.replies import LoopbackError, NormalizedReply, ReceivedCall, count_tokens

__all__ = ["FakeService", "encode_json", "encode_named_event"]


class FakeService(ABC):
    """Fake of one HTTP API: writes replies, stream events and errors in its wire format.

    A provider's `testing` module derives one class for each of its APIs, and lists their paths in `ROUTES`.

    Attributes:
        media_type: Content type of a stream.
        stream_end: Bytes after the last event of a complete stream.
        prompt_keys: Keys of a request that make up the prompt. Tokens are counted from their JSON text.
        client_defaults: Further options of a client, such as the option of an SDK that turns retries off.
    """

    media_type: ClassVar[str] = "text/event-stream"
    stream_end: ClassVar[bytes] = b""
    prompt_keys: ClassVar[tuple[str, ...]]
    client_defaults: ClassVar[Mapping[str, Any]] = {}

    @abstractmethod
    def build_reply(self, reply: NormalizedReply, call: ReceivedCall) -> dict[str, Any]:
        """Returns the body of a whole reply."""

    @abstractmethod
    def build_events(self, reply: NormalizedReply, call: ReceivedCall) -> Iterator[dict[str, Any]]:
        """Yields the events of a streamed reply."""

    def build_error(self, error: LoopbackError) -> dict[str, Any]:
        """Returns the body of an error response. The default is `{"error": {"message": …, "code": …}}`."""
        return {"error": {"message": error.message, "code": error.code}}

    def build_error_event(self, error: LoopbackError) -> dict[str, Any]:
        """Returns the event of an error inside a stream. The default is the error's body."""
        return self.build_error(error)

    def encode_event(self, event: Mapping[str, Any], number: int) -> bytes:
        """Returns the bytes of an event in the stream; `number` counts from 1."""
        return b"data: " + encode_json(event) + b"\n\n"

    def find_fault(self, call: ReceivedCall) -> str | None:
        """Returns the API's error message for a request that the API refuses: unpaired calls, missing keys."""
        return None

    def is_streamed(self, verb: str, body: Mapping[str, Any], headers: Mapping[str, str]) -> bool:
        """Returns True if the request asks for a stream.

        Args:
            verb: Last part of the path, if the route names one, else an empty string.
            body: Decoded body.
            headers: Headers with lower-case names.
        """
        return body.get("stream") is True

    def count(self, verb: str, body: Mapping[str, Any]) -> dict[str, Any] | None:
        """Returns the body of a token count. None means that the request calls the model.

        Args:
            verb: Last part of the path, if the route names one, else an empty string.
            body: Decoded body.
        """
        return None

    def get_prompt(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """Returns the part of a request that is counted as its prompt."""
        return {key: body[key] for key in self.prompt_keys if key in body}

    def count_prompt(self, body: Mapping[str, Any]) -> int:
        """Returns the tokens of a request's prompt."""
        return count_tokens(json.dumps(self.get_prompt(body), ensure_ascii=False))

    def build_headers(self, reply_id: str) -> dict[str, str]:
        """Returns the API's headers of a response."""
        return {"x-request-id": f"req_{reply_id}"}

    def build_error_headers(self, error: LoopbackError) -> dict[str, str]:
        """Returns further headers of an error response."""
        return {}

    def client_options(self, url: str) -> dict[str, Any]:
        """Returns the options of a client for this base URL, with a fake key."""
        return {"api_key": "loopback", "base_url": url, **self.client_defaults}

    def encode_events(self, events: Iterable[Mapping[str, Any] | bytes]) -> Iterator[bytes]:
        """Yields the bytes of each event. An event that is bytes already is sent unchanged."""
        for number, event in enumerate(events, 1):
            yield event if isinstance(event, bytes) else self.encode_event(event, number)


def encode_json(value: object) -> bytes:
    """Returns a value as compact JSON."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")


def encode_named_event(event: Mapping[str, Any]) -> bytes:
    """Returns a server-sent event with the event's type as its name."""
    return b"event: " + str(event.get("type", "message")).encode() + b"\ndata: " + encode_json(event) + b"\n\n"
