"""The loopback server: its scripted replies, its records, its refusals, and its internal errors."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from typing import Any, Final

import anyio
import httpx2
import pytest

from agentkit import ImageBlock, Msg, OptionError, TextBlock, Tool, ToolUseBlock, load_provider
from agentkit.testing import LoopbackError, LoopbackServer, Reply, demo_reply
from agentkit.testing.routes import load_routes
from tests.cases import each_case
from tests.providers import LOOK, PROVIDERS, chat, user

pytestmark = pytest.mark.anyio

BASES: Final = {route.provider: route.base for route in load_routes()}
CHAT: Final[dict[str, Any]] = {"model": "m", "messages": [{"role": "user", "content": "Hello"}]}


async def post(server: LoopbackServer, body: object, path: str = "/v1/chat/completions") -> httpx2.Response:
    async with httpx2.AsyncClient(verify=False, timeout=60) as client:  # reading certificates is the slowest part
        return await client.post(server.url() + path, json=body)


async def expect_status(status: int, server: LoopbackServer) -> None:
    assert (await post(server, CHAT)).status_code == status


def content(response: httpx2.Response) -> Any:
    return response.json()["choices"][0]["message"]["content"]


# -- scripted replies -------------------------------------------------------------------------------------------


async def test_replies_are_played_in_order_and_then_an_error() -> None:
    with LoopbackServer(["one", Msg("Friday", "two", "assistant")]) as server:
        assert [content(await post(server, CHAT)) for _ in range(2)] == ["one", "two"]
        beyond = await post(server, CHAT)
        server.play("three")
        assert content(await post(server, CHAT)) == "three"
    assert beyond.status_code == 400
    assert "no prepared reply remains" in beyond.text


async def test_a_single_reply_is_played_for_every_call() -> None:
    with LoopbackServer("again") as server:
        assert [content(await post(server, CHAT)) for _ in range(3)] == ["again"] * 3


async def test_a_function_of_the_request_returns_the_reply() -> None:
    def answer(body: dict[str, Any]) -> str:
        return f"to {body['model']}"

    with LoopbackServer(answer) as server:
        assert content(await post(server, CHAT)) == "to m"


async def test_native_replies_are_sent_unchanged() -> None:
    events: list[Mapping[str, Any] | bytes] = [{"choices": []}, b": keep-alive\n\n"]
    with LoopbackServer([{"odd": 1}, b"not json", Reply(events), Reply(b"data: x\n\n")]) as server:
        assert (await post(server, CHAT)).json() == {"odd": 1}
        assert (await post(server, CHAT)).text == "not json"
        streamed = await post(server, CHAT | {"stream": True})
        raw = await post(server, CHAT | {"stream": True})
    assert streamed.text == 'data: {"choices":[]}\n\n: keep-alive\n\ndata: [DONE]\n\n'
    assert raw.text == "data: x\n\n"


async def test_the_same_reply_becomes_the_same_bytes() -> None:
    with LoopbackServer("Hello.") as server:
        bodies = {(await post(server, CHAT)).content for _ in range(2)}
        streams = {(await post(server, CHAT | {"stream": True})).content for _ in range(2)}
    assert len(bodies) == len(streams) == 1


async def test_text_is_streamed_in_pieces_of_the_requested_size() -> None:
    with LoopbackServer(Reply("abcdefg", piece_size=3)) as server:
        stream = (await post(server, CHAT | {"stream": True})).text
    deltas = [
        json.loads(line[6:])["choices"][0]["delta"] for line in stream.split("\n") if line.startswith("data: {")
    ]
    assert [delta["content"] for delta in deltas if delta.get("content")] == ["abc", "def", "g"]


async def test_headers_and_retry_after_are_sent() -> None:
    slow = LoopbackError(429, "Slow down.", retry_after=2)
    with LoopbackServer([Reply("Hello.", headers={"x-ratelimit-remaining-tokens": "7"}), slow]) as server:
        answer, refused = await post(server, CHAT), await post(server, CHAT)
    assert answer.headers["x-ratelimit-remaining-tokens"] == "7"
    assert answer.headers["x-request-id"].startswith("req_")
    assert (refused.status_code, refused.headers["retry-after"]) == (429, "2")


async def test_a_complete_reply_can_be_truncated_too() -> None:
    cut = Reply("Hello there.", cut_after_bytes=20)
    with LoopbackServer(cut) as server, pytest.raises(httpx2.RemoteProtocolError):
        await post(server, CHAT)


async def test_no_answer_arrives_after_the_server_has_stopped() -> None:
    with LoopbackServer("Hello.") as server:
        pass
    with pytest.raises(httpx2.ConnectError):
        await post(server, CHAT)


# -- records ----------------------------------------------------------------------------------------------------


async def test_a_request_is_recorded_with_its_headers_and_body() -> None:
    with LoopbackServer() as server:
        await post(server, CHAT | {"stream": True})
    (request,) = server.requests
    assert (request.provider, request.path, request.model) == ("openai", "/v1/chat/completions", "m")
    assert request.body == CHAT | {"stream": True} == json.loads(request.raw)
    assert request.streamed
    assert request.headers["content-type"] == "application/json"
    assert request.wait().refused is None
    assert not request.disconnected


async def test_many_requests_are_served_concurrently() -> None:
    with LoopbackServer(lambda body: body["messages"][0]["content"]) as server:
        texts: list[str] = []

        async def ask(number: int) -> None:
            texts.append(content(await post(server, {"messages": [{"role": "user", "content": str(number)}]})))

        async with anyio.create_task_group() as tasks:
            for number in range(40):
                tasks.start_soon(ask, number)
    assert sorted(map(int, texts)) == list(range(40))


async def test_a_wait_for_the_end_of_an_exchange_ends_too() -> None:
    with LoopbackServer(Reply("word " * 50, delay=0.02)) as server:
        async with (
            httpx2.AsyncClient() as client,
            client.stream("POST", server.url("openai") + "/chat/completions", json=CHAT | {"stream": True}),
        ):
            with pytest.raises(TimeoutError, match="did not answer the request"):
                server.requests[0].wait(0.01)
        assert server.requests[0].wait().disconnected


# -- where it is ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("provider", PROVIDERS)
def test_every_provider_has_its_base_url(provider: str) -> None:
    with LoopbackServer() as server:
        assert server.url(provider) == f"http://127.0.0.1:{server.port}{BASES[provider]}"


def test_an_unknown_provider_is_refused_with_its_name() -> None:
    with LoopbackServer() as server, pytest.raises(OptionError, match="no fake service is named 'parrot'"):
        server.url("parrot")


async def test_a_path_without_a_service_returns_404() -> None:
    with LoopbackServer() as server:
        assert (await post(server, CHAT, "/v1/embeddings")).status_code == 404
        async with httpx2.AsyncClient() as client:
            assert (await client.get(server.url())).status_code == 404
    assert server.requests == []
    assert server.strays == ["/v1/embeddings", "/"]


@pytest.mark.parametrize(
    ("path", "provider"),
    [
        ("/v1/projects/p/locations/global/publishers/google/models/m:generateContent", "gemini"),
        ("/v1beta1/publishers/google/models/m:generateContent", "gemini"),
        ("/v1/projects/p/locations/l/publishers/anthropic/models/claude%40x:rawPredict", "anthropic-vertex"),
        ("/model/claude/invoke", "bedrock"),
        ("/openai/v1/responses", "openai-responses"),
    ],
)
async def test_the_paths_of_the_clouds_are_served(path: str, provider: str) -> None:
    message = [{"role": "user", "content": "Hello"}]
    body = {"contents": [{"role": "user", "parts": [{"text": "Hello"}]}], "messages": message, "input": "Hello"}
    with LoopbackServer() as server:
        answer = await post(server, body | {"anthropic_version": "vertex-2023-10-16"}, path)
    assert answer.status_code == 200
    assert server.requests[0].provider == provider


# -- refused requests -------------------------------------------------------------------------------------------

CALL: Final = {"id": "c", "type": "function", "function": {"name": "look", "arguments": "{}"}}
BROKEN: Final[list[tuple[str, dict[str, Any], str]]] = [
    (
        "/v1/chat/completions",
        {"messages": [{"role": "assistant", "tool_calls": [CALL]}]},
        "must be followed by tool",
    ),
    ("/v1/chat/completions", {"messages": [{"role": "tool", "tool_call_id": "c"}]}, "preceeding message"),
    ("/v1/chat/completions", {"messages": []}, "empty array"),
    ("/v1/responses", {"input": [{"type": "function_call", "call_id": "c"}]}, "No tool output found"),
    ("/v1/responses", {"input": [{"type": "function_call_output", "call_id": "c"}]}, "No tool call found"),
    ("/v1/messages", {"messages": [{"role": "user", "content": "hi"}]}, "max_tokens: Field required"),
    (
        "/v1/messages",
        {"max_tokens": 1, "messages": [{"role": "assistant", "content": [{"type": "tool_use", "id": "c"}]}]},
        "`tool_use` ids were found without `tool_result`",
    ),
    (
        "/v1/messages",
        {
            "max_tokens": 1,
            "messages": [{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c"}]}],
        },
        "unexpected `tool_use_id`",
    ),
    (
        "/v1beta/models/m:generateContent",
        {"contents": [{"role": "user", "parts": [{"functionResponse": {"name": "look"}}]}]},
        "immediately after a function call turn",
    ),
    (
        "/api/v1/services/aigc/text-generation/generation",
        {"input": {"messages": [{"role": "tool", "tool_call_id": "c"}]}},
        "<400> InternalError.Algo.InvalidParameter",
    ),
]


@pytest.mark.parametrize(("path", "body", "reason"), BROKEN)
async def test_unpaired_calls_are_refused_with_the_error_of_the_provider(
    path: str, body: dict[str, Any], reason: str
) -> None:
    with LoopbackServer() as server:
        answer = await post(server, body, path)
    assert answer.status_code == 400
    assert reason in answer.text
    assert server.requests[0].refused


async def test_an_unpaired_call_is_accepted_without_validation() -> None:
    with LoopbackServer(validate=False) as server:
        assert (await post(server, {"messages": []})).status_code == 200


async def test_a_body_that_is_not_json_is_refused() -> None:
    with LoopbackServer() as server:
        async with httpx2.AsyncClient() as client:
            answer = await client.post(server.url("openai") + "/chat/completions", content=b"{")
    assert answer.status_code == 400


# -- internal errors --------------------------------------------------------------------------------------------


async def test_a_reply_that_the_wire_format_cannot_express_raises_at_the_end() -> None:
    picture = Msg("Friday", [ImageBlock.from_bytes(b"x", "image/png")], "assistant")
    with (
        pytest.raises(OptionError, match="a reply of Chat Completions cannot contain a block of type 'image'"),
        LoopbackServer(picture) as server,
    ):
        await expect_status(400, server)


async def test_a_native_reply_must_match_the_requested_kind_of_reply() -> None:
    async def both(server: LoopbackServer) -> None:
        assert "complete native reply" in (await post(server, CHAT | {"stream": True})).text
        assert "events" in (await post(server, CHAT)).text

    server = LoopbackServer([{"odd": 1}, Reply([{"odd": 1}])])
    with pytest.raises(OptionError), server:
        await both(server)
    assert len(server.faults) == 2


async def test_the_error_of_a_reply_function_is_raised_at_the_end() -> None:
    with pytest.raises(KeyError, match="missing"), LoopbackServer(lambda body: body["missing"]) as server:
        await expect_status(400, server)


async def test_an_error_of_the_test_has_precedence() -> None:
    async def raise_after_request(server: LoopbackServer) -> None:
        await expect_status(400, server)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError), LoopbackServer(lambda body: body["missing"]) as server:
        await raise_after_request(server)


# -- the model of one rule --------------------------------------------------------------------------------------


@pytest.mark.parametrize("provider", PROVIDERS)
def test_the_demo_calls_the_first_tool_once_and_quotes_its_result(provider: str) -> None:
    msgs = [user("Is it raining in Oslo?")]
    call = demo_reply(provider, create_body(provider, msgs))
    (use,) = call.tool_uses
    assert (use.name, use.input) == ("look", {"place": "Is it raining in Oslo?"})
    result = Msg(
        "system", [{"type": "tool_result", "id": use.id, "name": "look", "output": "It pours."}], "system"
    )
    assert demo_reply(provider, create_body(provider, [*msgs, call, result])).text == "The tool says: It pours."
    assert (
        demo_reply(provider, create_body(provider, msgs, tools=False)).text == "You said: Is it raining in Oslo?"
    )


def create_body(provider: str, msgs: list[Msg], tools: bool = True) -> dict[str, Any]:
    """Returns the body of a request with the fields that the rule checks."""
    request = chat(provider).lower(msgs, tools=[LOOK] if tools else None).request
    if provider == "dashscope":
        return {"input": {"messages": request.pop("messages")}, "parameters": request}
    return request


def test_the_demo_fills_in_the_arguments_that_a_schema_requires() -> None:
    parameters = {
        "type": "object",
        "properties": {
            "unit": {"enum": ["C", "F"]},
            "days": {"type": "integer"},
            "where": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
            "left_out": {"type": "string"},
        },
        "required": ["unit", "days", "where"],
    }
    body = {**CHAT, "tools": [{"type": "function", "function": {"name": "weather", "parameters": parameters}}]}
    (use,) = demo_reply("openai", body).tool_uses
    assert use.input == {"unit": "C", "days": 1, "where": {"city": "Hello"}}
    assert demo_reply("openai", {**body, "tool_choice": "none"}).tool_uses == ()


@each_case("provider", ["openai", "openai-responses", "gemini", "anthropic", "vllm", "dashscope"])
@each_case("choice", [["b", "c"], "b"])
def test_the_demo_calls_the_tool_that_the_choice_names(provider: str, choice: Any) -> None:
    tools = [Tool("a"), Tool("b"), Tool("c")]
    model = {"anthropic": "claude-opus-5", "dashscope": "qwen-plus"}.get(provider)
    request = (
        load_provider(provider)
        .chat_formatter(model)
        .lower([user("Hello")], tools=tools, tool_choice=choice)
        .request
    )
    (use,) = demo_reply(provider, request).tool_uses
    assert use.name == "b"


async def test_the_server_answers_with_the_demo_as_an_agent() -> None:
    with LoopbackServer(agent=True) as server:
        assert content(await post(server, CHAT)) == "You said: Hello"
        msg = Msg("Friday", [TextBlock("a"), ToolUseBlock("c", "look", {})], "assistant")
        server.play(msg)
        assert content(await post(server, CHAT)) == "a"


@pytest.mark.slow
def test_the_module_serves_the_demo_on_a_port() -> None:
    command = [sys.executable, "-m", "agentkit.testing", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as served:
        try:
            assert served.stdout is not None
            lines = dict(served.stdout.readline().split() for _ in BASES)
            answer = httpx2.post(lines["openai"] + "/chat/completions", json=CHAT)
        finally:
            served.terminate()
    assert content(answer) == "You said: Hello"
