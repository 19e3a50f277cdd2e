"""Tests of the conversion of tool parameters to an object schema."""

from __future__ import annotations

from typing import Any, Final

import pytest

from agentkit.legalize.object_schemas import as_object_schema
from tests.cases import each_case

TEXT: Final = {"type": "string"}
NUMBER: Final = {"type": "number"}
A: Final[dict[str, Any]] = {"type": "object", "properties": {"a": TEXT}, "required": ["a"]}
B: Final[dict[str, Any]] = {"type": "object", "properties": {"b": TEXT}, "required": ["b"]}


def build_object(properties: dict[str, Any], *required: str, **keywords: Any) -> dict[str, Any]:
    """Returns an object schema."""
    schema = {"type": "object", "properties": properties, **keywords}
    return {**schema, "required": [*required]} if required else schema


EMPTY: Final = build_object({})
BOTH: Final = build_object({"a": TEXT, "b": TEXT})

SCHEMAS: Final[list[tuple[str, dict[str, Any], dict[str, Any], tuple[str, ...]]]] = [
    ("a missing type", {"properties": {"a": TEXT}}, build_object({"a": TEXT}), ()),
    ("missing properties", {"type": "object", "title": "t"}, build_object({}, title="t"), ()),
    ("several types", {"type": ["null", "object"]}, EMPTY, ()),
    ("another type", {"type": "string", "title": "t"}, build_object({}, title="t"), ()),
    (
        "conditions that no longer hold",
        {**A, "not": {}, "const": {}, "enum": []},
        A,
        ("const", "enum", "not"),
    ),
    (
        "a definition",
        {"$ref": "#/$defs/A", "title": "t", "$defs": {"A": A}},
        {**A, "title": "t", "$defs": {"A": A}},
        (),
    ),
    ("a missing definition", {"$ref": "#/$defs/A", **B}, B, ("$ref",)),
    (
        "a keyword beside a definition that has it too",
        {"$ref": "#/$defs/A", "$defs": {"A": {**A, "title": "b"}}, "title": "a", "required": ["b"]},
        build_object({"a": TEXT}, "b", "a", title="a", **{"$defs": {"A": {**A, "title": "b"}}}),
        (),
    ),
    (
        "all of several schemas",
        {"allOf": [A, {"properties": {"a": NUMBER, "b": TEXT}, "required": ["b", "a"]}, True], "title": "t"},
        build_object({"a": TEXT, "b": TEXT}, "a", "b", title="t"),
        (),
    ),
    (
        "definitions of each part",
        {
            "$defs": {"x": TEXT, "y": TEXT},
            "allOf": [{"$defs": {"x": NUMBER, "z": NUMBER}, "definitions": {"w": TEXT}}],
        },
        build_object({}, **{"$defs": {"x": TEXT, "y": TEXT, "z": NUMBER}, "definitions": {"w": TEXT}}),
        (),
    ),
    ("an alternative", {"anyOf": [A]}, A, ()),
    ("an alternative that is no schema", {"anyOf": [A, True, None]}, A, ()),
    ("alternatives that are no list", {"anyOf": A, "oneOf": 1, "allOf": None}, EMPTY, ()),
    ("alternatives of other types", {"anyOf": [{"type": "null"}, A, {"type": ["string", "null"]}]}, A, ()),
    ("only alternatives of other types", {"oneOf": [{"type": "null"}, TEXT]}, EMPTY, ()),
    ("several alternatives", {"anyOf": [A, B]}, BOTH, ("anyOf",)),
    (
        "alternatives without a type",
        {"oneOf": [{"required": ["a"]}, {**B, "type": ["object"]}]},
        build_object({"b": TEXT}),
        ("oneOf",),
    ),
    (
        "alternatives with a definition",
        {"anyOf": [{"$ref": "#/$defs/A"}, {"$ref": "#/$defs/B"}], "$defs": {"A": A, "B": TEXT}},
        {**A, "$defs": {"A": A, "B": TEXT}},
        (),
    ),
    (
        "an alternative that restricts the type of a definition",
        {"anyOf": [{"$ref": "#/$defs/A", "type": "null"}, B], "$defs": {"A": A}},
        {**B, "$defs": {"A": A}},
        (),
    ),
    (
        "alternatives that require the same property",
        {"anyOf": [build_object({"a": TEXT, "b": TEXT}, "b", "a"), build_object({"a": TEXT}, "a")]},
        build_object({"a": TEXT, "b": TEXT}, "a"),
        ("anyOf",),
    ),
    (
        "alternatives with other types of a property",
        {
            "anyOf": [
                build_object({"a": TEXT}),
                build_object({"a": NUMBER}),
                build_object({"a": {"type": "null"}}),
            ]
        },
        build_object({"a": {"anyOf": [TEXT, NUMBER, {"type": "null"}]}}),
        ("anyOf",),
    ),
    (
        "a property that has more than alternatives",
        {"anyOf": [build_object({"a": {"anyOf": [TEXT], "title": "t"}}), build_object({"a": True})]},
        build_object({"a": {"anyOf": [{"anyOf": [TEXT], "title": "t"}, True]}}),
        ("anyOf",),
    ),
    (
        "closed alternatives",
        {"anyOf": [{**A, "additionalProperties": False}, {**B, "additionalProperties": False}]},
        {**BOTH, "additionalProperties": False},
        ("anyOf",),
    ),
    ("an open alternative", {"anyOf": [{**A, "additionalProperties": False}, B]}, BOTH, ("anyOf",)),
    ("alternatives for other properties", {"anyOf": [{**A, "additionalProperties": TEXT}] * 2}, A, ("anyOf",)),
    (
        "one alternative with a schema for other properties",
        {"anyOf": [{**A, "additionalProperties": TEXT}]},
        {**A, "additionalProperties": TEXT},
        (),
    ),
    (
        "both kinds of alternatives",
        {"anyOf": [A, B], "oneOf": [A]},
        build_object({"a": TEXT, "b": TEXT}, "a"),
        ("anyOf",),
    ),
]


@each_case(("schema", "converted", "lost"), {row[0]: row[1:] for row in SCHEMAS})
def test_the_root_of_a_schema_becomes_one_object(
    schema: dict[str, Any], converted: dict[str, Any], lost: tuple[str, ...]
) -> None:
    assert as_object_schema(schema) == (converted, lost)


def test_an_object_schema_is_the_same_object() -> None:
    assert as_object_schema(A)[0] is A


def test_a_converted_schema_is_a_copy() -> None:
    schema: dict[str, Any] = {"properties": {"a": {"type": "string"}}}
    as_object_schema(schema)[0]["properties"]["a"]["type"] = "number"
    assert schema == {"properties": {"a": TEXT}}


@pytest.mark.parametrize(("count", "lost"), [(49, ()), (50, ("$ref",))])
def test_at_most_50_schemas_are_merged(count: int, lost: tuple[str, ...]) -> None:
    """The root is one of the 50 schemas."""
    parts = [{"properties": {f"p{number}": TEXT}} for number in range(count)]
    schema, keywords = as_object_schema({"allOf": parts})
    assert (len(schema["properties"]), keywords) == (49, lost)


def test_a_definition_of_itself_is_not_merged_forever() -> None:
    schema, lost = as_object_schema({"$ref": "#", "properties": {"a": TEXT}})
    assert (schema, lost) == (build_object({"a": TEXT}), ("$ref",))
