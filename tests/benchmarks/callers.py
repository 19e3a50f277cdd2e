"""Model calls and streams through agentkit, the official SDKs and other libraries.

All callers of an API use the client of the same SDK, with a transport in memory. Other libraries are optional.
Libraries are imported by name, as in `peers`.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from logging import CRITICAL, getLogger
from typing import Any

from agentkit import ChatModel, Msg, load_provider
from tests.benchmarks.histories import PlainMsg, as_msgs, build_mixed_chat
from tests.benchmarks.peers import (
    as_langchain_messages,
    as_openai_dicts,
    as_pydantic_ai_messages,
    load_installed,
    run_async,
)
from tests.benchmarks.sdk_clients import APIS, CLIENTS, Response, build_response, build_stream

__all__ = [
    "POST",
    "Caller",
    "create_model",
    "load_peer_callers",
    "load_sdk_helper_callers",
    "load_post_callers",
    "load_sdk_callers",
    "can_stream",
]

POST = "json.dumps and post with the SDK's client"
"""Name of the caller that does the least: no call through an SDK can take less time."""

_HELPER_NAME = "stream helper of the SDK"


@dataclass(frozen=True, slots=True)
class Caller:
    """One way to call a model.

    Attributes:
        name: Name in tables.
        api: Name of the API, a key of `APIS`.
        prepare: Function from a plain history to the history or request of the library. It is not timed.
        call: Function from a client and a prepared history to a coroutine that returns the reply.
        stream: Function from a client and a prepared history to an iterator over events.
        wrap: Function from the client of the SDK to the client of the library.
    """

    name: str
    api: str
    prepare: Callable[[Sequence[PlainMsg]], Any]
    call: Callable[[Any, Any], Any]
    stream: Callable[[Any, Any], AsyncIterator[Any]]
    wrap: Callable[[Any], Any] = lambda client: client

    def create_client(self, response: Response) -> Any:
        """Returns a client of the library with a transport that always returns `response`."""
        return self.wrap(CLIENTS[self.api](response))


def create_model(api: str, client: Any) -> ChatModel:
    """Returns a model of agentkit for an API."""
    return ChatModel(load_provider(APIS[api][0]), "model-1", client=client)


def load_sdk_callers(problems: list[str]) -> list[Caller]:
    """Returns callers that pass a finished request to an official SDK."""
    return load_installed((_load_openai, _load_responses, _load_anthropic, _load_google), problems)


def load_sdk_helper_callers(problems: list[str]) -> list[Caller]:
    """Returns callers that use the stream helpers of the official SDKs. The helpers also build the message."""
    return load_installed((_load_openai_helper, _load_responses_helper, _load_anthropic_helper), problems)


def load_post_callers(problems: list[str]) -> list[Caller]:
    """Returns callers that post a finished request with the client of the SDK, and do not parse the reply."""
    # The client of Google has no method `post`.
    return [_as_post(caller) for caller in load_sdk_callers(problems) if caller.api != "Gemini"]


def load_peer_callers(problems: list[str]) -> list[Caller]:
    """Returns callers of the other installed libraries that work with the installed SDKs."""
    return [
        caller
        for caller in load_installed((_load_langchain, _load_litellm, _load_pydantic_ai), problems)
        if _can_call(caller, problems)
    ]


def can_stream(api: str, problems: list[str]) -> bool:
    """Returns True if agentkit can stream through the installed SDK. Another library may require an old SDK."""
    client = CLIENTS[api](build_stream(api, "text", 4).response)

    async def read() -> None:
        async with create_model(api, client).stream([Msg("Alice", "Go on.", "user")]) as stream:
            await stream.finish()

    try:
        run_async(read())
    except Exception as error:
        problems.append(f"ChatModel.stream, {api} ({type(error).__name__}: {str(error)[:90]})")
        return False
    return True


def _can_call(caller: Caller, problems: list[str]) -> bool:
    try:
        client = caller.create_client(build_response(caller.api))
        run_async(caller.call(client, caller.prepare(build_mixed_chat(4))))
    except Exception as error:
        problems.append(f"{caller.name} {caller.api} ({type(error).__name__}: {str(error)[:90]})")
        return False
    return True


def _create_prepare(api: str) -> Callable[[Sequence[PlainMsg]], Any]:
    """Returns a function from a plain history to a finished request, which a formatter creates."""

    def prepare(plain: Sequence[PlainMsg]) -> dict[str, Any]:
        msgs: list[Msg] = as_msgs(plain)
        return {"model": "model-1", **run_async(load_provider(APIS[api][0]).chat_formatter().format(msgs))}

    return prepare


def _as_post(sdk: Caller) -> Caller:
    raw: Any = import_module("httpx2").Response
    path = APIS[sdk.api][1].removeprefix("" if sdk.api == "Anthropic" else "/v1")

    def call(client: Any, request: Any) -> Any:
        return client.post(path, cast_to=raw, content=json.dumps(request).encode())

    return replace(sdk, name=POST, call=call)


async def _iterate_helper(opening: Any) -> AsyncIterator[Any]:
    """Yields the events of a stream helper of an SDK, which is an async context manager."""
    async with opening as stream:
        async for event in stream:
            yield event


async def _iterate_stream(pending: Any) -> AsyncIterator[Any]:
    """Yields the events of a stream of an SDK."""
    async for event in await pending:
        yield event


# -- the SDKs ---------------------------------------------------------------------------------------------------


def _load_openai() -> list[Caller]:
    import_module("openai")
    return [
        Caller(
            "OpenAI SDK",
            "OpenAI Chat",
            _create_prepare("OpenAI Chat"),
            lambda client, request: client.chat.completions.create(**request),
            lambda client, request: _iterate_stream(client.chat.completions.create(**request, stream=True)),
        )
    ]


def _load_responses() -> list[Caller]:
    import_module("openai")
    return [
        Caller(
            "OpenAI SDK",
            "OpenAI Responses",
            _create_prepare("OpenAI Responses"),
            lambda client, request: client.responses.create(**request),
            lambda client, request: _iterate_stream(client.responses.create(**request, stream=True)),
        )
    ]


def _load_anthropic() -> list[Caller]:
    import_module("anthropic")
    return [
        Caller(
            "Anthropic SDK",
            "Anthropic",
            _create_prepare("Anthropic"),
            lambda client, request: client.messages.create(max_tokens=1_000, **request),
            lambda client, request: _iterate_stream(
                client.messages.create(max_tokens=1_000, **request, stream=True)
            ),
        )
    ]


def _load_google() -> list[Caller]:
    import_module("google.genai")
    return [
        Caller(
            "Google SDK",
            "Gemini",
            _create_prepare("Gemini"),
            lambda client, request: client.aio.models.generate_content(**request),
            lambda client, request: _iterate_stream(client.aio.models.generate_content_stream(**request)),
        )
    ]


def _load_openai_helper() -> list[Caller]:
    def stream(client: Any, request: Any) -> AsyncIterator[Any]:
        return _iterate_helper(client.chat.completions.stream(**request))

    return [replace(caller, name=_HELPER_NAME, stream=stream) for caller in _load_openai()]


def _load_responses_helper() -> list[Caller]:
    def stream(client: Any, request: Any) -> AsyncIterator[Any]:
        return _iterate_helper(client.responses.stream(**request))

    return [replace(caller, name=_HELPER_NAME, stream=stream) for caller in _load_responses()]


def _load_anthropic_helper() -> list[Caller]:
    def stream(client: Any, request: Any) -> AsyncIterator[Any]:
        return _iterate_helper(client.messages.stream(max_tokens=1_000, **request))

    return [replace(caller, name=_HELPER_NAME, stream=stream) for caller in _load_anthropic()]


# -- the peers --------------------------------------------------------------------------------------------------


def _load_langchain() -> list[Caller]:
    openai_class: Any = import_module("langchain_openai").ChatOpenAI
    anthropic_class: Any = import_module("langchain_anthropic").ChatAnthropic

    def wrap_openai(client: Any, **more: Any) -> Any:
        model = openai_class(model="gpt-4o", api_key="none", max_retries=0, **more)
        model.root_async_client = client
        model.async_client = client.chat.completions
        return model

    def wrap_anthropic(client: Any) -> Any:
        model = anthropic_class(model="claude-sonnet-4-5", api_key="none", max_retries=0, max_tokens=1_000)
        model.__dict__["_async_client"] = client  # a cached property
        return model

    def create_caller(api: str, wrap: Callable[[Any], Any]) -> Caller:
        return Caller(
            "LangChain",
            api,
            as_langchain_messages,
            lambda model, msgs: model.ainvoke(msgs),
            lambda model, msgs: model.astream(msgs),
            wrap,
        )

    return [
        create_caller("OpenAI Chat", wrap_openai),
        create_caller("OpenAI Responses", partial(wrap_openai, use_responses_api=True)),
        create_caller("Anthropic", wrap_anthropic),
    ]


def _load_pydantic_ai() -> list[Caller]:
    parameters: Any = import_module("pydantic_ai.models").ModelRequestParameters()
    openai_models: Any = import_module("pydantic_ai.models.openai")
    openai_provider: Any = import_module("pydantic_ai.providers.openai").OpenAIProvider
    anthropic_model: Any = import_module("pydantic_ai.models.anthropic").AnthropicModel
    anthropic_provider: Any = import_module("pydantic_ai.providers.anthropic").AnthropicProvider

    limit = {"max_tokens": 1_000}

    async def iterate_events(model: Any, msgs: Any) -> AsyncIterator[Any]:
        async with model.request_stream(msgs, limit, parameters) as stream:
            async for event in stream:
                yield event

    def create_caller(api: str, wrap: Callable[[Any], Any]) -> Caller:
        return Caller(
            "pydantic-ai",
            api,
            as_pydantic_ai_messages,
            lambda model, msgs: model.request(msgs, limit, parameters),
            iterate_events,
            wrap,
        )

    return [
        create_caller(
            "OpenAI Chat",
            lambda c: openai_models.OpenAIChatModel("gpt-4o", provider=openai_provider(openai_client=c)),
        ),
        create_caller(
            "OpenAI Responses",
            lambda c: openai_models.OpenAIResponsesModel("gpt-4o", provider=openai_provider(openai_client=c)),
        ),
        create_caller(
            "Anthropic",
            lambda c: anthropic_model("claude-sonnet-4-5", provider=anthropic_provider(anthropic_client=c)),
        ),
    ]


def _load_litellm() -> list[Caller]:
    complete: Any = import_module("litellm").acompletion
    getLogger("LiteLLM").setLevel(CRITICAL)

    def call(client: Any, msgs: Any, **options: Any) -> Any:
        return complete(model="openai/gpt-4o", messages=msgs, client=client, api_key="none", **options)

    def stream(client: Any, msgs: Any) -> AsyncIterator[Any]:
        return _iterate_stream(call(client, msgs, stream=True))

    return [Caller("litellm", "OpenAI Chat", as_openai_dicts, call, stream)]
