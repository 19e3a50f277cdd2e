"""The token counter of Anthropic, through its SDK, against a server with the rules of the real endpoint."""

from __future__ import annotations

import copy
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any, cast

import anthropic
import pytest

from agentkit import (
    Budget,
    Msg,
    TextBlock,
    ToolResultBlock,
    load_provider,
)
from agentkit_anthropic import AnthropicChatFormatter, AnthropicTokenCounter
from tests.conftest import call, text_msg
from tests.providers.calling import RawServer
from tests.providers.counting import FAR, MODEL, PDF, PNG, TOOL, get_bodies, refuse_path, serve

pytestmark = pytest.mark.anyio


def anthropic_answer(path: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
    """Returns a token per character, or status 400 for URL sources, server tools and unknown fields."""
    if path != "/v1/messages/count_tokens":
        return refuse_path(path)
    accepted = {"model", "messages", "system", "tools", "tool_choice", "thinking", "output_config"}
    refused = [key for key in body if key not in accepted]
    refused += ["source.url" for source in _sources(body) if source["type"] != "base64"]
    refused += [tool["type"] for tool in body.get("tools", []) if "input_schema" not in tool]
    if refused or ("tool_choice" in body and not body.get("tools")):
        message = f"{refused}: URL sources and server tools are not supported by this endpoint"
        return 400, {"type": "error", "error": {"type": "invalid_request_error", "message": message}}
    return 200, {"input_tokens": len(json.dumps(body["messages"]))}


def _sources(value: Any) -> list[dict[str, Any]]:
    if isinstance(value, list):
        return [source for item in cast("list[Any]", value) for source in _sources(item)]
    if not isinstance(value, dict):
        return []
    here = cast("dict[str, Any]", value)
    if "source" in here:
        return [here["source"]]
    return [source for item in here.values() for source in _sources(item)]


@asynccontextmanager
async def claude() -> AsyncGenerator[tuple[AnthropicTokenCounter, RawServer], None]:
    with serve(anthropic_answer) as server:
        async with anthropic.AsyncAnthropic(api_key="k", base_url=server.address, max_retries=0) as client:
            yield AnthropicTokenCounter(client.messages.count_tokens, model=MODEL), server


async def test_the_counted_request_is_the_request_itself() -> None:
    msgs = [text_msg("system", "Be brief.", "system"), Msg("Bob", (TextBlock("Look"), PNG), "user")]
    request = load_provider("anthropic").chat_formatter().lower(msgs, tools=[TOOL]).request
    before = copy.deepcopy(request)
    async with claude() as (counter, server):
        counted = await counter.count({**request, "max_tokens": 100, "temperature": 0, "stop_sequences": ["x"]})
    assert request == before
    assert get_bodies(server) == [{"model": MODEL, **request}]
    assert counted == len(json.dumps(request["messages"]))
    assert counted.estimated == ()


async def test_media_by_url_are_estimated_and_the_remaining_request_is_counted() -> None:
    tool_msg = Msg("system", (ToolResultBlock("c1", "search", (TextBlock("here"), FAR)),), "system")
    msgs = [Msg("Bob", (TextBlock("Look"), FAR, PDF), "user"), call("c1"), tool_msg]
    request = load_provider("anthropic").chat_formatter().lower(msgs, tools=[TOOL]).request
    before = copy.deepcopy(request)
    async with claude() as (counter, server):
        counted = await counter.count(request)
    assert request == before
    sent = get_bodies(server)[0]["messages"]
    assert _sources(sent) == []
    assert [block["type"] for block in sent[0]["content"]] == ["text", "text", "text"]
    assert counted >= len(json.dumps(sent)) + 3 * 4_784
    reason = (
        "tokens of images and documents with a URL or file id are estimated, because the API does not count them"
    )
    assert counted.estimated == (reason,)


async def test_server_tools_are_estimated() -> None:
    request: dict[str, Any] = {
        "messages": [{"role": "user", "content": "hi"}],
        "tools": [{"type": "web_search_20250305", "name": "web_search"}],
        "tool_choice": {"type": "auto"},
    }
    async with claude() as (counter, server):
        counted = await counter.count(request)
        own = {"name": "search", "input_schema": {"type": "object"}}
        await counter.count({**request, "tools": [own, *request["tools"]]})
        forced = {"tool_choice": {"type": "tool", "name": "web_search"}}
        await counter.count({**request, "tools": [own, *request["tools"]], **forced})
    assert set(get_bodies(server)[0]) == {"model", "messages"}
    assert get_bodies(server)[1]["tools"] == [own]
    assert get_bodies(server)[1]["tool_choice"] == {"type": "auto"}
    assert "tool_choice" not in get_bodies(server)[2]  # it names an omitted tool
    assert counted > len(json.dumps(request["messages"]))
    assert counted.estimated == ("tokens of server tools are estimated, because the API does not count them",)


async def test_an_error_of_the_endpoint_is_an_error_of_the_sdk() -> None:
    async with claude() as (counter, _):
        with pytest.raises(anthropic.BadRequestError):
            await counter.count({"messages": [], "speed": "fast"})


async def test_a_budget_can_use_the_remote_counter() -> None:
    msgs = [text_msg("Bob", f"{number} " + "words " * 50) for number in range(20)]
    async with claude() as (counter, _):
        plan = await AnthropicChatFormatter(budget=Budget(3_000, counter)).plan(msgs)
    assert plan.tokens is not None
    assert 0 < plan.tokens <= 3_000
    assert plan.cut is not None
