"""Tests of `ChatModel`: arguments, errors, second plans, and streams."""

import asyncio
import subprocess
import sys
import threading
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any, ClassVar, Final

import anyio
import anyio.to_thread
import pytest

from agentkit import (
    Budget,
    BudgetError,
    CharacterTokenCounter,
    ChatHistory,
    ChatModel,
    ContextLengthError,
    FinishReason,
    InputError,
    ModelError,
    Msg,
    MultiAgentHistory,
    NetworkError,
    OptionError,
    ProviderError,
    RateLimitError,
    TextBlock,
    Tool,
    ToolResultBlock,
    ToolUseBlock,
    Usage,
    UsageAnchoredCounter,
    load_provider,
)
from agentkit.provider_kit import Provider
from agentkit.testing import LoopbackError, LoopbackServer, Reply, ScriptedModel
from tests.cases import each_case
from tests.providers import LOOK, user
from tests.providers.calling import create_model

pytestmark = pytest.mark.anyio

HELLO: Final = [user("Is anybody there?")]
TOO_LONG: Final = "prompt is too long: 2000 tokens > 1000 maximum"


def _long_conversation(count: int = 60) -> list[Msg]:
    return [
        Msg(
            "Bob" if number % 2 == 0 else "Friday",
            f"{number}: " + "words " * 20,
            "user" if number % 2 == 0 else "assistant",
        )
        for number in range(count)
    ] + [user("So?")]


# -- how one is made --------------------------------------------------------------------------------------------


async def test_a_model_is_selected_with_one_string_or_with_two() -> None:
    single = ChatModel("ollama:llama3.3:70b")
    two = ChatModel("ollama", "llama3.3:70b")
    three = ChatModel(load_provider("ollama"), "llama3.3:70b")
    for model in (single, two, three):
        assert (model.provider.name, model.model) == ("ollama", "llama3.3:70b")
        assert model.formatter.model == "llama3.3:70b"


@each_case(
    ("value", "options", "place"),
    [
        (("openai",), {}, "model"),
        (("openai:",), {}, "model"),
        (("openai:gpt-6", "gpt-6"), {}, "model"),
        (("openai:gpt-6",), {"max_tokens": -1}, "max_tokens"),
        (("openai:gpt-6",), {"max_tokens": True}, "max_tokens"),
        (("openai:gpt-6",), {"client": object(), "client_options": {"api_key": "k"}}, "client_options"),
        (("openai:gpt-6",), {"client_options": "k"}, "client_options"),
        (("openai:gpt-6",), {"parameters": []}, "parameters"),
        (("openai:gpt-6",), {"replan": 1}, "replan"),
        ((3,), {}, "provider"),
    ],
)
async def test_invalid_arguments_are_errors_of_the_constructor(value: Any, options: Any, place: str) -> None:
    with pytest.raises(OptionError) as caught:
        ChatModel(*value, **options)
    assert caught.value.place == place


@each_case("name", ["client_options", "parameters"])
async def test_an_error_hides_the_value_of_an_option_that_can_contain_a_key(name: str) -> None:
    options: Any = {name: "sk-secret"}
    with pytest.raises(OptionError, match="expected a dict") as caught:
        ChatModel("openai:gpt-6", **options)
    assert "sk-secret" not in str(caught.value)


async def test_an_unknown_provider_or_option_is_an_error() -> None:
    with pytest.raises(ProviderError, match="openai"):
        ChatModel("opnai:gpt-6")
    unknown: Any = {"on_los": "raise"}
    with pytest.raises(OptionError, match="on_los"):
        ChatModel("openai:gpt-6", **unknown)


async def test_a_provider_without_an_endpoint_is_an_error() -> None:
    loaded = load_provider("openai")
    model = ChatModel(Provider("half", loaded.chat_formatter, loaded.multi_agent_formatter), "m")
    assert (await model.plan(HELLO)).request
    with pytest.raises(ProviderError, match="no endpoint"):
        await model.generate(HELLO)
    with pytest.raises(ProviderError, match="no endpoint"):
        ChatModel(Provider("half", loaded.chat_formatter, loaded.multi_agent_formatter), "m", client=object())
    value = {"api_key": "k"}
    mute = ChatModel(
        Provider("half", loaded.chat_formatter, loaded.multi_agent_formatter, endpoint=loaded.endpoint),
        "m",
        client_options=value,
    )
    with pytest.raises(ProviderError, match="no parser for replies"):
        async with mute.stream(HELLO):
            pass


def _sync_clients() -> list[tuple[str, Any]]:
    import anthropic
    import ollama
    import openai

    return [
        ("openai", openai.OpenAI(api_key="k")),
        ("anthropic", anthropic.Anthropic(api_key="k")),
        ("ollama", ollama.Client()),
        ("openai", object()),
        ("dashscope", object()),
    ]


async def test_a_synchronous_client_is_an_error() -> None:
    for provider, client in _sync_clients():
        with pytest.raises(OptionError, match="async client"):
            ChatModel(provider, "m", client=client)
        if hasattr(client, "close"):
            client.close()


async def test_a_client_of_another_sdk_is_an_error() -> None:
    import anthropic
    import openai

    open_ai, claude = openai.AsyncOpenAI(api_key="k"), anthropic.AsyncAnthropic(api_key="k")
    wrong: list[tuple[str, Any]] = [
        ("openai", claude),
        ("openai-responses", claude),
        ("anthropic", open_ai),
        ("anthropic", anthropic.AsyncAnthropic),
        ("gemini", open_ai),
        ("gemini", 5),
        ("ollama", open_ai),
        ("dashscope", open_ai),
    ]
    for provider, client in wrong:
        with pytest.raises(OptionError, match="client"):
            ChatModel(provider, "m", client=client)
    await open_ai.close()
    await claude.close()


@each_case("provider", ["openai", "anthropic", "ollama", "gemini", "dashscope"])
async def test_an_error_about_unknown_client_options_names_them(provider: str) -> None:
    options = {"nonsense": 1} if provider == "ollama" else {"nonsense": 1, "api_key": "k"}
    with pytest.raises(OptionError, match="client_options") as caught:
        await ChatModel(provider, "m", client_options=options).open()
    assert caught.value.__cause__


async def test_stream_is_not_a_parameter() -> None:
    with pytest.raises(OptionError, match="stream"):
        await ScriptedModel(["Hello."]).generate(HELLO, parameters={"stream": True})


async def test_options_of_the_formatter_are_passed_to_the_formatter() -> None:
    history, budget = MultiAgentHistory(viewer="Friday"), Budget(1_000)
    model = ChatModel("openai:gpt-6", history=history, budget=budget, on_loss="drop", cache_breakpoints="auto")
    formatter: Any = model.formatter
    assert (formatter.history, formatter.budget, formatter.on_loss) == (history, budget, "drop")
    assert formatter.cache_breakpoints == "auto"
    assert isinstance(ChatModel("openai:gpt-6").formatter.history, ChatHistory)


async def test_a_plan_can_be_sent_unchanged() -> None:
    with LoopbackServer("Yes.") as server:
        async with create_model("openai", server) as model:
            plan = await model.plan(HELLO, tools=[LOOK], tool_choice="auto")
            assert server.requests == []
            assert (await model.generate(plan)).text == "Yes."
            async with model.stream(plan) as stream:
                assert (await stream.finish()).text == "Yes."
                assert stream.plan is plan
            with pytest.raises(OptionError, match="tools"):
                await model.generate(plan, tools=[LOOK])
    assert [request.body["tools"] for request in server.requests] == [plan.request["tools"]] * 2


async def test_a_request_can_be_counted() -> None:
    model = ChatModel("openai:gpt-6")
    alone, with_tools = await model.count(HELLO), await model.count(HELLO, tools=[LOOK])
    assert 0 < alone < with_tools
    plan = await model.plan(HELLO)
    assert alone == await CharacterTokenCounter().count(plan.request, load_provider("openai"))
    budgeted = ChatModel("openai:gpt-6", budget=Budget(1_000))
    assert await budgeted.count(HELLO) == (await budgeted.plan(HELLO)).tokens


async def test_parameters_cannot_replace_the_conversation() -> None:
    with LoopbackServer() as server:
        async with create_model("openai", server) as model:
            with pytest.raises(OptionError, match="messages"):
                await model.generate(HELLO, parameters={"messages": []})
    assert server.requests == []


async def test_a_nested_limit_of_tokens_is_merged_with_the_parameters(monkeypatch: pytest.MonkeyPatch) -> None:
    def nest(endpoint: object, max_tokens: int) -> dict[str, Any]:
        return {"metadata": {"limit": max_tokens, "level": "low"}}

    monkeypatch.setattr("agentkit_openai.endpoint.OpenAIChatEndpoint.max_tokens_parameter", nest)
    with LoopbackServer("Yes.") as server:
        async with create_model("openai", server, max_tokens=7) as model:
            await model.generate(HELLO, parameters={"metadata": {"level": "high"}})
    assert server.requests[0].body["metadata"] == {"limit": 7, "level": "high"}


async def test_invalid_messages_are_errors_before_a_client_opens() -> None:
    model = ChatModel("openai:gpt-6")
    with pytest.raises(InputError):
        await model.generate([])
    with pytest.raises(InputError):
        async with model.stream("hello"):  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
            pass


async def test_a_model_opens_one_client_and_closes_it() -> None:
    with LoopbackServer("Yes.") as server:
        model = create_model("openai", server)
        await model.aclose()  # no client was opened
        async with anyio.create_task_group() as group:
            for _ in range(5):
                group.start_soon(model.generate, HELLO)
        client: Any = vars(model)["_client"].endpoint.client
        await model.aclose()
        assert client.is_closed()
        assert (await model.generate(HELLO)).text == "Yes."
        assert vars(model)["_client"].endpoint.client is not client
        await model.aclose()


def test_nothing_of_an_sdk_is_imported_before_the_first_call() -> None:
    script = """
import anyio, sys
from agentkit import ChatModel, Msg, available_providers, load_provider
async def main():
    for name in available_providers():
        if not load_provider(name).layout.is_rendered:
            await ChatModel(name, "some-model").plan([Msg("Bob", "hi", "user")])
anyio.run(main)
print(*{name.partition(".")[0] for name in sys.modules})
"""
    run = subprocess.run(
        [sys.executable, "-W", "error", "-c", script], stdout=subprocess.PIPE, text=True, check=True
    )
    loaded = set(run.stdout.split())
    assert not loaded & {"openai", "anthropic", "google", "ollama", "dashscope", "httpx", "httpx2", "aiohttp"}


# -- a client is opened and closed ------------------------------------------------------------------------------


class ModelWithSlowClient:
    """Model whose OpenAI client opens only after a signal. It stores the opened clients."""

    def __init__(self, server: LoopbackServer) -> None:
        self.go_on, self.begun = threading.Event(), threading.Event()
        self.opened: list[Any] = []
        loaded = load_provider("openai")
        outer = self
        assert loaded.endpoint is not None

        class Slow(loaded.endpoint):  # type: ignore[misc,name-defined]
            @classmethod
            def open(cls, **options: Any) -> Any:
                outer.begun.set()
                outer.go_on.wait(10)
                outer.opened.append(opened_client := super().open(**options))
                return opened_client

        self.model = ChatModel(replace(loaded, endpoint=Slow), "m", client_options=server.client_options("openai"))

    async def has_begun(self) -> None:
        await anyio.to_thread.run_sync(self.begun.wait)

    @property
    def are_closed(self) -> list[bool]:
        return [endpoint.client.is_closed() for endpoint in self.opened]


async def test_concurrent_first_calls_open_one_client() -> None:
    with LoopbackServer("Yes.") as server:
        outer = ModelWithSlowClient(server)
        async with outer.model as model, anyio.create_task_group() as group:
            for _ in range(5):
                group.start_soon(model.generate, HELLO)
            await outer.has_begun()
            outer.go_on.set()
    assert len(server.requests) == 5
    assert outer.are_closed == [True]


async def _read_stream(model: ChatModel) -> Msg:
    return await model.generate(HELLO)


async def _stream_reply(model: ChatModel) -> Msg:
    async with model.stream(HELLO) as stream:
        return await stream.finish()


async def _expect_closed_error(call: Callable[[ChatModel], Awaitable[Msg]], model: ChatModel) -> None:
    with pytest.raises(NetworkError, match="closed during the call") as caught:
        await call(model)
    assert not caught.value.retryable


@pytest.mark.parametrize("call", [_read_stream, _stream_reply])
async def test_closing_a_model_while_its_client_opens_is_an_error_of_the_call(call: Any) -> None:
    with LoopbackServer("never") as server:
        outer = ModelWithSlowClient(server)
        async with anyio.create_task_group() as group:
            group.start_soon(_expect_closed_error, call, outer.model)
            await outer.has_begun()
            group.start_soon(outer.model.aclose)
            await anyio.wait_all_tasks_blocked()
            outer.go_on.set()
    assert server.requests == []
    assert outer.are_closed == [True]


@pytest.mark.parametrize("call", [_read_stream, _stream_reply])
async def test_closing_a_model_during_a_call_is_an_error_of_the_call(call: Any) -> None:
    arrived = threading.Event()

    def late(body: object) -> Reply:
        arrived.set()
        return Reply("Hello there. " * 40, delay=0.3)

    with LoopbackServer(late) as server:
        model = create_model("openai", server)
        async with anyio.create_task_group() as group:
            group.start_soon(_expect_closed_error, call, model)
            await anyio.to_thread.run_sync(arrived.wait)
            await model.aclose()
        server.play("Again.")
        assert (await model.generate(HELLO)).text == "Again."
        await model.aclose()


async def test_a_canceled_call_closes_the_client_that_it_opens() -> None:
    with LoopbackServer("Yes.") as server:
        outer = ModelWithSlowClient(server)
        async with anyio.create_task_group() as group:
            group.start_soon(outer.model.generate, HELLO)
            await outer.has_begun()
            group.cancel_scope.cancel()
            outer.go_on.set()
        assert server.requests == []
        assert (await outer.model.generate(HELLO)).text == "Yes."
        await outer.model.aclose()
    assert outer.are_closed == [True]


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_call_canceled_by_asyncio_closes_the_client_that_it_opens() -> None:
    with LoopbackServer("Yes.") as server:
        outer = ModelWithSlowClient(server)
        task = asyncio.ensure_future(outer.model.generate(HELLO))
        await outer.has_begun()
        task.cancel()
        second = asyncio.ensure_future(outer.model.generate(HELLO))
        await anyio.wait_all_tasks_blocked()
        outer.go_on.set()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert (await second).text == "Yes."
        await outer.model.aclose()
    assert outer.are_closed == [True]


async def test_each_call_tries_again_to_open_a_client() -> None:
    model = ChatModel("openai:m", client_options={"api_key": "k", "nonsense": 1})
    for _ in range(2):
        with pytest.raises(OptionError, match="nonsense"):
            await model.generate(HELLO)
    await model.aclose()


# -- who speaks -------------------------------------------------------------------------------------------------


async def test_a_reply_has_the_name_of_the_viewer_and_no_speaker_prefix() -> None:
    friday = MultiAgentHistory(viewer="Friday")
    model = ScriptedModel(["Friday: It is calm.", "Alice: It is calm."], history=friday)
    msgs = [user("How is the sea?"), Msg("Alice", "Ask Friday.", "user")]
    reply = await model.generate(msgs)
    assert (reply.name, reply.text) == ("Friday", "It is calm.")
    async with model.stream(msgs) as stream:
        await stream.finish()
    assert stream.message.text == "Alice: It is calm."


async def test_a_speaker_prefix_is_kept_without_a_viewer() -> None:
    model = ScriptedModel(["assistant: hello"])
    assert (await model.generate(HELLO)).text == "assistant: hello"


async def test_tool_names_in_a_reply_have_the_spelling_of_the_caller() -> None:
    tool = Tool("look up/now", "Look.", {"type": "object", "properties": {}})
    with LoopbackServer([_calls_first_tool]) as server:
        async with create_model("openai", server) as model:
            reply = await model.generate(HELLO, tools=[tool])
    assert server.requests[0].body["tools"][0]["function"]["name"] != tool.name
    assert reply.tool_uses[0].name == tool.name


def _calls_first_tool(body: Any) -> Msg:
    return Msg("Friday", [ToolUseBlock("1", body["tools"][0]["function"]["name"], {})], "assistant")


# -- a shorter plan ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("streamed", [False, True])
async def test_a_prompt_that_is_too_long_is_cut_and_sent_once_more(streamed: bool) -> None:
    with LoopbackServer([LoopbackError(400, TOO_LONG), "Shorter."]) as server:
        async with create_model("openai", server, budget=Budget(100_000)) as model:
            if streamed:
                async with model.stream(_long_conversation()) as stream:
                    reply = await stream.finish()
                assert stream.plan.cut
            else:
                reply = await model.generate(_long_conversation())
    assert reply.text == "Shorter."
    first, second = (request.body["messages"] for request in server.requests)
    assert len(second) < 0.6 * len(first)
    assert second[-1] == first[-1]


async def test_the_second_plan_has_the_ratio_of_tokens_from_the_error() -> None:
    error = ContextLengthError("openai", TOO_LONG)
    model = ScriptedModel([error, "Shorter."], budget=Budget(100_000))
    tokens = await model.count(_long_conversation())
    await model.generate(_long_conversation())
    counter = CharacterTokenCounter()
    second = await counter.count(model.requests[1], load_provider("openai"))
    assert 0.25 * tokens < second <= 0.5 * tokens


async def test_an_error_without_token_counts_cuts_a_quarter() -> None:
    model = ScriptedModel([ContextLengthError("openai", "Too long."), "Shorter."], budget=Budget(100_000))
    tokens = await model.count(_long_conversation())
    await model.generate(_long_conversation())
    second = await CharacterTokenCounter().count(model.requests[1], load_provider("openai"))
    assert 0.4 * tokens < second <= 0.75 * tokens


async def test_a_prompt_is_planned_again_only_once() -> None:
    errors = [ContextLengthError("openai", "Too long."), ContextLengthError("openai", "Still too long.")]
    model = ScriptedModel([*errors, "never"], budget=Budget(100_000))
    with pytest.raises(ContextLengthError, match="Still"):
        await model.generate(_long_conversation())
    assert len(model.calls) == 2


@each_case(
    ("options", "calls"),
    [
        ({}, 1),
        ({"replan": True}, 2),
        ({"budget": Budget(100_000)}, 2),
        ({"budget": Budget(100_000), "replan": False}, 1),
    ],
)
async def test_a_prompt_is_planned_again_if_the_option_says_so(options: dict[str, Any], calls: int) -> None:
    model = ScriptedModel([ContextLengthError("openai", "Too long."), "Shorter."], **options)
    try:
        await model.generate(_long_conversation())
    except ContextLengthError:
        assert calls == 1
    assert len(model.calls) == calls


async def test_a_plan_of_the_caller_is_never_planned_again() -> None:
    model = ScriptedModel([ContextLengthError("openai", "Too long."), "never"], budget=Budget(100_000))
    plan = await model.plan(_long_conversation())
    with pytest.raises(ContextLengthError):
        await model.generate(plan)


async def test_the_error_of_the_provider_is_raised_if_no_shorter_request_exists() -> None:
    error = ContextLengthError("openai", "prompt is too long: 2000000 tokens > 1 maximum")
    model = ScriptedModel([error], budget=Budget(100_000))
    with pytest.raises(ContextLengthError, match="2000000"):
        await model.generate(_long_conversation())
    with pytest.raises(BudgetError):
        await ScriptedModel(["never"], budget=Budget(5)).generate(_long_conversation())


async def test_the_reserve_of_a_budget_is_the_same_in_the_second_plan() -> None:
    model = ScriptedModel(
        [ContextLengthError("openai", "Too long."), "Fine."], budget=Budget(9_000, reserve=5_000)
    )
    assert (await model.generate(_long_conversation())).text == "Fine."


async def test_a_stream_with_an_early_overflow_is_planned_again() -> None:
    overflow = Reply("x", error=LoopbackError(400, TOO_LONG, code="context_length_exceeded"), error_after=0)
    with LoopbackServer([overflow, "Shorter."]) as server:
        model = create_model("openai-responses", server, budget=Budget(100_000))
        async with model, model.stream(_long_conversation()) as stream:
            kinds = [event.type async for event in stream]
    assert stream.message.text == "Shorter."
    assert kinds.count("message-start") == 1
    assert "error" not in kinds


async def test_an_overflow_after_a_text_is_an_error() -> None:
    overflow = Reply("Some words. " * 20, error=LoopbackError(400, TOO_LONG), error_after=9)
    with LoopbackServer([overflow]) as server:
        model = create_model("openai", server, budget=Budget(100_000))
        async with model, model.stream(_long_conversation()) as stream:
            with pytest.raises(ContextLengthError):
                await stream.finish()
    assert stream.message.text.startswith("Some")


# -- streams ----------------------------------------------------------------------------------------------------


async def test_a_stream_can_be_read_only_inside_its_context() -> None:
    model = ScriptedModel(["Hello.", "Hello."])
    stream = model.stream(HELLO)
    with pytest.raises(InputError, match="async with"):
        async for _ in stream:
            pass
    with pytest.raises(InputError, match="async with"):
        _ = stream.plan
    async with stream:
        with pytest.raises(InputError, match="has not ended"):
            _ = stream.message
        assert (await stream.finish()).text == "Hello."
        assert (await stream.finish()).text == "Hello."
        assert [event async for event in stream] == []
    with pytest.raises(InputError, match="already opened"):
        async with stream:
            pass


async def test_an_unread_stream_is_interrupted() -> None:
    model = ScriptedModel(["Hello."])
    async with model.stream(HELLO) as stream:
        pass
    assert stream.message.finish_reason is FinishReason.INTERRUPTED
    assert stream.message.blocks == ()
    with pytest.raises(StopAsyncIteration):
        await anext(stream)


async def test_a_stream_ends_after_its_error() -> None:
    with LoopbackServer([Reply("Hello " * 30, cut_after=4)]) as server:
        async with create_model("openai", server) as model, model.stream(HELLO) as stream:
            with pytest.raises(ModelError):
                await stream.finish()
            assert [event async for event in stream] == []


async def test_opening_a_stream_raises_the_error_of_a_refused_call() -> None:
    with LoopbackServer([LoopbackError(429, "Slow down.")]) as server:
        async with create_model("openai", server) as model:
            with pytest.raises(RateLimitError):
                async with model.stream(HELLO):
                    raise AssertionError("it was not opened")


async def test_an_error_in_the_body_of_the_loop_is_raised_unchanged() -> None:
    async def stop_early() -> None:
        async with model.stream(HELLO) as stream:
            async for _ in stream:
                raise ZeroDivisionError

    with LoopbackServer([Reply("Hello " * 30, delay=0.01)]) as server:
        async with create_model("openai", server) as model:
            with pytest.raises(ZeroDivisionError):
                await stop_early()
        assert server.requests[0].wait().disconnected


# -- scripted models --------------------------------------------------------------------------------------------


async def test_a_script_replies_in_order_and_raises_at_its_end() -> None:
    model = ScriptedModel(["One.", Msg("Friday", [TextBlock("Two.")], "assistant")], provider="anthropic")
    assert (await model.generate(HELLO, parameters={"temperature": 0.5})).text == "One."
    two = await model.generate(HELLO)
    assert (two.name, two.text, two.finish_reason) == ("Friday", "Two.", FinishReason.STOP)
    with pytest.raises(OptionError, match="no prepared reply remains for model call number 3"):
        await model.generate(HELLO)
    model.play("Three.")
    assert (await model.generate(HELLO)).text == "Three."
    assert model.calls[0].parameters == {"temperature": 0.5}
    assert model.requests[0]["messages"][0]["content"][0]["text"] == "Is anybody there?"


async def test_a_script_raises_its_errors_unchanged() -> None:
    slow = RateLimitError("openai", "Slow down.", retry_after=3)
    model = ScriptedModel([slow, ZeroDivisionError("what?")])
    with pytest.raises(RateLimitError) as caught:
        await model.generate(HELLO)
    assert caught.value is slow
    with pytest.raises(ZeroDivisionError):
        async with model.stream(HELLO):
            pass


async def test_a_script_streams_the_same_replies() -> None:
    expected_reply = Msg(
        "Friday", [TextBlock("I look."), ToolUseBlock("1", "look", {"place": "the sea"})], "assistant"
    )
    model = ScriptedModel([expected_reply, expected_reply])
    outcome = await model.generate(HELLO)
    async with model.stream(HELLO) as stream:
        kinds = [event.type async for event in stream]
    assert stream.message == outcome
    assert outcome.content == expected_reply.content
    assert outcome.finish_reason is FinishReason.TOOL_USE
    assert {"text-start", "text-delta", "tool-use-start", "tool-use-delta", "tool-use-end"} <= set(kinds)


@each_case("replies", ["Hello.", Msg("Friday", "Hello.", "assistant"), [3]])
async def test_a_script_is_a_list_of_replies(replies: Any) -> None:
    with pytest.raises(OptionError, match="replies"):
        ScriptedModel(replies)


class Agent:
    """Smallest agent loop that an application can have."""

    tools: ClassVar[list[Any]] = []

    def __init__(self, model: ChatModel) -> None:
        self.model = model

    async def run(self, history: list[Msg]) -> Msg:
        def look(place: str) -> str:
            """Look at a place."""
            return f"{place} is calm"

        tool = Tool.from_function(look)
        while True:
            reply = await self.model.generate(history, tools=[tool])
            history.append(reply)
            if reply.finish_reason is not FinishReason.TOOL_USE:
                return reply
            results = [await tool.run(call) for call in reply.tool_uses]
            history.append(Msg("system", results, "system"))


async def test_a_tool_loop_works_with_a_script() -> None:
    call = Msg("Friday", [ToolUseBlock("1", "look", {"place": "the sea"})], "assistant")
    model = ScriptedModel([call, "Calm."])
    history = list(HELLO)
    assert (await Agent(model).run(history)).text == "Calm."
    assert isinstance(history[2].blocks[0], ToolResultBlock)
    assert history[2].blocks[0].output == "the sea is calm"


async def test_a_counter_with_observe_gets_the_usage_of_each_reply() -> None:
    counter = UsageAnchoredCounter()
    reply = Reply(Msg("x", "Hi.", "assistant"), usage=Usage(777, 3))
    with LoopbackServer([reply, reply]) as server:
        options = server.client_options("openai")
        async with ChatModel("openai:any", budget=Budget(5_000, counter), client_options=options) as model:
            await model.generate(HELLO)
            assert await model.count(HELLO) == 777
            more = [*HELLO, Msg("Bob", "And the museum?", "user")]
            assert 777 < await model.count(more) < 800
            async with model.stream(more) as stream:
                await stream.finish()
            assert await model.count(more) == 777
