"""`ask`: values, fallback, retries, tools, and errors with all attempts."""

from __future__ import annotations

from typing import Any, Final, Literal

import pytest

from agentkit import (
    Budget,
    ModelError,
    Msg,
    MultiAgentHistory,
    NoAnswerError,
    OldestFirst,
    OptionError,
    ParseError,
    TextBlock,
    Tool,
    ToolResultBlock,
    ToolUseBlock,
)
from agentkit.prompts import (
    ChatAdapter,
    Example,
    InputField,
    JSONAdapter,
    OutputField,
    Outputs,
    PromptAdapter,
    Signature,
    XMLAdapter,
    ask,
)
from agentkit.testing import LoopbackServer, ScriptedModel
from tests.cases import each_case
from tests.providers import PROVIDERS
from tests.providers.calling import create_model

pytestmark = pytest.mark.anyio


class Judge(Signature):
    """Is the answer grounded in the passages?"""

    passages: list[str] = InputField()
    answer: str = InputField()
    verdict: Literal["grounded", "invented"] = OutputField()
    score: int = OutputField(ge=0, le=10)


class Height(Signature[int]):
    """Tell the height of the tide in centimeters."""

    harbor: str


REQUEST: Final = Judge(passages=["It rains."], answer="Rain.")
GOOD: Final = "[[ ## verdict ## ]]\ngrounded\n\n[[ ## score ## ]]\n9\n\n[[ ## completed ## ]]"
WRONG: Final = "[[ ## verdict ## ]]\ngrounded\n\n[[ ## score ## ]]\n11\n\n[[ ## completed ## ]]"
AS_JSON: Final = '{"verdict": "grounded", "score": 9}'
VALUE: Final = {"verdict": "grounded", "score": 9}
CHAT: Final = ChatAdapter()


def ended(text: str, finish_reason: str) -> Msg:
    return Msg("Friday", text, "assistant", metadata={"reply": {"finish_reason": finish_reason}})


async def test_the_outputs_of_a_reply_are_attributes_and_items() -> None:
    prediction = await ask(ScriptedModel([GOOD]), REQUEST)
    value: Any = prediction.value
    assert isinstance(value, Outputs)
    assert (value.verdict, value["score"], dict(value)) == ("grounded", 9, VALUE)
    assert prediction.message.text == GOOD
    assert prediction.messages[-1] is prediction.message
    assert [attempt.error for attempt in prediction.attempts] == [None]
    with pytest.raises(AttributeError, match="immutable"):
        value.score = 3


async def test_the_value_of_a_query_is_its_answer() -> None:
    prediction = await ask(ScriptedModel(["[[ ## answer ## ]]\n145"]), Height(harbor="Bergen"))
    assert prediction.value == 145


async def test_a_signature_text_works_as_a_class_does() -> None:
    signature = Signature("question, context: list[str] -> answer: int")
    prediction = await ask(ScriptedModel(["[[ ## answer ## ]]\n4"]), signature(question="2 + 2?", context=[]))
    assert prediction.value.answer == 4


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize(("adapter", "reply"), [(CHAT, GOOD), (JSONAdapter(), AS_JSON)], ids=["chat", "json"])
async def test_every_provider_returns_the_same_value(provider: str, adapter: Any, reply: str) -> None:
    with LoopbackServer([reply]) as server:
        async with create_model(provider, server) as model:
            prediction = await ask(model, REQUEST, adapter=adapter)
    assert prediction.value == VALUE
    assert "Is the answer grounded in the passages?" in str(server.requests[0].body)


# -- fallback and retries ---------------------------------------------------------------------------------------


async def test_the_fallback_adapter_is_used_once_if_the_structure_is_missing() -> None:
    model = ScriptedModel(["Grounded, I think.", AS_JSON])
    prediction = await ask(model, REQUEST)
    assert prediction.value == VALUE
    assert [attempt.error and attempt.error.failure for attempt in prediction.attempts] == ["no_structure", None]
    first, second = model.calls
    assert "[[ ## verdict ## ]]" in str(first.request["messages"])
    assert "Outputs will be a JSON object" in str(second.request["messages"])
    assert second.request["response_format"]["type"] == "json_schema"


@pytest.mark.parametrize("reply", [WRONG, "Grounded."])
async def test_without_a_fallback_a_reply_that_cannot_be_parsed_ends_the_call(reply: str) -> None:
    model = ScriptedModel([reply, GOOD])
    with pytest.raises(NoAnswerError) as caught:
        await ask(model, REQUEST, adapter=CHAT)
    assert len(model.calls) == 1
    assert [attempt.reply.text for attempt in caught.value.attempts] == [reply]
    assert isinstance(caught.value.__cause__, ParseError)


async def test_a_wrong_value_needs_no_fallback() -> None:
    model = ScriptedModel([WRONG, AS_JSON])
    with pytest.raises(NoAnswerError, match="score: Input should be less than or equal to 10"):
        await ask(model, REQUEST)
    assert len(model.calls) == 1


async def test_a_retry_appends_the_reply_and_feedback_to_the_unchanged_messages() -> None:
    model = ScriptedModel([WRONG, "Hm.", GOOD])
    prediction = await ask(model, REQUEST, adapter=CHAT, retries=2)
    assert prediction.value == VALUE
    first, second, third = (attempt.messages for attempt in prediction.attempts)
    assert second[: len(first)] == first
    assert third[: len(second)] == second
    reply, feedback = second[len(first) :]
    assert (reply.text, feedback.role) == (WRONG, "user")
    assert feedback.text.startswith('Error. Please try again.\n\n"""\nscore: Input should be less than')
    requests = [call.request["messages"] for call in model.calls]
    assert requests[1][: len(requests[0])] == requests[0]


async def test_retries_follow_the_fallback() -> None:
    model = ScriptedModel(["Hm.", "Hm.", AS_JSON])
    prediction = await ask(model, REQUEST, retries=1)
    assert prediction.value == VALUE
    assert len(prediction.attempts) == 3


async def test_all_attempts_are_in_the_error() -> None:
    with pytest.raises(NoAnswerError, match="no value after 3 attempts") as caught:
        await ask(ScriptedModel([WRONG] * 3), REQUEST, retries=2)
    assert [attempt.error.place for attempt in caught.value.attempts] == ["score"] * 3


@each_case(
    ("finish_reason", "failure"),
    [("length", "cut_off"), ("refusal", "refused"), ("content_filter", "filtered"), ("interrupted", "cut_off")],
)
async def test_a_reply_that_ended_early_is_reported_and_not_repeated(finish_reason: str, failure: str) -> None:
    model = ScriptedModel([ended("[[ ## verdict ## ]]\ngro", finish_reason), GOOD])
    with pytest.raises(NoAnswerError) as caught:
        await ask(model, REQUEST, retries=3)
    assert len(model.calls) == 1
    assert caught.value.attempts[0].error.failure == failure


async def test_an_error_of_the_model_is_not_caught() -> None:
    with pytest.raises(ModelError):
        await ask(ScriptedModel([ModelError("demo", "no")]), REQUEST, retries=3)


# -- tools ------------------------------------------------------------------------------------------------------


def search(query: str) -> str:
    """Search."""
    return f"results for {query}"


class Agent(Signature):
    """Answer. Use the tools."""

    question: str = InputField()
    tools: list[Tool] = InputField()
    calls: list[ToolUseBlock] = OutputField()
    answer: str = OutputField()


SEARCH: Final = Tool.from_function(search)
CALL: Final = Msg("Friday", [ToolUseBlock("c1", "search", {"query": "tides"})], "assistant")
ANSWER: Final = "[[ ## answer ## ]]\nHigh."
NATIVE: Final = ChatAdapter(native_tools=True)


async def test_tool_calls_are_the_result() -> None:
    model = ScriptedModel([CALL])
    prediction = await ask(model, Agent(question="Tides?", tools=[SEARCH]), adapter=NATIVE)
    assert prediction.tool_calls == CALL.tool_uses
    assert prediction.value.calls == [*CALL.tool_uses]
    assert prediction.value.answer is None
    assert [tool["function"]["name"] for tool in model.calls[0].request["tools"]] == ["search"]


async def test_tools_run_for_a_number_of_rounds() -> None:
    model = ScriptedModel([CALL, CALL, ANSWER])
    prediction = await ask(model, Agent(question="Tides?", tools=[SEARCH]), adapter=NATIVE, run_tools=2)
    assert (prediction.value.answer, prediction.value.calls) == ("High.", [])
    results = [block for msg in prediction.messages for block in msg.blocks if isinstance(block, ToolResultBlock)]
    assert [result.text for result in results] == ["results for tides"] * 2


async def test_tools_of_the_call_are_offered_without_a_field() -> None:
    model = ScriptedModel([CALL, GOOD])
    prediction = await ask(model, REQUEST, tools=[search], run_tools=1)
    assert prediction.value == VALUE
    assert all(call.request["tools"][0]["function"]["name"] == "search" for call in model.calls)


@each_case("adapter", [None, CHAT, XMLAdapter(), PromptAdapter(), JSONAdapter()])
async def test_tool_calls_are_the_result_without_an_output_for_them(adapter: Any) -> None:
    model = ScriptedModel([CALL])
    prediction = await ask(model, REQUEST, adapter=adapter, tools=[search], retries=1)
    assert prediction.tool_calls == CALL.tool_uses
    assert prediction.value == {"verdict": None, "score": None}
    assert len(model.calls) == 1


async def test_the_fallback_keeps_the_tool_calls_that_were_run() -> None:
    model = ScriptedModel([CALL, "Grounded, I think.", AS_JSON])
    prediction = await ask(model, REQUEST, tools=[search], run_tools=3)
    assert prediction.value == VALUE
    roles = [message["role"] for message in model.calls[2].request["messages"]]
    assert roles == ["system", "user", "assistant", "tool"]
    assert "Outputs will be a JSON object" in str(model.calls[2].request["messages"][0])


async def test_the_fallback_omits_replies_that_were_retried() -> None:
    model = ScriptedModel([CALL, WRONG, "Grounded, I think.", AS_JSON])
    await ask(model, REQUEST, tools=[search], run_tools=3, retries=1)
    roles = [message["role"] for message in model.calls[3].request["messages"]]
    assert roles == ["system", "user", "assistant", "tool"]


async def test_a_fallback_adapter_that_refuses_the_signature_is_not_used() -> None:
    request = Agent.delete("tools")(question="Tides?")
    with pytest.raises(NoAnswerError) as caught:
        await ask(ScriptedModel(["High."]), request)
    assert [attempt.reply.text for attempt in caught.value.attempts] == ["High."]
    model = ScriptedModel(["High.", f"[[ ## calls ## ]]\n[]\n\n{ANSWER}"])
    assert (await ask(model, request, retries=1)).value == {"calls": [], "answer": "High."}


async def test_missing_tool_calls_are_no_value_of_an_output_that_needs_some() -> None:
    signature = Agent.delete("answer").with_updated_fields("calls", min_length=1)
    model = ScriptedModel(["I would search for it.", "{}", CALL])
    prediction = await ask(model, signature(question="Tides?", tools=[SEARCH]), retries=1)
    assert prediction.value.calls == [*CALL.tool_uses]
    failures = [attempt.error and attempt.error.failure for attempt in prediction.attempts]
    assert failures == ["no_structure", "wrong_value", None]


# -- options ----------------------------------------------------------------------------------------------------


async def test_earlier_requests_are_not_pinned() -> None:
    model = ScriptedModel([GOOD] * 2)
    first = await ask(model, REQUEST, history=[Msg("Bob", "Be strict.", "user", pinned=True)])
    assert [msg.pinned for msg in first.messages] == [False, True, False, False]
    assert [msg.pinned for msg in first.attempts[0].messages] == [False, True, True]
    second = await ask(model, REQUEST, history=first.messages[1:])
    assert [msg.pinned for msg in second.attempts[0].messages] == [False, True, False, False, True]
    assert [msg.pinned for msg in second.messages] == [False, True, False, False, False, False]


async def test_replies_in_examples_are_turns_of_the_viewer() -> None:
    signature = Signature("question -> answer: int")
    model = ScriptedModel(
        ["[[ ## answer ## ]]\nx", "[[ ## answer ## ]]\n3"], history=MultiAgentHistory(viewer="Judge")
    )
    prediction = await ask(
        model,
        signature(question="1 + 2?"),
        examples=[Example({"question": "1 + 1?"}, {"answer": 2})],
        history=[Msg("Alice", "I think so.", "assistant"), Example({"question": "0?"}, {"answer": 0})],
        retries=1,
    )
    assert prediction.value.answer == 3
    for call in model.calls:
        replies = [message["content"] for message in call.request["messages"] if message["role"] == "assistant"]
        assert [reply.split("\n")[1] for reply in replies] == ["2", "0", "x"][: len(replies)]
    assert "Alice: I think so." in str(model.calls[0].request)


async def test_examples_history_and_parameters_reach_the_request() -> None:
    model = ScriptedModel([GOOD])
    example = Example({"passages": [], "answer": "Sun."}, {"verdict": "invented", "score": 0})
    history = [Msg("Bob", "Be strict.", "user")]
    await ask(model, REQUEST, examples=[example], history=history, max_tokens=200, temperature=0)
    call = model.calls[0]
    roles = ["system", "user", "assistant", "user", "user"]
    assert [message["role"] for message in call.request["messages"]] == roles
    assert call.parameters == {"max_tokens": 200, "temperature": 0}


async def test_the_current_request_survives_a_small_budget() -> None:
    history = [Msg("Bob", f"Line {number}. " + "More text. " * 40, "user") for number in range(30)]
    model = ScriptedModel([GOOD], budget=Budget(1_000))
    await ask(model, REQUEST, history=history)
    messages = model.calls[0].request["messages"]
    assert "It rains." in str(messages[-1])
    assert len(messages) < len(history)


@each_case(
    ("limit", "lines", "examples"),
    [(10_000, 9, 3), (1_500, 5, 3), (1_000, 1, 3), (900, 0, 3), (800, 0, 2), (600, 0, 1), (500, 0, 0)],
)
async def test_a_budget_drops_the_history_first_and_then_whole_examples(
    limit: int, lines: int, examples: int
) -> None:
    shown = [
        Example({"answer": f"Example {number}. " + "Word. " * 50}, {"verdict": "invented"}) for number in range(3)
    ]
    history = [Msg("Bob", f"Line {number}. " + "More text. " * 40, "user") for number in range(10)]
    model = ScriptedModel([GOOD], budget=Budget(limit, strategy=OldestFirst(keep_task=True)))
    await ask(model, REQUEST, examples=shown, history=history)
    messages = model.calls[0].request["messages"]
    text = str(messages)
    assert [message["role"] for message in messages[1 : 1 + 2 * examples]] == ["user", "assistant"] * examples
    assert [f"Example {number}." in text for number in range(3)] == [number >= 3 - examples for number in range(3)]
    # The first user message that is not part of an example states the task, and stays.
    kept = [n == 0 or n >= 10 - lines for n in range(10)]
    assert [f"Line {number}." in text for number in range(10)] == kept
    assert "It rains." in str(messages[-1])


@each_case(
    ("options", "place"),
    [
        ({"retries": -1}, "retries"),
        ({"retries": 1.5}, "retries"),
        ({"run_tools": True}, "run_tools"),
        ({"adapter": "chat"}, "adapter"),
        ({"history": ["Hi."]}, "history"),
        ({"tools": [3]}, "tools"),
    ],
)
async def test_an_invalid_option_is_refused_before_the_call(options: Any, place: str) -> None:
    model = ScriptedModel([GOOD])
    with pytest.raises((OptionError, TypeError, ValueError)) as caught:
        await ask(model, REQUEST, **options)
    assert place in str(caught.value)
    assert model.calls == []


@each_case("request_", [Judge, "text", {"answer": "x"}])
async def test_a_request_without_values_is_refused(request_: Any) -> None:
    with pytest.raises(OptionError, match=r"^request: expected a signature with values"):
        await ask(ScriptedModel([GOOD]), request_)
    with pytest.raises(OptionError, match=r"^model: "):
        await ask("openai:gpt", REQUEST)  # type: ignore[arg-type]


async def test_the_text_beside_the_sections_does_not_matter() -> None:
    reply = Msg("Friday", [TextBlock("Let me think."), TextBlock(GOOD)], "assistant")
    assert (await ask(ScriptedModel([reply]), REQUEST)).value == VALUE
