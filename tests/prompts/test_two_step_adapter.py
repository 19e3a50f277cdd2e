"""Two-step adapter: the texts of both calls, extraction, tools, errors, and calls of `ask`."""

from __future__ import annotations

import json
import os
import subprocess
from enum import Enum
from typing import Any, Final

import pytest
from pydantic import BaseModel

from agentkit import (
    ImageBlock,
    MissingExtraError,
    Msg,
    NoAnswerError,
    OptionError,
    ParseError,
    TextBlock,
    Tool,
    ToolUseBlock,
    URLSource,
)
from agentkit.prompts import (
    Example,
    Feedback,
    InputField,
    OutputField,
    Signature,
    TwoStepAdapter,
    ask,
    lenient_json,
)
from agentkit.testing import ScriptedModel

pytestmark = pytest.mark.anyio


class Color(Enum):
    RED = "red"


class Point(BaseModel):
    x: int
    label: str = "p"


class Judge(Signature):
    """Judge it.

    Be strict.
    """

    passages: list[str] = InputField()
    point: Point = InputField(desc="a point")
    note: str | None = InputField()
    color: Color = InputField()
    verdict: str = OutputField()
    score: int = OutputField(ge=0, le=10)


INPUTS: Final[dict[str, Any]] = {
    "passages": ["It's", 'x\n"'],
    "point": Point(x=2),
    "note": None,
    "color": Color.RED,
}
COMPLETE: Final = Example(
    {"passages": ["c"], "point": Point(x=1), "note": "n", "color": Color.RED}, {"verdict": "v", "score": 3}
)
INCOMPLETE: Final = Example({"passages": ["b"]}, {"verdict": "w"})
SYSTEM: Final = (
    "You are a helpful assistant that can solve tasks based on user input.\n"
    "As input, you will be provided with:\n"
    "1. `passages` (list[str]): \n"
    "2. `point` (Point): a point\n"
    "3. `note` (Union[str, NoneType]): \n"
    "4. `color` (Color):\n"
    "Your outputs must contain:\n"
    "1. `verdict` (str): \n"
    "2. `score` (int): \n"
    "Constraints: greater than or equal to: 0, less than or equal to: 10\n"
    "You should lay out your outputs in detail so that your answer can be understood by another agent\n"
    "Specific instructions: Judge it.\n\nBe strict."
)
USER: Final = "passages: [\"It's\", 'x\\n\"']\n\npoint: x=2 label='p'\n\nnote: None\n\ncolor: Color.RED"
INSTRUCTIONS: Final = (
    "The input is a text that should contain all the necessary information to produce the fields `verdict`, "
    "`score`.             Your job is to extract the fields from the text verbatim. Extract precisely the "
    "appropriate value (content) for each field."
)
EXTRACTION: Final = [
    (
        "system",
        "Your input fields are:\n"
        "1. `text` (str):\n"
        "Your output fields are:\n"
        "1. `verdict` (str): \n"
        "2. `score` (int): \n"
        "Constraints: greater than or equal to: 0, less than or equal to: 10\n"
        "All interactions will be structured in the following way, with the appropriate values filled in.\n\n"
        "[[ ## text ## ]]\n{text}\n\n"
        "[[ ## verdict ## ]]\n{verdict}\n\n"
        "[[ ## score ## ]]\n{score}        # note: the value you produce must be a single int value\n\n"
        "[[ ## completed ## ]]\n"
        f"In adhering to this structure, your objective is: \n        {INSTRUCTIONS}",
    ),
    (
        "user",
        "[[ ## text ## ]]\nIt is good: 9.\n\n"
        "Respond with the corresponding output fields, starting with the field `[[ ## verdict ## ]]`, then "
        "`[[ ## score ## ]]` (must be formatted as a valid Python int), and then ending with the marker for "
        "`[[ ## completed ## ]]`.",
    ),
]
GOOD: Final = "[[ ## verdict ## ]]\ngood\n\n[[ ## score ## ]]\n9\n\n[[ ## completed ## ]]"
WRONG: Final = "[[ ## verdict ## ]]\ngood\n\n[[ ## score ## ]]\n11\n\n[[ ## completed ## ]]"
VALUE: Final = {"verdict": "good", "score": 9}


def turns(msgs: list[Msg]) -> list[tuple[str, str]]:
    return [(msg.role, msg.text) for msg in msgs]


def sent(model: ScriptedModel, index: int = 0) -> list[tuple[str, str]]:
    return [(message["role"], message["content"]) for message in model.calls[index].request["messages"]]


# -- first call -----------------------------------------------------------------------------------------------


def test_the_first_call_asks_for_free_text() -> None:
    msgs = TwoStepAdapter(ScriptedModel([])).format(Judge, INPUTS, examples=[COMPLETE, INCOMPLETE])
    assert turns(msgs) == [
        ("system", SYSTEM),
        (
            "user",
            "This is an example of the task, though some input or output fields are not supplied.\n\n"
            "passages: ['b']",
        ),
        ("assistant", "verdict: w"),
        ("user", "passages: ['c']\n\npoint: x=1 label='p'\n\nnote: n\n\ncolor: Color.RED"),
        ("assistant", "verdict: v\n\nscore: 3"),
        ("user", USER),
    ]


def test_the_history_has_turns_and_feedback() -> None:
    adapter = TwoStepAdapter(ScriptedModel([]))
    msgs = adapter.format(Judge, INPUTS, history=[INCOMPLETE, Feedback("bad", "Too short.")])
    assert turns(msgs)[1:-1] == [
        ("user", "passages: ['b']"),
        ("assistant", "verdict: w"),
        ("user", 'Error. Please try again.\n\n"""\nToo short.\n"""'),
    ]


def test_media_and_tools_have_their_own_texts() -> None:
    class Look(Signature):
        """Look."""

        picture: ImageBlock = InputField()
        tools: list[Tool] = InputField()
        names: set[str] = InputField()
        depths: dict[str, list[int]] = InputField()
        answer: str = OutputField()

    picture = ImageBlock(URLSource("https://example.com/cat.png"))
    inputs = {"picture": picture, "tools": [Tool("look", "Look around.")], "names": {"a"}, "depths": {"b": [1]}}
    assert TwoStepAdapter(ScriptedModel([])).format(Look, inputs)[1].content == (
        TextBlock("picture: "),
        picture,
        TextBlock(
            '\n\ntools: ["look, whose description is <desc>Look around.</desc>. It takes arguments {}."]'
            "\n\nnames: [\"a\"]\n\ndepths: {'b': [1]}"
        ),
    )


def test_the_conversation_has_the_reply() -> None:
    msgs = TwoStepAdapter(ScriptedModel([])).conversation(Judge, INPUTS, VALUE)
    assert turns(msgs)[-1] == ("assistant", "verdict: good\n\nscore: 9")


# -- second call ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("reply", ["It is good: 9.", Msg("Friday", "It is good: 9.", "assistant")])
async def test_the_second_model_extracts_the_outputs(reply: Any) -> None:
    model = ScriptedModel([GOOD])
    assert await TwoStepAdapter(model).extract(Judge, reply) == VALUE
    assert sent(model) == EXTRACTION


async def test_an_output_may_have_the_name_of_the_text() -> None:
    signature: Any = Signature("question -> text, text_")
    model = ScriptedModel(["[[ ## text ## ]]\na\n\n[[ ## text_ ## ]]\nb"])
    assert await TwoStepAdapter(model).extract(signature, "a, b") == {"text": "a", "text_": "b"}
    assert sent(model)[1][1].startswith("[[ ## text__ ## ]]\na, b\n\n")


@pytest.mark.parametrize(
    ("extracted", "failure", "place", "partial"),
    [(WRONG, "wrong_value", "score", {"verdict": "good"}), ("Hm.", "no_structure", "verdict", {})],
)
async def test_a_failed_extraction_is_an_error_with_the_first_reply(
    extracted: str, failure: str, place: str, partial: dict[str, Any]
) -> None:
    reply = Msg("Friday", "It is good: 9.", "assistant")
    with pytest.raises(ParseError, match=f"^{place}: the outputs could not be extracted from the reply") as caught:
        await TwoStepAdapter(ScriptedModel([extracted])).extract(Judge, reply)
    error = caught.value
    assert (error.failure, error.place, error.partial) == (failure, place, partial)
    assert (error.text, error.message) == ("It is good: 9.", reply)
    assert isinstance(error.__cause__, ParseError)


async def test_a_reply_that_has_no_text_or_ended_early_needs_no_second_call() -> None:
    model = ScriptedModel([])
    cut = Msg("Friday", "It is", "assistant", metadata={"reply": {"finish_reason": "length"}})
    call = Msg("Friday", [ToolUseBlock("c", "look", {})], "assistant")
    for reply, failure in ((cut, "cut_off"), (" ", "no_structure")):
        with pytest.raises(ParseError) as caught:
            await TwoStepAdapter(model).extract(Judge, reply)
        assert caught.value.failure == failure
    assert await TwoStepAdapter(model).extract(Judge, call) == dict.fromkeys(Judge.output_fields)
    assert model.calls == []


async def test_native_tool_calls_are_an_output() -> None:
    class Agent(Signature):
        """Answer."""

        question: str = InputField()
        tools: list[Tool] = InputField()
        calls: list[ToolUseBlock] = OutputField()
        answer: str = OutputField()

    call = ToolUseBlock("c", "look", {})
    model = ScriptedModel(["[[ ## answer ## ]]\nyes"])
    adapter = TwoStepAdapter(model, native_tools=True)
    assert adapter.format(Agent, {"question": "Q", "tools": [Tool("look")]})[1].text == "question: Q"
    only = Msg("Friday", [call], "assistant")
    assert await adapter.extract(Agent, only) == {"calls": [call], "answer": None}
    assert await TwoStepAdapter(model).extract(Agent, only) == {"calls": [call], "answer": None}
    both = Msg("Friday", [TextBlock("Yes."), call], "assistant")
    assert await adapter.extract(Agent, both) == {"calls": [call], "answer": "yes"}


async def test_parse_is_refused() -> None:
    adapter = TwoStepAdapter(ScriptedModel([]))
    for parse in (adapter.parse, adapter.parse_text):
        with pytest.raises(OptionError) as caught:
            parse(Judge, GOOD)
        assert str(caught.value) == (
            "TwoStepAdapter.parse: cannot read a reply without a model call. "
            "Use `await adapter.extract(signature, reply)`, or `ask`."
        )


async def test_options_are_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    model: Any = "openai:gpt-5"
    with pytest.raises(OptionError, match=r"^model: expected ChatModel, got str"):
        TwoStepAdapter(model)
    with pytest.raises(OptionError, match=r"^reply: "):
        await TwoStepAdapter(ScriptedModel([])).extract(Judge, 3)  # type: ignore[arg-type]
    monkeypatch.setattr(lenient_json, "find_spec", {"json_repair": None}.get)
    with pytest.raises(MissingExtraError):
        TwoStepAdapter(ScriptedModel([]))


# -- ask ------------------------------------------------------------------------------------------------------


async def test_ask_makes_both_calls() -> None:
    first, second = ScriptedModel(["It is good: 9."]), ScriptedModel([GOOD])
    prediction = await ask(first, Judge(**INPUTS), adapter=TwoStepAdapter(second))
    assert prediction.value == VALUE
    assert prediction.message.text == "It is good: 9."
    assert [text for _, text in sent(first)] == [SYSTEM, USER]
    assert sent(second) == EXTRACTION


async def test_a_retry_asks_the_first_model_again() -> None:
    first, second = ScriptedModel(["Hm.", "It is good: 9."]), ScriptedModel([WRONG, GOOD])
    prediction = await ask(first, Judge(**INPUTS), adapter=TwoStepAdapter(second), retries=1)
    assert prediction.value == VALUE
    role, text = sent(first, 1)[-1]
    assert role == "user"
    assert "score: the outputs could not be extracted from the reply (Input should be less than" in text
    with pytest.raises(NoAnswerError):
        await ask(ScriptedModel(["Hm."]), Judge(**INPUTS), adapter=TwoStepAdapter(ScriptedModel([WRONG])))


# -- DSPy -----------------------------------------------------------------------------------------------------

_SCRIPT: Final = '''
import enum, json, dspy, pydantic
from dspy.utils import DummyLM
class Color(enum.Enum):
    RED = "red"
class Point(pydantic.BaseModel):
    x: int
    label: str = "p"
class Judge(dspy.Signature):
    """Judge it.

    Be strict.
    """
    passages: list[str] = dspy.InputField()
    point: Point = dspy.InputField(desc="a point")
    note: str | None = dspy.InputField()
    color: Color = dspy.InputField()
    verdict: str = dspy.OutputField()
    score: int = dspy.OutputField(ge=0, le=10)
adapter = dspy.TwoStepAdapter(DummyLM([{}]))
inputs = dict(passages=["It's", 'x\\n"'], point=Point(x=2), note=None, color=Color.RED)
demos = [
    dspy.Example(passages=["c"], point=Point(x=1), note="n", color=Color.RED, verdict="v", score=3),
    dspy.Example(passages=["b"], verdict="w"),
]
first = adapter.format(Judge, demos, inputs)
extraction = adapter._create_extractor_signature(Judge)
second = dspy.ChatAdapter().format(extraction, [], {"text": "It is good: 9."})
print(json.dumps([[m["role"], m["content"]] for m in (*first, *second)]))
'''


@pytest.mark.parity
def test_dspy_writes_the_same_texts() -> None:
    python = os.environ.get("AGENTKIT_DSPY")
    assert python, "Set AGENTKIT_DSPY to the interpreter of an environment with the extra `parity`."
    output = subprocess.run([python, "-c", _SCRIPT], check=True, capture_output=True, text=True).stdout
    msgs = TwoStepAdapter(ScriptedModel([])).format(Judge, INPUTS, examples=[COMPLETE, INCOMPLETE])
    assert [tuple(turn) for turn in json.loads(output)] == [*turns(msgs), *EXTRACTION]


def test_an_input_that_cannot_be_written_is_an_option_error() -> None:
    cyclic: list[Any] = []
    cyclic.append(cyclic)
    adapter = TwoStepAdapter(ScriptedModel([]))
    with pytest.raises(OptionError, match="nested too deeply"):
        adapter.format(Signature("items: list -> answer"), {"items": cyclic})
    with pytest.raises(OptionError, match="cannot be written as a text"):
        adapter.format(Signature("items: list -> answer"), {"items": [10**5_000]})
