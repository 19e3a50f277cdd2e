"""The function `observe` of an adapter gets the start and the end of each step."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from agentkit import Msg, OptionError, ParseError
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
from tests.cases import each_case

pytestmark = pytest.mark.anyio

QA = Signature("question -> answer: int")
REPLIES: dict[type[Adapter], str] = {
    ChatAdapter: "[[ ## answer ## ]]\n3",
    JSONAdapter: '{"answer": 3}',
    XMLAdapter: "<answer>3</answer>",
    PromptAdapter: "3",
}


@each_case("kind", [*REPLIES])
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


class Silent(ChatAdapter):
    """Adapter whose methods do not call the methods of the base class."""

    def format(self, *args: Any, **options: Any) -> list[Msg]:
        return [Msg("user", "What is 1 + 2?", "user")]

    def parse(self, signature: Any, reply: Msg | str) -> dict[str, Any]:
        return {"answer": 3}


class Extended(JSONAdapter):
    """Adapter whose methods call the methods of the base class."""

    def format(self, *args: Any, **options: Any) -> list[Msg]:
        return super().format(*args, **options)

    def parse(self, signature: Any, reply: Msg | str) -> dict[str, Any]:
        return super().parse(signature, reply)


class _Mixin:
    def parse(self, signature: Any, reply: Msg | str) -> dict[str, Any]:
        inherited: Any = super()
        outputs: dict[str, Any] = inherited.parse(signature, reply)
        return outputs


class Mixed(_Mixin, Silent):
    """Adapter with a method from a class that is not an adapter."""


class Inherited(Extended):
    """Adapter without methods of its own."""


@each_case("kind", [Silent, Extended, Mixed, Inherited])
async def test_a_step_of_a_subclass_has_one_start_and_one_end(kind: type[ChatAdapter]) -> None:
    events: list[AdapterEvent] = []
    adapter = kind(observe=events.append)
    adapter.format(QA, {"question": "1 + 2?"}, history=iter([]))
    assert adapter.parse(QA, '{"answer": 3}') == {"answer": 3}
    names = [(event.step, event.phase) for event in events]
    assert names == [("format", "start"), ("format", "end"), ("parse", "start"), ("parse", "end")]
    assert len({event.call_id for event in events}) == 2
    assert events[1].inputs == {"signature": QA, "inputs": {"question": "1 + 2?"}, "history": []}
    events.clear()
    model = ScriptedModel(['{"answer": 3}'])
    assert (await ask(model, QA(question="1 + 2?"), adapter=adapter)).value.answer == 3
    assert [(event.step, event.phase) for event in events] == names


def test_a_static_method_stays_unchanged() -> None:
    class Constant(ChatAdapter):
        @staticmethod
        def parse(signature: Any, reply: Msg | str) -> dict[str, Any]:  # pyright: ignore[reportIncompatibleMethodOverride]
            return {"answer": 3}

    assert Constant(observe=print).parse(QA, "") == {"answer": 3}


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
        "observe: the function raised an exception at the start of parse",
        "observe: the function raised an exception at the end of parse",
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


async def test_an_overridden_extraction_has_one_start_and_one_end() -> None:
    class Shouting(TwoStepAdapter):
        async def extract(self, signature: Any, reply: Msg | str) -> dict[str, Any]:
            return {**await super().extract(signature, reply), "is_loud": True}

    events: list[AdapterEvent] = []
    adapter = Shouting(ScriptedModel(["[[ ## answer ## ]]\n3"]), observe=events.append)
    await adapter.extract(QA, "It is three.")
    assert [(event.phase, event.outputs) for event in events] == [
        ("start", None),
        ("end", {"answer": 3, "is_loud": True}),
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

    with pytest.raises(OptionError, match="observe: expected a synchronous function, got an async function"):
        ChatAdapter(observe=observe)
