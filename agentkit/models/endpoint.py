"""`EndpointBase`: sending of finished requests through the official SDK client of a provider."""

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

__all__ = ["EndpointBase", "IncomingStream", "OutgoingRequest", "merge_parameters"]


@dataclass(frozen=True, slots=True)
class OutgoingRequest:
    """Finished request of one model call.

    Attributes:
        path: Path below the base URL of the client. Some endpoints use the name of the model instead.
        body: JSON body of the request.
        stream: True if the reply is streamed.
        options: Options of the HTTP request in the SDK's names, such as headers, query and timeout.

    """

    path: str
    body: dict[str, Any]
    stream: bool
    options: Mapping[str, Any] = field(default_factory=dict[str, Any], repr=False)  # headers may contain keys

    __repr__ = bounded_repr

    def payload(self, *, as_object: bool) -> dict[str, Any]:
        """Returns the body as an argument of `post` in the SDKs of OpenAI and Anthropic.

        The result is `{"content": TEXT}`. The JSON text equals the text that the SDKs write, and takes a sixth of
        their time. A body with values that are not JSON becomes `{"body": BODY}`, because the SDK may know them.

        Args:
            as_object: True for `{"body": BODY}`, which clients need that read the body.

        """
        if not as_object:
            try:
                return {"content": _WRITER.to_json(self.body, by_alias=True, exclude_unset=True, warnings=False)}
            except ValueError:
                pass
        return {"body": self.body}


class IncomingStream(AsyncIterator[Any]):
    """Bytes or events of a reply, in order, with the id of the model call.

    Attributes:
        request_id: Provider's id of the call (see `find_request_id`). Errors in the stream get the id too.

    """

    def __init__(self, chunks: AsyncIterator[Any], request_id: str | None = None) -> None:
        self._chunks = chunks
        self.request_id = request_id

    def __anext__(self) -> Awaitable[Any]:
        return self._chunks.__anext__()


_WRITER = SchemaSerializer(core_schema.any_schema(), core_schema.CoreConfig(ser_json_inf_nan="constants"))


class EndpointBase(ABC):
    """Base class of endpoints, which send requests through the SDK client of a provider.

    The SDK owns retries, credentials and transport. A finished body goes through the client's `post` or an
    equivalent, and the reply is returned unparsed. This bypasses the SDK's typed (de)serialization.

    A subclass imports the SDK only in its methods, and works with every client class of the SDK.
    """

    extra: ClassVar[str]
    """Extra of the distribution that installs the SDK."""

    closed: bool = False
    """True after the model has closed the client. Further calls raise a NetworkError."""

    def __init__(self, client: Any) -> None:
        self.client = client

    @classmethod
    @abstractmethod
    def open(cls, **options: Any) -> Self:
        """Returns an endpoint with a new async client of the SDK. Runs in a worker thread: SDK imports are slow.

        Args:
            **options: Options of the SDK's client, such as `api_key` and `base_url`. The SDK checks them.

        Raises:
            MissingExtraError: The SDK is not installed.
            AuthError: The SDK needs a key and finds none.

        """

    required_attributes: ClassVar[tuple[str, ...]] = ()
    """Attributes that the endpoint uses of a client. `check` refuses a client without them."""

    @classmethod
    def check(cls, client: Any) -> None:
        """Raises OptionError if a client is not an async client of the SDK."""
        class_name = type(client).__name__
        missing = [
            name
            for name in cls.required_attributes
            if not (hasattr(client.__class__, name) or hasattr(client, name))
        ]
        if isinstance(client, type):
            reason = f"{client.__name__} is a class"
        elif missing:
            reason = f"a {class_name} has no {missing[0]!r}"
        elif hasattr(client, "__enter__") and not hasattr(client, "__aenter__") and not hasattr(client, "aio"):
            reason = f"a {class_name} is not an async client"
        else:
            return
        raise OptionError("client", reason, "Pass an async client of the SDK.")

    @abstractmethod
    def build_request(
        self, model: str, request: Mapping[str, Any], options: Mapping[str, Any], *, stream: bool
    ) -> OutgoingRequest:
        """Returns the finished request of a call. Must be deterministic and free of I/O.

        Args:
            model: Name of the model.
            request: Request of the formatter.
            options: Parameters of the provider, and `timeout`, the seconds to wait for the server.
            stream: True for a streamed reply.

        """

    def max_tokens_parameter(self, max_tokens: int) -> dict[str, Any]:
        """Returns the parameter that limits the tokens of a reply, under the provider's name for it."""
        return {"max_tokens": max_tokens}

    def requires_stream(self, outgoing: OutgoingRequest) -> bool:
        """Returns True if a whole reply, too, must be requested as a stream.

        Asked before a model call, and once more after its failure.
        """
        return False

    @abstractmethod
    async def send(self, outgoing: OutgoingRequest) -> Mapping[str, Any] | bytes | str:
        """Sends the request and returns the complete reply, as JSON text or values."""

    @abstractmethod
    def stream(self, outgoing: OutgoingRequest) -> AbstractAsyncContextManager[AsyncIterator[Any]]:
        """Sends the request when entered, and yields the bytes or events of the reply. Closes the connection.

        An `IncomingStream` also carries the id of the call.
        """

    @abstractmethod
    def failure_from_exception(self, error: BaseException) -> Failure | None:
        """Returns the failure in an error of the SDK or of its transport, and None for any other error."""

    def failure_from_reply(self, reply: object) -> Failure | None:
        """Returns the failure that a reply with status 200 reports, or None."""
        return parse_failure(reply)

    @abstractmethod
    async def aclose(self) -> None:
        """Closes the client that `open` created."""


def merge_parameters(request: Mapping[str, Any], options: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a request with further parameters. Objects with the same name are joined.

    Raises:
        OptionError: The request already has the parameter, and not both values are objects.

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
            advice = "Remove the parameter, or the option of the call that sets it."
            raise OptionError(f"parameters.{name}", "already set by the request", advice)
    return body
