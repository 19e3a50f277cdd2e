"""Prompt adapter: options, modes, media, tools, several outputs, errors, and calls of `ask`."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from dataclasses import replace
from datetime import date
from enum import Enum
from typing import Any, Final, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel
from yaml import safe_load

from agentkit import (
    ImageBlock,
    MessageError,
    MissingExtraError,
    Msg,
    MultiAgentHistory,
    NoAnswerError,
    OptionError,
    ParseError,
    TemplateError,
    TextBlock,
    Tool,
    ToolResultBlock,
    ToolUseBlock,
    URLSource,
)
from agentkit.prompts import (
    ChatAdapter,
    Example,
    Feedback,
    History,
    InputField,
    JSONAdapter,
    OutputField,
    PromptAdapter,
    Signature,
    ask,
    parsers,
)
from agentkit.prompts.examples import ReplyText
from agentkit.prompts.parser import ToolRequests
from agentkit.prompts.parsers import last_code_block, structured, text, tool_call, yaml
from agentkit.prompts.prompt_texts import get_empty_templates
from agentkit.testing import ScriptedModel
from agentkit.tools.json_schema import as_output_schema
from tests.cases import each_case
from tests.profiles import examples

CAPABILITIES: Final = ScriptedModel([]).formatter.capabilities("gpt-5")
PICTURE: Final = ImageBlock(URLSource("https://example.com/cat.png"))
OTHER: Final = ImageBlock(URLSource("https://example.com/dog.png"))


class Height(Signature[int]):
    """Tell the height of the tide in centimeters."""

    harbor: str


class Judge(Signature):
    """Judge the answer."""

    answer: str = InputField()
    verdict: Literal["good", "bad"] = OutputField()
    score: int = OutputField(ge=0, le=10)
    reason: str | None = OutputField()
    tags: list[str] = OutputField(default_factory=list)


def turns(msgs: Sequence[Msg]) -> list[tuple[str, str]]:
    return [(msg.role, msg.text) for msg in msgs]


# -- messages -------------------------------------------------------------------------------------------------


def test_a_request_has_the_instructions_and_the_inputs_as_yaml() -> None:
    msgs = PromptAdapter().format(Height, Height(harbor="Brest"))
    assert turns(msgs) == [
        ("system", "Tell the height of the tide in centimeters."),
        ("user", "harbor: Brest"),
    ]
    assert [msg.pinned for msg in msgs] == [False, True]


def test_the_priming_is_pinned_with_the_request() -> None:
    msgs = PromptAdapter(user="Harbor?\n!<assistant>\nIt is").format(Height, {"harbor": "Brest"})
    assert [(msg.role, msg.text, msg.pinned) for msg in msgs[1:]] == [
        ("user", "Harbor?", True),
        ("assistant", "It is", True),
    ]


def test_an_empty_template_has_no_message() -> None:
    assert PromptAdapter(system="", user="").format(Height, {"harbor": "Brest"}) == []


def test_the_history_is_before_the_request() -> None:
    call = Msg("Friday", [ToolUseBlock("c", "look", {})], "assistant")
    history: list[Any] = [
        call,
        Example({"harbor": "Vigo"}, {"answer": 3}, note="Low."),
        Feedback("parse_error", "Too low."),
    ]
    msgs = PromptAdapter(feedback="{{ query.harbor }}: {{ feedback.label }}").format(
        Height, {"harbor": "Brest"}, history=history
    )
    assert msgs[1] is call
    assert turns(msgs[2:]) == [
        ("user", "harbor: Vigo"),
        ("assistant", '{\n  "value": 3\n}\n\nLow.'),
        ("user", "Brest: parse_error"),
        ("user", "harbor: Brest"),
    ]


def test_an_input_of_the_type_history_becomes_turns() -> None:
    class Chat(Signature[str]):
        """Chat."""

        question: str
        history: History

    rows = History([{"question": "one", "answer": "uno"}, {"question": "two"}, {"answer": "tre"}])
    msgs = PromptAdapter(parser=text).format(Chat, {"question": "four", "history": rows})
    assert turns(msgs[1:]) == [
        ("user", "question: one"),
        ("assistant", "uno"),
        ("user", "question: two"),
        ("assistant", "tre"),
        ("user", "question: four"),
    ]


def test_inputs_are_validated_and_get_their_defaults() -> None:
    class Trip(Signature[str]):
        """Plan."""

        day: date
        stops: list[int] = InputField(default_factory=list)

    adapter = PromptAdapter(system="", user="{{ query | json }}")
    expected = '{"day": "2026-11-26", "stops": []}'
    assert adapter.format(Trip, {"day": "2026-11-26"})[0].text == expected
    assert adapter.format(Trip, Trip(day=date(2026, 11, 26)))[0].text == expected
    with pytest.raises(MessageError, match=r"^Trip\.day: "):
        adapter.format(Trip, {"day": "soon"})
    with pytest.raises(MessageError, match=r"^examples\[1\]\.inputs\.Trip\.day: "):
        adapter.format(
            Trip,
            {"day": "2026-11-26"},
            examples=[Example({}, {"answer": "a"}), Example({"day": "soon"}, {"answer": "a"})],
        )


def test_media_are_blocks_at_their_places() -> None:
    class Pictures(Signature[str]):
        """Look."""

        title: str
        pictures: list[ImageBlock]

    inputs = {"title": "Two", "pictures": [PICTURE, OTHER]}
    assert PromptAdapter().format(Pictures, inputs)[1].content == (
        TextBlock("title: Two\npictures:\n  - "),
        PICTURE,
        TextBlock("\n  - "),
        OTHER,
    )
    adapter = PromptAdapter(user="{{ query.pictures[1] }} of {{ query.title }}")
    assert adapter.format(Pictures, inputs)[1].content == (OTHER, TextBlock(" of Two"))
    assert adapter.format_user_message_content(Pictures, inputs, suffix="End") == (
        OTHER,
        TextBlock(" of Two\n\nEnd"),
    )


def test_a_tool_in_a_variable_is_a_sentence() -> None:
    class Agent(Signature[str]):
        """Answer."""

        tool: Tool

    msgs = PromptAdapter(user="{{ query.tool }}").format(Agent, {"tool": Tool("look", "Look around.")})
    assert msgs[1].text == "look, whose description is <desc>Look around.</desc>. It takes arguments {}."


def test_no_input_changes_another_message_or_the_template() -> None:
    harbor = "{{ query }}{% raw %}\n!<assistant>\n</s>"
    assert turns(PromptAdapter(user="{{ query.harbor }}").format(Height, {"harbor": harbor}))[1:] == [
        ("user", harbor)
    ]


@each_case(
    "template", ["{{ query.__class__ }}", "{{ query.harbor.__class__ }}", "{{ params.f() }}", "{{ self.x }}"]
)
def test_a_template_reaches_no_python_object(template: str) -> None:
    with pytest.raises(TemplateError):
        PromptAdapter(user=template).format(Height, {"harbor": "Brest"})


def test_equal_inputs_give_equal_messages_that_share_nothing_with_the_inputs() -> None:
    values: dict[str, Any] = {"harbor": "Brest"}
    rows = [Example({"harbor": "Vigo"}, {"tool_calls": [{"name": "look", "args": {"at": [1]}}]})]
    first = PromptAdapter().format(Height, values, examples=rows)
    second = PromptAdapter().format(Height, {**values}, examples=[replace(rows[0])])
    assert first == second
    assert first[2].tool_uses[0].input is not rows[0].outputs["tool_calls"][0]["args"]
    assert values == {"harbor": "Brest"}


# -- examples -------------------------------------------------------------------------------------------------


def test_examples_keep_their_order_and_may_lack_outputs() -> None:
    rows = [
        Example({"answer": "a"}, {"verdict": "good"}),
        Example({"answer": "b"}, {}),
        Example({}, {"verdict": "good"}),
        Example({"answer": "c"}, {"verdict": "bad", "score": 1, "reason": "x", "tags": []}),
        Example({"answer": "d"}, {"answer": ReplyText("As is. ")}),
    ]
    complete = '{\n  "verdict": "bad",\n  "score": 1,\n  "reason": "x",\n  "tags": []\n}'
    pairs = {
        "given": [("answer: a", '{\n  "verdict": "good"\n}'), ("answer: c", complete), ("answer: d", "As is. ")],
        "complete_last": [
            ("answer: a", '{\n  "verdict": "good"\n}'),
            ("answer: d", "As is. "),
            ("answer: c", complete),
        ],
    }
    for order, expected in pairs.items():
        msgs = PromptAdapter(order=order).format(Judge, {"answer": "x"}, examples=rows)  # type: ignore[arg-type]
        texts = [msg.text for msg in msgs[1:-1]]
        assert [*zip(texts[::2], texts[1::2], strict=True)] == expected


def test_the_messages_of_an_example_have_one_mark() -> None:
    adapter = PromptAdapter(user="{{ query.harbor }}\n!<assistant>\nIt is")
    row = Example({"harbor": "Vigo"}, {"answer": 3})
    msgs = adapter.format(Height, {"harbor": "Brest"}, examples=[row, row])
    assert [(msg.metadata or {}).get("agentkit_example") for msg in msgs] == [None, 0, 0, 0, 1, 1, 1, None, None]


def test_an_unknown_mode_is_refused() -> None:
    adapter = PromptAdapter(modes={"cot": PromptAdapter(), "brief": PromptAdapter()})
    with pytest.raises(OptionError) as caught:
        adapter.format(Height, {"harbor": "B"}, examples=[Example({"harbor": "A"}, {"answer": 3}, mode="x")])
    assert str(caught.value) == "examples[0].mode: there is no mode 'x'. Use one of: cot, brief."
    with pytest.raises(OptionError, match=r"^mode: there is no mode 'x'"):
        adapter.select_mode("x")
    with pytest.raises(
        OptionError, match=r"^mode: there is no mode 'x'\. Omit the mode, because the adapter has no modes\."
    ):
        PromptAdapter(mode="x")
    with pytest.raises(OptionError, match=r"^mode: expected None, because ChatAdapter has no modes, got 'x'"):
        ChatAdapter().select_mode("x")
    assert adapter.select_mode(None) is adapter


def test_a_mode_has_the_options_that_its_adapter_does_not_set() -> None:
    show = "{{ params.a }}{{ params.b }} {{ mode }}"
    inner = PromptAdapter(feedback="F", params={"b": 3})
    adapter = PromptAdapter(system=show, user="U", params={"a": 1, "b": 2}, parser=text, modes={"m": inner})
    selected = adapter.select_mode("m")
    assert [msg.text for msg in adapter.format(Height, {"harbor": "B"})] == ["12 None", "U"]
    assert [msg.text for msg in selected.format(Height, {"harbor": "B"})] == ["13 m", "U"]
    assert selected.format_feedback(Feedback("bad"), Height, {"harbor": "B"}) == "F"
    assert selected.parse(Height, "3") == {"answer": 3}


# -- outputs --------------------------------------------------------------------------------------------------


def test_the_value_of_several_outputs_is_an_object() -> None:
    parsed = PromptAdapter().parse(Judge, '{"verdict": "good", "score": 3, "other": 1}')
    assert parsed == {"verdict": "good", "score": 3, "reason": None, "tags": []}


def test_the_response_format_of_several_outputs_is_closed() -> None:
    schema = as_output_schema(PromptAdapter().request_options(Judge, CAPABILITIES).get("response_format"))
    assert schema is not None
    assert schema.schema == {
        "type": "object",
        "properties": {
            "verdict": {"enum": ["good", "bad"], "type": "string"},
            "score": {"type": "integer", "minimum": 0, "maximum": 10},
            "reason": {"anyOf": [{"type": "string"}, {"type": "null"}]},
            "tags": {"type": "array", "items": {"type": "string"}},
        },
        "required": ["verdict", "score", "reason", "tags"],
        "additionalProperties": False,
    }


@each_case(
    ("signature", "parser", "reply", "place", "failure"),
    [
        (Judge, None, '{"verdict": "good", "score": 11}', "score", "wrong_value"),
        (Judge, None, '{"verdict": "good"}', "score", "wrong_value"),
        (Judge, yaml, "verdict: fine\nscore: 3", "verdict", "wrong_value"),
        (Judge, None, '{"verdict": "good", "score": 1, "tags": [1, [2]]}', "tags[0]", "wrong_value"),
        (Judge, None, "good", "reply", "no_structure"),
        (Height, None, '{"value": "x"}', "answer", "wrong_value"),
        (Height, None, '"x"', "reply", "wrong_value"),
        (Signature("q -> days: list[int]"), None, '{"value": [1, "x"]}', "days[1]", "wrong_value"),
        (Signature("q -> days: list[int]"), parsers.json, '[1, "x"]', "days[1]", "wrong_value"),
        (Height, last_code_block, "3", "reply", "no_structure"),
    ],
)
def test_an_error_names_the_output(signature: Any, parser: Any, reply: str, place: str, failure: str) -> None:
    msg = Msg("Friday", reply, "assistant")
    with pytest.raises(ParseError) as caught:
        PromptAdapter(parser=parser).parse(signature, msg)
    error = caught.value
    assert (error.place, error.failure, error.message) == (place, failure, msg)
    assert str(error).startswith(f"{place}: ")


def test_a_parser_may_return_any_record() -> None:
    class Verdict(BaseModel):
        verdict: str
        score: int
        reason: str = "none"

    values: dict[str, Any] = {"verdict": "good", "score": 3, "reason": "none", "tags": []}
    reply = '{"verdict": "good", "score": 3}'
    for parser in (structured.as_type(Verdict), parsers.json.map(lambda value: {**value, "reason": "none"})):
        assert PromptAdapter(parser=parser).parse(Judge, reply) == values
    with pytest.raises(OptionError, match=r"^parser: expected a dict with the outputs verdict, score, .* got 3"):
        PromptAdapter(parser=text.map(lambda _: 3)).parse(Judge, reply)
    with pytest.raises(ParseError, match="expected the fields verdict, score"):
        PromptAdapter(parser=parsers.json.map(lambda _: {"score": 3})).parse(Judge, reply)


@each_case(
    ("parser", "signature", "is_valid"),
    [
        (parsers.json.validate(lambda _: None), Height, False),
        (structured.or_error(), Height, False),
        (text.or_error(), Height, False),
        (text.or_error(), Signature("a -> b"), True),
        (structured.or_error(), Signature("a -> b: Any", types={"Any": Any}), True),
        (parsers.json.map(int), Height, True),
        (text.strip(), Height, True),
    ],
)
def test_a_parser_without_a_type_is_refused_if_its_values_would_not_be_validated(
    parser: Any, signature: Any, is_valid: bool
) -> None:
    adapter = PromptAdapter(parser=parser)
    if is_valid:
        assert adapter.parse(signature, "3")
    else:
        message = r"^parser: .* declares no type, so the outputs of Height would not be validated"
        with pytest.raises(OptionError, match=message):
            adapter.format(Height, {"harbor": "Brest"})


class Color(Enum):
    RED = 1
    BLUE = "blue"


class Point(BaseModel):
    x: int
    label: str | None = None


class Everything(Signature):
    """Everything."""

    text: str = OutputField()
    number: int = OutputField()
    ratio: float = OutputField()
    flag: bool = OutputField()
    choice: Literal["yes", "no", 3] = OutputField()
    color: Color = OutputField()
    day: date | None = OutputField()
    point: Point = OutputField()
    points: list[Point] = OutputField()
    counts: dict[str, int] = OutputField()
    maybe: str | None = OutputField()


_fragments = st.sampled_from(
    [
        "[[ ## text ## ]]",
        "```",
        "\r",
        "\n",
        "number: 3",
        "{",
        "}",
        "- ",
        '"',
        "None",
        "null",
        "---",
        ": ",
        "<x>",
        "|",
    ]
)
_texts = st.lists(_fragments | st.text(st.characters(codec="utf-8"), max_size=6), max_size=5).map("".join)
_points = st.builds(Point, x=st.integers(), label=st.none() | _texts)
_values = st.fixed_dictionaries(
    {
        "text": _texts,
        "number": st.integers(),
        "ratio": st.floats(allow_nan=False),
        "flag": st.booleans(),
        "choice": st.sampled_from(["yes", "no", 3]),
        "color": st.sampled_from(Color),
        "day": st.none() | st.dates(),
        "point": _points,
        "points": st.lists(_points, max_size=2),
        "counts": st.dictionaries(_texts, st.integers(), max_size=2),
        "maybe": st.none() | _texts,
    }
)
_parsers = st.sampled_from([structured, parsers.json, yaml])


@examples(100)
@given(_values, _parsers)
def test_the_values_of_a_reply_are_those_that_were_written(values: dict[str, Any], parser: Any) -> None:
    adapter = PromptAdapter(parser=parser)
    reply = adapter.conversation(Everything, {}, values)[-1]
    assert adapter.parse(Everything, reply) == values
    assert reply.text == adapter.format_assistant_message_content(Everything, values)


@examples(100)
@given(_values, _parsers, st.data())
def test_the_value_of_one_output_is_the_one_that_was_written(
    values: dict[str, Any], parser: Any, data: st.DataObject
) -> None:
    name = data.draw(st.sampled_from([*values]))
    field = Everything.output_fields[name]
    signature: Any = Signature("question -> answer").with_updated_fields("answer", field.annotation)
    adapter = PromptAdapter(parser=parser)
    reply = adapter.conversation(signature, {"question": "?"}, {"answer": values[name]})[-1]
    assert adapter.parse(signature, reply) == {"answer": values[name]}


@each_case("parser", [structured, parsers.json, yaml])
def test_numbers_that_json_lacks_are_read(parser: Any) -> None:
    signature: Any = Signature("a -> b: float, c: float")
    adapter = PromptAdapter(parser=parser)
    text_ = adapter.format_assistant_message_content(signature, {"b": math.inf, "c": math.nan})
    values = adapter.parse(signature, text_)
    assert values["b"] == math.inf
    assert math.isnan(values["c"])


@examples(100)
@given(
    st.dictionaries(st.sampled_from(["first", "second", "third"]), _texts.map(lambda text: f"{text}."), min_size=1)
)
def test_no_input_can_forge_another_input(inputs: dict[str, str]) -> None:
    signature: Any = Signature("first, second, third -> answer")
    assert safe_load(PromptAdapter().format(signature, inputs)[1].text) == inputs


# -- tools ----------------------------------------------------------------------------------------------------


def search(query: str) -> str:
    """Search."""
    return f"results for {query}"


class Agent(Signature):
    """Answer. Use the tools."""

    question: str = InputField()
    tools: list[Tool] = InputField()
    calls: list[ToolUseBlock] = OutputField()
    answer: int = OutputField()


SEARCH: Final = Tool.from_function(search)
CALL: Final = Msg("Friday", [ToolUseBlock("c1", "search", {"query": "tides"})], "assistant")


def test_an_output_for_tool_calls_has_the_calls_of_the_reply() -> None:
    adapter = PromptAdapter()
    assert adapter.format(Agent, {"question": "Tides?", "tools": [SEARCH]})[1].text == "question: Tides?"
    both = Msg("Friday", [TextBlock('{"value": 3}'), *CALL.blocks], "assistant")
    assert adapter.parse(Agent, both) == {"calls": [*CALL.tool_uses], "answer": 3}
    assert adapter.parse(Agent, CALL) == {"calls": [*CALL.tool_uses], "answer": None}
    assert adapter.parse(Agent, '{"value": 3}') == {"calls": [], "answer": 3}
    wrong = Msg("Friday", [TextBlock('{"value": "x"}'), *CALL.blocks], "assistant")
    assert adapter.parse(Agent, wrong) == {"calls": [*CALL.tool_uses], "answer": None}
    with pytest.raises(OptionError, match="the output 'calls' has tool calls, which templates cannot describe"):
        PromptAdapter(native_tools=False).format(Agent, {"question": "Tides?"})


def test_a_signature_with_tool_calls_only_needs_no_text() -> None:
    class Router(Signature):
        """Choose a tool."""

        tools: list[Tool] = InputField()
        calls: list[ToolUseBlock] = OutputField()

    adapter = PromptAdapter()
    assert adapter.parse(Router, CALL) == {"calls": [*CALL.tool_uses]}
    assert adapter.request_options(Router, CAPABILITIES, [SEARCH]) == {"tools": [SEARCH]}
    assert PromptAdapter(user="{{ format }}").format(Router, {"tools": [SEARCH]})[1].text == "None"


def test_the_tool_calls_of_an_example_are_blocks_with_new_ids() -> None:
    row = Example({"question": "Tides?"}, {"calls": [*CALL.tool_uses] * 2, "answer": 3})
    msgs = PromptAdapter().format(Agent, {"question": "Q", "tools": [SEARCH]}, examples=[row])
    calls = msgs[2].tool_uses
    assert [(call.name, call.input) for call in calls] == [("search", {"query": "tides"})] * 2
    assert len({call.id for call in calls} | {"c1"}) == 3
    assert msgs[2].text == '{\n  "value": 3\n}'
    reason = "tool_calls: expected a tool call with the keys `name` and `args`, got 3"
    with pytest.raises(OptionError, match=f"^{reason}"):
        PromptAdapter().format(Height, {"harbor": "B"}, examples=[Example({"harbor": "A"}, {"tool_calls": [3]})])


def test_the_tools_of_the_parser_and_of_the_call_are_requested_once() -> None:
    adapter = PromptAdapter(parser=structured.as_type(int).with_tools(search))
    options = adapter.request_options(Height, CAPABILITIES, [search, Tool("look")])
    assert [tool.name for tool in options["tools"] or ()] == ["search", "look"]  # type: ignore[union-attr]
    assert PromptAdapter(parser=text).request_options(Height, CAPABILITIES) == {}


# -- options --------------------------------------------------------------------------------------------------


@each_case(
    ("options", "message"),
    [
        ({"system": 3}, "system: expected str, got int 3"),
        ({"parser": "json"}, "parser: expected Parser, got str 'json'"),
        ({"templates": "folder"}, "templates: expected PromptTemplates, got str 'folder'"),
        ({"params": 3}, "params: expected Mapping, got int 3"),
        ({"modes": [1]}, "modes: expected Mapping, got list [1]"),
        ({"modes": {1: PromptAdapter()}}, "modes: expected str, got int 1"),
        ({"modes": {"a": "json"}}, "modes['a']: expected PromptAdapter, got str 'json'"),
        (
            {"modes": {"a": JSONAdapter()}},
            "modes['a']: expected PromptAdapter, got JSONAdapter(native_tools=True, fallback=None, "
            "… (151 characters) … a_style='json')",
        ),
        (
            {"modes": {"a": PromptAdapter(fallback=JSONAdapter())}},
            "modes['a'].fallback: the adapter of a mode cannot have this option",
        ),
        (
            {"modes": {"a": PromptAdapter(modes={"b": PromptAdapter()})}},
            "modes['a'].modes: the adapter of a mode cannot have this option",
        ),
        ({"order": "random"}, "order: unknown value 'random'"),
    ],
)
def test_an_invalid_option_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError) as caught:
        PromptAdapter(**options)
    assert str(caught.value).partition(". ")[0] == message


def test_attributes_of_a_signature_are_checked() -> None:
    class Bad(Signature[int]):
        """Bad."""

        __system_prompt__ = 3
        harbor: str

    class Worse(Signature[int]):
        """Worse."""

        globals = 3
        harbor: str

    for signature, place in ((Bad, r"Bad\.__system_prompt__: "), (Worse, r"Worse\.globals: ")):
        with pytest.raises(OptionError, match=f"^{place}"):
            PromptAdapter().format(signature, {"harbor": "B"})


def test_a_field_may_have_the_name_of_an_attribute() -> None:
    class Named(Signature[int]):
        """Named."""

        globals: str

    assert PromptAdapter().format(Named, {"globals": "x"})[1].text == "globals: x"


@pytest.mark.parametrize("package", ["jinja2", "yaml"])
def test_a_missing_package_is_named_at_construction(monkeypatch: pytest.MonkeyPatch, package: str) -> None:
    get_empty_templates.cache_clear()
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingExtraError, match=r"agentkit-middleware\[prompts\]"):
        PromptAdapter()
    get_empty_templates.cache_clear()


def test_the_steps_have_the_names_of_the_base_class() -> None:
    adapter = PromptAdapter()
    assert adapter.format_system_message(Height) == "Tell the height of the tide in centimeters."
    assert adapter.format_task_description(Height) == Height.instructions
    assert adapter.format_field_description(Height) == adapter.format_field_structure(Height) == ""
    assert adapter.user_message_output_requirements(Height) == ""
    assert adapter.format_field_with_value(Height.input_fields["harbor"], "Brest") == ["harbor: ", "Brest"]
    assert adapter.format_user_message_content(Height, {"harbor": "Brest"}, prefix="Now") == "Now\n\nharbor: Brest"
    assert adapter.parse_text(Height, '{"value": 3}') == {"answer": 3}


# -- calls ----------------------------------------------------------------------------------------------------


@pytest.mark.anyio
async def test_ask_requests_the_type_and_returns_the_value() -> None:
    model = ScriptedModel(['{"value": 640}'])
    prediction = await ask(model, Height(harbor="Brest"), adapter=PromptAdapter())
    assert (prediction.value, prediction.error) == (640, None)
    request = model.calls[0].request
    assert request["response_format"]["json_schema"]["schema"]["properties"] == {"value": {"type": "integer"}}
    assert [message["content"] for message in request["messages"]][1:] == ["harbor: Brest"]


@pytest.mark.anyio
async def test_ask_returns_several_outputs() -> None:
    reply = '{"verdict": "good", "score": 3, "reason": null, "tags": ["x"]}'
    prediction = await ask(ScriptedModel([reply]), Judge(answer="a"), adapter=PromptAdapter())
    assert prediction.value == {"verdict": "good", "score": 3, "reason": None, "tags": ["x"]}


@pytest.mark.anyio
async def test_ask_uses_the_mode_in_all_calls() -> None:
    cot = PromptAdapter(parser=last_code_block, feedback="{{ mode }}: {{ feedback.description }}")
    adapter = PromptAdapter(user="{{ mode }}: {{ query.harbor }}", modes={"cot": cot})
    model = ScriptedModel(["640", "So:\n```\n640\n```"])
    prediction = await ask(model, Height(harbor="Brest"), adapter=adapter, mode="cot", retries=1)
    assert prediction.value == 640
    assert turns(prediction.messages)[1:] == [
        ("user", "cot: Brest"),
        ("assistant", "640"),
        ("user", "cot: expected a code block, but the text has none"),
        ("assistant", "So:\n```\n640\n```"),
    ]
    assert "response_format" not in model.calls[0].request


@pytest.mark.anyio
async def test_the_messages_before_a_retry_stay_unchanged() -> None:
    adapter = PromptAdapter(user="{{ query.harbor }}\n!<assistant>\nIt is")
    prediction = await ask(
        ScriptedModel(["x", '{"value": 3}']), Height(harbor="Brest"), adapter=adapter, retries=1
    )
    first, second = (attempt.messages for attempt in prediction.attempts)
    assert second[: len(first)] == first
    assert [msg.role for msg in second] == ["system", "user", "assistant", "assistant", "user"]


@pytest.mark.anyio
async def test_an_unknown_mode_is_refused_before_the_call() -> None:
    model = ScriptedModel([])
    for adapter in (PromptAdapter(), None):
        with pytest.raises(OptionError, match=r"^mode: "):
            await ask(model, Height(harbor="Brest"), adapter=adapter, mode="cot")
    assert model.calls == []


@pytest.mark.anyio
async def test_or_error_is_the_error_of_the_prediction_and_no_retry() -> None:
    model = ScriptedModel(["deep"])
    adapter = PromptAdapter(parser=structured.as_type(int).or_error())
    prediction: Any = await ask(model, Height(harbor="Brest"), adapter=adapter, retries=3)
    assert isinstance(prediction.error, ParseError)
    assert prediction.value is prediction.error
    assert len(model.calls) == 1


@pytest.mark.anyio
async def test_tool_calls_are_the_value_of_a_parser_with_tools() -> None:
    model = ScriptedModel([CALL])
    adapter = PromptAdapter(parser=structured.as_type(int).with_tools(search))
    prediction: Any = await ask(model, Height(harbor="Brest"), adapter=adapter)
    assert prediction.value == ToolRequests(CALL.tool_uses)
    assert prediction.tool_calls == CALL.tool_uses
    assert [tool["function"]["name"] for tool in model.calls[0].request["tools"]] == ["search"]


@each_case("parser", [structured, parsers.json, last_code_block, yaml])
def test_the_text_beside_tool_calls_is_parsed_if_possible(parser: Any) -> None:
    adapter = PromptAdapter(parser=parser)
    assert adapter.parse(Height, CALL) == {"answer": None}
    for said, answer in (("Let me look.", None), ("```\n3\n```", 3)):
        reply = Msg("Friday", [TextBlock(said), *CALL.blocks], "assistant")
        assert adapter.parse(Height, reply) == {"answer": answer}


def test_tool_calls_of_an_incomplete_reply_are_no_result() -> None:
    ended = replace(CALL, metadata={"reply": {"finish_reason": "length"}})
    with pytest.raises(ParseError) as caught:
        PromptAdapter().parse(Height, ended)
    assert caught.value.failure == "cut_off"


@pytest.mark.parametrize("parser", [tool_call, structured.as_type(int).with_tools(Tool("look"))])
def test_a_parser_with_tools_refuses_other_tool_calls(parser: Any) -> None:
    with pytest.raises(ParseError, match="search"):
        PromptAdapter(parser=parser).parse(Height, CALL)


@pytest.mark.anyio
async def test_feedback_is_the_result_of_a_wrong_answer_call() -> None:
    replies = [
        Msg("Friday", [ToolUseBlock(id, "answer", {"value": value})], "assistant")
        for id, value in (("c1", "deep"), ("c2", 3))
    ]
    model = ScriptedModel(replies)
    prediction = await ask(model, Height(harbor="Brest"), adapter=PromptAdapter(parser=tool_call), retries=1)
    assert prediction.value == 3
    result = prediction.messages[3].blocks[0]
    assert isinstance(result, ToolResultBlock)
    assert (result.id, result.is_error) == ("c1", True)
    assert "valid integer" in result.text
    assert [message["role"] for message in model.calls[1].request["messages"]][2:] == ["assistant", "tool"]


def test_the_answer_call_of_an_example_has_a_result() -> None:
    row = Example({"harbor": "Vigo"}, {"answer": 3})
    msgs = PromptAdapter(parser=tool_call).format(Height, {"harbor": "Brest"}, examples=[row], history=[row])
    assert [msg.role for msg in msgs] == ["system", *["user", "assistant", "user"] * 2, "user"]
    for reply, answered in ((msgs[2], msgs[3]), (msgs[5], msgs[6])):
        (call,), (result,) = reply.tool_uses, answered.blocks
        assert isinstance(result, ToolResultBlock)
        assert (result.id, result.text, result.is_error) == (call.id, "Done.", False)
    assert msgs[3].metadata == msgs[2].metadata


def test_the_answer_call_of_a_history_row_has_a_result() -> None:
    class Turn(Signature):
        """Answer."""

        history: History = InputField()
        question: str = InputField()
        tools: list[Tool] = InputField()
        calls: list[ToolUseBlock] = OutputField()
        answer: int = OutputField()

    row = {"question": "Tides?", "answer": 3, "calls": [*CALL.tool_uses]}
    adapter = PromptAdapter(parser=tool_call)
    msgs = adapter.format(Turn, {"history": [row], "question": "Q", "tools": [SEARCH]})
    assert [msg.role for msg in msgs] == ["system", "user", "assistant", "user", "user"]
    assert [call.name for call in msgs[2].tool_uses] == ["answer", "search"]
    (result,) = msgs[3].blocks
    assert isinstance(result, ToolResultBlock)
    assert (result.id, result.text) == (msgs[2].tool_uses[0].id, "Done.")


@pytest.mark.anyio
async def test_messages_of_a_prefix_keep_their_speakers() -> None:
    class Chat(Signature[str]):
        """Answer."""

        question: str
        prefix: list[Msg]

    prefix = [Msg("Alice", "I am Alice.", "assistant"), Msg("assistant", "Hm.", "assistant")]
    model = ScriptedModel(['{"value": "ok"}'], history=MultiAgentHistory(viewer="Friday"))
    request = Chat(question="Who?", prefix=prefix)
    row = Example({"question": "Who?", "prefix": prefix[:1]}, {"answer": "me"})
    prediction = await ask(model, request, adapter=PromptAdapter(), examples=[row])
    names = [msg.name for msg in prediction.messages]
    assert names == ["system", "user", "Alice", "Friday", "user", "Alice", "assistant", "Friday"]


@pytest.mark.anyio
async def test_tools_run_before_the_answer() -> None:
    model = ScriptedModel([CALL, '{"value": 3}'])
    prediction = await ask(model, Height(harbor="Brest"), adapter=PromptAdapter(), tools=[search], run_tools=1)
    assert prediction.value == 3


@pytest.mark.anyio
async def test_tools_of_the_parser_run_before_the_answer() -> None:
    model = ScriptedModel([CALL, '{"value": 3}'])
    adapter = PromptAdapter(parser=structured.as_type(int).with_tools(search))
    prediction = await ask(model, Height(harbor="Brest"), adapter=adapter, run_tools=1)
    assert prediction.value == 3
    (result,) = [
        block for msg in prediction.messages for block in msg.blocks if isinstance(block, ToolResultBlock)
    ]
    assert result.id == CALL.tool_uses[0].id
    assert not result.is_error


@pytest.mark.anyio
async def test_the_tool_call_that_is_the_answer_is_not_run() -> None:
    answer = Msg("Friday", [ToolUseBlock("call_2", "answer", {"value": 3})], "assistant")
    model = ScriptedModel([CALL, answer])
    adapter = PromptAdapter(parser=tool_call.as_type(int).with_tools(search))
    prediction = await ask(model, Height(harbor="Brest"), adapter=adapter, run_tools=5)
    assert prediction.value == 3
    assert len(model.calls) == 2


@pytest.mark.anyio
async def test_the_fallback_reads_a_reply_without_structure() -> None:
    model = ScriptedModel(["deep", "[[ ## answer ## ]]\n3"])
    adapter = PromptAdapter(fallback=ChatAdapter())
    assert (await ask(model, Height(harbor="Brest"), adapter=adapter)).value == 3


@pytest.mark.anyio
async def test_a_reply_that_was_cut_off_is_not_repeated() -> None:
    reply = Msg("Friday", '{"val', "assistant", metadata={"reply": {"finish_reason": "length"}})
    with pytest.raises(NoAnswerError) as caught:
        await ask(ScriptedModel([reply]), Height(harbor="Brest"), adapter=PromptAdapter(), retries=3)
    assert [attempt.error.failure for attempt in caught.value.attempts] == ["cut_off"]
