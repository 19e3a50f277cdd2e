"""Tests of reading values: DSPy's accepted and refused texts, JSON values, errors, and large damaged replies."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from enum import Enum, IntEnum, StrEnum
from typing import Annotated, Any, Final, Literal, NamedTuple
from uuid import UUID

import pytest
from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from agentkit import OptionError, ParseError
from agentkit.prompts.field_types import Code, Reasoning
from agentkit.prompts.value_parsing import parse_value
from tests.cases import each_case


class Color(Enum):
    RED = "red"
    GREEN = "green"


class Level(Enum):
    ONE = 1
    TWO = 2


class Word(StrEnum):
    A = "a"


class Rank(IntEnum):
    LOW = 1


class Point(BaseModel):
    x: int
    y: str = "d"


@dataclass
class Trip:
    a: int
    b: list[str] = field(default_factory=list[str])


class Pair(NamedTuple):
    a: int
    b: str


TYPES: Final[dict[str, Any]] = {
    "str": str,
    "Color": Color,
    "Level": Level,
    "Word": Word,
    "Rank": Rank,
    "Literal['a', 'b c', \"it's\"]": Literal["a", "b c", "it's"],
    "Literal[1, 2]": Literal[1, 2],
    "Literal[True, False, None]": Literal[True, False, None],  # noqa: PYI061
    "Literal['1', 1]": Literal["1", 1],
    "Literal['None', ' x ']": Literal["None", " x "],
    "Literal[Color.RED, 'z']": Literal[Color.RED, "z"],
    "bool": bool,
    "int": int,
    "float": float,
    "list[int]": list[int],
    "list[str]": list[str],
    "tuple[int, int]": tuple[int, int],
    "tuple[int, ...]": tuple[int, ...],
    "set[int]": set[int],
    "Point": Point,
    "Trip": Trip,
    "Pair": Pair,
    "dict[str, int]": dict[str, int],
    "dict[int, int]": dict[int, int],
    "str | None": str | None,
    "str | int | None": str | int | None,
    "int | None": int | None,
    "int | str": int | str,
    "int | bool": int | bool,
    "int | float": int | float,
    "Literal['a', 'b'] | None": Literal["a", "b"] | None,
    "Color | None": Color | None,
    "Color | int": Color | int,
    "list[Color]": list[Color],
    "list[Level]": list[Level],
    "Any": Any,
    "date": date,
    "datetime": datetime,
    "Decimal": Decimal,
    "UUID": UUID,
    "bytes": bytes,
    "None": type(None),
    "Annotated[int, Field(le=10)]": Annotated[int, Field(le=10)],
    "Annotated[str, Field(max_length=5)]": Annotated[str, Field(max_length=5)],
    "Annotated[Literal['a'], 'x']": Annotated[Literal["a"], "x"],
    "Reasoning": Reasoning,
    "Code['python']": Code["python"],
}
"""Types of the tables, by name."""

READ: Final[dict[str, list[tuple[str, object]]]] = {
    "str": [
        ("text", "text"),
        (" x ", " x "),
        ("None", "None"),
        ("null", "null"),
        ("", ""),
        ("1", "1"),
        ('"q"', '"q"'),
        ("[1]", "[1]"),
        ("```\nx\n```", "```\nx\n```"),
    ],
    "Color": [
        ("red", Color.RED),
        ("RED", Color.RED),
        ("GREEN", Color.GREEN),
    ],
    "Level": [
        ("ONE", Level.ONE),
    ],
    "Word": [
        ("a", Word.A),
        ("A", Word.A),
    ],
    "Rank": [
        ("LOW", Rank.LOW),
    ],
    "Literal['a', 'b c', \"it's\"]": [
        ("a", "a"),
        (" a ", "a"),
        ("'a'", "a"),
        ('"a"', "a"),
        ("Literal[a]", "a"),
        ("Literal['a']", "a"),
        ("str[a]", "a"),
        ("str['a']", "a"),
        ('Literal["b c"]', "b c"),
        ("it's", "it's"),
        ("'it's'", "it's"),
        ('"it\'s"', "it's"),
        ("''a''", "a"),
        ("Literal[a] ", "a"),
    ],
    "Literal[1, 2]": [
        ("1", 1),
        ("2", 2),
        ("1.0", 1),
        ("'1'", 1),
        ("Literal[1]", 1),
        ("Literal[ 1 ]", 1),
        (" 2 ", 2),
    ],
    "Literal[True, False, None]": [
        ("True", True),
        ("true", True),
        ("False", False),
        ("None", None),
        ("null", None),
        ("1", True),
        ("0", False),
    ],
    "Literal['1', 1]": [
        ("'1'", "1"),
    ],
    "Literal['None', ' x ']": [
        ("None", "None"),
        (" x ", " x "),
    ],
    "Literal[Color.RED, 'z']": [
        ("z", "z"),
    ],
    "bool": [
        ("yes", True),
        ("no", False),
        ("1", True),
        ("TRUE", True),
        ("True", True),
        ("true", True),
        ("0", False),
        ("false", False),
        ("on", True),
        ("off", False),
        ("y", True),
        ("f", False),
        (" true ", True),
        ('"true"', True),
        ("'True'", True),
        ("1.0", True),
    ],
    "int": [
        ("3", 3),
        ("3.0", 3),
        ("'7'", 7),
        ('"7"', 7),
        ("1e3", 1000),
        ("1_000", 1000),
        (" 4 ", 4),
        ("+5", 5),
        ("-5", -5),
        ("0x10", 16),
        ("0b11", 3),
        ("007", 7),
        ("12345678901234567890123", 12345678901234567890123),
        ("3.", 3),
        ("True", 1),
        ("(3)", 3),
    ],
    "float": [
        ("1e3", 1000.0),
        ("1.5", 1.5),
        ("123_456.789", 123456.789),
        (".5", 0.5),
        ("5.", 5.0),
        ("nan", float("nan")),
        ("inf", float("inf")),
        ("-inf", float("-inf")),
        ("Infinity", float("inf")),
        ("1e400", float("inf")),
        ("'2.5'", 2.5),
        ("1E-3", 0.001),
        ("+1.5", 1.5),
        ("true", 1.0),
    ],
    "list[int]": [
        ("[1,2", [1, 2]),
        ("[1, 2]", [1, 2]),
        ("(1,2)", [1, 2]),
        ("1,2", [1, 2]),
        ("[1,'2']", [1, 2]),
        ("['1']", [1]),
        ("[]", []),
        ("[1,]", [1]),
        ("[1 2]", [1, 2]),
        ("```json\n[1]\n```", [1]),
        ("Here: [1,2]", [1, 2]),
        ("[1,2] done", [1, 2]),
        ("text ```json\n[1]\n``` more", [1]),
        ("[1\n2]", [1, 2]),
        ("{1,2}", [1, 2]),
        ("'[1]'", [1]),
        ("[1.0]", [1]),
        ("[True]", [1]),
    ],
    "list[str]": [
        ("[a, b]", ["a", "b"]),
        ("['a','b']", ["a", "b"]),
        ('["a","b"]', ["a", "b"]),
        ("('a','b')", ["a", "b"]),
        ("[a b]", ["a b"]),
        ('["a" "b"]', ["a", "b"]),
        ('["a', ["a"]),
        ("['it's']", ["it", "s'"]),
        ('["x\\ny"]', ["x\ny"]),
        ("[“a”]", ["a"]),
        ("{'a'}", ["a"]),
        ("'a','b'", ["a", "b"]),
    ],
    "tuple[int, int]": [
        ("(1,2)", (1, 2)),
        ("[1,2]", (1, 2)),
        ("1,2", (1, 2)),
    ],
    "tuple[int, ...]": [
        ("[1]", (1,)),
    ],
    "set[int]": [
        ("(1,2)", {1, 2}),
        ("{1,2}", {1, 2}),
        ("[1,1]", {1}),
        ("set()", set()),
    ],
    "Point": [
        ('{"x":1}', Point(x=1, y="d")),
        ("{'x':1}", Point(x=1, y="d")),
        ("{x:1}", Point(x=1, y="d")),
        ("{x:1,y:z}", Point(x=1, y="z")),
        ('{"x":1,}', Point(x=1, y="d")),
        ('{"x":1', Point(x=1, y="d")),
        ('```json\n{"x":1}\n```', Point(x=1, y="d")),
        ('Sure! {"x":1} ok', Point(x=1, y="d")),
        ('{"x":"1"}', Point(x=1, y="d")),
        ('{"x":1}{"x":2}', Point(x=2, y="d")),
        ('{"x":1,"y":"a\nb"}', Point(x=1, y="a\nb")),
        ('{"x":1,"y":"say "hi" ok"}', Point(x=1, y='say "hi" ok')),
        ('{"x":1,"z":3}', Point(x=1, y="d")),
        ('{"x":1 // c\n}', Point(x=1, y="d")),
        ('{"x":1, /* c */ "y":"b"}', Point(x=1, y="b")),
        ('{"x":True}', Point(x=1, y="d")),
        ("{'x':1,'y':'it\\'s'}", Point(x=1, y="it's")),
    ],
    "Trip": [
        ('{"a":1}', Trip(a=1, b=[])),
        ('{"a":1,"b":["x"]}', Trip(a=1, b=["x"])),
    ],
    "Pair": [
        ('{"a":1,"b":"x"}', Pair(a=1, b="x")),
        ('[1,"x"]', Pair(a=1, b="x")),
        ("(1,'x')", Pair(a=1, b="x")),
    ],
    "dict[str, int]": [
        ('{"a":1}', {"a": 1}),
        ("{1:2}", {"1": 2}),
        ("{'a':'1'}", {"a": 1}),
        ('{"a":1,"a":2}', {"a": 2}),
    ],
    "dict[int, int]": [
        ('{"1":2}', {1: 2}),
        ("{1:2}", {1: 2}),
    ],
    "str | None": [
        ("null", "null"),
        ("", ""),
        ("text", "text"),
        (" text ", " text "),
        ("N/A", "N/A"),
        ('"None"', '"None"'),
        ('"a"', '"a"'),
        ("5", "5"),
    ],
    "str | int | None": [
        ("null", "null"),
        ("'a'", "'a'"),
        ("abc", "abc"),
        ("5 apples", "5 apples"),
    ],
    "int | None": [
        ("null", None),
        ("None", None),
        ("3", 3),
        ("'3'", 3),
    ],
    "int | str": [
        ("3", 3),
        ("abc", "abc"),
        ("3.0", 3),
        ("'3'", "3"),
        ('"3"', "3"),
        ("true", 1),
        ("1e3", 1000),
    ],
    "int | bool": [
        ("3", 3),
        ("true", True),
        ("yes", True),
        ("0", 0),
    ],
    "int | float": [
        ("3", 3),
        ("3.5", 3.5),
        ("3.0", 3.0),
    ],
    "Literal['a', 'b'] | None": [
        ("a", "a"),
        ("None", None),
        ("null", None),
        ("'a'", "a"),
    ],
    "Color | None": [
        ("red", Color.RED),
        ("None", None),
        ("'red'", Color.RED),
    ],
    "Color | int": [
        ("red", Color.RED),
        ("1", 1),
    ],
    "list[Color]": [
        ("[red]", [Color.RED]),
        ('["red"]', [Color.RED]),
    ],
    "list[Level]": [
        ("[1]", [Level.ONE]),
    ],
    "Any": [
        ("x", "x"),
        ("3", 3),
        ("[1]", [1]),
        ("{'a':1}", {"a": 1}),
        ("null", None),
        ("None", None),
        ("", ""),
        ("true", True),
        ("True", True),
        ("'a'", "a"),
        ("1.5", 1.5),
        ("[1,2", [1, 2]),
        ("hello [1] x", [1]),
    ],
    "date": [
        ("2024-01-02", date(2024, 1, 2)),
        ("2024-11-12", date(2024, 11, 12)),
        ("'2024-01-02'", date(2024, 1, 2)),
    ],
    "datetime": [
        ("2024-01-02T03:04:05", datetime(2024, 1, 2, 3, 4, 5)),
    ],
    "Decimal": [
        ("1.10", Decimal("1.1")),
        ("'1.10'", Decimal("1.10")),
    ],
    "UUID": [
        ("12345678-1234-5678-1234-567812345678", UUID("12345678-1234-5678-1234-567812345678")),
    ],
    "bytes": [
        ("abc", b"abc"),
        ("'abc'", b"abc"),
        ("b'abc'", b"abc"),
    ],
    "None": [
        ("None", None),
        ("null", None),
    ],
    "Annotated[int, Field(le=10)]": [
        ("5", 5),
        ("'5'", 5),
    ],
    "Annotated[str, Field(max_length=5)]": [
        ("abc", "abc"),
    ],
    "Annotated[Literal['a'], 'x']": [
        ("a", "a"),
    ],
    "Reasoning": [
        ("abc", "abc"),
        ("5", "5"),
        ('{"content":"x"}', "x"),
        ("Some [1] text", "Some [1] text"),
        (" x ", " x "),
        ("None", "None"),
        ('{"a":1}', '{"a":1}'),
        ("", ""),
    ],
    "Code['python']": [
        ("```python\nx=1\n```", "x=1"),
        ("x=1", "x=1"),
        ("```\nx\n```", "x"),
        ("```sql\nselect 1\n```", "select 1"),
        ("pre ```python\nx\n``` post ```py\ny\n```", "x"),
        ("```python\nx", "```python\nx"),
        ('{"code":"x"}', "x"),
        ("{'code':'x'}", "x"),
        ("5", "5"),
        ('"x"', "x"),
        ("[1]", "[1]"),
        ("", ""),
        ("```x```", "x"),
        ("```python x\n```", ""),
        ("a\n```\nb\n```\n", "b"),
        ("```python\nx\n\n```", "x"),
        ("```python\n  x\n```", "x"),
        ("~~~\nx\n~~~", "~~~\nx\n~~~"),
        ("print('[1]')", "print('[1]')"),
        ("None", "None"),
        ('{"a":1}', '{"a":1}'),
        ("```c++\nx\n```", "x"),
        ("`````\nx\n`````", "x"),
        (" x ", " x "),
        ('```json\n{"code":"x"}\n```', "x"),
    ],
}
"""Texts and the values that DSPy 3.4.1 and agentkit read."""

REFUSED: Final[dict[str, list[str]]] = {
    "Color": ["Red", " red ", "Color.RED", "blue", ""],
    "Level": ["3", "Level.ONE"],
    "Word": ["c"],
    "Rank": ["9"],
    "Literal['a', 'b c', \"it's\"]": [
        "`a`",
        "Literal[ a ]",
        "A",
        "a.",
        "b  c",
        "literal[a]",
        '["a"]',
        "'a\"",
        "'Literal[a]'",
        "",
    ],
    "Literal[1, 2]": ["3", "01"],
    "Literal[True, False, None]": ["no"],
    "Literal['None', ' x ']": ["x"],
    "Literal[Color.RED, 'z']": ["RED"],
    "bool": ["2", "None", "null", "", "True.", "```json\ntrue\n```", "maybe"],
    "int": [
        "1,000",
        "3.5",
        "1e400",
        "NaN",
        "inf",
        "",
        "None",
        "three",
        "3 apples",
        "[3]",
        "3%",
        "٣",
        "½",
        "```\n3\n```",
        "answer: 3",
        "{3}",
        "3,",
    ],
    "float": ["1,5", "50%", "$5", "3/4", "None", "", "1.2.3", "1 000"],
    "list[int]": ["1 2", "", "null", "{}", "1", "- 1\n- 2", "[[1]]", '"[1]"'],
    "list[str]": ["a, b", '""', "", "a", "- a\n- b", "[None]", "[1]"],
    "tuple[int, int]": ["(1,)", "()", "[1,2,3]", "(1,'a')"],
    "tuple[int, ...]": ["1", "(1,'a')"],
    "set[int]": ["{}"],
    "Point": [
        '{"x":1.5}',
        '{"y":"a"}',
        "x=1",
        "Point(x=1)",
        '[{"x":1}]',
        "null",
        "",
        "{'x':1,'y':None}",
        '"{\\"x\\":1}"',
    ],
    "Trip": ["Trip(a=1)"],
    "dict[str, int]": ["a: 1", '{"a":null}', "[]"],
    "dict[int, int]": ["{1: 'x'}"],
    "int | None": ["", "3.5", "abc"],
    "Literal['a', 'b'] | None": ["3"],
    "Color | None": ["RED"],
    "list[Color]": ['["RED"]'],
    "list[Level]": ['["1"]', '["ONE"]'],
    "date": ["2024-01-02T03:04:05", "today"],
    "Decimal": ["1,5", "NaN"],
    "UUID": ["1"],
    "None": ["", "x"],
    "Annotated[int, Field(le=10)]": ["11"],
    "Annotated[str, Field(max_length=5)]": ["abcdef"],
    "Annotated[Literal['a'], 'x']": ["z"],
}
"""Texts that DSPy 3.4.1 and agentkit refuse."""

NO_VALUE: Final = object()

DIFFERENCES: Final[list[tuple[str, str, object, object, str]]] = [
    ("Color", "'red'", NO_VALUE, Color.RED, "quotes around a value, as for a Literal"),
    ("Level", "1", NO_VALUE, Level.ONE, "a number-valued enum is read by its values"),
    ("Level", "1.0", NO_VALUE, Level.ONE, "a number-valued enum is read by its values"),
    ("Rank", "1", NO_VALUE, Rank.LOW, "a number-valued enum is read by its values"),
    ("Literal['1', 1]", "1", "1", 1, 'the text 1 is the number, and "1" in quotes is the text'),
    ("Literal[Color.RED, 'z']", "red", NO_VALUE, Color.RED, "a member is read by its value"),
    ("str | None", "None", "None", None, "None and the text None differ"),
    ("str | int | None", "None", "None", None, "None and the text None differ"),
    ("str | int | None", "5", "5", 5, "5 and the text 5 differ"),
    ("int | str", "3.5", NO_VALUE, "3.5", "a type that accepts texts accepts the text itself"),
    ("int | str", "None", NO_VALUE, "None", "a type that accepts texts accepts the text itself"),
    ("int | str", "[1]", NO_VALUE, "[1]", "a type that accepts texts accepts the text itself"),
    ("bytes", "12", NO_VALUE, b"12", "a text that fits the type is accepted"),
    ("Annotated[str, Field(max_length=5)]", "5", NO_VALUE, "5", "a text with constraints is a text"),
    ("Annotated[str, Field(max_length=5)]", "'5'", "5", "'5'", "a text with constraints is a text"),
    ("Annotated[str, Field(max_length=5)]", "None", NO_VALUE, "None", "a text with constraints is a text"),
    ("Annotated[Literal['a'], 'x']", " a", NO_VALUE, "a", "a Literal in Annotated is a Literal"),
    ("Reasoning", '"abc"', "abc", '"abc"', "quotes are part of the text"),
    ("Reasoning", "'x'", "x", "'x'", "quotes are part of the text"),
    ("Reasoning", '{"content":"x" ', "x", '{"content":"x" ', "only valid JSON is an object"),
    ("Code['python']", "x={'code': 'y'}", "y", "x={'code': 'y'}", "code that contains a dict is code"),
]
"""Type, text, value of DSPy 3.4.1 (or NO_VALUE), value of agentkit, and reason."""


def _is_same(parsed: object, expected: object) -> bool:
    if isinstance(parsed, Reasoning | Code):
        parsed = str(parsed)
    if isinstance(parsed, float) and isinstance(expected, float) and math.isnan(expected):
        return math.isnan(parsed)
    return type(parsed) is type(expected) and parsed == expected


@each_case("name", [*READ])
def test_a_text_is_read_as_dspy_reads_it(name: str) -> None:
    for text, expected in READ[name]:
        assert _is_same(parse_value(text, TYPES[name]), expected), text


@each_case("name", [*REFUSED])
def test_a_text_that_dspy_refuses_is_an_error(name: str) -> None:
    for text in REFUSED[name]:
        with pytest.raises(ParseError) as caught:
            parse_value(text, TYPES[name], place="field")
        assert caught.value.failure == "wrong_value"
        assert caught.value.text == text
        assert caught.value.place.startswith("field")


@each_case(("name", "text", "dspy", "expected", "reason"), DIFFERENCES)
def test_a_text_is_read_differently_for_a_reason(
    name: str, text: str, dspy: object, expected: object, reason: str
) -> None:
    assert _is_same(parse_value(text, TYPES[name]), expected)
    assert not _is_same(dspy, expected)
    assert reason


@each_case(
    ("value", "annotation", "expected"),
    [
        (None, str, "None"),
        (5, str, "5"),
        (["a"], str, "['a']"),
        (None, str | None, None),
        (1, Level, Level.ONE),
        (2.0, Level, Level.TWO),
        ("red", Color, Color.RED),
        (1, Literal[1, 2], 1),
        (1.0, Literal[1, 2], 1),
        (True, Literal[True, 1], True),
        (["1"], list[int], [1]),
        ({"x": "1"}, Point, Point(x=1)),
        (Point(x=2), Point, Point(x=2)),
        ({"content": "x"}, Reasoning, Reasoning("x")),
        ({"code": "x"}, Code, Code("x")),
    ],
)
def test_a_json_value_is_validated_as_dspy_does(value: object, annotation: Any, expected: object) -> None:
    parsed = parse_value(value, annotation)
    assert parsed == expected
    assert type(parsed) is type(expected)


@each_case(
    ("text", "annotation", "expected"),
    [
        ("None", str | None, "None"),
        ("\\None", str | None, "\\None"),
        (" a", str, " a"),
        ("\\ a", str, "\\ a"),
        ("3", int | str, "3"),
        ("5", str | int | None, "5"),
        ("3", Any, "3"),
        ("null", Any, "null"),
        ("1", Literal[1, "1"], "1"),
        ('{"content": "x"}', Reasoning, '{"content": "x"}'),
        ("3", int, 3),
        ("[1, 2", list[int], [1, 2]),
        ('{"x": 1}', Point, Point(x=1)),
    ],
)
def test_a_json_string_has_no_escapes_and_stays_a_text_where_the_type_accepts_texts(
    text: str, annotation: Any, expected: object
) -> None:
    assert _is_same(parse_value(text, annotation, is_json=True), expected)


@each_case(
    ("text", "annotation", "place", "reason"),
    [
        (
            "abc",
            int,
            "score",
            "Input should be a valid integer, unable to parse string as an integer (got str 'abc')",
        ),
        ("11", Annotated[int, Field(le=10)], "score", "Input should be less than or equal to 10 (got int 11)"),
        (
            '[{"x": 1}, {"x": "z"}]',
            list[Point],
            "score[1].x",
            "Input should be a valid integer, unable to parse string as an integer (got str 'z')",
        ),
        ('{"y": "a"}', Point, "score.x", "Field required (got nothing)"),
        ("purple", Color, "score", "expected one of ['red', 'green'], got 'purple'"),
        ("c", Literal["a", 1], "score", "expected one of ['a', 1], got 'c'"),
        (
            "abcdef",
            Annotated[str, Field(max_length=5)],
            "score",
            "String should have at most 5 characters (got str 'abcdef')",
        ),
    ],
)
def test_an_error_has_the_path_and_the_reason(text: str, annotation: Any, place: str, reason: str) -> None:
    with pytest.raises(ParseError) as caught:
        parse_value(text, annotation, place="score")
    assert (caught.value.place, caught.value.description) == (place, reason)
    assert caught.value.text == text


def test_constraints_of_texts_and_numbers_are_enforced() -> None:
    assert parse_value("10", Annotated[int, Field(le=10)]) == 10
    assert parse_value("abcde", Annotated[str, Field(max_length=5)]) == "abcde"


class Unknown:
    pass


def test_a_type_that_pydantic_does_not_support_is_an_option_error() -> None:
    with pytest.raises(OptionError) as caught:
        parse_value("a", list[Unknown])
    assert caught.value.place == "type"


def test_equal_unions_in_another_order_are_read_by_their_own_order() -> None:
    class A(BaseModel):
        x: int

    class B(BaseModel):
        x: int

    first, second = A | B, B | A
    assert first == second
    assert type(parse_value('{"x": 1}', first)) is A
    assert type(parse_value('{"x": 1}', second)) is B


def test_the_fields_of_a_model_are_read_by_name_and_by_alias() -> None:
    class Aliased(BaseModel):
        size: int = Field(alias="SIZE")

    assert parse_value('{"size": 1}', Aliased) == parse_value('{"SIZE": 1}', Aliased)


@pytest.mark.slow
@pytest.mark.parametrize("unit", ["[", "{", '{"a":', "(", "[]", "]", "(1)", "-", "'", '"', "[{", "9", "\\"])
def test_a_long_text_of_brackets_is_an_error(unit: str) -> None:
    with pytest.raises(ParseError):
        parse_value(unit * (300_000 // len(unit)), dict[str, int])


def test_lone_surrogates_in_json_become_replacement_characters() -> None:
    assert parse_value('["\\ud800x"]', list[str]) == ["\ufffdx"]


def test_nan_is_a_float_and_no_integer() -> None:
    assert math.isnan(parse_value("NaN", float))
    with pytest.raises(ParseError):
        parse_value("NaN", Annotated[float, Field(allow_inf_nan=False)])


class StrictTrip(BaseModel):
    """Strict model whose values have another form in JSON than in Python."""

    model_config = ConfigDict(strict=True)

    day: date
    color: Color
    stops: tuple[str, ...]
    sizes: set[int] = set()


@each_case(
    ("text", "annotation", "value"),
    [
        (
            '{"day": "2024-05-01", "color": "red", "stops": ["a"], "sizes": [1]}',
            StrictTrip,
            StrictTrip(day=date(2024, 5, 1), color=Color.RED, stops=("a",), sizes={1}),
        ),
        ("2024-05-01", Annotated[date, Field(strict=True)], date(2024, 5, 1)),
        ("[1, 2]", Annotated[set[int], Field(strict=True)], {1, 2}),
        ("red", Annotated[Color, Field(strict=True)], Color.RED),
        ("3", Annotated[int, Field(strict=True)], 3),
    ],
)
def test_a_strict_type_is_read_from_its_json_form(text: str, annotation: Any, value: object) -> None:
    assert parse_value(text, annotation) == value


@each_case(
    ("value", "annotation", "place"),
    [
        ('{"day": "2024-05-01", "color": "red", "stops": [1]}', StrictTrip, "reply.stops[0]"),
        ({"day": "2024-05-01", "color": "red", "stops": "a"}, StrictTrip, "reply.stops"),
        ('"3"', Annotated[int, Field(strict=True)], "reply"),
        (object(), Annotated[set[int], Field(strict=True)], "reply"),
    ],
)
def test_a_strict_type_refuses_values_that_need_a_conversion(value: object, annotation: Any, place: str) -> None:
    with pytest.raises(ParseError) as caught:
        parse_value(value, annotation)
    assert caught.value.place == place


def test_a_constraint_that_does_not_fit_the_value_is_a_parse_error() -> None:
    annotation = Annotated[int | str, Field(ge=0)]
    assert parse_value("3", annotation) == 3
    with pytest.raises(ParseError, match=r"^reply: Unable to apply constraint 'ge'") as caught:
        parse_value("unknown", annotation)
    assert caught.value.failure == "wrong_value"


def test_a_type_error_of_a_validator_is_not_a_parse_error() -> None:
    def check(value: object) -> object:
        raise TypeError("a fault of the validator")

    with pytest.raises(TypeError, match="a fault of the validator"):
        parse_value("3", Annotated[int, AfterValidator(check)])
