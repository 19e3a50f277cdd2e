"""`FakeService`: base class of the fake HTTP APIs that `LoopbackServer` serves."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, ClassVar

from agentkit.testing.replies import LoopbackError, NormalizedReply, ReceivedCall
from agentkit.testing.reported_tokens import count_tokens

__all__ = ["FakeService", "encode_json"]


class FakeService(ABC):
    """Fake HTTP API that writes replies, stream events and errors in the wire format of a real API.

    The `testing` module of a provider has one subclass for each API of the provider. The constant `ROUTES` in the
    `testing` module assigns URL paths to objects of the subclasses.

    Attributes:
        media_type: Value of the `content-type` header of a stream.
        names_events: True if each event of a stream has an additional line with the event's `type`.
        id_header: Name of the header with the request id. Empty if the API sends no request id.
        stream_end: Bytes to send after the last event of a complete stream.
        prompt_keys: Keys of a request whose values form the prompt. The prompt tokens are counted in the JSON text
            of these values.
        client_defaults: Additional options for the SDK client, such as an option that disables retries.
        error_codes: Map from HTTP statuses to error codes or error types.
    """

    media_type: ClassVar[str] = "text/event-stream"
    names_events: ClassVar[bool] = False
    id_header: ClassVar[str] = "x-request-id"
    stream_end: ClassVar[bytes] = b""
    prompt_keys: ClassVar[tuple[str, ...]]
    client_defaults: ClassVar[Mapping[str, Any]] = {}
    error_codes: ClassVar[Mapping[int, str]] = {}

    @abstractmethod
    def build_reply(self, reply: NormalizedReply, call: ReceivedCall) -> dict[str, Any]:
        """Returns the JSON body of a complete reply."""

    @abstractmethod
    def build_events(self, reply: NormalizedReply, call: ReceivedCall) -> Iterator[dict[str, Any]]:
        """Yields the events of a streamed reply."""

    def build_error(self, error: LoopbackError) -> dict[str, Any]:
        """Returns the body of an error response. The default is `{"error": {"message": …, "code": …}}`."""
        return {"error": {"message": error.message, "code": error.code}}

    def get_error_code(self, error: LoopbackError) -> str:
        """Returns the code of an error.

        If the error has no code, returns the code in `error_codes` for its status. If `error_codes` does not
        contain the status, returns the code for 500 if the status is at least 500, otherwise the code for 400.
        """
        codes = self.error_codes
        return error.code or codes.get(error.status) or codes[500 if error.status >= 500 else 400]

    def build_error_event(self, error: LoopbackError) -> dict[str, Any]:
        """Returns the event that reports an error inside a stream. The default is the result of `build_error`."""
        return self.build_error(error)

    def encode_event(self, event: Mapping[str, Any], number: int) -> bytes:
        """Returns the bytes of an event in a stream. `number` is 1 for the first event of the stream."""
        name = b"event: " + str(event.get("type", "message")).encode() + b"\n" if self.names_events else b""
        return name + b"data: " + encode_json(event) + b"\n\n"

    def find_fault(self, call: ReceivedCall) -> str | None:
        """Returns an error message if the real API would refuse the request, otherwise None.

        Typical faults are tool calls without results and missing keys.
        """
        return None

    def is_streamed(self, verb: str, body: Mapping[str, Any], headers: Mapping[str, str]) -> bool:
        """Returns True if the request asks for a stream. The default reads the key `stream` of the body.

        Args:
            verb: Part of the path that names the operation. Empty if the path has no such part.
            body: Decoded request body.
            headers: Headers with lower-case names.
        """
        return body.get("stream") is True

    def count(self, verb: str, body: Mapping[str, Any]) -> dict[str, Any] | None:
        """Returns the response body if the request asks for a token count. Returns None for a model call.

        Args:
            verb: Part of the path that names the operation. Empty if the path has no such part.
            body: Decoded request body.
        """
        return None

    def get_prompt(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """Returns the prompt of a request: the keys in `prompt_keys` with their values."""
        return {key: body[key] for key in self.prompt_keys if key in body}

    def count_prompt(self, body: Mapping[str, Any]) -> int:
        """Returns the number of tokens that the service reports for the prompt of a request."""
        return count_tokens(json.dumps(self.get_prompt(body), ensure_ascii=False))

    def build_headers(self, reply_id: str) -> dict[str, str]:
        """Returns the headers that the API adds to a response, such as the request id."""
        return {self.id_header: f"req_{reply_id}"} if self.id_header else {}

    def build_error_headers(self, error: LoopbackError) -> dict[str, str]:
        """Returns additional headers for an error response."""
        return {}

    def client_options(self, url: str) -> dict[str, Any]:
        """Returns SDK client options that connect to a base URL, with a fake API key."""
        return {"api_key": "loopback", "base_url": url, **self.client_defaults}

    def encode_events(self, events: Iterable[Mapping[str, Any] | bytes]) -> Iterator[bytes]:
        """Yields the bytes of each event. Does not change events that are already bytes."""
        for number, event in enumerate(events, 1):
            yield event if isinstance(event, bytes) else self.encode_event(event, number)


def encode_json(value: object) -> bytes:
    """Serializes a value as compact JSON."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")
