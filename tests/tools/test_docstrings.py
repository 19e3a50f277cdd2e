"""Docstring sections as descriptions of parameters."""

from __future__ import annotations

import functools
import sys
from typing import Annotated, Any

import pytest
from pydantic import BaseModel, Field

from agentkit import MissingExtraError, Tool
from tests.cases import each_case

GOOGLE = """Find places near the user.

Looks at the map first.

Args:
    keyword (str): What to look for,
        in any language.
    radius: Meters: at most 5000.

Returns:
    Addresses.

Raises:
    ValueError: If there is no map.
"""
NUMPY = """Find places near the user.

Looks at the map first.

Parameters
----------
keyword : str
    What to look for,
    in any language.
radius : int, optional
    Meters: at most 5000.

Returns
-------
list of str
    Addresses.
"""
RST = """Find places near the user.

Looks at the map first.

:param str keyword: What to look for,
    in any language.
:param radius: Meters: at most 5000.
:type radius: int
:returns: Addresses.
"""


def search(keyword: str, radius: int = 500) -> str:
    return keyword * radius


def with_docstring(docstring: str) -> Any:
    @functools.wraps(search)
    def copy(keyword: str, radius: int = 500) -> str:
        return search(keyword, radius)

    copy.__doc__ = docstring
    return copy


def descriptions(tool: Tool) -> dict[str, str | None]:
    return {name: schema.get("description") for name, schema in tool.parameters["properties"].items()}


@each_case("docstring", [GOOGLE, NUMPY, RST])
def test_sections_of_each_style_describe_the_parameters(docstring: str) -> None:
    tool = Tool.from_function(with_docstring(docstring), parse_docstring=True)
    assert tool.description == "Find places near the user.\n\nLooks at the map first."
    assert descriptions(tool) == {
        "keyword": "What to look for,\nin any language.",
        "radius": "Meters: at most 5000.",
    }


def test_without_the_option_the_docstring_is_the_description() -> None:
    tool = Tool.from_function(with_docstring(GOOGLE))
    assert tool.description == GOOGLE.strip()
    assert descriptions(tool) == {"keyword": None, "radius": None}


@each_case(
    ("docstring", "description", "keyword"),
    [
        ("", "", None),
        ("Just text: with a colon.\n\nMore :text:.", "Just text: with a colon.\n\nMore :text:.", None),
        ("Args:\n        keyword: The word.\n    ", "", "The word."),
        ("\n    Args:\n        keyword: The word.\n    ", "", "The word."),
        ("Find.\n\nArgs:\n    no colon here\n", "Find.\n\nArgs:\n    no colon here", None),
        ("Find.\n\nArgs:\n    keyword: The word.\n\nBe brief.", "Find.\n\nBe brief.", "The word."),
        ("Find.\n\nArgs:\n    keyword: The word.\n\nA note.", "Find.\n\nA note.", "The word."),
        ("Find.\n\nArgs:\n    keywrod: A typo.\n", "Find.", None),
        ("Find.\n\nParameters\n----------\nkeyword, radius\n    Both.\n", "Find.", "Both."),
        ("Find.\n:param keyword: The word.", "Find.", "The word."),
    ],
)
def test_unusual_docstrings_are_read_as_expected(docstring: str, description: str, keyword: str | None) -> None:
    tool = Tool.from_function(with_docstring(docstring), parse_docstring=True)
    assert tool.description == description
    assert descriptions(tool)["keyword"] == keyword


class Point(BaseModel):
    x: int


def test_a_description_in_the_annotation_has_priority() -> None:
    def go(
        to: Annotated[str, Field(description="From the field.")],
        at: Point,
        by: Annotated[str, Field(alias="means")] = "bus",
    ) -> None:
        """Go.

        Args:
            to: From the docstring.
            at: Where from.
            by: Bus or train.
        """

    properties = Tool.from_function(go, parse_docstring=True).parameters["properties"]
    assert properties["to"]["description"] == "From the field."
    assert properties["at"]["description"] == "Where from."
    assert properties["means"]["description"] == "Bus or train."


def test_a_description_of_the_caller_has_priority() -> None:
    tool = Tool.from_function(with_docstring(GOOGLE), description="Mine.", parse_docstring=True)
    assert tool.description == "Mine."
    assert descriptions(tool)["keyword"]


class Adder:
    """Adds numbers.

    Args:
        base: Of the class, not of the tool.
    """

    def __call__(self, number: int) -> int:
        """Adds one.

        Args:
            number: Any number.
        """
        return number + 1


def test_objects_and_partials_have_the_docstring_of_their_function() -> None:
    tool = Tool.from_function(Adder(), parse_docstring=True)
    assert tool.description == "Adds numbers."
    assert tool.parameters["properties"]["number"]["description"] == "Any number."
    half = Tool.from_function(functools.partial(with_docstring(GOOGLE), "x"), name="half", parse_docstring=True)
    assert half.description.startswith("Find places")
    assert descriptions(half) == {"radius": "Meters: at most 5000."}
    assert Tool.from_function(functools.partial(with_docstring(RST), "x"), name="half").description == RST.strip()


def test_a_missing_extra_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "docstring_parser", None)
    for docstring in (GOOGLE, "", "Just text."):
        with pytest.raises(MissingExtraError, match=r"agentkit-middleware\[tools\]"):
            Tool.from_function(with_docstring(docstring), parse_docstring=True)
    assert Tool.from_function(with_docstring(GOOGLE)).description == GOOGLE.strip()
