"""Calls of OpenAI's SDK to vLLM."""

import pytest

from agentkit.testing import LoopbackServer
from tests.providers.calling import HELLO, create_model

pytestmark = pytest.mark.anyio


async def test_a_server_needs_no_key() -> None:
    with LoopbackServer("Hello.") as server:
        async with create_model("vllm", server, client_options={"base_url": server.url("vllm")}) as model:
            assert (await model.generate(HELLO)).text == "Hello."
