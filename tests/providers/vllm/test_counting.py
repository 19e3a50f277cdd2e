"""The token counter of vLLM, through OpenAI's SDK."""

from __future__ import annotations

import copy
import json
from typing import Any

import openai
import pytest

from agentkit import (
    Msg,
    OptionError,
    TextBlock,
    load_provider,
)
from agentkit_vllm import VLLMTokenCounter
from tests.conftest import text_msg
from tests.providers.counting import FAR, MODEL, TOOL, get_bodies, refuse_path, serve

pytestmark = pytest.mark.anyio


def vllm_answer(path: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
    if path != "/tokenize":
        return refuse_path(path)
    return 200, {"count": len(json.dumps(body["messages"])), "max_model_len": 4096, "tokens": []}


async def test_the_request_is_counted_and_media_are_estimated() -> None:
    msgs = [text_msg("system", "Be brief.", "system"), Msg("Bob", (TextBlock("Look"), FAR), "user")]
    request = load_provider("vllm").chat_formatter().lower(msgs, tools=[TOOL]).request
    request["extra_body"] = {"chat_template_kwargs": {"enable_thinking": False}}
    before = copy.deepcopy(request)
    with serve(vllm_answer) as server:
        async with openai.AsyncOpenAI(api_key="k", base_url=f"{server.address}/v1", max_retries=0) as client:
            counter = VLLMTokenCounter(client.post, model=MODEL)
            counted = await counter.count(request)
            text = await counter.count({"messages": [{"role": "user", "content": "hi"}]})
    assert request == before
    body = get_bodies(server)[0]
    assert body["tools"] == request["tools"]
    assert body["chat_template_kwargs"] == {"enable_thinking": False}
    assert body["add_generation_prompt"] is True
    assert body["messages"][-1]["content"] == [{"type": "text", "text": "Look"}]
    assert counted >= len(json.dumps(body["messages"])) + 1_600
    assert counted.estimated == ("tokens of media are estimated, because the counting endpoint counts only text",)
    assert text.estimated == ()


@pytest.mark.parametrize("choice", ["auto", "none", "required", "search"])
async def test_tools_are_counted_with_every_choice(choice: str) -> None:
    request = (
        load_provider("vllm")
        .chat_formatter()
        .lower([text_msg("Bob", "Hi.")], tools=[TOOL], tool_choice=choice)
        .request
    )
    with serve(vllm_answer) as server:
        async with openai.AsyncOpenAI(api_key="k", base_url=f"{server.address}/v1", max_retries=0) as client:
            await VLLMTokenCounter(client.post, model=MODEL).count(request)
    assert get_bodies(server)[0]["tools"] == request["tools"]


async def test_the_endpoint_can_have_another_address() -> None:
    with serve(lambda path, body: (200, {"count": len(path)})) as server:
        async with openai.AsyncOpenAI(api_key="k", base_url=f"{server.address}/proxy/v1", max_retries=0) as client:
            counter = VLLMTokenCounter(client.post, model=MODEL, url=f"{server.address}/other/tokenize")
            assert await counter.count({"messages": []}) == len("/other/tokenize")
            assert VLLMTokenCounter(client.post, model=MODEL).url == f"{server.address}/proxy/tokenize"
    with pytest.raises(OptionError, match="url"):
        VLLMTokenCounter(print, model=MODEL)
