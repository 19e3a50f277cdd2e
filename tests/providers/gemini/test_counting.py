"""The token counter of Gemini, through its SDK."""

from __future__ import annotations

import copy
import json
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any, cast

import httpx2
import pytest
from google import genai
from google.genai import types

from agentkit import (
    Msg,
    TextBlock,
    load_provider,
)
from agentkit_gemini import GeminiTokenCounter
from tests.conftest import text_msg
from tests.providers.calling import RawServer
from tests.providers.counting import MODEL, PNG, TOOL, get_bodies, refuse_path, serve

pytestmark = pytest.mark.anyio


def gemini_answer(path: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
    """Returns one token per character of the contents."""
    if not path.endswith(f"{MODEL}:countTokens"):
        return refuse_path(path)
    return 200, {"totalTokens": len(json.dumps(body))}


@asynccontextmanager
async def gemini(enterprise: bool = False) -> AsyncGenerator[tuple[GeminiTokenCounter, RawServer], None]:
    with serve(gemini_answer) as server:
        # With an explicit transport the SDK does not use aiohttp, which supports only asyncio.
        arguments = {"transport": httpx2.AsyncHTTPTransport()}
        options = types.HttpOptions(base_url=server.address, api_version="v1beta", async_client_args=arguments)
        client = genai.Client(vertexai=enterprise, api_key="k", http_options=options)
        try:
            call = cast("Callable[..., Any]", client.aio.models.count_tokens)  # pyright: ignore[reportUnknownMemberType]
            yield GeminiTokenCounter(call, model=MODEL), server
        finally:
            await client.aio.aclose()
            client.close()


def gemini_request() -> dict[str, Any]:
    msgs = [text_msg("system", "Be brief.", "system"), Msg("Bob", (TextBlock("Look"), PNG), "user")]
    schema = {"type": "object", "properties": {"answer": {"type": "string"}}}
    return load_provider("gemini").chat_formatter().lower(msgs, tools=[TOOL], response_format=schema).request


async def test_the_system_text_is_counted_as_a_turn_and_tools_are_estimated() -> None:
    request = gemini_request()
    before = copy.deepcopy(request)
    async with gemini() as (counter, server):
        counted = await counter.count(request)
    assert request == before
    assert len(get_bodies(server)) == 1
    assert set(get_bodies(server)[0]) == {"contents"}
    assert get_bodies(server)[0]["contents"][0] == {"role": "user", "parts": [{"text": "Be brief."}]}
    assert len(get_bodies(server)[0]["contents"]) == 1 + len(request["contents"])
    assert counted > len(json.dumps(get_bodies(server)[0]))
    assert len(counted.estimated) == 2


async def test_the_enterprise_platform_counts_the_complete_request() -> None:
    request = gemini_request()
    async with gemini(enterprise=True) as (counter, server):
        counted = await counter.count(request)
    assert {"contents", "systemInstruction", "tools"} <= set(get_bodies(server)[0])
    assert counted == len(json.dumps(get_bodies(server)[0]))
    assert counted.estimated == ()


@pytest.mark.parametrize("system", ["S", [{"text": "S"}], {"parts": [{"text": "S"}]}])
async def test_the_system_text_can_have_any_type(system: Any) -> None:
    async with gemini() as (counter, server):
        await counter.count({"contents": "hi", "config": {"system_instruction": system}})
    assert get_bodies(server)[0]["contents"][0] == {"role": "user", "parts": [{"text": "S"}]}


async def test_contents_alone_are_counted_exactly() -> None:
    request = load_provider("gemini").chat_formatter().lower([text_msg("Bob", "hi")]).request
    async with gemini() as (counter, server):
        counted = await counter.count(request)
    assert (counted, counted.estimated) == (len(json.dumps(get_bodies(server)[0])), ())
