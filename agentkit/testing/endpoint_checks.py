"""Checks that a provider's endpoint sends requests unchanged, and that the endpoint classifies errors."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Callable, Generator, Iterator, Mapping
from contextlib import suppress
from typing import Any, Final, Self

import anyio

from agentkit.models.endpoint import EndpointBase, OutgoingRequest
from agentkit.models.registry import Provider
from agentkit.replies.error_bodies import Failure
from agentkit.testing.conversations import CONVERSATIONS
from agentkit.testing.findings import collect_findings, describe_error
from agentkit.testing.option_probes import make_tools
from agentkit.testing.request_marks import find_marks, iterate_scalars, json_text

__all__ = ["endpoint_faults"]

_MODEL: Final = "model-of-the-check"
_OPTION: Final = {"temperature": 0.375}
_TOKENS: Final = 7321


def endpoint_faults(provider: Provider) -> Iterator[str]:
    """Yields a sentence for each fault of a provider's endpoint."""
    endpoint_class = provider.endpoint
    if endpoint_class is None:
        return
    for check in (_bodies, _sending, _failures):
        place = f"{endpoint_class.__name__}, {check.__name__.strip('_')}"
        yield from collect_findings(place, check(provider, endpoint_class))


def _request(provider: Provider) -> dict[str, Any]:
    msgs = CONVERSATIONS["parallel tool calls"]
    return provider.chat_formatter(_MODEL).lower(msgs, tools=make_tools()).request


def _bodies(provider: Provider, endpoint_class: type[EndpointBase]) -> Iterator[str]:
    """Checks that the result of `build_request` contains the request, the model and the options."""
    endpoint, request = endpoint_class(_Recorder()), _request(provider)
    before = json_text(request)
    options = {**_OPTION, **endpoint.max_tokens_parameter(_TOKENS)}
    if _TOKENS not in [leaf for _, leaf in iterate_scalars(endpoint.max_tokens_parameter(_TOKENS))]:
        yield "`max_tokens_parameter` returns no parameter with the token limit"
    outgoing = {
        stream: endpoint.build_request(_MODEL, request, options, stream=stream) for stream in (False, True)
    }
    if json_text(request) != before:
        yield "`build_request` changes the request"
    if endpoint.build_request(_MODEL, request, options, stream=True) != outgoing[True]:
        yield "`build_request` returns a different OutgoingRequest if called again with the same arguments"
    for stream, call in outgoing.items():
        if not isinstance(call, OutgoingRequest):
            yield f"`build_request` returns {type(call).__name__!r} instead of an OutgoingRequest"
            return
        yield from _check_body(call, request, options)
        if call.stream is not stream:
            yield f"`build_request` with stream={stream} returns an OutgoingRequest with stream={call.stream}"


def _check_body(call: OutgoingRequest, request: Mapping[str, Any], options: Mapping[str, Any]) -> Iterator[str]:
    sent = [leaf for _, leaf in iterate_scalars(call.body)]
    texts = [leaf for leaf in sent if isinstance(leaf, str)]
    missing = [
        leaf
        for _, leaf in iterate_scalars(request)
        if isinstance(leaf, str) and find_marks("mark|call|result|tool", leaf)
    ]
    lost = [leaf for leaf in missing if leaf not in texts]
    if lost:
        yield f"the body from `build_request` lacks some texts of the request, such as {lost[0][:60]!r}"
    if _MODEL not in sent and _MODEL not in call.path:
        yield "`build_request` omits the model"
    for name, value in options.items():
        if any(leaf not in sent for _, leaf in iterate_scalars(value)):
            yield f"`build_request` omits the parameter {name!r}"


# -- sending ------------------------------------------------------------------------------------------------------


class _Recorder:
    """Fake SDK client that accepts all method calls and records their arguments."""

    def __init__(self, calls: list[str] | None = None) -> None:
        self.recorded: list[str] = [] if calls is None else calls

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _Recorder(self.recorded)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        values = [value for _, value in iterate_scalars([args, kwargs])]
        self.recorded += [
            value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value) for value in values
        ]
        return self

    def __await__(self) -> Generator[Any, Any, Self]:
        return self
        yield

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        return None

    def __aiter__(self) -> AsyncIterator[Any]:
        return self

    async def __anext__(self) -> Any:
        raise StopAsyncIteration

    def __bytes__(self) -> bytes:
        return b"{}"


def _sending(provider: Provider, endpoint_class: type[EndpointBase]) -> Iterator[str]:
    """Checks that `send` and `stream` pass the complete request to the SDK client."""
    request = _request(provider)
    for stream in (False, True):
        client = _Recorder()
        endpoint = endpoint_class(client)
        outgoing = endpoint.build_request(_MODEL, request, {}, stream=stream)
        client.recorded.clear()
        _call(endpoint, outgoing)
        sent = "\n".join(client.recorded)
        wanted = find_marks("mark", json_text(outgoing.body))
        if client.recorded and wanted and not find_marks("mark", sent).keys() >= wanted.keys():
            yield f"`{'stream' if stream else 'send'}` does not send the body"


def _call(endpoint: EndpointBase, outgoing: OutgoingRequest) -> None:
    """Sends a request with a fake client. Ignores exceptions, which the client's invalid reply may cause."""

    async def call() -> None:
        with anyio.move_on_after(_TIMEOUT_SECONDS):
            if not outgoing.stream:
                await endpoint.send(outgoing)
                return
            async with endpoint.stream(outgoing) as chunks:
                async for _ in chunks:
                    pass

    def run() -> None:
        with suppress(BaseException):
            anyio.run(call)

    # A new thread is used, because the current thread may already have a running event loop.
    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(2 * _TIMEOUT_SECONDS)


_TIMEOUT_SECONDS: Final = 5.0


# -- errors -------------------------------------------------------------------------------------------------------


class _OddError(Exception):
    """Exception that has the attributes of SDK errors, but values of unexpected types."""

    status_code = status = code = "?"
    response = request = headers = body = message = details = None


_ERRORS: Final[tuple[Callable[[], BaseException], ...]] = (
    _OddError,
    ValueError,
    lambda: KeyError("x"),
    lambda: OSError(5, "x"),
    lambda: TimeoutError("x"),
    lambda: ConnectionError("x"),
    lambda: ExceptionGroup("x", [ValueError("y")]),
)
_REPLIES: Final[tuple[object, ...]] = (
    {},
    [],
    None,
    "text",
    b"\xff",
    {"error": None},
    {"error": 3},
    {"error": {"message": None, "code": []}},
)


def _failures(provider: Provider, endpoint_class: type[EndpointBase]) -> Iterator[str]:
    """Checks that the endpoint returns a `Failure` or None for each exception and each reply."""
    endpoint = endpoint_class(_Recorder())
    for make in _ERRORS:
        error = make()
        yield from _check_classification(
            "failure_from_exception", endpoint.failure_from_exception, error, type(error).__name__
        )
    for reply in _REPLIES:
        yield from _check_classification("failure_from_reply", endpoint.failure_from_reply, reply, repr(reply))
    if endpoint.failure_from_exception(ZeroDivisionError("x")) is not None:
        yield "`failure_from_exception` classifies an error of the application as a failure of the provider"


def _check_classification(
    name: str, classify: Callable[[Any], object], value: object, label: str
) -> Iterator[str]:
    try:
        failure = classify(value)
    except Exception as error:
        yield f"`{name}` raises {describe_error(error)} for {label}"
        return
    if failure is not None and not isinstance(failure, Failure):
        yield f"`{name}` returns {type(failure).__name__!r} for {label} instead of a Failure or None"
