"""The function `observe` of an adapter gets the start and the end of each step."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from agentkit import OptionError, ParseError
from agentkit.prompts import (
    Adapter,
    AdapterEvent,
    ChatAdapter,
    Example,
    JSONAdapter,
    PromptAdapter,
    Signature,
    TwoStepAdapter,
    XMLAdapter,
    ask,
    stream,
)
from agentkit.testing import ScriptedModel

pytestmark = pytest.mark.anyio

QA = Signature("question -> answer: int")
REPLIES: dict[type[Adapter], str] = {
    ChatAdapter: "[[ ## answer ## ]]\n3",
    JSONAdapter: '{"answer": 3}',
    XMLAdapter: "<answer>3</answer>",
    PromptAdapter: "3",
}


@pytest.mark.parametrize("kind", REPLIES)
def test_each_step_has_a_start_and_an_end_with_one_id(kind: type[Adapter]) -> None:
    events: list[AdapterEvent] = []
    adapter = kind(observe=events.append)
    msgs = adapter.format(QA, {"question": "1 + 2?"}, examples=iter([Example({"question": "1?"}, {"answer": 1})]))
    outputs = adapter.parse(QA, REPLIES[kind])
    assert [(event.step, event.phase) for event in events] == [
        *(("format", "start"), ("format", "end"), ("parse", "start"), ("parse", "end"))
    ]
    assert events[0].call_id == events[1].call_id != events[2].call_id == events[3].call_id
    assert events[0].inputs["signature"] is QA
    assert events[0].inputs["inputs"] == {"question": "1 + 2?"}
    assert len(events[0].inputs["examples"]) == 1
    assert events[0].outputs is None
    assert events[1].outputs is msgs
    assert len(msgs) == 4
    assert events[2].inputs == {"signature": QA, "reply": REPLIES[kind]}
    assert events[3].outputs == outputs == {"answer": 3}
    assert {event.error for event in events} == {None}


def test_an_error_is_in_the_last_event_and_is_raised() -> None:
    events: list[AdapterEvent] = []
    with pytest.raises(ParseError) as caught:
        ChatAdapter(observe=events.append).parse(QA, "No idea.")
    assert events[-1].error is caught.value
    assert events[-1].outputs is None


def test_an_exception_of_the_function_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    def fail(event: AdapterEvent) -> None:
        raise ValueError(event.phase)

    with caplog.at_level(logging.WARNING, "agentkit"):
        assert ChatAdapter(observe=fail).parse(QA, "[[ ## answer ## ]]\n3") == {"answer": 3}
    assert [record.getMessage() for record in caplog.records] == [
        "observe: the function raised an exception for parse start",
        "observe: the function raised an exception for parse end",
    ]


async def test_calls_report_each_step() -> None:
    events: list[AdapterEvent] = []
    adapter = ChatAdapter(observe=events.append)
    model = ScriptedModel(["[[ ## answer ## ]]\nthree", "[[ ## answer ## ]]\n3", "[[ ## answer ## ]]\n3"])
    assert (await ask(model, QA(question="1 + 2?"), adapter=adapter, retries=1)).value.answer == 3
    steps = [(event.step, type(event.error)) for event in events if event.phase == "end"]
    assert steps == [("format", type(None)), ("parse", ParseError), ("parse", type(None))]
    events.clear()
    async with stream(model, QA(question="1 + 2?"), adapter=adapter) as reply:
        await reply.finish()
    assert [event.step for event in events] == ["format", "format", "parse", "parse"]


async def test_the_extraction_of_outputs_is_a_parse_step() -> None:
    events: list[AdapterEvent] = []
    adapter = TwoStepAdapter(ScriptedModel(["[[ ## answer ## ]]\n3"]), observe=events.append)
    assert await adapter.extract(QA, "It is three.") == {"answer": 3}
    assert [(event.step, event.phase, event.outputs) for event in events] == [
        ("parse", "start", None),
        ("parse", "end", {"answer": 3}),
    ]


def test_adapters_with_other_functions_are_equal_and_write_equal_messages() -> None:
    events: list[AdapterEvent] = []
    observed: Any = ChatAdapter(observe=events.append)
    assert observed == ChatAdapter()
    assert hash(observed) == hash(ChatAdapter())
    assert observed.format(QA, {"question": "1?"}) == ChatAdapter().format(QA, {"question": "1?"})


def test_an_adapter_of_a_mode_has_no_function_of_its_own() -> None:
    with pytest.raises(OptionError, match=r"modes\['short'\]\.observe"):
        PromptAdapter(modes={"short": PromptAdapter(observe=print)})
    with pytest.raises(OptionError, match="observe"):
        ChatAdapter(observe="print")  # type: ignore[arg-type]


def test_invalid_arguments_have_the_error_of_the_method() -> None:
    adapter: Any = ChatAdapter(observe=print)
    with pytest.raises(TypeError, match=r"parse\(\) missing 1 required positional argument: 'reply'"):
        adapter.parse(QA)


def test_an_async_function_is_refused() -> None:
    async def observe(event: AdapterEvent) -> None:
        raise NotImplementedError

    with pytest.raises(OptionError, match="observe: async functions are not supported"):
        ChatAdapter(observe=observe)
