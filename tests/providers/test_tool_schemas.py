"""Tool schemas and strict mode: the root of a sent schema is an object, and each strict schema is closed."""

import copy
from collections.abc import Mapping
from typing import Any, Final, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentkit import MessageError, Tool, load_provider
from agentkit.legalize.object_schemas import as_object_schema
from agentkit.provider_kit import OutputSchema
from tests.cases import each_case
from tests.profiles import examples
from tests.providers import problems, user
from tests.wire.schema_rules import find_object_problems, find_strict_problems

PROVIDERS: Final = (
    *("openai", "openai-responses", "anthropic", "gemini", "ollama", "dashscope", "dashscope-compatible"),
    *("deepseek", "vllm"),
)
FLAGGED: Final = ("openai", "openai-responses", "anthropic", "dashscope-compatible", "deepseek", "vllm")
OPENAI: Final = tuple(name for name in FLAGGED if name != "anthropic")

TEXT: Final = {"type": "string"}
CLOSED: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {"q": TEXT},
    "required": ["q"],
    "additionalProperties": False,
}
OPEN: Final[dict[str, Any]] = {"type": "object", "properties": {"q": TEXT}, "required": ["q"]}
MERGED = (
    "tool 'f': APIs require an object schema at the root of the parameters, so these root keywords are not sent"
)

OPTIONAL: Final[dict[str, Any]] = {"type": "object", "properties": {"q": TEXT, "n": {"type": "integer"}}}


def _send_tool(provider: str, tool: Tool, model: str | None = None) -> tuple[dict[str, Any], list[str]]:
    """Returns the schema and the strict flag of a sent tool, and the reasons in the ledger."""
    plan = load_provider(provider).chat_formatter(model).lower([user("Go.")], tools=[tool])
    assert problems(provider, plan.request) == []
    declared: Any = plan.request.get("tools") or plan.request["config"]["tools"][0]["function_declarations"]
    function: dict[str, Any] = declared[0].get("function", declared[0])
    keys = ("parameters", "input_schema", "parameters_json_schema")
    schema = next((function[key] for key in keys if key in function), None)
    sent: dict[str, Any] = {"schema": schema, "strict": function.get("strict")}
    return sent, [synthesis.reason for synthesis in plan.ledger.syntheses]


# -- an object at the root ---------------------------------------------------------------------------

NO_ARGUMENTS: Final[dict[str, Any]] = {"type": "object", "properties": {}}
ROOTS: Final[dict[str, tuple[dict[str, Any], dict[str, Any], list[str]]]] = {
    "empty": ({}, NO_ARGUMENTS, []),
    "a type alone": ({"type": "object"}, NO_ARGUMENTS, []),
    "properties alone": ({"properties": {"q": TEXT}}, {"type": "object", "properties": {"q": TEXT}}, []),
    "nulls": ({"type": "object", "properties": None, "required": None, "description": None}, NO_ARGUMENTS, []),
    "a null type": ({"type": None, "properties": {"q": TEXT}}, {"type": "object", "properties": {"q": TEXT}}, []),
    "nested nulls": (
        {"type": "object", "properties": {"q": {"type": "string", "items": None, "enum": None, "default": None}}},
        {"type": "object", "properties": {"q": {"type": "string", "default": None}}},
        [],
    ),
    "types": ({"type": ["object", "null"], "properties": {"q": TEXT}}, OPEN | {"required": None}, []),
    "a reference": (
        {"$ref": "#/$defs/Query", "$defs": {"Query": OPEN}},
        {**OPEN, "$defs": {"Query": OPEN}},
        [],
    ),
    "a reference to a reference": (
        {"$ref": "#/definitions/A", "definitions": {"A": {"$ref": "#/definitions/B"}, "B": OPEN}},
        {**OPEN, "definitions": {"A": {"$ref": "#/definitions/B"}, "B": OPEN}},
        [],
    ),
    "anyOf with one schema": ({"anyOf": [OPEN, {"type": "null"}]}, OPEN, []),
    "oneOf with one schema": ({"oneOf": [CLOSED], "description": "d"}, {**CLOSED, "description": "d"}, []),
    "allOf with two schemas": (
        {"allOf": [OPEN, {"properties": {"n": TEXT}, "required": ["n"]}]},
        {"type": "object", "properties": {"q": TEXT, "n": TEXT}, "required": ["q", "n"]},
        [],
    ),
    "anyOf with two schemas": (
        {
            "anyOf": [
                {"type": "object", "properties": {"a": TEXT, "k": {"const": "a"}}, "required": ["a", "k"]},
                {"type": "object", "properties": {"b": TEXT, "k": {"const": "b"}}, "required": ["b", "k"]},
            ]
        },
        {
            "type": "object",
            "properties": {"a": TEXT, "k": {"anyOf": [{"const": "a"}, {"const": "b"}]}, "b": TEXT},
            "required": ["k"],
        },
        [f"{MERGED}: anyOf"],
    ),
    "oneOf with only required": (
        {**OPTIONAL, "oneOf": [{"required": ["q"]}, {"required": ["n"]}]},
        OPTIONAL,
        [f"{MERGED}: oneOf"],
    ),
    "not and enum": (
        {**OPTIONAL, "not": {"required": ["q", "n"]}, "enum": [{}]},
        OPTIONAL,
        [f"{MERGED}: enum, not"],
    ),
    "a reference to itself": (
        {"$ref": "#/$defs/A", "$defs": {"A": {"$ref": "#/$defs/A"}}},
        {**NO_ARGUMENTS, "$defs": {"A": {"$ref": "#/$defs/A"}}},
        [f"{MERGED}: $ref"],
    ),
}


@pytest.mark.parametrize("provider", PROVIDERS)
@each_case(("schema", "expected", "reasons"), ROOTS)
def test_every_provider_gets_an_object_at_the_root(
    provider: str, schema: dict[str, Any], expected: dict[str, Any], reasons: list[str]
) -> None:
    before = copy.deepcopy(schema)
    sent, actual = _send_tool(provider, Tool("f", parameters=schema))
    if sent["schema"] is not None or provider != "gemini":  # Gemini: a function without parameters has no schema
        assert sent["schema"] == {key: item for key, item in expected.items() if item is not None}
    assert actual == reasons
    assert schema == before


def test_a_schema_that_is_an_object_is_not_copied() -> None:
    tool = Tool("f", parameters=OPEN)
    assert as_object_schema(tool.parameters)[0] is tool.parameters


@pytest.mark.parametrize("kind", ["array", "null", ["string", "null"]])
def test_arguments_of_another_type_are_refused(kind: object) -> None:
    with pytest.raises(MessageError, match='must be "object", got'):
        Tool("f", parameters={"type": kind})


def test_circular_definitions_are_converted() -> None:
    many = {"anyOf": [{"$ref": "#/$defs/A"}, {"$ref": "#/$defs/B"}] * 10}
    schema = {"$ref": "#/$defs/A", "$defs": {"A": many, "B": many}}
    result, lost = as_object_schema(schema)
    assert result["type"] == "object"
    assert "$ref" in lost


# -- strict ------------------------------------------------------------------------------------------

NESTED: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "who": {"type": "object", "properties": {"name": TEXT}, "required": ["name"]},
        "list": {"type": "array", "items": {"type": "object", "properties": {"a": TEXT}, "required": ["a"]}},
        "kind": {"$ref": "#/$defs/Kind", "description": "Which."},
        "any": {"anyOf": [{"$ref": "#/$defs/Kind"}, {"type": "null"}]},
        "first": {"type": "string", "default": "x", "examples": ["y"]},
    },
    "required": ["who", "list", "kind", "any", "first"],
    "$defs": {"Kind": {"type": "object", "properties": {"k": {"enum": ["a", "b"]}}, "required": ["k"]}},
}


@pytest.mark.parametrize("provider", FLAGGED)
@each_case("schema", {"none": {}, "open": OPEN, "closed": CLOSED, "nested": NESTED})
def test_a_schema_is_closed_if_its_meaning_does_not_change(provider: str, schema: dict[str, Any]) -> None:
    sent, reasons = _send_tool(provider, Tool("f", parameters=schema, strict=True))
    assert sent["strict"] is True
    assert reasons == []
    root = sent["schema"]
    assert root["additionalProperties"] is False
    assert [*root["properties"]] == [*schema.get("properties", {})] == root["required"]
    if provider != "anthropic":
        assert [*find_strict_problems(root)] == []


def test_nested_objects_are_closed_too() -> None:
    sent, _ = _send_tool("openai", Tool("f", parameters=NESTED, strict=True))
    inner = sent["schema"]["properties"]
    closed = {"type": "object", "properties": {"name": TEXT}, "required": ["name"], "additionalProperties": False}
    assert inner["who"] == closed
    assert inner["list"]["items"]["additionalProperties"] is False
    assert inner["kind"] == {"anyOf": [{"$ref": "#/$defs/Kind"}], "description": "Which."}
    assert inner["first"] == TEXT
    assert sent["schema"]["$defs"]["Kind"]["additionalProperties"] is False


def _object_with(**inner: Any) -> dict[str, Any]:
    return {"type": "object", "properties": {"q": inner}, "required": ["q"]}


OMITTED_STRICT: Final[dict[str, tuple[dict[str, Any], str]]] = {
    "an optional property": ({**OPTIONAL, "required": ["q"]}, "the optional property n is not allowed"),
    "a nested optional property": (_object_with(**OPTIONAL), "the optional property q.q is not allowed"),
    "further properties": (
        {**OPEN, "additionalProperties": True},
        "the schema root allows additional properties",
    ),
    "a map": (
        _object_with(type="object", additionalProperties=TEXT),
        "the schema at q allows additional properties",
    ),
    "any object": (_object_with(type="object"), "the schema at q allows additional properties"),
    "no type": (_object_with(), "the schema at q has no type"),
    "a list without items": (_object_with(type="array"), "the schema at q has type array, but no `items`"),
    "a length": (
        _object_with(type="string", maxLength=3),
        "the schema at q has the unsupported keyword 'maxLength'",
    ),
    "one of": (_object_with(oneOf=[TEXT]), "the schema at q has the unsupported keyword 'oneOf'"),
    "a format": (
        _object_with(type="string", format="regex"),
        "the schema at q has the unsupported format 'regex'",
    ),
    "another document": (
        _object_with(**{"$ref": "https://a.example/b"}),
        "the schema at q refers to 'https://a.example/b', which",
    ),
    "a missing definition": (
        _object_with(**{"$ref": "#/$defs/a"}),
        "the schema at q refers to '#/$defs/a', which",
    ),
    "a required name without a property": (
        {**OPEN, "required": ["q", "x"]},
        "the schema root requires a property",
    ),
    "not a schema": (_object_with(type="array", items=True), "the schema at q.items is not a JSON object"),
}


@pytest.mark.parametrize("provider", OPENAI)
@each_case(("schema", "reason"), OMITTED_STRICT)
def test_strict_is_omitted_if_it_would_change_the_meaning_of_the_schema(
    provider: str, schema: dict[str, Any], reason: str
) -> None:
    sent, (actual,) = _send_tool(provider, Tool("f", parameters=schema, strict=True))
    assert not sent["strict"]
    assert sent["schema"] == schema
    assert actual.startswith(f"tool 'f' sent without strict mode, because {reason}")


@each_case("keyword", [{"$ref": "https://example.com/q"}, {"enum": [{"q": "a"}]}, {"const": {"q": "a"}}])
@pytest.mark.parametrize("provider", FLAGGED)
def test_strict_is_omitted_if_the_arguments_are_unknown(provider: str, keyword: dict[str, Any]) -> None:
    """A closed schema without properties would forbid every argument."""
    sent, reasons = _send_tool(provider, Tool("f", parameters=keyword, strict=True))
    assert not sent["strict"]
    assert sent["schema"] == NO_ARGUMENTS
    assert reasons[-1] == (
        f"tool 'f' sent without strict mode, because the schema root has {min(keyword)}, "
        "which cannot be converted to `properties`"
    )


def test_anthropic_accepts_optional_properties_but_no_recursion() -> None:
    sent, reasons = _send_tool("anthropic", Tool("f", parameters=OPTIONAL, strict=True))
    assert (sent["strict"], sent["schema"]["additionalProperties"], reasons) == (True, False, [])
    tree: dict[str, Any] = {"type": "object", "properties": {"left": {"$ref": "#/$defs/Tree"}}, "required": []}
    sent, reasons = _send_tool("anthropic", Tool("f", parameters={**tree, "$defs": {"Tree": tree}}, strict=True))
    assert sent["strict"] is None
    assert reasons == ["tool 'f' sent without strict mode, because a definition in the schema refers to itself"]
    tree["required"] = ["left"]
    sent, reasons = _send_tool("openai", Tool("f", parameters={**tree, "$defs": {"Tree": tree}}, strict=True))
    assert (sent["strict"], reasons) == (True, [])


def test_a_schema_may_be_ten_levels_deep() -> None:
    deep: dict[str, Any] = TEXT
    for level in range(11):
        assert bool(
            _send_tool("openai", Tool("f", parameters=_object_with(**deep), strict=True))[0]["strict"]
        ) is (level < 10)
        deep = _object_with(**deep)


@pytest.mark.parametrize("provider", ["gemini", "ollama", "dashscope"])
def test_the_ledger_names_a_provider_without_strict_mode(provider: str) -> None:
    sent, (reason,) = _send_tool(provider, Tool("f", parameters=OPEN, strict=True))
    assert sent == {"schema": OPEN, "strict": None}
    assert "has no strict mode for tools" in reason


@pytest.mark.parametrize("provider", PROVIDERS)
@each_case("strict", [None, False])
def test_the_ledger_has_no_entry_if_strict_mode_was_not_requested(provider: str, strict: bool | None) -> None:
    sent, reasons = _send_tool(provider, Tool("f", parameters=OPTIONAL, strict=strict))
    assert (sent["schema"], not sent["strict"], reasons) == (OPTIONAL, True, [])


# -- strict answers ----------------------------------------------------------------------------------


def _answer(provider: str, output: object) -> tuple[dict[str, Any], list[str]]:
    asked: Any = output
    plan = load_provider(provider).chat_formatter().lower([user("Answer in json.")], response_format=asked)
    assert problems(provider, plan.request) == []
    request: Mapping[str, Any] = plan.request
    text = cast("dict[str, Any]", request.get("text", {})).get("format")
    return text or request["response_format"]["json_schema"], [
        synthesis.reason for synthesis in plan.ledger.syntheses
    ]


@pytest.mark.parametrize("provider", ["openai", "openai-responses", "vllm"])
@each_case(
    ("schema", "strict", "expected", "reason_count"),
    [
        (CLOSED, None, True, 0),
        (CLOSED, True, True, 0),
        (CLOSED, False, False, 0),
        (OPEN, None, False, 0),
        (OPEN, True, True, 0),
        (NESTED, True, True, 0),
        (OPTIONAL, True, False, 1),
        (OPTIONAL, False, False, 0),
        ({**CLOSED, "properties": {"q": {"type": "string", "maxLength": 3}}}, None, False, 1),
    ],
)
def test_an_output_schema_is_strict_if_possible(
    provider: str, schema: dict[str, Any], strict: bool | None, expected: bool, reason_count: int
) -> None:
    sent, reasons = _answer(provider, OutputSchema(schema, strict=strict))
    assert sent["strict"] is expected
    assert len(reasons) == reason_count
    if expected:
        assert [*find_strict_problems(sent["schema"])] == []
    else:
        assert sent["schema"] == schema


def test_the_flag_of_a_response_format_is_read() -> None:
    flat = {"type": "json_schema", "name": "a", "schema": OPEN, "strict": True}
    nested = {"type": "json_schema", "json_schema": {"name": "a", "schema": OPEN, "strict": True}}
    assert _answer("openai", flat) == _answer("openai", nested)
    assert _answer("openai-responses", nested)[0]["strict"] is True


# -- any schema --------------------------------------------------------------------------------------

_NAMES: Final = st.sampled_from(["a", "b", "type", "properties", "$ref", "name"])
_LEAVES: Final = st.fixed_dictionaries(
    {},
    optional={
        "type": st.sampled_from(["string", "integer", "null", "object", "array", ["string", "null"], None]),
        "enum": st.sampled_from([["x"], [1, None]]),
        "const": st.sampled_from(["x", None]),
        "description": st.sampled_from(["d", None]),
        "default": st.sampled_from(["x", None]),
        "format": st.sampled_from(["uri", "email"]),
        "minimum": st.integers(0, 3),
        "minLength": st.integers(0, 3),
        "$ref": st.sampled_from(["#", "#/$defs/a", "#/$defs/b", "#/nowhere", "https://a.example/b"]),
    },
)


def _nest_schemas(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    properties = st.dictionaries(_NAMES, inner, max_size=3)
    return st.fixed_dictionaries(
        {},
        optional={
            "type": st.sampled_from(["object", "array", ["object", "null"], None]),
            "properties": st.none() | properties,
            "required": st.none() | st.lists(_NAMES, max_size=3, unique=True),
            "additionalProperties": st.sampled_from([True, False, None, {"type": "string"}]),
            "items": inner,
            "anyOf": st.lists(inner, min_size=1, max_size=2),
            "oneOf": st.lists(inner, min_size=1, max_size=2),
            "allOf": st.lists(inner, min_size=1, max_size=2),
            "not": inner,
            "$defs": st.dictionaries(st.sampled_from(["a", "b"]), inner, max_size=2),
            "title": st.just("T"),
        },
    ) | properties.map(lambda fields: {"type": "object", "properties": fields, "required": [*fields]})


_SCHEMAS: Final = st.recursive(_LEAVES, _nest_schemas, max_leaves=6)


@examples(150)
@given(_SCHEMAS, st.sampled_from([None, True, False]))
def test_each_strict_schema_obeys_the_rules_of_strict_mode(schema: dict[str, Any], strict: bool | None) -> None:
    try:
        tool = Tool("f", parameters=schema, strict=strict)
    except MessageError:
        return  # a root of another type
    before = copy.deepcopy(schema)
    for provider in PROVIDERS:
        sent, reasons = _send_tool(provider, tool)
        root: Any = sent["schema"]
        if root is not None:
            assert [*find_object_problems(root)] == [], provider
        if root is not None and sent["strict"] and provider in OPENAI:
            assert [*find_strict_problems(root)] == [], provider
        if strict and not sent["strict"]:
            assert any("strict" in reason for reason in reasons), provider
    assert schema == before


@examples(100)
@given(_SCHEMAS)
def test_an_object_at_the_root_does_not_change(schema: dict[str, Any]) -> None:
    try:
        tool = Tool("f", parameters=schema)
    except MessageError:
        return
    sent, _ = as_object_schema(tool.parameters)
    assert as_object_schema(sent) == (sent, ())
