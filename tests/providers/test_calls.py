"""Calls of each provider through its real SDK client, against a server on this machine.

DashScope's SDK waits between two attempts with asyncio, so on trio it tries once.
"""

import gc
import json
import re
import sys
import warnings
from functools import partial
from typing import Any, cast

import anyio
import anyio.to_thread
import pytest

from agentkit import (
    AuthError,
    ChatModel,
    FinishReason,
    InputError,
    MissingExtraError,
    Msg,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
)
from agentkit.testing import LoopbackError, LoopbackServer
from tests.cases import each_case
from tests.providers import LOOK, PROVIDERS, user
from tests.providers.calling import HELLO, MODELS, SDKS, create_model, read_stream
from tests.wire.loopback import get_expected_body

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("provider", PROVIDERS)
async def test_a_model_returns_a_reply(provider: str) -> None:
    with LoopbackServer(["Yes, here I am."]) as server:
        async with create_model(provider, server) as model:
            reply = await model.generate(HELLO)
    assert (reply.name, reply.role, reply.text) == ("assistant", "assistant", "Yes, here I am.")
    assert reply.finish_reason is FinishReason.STOP
    assert reply.usage
    assert reply.usage.output_tokens > 0
    assert not server.requests[0].streamed


@pytest.mark.parametrize("provider", PROVIDERS)
async def test_a_streamed_reply_equals_the_complete_reply(provider: str) -> None:
    expected = Msg(
        "Friday", [TextBlock("Let me look."), ToolUseBlock("call_1", "look", {"place": "sea"})], "assistant"
    )
    with LoopbackServer([expected, expected]) as server:
        async with create_model(provider, server) as model:
            reply = await model.generate(HELLO, tools=[LOOK])
            kinds, streamed = await read_stream(model, HELLO, tools=[LOOK])
    assert server.requests[1].streamed
    assert streamed.content == reply.content
    assert streamed.finish_reason is reply.finish_reason is FinishReason.TOOL_USE
    assert kinds[0] == "message-start"
    assert {"text-delta", "tool-use-end", "message-end"} <= set(kinds)


@each_case("stream", [False, True])
@pytest.mark.parametrize("provider", PROVIDERS)
async def test_the_server_receives_the_planned_request(provider: str, stream: bool) -> None:
    msgs = [
        Msg("system", "You are Friday.", "system"),
        user("Look at the sea."),
        Msg("Friday", [TextBlock("I look."), ToolUseBlock("call_1", "look", {"place": "sea"})], "assistant"),
        Msg("system", [ToolResultBlock("call_1", "look", "It is calm.")], "system"),
    ]
    with LoopbackServer("Calm.") as server:
        async with create_model(provider, server) as model:
            plan = await model.plan(msgs, tools=[LOOK], tool_choice="auto")
            if stream:
                await read_stream(model, cast("Any", plan))
            else:
                await model.generate(plan)
    body = _without_call_fields(server.requests[0].body)
    expected = plan.request if provider == "ollama" else get_expected_body(provider, plan.request)
    assert body == _without_call_fields(_in_camel_case(expected) if provider == "gemini" else expected)


def _in_camel_case(value: Any) -> Any:
    """Returns a body with every key in camelCase. The SDK of Gemini does not convert keys of declarations."""
    if isinstance(value, list):
        return [_in_camel_case(item) for item in cast("list[Any]", value)]
    if not isinstance(value, dict):
        return value
    pairs = cast("dict[str, Any]", value).items()
    return {re.sub(r"_([a-z])", lambda match: match[1].upper(), key): _in_camel_case(item) for key, item in pairs}


def _without_call_fields(body: dict[str, Any]) -> dict[str, Any]:
    """Returns a body without the fields that the call adds to the request."""
    fields = {
        name: item
        for name, item in body.items()
        if name not in ("model", "stream", "stream_options", "max_tokens")
    }
    if "parameters" in fields:
        fields["parameters"] = _without_call_fields({**fields["parameters"]})
        fields["parameters"].pop("incremental_output", None)
    config = fields.pop("generationConfig", None)
    return {**fields, "generationConfig": config} if config else fields


def _record_connections(server: LoopbackServer) -> list[object]:
    """Returns the list of connections that a server accepts from this moment on."""
    http = cast("Any", server)._server
    accept, addresses = http.get_request, cast("list[object]", [])

    def counted() -> Any:
        request, address = accept()
        addresses.append(address)
        return request, address

    http.get_request = counted
    return addresses


@pytest.mark.parametrize("provider", PROVIDERS)
async def test_successive_calls_share_a_connection(provider: str) -> None:
    with LoopbackServer("Again.") as server:
        connections = _record_connections(server)
        async with create_model(provider, server) as model:
            await model.generate(HELLO)
            await read_stream(model, HELLO)
            await model.generate(HELLO)
    assert len(server.requests) == 3
    assert len(connections) == 1


@pytest.mark.parametrize("provider", PROVIDERS)
async def test_each_of_many_concurrent_calls_gets_its_reply(provider: str) -> None:
    replies: dict[int, str] = {}

    async def ask(number: int) -> None:
        replies[number] = (await model.generate([user(f"Say the number {number}.")])).text

    def echo(body: dict[str, Any]) -> str:
        text = json.dumps(body)
        return next(f"{number}" for number in range(11, 23) if f"number {number}." in text)

    with LoopbackServer(cast("Any", echo)) as server:
        async with create_model(provider, server) as model, anyio.create_task_group() as group:
            for number in range(11, 23):
                group.start_soon(ask, number)
    assert replies == {number: str(number) for number in range(11, 23)}


@pytest.mark.parametrize(
    "provider", ["dashscope-compatible", "deepseek", "ollama", "openai", "openai-responses", "vllm"]
)
async def test_a_request_for_a_complete_reply_sets_stream_to_false(provider: str) -> None:
    with LoopbackServer("Hello.") as server:
        async with create_model(provider, server) as model:
            await model.generate(HELLO)
    assert server.requests[0].body["stream"] is False


@pytest.mark.parametrize(
    ("provider", "variable"),
    [
        ("anthropic", "ANTHROPIC_API_KEY"),
        ("dashscope", "DASHSCOPE_API_KEY"),
        ("dashscope-compatible", "DASHSCOPE_API_KEY"),
        ("deepseek", "DEEPSEEK_API_KEY"),
        ("gemini", "GEMINI_API_KEY"),
        ("openai", "OPENAI_API_KEY"),
    ],
)
async def test_a_key_comes_from_the_environment_or_is_missing(
    provider: str, variable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("GOOGLE_API_KEY", "ANTHROPIC_AUTH_TOKEN", "HOME", variable):
        monkeypatch.delenv(name, raising=False)
    with LoopbackServer("Hello.") as server:
        client_options = {"base_url": server.url(provider)}
        async with create_model(provider, server, client_options=client_options) as model:
            with pytest.raises(AuthError):
                await model.generate(HELLO)
        monkeypatch.setenv(variable, "from-the-environment")
        async with create_model(provider, server, client_options=client_options) as model:
            await model.generate(HELLO)
    assert "from-the-environment" in str(server.requests[0].headers)


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_model_can_be_used_in_one_event_loop_after_another(provider: str, anyio_backend: str) -> None:
    gc.freeze()  # so that the collection at the end examines only objects of this test
    with LoopbackServer("Hello.") as server:
        model = create_model(provider, server)

        async def ask(*, last: bool) -> str:
            reply = await model.generate(HELLO)
            if last:
                await model.aclose()
            return reply.text

        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ResourceWarning)  # sockets of the first loop
            assert [anyio.run(partial(ask, last=last), backend=anyio_backend) for last in (False, True)] == [
                "Hello.",
                "Hello.",
            ]
            gc.collect()


@pytest.mark.parametrize("provider", PROVIDERS)
async def test_a_model_cannot_be_used_in_two_event_loops_at_once(provider: str, anyio_backend: str) -> None:
    def call_in_another_loop() -> None:
        anyio.run(model.generate, HELLO, backend=anyio_backend)

    with LoopbackServer("Hello.") as server:
        async with create_model(provider, server) as model:
            await model.open()
            with pytest.raises(InputError, match="another event loop"):
                await anyio.to_thread.run_sync(call_in_another_loop)
            assert (await model.generate(HELLO)).text == "Hello."


@pytest.mark.parametrize("provider", PROVIDERS)
async def test_a_missing_sdk_is_an_error_that_names_the_install_command(
    provider: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in SDKS[provider]:
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtraError, match="pip install"):
        await ChatModel(provider, "some-model", client_options={"api_key": "k"}).generate(HELLO)


@pytest.mark.parametrize("provider", ["anthropic", "openai-responses", "gemini", "deepseek"])
async def test_thinking_is_sent_back_while_its_prefix_is_unchanged(provider: str) -> None:
    thought = Msg("Friday", [ThinkingBlock("Hm."), ToolUseBlock("call_1", "look", {"place": "sea"})], "assistant")
    name = "claude-opus-5-1" if provider == "anthropic" else MODELS[provider]  # the first that binds its thinking
    with LoopbackServer([thought, "It is calm."]) as server:
        async with create_model(provider, server, model=name) as model:
            reply = await model.generate(HELLO, tools=[LOOK])
            results = Msg("system", [ToolResultBlock(reply.tool_uses[0].id, "look", "Calm.")], "system")
            history = [*HELLO, reply, results]
            final = await model.generate(history, tools=[LOOK])
            other = await model.plan([user("Something else."), *history[1:]], tools=[LOOK])
    assert final.text == "It is calm."
    if provider != "anthropic":
        return
    thinking = next(block for block in reply.blocks if isinstance(block, ThinkingBlock))
    assert thinking.state
    assert thinking.state.prefix
    assert thinking.state.signature
    assert thinking.state.signature in server.requests[1].raw.decode()
    assert thinking.state.signature not in json.dumps(other.request)


@pytest.mark.parametrize("provider", ["dashscope", "dashscope-compatible", "compatible", "openai-responses"])
async def test_a_model_that_accepts_only_streamed_requests_is_streamed(provider: str) -> None:
    message = "This model only support stream mode, please enable the stream parameter to access the model."
    with LoopbackServer([LoopbackError(400, message), "Hello.", "Hello again."]) as server:
        async with create_model(provider, server) as model:
            assert (await model.generate(HELLO)).text == "Hello."
            assert (await model.generate(HELLO)).text == "Hello again."
    assert [request.streamed for request in server.requests] == [False, True, True]
