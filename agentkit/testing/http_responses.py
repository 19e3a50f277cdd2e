"""Converts prepared replies to the HTTP responses of the loopback server."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, cast

from agentkit.errors import OptionError
from agentkit.messages.message import Msg
from agentkit.testing.recorded_request import RecordedRequest
from agentkit.testing.replies import LoopbackError, NormalizedReply, PlayableReply, ReceivedCall, Reply
from agentkit.testing.routes import RouteMatch
from agentkit.testing.service import FakeService, encode_json

__all__ = ["Answer", "answer_error", "answer_request"]


@dataclass(frozen=True, slots=True)
class Answer:
    """HTTP response with a complete body, or with the pieces of a stream.

    Attributes:
        status: HTTP status.
        headers: Headers of the response. For a complete body, the server adds the content length. The server also
            adds the content type `application/json` unless `headers` contains a content type.
        body: Body of a response that is not streamed.
        frames: Pieces of a streamed body. None means that the response is not streamed.
        delay: Seconds to wait before the body, or before each piece of a stream.
        cut_after: Number of pieces after which the server breaks the connection. None means never.
        cut_after_bytes: Number of bytes after which the server breaks the connection. None means never.
    """

    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    body: bytes = b""
    frames: Iterable[bytes] | None = None
    delay: float = 0.0
    cut_after: int | None = None
    cut_after_bytes: int | None = None


def answer_error(service: FakeService, error: LoopbackError) -> Answer:
    """Returns the response for an error. The response is never streamed."""
    headers = {**service.build_headers("loopback"), **service.build_error_headers(error)}
    if error.retry_after is not None:
        headers["retry-after"] = f"{error.retry_after:g}"
    return Answer(error.status, headers, encode_json(service.build_error(error)))


def answer_request(
    route: RouteMatch, request: RecordedRequest, next_reply: Callable[[], PlayableReply], *, validate: bool
) -> Answer:
    """Returns the response to a request.

    Args:
        route: Route of the request.
        request: Request to answer. If the service refuses the request, `request.refused` is set.
        next_reply: Function that returns the next prepared reply. Called only for a model call that the service
            accepts.
        validate: True to refuse requests in which the service finds a fault, such as an unpaired tool call. The
            response then has status 400.

    Raises:
        OptionError: If the wire format cannot represent the prepared reply. Also raised if the request asks for
            a complete reply and the prepared reply is a list of events. A dict is refused if the request asks for
            a stream.
    """
    body = request.body
    if not isinstance(body, dict):
        return answer_error(route.service, LoopbackError(400, "We could not parse the JSON body of your request."))
    call = ReceivedCall(request.model, cast("dict[str, Any]", body), request.streamed)
    token_count = route.service.count(route.verb, call.body)
    if token_count is not None:
        return Answer(body=encode_json(token_count))
    request.refused = route.service.find_fault(call) if validate else None
    if request.refused is not None:
        return answer_error(route.service, LoopbackError(400, request.refused))
    return _play(route.service, call, next_reply())


def _play(service: FakeService, call: ReceivedCall, playable: PlayableReply) -> Answer:
    while callable(playable):
        try:
            playable = playable(dict(call.body))
        except LoopbackError as error:
            playable = error
    if isinstance(playable, LoopbackError):
        return answer_error(service, playable)
    reply = playable if isinstance(playable, Reply) else Reply(playable)
    if isinstance(reply.content, str):
        reply = replace(reply, content=Msg("assistant", reply.content, "assistant"))
    answer = (_answer_stream if call.is_streamed else _answer_whole)(service, call, reply)
    headers = {**answer.headers, **(reply.headers or {})}
    return replace(answer, headers=headers, delay=reply.delay, cut_after_bytes=reply.cut_after_bytes)


def _answer_whole(service: FakeService, call: ReceivedCall, reply: Reply) -> Answer:
    content = reply.content
    if reply.error is not None:
        return answer_error(service, reply.error)
    if isinstance(content, Msg):
        normalized = NormalizedReply.normalize(content, reply, service.get_prompt(call.body))
        body = encode_json(service.build_reply(normalized, call))
        return Answer(headers=service.build_headers(normalized.id), body=body)
    if isinstance(content, bytes):
        return Answer(body=content)
    if isinstance(content, Mapping):
        return Answer(body=encode_json(content))
    reason = "the prepared reply is a list of events, but the request asks for a complete reply"
    raise OptionError("replies", reason, "Pass a dict or a Msg.")


def _answer_stream(service: FakeService, call: ReceivedCall, reply: Reply) -> Answer:
    content, reply_id, end = reply.content, "loopback", service.stream_end
    if isinstance(content, Msg):
        normalized = NormalizedReply.normalize(content, reply, service.get_prompt(call.body))
        events: Iterable[Mapping[str, Any] | bytes] = service.build_events(normalized, call)
        reply_id = normalized.id
    elif isinstance(content, bytes):
        events, end = [content], b""
    elif isinstance(content, list | tuple):
        events = cast("list[Mapping[str, Any] | bytes]", content)
    else:
        reason = "the prepared reply is a complete native reply, but the request asks for a stream"
        raise OptionError("replies", reason, "Pass a list of events or a Msg.")
    headers = {
        "content-type": service.media_type,
        "cache-control": "no-cache",
        **service.build_headers(reply_id),
    }
    frames = _build_frames(service, [*events], reply, end)
    return Answer(headers=headers, frames=frames, cut_after=reply.cut_after)


def _build_frames(
    service: FakeService, events: list[Mapping[str, Any] | bytes], reply: Reply, end: bytes
) -> Iterator[bytes]:
    if reply.error is not None:
        events, end = [*events[: reply.error_after], service.build_error_event(reply.error)], b""
    yield from service.encode_events(events)
    if end:
        yield end
