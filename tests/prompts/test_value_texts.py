"""Tests of writing values: DSPy's texts, the rows of the table of escapes, and the round trip of every type."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from decimal import Decimal
from enum import Enum, IntEnum, StrEnum
from typing import Any, Final, Literal, NamedTuple
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field

from agentkit import OptionError
from agentkit.prompts.field_types import Code, Reasoning
from agentkit.prompts.value_escapes import escape_markers, unescape_markers
from agentkit.prompts.value_parsing import parse_value
from agentkit.prompts.value_texts import write_value
from agentkit.prompts.value_types import as_json_value
from tests.cases import each_case
from tests.profiles import examples


class Color(Enum):
    RED = "red"
    GREEN = "green"


class Level(Enum):
    ONE = 1
    TEXT = "1"
    SPACE = " x "
    YES = True
    NONE = None
    HALF = 0.5
    PAIR = (1, 2)
    LIST = [1, 2]  # noqa: RUF012


class Rank(IntEnum):
    LOW = 1
    HIGH = 2


class Word(StrEnum):
    A = "B"
    B = "A"


class Point(BaseModel):
    x: int
    y: str = "d"


class Aliased(BaseModel):
    size: int = Field(alias="SIZE")


@dataclass
class Trip:
    a: int
    b: list[str] = field(default_factory=list[str])
    c: str | None = None
    d: int | str | None = None


class Pair(NamedTuple):
    a: int
    b: str


class Plan(BaseModel):
    name: str
    rank: Rank = Rank.LOW
    code: Code = Code("")
    points: list[Point] = []
    extra: dict[str, Any] = {}
    score: float | None = None


@each_case(
    ("value", "annotation", "text"),
    [
        ("x", str, "x"),
        ("a\rb", str, "a\rb"),
        ("a\\b", str, "a\\b"),
        ('"q"', str, '"q"'),
        (5, str, "5"),
        (None, str, "None"),
        (True, str, "True"),
        (0.9, str, "0.9"),
        ({"a": 1}, str, '{"a": 1}'),
        ([], str, "N/A"),
        (["a"], str, "«a»"),
        (["a", "b"], str, "[1] «a»\n[2] «b»"),
        (["a\nb", "c»d"], str, "[1] «««\n    a\n    b\n»»»\n[2] «««\n    c»d\n»»»"),
        (["«x"], str, "«««\n    «x\n»»»"),
        ([["a"]], str, "«['a']»"),
        (("a", "b"), str, '["a", "b"]'),
        ({"a"}, str, '["a"]'),
        ([""], str, "«»"),
        (["a\n"], str, "«««\n    a\n    \n»»»"),
        ([" a "], str, "« a »"),
        (["a\r\nb"], str, "«««\n    a\r\n    b\n»»»"),
        (["a\rb"], str, "«a\rb»"),
        ("é", str, "é"),
        (Color.RED, str, "red"),
        (Point(x=1), str, '{"x": 1, "y": "d"}'),
        (Color.RED, Color, "red"),
        (Rank.LOW, Rank, "1"),
        ([Color.RED], list[Color], '["red"]'),
        ({"é": "ü"}, dict, '{"é": "ü"}'),
        (["a", "b"], list[str], '["a", "b"]'),
        ([], list[str], "[]"),
        (math.nan, float, "nan"),
        (math.inf, float, "inf"),
        (None, str | None, "None"),
        (None, int | None, "None"),
        (b"ab", bytes, "ab"),
        (b"\xff", bytes, "b'\\xff'"),
        (date(2024, 1, 2), date, "2024-01-02"),
        (Decimal("1.10"), Decimal, "1.10"),
        ({1: 2}, dict[int, int], '{"1": 2}'),
        ({1, 2}, set[int], "[1, 2]"),
        ((1, "a"), tuple[int, str], '[1, "a"]'),
        (Trip(1, ["x"]), Trip, '{"a": 1, "b": ["x"], "c": null, "d": null}'),
        (Point(x=1), Point, '{"x": 1, "y": "d"}'),
        (Aliased(SIZE=1), Aliased, '{"size": 1}'),
        (["a"], str | None, '["a"]'),
        (["a"], str | list[str], '["a"]'),
        (1e22, float, "1e+22"),
        (1e-7, float, "1e-07"),
        (True, bool, "True"),
        (10**30, int, "1000000000000000000000000000000"),
        (2.0, float, "2.0"),
        ([2.0], list[float], "[2.0]"),
        (timedelta(days=1), timedelta, "P1D"),
        (UUID(int=5), UUID, "00000000-0000-0000-0000-000000000005"),
        ("x", Any, "x"),
        ("Hello, world.", int | str, "Hello, world."),
        ("None", int | str, "None"),
        ({"b": 1, "a": {"c": [1, 2]}}, dict, '{"b": 1, "a": {"c": [1, 2]}}'),
        (int, Any, "<class 'int'>"),
        ("x = 1", Code, "x = 1"),
        ("r", Reasoning, "r"),
    ],
)
def test_a_value_is_written_as_dspy_writes_it(value: object, annotation: Any, text: str) -> None:
    assert write_value(value, annotation) == text


@each_case(
    ("value", "annotation", "dspy", "text"),
    [
        (" a", str, " a", "\\ a"),
        ("a\n", str, "a\n", "a\n\\"),
        ("None", str | None, "None", "\\None"),
        ("5", str | int | None, "5", "\\5"),
        ('{"content": "x"}', Reasoning, '{"content": "x"}', '\\{"content": "x"}'),
        ("3", int | str, "3", '"3"'),
        ("3", Any, "3", '"3"'),
        (" a", Any, " a", '" a"'),
        ("a [b]", Any, "a [b]", '"a [b]"'),
        (Decimal("1.2345678901234567890123"), Decimal, "1.2345678901234567890123", '"1.2345678901234567890123"'),
        ("1", Literal[1, "1"], "1", '"1"'),
        (Level.TEXT, Level, "1", '"1"'),
        (Level.SPACE, Level, " x ", '" x "'),
        (Level.LIST, Level, "[1, 2]", "LIST"),
        (math.nan, float | str, "nan", "NaN"),
        ([math.nan, math.inf], list[float], "[null, null]", "[NaN, Infinity]"),
        ("1", Literal[1, "1", '"1"'], "1", 'Literal["1"]'),
        (Code(" x"), Code, " x", "````python\n x\n````"),
    ],
)
def test_a_row_of_the_table_is_written_differently(value: object, annotation: Any, dspy: str, text: str) -> None:
    assert write_value(value, annotation) == text != dspy


def test_a_value_without_a_text_is_an_option_error() -> None:
    with pytest.raises(OptionError, match=r"^\S+: int \S+.* cannot be written as a text"):
        write_value(10**5_000, int)


# -- round trip -----------------------------------------------------------------------------------------------

_PIECES: Final = (
    *("[[ ## a ## ]]", "\n", "\r", " ", "\\", '"', "'", "`", "```", "{", "}", "[", "]", ",", ":", "None", "null"),
    *("True", "1", "3.5", "-", "<a>", "Literal[", "«", "x", "é", "\u2028", "nan", "«««"),
)
PIECES: Final = st.lists(st.sampled_from(_PIECES), max_size=7).map("".join)
TEXTS: Final = PIECES | st.text(max_size=20)
JSON: Final = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=8,
)
POINTS: Final = st.builds(Point, x=st.integers(), y=TEXTS)
TRIPS: Final = st.builds(
    Trip, st.integers(), st.lists(TEXTS, max_size=3), st.none() | TEXTS, st.none() | TEXTS | st.integers()
)
PLANS: Final = st.builds(
    Plan,
    name=TEXTS,
    rank=st.sampled_from(Rank),
    code=TEXTS.map(Code),
    points=st.lists(POINTS, max_size=2),
    extra=st.dictionaries(TEXTS, TEXTS | st.integers() | st.none(), max_size=2),
    score=st.none() | st.floats(allow_nan=False),
)
MEMBERS: Final[tuple[Any, ...]] = (
    *(1, "1", "None", None, True, "True", " x ", "a\nb", '"1"', "'a'", "a", "Literal[a]", Color.RED),
)
LITERAL: Final[Any] = Literal[MEMBERS]

ROUND_TRIPS: Final[dict[str, tuple[Any, st.SearchStrategy[Any]]]] = {
    "str": (str, TEXTS),
    "Reasoning": (Reasoning, TEXTS.map(Reasoning)),
    "Code": (Code["sql"], TEXTS.map(Code["sql"])),
    "str | None": (str | None, st.none() | TEXTS),
    "str | int | None": (str | int | None, st.none() | st.integers() | TEXTS),
    "str | float | list[int] | None": (
        str | float | list[int] | None,
        st.none() | st.floats() | st.lists(st.integers(), max_size=2) | TEXTS,
    ),
    "int | str": (int | str, st.integers() | TEXTS),
    "bool | str": (bool | str, st.booleans() | TEXTS),
    "Code | None": (Code | None, st.none() | TEXTS.map(Code)),
    "Any": (Any, JSON),
    "bool": (bool, st.booleans()),
    "int": (int, st.integers()),
    "int | None": (int | None, st.none() | st.integers()),
    "float": (float, st.floats()),
    "Color": (Color, st.sampled_from(Color)),
    "Color | None": (Color | None, st.none() | st.sampled_from(Color)),
    "Level": (Level, st.sampled_from(Level)),
    "Rank": (Rank, st.sampled_from(Rank)),
    "Rank | None": (Rank | None, st.none() | st.sampled_from(Rank)),
    "Word": (Word, st.sampled_from(Word)),
    "Literal": (LITERAL, st.sampled_from(MEMBERS)),
    "list[str]": (list[str], st.lists(TEXTS, max_size=3)),
    "list[str | None]": (list[str | None], st.lists(st.none() | TEXTS, max_size=3)),
    "list[Rank]": (list[Rank], st.lists(st.sampled_from(Rank), max_size=3)),
    "list[float]": (list[float], st.lists(st.floats(), max_size=3)),
    "tuple[int, str]": (tuple[int, str], st.tuples(st.integers(), TEXTS)),
    "set[str]": (set[str], st.sets(TEXTS, max_size=3)),
    "dict[str, JSON]": (dict[str, Any], st.dictionaries(TEXTS, JSON, max_size=3)),
    "dict[int, str]": (dict[int, str], st.dictionaries(st.integers(), TEXTS, max_size=3)),
    "bytes": (bytes, st.binary(max_size=4) | TEXTS.map(str.encode)),
    "date": (date, st.dates()),
    "datetime": (datetime, st.datetimes()),
    "Decimal": (Decimal, st.decimals(allow_nan=False, allow_infinity=False)),
    "UUID": (UUID, st.uuids()),
    "Point": (Point, POINTS),
    "Trip": (Trip, TRIPS),
    "Pair": (Pair, st.builds(Pair, st.integers(), TEXTS)),
    "Plan": (Plan, PLANS),
    "Point | Trip | None": (Point | Trip | None, st.none() | POINTS | TRIPS),
    "list[Plan]": (list[Plan], st.lists(PLANS, max_size=2)),
}


def _is_same(parsed: object, value: object) -> bool:
    return type(parsed) is type(value) and (parsed == value or repr(parsed) == repr(value))


@pytest.mark.parametrize("name", ROUND_TRIPS)
@given(data=st.data())
@examples(150)
def test_a_value_is_read_back_from_its_text_and_its_json(name: str, data: st.DataObject) -> None:
    annotation, values = ROUND_TRIPS[name]
    value = data.draw(values)
    section = escape_markers(write_value(value, annotation))
    assert section == section.strip()
    assert not any(line.strip().startswith("[[ ## a ## ]]") for line in section.splitlines())
    assert _is_same(parse_value(unescape_markers(section), annotation), value)
    if _has_own_json(value):
        json_value = json.loads(json.dumps(as_json_value(value)))
        assert _is_same(parse_value(json_value, annotation, is_json=True), value)


def _has_own_json(value: object) -> bool:
    """Returns False for bytes that are not UTF-8, and for a member with the JSON of another member."""
    return value is not Level.LIST and not (isinstance(value, bytes) and as_json_value(value).startswith("b"))
