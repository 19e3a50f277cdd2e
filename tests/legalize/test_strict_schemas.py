"""Tests of schemas in strict mode: what is added, what is removed, and which schemas are refused."""

from __future__ import annotations

from typing import Any

import pytest

from agentkit.legalize.strict_schemas import close_for_strict, explain_refusal, find_open_object
from agentkit.provider_kit import Capabilities, StrictRules
from tests.cases import each_case

KEYWORDS = ("type", "properties", "required", "additionalProperties", "items", "anyOf", "allOf", "prefixItems")
NAMED = ("enum", "const", "$ref", "$defs", "definitions", "format", "title", "description")
RULES = StrictRules(keywords=frozenset({*KEYWORDS, *NAMED}), formats=frozenset({"date"}))
TEXT: dict[str, Any] = {"type": "string"}


def create_object(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": [*properties], "additionalProperties": False}


def close(schema: Any, **changes: Any) -> dict[str, Any] | None:
    rules = {name: getattr(RULES, name) for name in ("keywords", "formats")}
    closed, reason = close_for_strict(schema, StrictRules(**{**rules, **changes}))
    assert (closed is None) == bool(reason)
    return closed


@each_case(
    ("schema", "closed"),
    [
        ({"type": "object"}, create_object()),
        ({"properties": {}}, create_object()),
        ({"type": ["object", "null"], "properties": {}}, {**create_object(), "type": ["object", "null"]}),
        ({"type": "object", "properties": {"a": TEXT}, "required": ["a"]}, create_object(a=TEXT)),
        ({**create_object(a=TEXT), "default": {}, "examples": [], "$schema": "x"}, create_object(a=TEXT)),
        (create_object(a={"type": "array", "items": TEXT}), create_object(a={"type": "array", "items": TEXT})),
        (
            create_object(a={"type": "string", "format": "date"}),
            create_object(a={"type": "string", "format": "date"}),
        ),
        (
            create_object(
                a={"type": "array", "items": {"type": "object", "properties": {"b": TEXT}, "required": ["b"]}}
            ),
            create_object(a={"type": "array", "items": create_object(b=TEXT)}),
        ),
        (create_object(a={"anyOf": [TEXT, {**TEXT, "default": ""}]}), create_object(a={"anyOf": [TEXT, TEXT]})),
        (create_object(a={"allOf": [create_object()]}), create_object(a={"allOf": [create_object()]})),
        (create_object(a={"enum": ["x"]}, b={"const": 1}), create_object(a={"enum": ["x"]}, b={"const": 1})),
    ],
)
def test_an_object_is_closed_and_annotations_are_removed(schema: dict[str, Any], closed: dict[str, Any]) -> None:
    if "type" not in schema:
        closed = {key: value for key, value in closed.items() if key != "type"}
    assert close(schema) == closed


@each_case(
    "schema",
    [
        [],
        create_object(a=5),
        create_object(a={"description": "no type"}),
        {**create_object(), "minProperties": 1},
        create_object(a={"type": "string", "format": "color"}),
        create_object(a={"type": "array"}),
        create_object(a={"type": "object"}),
        create_object(a={"type": "object", "properties": {}}),
        {**create_object(a=TEXT), "additionalProperties": True},
        {**create_object(a=TEXT), "additionalProperties": TEXT},
        {**create_object(a=TEXT), "required": ["a", "b"]},
        {**create_object(a=TEXT), "required": []},
        create_object(a={"anyOf": [TEXT, {"type": "array"}]}),
        create_object(a={"type": "array", "items": {"type": "array"}}),
    ],
)
def test_a_schema_that_strict_mode_cannot_express_is_refused(schema: Any) -> None:
    assert close(schema) is None


def test_optional_properties_are_accepted_if_the_target_accepts_them() -> None:
    schema = {**create_object(a=TEXT, b=TEXT), "required": ["b"]}
    assert close(schema) is None
    assert close(schema, can_omit_properties=True) == schema
    assert close({**schema, "required": ["b", "c"]}, can_omit_properties=True) is None


@pytest.mark.parametrize(("max_depth", "is_accepted"), [(0, True), (4, True), (3, False)])
def test_objects_and_arrays_may_be_nested_up_to_the_maximum_depth(max_depth: int, *, is_accepted: bool) -> None:
    array = {"type": "array", "items": create_object(c=TEXT)}
    schema = create_object(a=create_object(b=array), d=TEXT)
    assert (close(schema, max_depth=max_depth) == schema) == is_accepted
    if not is_accepted:
        flat = create_object(a=create_object(b={"anyOf": [TEXT, create_object(c=TEXT)]}), d=TEXT)
        assert close(flat, max_depth=max_depth) == flat


def test_an_array_is_a_level() -> None:
    schema = create_object(a={"type": "array", "items": TEXT})
    assert close(schema, max_depth=2) == schema
    assert close(schema, max_depth=1) is None


@each_case(
    ("schema", "place"),
    [
        ({**create_object(a=TEXT, b=TEXT, c=TEXT), "required": ["b"]}, "property a "),
        (create_object(x={**create_object(a=TEXT), "required": []}), "property x.a "),
        (create_object(x=create_object(y={"type": "array"})), " x.y "),
        (create_object(x={"type": "array", "items": {}}), " x.items "),
        (create_object(x={"anyOf": [TEXT, {}]}), " x.anyOf[1] "),
        ({"type": "array"}, "root "),
    ],
)
def test_the_reason_names_the_part_that_strict_mode_refuses(schema: dict[str, Any], place: str) -> None:
    closed, reason = close_for_strict(schema, RULES)
    assert closed is None
    assert place in reason


def test_a_keyword_with_a_value_of_another_type_is_unchanged() -> None:
    for part in ({"anyOf": {"a": 1}}, {"type": "string", "allOf": 5}):
        assert close(create_object(a=part)) == create_object(a=part)
    assert close({**create_object(), "properties": ["a"]}) == {**create_object(), "properties": ["a"]}


# -- references ---------------------------------------------------------------------------------------------------

LEAF = create_object(name=TEXT)


def refer(name: str, holder: str = "$defs") -> dict[str, Any]:
    return {"$ref": f"#/{holder}/{name}"}


def test_a_reference_with_annotations_is_put_into_any_of() -> None:
    schema = {**create_object(a=refer("Leaf"), b={**refer("Leaf"), "title": "B"}), "$defs": {"Leaf": LEAF}}
    closed = close(schema)
    assert closed is not None
    assert closed["properties"] == {"a": refer("Leaf"), "b": {"anyOf": [refer("Leaf")], "title": "B"}}
    assert closed["$defs"] == {"Leaf": LEAF}


@pytest.mark.parametrize(
    "part", [refer("Twig"), {"$ref": "other.json"}, {**refer("Leaf"), "type": "object"}], ids=str
)
def test_a_reference_that_leads_nowhere_or_has_other_keywords_is_refused(part: dict[str, Any]) -> None:
    assert close({**create_object(a=part), "$defs": {"Leaf": LEAF}}) is None


def test_a_root_that_is_a_reference_is_refused() -> None:
    assert close({**refer("Leaf"), "$defs": {"Leaf": LEAF}}) is None


@each_case("holder", ["$defs", "definitions"])
@each_case(
    ("definitions", "is_recursive"),
    [
        ({"A": {"a": "B"}, "B": {"b": "C"}, "C": {}}, False),
        ({"A": {"a": "B", "b": "C"}, "B": {"c": "C"}, "C": {}}, False),
        ({"A": {"a": "A"}, "B": {}, "C": {}}, True),
        ({"A": {"a": "B"}, "B": {"a": "A"}, "C": {}}, True),
        ({"A": {"a": "B"}, "B": {"a": "C"}, "C": {"a": "A"}}, True),
        ({"A": {"a": "C"}, "B": {"a": "A"}, "C": {"a": "B"}}, True),
        ({"A": {"a": "B"}, "B": {"a": "C"}, "C": {"a": "B"}}, True),
    ],
)
def test_definitions_that_refer_to_themselves_are_refused_if_the_target_refuses_them(
    definitions: dict[str, dict[str, str]], holder: str, *, is_recursive: bool
) -> None:
    parts = {
        name: create_object(
            **{key: {"type": "array", "items": refer(other, holder)} for key, other in links.items()}
        )
        for name, links in definitions.items()
    }
    schema = {**create_object(a=refer("A", holder)), holder: parts}
    assert close(schema) == schema
    assert (close(schema, can_recurse=False) is None) == is_recursive


def test_a_reference_to_the_root_is_recursive() -> None:
    schema = create_object(a={"anyOf": [TEXT, {"$ref": "#"}]})
    assert close(schema) == schema
    assert close(schema, can_recurse=False) is None


@each_case(
    ("reference", "is_recursive"),
    [
        ("#/properties/tree", True),
        ("#/properties/tree/properties/children", True),
        ("#/$defs/a~1b", True),
        ("#/properties/leaf", False),
        ("#/$defs/Leaf/properties/name", False),
    ],
)
def test_a_reference_inside_the_part_that_it_points_to_is_recursive(reference: str, *, is_recursive: bool) -> None:
    children = {"type": "array", "items": {"$ref": reference}}
    schema = {
        **create_object(tree=create_object(children=children), leaf=LEAF),
        "$defs": {"Leaf": LEAF, "a/b": create_object(tree={"$ref": "#/properties/tree"})},
    }
    assert close(schema) == schema
    assert (close(schema, can_recurse=False) is None) == is_recursive


FREE: dict[str, Any] = {"type": "object"}


@each_case(
    ("schema", "name"),
    [
        (FREE, "schema root"),
        ({**FREE, "properties": {}}, "schema root"),
        ({**FREE, "additionalProperties": TEXT}, "schema root"),
        ({**create_object(a=TEXT), "additionalProperties": True}, "schema root"),
        (create_object(a=TEXT, b=FREE), "schema at b"),
        (create_object(a={"type": "array", "items": FREE}), "schema at a.items"),
        (create_object(a={"anyOf": [TEXT, FREE]}), "schema at a.anyOf[1]"),
        (create_object(a={"oneOf": [TEXT, {"type": ["object", "null"]}]}), "schema at a.oneOf[1]"),
        ({**create_object(a={"$ref": "#/$defs/Any"}), "$defs": {"Any": FREE}}, "schema at Any"),
        ({**FREE, "additionalProperties": False}, ""),
        ({**FREE, "properties": {"a": TEXT}}, ""),
        ({**FREE, "anyOf": [create_object(a=TEXT)]}, "schema root"),
        ({**FREE, "allOf": [{"properties": {"a": TEXT}}]}, "schema root"),
        ({**FREE, "properties": {"a": TEXT}, "allOf": [{"properties": {"b": TEXT}}]}, "schema root"),
        ({**create_object(a={**FREE, **refer("Leaf")}), "$defs": {"Leaf": LEAF}}, "schema at a"),
        (create_object(a={"allOf": [{**FREE, "properties": {"b": TEXT}}]}), "schema at a.allOf[0]"),
        ({**create_object(a=TEXT, b=TEXT), "anyOf": [{"properties": {"a": TEXT}}]}, "schema at anyOf[0]"),
        (
            {**create_object(a=TEXT), "anyOf": [refer("Open")], "$defs": {"Open": {"properties": {"a": TEXT}}}},
            "schema at anyOf[0]",
        ),
        ({**create_object(a=TEXT), "anyOf": [refer("Leaf")], "$defs": {"Leaf": LEAF}}, ""),
        ({**FREE, "enum": [{"a": 1}]}, "schema root"),
        ({**FREE, "properties": {"a": TEXT}, "patternProperties": {"^x": TEXT}}, "schema root"),
        (create_object(a={"patternProperties": {"^x": TEXT}, "additionalProperties": False}), "schema at a"),
        ({**create_object(a=TEXT, b=TEXT), "anyOf": [{"required": ["a"]}, {"required": ["b"]}]}, ""),
        (create_object(a={"anyOf": [{**FREE, "properties": {"b": TEXT}}, TEXT]}), ""),
        ({**create_object(a={**refer("Leaf"), "description": "d"}), "$defs": {"Leaf": LEAF}}, ""),
        (create_object(a=True, b=TEXT), ""),
    ],
)
def test_an_open_object_is_found_by_its_place(schema: dict[str, Any], name: str) -> None:
    assert find_open_object(schema) == name


RECURSIVE = "the schema is recursive"
REQUIRED = "a required property of the schema is recursive"


@each_case(
    ("required", "none", "optional"),
    [
        (["next"], RECURSIVE, REQUIRED),
        ([], RECURSIVE, ""),
        (None, RECURSIVE, ""),
    ],
)
@each_case("reference", ["#", "#/$defs/A", "#/properties/next"])
def test_a_recursive_output_schema_is_refused_where_the_target_refuses_recursion(
    reference: str, required: list[str] | None, none: str, optional: str
) -> None:
    part: dict[str, Any] = {**FREE, "properties": {"next": {"$ref": reference}}, "required": required}
    part = {key: item for key, item in part.items() if item is not None}
    schema = {**part, "properties": {"next": part}, "$defs": {"A": part}}
    found = [
        explain_refusal(schema, Capabilities(name="X", output_recursion=mode))
        for mode in ("any", "none", "optional")
    ]
    assert found == ["", none, optional]


def test_a_property_with_the_name_properties_is_no_keyword() -> None:
    schema = create_object(properties={"type": "array", "items": {"$ref": "#"}})
    assert explain_refusal(schema, Capabilities(name="X", output_recursion="optional")) == REQUIRED
