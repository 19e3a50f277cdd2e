"""google-genai as a way to send."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing, asynccontextmanager
from contextvars import ContextVar
from typing import Any, ClassVar, Self, cast

from agentkit import (
    AuthError,
    EndpointBase,
    Failure,
    MissingExtraError,
    OptionError,
    Outgoing,
    failure_in,
    items_of,
    mapping_of,
    merged,
    plain,
    retry_after,
)
from agentkit_gemini.rest import rest_body

__all__ = ["GeminiEndpoint"]

_STAND_IN = "."  # the SDK wants contents of its own; those of the body take their place
_TRANSPORTS = frozenset({"aiohttp", "httpx", "httpx2", "httpcore", "httpcore2"})


class GeminiEndpoint(EndpointBase):
    """`google.genai.Client`, or its `aio`, for the Gemini API and the enterprise platform alike.

    The finished body of the REST API is handed over as `http_options.extra_body`, which the SDK puts over its own:
    its walk over contents and tools has nothing to walk. A whole reply comes back as its text
    (`should_return_http_response`). For a stream the SDK has no such way: the HTTP client that is opened here
    keeps the answer's body from the SDK, to be read as bytes. A client of the caller's gives the SDK's own events.

    The client that is opened here uses httpx2, which runs on asyncio and trio; the SDK would prefer aiohttp, where
    it is installed. A parameter is one of GenerateContentConfig (`temperature`, `thinking_config` …), also as
    `config={…}`. `max_tokens` is `max_output_tokens`. The SDK tries again only if it is told to
    (`client_options={"http_options": {"retry_options": {…}}}`).
    """

    extra: ClassVar[str] = "gemini"

    def __init__(self, client: Any, http: Any = None) -> None:
        super().__init__(client)
        self._http = http

    @property
    def _models(self) -> Any:
        return getattr(self.client, "aio", self.client).models

    @classmethod
    def open(cls, **options: Any) -> Self:
        """`genai.Client(**options)`; `base_url` is one of its `http_options`."""
        try:
            import httpx2
            from google import genai
            from google.genai import types
        except ImportError:
            raise MissingExtraError("google-genai", cls.extra, "Calling Gemini") from None
        found = dict(options)
        http_options = types.HttpOptions.model_validate(found.pop("http_options", None) or {}).model_copy()
        if (url := found.pop("base_url", None)) is not None:
            http_options.base_url = url
        http = None
        if not (http_options.httpx_async_client or http_options.aiohttp_client or http_options.async_client_args):
            # The API redirects nobody, and the key in its header would go wherever a redirect points.
            http = httpx2.AsyncClient(follow_redirects=False, timeout=None, event_hooks={"response": [_keep]})
            http_options.httpx_async_client = http
        try:
            return cls(genai.Client(http_options=http_options, **found), http)
        except ValueError as error:  # "Missing key inputs argument!"
            raise AuthError("gemini", str(error)) from error

    def body(
        self, model: str, request: Mapping[str, Any], options: Mapping[str, Any], *, stream: bool
    ) -> Outgoing:
        """The request as the REST API takes it."""
        rest = dict(options)
        config = merged(request.get("config") or {}, _settings(rest.pop("config", None)))
        config = merged(config, _settings(rest))
        if "contents" in config:
            raise OptionError("parameters.contents", "the request has it already", "Leave it to the conversation.")
        http_options = config.pop("http_options", None)
        kept = {"http_options": http_options} if http_options else {}
        return Outgoing(model, rest_body({**request, "config": config}), stream, kept)

    def limit(self, max_tokens: int) -> dict[str, Any]:
        """`max_output_tokens`."""
        return {"max_output_tokens": max_tokens}

    async def send(self, outgoing: Outgoing) -> str:
        """The reply's JSON text."""
        config = {**_config(outgoing), "should_return_http_response": True}
        answer = await self._models.generate_content(model=outgoing.path, contents=_STAND_IN, config=config)
        return str(answer.sdk_http_response.body or "{}")

    @asynccontextmanager
    async def stream(self, outgoing: Outgoing) -> AsyncGenerator[AsyncIterator[Any]]:
        """The bytes of the event stream; from a client of the caller's, the SDK's events."""
        answers: list[Any] = []
        token = _ANSWERS.set(answers if self._http is not None else None)
        try:
            events = await self._models.generate_content_stream(
                model=outgoing.path, contents=_STAND_IN, config=_config(outgoing)
            )
            if self._http is not None:
                async for _ in events:  # the SDK's own reading, of an answer without a body
                    pass
        except BaseException:
            await _close(answers)
            raise
        finally:
            _ANSWERS.reset(token)
        if self._http is None:
            async with aclosing(events):
                yield events
            return
        try:
            yield _with_bare_errors(answers[-1].aiter_bytes())
        finally:
            await _close(answers)

    def failure(self, error: BaseException) -> Failure | None:
        """The SDK's error, or one of its HTTP client's, which the SDK passes on."""
        from google.auth import exceptions
        from google.genai import errors

        if isinstance(error, errors.APIError):
            return _failure_of(error)
        if isinstance(error, exceptions.TransportError):
            return Failure(str(error), network=True)
        if isinstance(error, exceptions.GoogleAuthError):
            return Failure(str(error), code="UNAUTHENTICATED")
        if isinstance(error, TimeoutError | ConnectionError) or _is_transport(error):
            return Failure(str(error) or type(error).__name__, network=True)
        return None

    async def aclose(self) -> None:
        """Close the SDK's client, and the HTTP client that it was given."""
        await self.client.aio.aclose()
        self.client.close()
        if self._http is not None:
            await self._http.aclose()


_ANSWERS: ContextVar[list[Any] | None] = ContextVar("_ANSWERS", default=None)
"""The answers to the call that is being opened in this task."""


async def _keep(answer: Any) -> None:
    """A hook of the HTTP client's: a good answer to a call that is to be streamed is kept, and the SDK given one
    without a body.
    """
    import httpx2

    answers = _ANSWERS.get()
    if answers is None or answer.status_code != 200:
        return
    kept = httpx2.Response(
        200, headers=answer.headers, stream=answer.stream, request=answer.request, extensions=answer.extensions
    )
    answers.append(kept)
    answer.stream = httpx2.ByteStream(b"")


async def _close(answers: list[Any]) -> None:
    for answer in answers:
        await answer.aclose()


async def _with_bare_errors(pieces: AsyncIterator[bytes]) -> AsyncIterator[Any]:
    """The bytes of an event stream; an error that comes as JSON in lines of its own, as the SDK knows them, as one
    event. What begins so is left to the reader.
    """
    bare = b""
    before = b" "  # the last byte of the piece before
    async for piece in pieces:
        if bare:
            bare += piece
        elif begins := _BARE.search(before + piece):
            at = begins.end() - 2  # `before` is one byte
            yield piece[:at]
            bare = piece[at:]
        else:
            before = piece[-1:] or before
            yield piece
    if bare:
        found = plain(bare)
        yield cast("list[Any]", found)[0] if isinstance(found, list) and found else found


_SNAKE = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_BARE = re.compile(rb"\n[{\[]")


def _config(outgoing: Outgoing) -> dict[str, Any]:
    """A config that is nothing but the body. A dict: the SDK copies a GenerateContentConfig to its depths."""
    from google.genai import types

    given = outgoing.options.get("http_options")
    http_options = types.HttpOptions.model_validate(given or {}).model_copy(update={"extra_body": outgoing.body})
    return {
        "http_options": http_options,
        "automatic_function_calling": {"disable": True},
        "automatic_continuation": False,
    }


def _settings(config: object) -> dict[str, Any]:
    """A config of the caller's, a dict or the SDK's object, by the SDK's own names: it takes the wire's too."""
    found = cast("Mapping[str, Any]", plain(config) if config is not None else {})
    return {_SNAKE.sub("_", name).lower(): item for name, item in found.items()}


def _failure_of(error: Any) -> Failure:
    details = mapping_of(error.details)
    inner = mapping_of(details.get("error")) or details
    told = failure_in(details) or failure_in({"error": inner}) or Failure("")
    headers: Mapping[str, Any] = getattr(error.response, "headers", None) or {}
    return Failure(
        told.said or error.message or str(error),
        error.code if isinstance(error.code, int) else None,
        _reason(inner) or error.status,
        headers.get("x-request-id"),
        retry_after(headers) if (delay := _delay(inner)) is None else delay,
    )


def _items(inner: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The details of Google's errors (google.rpc: error_details)."""
    return [mapping_of(item) for item in items_of(inner.get("details"))]


def _reason(inner: Mapping[str, Any]) -> str | None:
    reasons = (item.get("reason") for item in _items(inner))
    return next((reason for reason in reasons if isinstance(reason, str) and reason == "API_KEY_INVALID"), None)


def _delay(inner: Mapping[str, Any]) -> float | None:
    """RetryInfo's delay: seconds with an `s` behind (protobuf's JSON form of a Duration)."""
    for item in _items(inner):
        match = re.fullmatch(r"(\d+(?:\.\d+)?)s", str(item.get("retryDelay")))
        if match:
            return float(match[1])
    return None


def _is_transport(error: BaseException) -> bool:
    """Whether an error is an HTTP client's: the SDK passes them on as they are."""
    return type(error).__module__.partition(".")[0] in _TRANSPORTS
