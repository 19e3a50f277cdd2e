"""Tools, tool choices and structured output, from every type that callers pass."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable
from functools import partial
from typing import Annotated, Any, Literal, cast

import pytest
from pydantic import BaseModel, Field
from typing_extensions import TypedDict

from agentkit import InputError, MessageError, OptionError, Tool, ToolChoice
from agentkit.provider_kit import OutputSchema
from agentkit.tools.choices import as_tool_choice
from agentkit.tools.json_schema import as_output_schema
from agentkit.tools.tool import as_tools, rename_tool
from tests.cases import each_case
from tests.conftest import EchoFormatter, text_msg

SCHEMA: dict[str, Any] = {"type": "object", "properties": {"q": {"type": "string"}}, "required": ["q"]}
SEARCH = Tool("search", "Search the web.", SCHEMA)
AnyTool: Any = Tool
STRICT = Tool("search", "Search the web.", SCHEMA, True)


def find(
    query: str,
    limit: Annotated[int, Field(description="How many.", ge=1)] = 5,
    kind: Literal["web", "news"] = "web",
    title: str | None = None,
) -> list[str]:
    """Find pages.

    The best first.
    """
    return [query]


# -- Tool ----------------------------------------------------------------------------------------


def test_a_tool_accepts_positional_and_keyword_arguments() -> None:
    assert Tool(name="search", description="Search the web.", parameters=SCHEMA, strict=True) == STRICT
    assert Tool("ping").parameters == {"type": "object", "properties": {}}
    assert Tool("ping").parameters is not Tool("ping").parameters


@each_case("name", ["name", "description", "parameters", "strict"])
def test_a_tool_is_immutable(name: str) -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(SEARCH, name, None)


def test_the_schema_of_a_tool_is_copied_on_creation() -> None:
    schema = copy.deepcopy(SCHEMA)
    tool = Tool("search", "", schema)
    schema["properties"]["q"]["type"] = "integer"
    assert tool.parameters == SCHEMA


@each_case(
    ("make", "place", "reason"),
    [
        (lambda: AnyTool(""), "Tool.name", "empty"),
        (lambda: AnyTool(5), "Tool.name", "string"),
        (lambda: AnyTool("a\ud800"), "Tool.name", "surrogate"),
        (lambda: AnyTool("a", None), "Tool.description", "string"),
        (lambda: AnyTool("a", "", {"type": "string"}), "Tool.parameters", 'must be "object"'),
        (lambda: AnyTool("a", "", {"type": "objects"}), "Tool.parameters", 'must be "object"'),
        (lambda: AnyTool("a", "", {"type": ["string", "null"]}), "Tool.parameters", 'must be "object"'),
        (lambda: AnyTool("a", "", {"x": float("inf")}), "Tool.parameters.x", "finite"),
        (lambda: AnyTool("a", "", [1]), "Tool.parameters", "dict"),
        (lambda: AnyTool("a", colour=1), "Tool.colour", "nexpected"),
    ],
)
def test_a_bad_tool_is_refused(make: Callable[[], object], place: str, reason: str) -> None:
    with pytest.raises(MessageError) as caught:
        make()
    assert caught.value.place.startswith(place)
    assert reason in caught.value.reason


TAKES: list[tuple[dict[str, Any], bool]] = [
    ({}, False),
    ({"type": "object", "properties": {}}, False),
    (SCHEMA, True),
    ({"type": "object", "$ref": "#/$defs/a"}, True),
    ({"type": "object", "anyOf": [{}]}, True),
]


@each_case(("schema", "takes"), TAKES)
def test_a_tool_with_arguments_is_recognized(schema: dict[str, Any], takes: bool) -> None:
    assert Tool("a", "", schema).takes_arguments is takes


# -- Tool.from_function ----------------------------------------------------------------------------


def test_a_typed_function_becomes_a_tool() -> None:
    tool = Tool.from_function(find)
    assert (tool.name, tool.description) == ("find", "Find pages.\n\nThe best first.")
    assert tool.function is find
    assert tool.parameters["type"] == "object"
    assert tool.parameters["required"] == ["query"]
    properties = cast("dict[str, Any]", tool.parameters["properties"])
    assert list(properties) == ["query", "limit", "kind", "title"]
    assert properties["query"] == {"type": "string"}
    assert properties["limit"] == {"default": 5, "description": "How many.", "minimum": 1, "type": "integer"}
    assert properties["kind"] == {"default": "web", "enum": ["web", "news"], "type": "string"}


class Book(BaseModel):
    title: str
    properties: int


def lend(book: Book, title: str) -> None:
    """Lend."""


def test_a_property_named_title_stays_and_generated_titles_are_removed() -> None:
    parameters: dict[str, Any] = Tool.from_function(lend).parameters
    assert set(parameters["properties"]) == {"book", "title"}
    book = parameters["$defs"]["Book"]
    assert book == {
        "properties": {"title": {"type": "string"}, "properties": {"type": "integer"}},
        "required": ["title", "properties"],
        "type": "object",
    }


def test_the_caller_may_pass_name_and_description() -> None:
    tool = Tool.from_function(find, "look_up", "Look it up.")
    assert (tool.name, tool.description) == ("look_up", "Look it up.")
    assert Tool.from_function(find, description="").description == ""


async def _later(query: str) -> str:
    return query


class _Desk:
    def ask(self, question: str) -> str:
        """Ask."""
        return question


@each_case(
    ("function", "name", "properties"),
    [
        (_later, "_later", ["query"]),
        (_Desk().ask, "ask", ["question"]),
        (lambda: None, "<lambda>", []),
    ],
)
def test_any_function_with_named_parameters_becomes_a_tool(
    function: Callable[..., Any], name: str, properties: list[str]
) -> None:
    tool = Tool.from_function(function)
    assert tool.name == name
    assert list(cast("dict[str, Any]", tool.parameters["properties"])) == properties


class _Opaque:
    pass


def _positional(a: int, /) -> None: ...
def _starred(*a: int) -> None: ...
def _double_starred(**a: int) -> None: ...
def _of_unsupported_type(a: _Opaque) -> None: ...
def _of_a_callable(a: Callable[[], int]) -> None: ...
def _of_undefined_type(a: Nope) -> None: ...  # type: ignore[name-defined]  # noqa: F821  # pyright: ignore


NO_TOOLS: list[tuple[Any, str]] = [
    (_positional, "_positional"),
    (_starred, "_starred"),
    (_double_starred, "_double_starred"),
    (_of_unsupported_type, "_of_unsupported_type"),
    (_of_a_callable, "_of_a_callable"),
    (_of_undefined_type, "_of_undefined_type"),
    (max, "max"),
]


@each_case(("function", "name"), NO_TOOLS)
def test_a_function_that_cannot_be_a_tool_is_refused_by_name(function: Callable[..., Any], name: str) -> None:
    with pytest.raises(MessageError) as caught:
        Tool.from_function(function)
    assert name in caught.value.place
    assert caught.value.reason.strip()
    assert "\n" not in caught.value.reason
    assert caught.value.advice.endswith(".")


class Node(BaseModel):
    next: Node | None = None


def test_the_schema_of_a_model_that_contains_itself_is_the_schema_of_an_object() -> None:
    schema = Tool.from_function(Node).parameters
    assert (schema["$ref"], schema["type"], schema["properties"]) == ("#/$defs/Node", "object", {})


def test_an_object_with_cache_statistics_is_not_always_a_cache_of_a_function() -> None:
    class Search:
        """Search the web."""

        def cache_info(self) -> str:
            return "5 hits"

        def __call__(self, query: str) -> str:
            return query

    assert [*Tool.from_function(Search()).parameters["properties"]] == ["query"]


def test_the_function_is_not_part_of_the_value_of_a_tool() -> None:
    tool = Tool("search", function=find)
    assert tool == Tool("search")
    assert repr(tool) == repr(Tool("search"))


def test_the_arguments_may_have_other_types_in_addition() -> None:
    assert Tool("search", "", {"type": ["object", "null"]}).parameters == {"type": ["object", "null"]}


def test_a_renamed_tool_is_a_copy() -> None:
    assert rename_tool(STRICT, "search") is STRICT
    assert rename_tool(STRICT, "find") == Tool("find", "Search the web.", SCHEMA, True)


@each_case("definition", [{}, {"name": None}, {"name": ""}])
def test_a_definition_needs_a_name(definition: dict[str, Any]) -> None:
    with pytest.raises(MessageError) as caught:
        Tool.from_dict(definition)
    assert (caught.value.place, caught.value.reason) == ("tool.name", "the name of the tool is empty")


def test_a_partial_needs_a_name() -> None:
    with pytest.raises(MessageError, match="tool ''"):
        Tool.from_function(partial(int))


# -- Tool.from_dict --------------------------------------------------------------------------------


@each_case(
    "data",
    {
        "ours": {"name": "search", "description": "Search the web.", "parameters": SCHEMA},
        "chat": {
            "type": "function",
            "function": {"name": "search", "description": "Search the web.", "parameters": SCHEMA},
        },
        "responses": {
            "type": "function",
            "name": "search",
            "description": "Search the web.",
            "parameters": SCHEMA,
        },
        "anthropic": {"name": "search", "description": "Search the web.", "input_schema": SCHEMA},
        "mcp": {"name": "search", "description": "Search the web.", "inputSchema": SCHEMA, "annotations": {}},
        "gemini": {"name": "search", "description": "Search the web.", "parameters_json_schema": SCHEMA},
        "gemini's rest api": {"name": "search", "description": "Search the web.", "parametersJsonSchema": SCHEMA},
    },
)
def test_a_tool_is_read_from_every_supported_type(data: dict[str, Any]) -> None:
    before = copy.deepcopy(data)
    assert Tool.from_dict(data) == SEARCH
    assert data == before


def test_strict_is_read_from_every_supported_type() -> None:
    strict = {"name": "search", "description": "Search the web.", "parameters": SCHEMA, "strict": True}
    assert Tool.from_dict({"type": "function", "function": strict}) == STRICT


def test_null_fields_count_as_absent() -> None:
    assert Tool.from_dict({"name": "a", "description": None, "parameters": None}) == Tool("a")
    empty: dict[str, Any] = {
        "type": "object",
        "properties": {"b": {"type": "string", "enum": None}},
        "title": None,
    }
    assert Tool("a", parameters=empty).parameters == {"type": "object", "properties": {"b": {"type": "string"}}}
    listed: dict[str, Any] = {"type": "object", "title": None, "anyOf": [{"required": ["b"], "enum": None}]}
    assert Tool("a", parameters=listed).parameters == {"type": "object", "anyOf": [{"required": ["b"]}]}


# -- as_tools --------------------------------------------------------------------------------------


def test_tools_can_be_objects_functions_and_dicts() -> None:
    tools = as_tools([SEARCH, find, {"name": "ping"}])
    assert [tool.name for tool in tools] == ["search", "find", "ping"]
    assert as_tools(None) == as_tools([]) == ()


@each_case(
    ("tools", "place"),
    {
        "twice": ([SEARCH, SEARCH], "tools[1].name"),
        "a number": ([SEARCH, 5], "tools[1]"),
        "a provider's own tool": ([{"type": "web_search"}], "tools[0].name"),
        "no object": ([SEARCH, {"name": "a", "parameters": {"type": "array"}}], "tools[1].parameters"),
        "a tool": (SEARCH, "tools"),
        "a dict": ({"name": "search"}, "tools"),
        "a string": ("search", "tools"),
        "no list": (5, "tools"),
    },
)
def test_bad_tools_are_refused_by_place(tools: Any, place: str) -> None:
    with pytest.raises(MessageError) as caught:
        as_tools(tools)
    assert caught.value.place == place


@each_case("value", [5, None, "search", [1]])
def test_a_value_that_is_not_an_object_is_not_a_tool(value: Any) -> None:
    with pytest.raises(MessageError):
        Tool.from_dict(value)


# -- ToolChoice ------------------------------------------------------------------------------------

NAMED = ToolChoice("tool", "search")


@each_case(
    ("value", "expected"),
    [
        (None, None),
        ("auto", ToolChoice("auto")),
        ("none", ToolChoice("none")),
        ("required", ToolChoice("required")),
        ("any", ToolChoice("required")),
        ("search", NAMED),
        (NAMED, NAMED),
        (ToolChoice(mode="tool", name="search"), NAMED),
        ({"name": "search"}, NAMED),
        ({"type": "tool", "name": "search"}, NAMED),
        ({"type": "function", "function": {"name": "search"}}, NAMED),
        ({"type": "function", "name": "search"}, NAMED),
        ({"mode": "tool", "name": "search"}, NAMED),
        ({"type": "any"}, ToolChoice("required")),
        ({"mode": "none"}, ToolChoice("none")),
    ],
)
def test_a_choice_is_read_from_every_supported_type(value: Any, expected: ToolChoice | None) -> None:
    assert as_tool_choice(value, [SEARCH]) == expected


@each_case(
    ("value", "tools", "reason"),
    [
        ("fetch", [SEARCH], "no tool has the name 'fetch'"),
        ("search", [], "no tool has the name 'search'"),
        ("required", [], "there are no tools"),
        ({"name": "fetch"}, [SEARCH], "no tool has the name 'fetch'"),
        ({"type": "function"}, [SEARCH], "expected a tool name or a mode"),
        ({}, [SEARCH], "expected a tool name or a mode"),
        (5, [SEARCH], "5"),
    ],
)
def test_a_choice_that_cannot_be_met_is_refused(value: Any, tools: list[Tool], reason: str) -> None:
    with pytest.raises(OptionError, match=reason) as caught:
        as_tool_choice(value, tools)
    assert caught.value.place == "tool_choice"


@pytest.mark.parametrize("value", ["auto", "none"])
def test_a_choice_without_tools_is_none(value: str) -> None:
    assert as_tool_choice(value, []) is None


@each_case(
    "make",
    [
        lambda: ToolChoice("tool"),
        lambda: ToolChoice("auto", "search"),
        lambda: ToolChoice("perhaps"),  # type: ignore[arg-type]
    ],
)
def test_a_choice_that_contradicts_itself_is_refused(make: Callable[[], object]) -> None:
    with pytest.raises(MessageError, match="ToolChoice"):
        make()


# -- OutputSchema ----------------------------------------------------------------------------------


class Address(BaseModel):
    street: str
    number: int = 1


class Person(BaseModel):
    """Somebody."""

    name: str
    addresses: list[Address]


class _Point(TypedDict):
    x: int


@dataclasses.dataclass
class _Size:
    width: int


def test_a_models_schema_is_closed() -> None:
    result = as_output_schema(Person)
    assert result is not None
    assert result.name == "Person"
    assert result.closed
    schema: dict[str, Any] = result.schema
    assert schema["required"] == ["name", "addresses"]
    assert schema["additionalProperties"] is False
    address = schema["$defs"]["Address"]
    assert address["required"] == ["street", "number"]
    assert address["additionalProperties"] is False
    assert "default" not in address["properties"]["number"]


@pytest.mark.parametrize(("kind", "name"), [(_Point, "_Point"), (_Size, "_Size")])
def test_any_type_that_pydantic_supports_is_accepted(kind: type[Any], name: str) -> None:
    schema = as_output_schema(kind)
    assert schema is not None
    assert (schema.name, schema.closed) == (name, True)


@each_case(
    ("value", "expected"),
    {
        "none": (None, None),
        "itself": (OutputSchema(SCHEMA, "hit"), OutputSchema(SCHEMA, "hit")),
        "a JSON schema": (SCHEMA, OutputSchema(SCHEMA)),
        "named": ({"name": "hit", "schema": SCHEMA}, OutputSchema(SCHEMA, "hit")),
        "OpenAI chat": (
            {
                "type": "json_schema",
                "json_schema": {"name": "hit", "schema": SCHEMA, "strict": True, "description": "d"},
            },
            OutputSchema(SCHEMA, "hit", "d", strict=True),
        ),
        "Responses": ({"type": "json_schema", "schema": SCHEMA}, OutputSchema(SCHEMA)),
    },
)
def test_a_schema_is_read_from_every_supported_type(value: Any, expected: OutputSchema | None) -> None:
    before = copy.deepcopy(value)
    assert as_output_schema(value) == expected
    assert value == before


@each_case(
    ("schema", "closed"),
    [
        ({"type": "object", "properties": {"a": {}}, "required": ["a"], "additionalProperties": False}, True),
        ({"type": "object", "properties": {"a": {}}, "required": [], "additionalProperties": False}, False),
        ({"type": "object", "properties": {"a": {}}, "required": ["a"]}, False),
        ({"type": "object", "properties": {}, "additionalProperties": False}, True),
        ({"type": "array", "items": {"type": "object", "properties": {"a": {}}}}, False),
        ({"type": "string"}, False),
    ],
)
def test_a_closed_schema_is_recognized(schema: dict[str, Any], closed: bool) -> None:
    assert OutputSchema(schema).closed is closed


@each_case(
    ("value", "place"),
    [
        ("json", "response_format"),
        (5, "response_format"),
        (_Opaque, "response_format"),
        ({"schema": {"a": float("nan")}}, "response_format.schema.a"),
        ({"a": {1, 2}}, "response_format.a"),
    ],
)
def test_a_value_that_is_not_a_schema_is_refused(value: Any, place: str) -> None:
    with pytest.raises(OptionError) as caught:
        as_output_schema(value)
    assert caught.value.place == place
    assert caught.value.advice


def test_the_schema_of_a_dict_is_copied_and_sent_unchanged() -> None:
    schema = copy.deepcopy(SCHEMA)
    result = as_output_schema(schema)
    schema["properties"].clear()
    assert result is not None
    assert result.schema == SCHEMA


# -- in a request ------------------------------------------------------------------------------------


def test_tools_and_choice_reach_the_request() -> None:
    plan = EchoFormatter().lower([text_msg("Bob", "hi")], tools=[find], tool_choice="find", response_format=Person)
    assert plan.request["tools"][0]["name"] == "find"
    assert plan.request["tool_choice"] == "find"
    assert plan.request["schema"]["required"] == ["name", "addresses"]


@each_case(
    "options",
    [{"tools": [5]}, {"tools": [find], "tool_choice": "nobody"}, {"response_format": "json"}],
)
def test_bad_options_are_refused_before_anything_else(options: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        EchoFormatter().lower([text_msg("Bob", "hi")], **options)
