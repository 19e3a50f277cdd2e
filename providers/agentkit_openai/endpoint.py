"""Endpoints that send requests through the openai SDK, to OpenAI and to compatible vendors."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar, Self

from agentkit.provider_kit import (
    AuthError,
    Failure,
    OptionError,
    OutgoingRequest,
    SDKEndpoint,
    as_object,
    merge_parameters,
    split_http_options,
)
from agentkit_openai._error_patterns import TOOLS_ADVICE, TOOLS_REFUSED
from agentkit_openai.compatible import OPENAI, VENDOR_CHAT, OpenAICompatible

__all__ = ["OpenAIChatEndpoint", "OpenAICompletionsEndpoint", "OpenAIResponsesEndpoint"]


class OpenAIChatEndpoint(SDKEndpoint):
    """Endpoint for `AsyncOpenAI`, `AsyncAzureOpenAI` and other async clients of the openai SDK.

    The endpoint posts the request body to `/chat/completions`, and returns the bytes of the reply. Azure's client
    inserts the deployment into the path. The options `extra_headers`, `extra_query`, `extra_body` and `timeout`
    have the same meaning as in the SDK's methods. The option `max_tokens` of a `ChatModel` is sent under the
    vendor's name for the parameter.
    """

    provider = OPENAI.name
    vendor: ClassVar[OpenAICompatible] = OPENAI
    """Description of the vendor, including its address, API key variable and parameter names."""
    path = "/chat/completions"
    extra = "openai"
    sdk = "openai"
    client_class = "AsyncOpenAI"
    error_class = "OpenAIError"
    no_key = re.compile("(Missing|not find) credentials")
    required_attributes = ("post", "chat")

    @classmethod
    def open(cls, **options: Any) -> Self:
        """Creates an endpoint with a new client, `AsyncOpenAI(**options)`.

        By default, the API key and the address come from the environment variables of the vendor.

        Raises:
            MissingExtraError: The SDK is not installed.
            AuthError: No API key is set.
            OptionError: The vendor has no default address, and no address is set.
        """
        cls.import_sdk()  # a missing SDK is reported before a missing key
        return super().open(**_complete_client_options(cls.vendor, options))

    def build_request(
        self, model: str, request: Mapping[str, Any], options: Mapping[str, Any], *, stream: bool
    ) -> OutgoingRequest:
        """Builds the request for a model call from the converted request and its options.

        A streamed request asks the vendor to report usage at the end. Any other request contains `"stream":
        false`, because some servers stream by default (transformers' Responses server).

        Raises:
            OptionError: A parameter in `options` is already in the converted request.
        """
        parameters, http_options = split_http_options(options)
        extra_body: dict[str, Any] = parameters.pop("extra_body", None) or {}
        body = merge_parameters({"model": model, **request}, parameters)
        body |= {"stream": True, **self._stream_options(body)} if stream else {"stream": False}
        body |= extra_body
        return OutgoingRequest(self.path, body, stream, http_options)

    def _stream_options(self, body: Mapping[str, Any]) -> dict[str, Any]:
        if not self.vendor.stream_usage:
            return {}
        return {"stream_options": {"include_usage": True, **(body.get("stream_options") or {})}}

    def max_tokens_parameter(self, max_tokens: int) -> dict[str, Any]:
        """Returns a dict with the token limit for a reply, under the vendor's name for the parameter."""
        return {self.vendor.max_tokens: max_tokens}

    def failure_from_status_error(self, error: Any) -> Failure:
        """Returns the failure for a response with an error status.

        If the model accepts tools only in the Responses API, the failure advises the user to use that API.
        """
        failure = super().failure_from_status_error(error)
        advice = TOOLS_ADVICE if TOOLS_REFUSED.search(failure.message) else None
        return replace(failure, code=failure.code or error.code or error.type, advice=advice)


class OpenAIResponsesEndpoint(OpenAIChatEndpoint):
    """Endpoint that sends requests to `/responses` through async clients of the openai SDK."""

    path = "/responses"

    def max_tokens_parameter(self, max_tokens: int) -> dict[str, Any]:
        """Returns a dict with the token limit for a reply, as `max_output_tokens`."""
        return {"max_output_tokens": max_tokens}

    def _stream_options(self, body: Mapping[str, Any]) -> dict[str, Any]:
        return {}


class OpenAICompletionsEndpoint(OpenAIChatEndpoint):
    """Endpoint that sends prompts to `/completions` of a local server through async clients of the openai SDK.

    The address is required: pass `client_options={"base_url": "http://localhost:8000/v1"}`. Parameters replace the
    fields of the request with the same name, such as `stop`.
    """

    vendor = OpenAICompatible(
        name="openai-completions",
        title="OpenAICompletions",
        capabilities=VENDOR_CHAT,
        needs_address=True,
        keyless="EMPTY",  # without this value, the SDK would send the user's OpenAI key to this server
    )
    provider = vendor.name
    path = "/completions"

    def build_request(
        self, model: str, request: Mapping[str, Any], options: Mapping[str, Any], *, stream: bool
    ) -> OutgoingRequest:
        """Builds the request for a model call from the prompt and its options.

        Without the parameter `max_tokens`, the request has `"max_tokens": null`. The default of vLLM is 16 tokens,
        and null means no limit (vllm/entrypoints/openai/completion/protocol.py, read on 2026-11-26).

        Raises:
            OptionError: A parameter is named `prompt`.
        """
        fields = {name: value for name, value in request.items() if name == "prompt" or name not in options}
        fields.pop("extra_body", None)
        own = as_object(request.get("extra_body"))
        extra: dict[str, Any] = {name: value for name, value in own.items() if name not in options}
        extra.update(as_object(options.get("extra_body")))
        parameters: dict[str, Any] = {"max_tokens": None, **options, "extra_body": extra}
        return super().build_request(model, fields, parameters, stream=stream)


def _complete_client_options(vendor: OpenAICompatible, options: Mapping[str, Any]) -> dict[str, Any]:
    """Returns client options with an API key and an address.

    Missing values come from the environment or from the description of the vendor.

    Raises:
        AuthError: The vendor requires an API key, and no key is set.
        OptionError: The vendor has no default address, and no address is set.
    """
    client_options = dict(options)
    if client_options.get("api_key") is None and (vendor.key or vendor.keyless):
        client_options["api_key"] = _get_variable(vendor.key) or vendor.keyless
        if client_options["api_key"] is None:
            raise AuthError(
                vendor.name,
                "no API key is set. Pass client_options={'api_key': …} or "
                f"set the environment variable {vendor.key}",
            )
    if client_options.get("base_url") is None and (vendor.address or vendor.needs_address):
        url = _get_variable(vendor.address_variable)
        client_options["base_url"] = f"{url.rstrip('/')}{vendor.address_path}" if url else vendor.address
        if client_options["base_url"] is None:
            advice = "Pass client_options={'base_url': …}."
            if vendor.address_variable:
                advice += f" Or set the environment variable {vendor.address_variable}."
            raise OptionError("client_options.base_url", f"{vendor.name!r} has no default address", advice)
    return client_options


def _get_variable(name: str | None) -> str:
    return os.environ.get(name, "").strip() if name else ""
