"""Who calls a model, from a history to a reply and from a stream's bytes to events: the SDKs, the peers, agentkit.

All of a wire go through the same SDK's client over a transport that answers from memory. Peers are optional, and
everything is reached by name, as in `peers`.
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

POST = "json.dumps and the SDK's own post"
"""The name of what no call through an SDK can go below."""

_HELPER = "the SDK's accumulating stream"


@dataclass(frozen=True, slots=True)
class Caller:
    """One way to call: `prepare` makes its own history of a plain one, outside the clock.

    call    a client and a history to a coroutine that ends with the reply
    stream  a client and a history to an iterator over what it makes of the events
    wire    the wire whose client it is given
    """

    name: str
    api: str
    prepare: Callable[[Sequence[PlainMsg]], Any]
    call: Callable[[Any, Any], Any]
    stream: Callable[[Any, Any], AsyncIterator[Any]]
    wraps: Callable[[Any], Any] = lambda client: client  # the client as the caller holds it, made once

    def caller(self, response: Response) -> Any:
        """What it calls with, over a transport that gives one answer to everything."""
        return self.wraps(CLIENTS[self.api](response))


def create_model(api: str, client: Any) -> ChatModel:
    """Our own model of a wire."""
    return ChatModel(load_provider(APIS[api][0]), "model-1", client=client)


def load_sdk_callers(problems: list[str]) -> list[Caller]:
    """The official SDKs by themselves, with a request that is finished."""
    return load_installed((_sdk_openai, _sdk_responses, _sdk_anthropic, _sdk_google), problems)


def load_sdk_helper_callers(problems: list[str]) -> list[Caller]:
    """The official SDKs' streams that put the message together as well."""
    return load_installed((_sdk_openai_helper, _sdk_responses_helper, _sdk_anthropic_helper), problems)


def load_post_callers(problems: list[str]) -> list[Caller]:
    """A finished request, written by json.dumps and posted by the SDK's client; nobody reads the reply."""
    return [
        _posted(one) for one in load_sdk_callers(problems) if one.api != "Gemini"
    ]  # Google's client has no such method


def load_peer_callers(problems: list[str]) -> list[Caller]:
    """The peers that load here, as far as they get along with the SDKs beside them."""
    return [one for one in load_installed((_langchain, _litellm, _pydantic_ai), problems) if _works(one, problems)]


def can_stream(api: str, problems: list[str]) -> bool:
    """Whether the SDK here is one that our endpoint streams through: a peer may pin an older one."""
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


def _works(caller: Caller, problems: list[str]) -> bool:
    try:
        made = caller.caller(build_response(caller.api))
        run_async(caller.call(made, caller.prepare(build_mixed_chat(4))))
    except Exception as error:
        problems.append(f"{caller.name} {caller.api} ({type(error).__name__}: {str(error)[:90]})")
        return False
    return True


def _request(api: str) -> Callable[[Sequence[PlainMsg]], Any]:
    """A finished request, made by us: what the SDK's typed call is given."""

    def prepare(plain: Sequence[PlainMsg]) -> dict[str, Any]:
        msgs: list[Msg] = as_msgs(plain)
        return {"model": "model-1", **run_async(load_provider(APIS[api][0]).chat_formatter().format(msgs))}

    return prepare


def _posted(sdk: Caller) -> Caller:
    raw: Any = import_module("httpx2").Response
    path = APIS[sdk.api][1].removeprefix("" if sdk.api == "Anthropic" else "/v1")

    def call(client: Any, request: Any) -> Any:
        return client.post(path, cast_to=raw, content=json.dumps(request).encode())

    return replace(sdk, name=POST, call=call)


async def _inside(opening: Any) -> AsyncIterator[Any]:
    """The events of an SDK's helper, which is a context."""
    async with opening as stream:
        async for event in stream:
            yield event


async def _items(pending: Any) -> AsyncIterator[Any]:
    """The events of an SDK's stream."""
    async for event in await pending:
        yield event


# -- the SDKs ---------------------------------------------------------------------------------------------------


def _sdk_openai() -> list[Caller]:
    import_module("openai")
    return [
        Caller(
            "OpenAI SDK",
            "OpenAI Chat",
            _request("OpenAI Chat"),
            lambda client, request: client.chat.completions.create(**request),
            lambda client, request: _items(client.chat.completions.create(**request, stream=True)),
        )
    ]


def _sdk_responses() -> list[Caller]:
    import_module("openai")
    return [
        Caller(
            "OpenAI SDK",
            "OpenAI Responses",
            _request("OpenAI Responses"),
            lambda client, request: client.responses.create(**request),
            lambda client, request: _items(client.responses.create(**request, stream=True)),
        )
    ]


def _sdk_anthropic() -> list[Caller]:
    import_module("anthropic")
    return [
        Caller(
            "Anthropic SDK",
            "Anthropic",
            _request("Anthropic"),
            lambda client, request: client.messages.create(max_tokens=1_000, **request),
            lambda client, request: _items(client.messages.create(max_tokens=1_000, **request, stream=True)),
        )
    ]


def _sdk_google() -> list[Caller]:
    import_module("google.genai")
    return [
        Caller(
            "Google SDK",
            "Gemini",
            _request("Gemini"),
            lambda client, request: client.aio.models.generate_content(**request),
            lambda client, request: _items(client.aio.models.generate_content_stream(**request)),
        )
    ]


def _sdk_openai_helper() -> list[Caller]:
    def stream(client: Any, request: Any) -> AsyncIterator[Any]:
        return _inside(client.chat.completions.stream(**request))

    return [replace(one, name=_HELPER, stream=stream) for one in _sdk_openai()]


def _sdk_responses_helper() -> list[Caller]:
    def stream(client: Any, request: Any) -> AsyncIterator[Any]:
        return _inside(client.responses.stream(**request))

    return [replace(one, name=_HELPER, stream=stream) for one in _sdk_responses()]


def _sdk_anthropic_helper() -> list[Caller]:
    def stream(client: Any, request: Any) -> AsyncIterator[Any]:
        return _inside(client.messages.stream(max_tokens=1_000, **request))

    return [replace(one, name=_HELPER, stream=stream) for one in _sdk_anthropic()]


# -- the peers --------------------------------------------------------------------------------------------------


def _langchain() -> list[Caller]:
    openai: Any = import_module("langchain_openai").ChatOpenAI
    anthropic: Any = import_module("langchain_anthropic").ChatAnthropic

    def to_openai(client: Any, **more: Any) -> Any:
        made = openai(model="gpt-4o", api_key="none", max_retries=0, **more)
        made.root_async_client = client
        made.async_client = client.chat.completions
        return made

    def to_anthropic(client: Any) -> Any:
        made = anthropic(model="claude-sonnet-4-5", api_key="none", max_retries=0, max_tokens=1_000)
        made.__dict__["_async_client"] = client  # a cached property
        return made

    def caller(api: str, wraps: Callable[[Any], Any]) -> Caller:
        return Caller(
            "LangChain",
            api,
            as_langchain_messages,
            lambda model, msgs: model.ainvoke(msgs),
            lambda model, msgs: model.astream(msgs),
            wraps,
        )

    return [
        caller("OpenAI Chat", to_openai),
        caller("OpenAI Responses", partial(to_openai, use_responses_api=True)),
        caller("Anthropic", to_anthropic),
    ]


def _pydantic_ai() -> list[Caller]:
    parameters: Any = import_module("pydantic_ai.models").ModelRequestParameters()
    home: Any = import_module("pydantic_ai.models.openai")
    provider: Any = import_module("pydantic_ai.providers.openai").OpenAIProvider
    claude: Any = import_module("pydantic_ai.models.anthropic").AnthropicModel
    its_provider: Any = import_module("pydantic_ai.providers.anthropic").AnthropicProvider

    limit = {"max_tokens": 1_000}

    async def events(model: Any, msgs: Any) -> AsyncIterator[Any]:
        async with model.request_stream(msgs, limit, parameters) as stream:
            async for event in stream:
                yield event

    def caller(api: str, wraps: Callable[[Any], Any]) -> Caller:
        return Caller(
            "pydantic-ai",
            api,
            as_pydantic_ai_messages,
            lambda model, msgs: model.request(msgs, limit, parameters),
            events,
            wraps,
        )

    return [
        caller("OpenAI Chat", lambda c: home.OpenAIChatModel("gpt-4o", provider=provider(openai_client=c))),
        caller(
            "OpenAI Responses", lambda c: home.OpenAIResponsesModel("gpt-4o", provider=provider(openai_client=c))
        ),
        caller("Anthropic", lambda c: claude("claude-sonnet-4-5", provider=its_provider(anthropic_client=c))),
    ]


def _litellm() -> list[Caller]:
    complete: Any = import_module("litellm").acompletion
    getLogger("LiteLLM").setLevel(CRITICAL)

    def call(client: Any, msgs: Any, **more: Any) -> Any:
        return complete(model="openai/gpt-4o", messages=msgs, client=client, api_key="none", **more)

    def stream(client: Any, msgs: Any) -> AsyncIterator[Any]:
        return _items(call(client, msgs, stream=True))

    return [Caller("litellm", "OpenAI Chat", as_openai_dicts, call, stream)]
