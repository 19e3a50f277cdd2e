"""`EndpointBase`, the base class of objects that send finished requests through a provider's SDK client."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Awaitable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self, cast

from pydantic_core import SchemaSerializer, core_schema

from agentkit.errors import OptionError
from agentkit.replies.error_bodies import Failure, parse_failure
from agentkit.reprs import bounded_repr

__all__ = ["EndpointBase", "IncomingStream", "OutgoingRequest", "dump_body", "merge_parameters"]


@dataclass(frozen=True, slots=True)
class OutgoingRequest:
    """Finished request for one model call.

    Attributes:
        path: URL path relative to the client's base URL. For endpoints without a path, the name of the model.
        body: JSON body of the request.
        stream: True if the reply is streamed.
        options: Options of the HTTP request under the SDK's names, such as headers, query and timeout.

    """

    path: str
    body: dict[str, Any]
    stream: bool
    options: Mapping[str, Any] = field(default_factory=dict[str, Any], repr=False)  # may contain API keys

    __repr__ = bounded_repr


class IncomingStream(AsyncIterator[Any]):
    """Iterator over the bytes or events of a reply, with the provider's id for the model call.

    Attributes:
        request_id: Provider's id for the model call (see `find_request_id`). None if the response has no id.
            Errors that occur in the stream get this id.

    """

    def __init__(self, chunks: AsyncIterator[Any], request_id: str | None = None) -> None:
        self._chunks = chunks
        self.request_id = request_id

    def __anext__(self) -> Awaitable[Any]:
        return self._chunks.__anext__()


_WRITER = SchemaSerializer(core_schema.any_schema(), core_schema.CoreConfig(ser_json_inf_nan="constants"))


def dump_body(body: Mapping[str, Any]) -> bytes | None:
    """Serializes a body about six times as fast as an SDK. The JSON bytes are the same as those of the SDK.

    Returns None if a value cannot be serialized. The SDK may still be able to serialize this value.
    """
    try:
        return _WRITER.to_json(body, by_alias=True, exclude_unset=True, warnings=False)
    except ValueError:
        return None


class EndpointBase(ABC):
    """Base class of endpoints, which send requests through the SDK client of a provider.

    The SDK handles retries, credentials and transport. An endpoint passes the finished body to the client's `post`
    method or an equivalent, and returns the reply unparsed. This bypasses the SDK's typed (de)serialization.

    A subclass must import the SDK only inside its methods, and must work with every async client of the SDK. For a
    client that returns the HTTP response of a call, derive from the subclass `HttpResponseEndpoint`.
    """

    extra: ClassVar[str]
    """Name of the package extra that installs the SDK, such as `anthropic`."""

    closed: bool = False
    """True after agentkit has closed the client. Further calls raise a NetworkError."""

    def __init__(self, client: Any) -> None:
        self.client = client
        self.stream_only_models = set[str]()
        """Names of models that have refused a request because it was not streamed."""

    @classmethod
    @abstractmethod
    def open(cls, **options: Any) -> Self:
        """Returns an endpoint with a new async client of the SDK.

        This method runs in a worker thread, because the import of an SDK would block the event loop.

        Args:
            **options: Options of the SDK's client, such as `api_key` and `base_url`. The SDK checks these options.

        Raises:
            MissingExtraError: If the SDK is not installed.
            AuthError: If the SDK needs an API key, and none is configured.

        """

    required_attributes: ClassVar[tuple[str, ...]] = ()
    """Names of the attributes that a client must have. `check` rejects other clients."""

    @classmethod
    def check(cls, client: Any) -> None:
        """Raises OptionError if `client` is not an async client of the SDK."""
        class_name = type(client).__name__
        missing = [
            name
            for name in cls.required_attributes
            if not (hasattr(client.__class__, name) or hasattr(client, name))
        ]
        if isinstance(client, type):
            reason = f"expected a client object, got the class {client.__name__}"
        elif missing:
            reason = f"the {class_name} object has no attribute {missing[0]!r}"
        elif hasattr(client, "__enter__") and not hasattr(client, "__aenter__") and not hasattr(client, "aio"):
            reason = f"{class_name} is not an async client"
        else:
            return
        raise OptionError("client", reason, "Pass an async client of the SDK.")

    @abstractmethod
    def build_request(
        self, model: str, request: Mapping[str, Any], options: Mapping[str, Any], *, stream: bool
    ) -> OutgoingRequest:
        """Returns the finished request for a model call.

        An implementation must be deterministic and must not perform I/O.

        Args:
            model: Name of the model.
            request: Request that the formatter built.
            options: Parameters under the provider's names, and `timeout` in seconds.
            stream: True to request a streamed reply.

        """

    def max_tokens_parameter(self, max_tokens: int) -> dict[str, Any]:
        """Returns the parameter that limits the tokens of a reply, under the provider's own name.

        The parameter may be nested, such as `{"config": {"max_tokens": 100}}`.
        """
        return {"max_tokens": max_tokens}

    def requires_stream(self, outgoing: OutgoingRequest) -> bool:
        """Returns True if `generate` must request a stream, because the API refuses or aborts other requests."""
        return False

    @abstractmethod
    async def send(self, outgoing: OutgoingRequest) -> Mapping[str, Any] | bytes | str:
        """Sends the request and returns the complete reply, as JSON text or as parsed JSON."""

    @abstractmethod
    def stream(self, outgoing: OutgoingRequest) -> AbstractAsyncContextManager[AsyncIterator[Any]]:
        """Returns a context manager that sends the request and yields the bytes or events of the reply.

        The connection is closed at the end of the context. The iterator can be an `IncomingStream`, which also has
        the id of the model call.
        """

    @abstractmethod
    def failure_from_exception(self, error: BaseException) -> Failure | None:
        """Returns the failure for an exception of the SDK or its HTTP client, and None for any other exception."""

    def failure_from_reply(self, reply: object) -> Failure | None:
        """Returns the failure in a reply with HTTP status 200, or None if the reply reports no failure.

        Args:
            reply: Complete reply as JSON values, which agentkit parsed from the return value of `send`.

        """
        return parse_failure(reply)

    @abstractmethod
    async def aclose(self) -> None:
        """Closes the client that `open` created."""


def merge_parameters(request: Mapping[str, Any], options: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a copy of a request with the parameters in `options` added.

    If the request and `options` have a parameter with the same name, and both values are objects, the objects are
    merged.

    Raises:
        OptionError: If the request and `options` have a parameter with the same name, and at least one of the two
            values is not an object.

    Example:
        >>> merge_parameters({"messages": [], "config": {"seed": 1}}, {"config": {"top_k": 5}})
        {'messages': [], 'config': {'seed': 1, 'top_k': 5}}

    """
    body = dict(request)
    for name, value in options.items():
        current = body.get(name)
        if current is None:
            body[name] = value
        elif isinstance(current, dict) and isinstance(value, Mapping):
            body[name] = {**cast("dict[str, Any]", current), **cast("Mapping[str, Any]", value)}
        else:
            advice = "Remove the parameter, or remove the option of the call that sets the same parameter."
            raise OptionError(f"parameters.{name}", "already set by the request", advice)
    return body
