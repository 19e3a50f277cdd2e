"""google-genai as a way to send."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing, asynccontextmanager
from typing import Any, ClassVar, Self, cast

from agentkit.provider_kit import (
    AuthError,
    EndpointBase,
    Failure,
    MissingExtraError,
    OptionError,
    OutgoingRequest,
    merge_parameters,
    native_to_json,
)
from agentkit_gemini._errors import failure_of
from agentkit_gemini._rest_body import rest_body
from agentkit_gemini._transport import Sender

__all__ = ["GeminiEndpoint"]

_STAND_IN = "."  # the SDK wants contents of its own; those of the body take their place


class GeminiEndpoint(EndpointBase):
    """`google.genai.Client`, or its `aio`, for the Gemini API and the enterprise platform alike.

    The SDK finds the path, the credentials and the transport, and tries again; the finished body of the REST API
    goes out as it is, and the reply comes back as bytes (see `Sender`). Models that only look like the SDK's get
    the body as `http_options.extra_body`, which the SDK puts over its own, and give their own events.

    The client that is opened here uses httpx2, which runs on asyncio and trio; the SDK would prefer aiohttp, where
    it is installed. A parameter is one of GenerateContentConfig (`temperature`, `thinking_config` …), also as
    `config={…}`. `max_tokens` is `max_output_tokens`. The SDK tries again only if it is told to
    (`client_options={"http_options": {"retry_options": {…}}}`), and has no time limit unless
    there is a `timeout`.
    """

    extra: ClassVar[str] = "gemini"

    def __init__(self, client: Any, http: Any = None) -> None:
        super().__init__(client)
        self._http = http

    @property
    def _models(self) -> Any:
        return getattr(self.client, "aio", self.client).models

    @classmethod
    def check(cls, client: Any) -> None:
        """Refuse what is no client of google-genai's, and looks like none."""
        super().check(client)
        models = getattr(getattr(client, "aio", client), "models", None)
        if not hasattr(models, "generate_content"):
            reason = f"a {type(client).__name__} has no 'models.generate_content'"
            raise OptionError("client", reason, "Pass a google.genai.Client.")

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
            http = httpx2.AsyncClient(follow_redirects=False, timeout=None)
            http_options.httpx_async_client = http
        try:
            return cls(genai.Client(http_options=http_options, **found), http)
        except ValueError as error:  # "Missing key inputs argument!"
            raise AuthError("gemini", str(error)) from error

    def build_request(
        self, model: str, request: Mapping[str, Any], options: Mapping[str, Any], *, stream: bool
    ) -> OutgoingRequest:
        """The request as the REST API takes it."""
        rest = dict(options)
        seconds = rest.pop("timeout", None)
        config = merge_parameters(request.get("config") or {}, _settings(rest.pop("config", None)))
        config = merge_parameters(config, _settings(rest))
        if "contents" in config:
            raise OptionError("parameters.contents", "already set by the request", "Remove the parameter.")
        http_options = config.pop("http_options", None)
        http_options = http_options if seconds is None else _with_timeout(http_options, seconds)
        kept = {"http_options": http_options} if http_options else {}
        return OutgoingRequest(model, rest_body({**request, "config": config}), stream, kept)

    def max_tokens_parameter(self, max_tokens: int) -> dict[str, Any]:
        """`max_output_tokens`."""
        return {"max_output_tokens": max_tokens}

    async def send(self, outgoing: OutgoingRequest) -> str:
        """The reply's JSON text."""
        sender = Sender.of(self._models, outgoing)
        models, config = (sender.models, _config(outgoing)) if sender else (self._models, _with_body(outgoing))
        config["should_return_http_response"] = True
        answer = await models.generate_content(model=outgoing.path, contents=_STAND_IN, config=config)
        return str(answer.sdk_http_response.body or "")

    @asynccontextmanager
    async def stream(self, outgoing: OutgoingRequest) -> AsyncGenerator[AsyncIterator[Any]]:
        """The bytes of the event stream; the SDK's events from what only looks like its client."""
        sender = Sender.of(self._models, outgoing)
        if sender is None:
            events = await self._models.generate_content_stream(
                model=outgoing.path, contents=_STAND_IN, config=_with_body(outgoing)
            )
            async with aclosing(events):
                yield events
            return
        try:
            events = await sender.models.generate_content_stream(
                model=outgoing.path, contents=_STAND_IN, config=_config(outgoing)
            )
            async for _ in events:  # the SDK's own reading, of nothing
                pass
            yield sender.received()
        finally:
            await sender.aclose()

    def failure_from_exception(self, error: BaseException) -> Failure | None:
        """What the SDK's error, or its HTTP client's, says."""
        return failure_of(error)

    async def aclose(self) -> None:
        """Close the SDK's client, and the HTTP client that it was given."""
        await self.client.aio.aclose()
        self.client.close()
        if self._http is not None:
            await self._http.aclose()


_SNAKE = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def _config(outgoing: OutgoingRequest) -> dict[str, Any]:
    """What the SDK has to know. A dict: it copies a GenerateContentConfig to its depths."""
    from google.genai import types

    return {
        "http_options": types.HttpOptions.model_validate(outgoing.options.get("http_options") or {}),
        "automatic_function_calling": {"disable": True},
        "automatic_continuation": False,
    }


def _with_timeout(http_options: Any, seconds: float) -> Any:
    """The options of a call, a dict or the SDK's object, with a timeout in milliseconds unless they have one."""
    timeout = max(1, round(seconds * 1_000))
    if http_options is None or isinstance(http_options, Mapping):
        return {"timeout": timeout, **cast("Mapping[str, Any]", http_options or {})}
    return http_options if http_options.timeout else http_options.model_copy(update={"timeout": timeout})


def _with_body(outgoing: OutgoingRequest) -> dict[str, Any]:
    """The body as `extra_body`, which the SDK puts over its own."""
    config = _config(outgoing)
    given = config["http_options"]
    body: dict[str, Any] = {**outgoing.body, **(given.extra_body or {})}
    return {**config, "http_options": given.model_copy(update={"extra_body": body})}


def _settings(config: object) -> dict[str, Any]:
    """A config of the caller's, a dict or the SDK's object, by the SDK's own names: it takes the wire's too."""
    found = cast("Mapping[str, Any]", native_to_json(config) if config is not None else {})
    return {_SNAKE.sub("_", name).lower(): item for name, item in found.items()}
