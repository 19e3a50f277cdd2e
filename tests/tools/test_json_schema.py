"""Schemas of structured output and of tools: their roots, references and checks."""

from __future__ import annotations

import threading
from typing import Any, Final, Literal

import pytest
from pydantic import BaseModel

from agentkit import MessageError, OptionError
from agentkit.provider_kit import OutputSchema
from agentkit.tools.json_schema import as_output_schema, check_schema, find_definition, has_type
from tests.cases import each_case

CITY: Final[dict[str, Any]] = {"type": "object", "properties": {"a/b~c": {"type": "string"}}}
ROOT: Final[dict[str, Any]] = {"$ref": "#/$defs/City", "$defs": {"City": CITY}}


class Node(BaseModel):
    next: Node | None = None


ROOTS: Final[dict[str, tuple[dict[str, Any], dict[str, Any]]]] = {
    "object": (CITY, CITY),
    "no type": ({"properties": {}}, {"type": "object", "properties": {}}),
    "alternatives of an object": ({"type": "object", "anyOf": [CITY]}, {"type": "object", "anyOf": [CITY]}),
    "reference": (ROOT, {**CITY, "$defs": {"City": CITY}}),
}


@each_case(("schema", "expected"), ROOTS)
def test_the_root_of_an_output_schema_becomes_an_object(schema: dict[str, Any], expected: dict[str, Any]) -> None:
    output = OutputSchema(schema, "city", "A city.", strict=False)
    assert as_output_schema(output) == OutputSchema(expected, "city", "A city.", strict=False)
    assert (as_output_schema(output) is output) is (schema == expected)


def test_the_root_of_a_model_that_contains_itself_is_an_object() -> None:
    output = as_output_schema(Node)
    assert output is not None
    node = {
        "type": "object",
        "properties": {"next": {"anyOf": [{"$ref": "#/$defs/Node"}, {"type": "null"}]}},
        "additionalProperties": False,
        "required": ["next"],
    }
    assert output.schema == {**node, "$defs": {"Node": node}}


def _wrapped(inner: dict[str, Any], **definitions: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {"value": inner},
        "required": ["value"],
        "additionalProperties": False,
        **definitions,
    }


_TREE: Final = {"type": "array", "items": {"anyOf": [{"$ref": "#"}, {"$ref": "#/items"}, {"$ref": "#/$defs/A"}]}}
_MOVED: Final = {
    "type": "array",
    "items": {
        "anyOf": [
            {"$ref": "#/properties/value"},
            {"$ref": "#/properties/value/items"},
            {"$ref": "#/$defs/A"},
        ]
    },
}


@each_case(
    ("output", "schema"),
    [
        ({"type": "array"}, _wrapped({"type": "array"})),
        ({"type": ["object", "null"]}, _wrapped({"type": ["object", "null"]})),
        ({"anyOf": [CITY]}, _wrapped({"anyOf": [CITY]})),
        ({"oneOf": [CITY]}, _wrapped({"oneOf": [CITY]})),
        ({"enum": ["a", "b"]}, _wrapped({"enum": ["a", "b"]})),
        ({"const": 1}, _wrapped({"const": 1})),
        (
            {"$ref": "#/$defs/A", "$defs": {"A": {"type": "string"}}},
            _wrapped({"$ref": "#/$defs/A"}, **{"$defs": {"A": {"type": "string"}}}),
        ),
        ({**_TREE, "definitions": {"A": CITY}}, _wrapped(_MOVED, definitions={"A": CITY})),
        (list[int], _wrapped({"type": "array", "items": {"type": "integer"}})),
        (Literal["yes", "no"], _wrapped({"type": "string", "enum": ["yes", "no"]})),
        (bool, _wrapped({"type": "boolean"})),
        (int | None, _wrapped({"anyOf": [{"type": "integer"}, {"type": "null"}]})),
    ],
)
def test_a_schema_of_another_value_becomes_the_property_of_an_object(
    output: object, schema: dict[str, Any]
) -> None:
    wrapped = as_output_schema(output)
    assert wrapped is not None
    assert wrapped.schema == schema


@pytest.mark.parametrize("output", ["json_object", {"type": "json_object"}])
def test_any_json_object_is_a_schema_of_its_own(output: object) -> None:
    schema = as_output_schema(output)
    assert schema is not None
    assert (schema.schema, schema.is_any_object) == ({"type": "object"}, True)


@pytest.mark.parametrize(
    "output", [{"type": "object"}, {"name": "json_object", "schema": {"type": "object"}, "strict": True}]
)
def test_a_schema_that_any_object_matches_is_still_a_schema(output: object) -> None:
    schema = as_output_schema(output)
    assert schema is not None
    assert (schema.schema, schema.is_any_object) == ({"type": "object"}, False)


@each_case(
    ("schema", "actual"),
    [
        ({"type": "text"}, "'text'"),
        ({"type": "x" * 60}, f"'{'x' * 60}'"),
        ({"type": "x" * 61}, f"'{'x' * 29}… (61 characters)"),
        ({"type": ["string", "text"]}, "['string', 'text']"),
        ({"type": 3}, "3"),
        ({"type": [["string"]]}, "[['string']]"),
    ],
)
def test_a_root_type_that_json_schema_does_not_define_is_refused(schema: dict[str, Any], actual: str) -> None:
    with pytest.raises(OptionError) as caught:
        as_output_schema(schema)
    assert caught.value.reason == f'the root type must be a JSON type such as "object", got {actual}'
    assert caught.value.place == "response_format"


@each_case("text", ["json", "", "JSON_OBJECT"])
def test_any_other_text_is_no_output_schema(text: str) -> None:
    with pytest.raises(OptionError, match="expected a schema, got"):
        as_output_schema(text)


def test_the_error_about_a_type_without_a_schema_is_one_line() -> None:
    with pytest.raises(OptionError) as caught:
        as_output_schema(threading.Thread)
    assert "'threading.Thread'" in caught.value.reason
    assert "\n" not in caught.value.reason


@each_case(
    ("part", "is_closed"),
    [
        ({"type": "object", "properties": {}, "additionalProperties": False}, True),
        ({"type": "object"}, False),
        ({"properties": {}}, False),
        ({"type": "string"}, True),
    ],
)
def test_a_closed_schema_has_only_closed_parts(part: dict[str, Any], *, is_closed: bool) -> None:
    schema = {"type": "object", "properties": {"a": part}, "required": ["a"], "additionalProperties": False}
    assert OutputSchema(schema).closed is is_closed


@each_case(
    ("reference", "definition"),
    [
        ("#", ROOT),
        ("#/$defs/City", CITY),
        ("#/$defs/City/properties/a~1b~0c", {"type": "string"}),
        ("#/$defs/Town", None),
        ("#/$ref/City", None),
        ("#City", None),
        ("City", None),
        (None, None),
    ],
)
def test_a_reference_leads_to_a_part_of_the_schema(reference: object, definition: object) -> None:
    assert find_definition(reference, ROOT) == definition


def test_the_type_of_a_schema_is_a_name_or_a_list_of_names() -> None:
    assert has_type({"type": "object"}, "object")
    assert has_type({"type": ["null", "object"]}, "object")
    assert not has_type({"type": ["null", "objects"]}, "object")
    assert not has_type({"type": "objects"}, "object")


def test_the_error_about_a_nested_keyword_has_its_place() -> None:
    schema = {"properties": {"a": {"anyOf": [{"items": {"properties": 5}}]}}}
    with pytest.raises(MessageError) as caught:
        check_schema(schema, "parameters")
    assert caught.value.place == "parameters.properties.a.anyOf[0].items.properties"
    assert caught.value.reason == "expected an object, got 5"
