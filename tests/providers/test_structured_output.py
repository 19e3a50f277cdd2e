"""Structured output of each provider: schemas of any type, JSON objects, and values of replies through SDKs."""

from __future__ import annotations

from enum import Enum
from typing import Any, Final, Literal, cast

import pytest
from pydantic import BaseModel, Field

from agentkit import ModelError, Msg, OptionError, ParseError, TextBlock, Tool
from agentkit.provider_kit import OutputSchema
from agentkit.testing import LoopbackServer, ScriptedModel
from agentkit.tools.json_schema import as_output_schema
from tests.cases import each_case
from tests.providers import PROVIDERS, chat, problems, system, user
from tests.providers.calling import HELLO, create_model


class Answer(BaseModel):
    verdict: Literal["yes", "no"]


VALUE: Final = Answer(verdict="no")
NATIVE: Final[dict[str, dict[str, Any]]] = {
    "anthropic": {},
    "dashscope": {"response_format": {"type": "json_object"}},
    "dashscope-compatible": {"response_format": {"type": "json_object"}},
    "deepseek": {"response_format": {"type": "json_object"}},
    "gemini": {"config": {"response_mime_type": "application/json"}},
    "ollama": {"format": "json"},
    "openai": {"response_format": {"type": "json_object"}},
    "openai-responses": {"text": {"format": {"type": "json_object"}}},
    "vllm": {"response_format": {"type": "json_object"}},
}
INSTRUCTION: Final = "Answer in json, with one object."


@each_case("with_tools", [False, True])
@pytest.mark.parametrize("provider", PROVIDERS)
def test_any_json_object_is_requested_natively_where_possible(provider: str, with_tools: bool) -> None:
    options: Any = {"tools": [Tool("look")]} if with_tools else {}
    before = chat(provider).lower([user("Hi")], **options).request
    request = chat(provider).lower([user("Hi")], response_format="json_object", **options).request
    added = _find_added(request, before)
    assert added == NATIVE[provider]
    assert str(request).count(INSTRUCTION) == (provider != "gemini")
    assert problems(provider, request) == []


def _find_added(request: dict[str, Any], before: dict[str, Any]) -> dict[str, Any]:
    """Returns the options that a request has in addition, without the messages and the system prompt."""
    prompts = {"messages", "input", "contents", "system"}
    added: dict[str, Any] = {}
    for key, value in request.items():
        if key == "config":
            known = before.get("config", {})
            inner = {name: item for name, item in value.items() if name not in known}
            added |= {"config": inner} if inner else {}
        elif key not in before and key not in prompts:
            added[key] = value
    return added


@each_case("provider", PROVIDERS)
def test_a_system_prompt_that_mentions_json_gets_no_second_instruction(provider: str) -> None:
    msgs = [system("Write JSON."), user("Hi")]
    request = chat(provider).lower(msgs, response_format={"type": "json_object"}).request
    assert INSTRUCTION not in str(request)
    assert problems(provider, request) == []


@each_case("output", [Answer, list[Answer], Answer | None, Literal["yes", "no"], "json_object"])
@pytest.mark.parametrize("provider", PROVIDERS)
def test_each_schema_obeys_the_rules_of_the_api(provider: str, output: Any) -> None:
    request = chat(provider).lower([user("Hi")], response_format=output).request
    assert problems(provider, request) == []


FREE: Final[dict[str, Any]] = {"type": "object"}
OPEN_SCHEMAS: Final = [
    (FREE, "schema root"),
    ({**FREE, "properties": {"a": FREE}, "required": ["a"]}, "schema at a"),
    ({**FREE, "additionalProperties": {"type": "integer"}}, "schema root"),
    ({**FREE, "allOf": [{"properties": {"a": {"type": "integer"}}}]}, "schema root"),
    ({**FREE, "properties": {"a": FREE}, "patternProperties": {"^x": {"type": "integer"}}}, "schema root"),
]


@each_case("strict", [None, True])
@each_case(("schema", "name"), OPEN_SCHEMAS)
@pytest.mark.parametrize("provider", PROVIDERS)
def test_an_object_with_any_properties_is_never_closed(
    provider: str, schema: dict[str, Any], name: str, strict: bool | None
) -> None:
    output = OutputSchema(schema, strict=strict)
    plan = chat(provider).lower([user("Hi")], response_format=output)
    assert "'additionalProperties': False" not in str(plan.request)
    assert problems(provider, plan.request) == []
    if provider == "anthropic":
        (synthesis,) = plan.ledger.syntheses
        expected = f"the API cannot enforce a JSON schema if the {name} allows additional properties"
        assert synthesis.reason == f"{expected}, so a text asks the model to follow the schema"
        assert "output_config" not in plan.request
    elif strict and provider in ("openai", "openai-responses"):
        (synthesis,) = plan.ledger.syntheses
        expected = f"response_format sent without strict mode, because the {name} allows additional properties"
        assert synthesis.reason == expected


class Node(BaseModel):
    value: int
    children: list[Node] = []


@each_case("output", [Node, list[Node]])
@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_recursive_schema_is_in_the_prompt_where_the_api_refuses_recursion(provider: str, output: Any) -> None:
    plan = chat(provider).lower([user("Hi")], response_format=output)
    assert problems(provider, plan.request) == []
    causes = {
        "anthropic": "the schema is recursive",
        "gemini": "a required property of the schema is recursive",
    }
    if provider in causes:
        (synthesis,) = plan.ledger.syntheses
        expected = f"the API cannot enforce a JSON schema if {causes[provider]}"
        assert synthesis.reason == f"{expected}, so a text asks the model to follow the schema"
        assert _find_native_schema(plan.request) is None
    else:
        assert "recursive" not in str(plan.ledger.syntheses)


def test_gemini_enforces_a_schema_that_is_recursive_in_an_optional_property() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "integer"}, "next": {"$ref": "#"}}, "required": ["a"]}
    plan = chat("gemini").lower([user("Hi")], response_format=schema)
    assert (_find_native_schema(plan.request), plan.ledger.syntheses) == (schema, [])


class City(BaseModel):
    kind: Literal["city"]
    size: Size


class Size(Enum):
    SMALL = "small"
    LARGE = "large"


class Country(BaseModel):
    kind: Literal["country"]
    cities: list[City]
    capital: City | None = Field(None, description="The capital.")


class Place(BaseModel):
    place: City | Country
    name: str = Field(description="The name.")
    size: Size


@pytest.mark.parametrize("provider", ["anthropic", "gemini"])
@each_case("output", [Place, Country, City | Country, Place | None, list[Place]])
def test_the_schema_of_a_model_is_enforced_unchanged(provider: str, output: Any) -> None:
    plan = chat(provider).lower([user("Hi")], response_format=output)
    expected = as_output_schema(output)
    assert expected is not None
    assert (_find_native_schema(plan.request), plan.ledger.syntheses) == (expected.schema, [])


def _find_native_schema(request: dict[str, Any]) -> Any:
    output = request.get("output_config", {}).get("format", {}).get("schema")
    return output or request.get("config", {}).get("response_json_schema")


class Described(BaseModel):
    city: City = Field(description="The city.")


def test_gemini_gets_no_keyword_next_to_a_reference() -> None:
    for provider, city in [
        ("anthropic", {"$ref": "#/$defs/City", "description": "The city."}),
        ("gemini", {"anyOf": [{"$ref": "#/$defs/City"}], "description": "The city."}),
    ]:
        plan = chat(provider).lower([user("Hi")], response_format=Described)
        assert _find_native_schema(plan.request)["properties"] == {"city": city}
        assert plan.ledger.syntheses == []


@pytest.mark.anyio
@each_case(
    ("text", "output", "value"),
    {
        "model": ('{"verdict": "no"}', Answer, VALUE),
        "wrapped list": ('{"value": [{"verdict": "no"}]}', list[Answer], [VALUE]),
        "list in a fence": ('```json\n["yes"]\n```', list[Literal["yes", "no"]], ["yes"]),
    },
)
@pytest.mark.parametrize("provider", PROVIDERS)
async def test_a_model_returns_a_value_complete_and_streamed(
    provider: str, text: str, output: Any, value: object
) -> None:
    with LoopbackServer([text, text]) as server:
        async with create_model(provider, server) as model:
            assert await model.generate_as(output, HELLO) == value
            async with model.stream(HELLO, response_format=output) as stream:
                reply = await stream.finish()
    assert reply.parsed(output) == value
    first, second = (cast("dict[str, Any]", request.body) for request in server.requests)
    for name in ("response_format", "text", "output_config", "format", "generationConfig"):
        assert first.get(name) == second.get(name)


@pytest.mark.anyio
async def test_a_reply_without_the_value_is_an_error_with_the_reply() -> None:
    model = ScriptedModel(["I would rather not.", Msg("Friday", [TextBlock('{"verdict": "maybe"}')], "assistant")])
    with pytest.raises(ParseError) as caught:
        await model.generate_as(Answer, HELLO)
    assert (caught.value.failure, caught.value.message.text) == ("no_structure", "I would rather not.")
    with pytest.raises(ParseError, match=r"^verdict: Input should be 'yes' or 'no'"):
        await model.generate_as(Answer, HELLO)


@pytest.mark.anyio
async def test_an_error_of_the_call_is_no_parse_error() -> None:
    with pytest.raises(ModelError):
        await ScriptedModel([ModelError("demo", "no")]).generate_as(Answer, HELLO)


@pytest.mark.anyio
async def test_the_type_is_passed_once_and_must_have_a_schema() -> None:
    model = ScriptedModel(["{}"])
    error_text = r"^response_format: `generate_as` sets this option\. Remove this option, and pass the type"
    with pytest.raises(OptionError, match=error_text):
        await model.generate_as(Answer, HELLO, response_format=Answer)
    with pytest.raises(OptionError, match=r"^response_format: "):
        await model.generate_as(pytest.raises, HELLO)
    assert model.calls == []
