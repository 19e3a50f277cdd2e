"""Calls of DashScope's SDK."""

from typing import Any, Final

import pytest

from agentkit import (
    ImageBlock,
    Msg,
    TextBlock,
    URLSource,
)
from agentkit.testing import LoopbackError, LoopbackServer, Reply
from tests.providers import user
from tests.providers.calling import HELLO, create_model, read_stream

pytestmark = pytest.mark.anyio


async def test_a_request_with_a_file_of_the_store_asks_to_resolve_it() -> None:
    msgs = [Msg("Bob", [TextBlock("What is it?"), ImageBlock(URLSource("oss://bucket/x.png"))], "user")]
    with LoopbackServer("A cat.") as server:
        async with create_model("dashscope", server, model="qwen3-vl-plus") as model:
            await model.generate(msgs)
            await model.generate(HELLO)
    headers = [request.headers.get("x-dashscope-ossresourceresolve") for request in server.requests]
    assert headers == ["enable", None]


TEXT_PATH: Final = "/api/v1/services/aigc/text-generation/generation"


MULTIMODAL_PATH: Final = "/api/v1/services/aigc/multimodal-generation/generation"


WRONG_PATH: Final = LoopbackError(400, "url error, please check url！", code="InvalidParameter")


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("name", ["qwen-plus", "qwen-of-next-year"])
async def test_the_other_path_is_tried_and_then_used_for_all_calls(stream: bool, name: str) -> None:
    replies: list[Any] = [WRONG_PATH, "Hello.", "Hello again."]
    with LoopbackServer(replies) as server:
        async with create_model("dashscope", server, model=name) as model:
            for _ in range(2):
                if stream:
                    await read_stream(model, HELLO)
                else:
                    await model.generate(HELLO)
    first = server.requests[0].path
    other = {TEXT_PATH: MULTIMODAL_PATH, MULTIMODAL_PATH: TEXT_PATH}[first]
    assert [request.path for request in server.requests] == [first, other, other]
    contents = [request.body["input"]["messages"][0]["content"] for request in server.requests]
    kinds = {TEXT_PATH: str, MULTIMODAL_PATH: list}
    assert [type(content) for content in contents] == [kinds[path] for path in (first, other, other)]


async def test_an_error_within_a_stream_can_name_the_wrong_path() -> None:
    replies: list[Any] = [Reply("never said", error=WRONG_PATH, error_after=0), "Hello."]
    with LoopbackServer(replies) as server:
        async with create_model("dashscope", server) as model:
            _, message = await read_stream(model, HELLO)
    assert message.text == "Hello."
    assert [request.path for request in server.requests] == [TEXT_PATH, MULTIMODAL_PATH]


async def test_a_file_that_a_text_names_is_not_uploaded(tmp_path: Any) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("secret")
    with LoopbackServer("Hello.") as server:
        async with create_model("dashscope", server, model="qwen3.5-plus") as model:
            await model.generate([user(str(secret)), user(f"file://{secret}")])
    assert len(server.requests) == 1
    assert str(secret) in server.requests[0].raw.decode()
