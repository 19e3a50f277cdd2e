"""Schemas of structured output and of tools: their roots, references and checks."""

from __future__ import annotations

import threading
from typing import Any, Final

import pytest
from pydantic import BaseModel

from agentkit import MessageError, OptionError
from agentkit.provider_kit import OutputSchema
from agentkit.tools.json_schema import as_output_schema, check_schema, find_definition, has_type

CITY: Final[dict[str, Any]] = {"type": "object", "properties": {"a/b~c": {"type": "string"}}}
ROOT: Final[dict[str, Any]] = {"$ref": "#/$defs/City", "$defs": {"City": CITY}}


class Node(BaseModel):
    next: Node | None = None


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        (CITY, CITY),
        ({"properties": {}}, {"type": "object", "properties": {}}),
        ({"type": "object", "anyOf": [CITY]}, {"type": "object", "anyOf": [CITY]}),
        (ROOT, {**CITY, "$defs": {"City": CITY}}),
    ],
    ids=["object", "no type", "alternatives of an object", "reference"],
)
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


@pytest.mark.parametrize(
    ("schema", "actual"),
    [
        ({"type": "array"}, "'array'"),
        ({"type": "x" * 60}, f"'{'x' * 60}'"),
        ({"type": "x" * 61}, f"'{'x' * 29}… (61 characters)"),
        ({"anyOf": [CITY]}, "a root with anyOf or oneOf"),
        ({"oneOf": [CITY]}, "a root with anyOf or oneOf"),
    ],
)
def test_an_output_schema_of_another_value_is_refused(schema: dict[str, Any], actual: str) -> None:
    with pytest.raises(OptionError) as caught:
        as_output_schema(schema)
    assert caught.value.reason == f'the root type must be "object", got {actual}'


def test_the_error_about_a_type_without_a_schema_is_one_line() -> None:
    with pytest.raises(OptionError) as caught:
        as_output_schema(threading.Thread)
    assert "'threading.Thread'" in caught.value.reason
    assert "\n" not in caught.value.reason


@pytest.mark.parametrize(
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


@pytest.mark.parametrize(
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
    assert caught.value.reason == "expected an object, got int"
