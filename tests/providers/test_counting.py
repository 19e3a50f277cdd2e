"""The remote counters, through the real SDK clients, against a server that refuses what the real ones refuse."""

from __future__ import annotations

import base64
import copy
import json
import threading
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace
from typing import Any, cast

import anthropic
import httpx2
import openai
import pytest
from google import genai
from google.genai import types

from agentkit import (
    Base64Source,
    Budget,
    CharacterTokenCounter,
    DocumentBlock,
    ImageBlock,
    InputError,
    ModelError,
    Msg,
    OptionError,
    TextBlock,
    TokenCounterBase,
    ToolResultBlock,
    URLSource,
    load_provider,
)
from agentkit_anthropic import AnthropicChatFormatter, AnthropicTokenCounter
from agentkit_gemini import GeminiTokenCounter
from agentkit_openai import OpenAITokenCounter
from agentkit_vllm import VLLMTokenCounter
from tests.conftest import call, says

pytestmark = pytest.mark.anyio

PNG = ImageBlock(Base64Source("image/png", base64.b64encode(b"\x89PNG\r\n\x1a\n").decode()))
FAR = ImageBlock(URLSource("https://example.com/a.png"))
PDF = DocumentBlock(URLSource("https://example.com/a.pdf"))
TOOL: dict[str, Any] = {
    "name": "search",
    "description": "Finds things.",
    "parameters": {"type": "object", "properties": {"q": {}}},
}
MODEL = "loopback-model"
Answer = Callable[[str, dict[str, Any]], tuple[int, dict[str, Any]]]


@dataclass
class Seen:
    """Where the server is, and what it was sent."""

    url: str = ""
    paths: list[str] = field(default_factory=list[str])
    bodies: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])


@contextmanager
def server(answer: Answer) -> Generator[Seen, None, None]:
    seen = Seen()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers.get("content-length", "0"))))
            seen.paths.append(self.path)
            seen.bodies.append(body)
            status, reply = answer(self.path, body)
            data = json.dumps(reply).encode()
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(data)))
            self.send_header("connection", "close")
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing on standard error."""

    listening = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=listening.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    seen.url = f"http://127.0.0.1:{listening.server_address[1]}"
    try:
        yield seen
    finally:
        listening.shutdown()
        thread.join()
        listening.server_close()


def no_such(path: str) -> tuple[int, dict[str, Any]]:
    return 404, {"error": {"message": f"unexpected path {path}"}}


# -- Anthropic ---------------------------------------------------------------------------------------------


def anthropic_answer(path: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
    """A token a character; a 400 for URL sources, server tools and unknown fields, as the endpoint has it."""
    if path != "/v1/messages/count_tokens":
        return no_such(path)
    known = {"model", "messages", "system", "tools", "tool_choice", "thinking", "output_config"}
    refused = [key for key in body if key not in known]
    refused += ["source.url" for source in _sources(body) if source["type"] != "base64"]
    refused += [tool["type"] for tool in body.get("tools", []) if "input_schema" not in tool]
    if refused or ("tool_choice" in body and not body.get("tools")):
        message = f"{refused}: URL sources and server tools are not supported by this endpoint"
        return 400, {"type": "error", "error": {"type": "invalid_request_error", "message": message}}
    return 200, {"input_tokens": len(json.dumps(body["messages"]))}


def _sources(found: Any) -> list[dict[str, Any]]:
    if isinstance(found, list):
        return [source for item in cast("list[Any]", found) for source in _sources(item)]
    if not isinstance(found, dict):
        return []
    here = cast("dict[str, Any]", found)
    if "source" in here:
        return [here["source"]]
    return [source for item in here.values() for source in _sources(item)]


@asynccontextmanager
async def claude() -> AsyncGenerator[tuple[AnthropicTokenCounter, Seen], None]:
    with server(anthropic_answer) as seen:
        async with anthropic.AsyncAnthropic(api_key="k", base_url=seen.url, max_retries=0) as client:
            yield AnthropicTokenCounter(client.messages.count_tokens, model=MODEL), seen


async def test_anthropic_counts_the_very_request() -> None:
    msgs = [says("system", "Be brief.", "system"), Msg("Bob", (TextBlock("Look"), PNG), "user")]
    request = load_provider("anthropic").chat_formatter().lower(msgs, tools=[TOOL]).request
    before = copy.deepcopy(request)
    async with claude() as (counter, seen):
        counted = await counter.count({**request, "max_tokens": 100, "temperature": 0, "stop_sequences": ["x"]})
    assert request == before
    assert seen.bodies == [{"model": MODEL, **request}]
    assert counted == len(json.dumps(request["messages"]))
    assert counted.estimated == ()


async def test_what_anthropic_refuses_by_url_is_estimated_and_the_rest_counted() -> None:
    found = Msg("system", (ToolResultBlock("c1", "search", (TextBlock("here"), FAR)),), "system")
    msgs = [Msg("Bob", (TextBlock("Look"), FAR, PDF), "user"), call("c1"), found]
    request = load_provider("anthropic").chat_formatter().lower(msgs, tools=[TOOL]).request
    before = copy.deepcopy(request)
    async with claude() as (counter, seen):
        counted = await counter.count(request)
    assert request == before
    sent = seen.bodies[0]["messages"]
    assert _sources(sent) == []
    assert [block["type"] for block in sent[0]["content"]] == ["text", "text", "text"]
    assert counted >= len(json.dumps(sent)) + 3 * 4_784
    assert counted.estimated == ("images and documents by URL are estimated: the API refuses to count them",)


async def test_server_tools_are_estimated() -> None:
    request: dict[str, Any] = {
        "messages": [{"role": "user", "content": "hi"}],
        "tools": [{"type": "web_search_20250305", "name": "web_search"}],
        "tool_choice": {"type": "auto"},
    }
    async with claude() as (counter, seen):
        counted = await counter.count(request)
        own = {"name": "search", "input_schema": {"type": "object"}}
        await counter.count({**request, "tools": [own, *request["tools"]]})
        forced = {"tool_choice": {"type": "tool", "name": "web_search"}}
        await counter.count({**request, "tools": [own, *request["tools"]], **forced})
    assert set(seen.bodies[0]) == {"model", "messages"}
    assert seen.bodies[1]["tools"] == [own]
    assert seen.bodies[1]["tool_choice"] == {"type": "auto"}
    assert "tool_choice" not in seen.bodies[2]  # it names a tool that is left out
    assert counted > len(json.dumps(request["messages"]))
    assert counted.estimated == ("server tools are estimated: the API refuses to count them",)


async def test_an_error_of_the_endpoint_is_the_sdks() -> None:
    async with claude() as (counter, _):
        with pytest.raises(anthropic.BadRequestError):
            await counter.count({"messages": [], "speed": "fast"})


async def test_a_remote_counter_holds_a_budget() -> None:
    msgs = [says("Bob", f"{number} " + "words " * 50) for number in range(20)]
    async with claude() as (counter, _):
        plan = await AnthropicChatFormatter(budget=Budget(3_000, counter)).plan(msgs)
    assert plan.tokens is not None
    assert 0 < plan.tokens <= 3_000
    assert plan.cut is not None


# -- Gemini ------------------------------------------------------------------------------------------------


def gemini_answer(path: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
    """A token a character of the contents."""
    if not path.endswith(f"{MODEL}:countTokens"):
        return no_such(path)
    return 200, {"totalTokens": len(json.dumps(body))}


@asynccontextmanager
async def gemini(enterprise: bool = False) -> AsyncGenerator[tuple[GeminiTokenCounter, Seen], None]:
    with server(gemini_answer) as seen:
        # An explicit transport keeps the SDK off aiohttp, which knows asyncio only.
        arguments = {"transport": httpx2.AsyncHTTPTransport()}
        options = types.HttpOptions(base_url=seen.url, api_version="v1beta", async_client_args=arguments)
        client = genai.Client(vertexai=enterprise, api_key="k", http_options=options)
        try:
            call = cast("Callable[..., Any]", client.aio.models.count_tokens)  # pyright: ignore[reportUnknownMemberType]
            yield GeminiTokenCounter(call, model=MODEL), seen
        finally:
            await client.aio.aclose()
            client.close()


def gemini_request() -> dict[str, Any]:
    msgs = [says("system", "Be brief.", "system"), Msg("Bob", (TextBlock("Look"), PNG), "user")]
    schema = {"type": "object", "properties": {"answer": {"type": "string"}}}
    return load_provider("gemini").chat_formatter().lower(msgs, tools=[TOOL], response_format=schema).request


async def test_gemini_counts_the_system_text_as_a_turn_and_tools_are_estimated() -> None:
    request = gemini_request()
    before = copy.deepcopy(request)
    async with gemini() as (counter, seen):
        counted = await counter.count(request)
    assert request == before
    assert len(seen.bodies) == 1
    assert set(seen.bodies[0]) == {"contents"}
    assert seen.bodies[0]["contents"][0] == {"role": "user", "parts": [{"text": "Be brief."}]}
    assert len(seen.bodies[0]["contents"]) == 1 + len(request["contents"])
    assert counted > len(json.dumps(seen.bodies[0]))
    assert len(counted.estimated) == 2


async def test_geminis_enterprise_platform_counts_the_whole() -> None:
    request = gemini_request()
    async with gemini(enterprise=True) as (counter, seen):
        counted = await counter.count(request)
    assert {"contents", "systemInstruction", "tools"} <= set(seen.bodies[0])
    assert counted == len(json.dumps(seen.bodies[0]))
    assert counted.estimated == ()


@pytest.mark.parametrize("system", ["S", [{"text": "S"}], {"parts": [{"text": "S"}]}])
async def test_geminis_system_text_may_have_any_form(system: Any) -> None:
    async with gemini() as (counter, seen):
        await counter.count({"contents": "hi", "config": {"system_instruction": system}})
    assert seen.bodies[0]["contents"][0] == {"role": "user", "parts": [{"text": "S"}]}


async def test_contents_alone_are_counted_exactly() -> None:
    request = load_provider("gemini").chat_formatter().lower([says("Bob", "hi")]).request
    async with gemini() as (counter, seen):
        counted = await counter.count(request)
    assert (counted, counted.estimated) == (len(json.dumps(seen.bodies[0])), ())


# -- OpenAI and vLLM ---------------------------------------------------------------------------------------


def openai_answer(path: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
    if path != "/v1/responses/input_tokens":
        return no_such(path)
    if refused := body.keys() - {"model", "input", "instructions", "tools", "tool_choice", "text", "reasoning"}:
        return 400, {"error": {"message": f"Unknown parameter: {min(refused)!r}."}}
    return 200, {"object": "response.input_tokens", "input_tokens": len(json.dumps(body["input"]))}


async def test_openai_counts_the_very_responses_request() -> None:
    msgs = [says("system", "Be brief.", "system"), Msg("Bob", (TextBlock("Look"), PNG, FAR), "user")]
    request = (
        load_provider("openai-responses").chat_formatter().lower(msgs, tools=[TOOL], tool_choice="search").request
    )
    before = copy.deepcopy(request)
    with server(openai_answer) as seen:
        async with openai.AsyncOpenAI(api_key="k", base_url=f"{seen.url}/v1", max_retries=0) as client:
            counter = OpenAITokenCounter(client.responses.input_tokens.count, model=MODEL)
            counted = await counter.count({**request, "store": False, "max_output_tokens": 9, "stream": True})
    assert request == before
    assert seen.bodies == [{"model": MODEL, **request}]
    assert (counted, counted.estimated) == (len(json.dumps(request["input"])), ())


async def test_a_chat_request_is_refused_before_any_call() -> None:
    counter = OpenAITokenCounter(print, model=MODEL)
    with pytest.raises(InputError, match="TiktokenCounter"):
        await counter.count({"messages": []})


def vllm_answer(path: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
    if path != "/tokenize":
        return no_such(path)
    return 200, {"count": len(json.dumps(body["messages"])), "max_model_len": 4096, "tokens": []}


async def test_vllm_counts_the_request_and_media_are_estimated() -> None:
    msgs = [says("system", "Be brief.", "system"), Msg("Bob", (TextBlock("Look"), FAR), "user")]
    request = load_provider("vllm").chat_formatter().lower(msgs, tools=[TOOL]).request
    request["extra_body"] = {"chat_template_kwargs": {"enable_thinking": False}}
    before = copy.deepcopy(request)
    with server(vllm_answer) as seen:
        async with openai.AsyncOpenAI(api_key="k", base_url=f"{seen.url}/v1", max_retries=0) as client:
            counter = VLLMTokenCounter(client.post, model=MODEL)
            counted = await counter.count(request)
            text = await counter.count({"messages": [{"role": "user", "content": "hi"}]})
    assert request == before
    body = seen.bodies[0]
    assert body["tools"] == request["tools"]
    assert body["chat_template_kwargs"] == {"enable_thinking": False}
    assert body["add_generation_prompt"] is True
    assert body["messages"][-1]["content"] == [{"type": "text", "text": "Look"}]
    assert counted >= len(json.dumps(body["messages"])) + 1_600
    assert counted.estimated == ("the endpoint counts text only: media are estimated",)
    assert text.estimated == ()


@pytest.mark.parametrize("choice", ["auto", "none", "required", "search"])
async def test_vllm_counts_tools_under_every_choice(choice: str) -> None:
    request = (
        load_provider("vllm")
        .chat_formatter()
        .lower([says("Bob", "Hi.")], tools=[TOOL], tool_choice=choice)
        .request
    )
    with server(vllm_answer) as seen:
        async with openai.AsyncOpenAI(api_key="k", base_url=f"{seen.url}/v1", max_retries=0) as client:
            await VLLMTokenCounter(client.post, model=MODEL).count(request)
    assert seen.bodies[0]["tools"] == request["tools"]


async def test_vllms_endpoint_may_be_elsewhere() -> None:
    with server(lambda path, body: (200, {"count": len(path)})) as seen:
        async with openai.AsyncOpenAI(api_key="k", base_url=f"{seen.url}/proxy/v1", max_retries=0) as client:
            counter = VLLMTokenCounter(client.post, model=MODEL, url=f"{seen.url}/other/tokenize")
            assert await counter.count({"messages": []}) == len("/other/tokenize")
            assert VLLMTokenCounter(client.post, model=MODEL).url == f"{seen.url}/proxy/tokenize"
    with pytest.raises(OptionError, match="url"):
        VLLMTokenCounter(print, model=MODEL)


# -- what they share ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [AnthropicTokenCounter, GeminiTokenCounter, OpenAITokenCounter])
async def test_bad_options_are_refused_at_the_door(kind: Any) -> None:
    for bad in ({"call": "no"}, {"call": print, "model": None}, {"call": print, "local": TokenCounterBase}):
        with pytest.raises(OptionError):
            kind(**{"model": MODEL, **bad})


async def test_a_synchronous_client_is_told_from_the_right_one() -> None:
    counter = AnthropicTokenCounter(dict, model=MODEL)
    with pytest.raises(OptionError, match="async client"):
        await counter.count({"messages": []})


ANSWERS: Any = [{}, None, "text", -1, True, "5", 1e308, float("nan"), float("inf"), [5], {"tokens": 5}]


@pytest.mark.parametrize("found", ANSWERS, ids=repr)
@pytest.mark.parametrize("kind", [AnthropicTokenCounter, GeminiTokenCounter, OpenAITokenCounter, VLLMTokenCounter])
async def test_an_endpoint_that_sends_no_number_of_tokens_is_an_error(kind: Any, found: Any) -> None:
    """The SDKs check no types: an answer has what the server sent."""
    names = ("input_tokens", "total_tokens", "count")

    async def call(*_given: object, **_named: object) -> Any:
        named: dict[str, Any] = dict.fromkeys(names, found)
        return named if kind is VLLMTokenCounter else SimpleNamespace(**named) if found != {} else found

    given: dict[str, Any] = {"url": "http://host/tokenize"} if kind is VLLMTokenCounter else {}
    counter = kind(call, model=MODEL, **given)
    with pytest.raises(ModelError, match=f"^{kind.__name__}: the endpoint returned .* expected a number"):
        await counter.count({"messages": [], "contents": [], "input": []})


async def test_a_remote_counter_places_cuts_with_its_local_one() -> None:
    local = CharacterTokenCounter(5)
    assert AnthropicTokenCounter(print, model=MODEL, local=local).local_counter is local
    assert isinstance(GeminiTokenCounter(print, model=MODEL).local_counter, CharacterTokenCounter)
