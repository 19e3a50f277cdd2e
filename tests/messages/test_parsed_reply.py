"""Values of replies: types, code fences, the wrapped value, and errors with the text and the place."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from enum import Enum
from typing import Annotated, Any, Final, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field, TypeAdapter

from agentkit import Msg, OptionError, ParseError, TextBlock, ThinkingBlock, ToolUseBlock
from agentkit.tools.json_schema import as_output_schema
from tests.cases import each_case
from tests.profiles import examples


class Answer(BaseModel):
    verdict: Literal["yes", "no"]
    score: int = Field(ge=0, le=10)


class Box(BaseModel):
    value: int


@dataclass
class Point:
    x: float
    day: date


class Color(Enum):
    RED = 1
    BLUE = "blue"


ANSWER: Final = Answer(verdict="yes", score=3)
TEXT: Final = '{"verdict": "yes", "score": 3}'


def reply(text: str, finish_reason: str | None = None) -> Msg:
    metadata = None if finish_reason is None else {"reply": {"finish_reason": finish_reason}}
    return Msg("Friday", text, "assistant", metadata=metadata)


VALUES: Final[list[tuple[str, Any, Any]]] = [
    (TEXT, Answer, ANSWER),
    (f"  \n{TEXT}\n", Answer, ANSWER),
    (f"```json\n{TEXT}\n```", Answer, ANSWER),
    (f"Here it is:\n```\n{TEXT}\n```\nAnything else?\n```\n1\n```", Answer, ANSWER),
    (f"  ```json\n{TEXT}", Answer, ANSWER),
    (f"```json\n{TEXT}```", Answer, ANSWER),
    (f"```json\r\n{TEXT}\r\n```\r\n", Answer, ANSWER),
    ('```json\n{"value": "a\u2028b\x85c"}\n```', str, "a\u2028b\x85c"),
    (f"[{TEXT}]", list[Answer], [ANSWER]),
    (f'{{"value": [{TEXT}]}}', list[Answer], [ANSWER]),
    (f'{{"value": {TEXT}}}', Answer | None, ANSWER),
    (TEXT, Answer | None, ANSWER),
    ('{"value": null}', Answer | None, None),
    ("null", Answer | None, None),
    ('{"value": "yes"}', Literal["yes", "no"], "yes"),
    ('"no"', Literal["yes", "no"], "no"),
    ('{"value": 1}', Color, Color.RED),
    ('"blue"', Color, Color.BLUE),
    ('{"value": 7}', int, 7),
    ("7", int, 7),
    ('{"value": "a text"}', str, "a text"),
    ('{"value": 7}', Box, Box(value=7)),
    ('{"value": {"value": 7}}', Box | None, Box(value=7)),
    ('{"value": 7}', Box | None, Box(value=7)),
    ('{"value": 7}', dict[str, int], {"value": 7}),
    ('{"value": {"a": 1}}', dict[str, Any], {"value": {"a": 1}}),
    ('{"x": 1, "day": "2026-11-26"}', Point, Point(1.0, date(2026, 11, 26))),
    ('{"value": [1, 2]}', tuple[int, int], (1, 2)),
    ('{"value": ["2026-11-26"]}', frozenset[date], frozenset({date(2026, 11, 26)})),
    ("3", Annotated[int, Field(le=3)], 3),
    ("[1, {}]", Any, [1, {}]),
]


@each_case(("text", "output", "expected"), VALUES)
def test_the_value_of_a_reply_is_parsed(text: str, output: Any, expected: Any) -> None:
    assert reply(text).parsed(output) == expected


@each_case(
    ("text", "output", "failure", "place", "description"),
    [
        ("No idea.", Answer, "no_structure", "reply", "invalid JSON ("),
        ("```\nNo idea.\n```", Answer, "no_structure", "reply", "invalid JSON ("),
        ("", Answer, "no_structure", "reply", "the reply has no text"),
        (" \n", Answer, "no_structure", "reply", "the reply has no text"),
        (TEXT[:-1], Answer, "no_structure", "reply", "invalid JSON ("),
        ('{"verdict": "yes", "score": 11}', Answer, "wrong_value", "score", "Input should be less than or equal"),
        (
            f'{{"value": [{TEXT}, {{"verdict": "yes"}}]}}',
            list[Answer],
            "wrong_value",
            "[1].score",
            "Field required",
        ),
        (
            f'[{TEXT}, {{"verdict": "maybe", "score": 1}}]',
            list[Answer],
            "wrong_value",
            "[1].verdict",
            "Input should be",
        ),
        ('{"value": "maybe"}', Literal["yes", "no"], "wrong_value", "reply", "Input should be 'yes' or 'no'"),
        ("[]", Answer, "wrong_value", "reply", "Input should be an object"),
        ("NaN", Answer, "wrong_value", "reply", "Input should be an object"),
        (f'{{"answer": {TEXT}}}', list[Answer], "wrong_value", "reply", "Input should be a valid array"),
    ],
)
def test_a_reply_without_the_value_is_an_error_with_its_place(
    text: str, output: Any, failure: str, place: str, description: str
) -> None:
    message = reply(text)
    with pytest.raises(ParseError) as caught:
        message.parsed(output)
    error = caught.value
    assert (error.failure, error.place, error.text, error.message) == (failure, place, text, message)
    assert error.description.startswith(description)
    assert str(error).startswith(f"{place}: {description}")
    assert error.__cause__ is None


@each_case(
    ("finish_reason", "failure", "description"),
    [
        ("length", "cut_off", "the reply reached the maximum number of tokens (invalid JSON ("),
        ("interrupted", "cut_off", "the stream ended before the reply was complete (invalid JSON ("),
        ("error", "cut_off", "the provider reported an error inside the reply (invalid JSON ("),
        ("pause", "cut_off", "the provider paused the turn before the reply was complete (invalid JSON ("),
        ("refusal", "refused", "the model refused to answer (invalid JSON ("),
        ("content_filter", "filtered", "a filter of the provider withheld or truncated the reply (invalid JSON ("),
        ("stop", "no_structure", "invalid JSON ("),
        ("odd", "no_structure", "invalid JSON ("),
    ],
)
def test_the_error_states_why_a_reply_ended_early(finish_reason: str, failure: str, description: str) -> None:
    with pytest.raises(ParseError) as caught:
        reply('{"verdict": "y', finish_reason).parsed(Answer)
    assert caught.value.failure == failure
    assert caught.value.description.startswith(description)


def test_a_complete_value_is_returned_even_if_the_reply_ended_at_the_limit() -> None:
    assert reply(TEXT, "length").parsed(Answer) == ANSWER


def test_an_invalid_value_keeps_the_fields_that_were_read() -> None:
    with pytest.raises(ParseError) as caught:
        reply('{"verdict": "yes", "score": 11}').parsed(Answer)
    assert caught.value.partial == {"verdict": "yes", "score": 11}


def test_a_cited_text_is_one_json_text() -> None:
    blocks: list[Any] = [
        ThinkingBlock("Hm."),
        TextBlock('{"a": "It '),
        TextBlock("rains", metadata={"citations": []}),
        TextBlock('."}'),
    ]
    assert Msg("model", blocks, "assistant").parsed(dict[str, str]) == {"a": "It rains."}


def test_a_reply_with_only_tool_calls_has_no_value() -> None:
    message = Msg("Friday", [ToolUseBlock("c1", "look", {})], "assistant")
    with pytest.raises(ParseError, match=r"^reply: the reply has only tool calls"):
        message.parsed(Answer)


@each_case("output", [threading.Thread, "Answer", 3, list["Missing"], len, reply])  # type: ignore[name-defined]  # noqa: F821
def test_a_type_that_pydantic_does_not_support_is_refused_by_name(output: Any) -> None:
    with pytest.raises(OptionError, match=r"^parsed\(\): "):
        reply(TEXT).parsed(output)


@pytest.mark.parametrize("output", [dict[int], Annotated[str, Field(pattern="(")]])  # type: ignore[misc]
def test_an_invalid_type_or_constraint_is_an_option_error(output: Any) -> None:
    with pytest.raises(OptionError, match=r"^parsed\(\): "):
        reply("{}").parsed(output)


def test_the_order_of_a_union_decides_which_of_two_equal_types_is_read() -> None:
    class Copy(BaseModel):
        value: int

    for first, second in ((Box, Copy), (Copy, Box)):
        assert type(reply('{"value": 1}').parsed(first | second)) is first


def test_a_type_that_cannot_be_hashed_is_supported() -> None:
    unhashable = Annotated[int, Field(json_schema_extra={"examples": [1]})]
    assert reply("3").parsed(unhashable) == 3


@each_case("text", ["```json\n" * 100_000, "```\n" * 100_000, "[" * 100_000, '{"value":' * 100_000])
def test_a_hostile_reply_is_a_parse_error(text: str) -> None:
    with pytest.raises(ParseError):
        reply(text).parsed(Answer)


_OUTPUTS: Final[Mapping[Any, st.SearchStrategy[Any]]] = {
    str: st.text(),
    bool: st.booleans(),
    list[int]: st.lists(st.integers()),
    dict[str, float]: st.dictionaries(st.text(), st.floats(allow_nan=False, allow_infinity=False)),
    int | None: st.none() | st.integers(),
    list[list[str] | None]: st.lists(st.none() | st.lists(st.text())),
    Answer: st.builds(Answer, verdict=st.sampled_from(("yes", "no")), score=st.integers(0, 10)),
}


@examples(100)
@given(
    st.sampled_from([*_OUTPUTS]).flatmap(lambda output: st.tuples(st.just(output), _OUTPUTS[output])),
    st.booleans(),
)
def test_each_value_is_read_from_the_object_that_the_schema_asks_for(case: tuple[Any, Any], fenced: bool) -> None:
    output, value = case
    schema = as_output_schema(output)
    assert schema is not None
    data = TypeAdapter(output).dump_python(value, mode="json")
    sent = {"value": data} if "value" in schema.schema.get("properties", {}) else data
    text = json.dumps(sent)
    assert reply(f"```json\n{text}\n```" if fenced else text).parsed(output) == value
