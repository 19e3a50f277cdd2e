"""Calls of Ollama's SDK."""

import pytest

from agentkit import (
    Msg,
    ToolResultBlock,
    ToolUseBlock,
)
from agentkit.testing import LoopbackServer
from tests.providers.calling import HELLO, create_model

pytestmark = pytest.mark.anyio


async def test_fields_that_the_types_of_the_sdk_omit_arrive() -> None:
    schema = {"type": "object", "properties": {"at": {"type": "object", "properties": {"x": {"type": "number"}}}}}
    msgs = [
        *HELLO,
        Msg("Friday", [ToolUseBlock("call_1", "look", {"place": ""})], "assistant"),
        Msg("system", [ToolResultBlock("call_1", "look", "")], "system"),
    ]
    with LoopbackServer("Hello.") as server:
        async with create_model("ollama", server) as model:
            await model.generate(
                msgs, tools=[{"name": "look", "parameters": schema}], parameters={"truncate": False}
            )
    body = server.requests[0].body
    assert body["truncate"] is False
    assert body["tools"][0]["function"]["parameters"] == schema
    assert body["messages"][1]["content"] == ""
    assert body["messages"][1]["tool_calls"][0]["id"] == "call_1"
    assert body["messages"][2] == {"role": "tool", "content": "", "tool_name": "look", "tool_call_id": "call_1"}
