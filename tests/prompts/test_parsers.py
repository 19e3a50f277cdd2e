"""Tests of parsers: the values of replies, request options, errors, and combinations."""

from __future__ import annotations

import json as json_module
import sys
from dataclasses import FrozenInstanceError, dataclass
from importlib import import_module
from typing import Annotated, Any, Literal, Optional

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, BeforeValidator, Field

from agentkit import MessageError, MissingExtraError, Msg, OptionError, ParseError, Tool, ToolChoice
from agentkit.messages.blocks import TextBlock, ToolUseBlock
from agentkit.prompts import lenient_json, safe_yaml
from agentkit.prompts.parser import Parser, ReplyFormat, ToolRequests
from agentkit.prompts.parsers import (
    first_word,
    json,
    last_code_block,
    structured,
    text,
    tool_call,
    yaml,
)
from tests.cases import each_case
from tests.profiles import examples


class Answer(BaseModel):
    """The answer."""

    value: int = Field(ge=0)
    words: list[str] = []


@dataclass
class Move:
    """One move."""

    column: int
    name: str = "a"


def search(query: str) -> str:
    """Searches the web."""
    return query


def call(name: str, id: str = "c1", **arguments: Any) -> ToolUseBlock:
    return ToolUseBlock(id, name, arguments)


def reply(*blocks: TextBlock | ToolUseBlock, reason: str = "stop") -> Msg:
    return Msg("model", list(blocks), "assistant", metadata={"reply": {"finish_reason": reason}})


YesNo: Any = Literal["yes", "no"]


@each_case(
    ("parser", "content", "value"),
    [
        (text, " a ", " a "),
        (text.strip(), " a ", "a"),
        (text.as_type(int), "3.0", 3),
        (text.strip().as_type(list[int]), "Sure: [1, 2]", [1, 2]),
        (json, '{"a": [1, null]}', {"a": [1, None]}),
        (json, "```json\n3\n```", 3),
        (json, "Here: {'a': 1} Good?", {"a": 1}),
        (json, "null", None),
        (json.as_type(str), '"3"', "3"),
        (json.as_type(Answer), '{"value": 1', Answer(value=1)),
        (json.as_type(YesNo), '"no"', "no"),
        (yaml, "a: [1, x]\nb: null", {"a": [1, "x"], "b": None}),
        (yaml, "```yaml\n- 1\n- 2\n```", [1, 2]),
        (yaml.as_type(Answer), "value: 1\nwords:\n  - a", Answer(value=1, words=["a"])),
        (yaml.as_type(str), "3", "3"),
        (last_code_block, "x\n```py\na\n```\ny\n```\nb\n```\nz", "b"),
        (last_code_block.as_type(Answer), 'x\n```json\n{"value": 1}\n```', Answer(value=1)),
        (first_word, " yes, I do", "yes,"),
        (first_word.as_type(YesNo), "yes I do", "yes"),
        (first_word.as_type(int), "3 apples", 3),
        (structured, '{"a": 1}', {"a": 1}),
        (structured.as_type(Answer), '```json\n{"value": 1}\n```', Answer(value=1)),
        (structured.as_type(list[int]), "[1]", [1]),
        (structured.as_type(list[int]), '{"value": [1]}', [1]),
        (structured.as_type(dict[str, int] | None), '{"value": {"value": 1}}', {"value": 1}),
        (structured.as_type(dict[str, int] | None), '{"value": 1}', {"value": 1}),
        (structured.as_type(dict[str, int]), '{"value": 1}', {"value": 1}),
        (structured.as_type(YesNo), '{"value": "yes"}', "yes"),
        (structured.as_type(dict[str, int]), '{"items": 1}', {"items": 1}),
        (text.map(len), "abc", 3),
        (text.map(len).map(str), "abc", "3"),
        (json.as_type(Answer).map(lambda answer: answer.value), '{"value": 1}', 1),
    ],
)
def test_a_reply_has_this_value(parser: Parser[Any], content: str, value: object) -> None:
    for given_reply in (content, reply(TextBlock(content)), Msg("model", content, "assistant")):
        parsed = parser.parse(given_reply)
        assert parsed == value
        assert type(parsed) is type(value)


@each_case(
    ("parser", "content", "failure", "place", "description"),
    [
        (json, "no", "no_structure", "reply", "expected JSON, but the text contains none"),
        (
            json.as_type(Answer),
            '{"value": -1}',
            "wrong_value",
            "reply.value",
            "Input should be greater than or equal to 0 (got int -1)",
        ),
        (yaml, "a: [", "no_structure", "reply", None),
        (yaml, "a: &x [1]\nb: *x", "no_structure", "reply", "invalid YAML: aliases are not supported"),
        (yaml.as_type(int), "x", "wrong_value", "reply", None),
        (last_code_block, "no", "no_structure", "reply", "expected a code block, but the text has none"),
        (first_word, " ", "no_structure", "reply", "expected a word, but the text is empty"),
        (
            first_word.as_type(YesNo),
            "yes, I do",
            "wrong_value",
            "reply",
            "expected one of 'yes', 'no' as the first word, got 'yes,'",
        ),
        (first_word.as_type(YesNo), "'yes'", "wrong_value", "reply", None),
        (structured.as_type(Answer), '{"value": "x"}', "wrong_value", "reply.value", None),
        (structured.as_type(list[int]), '{"value": ["x"]}', "wrong_value", "reply.value[0]", None),
        (
            tool_call.as_type(Move),
            "text",
            "no_structure",
            "reply",
            "expected one call of the tool Move, got no call",
        ),
        (text.map(int), "x", "wrong_value", "reply", "invalid literal for int() with base 10: 'x'"),
        (text.map(lambda value: Answer(value=-1)), "x", "wrong_value", "value", None),
    ],
)
def test_a_reply_without_the_value_is_a_parse_error(
    parser: Parser[Any], content: str, failure: str, place: str, description: str | None
) -> None:
    message = reply(TextBlock(content))
    with pytest.raises(ParseError) as caught:
        parser.parse(message)
    error = caught.value
    assert (error.failure, error.place, error.message, error.text) == (failure, place, message, content)
    assert description in (None, error.description)
    returned = parser.or_error().parse(message)
    assert isinstance(returned, ParseError)
    assert str(returned) == str(error)


@each_case(
    ("reason", "failure"),
    [
        ("length", "cut_off"),
        ("interrupted", "cut_off"),
        ("error", "cut_off"),
        ("pause", "cut_off"),
        ("refusal", "refused"),
        ("content_filter", "filtered"),
    ],
)
@each_case("parser", [text, json, yaml, last_code_block, first_word, structured])
def test_a_reply_that_ended_early_is_not_parsed(parser: Parser[Any], reason: str, failure: str) -> None:
    message = reply(TextBlock("```\n1\n```"), call("search", query="x"), reason=reason)
    for variant in (parser, parser.with_tools(search), tool_call.as_type(Move)):
        with pytest.raises(ParseError) as caught:
            variant.parse(message)
        assert (caught.value.failure, caught.value.message) == (failure, message)


@each_case("reason", ["stop", "tool_use", "other"])
def test_a_complete_reply_is_parsed(reason: str) -> None:
    assert text.parse(reply(TextBlock("a"), reason=reason)) == "a"


@each_case("parser", [text, json, yaml, last_code_block, first_word, structured])
def test_a_tool_call_is_no_text(parser: Parser[Any]) -> None:
    with pytest.raises(ParseError, match="expected text, got tool calls: search"):
        parser.parse(reply(TextBlock("1"), call("search", query="x")))


def test_a_tool_call_has_the_fields_of_the_type() -> None:
    parser = tool_call.as_type(Move)
    assert parser.parse(reply(call("Move", column=3))) == Move(3)
    assert parser.tools == (Tool("Move", "One move.", parser.tools[0].parameters),)
    assert parser.tools[0].parameters == {
        "type": "object",
        "properties": {"column": {"type": "integer"}, "name": {"type": "string", "default": "a"}},
        "required": ["column"],
    }
    assert parser.tool_choice == ToolChoice("tool", "Move")


@each_case("type_", [int, Literal["a", "b"], Move | None, Optional[Move], list[Move]])  # noqa: UP045
def test_the_name_of_a_typing_form_is_no_name_of_a_tool(type_: Any) -> None:
    assert [tool.name for tool in tool_call.as_type(type_).tools] == ["answer"]


def test_a_type_without_fields_is_the_only_argument_of_the_tool() -> None:
    parser = tool_call.as_type(list[int])
    assert parser.parse(reply(call("answer", value=[1, 2]))) == [1, 2]
    assert parser.tools[0].parameters == {
        "type": "object",
        "properties": {"value": {"type": "array", "items": {"type": "integer"}}},
        "required": ["value"],
    }


@each_case(
    "calls",
    [[], [call("Move", column=1), call("Move", "c2", column=1)], [call("search", query="x")], [call("Move")]],
)
def test_a_reply_without_exactly_one_valid_call_is_a_parse_error(calls: list[ToolUseBlock]) -> None:
    with pytest.raises(ParseError):
        tool_call.as_type(Move).parse(reply(TextBlock("{}"), *calls))


def test_broken_arguments_of_a_call_are_repaired() -> None:
    block = ToolUseBlock("c1", "Move", {}, raw_input='{"column": 3, "name": "b"')
    assert tool_call.as_type(Move).parse(reply(block)) == Move(3, "b")


def test_a_tool_call_parser_without_a_type_is_an_option_error() -> None:
    with pytest.raises(OptionError, match=r"Use tool_call\.as_type"):
        tool_call.parse("a")


def test_calls_of_known_tools_win_over_parsing() -> None:
    parser = json.as_type(int).with_tools(search)
    calls = (call("search", query="x"), call("search", "c2", query="y"))
    assert parser.parse(reply(TextBlock("not JSON"), *calls)) == ToolRequests(calls)
    assert parser.parse("3") == 3
    assert [tool.name for tool in parser.tools] == ["search"]
    assert parser.tool_choice is None


def test_an_unknown_tool_is_left_to_the_parser() -> None:
    parser = text.with_tools(search)
    with pytest.raises(ParseError, match="got tool calls: search, other"):
        parser.parse(reply(call("search", query="x"), call("other", "c2")))
    assert tool_call.as_type(Move).with_tools(search).parse(reply(call("Move", column=1))) == Move(1)


@pytest.mark.parametrize(
    "block",
    [call("search"), ToolUseBlock("c1", "search", {}, raw_input='{"query": "x')],
    ids=["missing", "broken"],
)
def test_a_bad_tool_argument_is_a_parse_error_that_an_inner_or_error_does_not_return(block: ToolUseBlock) -> None:
    with pytest.raises(ParseError) as caught:
        text.or_error().with_tools(search).parse(reply(block))
    assert caught.value.place == "tool_calls[0].input"
    assert isinstance(text.with_tools(search).or_error().parse(reply(block)), ParseError)


class Stop(BaseModel):
    name: str
    minutes: int = Field(ge=0)


def plan_trip(stops: list[Stop], *, is_return: bool = False) -> str:
    """Plans a trip."""
    return str((stops, is_return))


@each_case(
    ("arguments", "place", "reason"),
    [
        ({"stops": 3}, ".stops", "Input should be a valid list (got int 3)"),
        (
            {"stops": [{"name": "Oslo", "minutes": -1}]},
            ".stops[0].minutes",
            "Input should be greater than or equal to 0 (got int -1)",
        ),
        ({"stops": [], "is_return": "perhaps"}, ".is_return", "Input should be a valid boolean"),
        ({"stops": [], "is_retrun": True}, ".is_retrun", "Unexpected keyword argument"),
    ],
)
def test_the_type_of_each_tool_argument_is_checked(arguments: dict[str, Any], place: str, reason: str) -> None:
    block = call("plan_trip", **arguments)
    with pytest.raises(ParseError) as caught:
        text.with_tools(search, plan_trip).parse(reply(call("search", "c0", query="x"), block))
    assert caught.value.place == f"tool_calls[1].input{place}"
    assert caught.value.description.startswith(f"invalid argument of the tool plan_trip: {reason}")
    assert (caught.value.failure, caught.value.text) == ("wrong_value", block.arguments)


def test_tool_arguments_that_the_tool_converts_stay_as_the_model_wrote_them() -> None:
    block = call("plan_trip", stops=[{"name": "Oslo", "minutes": "5"}], is_return="yes")
    assert text.with_tools(plan_trip).parse(reply(block)) == ToolRequests((block,))


def test_tool_arguments_of_a_tool_without_a_function_are_not_checked_by_type() -> None:
    tool = Tool("search", parameters={"type": "object", "properties": {"query": {"type": "string"}}})
    block = call("search", query=3)
    assert text.with_tools(tool).parse(reply(block)) == ToolRequests((block,))


def refuse(value: object) -> object:
    raise TypeError("a broken validator")


def look(place: Annotated[str, BeforeValidator(refuse)]) -> str:
    """Looks at a place."""
    return place


def test_an_error_in_the_function_of_a_tool_is_left_to_the_tool_result() -> None:
    block = call("look", place="Oslo")
    assert text.with_tools(look).parse(reply(block)) == ToolRequests((block,))


def test_a_forced_tool_becomes_one_of_the_required_tools() -> None:
    parser = tool_call.as_type(Move).with_tools(search)
    assert [tool.name for tool in parser.tools] == ["Move", "search"]
    assert parser.tool_choice == ToolChoice("required")


def test_two_tools_with_one_name_are_an_error() -> None:
    with pytest.raises(MessageError, match="another tool has the name 'search'"):
        text.with_tools(search, search)


@each_case(
    ("parser", "response_format", "reply_format"),
    [
        (text, None, ReplyFormat()),
        (text.as_type(int), None, ReplyFormat(type=int)),
        (json, None, ReplyFormat(what="json")),
        (yaml.as_type(int).map(str), None, ReplyFormat(what="yaml", type=int)),
        (last_code_block, None, ReplyFormat(where="last_code_block")),
        (first_word.as_type(YesNo), None, ReplyFormat(what="one_word", type=YesNo)),
        (structured, "json_object", ReplyFormat(what="json")),
        (structured.as_type(Answer), Answer, ReplyFormat(what="json", type=Answer)),
        (structured.as_type(Answer).map(str).or_error(), Answer, ReplyFormat(what="json", type=Answer)),
        (tool_call.as_type(Move), None, ReplyFormat(where="tool_call", what="json", type=Move)),
    ],
)
def test_a_parser_says_what_the_request_needs(
    parser: Parser[Any], response_format: object, reply_format: ReplyFormat
) -> None:
    assert parser.response_format == response_format
    assert parser.format == reply_format


def test_a_format_has_the_schema_of_its_type() -> None:
    assert ReplyFormat(type=list[int]).schema == {"type": "array", "items": {"type": "integer"}}


def test_a_validation_returns_or_raises_the_error() -> None:
    def check(value: int) -> ParseError | None:
        return None if value > 0 else ParseError("must be positive", label="sign")

    def raise_error(value: int) -> None:
        raise ParseError("always wrong", label="wrong")

    parser = text.as_type(int).validate(check)
    assert parser.parse("3") == 3
    with pytest.raises(ParseError, match="must be positive") as caught:
        parser.parse("-3")
    assert (caught.value.label, caught.value.text) == ("sign", "-3")
    with pytest.raises(ParseError, match="always wrong"):
        text.as_type(int).validate(raise_error).parse("3")


def test_one_error_for_several_replies_does_not_mix_them() -> None:
    shared = ParseError("wrong")
    parser = text.validate(lambda value: shared).or_error()
    first, second = parser.parse("a"), parser.parse("b")
    assert isinstance(first, ParseError)
    assert isinstance(second, ParseError)
    assert (first.text, second.text, shared.text) == ("a", "b", "")


def test_a_validation_that_returns_another_value_is_an_option_error() -> None:
    with pytest.raises(OptionError, match="expected None or a ParseError from bool, got True"):
        text.validate(bool).parse("a")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


def test_other_exceptions_of_a_function_are_raised_unchanged() -> None:
    with pytest.raises(OptionError):
        text.map(lambda value: Parser.strip(json).parse("3")).parse("a")
    with pytest.raises(ZeroDivisionError):
        text.as_type(int).map(lambda value: 1 // value).parse("0")


def test_strip_needs_a_text() -> None:
    with pytest.raises(OptionError, match="expected a value of type str, got int"):
        json.strip().parse("3")


@each_case("value", [None, 5, b"a"])
def test_a_reply_is_a_message_or_a_text(value: Any) -> None:
    with pytest.raises(OptionError, match="expected a Msg or a string"):
        text.parse(value)


def test_a_parser_is_immutable_and_shows_its_steps() -> None:
    parser = text.strip().as_type(int).with_tools(search)
    assert repr(parser) == "<Parser text.strip().as_type(int).with_tools(search)>"
    with pytest.raises(FrozenInstanceError):
        parser.name = "x"  # type: ignore[misc]  # pyright: ignore[reportAttributeAccessIssue]


def test_a_missing_package_is_an_error_when_the_parser_is_created(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lenient_json, "find_spec", {"json_repair": None}.get)
    with pytest.raises(MissingExtraError, match="json-repair"):
        json.as_type(int)


def test_missing_yaml_is_an_error_when_the_parser_is_created(monkeypatch: pytest.MonkeyPatch) -> None:
    safe_yaml._get_yaml.cache_clear()  # pyright: ignore[reportPrivateUsage]
    monkeypatch.setitem(sys.modules, "yaml", None)
    with pytest.raises(MissingExtraError, match="pyyaml"):
        yaml.as_type(int)


def test_a_type_that_pydantic_does_not_support_is_an_error_when_the_parser_is_created() -> None:
    class Unknown:
        pass

    with pytest.raises(OptionError):
        text.as_type(list[Unknown])


@pytest.mark.slow
@pytest.mark.parametrize("unit", ["[", "{", "- ", "a: ", "&a ", "```\n", '{"a":'])
@pytest.mark.parametrize("parser", [json, yaml, last_code_block.as_type(dict[str, int])])
def test_a_large_damaged_reply_ends_with_a_parse_error(parser: Parser[Any], unit: str) -> None:
    assert isinstance(parser.as_type(dict[str, int]).or_error().parse(unit * (200_000 // len(unit))), ParseError)


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)


@given(JSON)
@examples(300)
def test_every_json_value_is_parsed(value: object) -> None:
    content = json_module.dumps(value, indent=2, ensure_ascii=False)
    for parser in (json, structured, json.as_type(object)):
        assert parser.parse(content) == value
    assert last_code_block.as_type(dict[str, Any]).parse(
        f"x\n```json\n{json_module.dumps({'a': value})}\n```"
    ) == {"a": value}


@given(st.text(alphabet="ab1: -'\"\n#[]{}nul", max_size=12))
@examples(300)
def test_every_text_that_yaml_writes_is_parsed(value: str) -> None:
    dump: Any = import_module("yaml").safe_dump
    assert yaml.as_type(str).parse(dump(value)) == value
    assert yaml.parse(dump({"a": [value]})) == {"a": [value]}
