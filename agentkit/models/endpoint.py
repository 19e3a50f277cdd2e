"""`EndpointBase`: a provider's official SDK client, and how a finished request goes out through it."""

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
    """One call as it goes out.

    path     where to, under the client's own base URL, for a client that has to be told
    body     the finished JSON
    stream   whether the reply is to come in events
    options  of the SDK's own request: headers, a query, a timeout
    """

    path: str
    body: dict[str, Any]
    stream: bool
    options: Mapping[str, Any] = field(default_factory=dict[str, Any], repr=False)  # headers may hold keys

    __repr__ = bounded_repr

    def payload(self, *, open: bool) -> dict[str, Any]:
        """The body as the SDKs of OpenAI and Anthropic take it: `content=`, the JSON text, or `body=`, as it is.

        The text is what they write, in a sixth of their time. `open` is for clients that look into the body. One
        with something that JSON has no word for stays as it is too: its SDK may know what that is.
        """
        if not open:
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
    """One provider's SDK client. The SDK owns retries, credentials and transport; this owns nothing else.

    Requests go out as finished bodies, through the client's own `post` or its equivalent, and replies come back
    unparsed: the SDK's walk over its types is gone round, its retries and errors are kept.

    A provider's class imports its SDK in `open` alone, and works with any client of the SDK's that its user
    brings: Azure's, Bedrock's, Vertex's.
    """

    extra: ClassVar[str]
    """The extra of this distribution that installs the SDK."""

    closed: bool = False
    """Whether the model that opened the client has closed it: nothing more may be sent."""

    def __init__(self, client: Any) -> None:
        self.client = client

    @classmethod
    @abstractmethod
    def open(cls, **options: Any) -> Self:
        """The SDK's async client, made with its own options (`api_key`, `base_url` …), which it checks.

        Called in a worker thread: importing an SDK takes long. Raises MissingExtraError without the SDK, AuthError
        where the SDK wants a key that it was not given.
        """

    required_attributes: ClassVar[tuple[str, ...]] = ()
    """What a client of the SDK's has at least: the attributes that are used of it."""

    @classmethod
    def check(cls, client: Any) -> None:
        """Refuse a client that is none of the SDK's async ones. Raises OptionError."""
        kind = type(client).__name__
        missing = [
            name
            for name in cls.required_attributes
            if not (hasattr(client.__class__, name) or hasattr(client, name))
        ]
        if isinstance(client, type):
            reason = f"{client.__name__} is a class"
        elif missing:
            reason = f"a {kind} has no {missing[0]!r}"
        elif hasattr(client, "__enter__") and not hasattr(client, "__aenter__") and not hasattr(client, "aio"):
            reason = f"a {kind} is no async client"
        else:
            return
        raise OptionError("client", reason, "Give the SDK's async client.")

    @abstractmethod
    def build_request(
        self, model: str, request: Mapping[str, Any], options: Mapping[str, Any], *, stream: bool
    ) -> OutgoingRequest:
        """What goes out: the request, the model, and further parameters of the provider's. Pure.

        `timeout` among these is no parameter: the seconds to wait for the server, as ChatModel has it.
        """

    def max_tokens_parameter(self, max_tokens: int) -> dict[str, Any]:
        """The parameter of the provider's that limits the tokens of a reply."""
        return {"max_tokens": max_tokens}

    def requires_stream(self, outgoing: OutgoingRequest) -> bool:
        """Returns True if a whole reply, too, must be requested as a stream.

        Asked before a model call, and once more after its failure.
        """
        return False

    @abstractmethod
    async def send(self, outgoing: OutgoingRequest) -> Mapping[str, Any] | bytes | str:
        """The whole reply, as JSON text or values."""

    @abstractmethod
    def stream(self, outgoing: OutgoingRequest) -> AbstractAsyncContextManager[AsyncIterator[Any]]:
        """The reply's raw bytes, or its events, as they come. Leaving the context closes the connection.

        An `IncomingStream` also carries the id of the call.
        """

    @abstractmethod
    def failure_from_exception(self, error: BaseException) -> Failure | None:
        """What an error of the SDK's, or of its transport, says; None for an error that is neither's."""

    def failure_from_reply(self, reply: object) -> Failure | None:
        """The error that an answer with status 200 says, if it does."""
        return parse_failure(reply)

    @abstractmethod
    async def aclose(self) -> None:
        """Close the client that `open` opened."""


def merge_parameters(request: Mapping[str, Any], options: Mapping[str, Any]) -> dict[str, Any]:
    """A request with further parameters: objects of both are joined, anything else may not be there twice.

    Raises OptionError for a parameter that the conversation has filled already.
    """
    body = dict(request)
    for name, item in options.items():
        held = body.get(name)
        if held is None:
            body[name] = item
        elif isinstance(held, dict) and isinstance(item, Mapping):
            body[name] = {**cast("dict[str, Any]", held), **cast("Mapping[str, Any]", item)}
        else:
            advice = "Leave it to the conversation, or to the options of the call."
            raise OptionError(f"parameters.{name}", "the request has it already", advice)
    return body
