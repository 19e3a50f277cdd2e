"""Texts about fields in prompts. The expected texts are those of DSPy 3.4.1."""

# ruff: noqa: UP007, UP045 - the old spellings of types are test cases

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime, timedelta
from decimal import Decimal
from enum import Enum
from types import GenericAlias
from typing import Annotated, Any, Final, Literal, Optional, Union
from uuid import UUID

import pytest
from pydantic import BaseModel, Field
from typing_extensions import TypedDict

from agentkit import AudioBlock, DocumentBlock, ImageBlock, OptionError, Tool, ToolUseBlock
from agentkit.prompts.field_texts import field_list, list_entry, placeholder, schema_text, type_requirement
from agentkit.prompts.field_types import Code, History, Reasoning
from agentkit.prompts.fields import InputField, OutputField
from agentkit.prompts.signature import Signature
from tests.cases import each_case


class Color(Enum):
    RED = "red"
    DARK_BLUE = "dark blue"


class Level(Enum):
    LOW = 1
    HIGH = 2


class Place(BaseModel):
    """A place on a map."""

    name: str = Field(description="Größe – name")
    type: str = "city"
    near: list[Place] = []


class Trip(TypedDict):
    day: date
    stops: list[Place]


C_CODE: Final[Any] = Code["c"]

OUTPUTS: Final[list[tuple[Any, dict[str, Any], str, str, str]]] = [
    (str, {}, "(str): ", "", ""),
    (str, {"desc": "the text"}, "(str): the text", "", ""),
    (str, {"description": "from description"}, "(str): from description", "", ""),
    (str, {"desc": "a", "description": "b"}, "(str): a", "", ""),
    (str, {"desc": "two\nlines"}, "(str): two\nlines", "", ""),
    (str, {"desc": "ends "}, "(str): ends ", "", ""),
    (
        str,
        {"min_length": 1, "max_length": 5},
        "(str): \nConstraints: minimum length: 1, maximum length: 5",
        "",
        "",
    ),
    (str, {"pattern": "^a"}, "(str): ", "", ""),
    (
        int,
        {"ge": 0, "le": 10},
        "(int): \nConstraints: greater than or equal to: 0, less than or equal to: 10",
        "must be a single int value",
        "(must be formatted as a valid Python int)",
    ),
    (
        int,
        {"le": 10, "ge": 0, "desc": "order"},
        "(int): order\nConstraints: less than or equal to: 10, greater than or equal to: 0",
        "must be a single int value",
        "(must be formatted as a valid Python int)",
    ),
    (
        float,
        {"gt": 0.5, "lt": 1000000.0},
        "(float): \nConstraints: greater than: 0.5, less than: 1000000.0",
        "must be a single float value",
        "(must be formatted as a valid Python float)",
    ),
    (
        int,
        {"multiple_of": 3},
        "(int): \nConstraints: a multiple of the given number: 3",
        "must be a single int value",
        "(must be formatted as a valid Python int)",
    ),
    (
        float,
        {"allow_inf_nan": False},
        "(float): \nConstraints: allow 'inf', '-inf', 'nan' values: False",
        "must be a single float value",
        "(must be formatted as a valid Python float)",
    ),
    (
        list[int],
        {"min_length": 1},
        "(list[int]): \nConstraints: minimum length: 1",
        'must adhere to the JSON schema: {"type": "array", "items": {"type": "integer"}}',
        "(must be formatted as a valid Python list[int])",
    ),
    (bool, {}, "(bool): ", "must be True or False", "(must be formatted as a valid Python bool)"),
    (bool, {"default": True}, "(bool): ", "must be True or False", "(must be formatted as a valid Python bool)"),
    (
        bytes,
        {},
        "(bytes): ",
        'must adhere to the JSON schema: {"type": "string", "format": "binary"}',
        "(must be formatted as a valid Python bytes)",
    ),
    (Color, {}, "(Color): ", "must be one of: red; dark blue", "(must be formatted as a valid Python Color)"),
    (Level, {}, "(Level): ", "must be one of: 1; 2", "(must be formatted as a valid Python Level)"),
    (
        Literal["a", "b"],
        {},
        "(Literal['a', 'b']): ",
        "must exactly match (no extra characters) one of: a; b",
        "(must be formatted as a valid Python Literal['a', 'b'])",
    ),
    (
        Literal["it's", 2, True],
        {},
        '(Literal["it\'s", 2, True]): ',
        "must exactly match (no extra characters) one of: it's; 2; True",
        '(must be formatted as a valid Python Literal["it\'s", 2, True])',
    ),
    (
        Optional[Literal["a"]],
        {},
        "(Union[Literal['a'], NoneType]): ",
        ('must adhere to the JSON schema: {"anyOf": [{"type": "string", "const": "a"}, {"type": "null"}]}'),
        "(must be formatted as a valid Python Union[Literal['a'], NoneType])",
    ),
    (
        int | None,
        {},
        "(Union[int, NoneType]): ",
        ('must adhere to the JSON schema: {"anyOf": [{"type": "integer"}, {"type": "null"}]}'),
        "(must be formatted as a valid Python Union[int, NoneType])",
    ),
    (
        Optional[str],
        {},
        "(Union[str, NoneType]): ",
        ('must adhere to the JSON schema: {"anyOf": [{"type": "string"}, {"type": "null"}]}'),
        "(must be formatted as a valid Python Union[str, NoneType])",
    ),
    (
        list[str],
        {"desc": "items"},
        "(list[str]): items",
        'must adhere to the JSON schema: {"type": "array", "items": {"type": "string"}}',
        "(must be formatted as a valid Python list[str])",
    ),
    (
        dict[str, float],
        {},
        "(dict[str, float]): ",
        ('must adhere to the JSON schema: {"type": "object", "additionalProperties": {"type": "number"}}'),
        "(must be formatted as a valid Python dict[str, float])",
    ),
    (
        tuple[int, str],
        {},
        "(tuple[int, str]): ",
        (
            'must adhere to the JSON schema: {"type": "array", "maxItems": 2, "minItems": 2, '
            '"prefixItems": [{"type": "integer"}, {"type": "string"}]}'
        ),
        "(must be formatted as a valid Python tuple[int, str])",
    ),
    (
        set[int],
        {},
        "(set[int]): ",
        ('must adhere to the JSON schema: {"type": "array", "items": {"type": "integer"}, "uniqueItems": true}'),
        "(must be formatted as a valid Python set[int])",
    ),
    (Any, {}, "(Any): ", "must adhere to the JSON schema: {}", "(must be formatted as a valid Python Any)"),
    (
        dict[str, Any],
        {},
        "(dict[str, Any]): ",
        'must adhere to the JSON schema: {"type": "object", "additionalProperties": true}',
        "(must be formatted as a valid Python dict[str, Any])",
    ),
    (
        date,
        {},
        "(date): ",
        'must adhere to the JSON schema: {"type": "string", "format": "date"}',
        "(must be formatted as a valid Python date)",
    ),
    (
        datetime,
        {},
        "(datetime): ",
        'must adhere to the JSON schema: {"type": "string", "format": "date-time"}',
        "(must be formatted as a valid Python datetime)",
    ),
    (
        timedelta,
        {},
        "(timedelta): ",
        'must adhere to the JSON schema: {"type": "string", "format": "duration"}',
        "(must be formatted as a valid Python timedelta)",
    ),
    (
        Decimal,
        {},
        "(Decimal): ",
        ('must adhere to the JSON schema: {"anyOf": [{"type": "number"}, {"type": "string"}]}'),
        "(must be formatted as a valid Python Decimal)",
    ),
    (
        UUID,
        {},
        "(UUID): ",
        'must adhere to the JSON schema: {"type": "string", "format": "uuid"}',
        "(must be formatted as a valid Python UUID)",
    ),
    (
        Place,
        {"desc": "where"},
        "(Place): where",
        (
            'must adhere to the JSON schema: {"$defs": {"Place": {"type": "object", '
            '"description": "A place on a map.", "properties": {"type": {"type": "string", '
            '"default": "city", "title": "Type"}, "name": {"type": "string", "description": '
            '"Größe – name", "title": "Name"}, "near": {"type": "array", "default": [], '
            '"items": {"$ref": "#/$defs/Place"}, "title": "Near"}}, "required": ["name"], '
            '"title": "Place"}}, "$ref": "#/$defs/Place"}'
        ),
        "(must be formatted as a valid Python Place)",
    ),
    (
        list[Place],
        {},
        "(list[Place]): ",
        (
            'must adhere to the JSON schema: {"type": "array", "$defs": {"Place": {"type": '
            '"object", "description": "A place on a map.", "properties": {"type": {"type": '
            '"string", "default": "city", "title": "Type"}, "name": {"type": "string", '
            '"description": "Größe – name", "title": "Name"}, "near": {"type": "array", '
            '"default": [], "items": {"$ref": "#/$defs/Place"}, "title": "Near"}}, '
            '"required": ["name"], "title": "Place"}}, "items": {"$ref": "#/$defs/Place"}}'
        ),
        "(must be formatted as a valid Python list[Place])",
    ),
    (
        Trip,
        {},
        "(Trip): ",
        (
            'must adhere to the JSON schema: {"type": "object", "$defs": {"Place": {"type": '
            '"object", "description": "A place on a map.", "properties": {"type": {"type": '
            '"string", "default": "city", "title": "Type"}, "name": {"type": "string", '
            '"description": "Größe – name", "title": "Name"}, "near": {"type": "array", '
            '"default": [], "items": {"$ref": "#/$defs/Place"}, "title": "Near"}}, '
            '"required": ["name"], "title": "Place"}}, "properties": {"day": {"type": '
            '"string", "format": "date", "title": "Day"}, "stops": {"type": "array", '
            '"items": {"$ref": "#/$defs/Place"}, "title": "Stops"}}, "required": ["day", '
            '"stops"], "title": "Trip"}'
        ),
        "(must be formatted as a valid Python Trip)",
    ),
    (
        dict[Color, list[Literal["x"]]],
        {},
        "(dict[Color, list[Literal['x']]]): ",
        (
            'must adhere to the JSON schema: {"type": "object", "$defs": {"Color": {"type": '
            '"string", "enum": ["red", "dark blue"], "title": "Color"}}, '
            '"additionalProperties": {"type": "array", "items": {"type": "string", "const": '
            '"x"}}, "propertyNames": {"$ref": "#/$defs/Color"}}'
        ),
        "(must be formatted as a valid Python dict[Color, list[Literal['x']]])",
    ),
    (
        Union[int, list[str]],
        {},
        "(Union[int, list[str]]): ",
        (
            'must adhere to the JSON schema: {"anyOf": [{"type": "integer"}, {"type": '
            '"array", "items": {"type": "string"}}]}'
        ),
        "(must be formatted as a valid Python Union[int, list[str]])",
    ),
    (
        Annotated[int, Field(ge=3)],
        {},
        "(int): ",
        "must be a single int value",
        "(must be formatted as a valid Python int)",
    ),
    (
        Annotated[int, Field(ge=3)],
        {"le": 5},
        "(int): \nConstraints: less than or equal to: 5",
        "must be a single int value",
        "(must be formatted as a valid Python int)",
    ),
    (
        list[Annotated[int, Field(ge=3)]],
        {},
        "(list[Annotated[int, annotation=NoneType required=True metadata=[Ge(ge=3)]]]): ",
        ('must adhere to the JSON schema: {"type": "array", "items": {"type": "integer", "minimum": 3}}'),
        (
            "(must be formatted as a valid Python list[Annotated[int, annotation=NoneType "
            "required=True metadata=[Ge(ge=3)]]])"
        ),
    ),
    (Reasoning, {}, "(str): ", "", "(must be formatted as a valid Python str)"),
    (Reasoning, {"desc": "why"}, "(str): why", "", "(must be formatted as a valid Python str)"),
    (
        Code,
        {},
        (
            "(Code): \n    Type description of Code: Code represented in a string, specified "
            "in the `code` field. If this is an output field, the code field should follow "
            "the markdown code block format, e.g. \n```python\n{code}\n```\nProgramming "
            "language: python"
        ),
        "",
        "(must be formatted as a valid Python Code)",
    ),
    (
        Code["SQL"],
        {"desc": "the query"},
        (
            "(Code_SQL): the query\n    Type description of Code_SQL: Code represented in a "
            "string, specified in the `code` field. If this is an output field, the code "
            "field should follow the markdown code block format, e.g. "
            "\n```sql\n{code}\n```\nProgramming language: SQL"
        ),
        "",
        "(must be formatted as a valid Python Code_SQL)",
    ),
    (
        list[ToolUseBlock],
        {},
        (
            "(ToolCalls): \n    Type description of ToolCalls: Tool calls must be a JSON "
            "object with `tool_calls`, a list of calls. Each call must include `name` and "
            '`args`. Example: {"tool_calls": [{"name": "search", "args": {"query": "cats"}}]}'
        ),
        (
            'must adhere to the JSON schema: {"type": "object", "$defs": {"ToolCall": '
            '{"type": "object", "properties": {"args": {"type": "object", '
            '"additionalProperties": true, "title": "Args"}, "name": {"type": "string", '
            '"title": "Name"}}, "required": ["name", "args"], "title": "ToolCall"}}, '
            '"properties": {"tool_calls": {"type": "array", "items": {"$ref": '
            '"#/$defs/ToolCall"}, "title": "Tool Calls"}}, "required": ["tool_calls"], '
            '"title": "ToolCalls"}'
        ),
        '(must be a JSON object like {"tool_calls": [{"name": "...", "args": {...}}]})',
    ),
    (
        list[ToolUseBlock],
        {"desc": "calls"},
        (
            "(ToolCalls): calls\n    Type description of ToolCalls: Tool calls must be a JSON "
            "object with `tool_calls`, a list of calls. Each call must include `name` and "
            '`args`. Example: {"tool_calls": [{"name": "search", "args": {"query": "cats"}}]}'
        ),
        (
            'must adhere to the JSON schema: {"type": "object", "$defs": {"ToolCall": '
            '{"type": "object", "properties": {"args": {"type": "object", '
            '"additionalProperties": true, "title": "Args"}, "name": {"type": "string", '
            '"title": "Name"}}, "required": ["name", "args"], "title": "ToolCall"}}, '
            '"properties": {"tool_calls": {"type": "array", "items": {"$ref": '
            '"#/$defs/ToolCall"}, "title": "Tool Calls"}}, "required": ["tool_calls"], '
            '"title": "ToolCalls"}'
        ),
        '(must be a JSON object like {"tool_calls": [{"name": "...", "args": {...}}]})',
    ),
]
"""Type, options, the list entry after the name, the note of the placeholder, and the type in the reminder."""

INPUTS: Final[list[tuple[Any, dict[str, Any], str]]] = [
    (Tool, {"desc": "t"}, "(Tool): t"),
    (list[Tool], {}, "(list[Tool]): "),
    (History, {}, "(History): "),
    (ImageBlock, {}, "(Image): "),
    (list[ImageBlock], {"desc": "pictures"}, "(list[Image]): pictures"),
    (
        DocumentBlock,
        {},
        (
            "(Document): \n    Type description of Document: A document containing text "
            "content that can be referenced and cited. Include the full text content and "
            "optionally a title for proper referencing."
        ),
    ),
    (
        list[DocumentBlock],
        {"desc": "d", "max_length": 3},
        (
            "(list[Document]): d\n    Type description of Document: A document containing "
            "text content that can be referenced and cited. Include the full text content "
            "and optionally a title for proper referencing.\nConstraints: maximum length: 3"
        ),
    ),
    (
        GenericAlias(dict, (str, C_CODE)),
        {},
        (
            "(dict[str, Code_c]): \n    Type description of Code_c: Code represented in a "
            "string, specified in the `code` field. If this is an output field, the code "
            "field should follow the markdown code block format, e.g. "
            "\n```c\n{code}\n```\nProgramming language: c"
        ),
    ),
    (AudioBlock, {}, "(Audio): "),
    (
        Optional[C_CODE],
        {},
        (
            "(Union[Code_c, NoneType]): \n    Type description of Code_c: Code represented in "
            "a string, specified in the `code` field. If this is an output field, the code "
            "field should follow the markdown code block format, e.g. "
            "\n```c\n{code}\n```\nProgramming language: c"
        ),
    ),
]
"""Type, options, and the list entry after the name, for types that outputs do not have."""


@each_case(("annotation", "options", "entry", "note", "requirement"), OUTPUTS)
def test_an_output_has_the_texts_that_dspy_writes(
    annotation: Any, options: dict[str, Any], entry: str, note: str, requirement: str
) -> None:
    field = OutputField(**options).with_type("x", annotation)
    assert list_entry(1, field) == f"1. `x` {entry}"
    assert placeholder(field) == ("{x}        # note: the value you produce " + note if note else "{x}")
    assert type_requirement(field) == requirement


ENTRIES: Final = [*INPUTS, *(row[:3] for row in OUTPUTS)]


@each_case(("annotation", "options", "entry"), ENTRIES)
def test_an_input_has_the_entry_that_dspy_writes_and_a_placeholder_without_note(
    annotation: Any, options: dict[str, Any], entry: str
) -> None:
    field = InputField(**options).with_type("x", annotation)
    assert list_entry(12, field) == f"12. `x` {entry}"
    assert placeholder(field) == "{x}"


def test_the_list_of_fields_keeps_the_space_of_each_entry_but_the_last() -> None:
    signature = Signature("first, second: int -> third")
    assert field_list(signature.input_fields) == "1. `first` (str): \n2. `second` (int):"
    assert field_list(signature.output_fields) == "1. `third` (str):"
    assert field_list({}) == ""


def test_a_nested_code_type_is_a_text_in_the_schema() -> None:
    field = OutputField().with_type("x", GenericAlias(dict, (str, C_CODE)))
    assert schema_text(field) == '{"type": "object", "additionalProperties": {"type": "string"}}'


def test_an_output_whose_type_has_no_schema_is_refused() -> None:
    field = OutputField().with_type("act", Callable[[int], str])
    with pytest.raises(OptionError, match=r"^act: the type has no JSON schema .* Use a type"):
        placeholder(field)
