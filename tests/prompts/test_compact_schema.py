"""Compact listings of types, and the prompts of the JSON adapter with the compact schema style."""

from __future__ import annotations

import datetime
import enum
import typing
from typing import Any, Final, Literal, Optional

import pytest
from pydantic import BaseModel, Field

from agentkit import ImageBlock, OptionError, ParseError, TextBlock, ToolUseBlock, URLSource, load_provider
from agentkit.prompts import Code, InputField, JSONAdapter, OutputField, Reasoning, Signature
from agentkit.prompts.compact_schema import compact_type
from tests.cases import each_case


class Color(enum.Enum):
    RED = "red"


class Stop(BaseModel):
    """A stop.

    On a trip."""

    city: str
    days: int | None = Field(default=None, description="Number of nights.")


class Trip(BaseModel):
    first: Stop
    last: Optional[Stop] = Field(default=None, alias="end")  # noqa: UP045 - DSPy's spelling of a union with None
    stops: list[Stop] = []
    by_name: dict[str, list[float]] = {}
    kind: Literal["a", 1, True] | None = "a"


class Nothing(BaseModel):
    pass


class Tree(BaseModel):
    inner: list[Tree] = []


class Pair(BaseModel):
    left: Stop
    right: Stop


@each_case(
    ("annotation", "expected"),
    [
        (str, "string"),
        (int, "int"),
        (float, "float"),
        (bool, "boolean"),
        (Any, "Any"),
        (Color, "Color"),
        (datetime.date, "date"),
        (list, "list"),
        (vars(typing)["List"], "List"),
        (dict, "dict"),
        (list[str], "string[]"),
        (list[list[int]], "int[][]"),
        (int | None, "int or null"),
        (int | str | None, "int or string or null"),
        (list[int | None], "int or null[]"),
        (dict[str, list[int]], "dict[string, int[]]"),
        (tuple[int, str], "tuple"),
        (set[int], "set"),
        (Literal["a", 1, True, False], '"a" or 1 or true or false'),
        (Code, "{\n  code: string,\n}"),
        (Code["sql"], "{\n  code: string,\n}"),
        (Reasoning, "{\n  content: string,\n}"),
        (Nothing, "{\n  # No fields defined\n}"),
        (
            list[ToolUseBlock],
            "{\n  tool_calls: [\n    {\n      id: string or null,\n      name: string,\n"
            "      args: dict[string, Any],\n    }\n  ],\n  tool_call_results: Any or null,\n}",
        ),
        (
            Trip,
            "{\n"
            "  # A stop.\n"
            "  # On a trip.\n"
            "  first:   {\n"
            "    city: string,\n"
            "    # Number of nights.\n"
            "    days: int or null,\n"
            "  },\n"
            "  # alias: end\n"
            "  # A stop.\n"
            "  # On a trip.\n"
            "  last:   {\n"
            "    city: string,\n"
            "    # Number of nights.\n"
            "    days: int or null,\n"
            "  } or null,\n"
            "  stops: [\n"
            "    {\n"
            "      city: string,\n"
            "      # Number of nights.\n"
            "      days: int or null,\n"
            "    }\n"
            "  ],\n"
            "  by_name: dict[string, float[]],\n"
            '  kind: "a" or 1 or true or null,\n'
            "}",
        ),
        (
            list[Stop],
            "[\n  {\n    city: string,\n    # Number of nights.\n    days: int or null,\n  }\n]",
        ),
    ],
)
def test_a_type_has_exactly_this_listing(annotation: Any, expected: str) -> None:
    assert compact_type(annotation) == expected


def test_a_docstring_precedes_the_model_of_a_field() -> None:
    assert compact_type(Stop).startswith("# A stop.\n# On a trip.\n{\n  city: string,")


def test_a_model_may_occur_twice() -> None:
    assert compact_type(Pair).count("city: string") == 2


def test_a_model_that_contains_itself_is_refused() -> None:
    with pytest.raises(OptionError, match=r"^tree: the pydantic model Tree contains itself"):
        compact_type(Tree, "tree")


class Plan(Signature):
    """Plan."""

    trip: Stop = InputField()
    code: Code = InputField()
    note: str = InputField()
    stops: list[Stop] = OutputField()
    done: bool = OutputField()


COMPACT: Final = JSONAdapter(schema_style="compact")
INPUTS: Final[dict[str, Any]] = {"trip": Stop(city="Ålesund"), "code": Code("x = 1"), "note": "n"}


def test_the_structure_lists_the_types_of_the_outputs() -> None:
    assert COMPACT.format_field_structure(Plan) == (
        "All interactions will be structured in the following way, with the appropriate values filled in.\n\n"
        "[[ ## trip ## ]]\n{trip}\n\n"
        "[[ ## code ## ]]\n{code}\n\n"
        "[[ ## note ## ]]\n{note}\n\n"
        "[[ ## stops ## ]]\nOutput field `stops` should be of type: [\n"
        "  {\n    city: string,\n    # Number of nights.\n    days: int or null,\n  }\n]\n\n"
        "[[ ## done ## ]]\nOutput field `done` should be of type: boolean\n\n"
        "[[ ## completed ## ]]"
    )


def test_models_and_code_are_indented_json_in_inputs() -> None:
    text = COMPACT.format(Plan, INPUTS)[-1].text
    assert text.startswith(
        '[[ ## trip ## ]]\n{\n  "city": "Ålesund",\n  "days": null\n}\n\n'
        '[[ ## code ## ]]\n"x = 1"\n\n[[ ## note ## ]]\nn\n\nRespond with a JSON object'
    )


def test_the_json_style_is_the_default() -> None:
    assert JSONAdapter() == JSONAdapter(schema_style="json")
    assert '[[ ## trip ## ]]\n{"city": "Ålesund", "days": null}\n\n' in JSONAdapter().format(Plan, INPUTS)[-1].text


def test_an_unknown_style_is_refused() -> None:
    with pytest.raises(OptionError, match=r"^schema_style: "):
        JSONAdapter(schema_style="baml")  # type: ignore[arg-type]


class Shown(BaseModel):
    caption: str
    picture: ImageBlock


def test_a_model_with_media_keeps_its_media() -> None:
    class Look(Signature):
        """Look."""

        shown: Shown = InputField()
        answer: str = OutputField()

    picture = ImageBlock(URLSource("https://example.com/a.png"))
    content = COMPACT.format(Look, {"shown": Shown(caption="c", picture=picture)})[-1].content
    assert content[:2] == (TextBlock('[[ ## shown ## ]]\n{"caption": "c", "picture": "'), picture)


def test_replies_and_requests_are_those_of_the_json_style() -> None:
    outputs = {"stops": [Stop(city="a")], "done": True}
    text = COMPACT.format_assistant_message_content(Plan, outputs)
    assert text == JSONAdapter().format_assistant_message_content(Plan, outputs)
    assert COMPACT.parse(Plan, text) == outputs
    with pytest.raises(ParseError):
        COMPACT.parse(Plan, "{}")
    capabilities = load_provider("openai").chat_formatter().capabilities()
    assert COMPACT.request_options(Plan, capabilities) == JSONAdapter().request_options(Plan, capabilities)
