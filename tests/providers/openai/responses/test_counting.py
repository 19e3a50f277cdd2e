"""The token counter of OpenAI Responses, through its SDK."""

from __future__ import annotations

import copy
import json
from typing import Any

import openai
import pytest

from agentkit import (
    InputError,
    Msg,
    TextBlock,
    load_provider,
)
from agentkit_openai import OpenAITokenCounter
from tests.conftest import text_msg
from tests.providers.counting import FAR, MODEL, PNG, TOOL, get_bodies, refuse_path, serve

pytestmark = pytest.mark.anyio


def openai_answer(path: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
    if path != "/v1/responses/input_tokens":
        return refuse_path(path)
    if refused := body.keys() - {"model", "input", "instructions", "tools", "tool_choice", "text", "reasoning"}:
        return 400, {"error": {"message": f"Unknown parameter: {min(refused)!r}."}}
    return 200, {"object": "response.input_tokens", "input_tokens": len(json.dumps(body["input"]))}


async def test_the_counted_request_is_the_request_itself() -> None:
    msgs = [text_msg("system", "Be brief.", "system"), Msg("Bob", (TextBlock("Look"), PNG, FAR), "user")]
    request = (
        load_provider("openai-responses").chat_formatter().lower(msgs, tools=[TOOL], tool_choice="search").request
    )
    before = copy.deepcopy(request)
    with serve(openai_answer) as server:
        async with openai.AsyncOpenAI(api_key="k", base_url=f"{server.address}/v1", max_retries=0) as client:
            counter = OpenAITokenCounter(client.responses.input_tokens.count, model=MODEL)
            counted = await counter.count({**request, "store": False, "max_output_tokens": 9, "stream": True})
    assert request == before
    assert get_bodies(server) == [{"model": MODEL, **request}]
    assert (counted, counted.estimated) == (len(json.dumps(request["input"])), ())


async def test_a_chat_request_is_refused_before_any_call() -> None:
    counter = OpenAITokenCounter(print, model=MODEL)
    with pytest.raises(InputError, match="TiktokenCounter"):
        await counter.count({"messages": []})
