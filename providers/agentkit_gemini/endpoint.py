"""Endpoint for model calls through google-genai, Gemini's SDK."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing, asynccontextmanager
from typing import Any, Self, cast

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
from agentkit_gemini._errors import parse_sdk_error
from agentkit_gemini._rest_body import build_rest_body
from agentkit_gemini._transport import Sender

__all__ = ["GeminiEndpoint"]

_PLACEHOLDER = "."  # dummy value for the SDK's required argument `contents`; the body contains the real contents


class GeminiEndpoint(EndpointBase):
    """Endpoint for Gemini, through `google.genai.Client` or its attribute `aio`.

    The client can be for the Gemini Developer API or for Vertex AI. The SDK chooses the URL path, the credentials
    and the HTTP client. The endpoint sends the finished body unchanged, and does not parse the reply (see
    `Sender`). A test double of the SDK's `models` gets the body as `http_options.extra_body`, and returns its own
    events.

    `open` creates a client with the HTTP library httpx2, which supports asyncio and trio. If the application
    creates the client, and aiohttp is installed, the client uses aiohttp by default.

    A parameter is a field of GenerateContentConfig (`temperature`, `thinking_config` …). The parameter `config`
    can contain a dict of such fields. `max_tokens` becomes `max_output_tokens`. The SDK retries failed calls only
    with retry options (`client_options={"http_options": {"retry_options": {…}}}`). Without `timeout`, there is no
    time limit.
    """

    extra = "gemini"

    def __init__(self, client: Any, http: Any = None) -> None:
        super().__init__(client)
        self._http = http

    @property
    def _models(self) -> Any:
        return getattr(self.client, "aio", self.client).models

    @classmethod
    def check(cls, client: Any) -> None:
        """Raises OptionError if the client has no `models.generate_content`."""
        super().check(client)
        models = getattr(getattr(client, "aio", client), "models", None)
        if not hasattr(models, "generate_content"):
            raise OptionError(
                "client",
                f"expected an object with `models.generate_content`, got {type(client).__name__}",
                "Pass a google.genai.Client.",
            )

    @classmethod
    def open(cls, **options: Any) -> Self:
        """Creates an endpoint with `genai.Client(**options)`. The option `base_url` is added to `http_options`.

        Raises:
            MissingExtraError: The SDK is not installed.
            AuthError: There are no credentials.
        """
        try:
            import httpx2
            from google import genai
            from google.genai import types
        except ImportError:
            raise MissingExtraError("google-genai", cls.extra, "Calling Gemini") from None
        client_options = dict(options)
        http_options = types.HttpOptions.model_validate(
            client_options.pop("http_options", None) or {}
        ).model_copy()
        if (url := client_options.pop("base_url", None)) is not None:
            http_options.base_url = url
        http = None
        if not (http_options.httpx_async_client or http_options.aiohttp_client or http_options.async_client_args):
            # Redirects are off. The API never uses redirects, and a redirect could send the API key to another
            # server.
            http = httpx2.AsyncClient(follow_redirects=False, timeout=None)
            http_options.httpx_async_client = http
        try:
            return cls(genai.Client(http_options=http_options, **client_options), http)
        except ValueError as error:  # without credentials, the SDK raises "Missing key inputs argument!"
            raise AuthError("gemini", str(error)) from error

    def build_request(
        self, model: str, request: Mapping[str, Any], options: Mapping[str, Any], *, stream: bool
    ) -> OutgoingRequest:
        """Returns the HTTP request, with the JSON body of the REST API.

        Raises:
            OptionError: A parameter has the name `contents`.
        """
        fields = dict(options)
        seconds = fields.pop("timeout", None)
        config = merge_parameters(request.get("config") or {}, _read_config(fields.pop("config", None)))
        config = merge_parameters(config, _read_config(fields))
        if "contents" in config:
            raise OptionError("parameters.contents", "already set by the request", "Remove the parameter.")
        http_options = config.pop("http_options", None)
        http_options = http_options if seconds is None else _with_timeout(http_options, seconds)
        call_options = {"http_options": http_options} if http_options else {}
        return OutgoingRequest(model, build_rest_body({**request, "config": config}), stream, call_options)

    def max_tokens_parameter(self, max_tokens: int) -> dict[str, Any]:
        """Returns the maximum number of output tokens as the parameter `max_output_tokens`."""
        return {"max_output_tokens": max_tokens}

    async def send(self, outgoing: OutgoingRequest) -> str:
        """Sends the request, and returns the JSON text of the reply."""
        sender = Sender.create(self._models, outgoing)
        models, config = (
            (sender.models, _build_config(outgoing)) if sender else (self._models, _config_with_body(outgoing))
        )
        config["should_return_http_response"] = True
        response = await models.generate_content(model=outgoing.path, contents=_PLACEHOLDER, config=config)
        return str(response.sdk_http_response.body or "")

    @asynccontextmanager
    async def stream(self, outgoing: OutgoingRequest) -> AsyncGenerator[AsyncIterator[Any]]:
        """Sends a streamed request. Yields an iterator over the bytes of the reply.

        If the SDK's `models` is a test double, yields an iterator over the events of the test double instead.
        """
        sender = Sender.create(self._models, outgoing)
        if sender is None:
            events = await self._models.generate_content_stream(
                model=outgoing.path, contents=_PLACEHOLDER, config=_config_with_body(outgoing)
            )
            async with aclosing(events):
                yield events
            return
        try:
            events = await sender.models.generate_content_stream(
                model=outgoing.path, contents=_PLACEHOLDER, config=_build_config(outgoing)
            )
            async for _ in events:  # the SDK sends the request in this loop; `events` is always empty
                pass
            yield sender.received()
        finally:
            await sender.aclose()

    def failure_from_exception(self, error: BaseException) -> Failure | None:
        """Returns a `Failure` for an error of the SDK, its HTTP client or google-auth, otherwise None."""
        return parse_sdk_error(error)

    async def aclose(self) -> None:
        """Closes the SDK's client, and the HTTP client that `open` created."""
        await self.client.aio.aclose()
        self.client.close()
        if self._http is not None:
            await self._http.aclose()


_WORD_START = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def _build_config(outgoing: OutgoingRequest) -> dict[str, Any]:
    """Returns the argument `config` of the SDK's method.

    The result is a dict and not a GenerateContentConfig, because the SDK would create a deep copy of such an
    object.
    """
    from google.genai import types

    return {
        "http_options": types.HttpOptions.model_validate(outgoing.options.get("http_options") or {}),
        "automatic_function_calling": {"disable": True},
        "automatic_continuation": False,
    }


def _with_timeout(http_options: Any, seconds: float) -> Any:
    """Returns the HTTP options with a timeout, which the SDK expects in milliseconds.

    If the options already have a timeout, this timeout does not change.
    """
    timeout = max(1, round(seconds * 1_000))
    if http_options is None or isinstance(http_options, Mapping):
        return {"timeout": timeout, **cast("Mapping[str, Any]", http_options or {})}
    return http_options if http_options.timeout else http_options.model_copy(update={"timeout": timeout})


def _config_with_body(outgoing: OutgoingRequest) -> dict[str, Any]:
    """Returns the argument `config` with the request body as `extra_body`, which overrides the SDK's own body."""
    config = _build_config(outgoing)
    http_options = config["http_options"]
    body: dict[str, Any] = {**outgoing.body, **(http_options.extra_body or {})}
    return {**config, "http_options": http_options.model_copy(update={"extra_body": body})}


def _read_config(config: object) -> dict[str, Any]:
    """Converts a config (a dict or SDK object) to a dict with snake_case keys. Returns an empty dict for None."""
    fields = cast("Mapping[str, Any]", native_to_json(config) if config is not None else {})
    return {_WORD_START.sub("_", name).lower(): item for name, item in fields.items()}
