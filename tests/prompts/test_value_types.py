"""Tests of the categories of types and of their JSON values."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum
from typing import Annotated, Any, Final, Literal, NewType, Optional, Union

import pytest
from pydantic import BaseModel, Field, RootModel, field_serializer

from agentkit import OptionError
from agentkit.prompts.field_types import Code, Reasoning
from agentkit.prompts.value_types import as_json_value, get_value_type
from tests.cases import each_case


class Color(Enum):
    RED = "red"


class Empty(Enum):
    pass


Name = NewType("Name", str)


@each_case(
    ("annotation", "category"),
    [
        (str, "text"),
        (Reasoning, "text"),
        (Name, "text"),
        (Annotated[str, Field(max_length=3)], "text"),
        (Code, "code"),
        (Code["sql"], "code"),
        (str | None, "nullable_text"),
        (Annotated[str | None, "x"], "nullable_text"),
        (Optional[Annotated[str, "x"]], "nullable_text"),  # noqa: UP045
        (str | int | None, "mixed_text"),
        (int | str, "other"),
        (int | None, "other"),
        (Optional[str], "nullable_text"),  # noqa: UP045
        (Union[str, int], "other"),  # noqa: UP007
        (Literal["a", 1], "literal"),
        (Annotated[Literal["a"], "x"], "literal"),
        (Literal["a"] | None, "other"),
        (Color, "enum"),
        (Empty, "other"),
        (list[str], "other"),
        (Any, "other"),
    ],
)
def test_a_type_has_this_category(annotation: Any, category: str) -> None:
    assert get_value_type(annotation).category == category


def test_a_type_has_its_members() -> None:
    assert get_value_type(Literal["a", 1]).members == ("a", 1)
    assert get_value_type(Color).members == (Color.RED,)
    assert get_value_type(int).members == ()


def test_the_value_type_of_the_same_annotation_is_cached() -> None:
    annotation = int | str
    assert get_value_type(annotation) is get_value_type(annotation)


@each_case(
    ("text", "annotation", "is_special"),
    [
        ("None", str, False),
        ("None", str | None, True),
        ("null", str | None, False),
        ("5", str | None, False),
        ("5", str | int | None, True),
        ("5 ", str | int | None, False),
        ("True", str | bool | None, True),
        ("true", str | int | None, False),
        ("[1]", str | list[int] | None, True),
        ('["a"]', str | list[int] | None, False),
        ('{"content": "x"}', Reasoning, True),
        ('{"content": "x", "more": 1}', Reasoning, False),
    ],
)
def test_a_text_that_reads_as_another_value_is_special(text: str, annotation: Any, is_special: bool) -> None:
    assert get_value_type(annotation).is_special(text) is is_special


class Point(BaseModel):
    x: int = Field(alias="X")


@each_case(
    ("value", "json_value"),
    [
        (Point(X=1), {"x": 1}),
        ([Color.RED, (1, 2)], ["red", [1, 2]]),
        ([math.inf], [math.inf]),
        (b"a", "a"),
        (b"\xff", "b'\\xff'"),
        ({"a": int}, {"a": "<class 'int'>"}),
        (Code(" x"), "````python\n x\n````"),
        (Reasoning("x"), "x"),
    ],
)
def test_a_value_has_this_json_value(value: object, json_value: object) -> None:
    assert as_json_value(value) == json_value


def test_a_type_that_pydantic_does_not_support_is_an_option_error() -> None:
    class Unknown:
        pass

    with pytest.raises(OptionError) as caught:
        get_value_type(list[Unknown]).validate([])
    assert caught.value.advice == "Use a type that pydantic supports."


@pytest.mark.parametrize("annotation", [dict[int], Annotated[str, Field(pattern="(")]])  # type: ignore[misc]
def test_an_invalid_type_or_constraint_is_an_option_error(annotation: Any) -> None:
    with pytest.raises(OptionError, match=r"^type: "):
        get_value_type(annotation).validate([])


class Tags(BaseModel):
    names: set[str]
    parts: list[frozenset[str]] = []


class SortedTags(BaseModel):
    names: set[str]

    @field_serializer("names")
    def write_names(self, names: set[str]) -> list[str]:
        return sorted(names, reverse=True)


@dataclass
class Box:
    names: set[str]


LETTERS: Final = frozenset("edcba")
SORTED: Final = ["a", "b", "c", "d", "e"]


@each_case(
    ("value", "json_value"),
    [
        (LETTERS, SORTED),
        ({"x": [1, (LETTERS, "y")]}, {"x": [1, [SORTED, "y"]]}),
        (frozenset({LETTERS, frozenset({"a"})}), [SORTED, ["a"]]),
        (Tags(names=set(LETTERS), parts=[LETTERS]), {"names": SORTED, "parts": [SORTED]}),
        ([Box(set(LETTERS))], [{"names": SORTED}]),
        (RootModel[set[str]](set(LETTERS)), SORTED),
        (SortedTags(names=set(LETTERS)), {"names": SORTED[::-1]}),
    ],
)
def test_the_items_of_sets_are_sorted(value: object, json_value: object) -> None:
    assert as_json_value(value) == json_value


def test_values_that_cannot_be_compared_are_written() -> None:
    class Incomparable:
        def __eq__(self, other: object) -> bool:
            raise ValueError("ambiguous")

        __hash__ = None  # type: ignore[assignment]

        def __str__(self) -> str:
            return "x"

    assert as_json_value([Incomparable(), LETTERS]) == ["x", SORTED]
