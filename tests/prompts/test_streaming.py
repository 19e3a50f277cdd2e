"""`stream`: events of fields among those of the model, the prediction, fallback, errors, and closing."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

import anyio
import pytest

from agentkit import (
    InputError,
    ModelError,
    Msg,
    MultiAgentHistory,
    NetworkError,
    NoAnswerError,
    OptionError,
    ParseError,
    TextBlock,
    ThinkingBlock,
    Tool,
    ToolUseBlock,
)
from agentkit.prompts import (
    Adapter,
    ChatAdapter,
    Example,
    FieldDelta,
    FieldEnd,
    FieldStart,
    InputField,
    JSONAdapter,
    OutputField,
    Prediction,
    PromptAdapter,
    PromptStream,
    Signature,
    ask,
    stream,
)
from agentkit.testing import LoopbackServer, Reply, ScriptedModel
from tests.cases import each_case
from tests.providers import PROVIDERS
from tests.providers.calling import BURST, create_model

pytestmark = pytest.mark.anyio


class Judge(Signature):
    """Is the answer grounded in the passages?"""

    passages: list[str] = InputField()
    answer: str = InputField()
    verdict: Literal["grounded", "invented"] = OutputField()
    score: int = OutputField(ge=0, le=10)


class Tell(Signature):
    """Tell a story."""

    topic: str = InputField()
    story: str = OutputField()


class Height(Signature[int]):
    """Tell the height of the tide in centimeters."""

    harbor: str


REQUEST: Final = Judge(passages=["It rains."], answer="Rain.")
GOOD: Final = "[[ ## verdict ## ]]\ngrounded\n\n[[ ## score ## ]]\n9\n\n[[ ## completed ## ]]"
WRONG: Final = GOOD.replace("9", "11")
AS_JSON: Final = '{"verdict": "grounded", "score": 9}'
VALUE: Final = {"verdict": "grounded", "score": 9}
CHAT: Final = ChatAdapter()
FIELDS: Final = (FieldStart, FieldDelta, FieldEnd)


async def read(model: Any, request: Any = REQUEST, **options: Any) -> tuple[list[Any], Prediction[Any]]:
    """Returns all events of a stream, and its prediction."""
    async with stream(model, request, **options) as events:
        return [event async for event in events], events.prediction


async def collect(running: PromptStream[Any]) -> tuple[list[Any], Exception | None]:
    """Returns the events of an open stream, and the error that ends the stream. None if there is no error."""
    events: list[Any] = []
    try:
        while True:
            events.append(await anext(running))
    except StopAsyncIteration:
        return events, None
    except Exception as error:
        return events, error


def short(events: list[Any]) -> list[Any]:
    """Returns the types of the model's events, and the names and contents of the fields' events."""
    return [
        f"+{event.name}"
        if isinstance(event, FieldStart)
        else (event.name, event.text)
        if isinstance(event, FieldDelta)
        else (f"-{event.name}", event.value)
        if isinstance(event, FieldEnd)
        else event.text
        if event.type == "text-delta"
        else event.type
        for event in events
    ]


def fields(events: list[Any]) -> list[Any]:
    return short([event for event in events if isinstance(event, FIELDS)])


def join(events: list[Any]) -> dict[str, str]:
    texts: dict[str, str] = {}
    for event in events:
        if isinstance(event, FieldDelta):
            texts[event.name] = texts.get(event.name, "") + event.text
    return texts


def ended(text: str, finish_reason: str) -> Msg:
    return Msg("Friday", text, "assistant", metadata={"reply": {"finish_reason": finish_reason}})


async def test_a_field_event_follows_the_delta_that_caused_it() -> None:
    events, prediction = await read(ScriptedModel([GOOD]))
    assert short(events) == [
        "message-start", "text-start",
        "[[ ## ve", "rdict ##", " ]]\ngrou", "+verdict", ("verdict", "grou"), "nded\n\n[[", ("verdict", "nded"),
        " ## scor", "e ## ]]\n", ("-verdict", "grounded"), "+score",
        "9\n\n[[ ##", ("score", "9"), " complet", "ed ## ]]", ("-score", 9),
        "text-end", "message-end",
    ]  # fmt: skip
    assert prediction.value == VALUE
    assert prediction.message.text == GOOD
    assert [attempt.error for attempt in prediction.attempts] == [None]
    sent = [replace(msg, pinned=False) for msg in prediction.attempts[0].messages]
    assert prediction.messages == (*sent, prediction.message)


async def test_the_last_field_ends_before_the_end_of_the_message() -> None:
    events, _ = await read(ScriptedModel(["[[ ## story ## ]]\nOnce. "]), Tell(topic="x"))
    assert short(events)[-3:] == ["text-end", ("-story", "Once."), "message-end"]


async def test_a_query_and_json_are_streamed_too() -> None:
    events, prediction = await read(ScriptedModel(["[[ ## answer ## ]]\n145"]), Height(harbor="Bergen"))
    assert (fields(events)[-1], prediction.value) == (("-answer", 145), 145)
    events, prediction = await read(ScriptedModel([AS_JSON]), adapter=JSONAdapter())
    assert fields(events) == [
        "+verdict", ("verdict", "gro"), ("verdict", "unded"), ("-verdict", "grounded"),
        "+score", ("score", "9"), ("-score", 9),
    ]  # fmt: skip
    assert prediction.value == VALUE


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize(("adapter", "reply"), [(CHAT, GOOD), (JSONAdapter(), AS_JSON)], ids=["chat", "json"])
async def test_every_provider_streams_the_same_fields(provider: str, adapter: Any, reply: str) -> None:
    with LoopbackServer([Reply(reply, piece_size=3), reply]) as server:
        async with create_model(provider, server) as model:
            events, prediction = await read(model, adapter=adapter)
            expected = await ask(model, REQUEST, adapter=adapter)
    assert join(events) == {"verdict": "grounded", "score": "9"}
    assert {event.name: event.value for event in events if isinstance(event, FieldEnd)} == VALUE
    assert prediction.value == expected.value == VALUE
    assert len(fields(events)) > 6  # the verdict has several deltas
    assert events[-1].type in ("message-end", "usage")


async def test_the_request_equals_that_of_ask() -> None:
    model = ScriptedModel([GOOD, GOOD])
    example = Example({"passages": [], "answer": "Sun."}, {"verdict": "invented", "score": 0})
    options: dict[str, Any] = {"history": [Msg("Bob", "Be strict.", "user")], "max_tokens": 200, "temperature": 0}
    await read(model, examples=[example], **options)
    await ask(model, REQUEST, examples=[example], **options)
    first, second = model.calls
    assert (first.request, first.parameters) == (second.request, second.parameters)
    assert first.parameters == {"max_tokens": 200, "temperature": 0}
    assert (first.streamed, second.streamed) == (True, False)


# -- texts of several blocks ------------------------------------------------------------------------------------


async def test_the_text_may_be_split_into_blocks_anywhere() -> None:
    blocks: list[Any] = [
        TextBlock("Let me think."),
        ThinkingBlock("Hm."),
        TextBlock(""),
        *(TextBlock(part) for part in GOOD.partition("unded")),
    ]
    events, prediction = await read(ScriptedModel([Msg("F", blocks, "assistant")]))
    assert join(events) == {"verdict": "grounded", "score": "9"}
    assert prediction.value == VALUE


@each_case("prefix", ["Friday: ", " Friday ：\n", ""])
async def test_the_name_of_the_viewer_is_no_text_of_a_field(prefix: str) -> None:
    model = ScriptedModel([f"{prefix}{GOOD}"], history=MultiAgentHistory(viewer="Friday"))
    events, prediction = await read(model)
    assert (join(events), prediction.value) == ({"verdict": "grounded", "score": "9"}, VALUE)
    assert short(events).index("+verdict") < short(events).index("text-end")


# -- fallback and errors ----------------------------------------------------------------------------------------


async def test_the_fallback_adapter_is_used_once_before_the_first_field() -> None:
    model = ScriptedModel(["Grounded, I think.", AS_JSON])
    events, prediction = await read(model)
    assert prediction.value == VALUE
    assert [attempt.error and attempt.error.failure for attempt in prediction.attempts] == ["no_structure", None]
    assert [event.type for event in events].count("message-start") == 2
    assert join(events) == {"verdict": "grounded", "score": "9"}
    assert "Outputs will be a JSON object" in str(model.calls[1].request["messages"])


async def test_a_failed_call_of_the_fallback_adapter_is_raised_after_the_events() -> None:
    for error, kind in ((ModelError("demo", "no"), ModelError), (ValueError("no"), ValueError)):
        model = ScriptedModel(["Hm.", error])
        async with stream(model, REQUEST) as running:
            events, raised = await collect(running)
            assert await collect(running) == ([], None)
        assert short(events) == ["message-start", "text-start", "Hm.", "text-end", "message-end"]
        assert type(raised) is kind


async def test_the_fallback_adapter_has_no_fallback_in_turn() -> None:
    model = ScriptedModel(["Hm.", "Hm.", AS_JSON])
    with pytest.raises(NoAnswerError) as caught:
        await read(model)
    assert (len(model.calls), len(caught.value.attempts)) == (2, 2)


@each_case(
    ("reply", "failure"),
    [
        ("[[ ## verdict ## ]]\ngrounded", "no_structure"),
        (WRONG, "wrong_value"),
        (ended("[[ ## verdict ## ]]\ngro", "length"), "cut_off"),
        (ended("No.", "refusal"), "refused"),
        (ended("No.", "content_filter"), "filtered"),
    ],
)
async def test_after_a_field_or_another_failure_there_is_no_second_call(reply: Any, failure: str) -> None:
    model = ScriptedModel([reply, AS_JSON])
    async with stream(model, REQUEST) as running:
        events, error = await collect(running)
        assert await collect(running) == ([], None)
        with pytest.raises(InputError, match=r"^stream\.prediction: there is no prediction"):
            _ = running.prediction
    assert len(model.calls) == 1
    assert isinstance(error, NoAnswerError)
    assert isinstance(error.__cause__, ParseError)
    assert [(attempt.error.failure, attempt.reply) for attempt in error.attempts] == [(failure, running.message)]
    assert events[-1].type == "message-end"


async def test_a_model_error_at_the_start_and_in_the_stream_is_raised_after_the_events() -> None:
    with pytest.raises(ModelError):
        await read(ScriptedModel([ModelError("demo", "no")]))
    long = Reply(f"[[ ## story ## ]]\n{BURST}", cut_after=12)
    with LoopbackServer([long]) as server:
        async with create_model("openai", server) as model, stream(model, Tell(topic="x")) as running:
            events, error = await collect(running)
    assert isinstance(error, NetworkError)
    assert join(events)["story"].startswith("So many words.")
    assert events[-1].type == "message-end"
    assert running.message.text.startswith("[[ ## story ## ]]\nSo many words.")


@each_case(
    ("options", "place"),
    [({"adapter": "chat"}, "adapter"), ({"retries": 1, "tools": [3]}, "tools"), ({"history": ["Hi."]}, "history")],
)
async def test_an_invalid_option_is_refused_before_the_call(options: Any, place: str) -> None:
    model = ScriptedModel([GOOD])
    with pytest.raises((OptionError, TypeError, ValueError)) as caught:
        await read(model, **options)
    assert place in str(caught.value)
    assert model.calls == []
    for wrong in (Judge, "text"):
        with pytest.raises(OptionError, match=r"^request: "):
            stream(model, wrong)  # type: ignore[arg-type]


# -- tools and other adapters -----------------------------------------------------------------------------------


class Agent(Signature):
    """Answer. Use the tools."""

    question: str = InputField()
    tools: list[Tool] = InputField()
    calls: list[ToolUseBlock] = OutputField()
    answer: str = OutputField()


def search(query: str) -> str:
    """Search."""
    return query


async def test_tool_calls_are_an_output_at_the_end() -> None:
    call = ToolUseBlock("c1", "search", {"query": "tides"})
    model = ScriptedModel([Msg("Friday", [call], "assistant")])
    request = Agent(question="Tides?", tools=[Tool.from_function(search)])
    events, prediction = await read(model, request, adapter=ChatAdapter(native_tools=True))
    assert prediction.tool_calls == (call,)
    assert fields(events)[-3:] == [("-calls", [call]), "+answer", ("-answer", None)]
    assert [tool["function"]["name"] for tool in model.calls[0].request["tools"]] == ["search"]


async def test_tool_calls_are_the_result_without_native_tools() -> None:
    call = Msg("Friday", [ToolUseBlock("c1", "search", {"query": "tides"})], "assistant")
    model = ScriptedModel([call])
    _, prediction = await read(model, tools=[search])
    assert prediction.tool_calls == call.tool_uses
    assert prediction.value == {"verdict": None, "score": None}
    assert len(model.calls) == 1


async def test_a_fallback_adapter_that_refuses_the_signature_is_not_used() -> None:
    model = ScriptedModel(["No idea."])
    async with stream(model, Agent.delete("tools")(question="Tides?")) as events:
        with pytest.raises(NoAnswerError) as caught:
            await events.finish()
    assert [attempt.reply.text for attempt in caught.value.attempts] == ["No idea."]


@dataclass(frozen=True)
class Extracting(ChatAdapter):
    """Adapter that reads a reply asynchronously."""

    async def extract(self, signature: Any, reply: Msg) -> dict[str, Any]:
        await anyio.lowlevel.checkpoint()
        if "fail" in reply.text:
            raise ModelError("demo", "no")
        return {"story": reply.text}

    def stream_parser(self, signature: Any) -> Any:
        return Adapter.stream_parser(self, signature)


async def test_an_adapter_with_extract_reads_the_complete_reply() -> None:
    request, adapter = Tell(topic="x"), Extracting()
    events, prediction = await read(ScriptedModel(["Once."]), request, adapter=adapter)
    assert fields(events) == ["+story", ("story", "Once."), ("-story", "Once.")]
    assert prediction.value == {"story": "Once."}
    assert (await ask(ScriptedModel(["Once."]), request, adapter=adapter)).value == {"story": "Once."}
    async with stream(ScriptedModel(["fail"]), request, adapter=adapter) as running:
        events, error = await collect(running)
        assert await collect(running) == ([], None)
    assert short(events) == ["message-start", "text-start", "fail", "text-end", "message-end"]
    assert isinstance(error, ModelError)


# -- opening and closing ----------------------------------------------------------------------------------------


async def test_a_stream_is_opened_once_and_read_only_while_it_is_open() -> None:
    events = stream(ScriptedModel([GOOD]), REQUEST)
    for use in (anext(events), events.finish()):
        with pytest.raises(InputError, match=r"^stream: not open"):
            await use
    with pytest.raises(InputError, match=r"^stream: not open"):
        _ = events.message
    async with events:
        with pytest.raises(InputError, match=r"^stream\.prediction: there is no prediction"):
            _ = events.prediction
        with pytest.raises(InputError, match="already opened"):
            await events.__aenter__()
        assert (await events.finish()).value == VALUE
    assert events.prediction.value == VALUE
    assert [event async for event in events] == []


async def test_no_event_is_left_after_the_block() -> None:
    async with stream(ScriptedModel([GOOD]), REQUEST) as events:
        while not isinstance(await anext(events), FieldStart):
            pass
    assert await collect(events) == ([], None)  # a delta has arrived with the start


@asynccontextmanager
async def slow_stream(provider: str) -> AsyncGenerator[tuple[Any, LoopbackServer]]:
    with LoopbackServer([Reply(f"[[ ## story ## ]]\n{BURST}", delay=0.02)]) as server:
        async with create_model(provider, server) as model:
            yield stream(model, Tell(topic="x")), server


@pytest.mark.parametrize("provider", ["openai", "anthropic", "gemini"])
async def test_leaving_the_block_closes_the_connection(provider: str) -> None:
    async with slow_stream(provider) as (running, server):
        async with running as events:
            async for event in events:
                if isinstance(event, FieldDelta):
                    break
        assert server.requests[0].wait().disconnected
        assert [event async for event in events] == []
        assert events.message.text.startswith("[[ ## story ## ]]\nSo")
        with pytest.raises(InputError):
            _ = events.prediction


@pytest.mark.parametrize("provider", ["openai", "anthropic", "gemini"])
async def test_cancellation_closes_the_connection(provider: str) -> None:
    async with slow_stream(provider) as (running, server):
        with anyio.CancelScope() as scope:
            async with running as events:
                async for event in events:
                    if isinstance(event, FieldDelta):
                        scope.cancel()
        assert scope.cancelled_caught
        assert server.requests[0].wait().disconnected


async def test_a_stream_uses_a_mode_of_the_adapter() -> None:
    adapter = PromptAdapter(modes={"brief": PromptAdapter(system="Be brief.")})
    model = ScriptedModel(['{"value": "Tea."}'])
    request: Any = Signature("question -> answer")(question="Tea?")
    async with stream(model, request, adapter=adapter, mode="brief") as events:
        await events.finish()
    assert events.prediction.value.answer == "Tea."
    assert model.calls[0].request["messages"][0]["content"] == "Be brief."
