"""Logs from elsewhere: whose they are, and what a request asks for besides its messages."""

from collections.abc import Mapping
from typing import Any, Final

import pytest

from agentkit import (
    Asked,
    MessageError,
    Msg,
    OutputSchema,
    Provider,
    ProviderError,
    Tool,
    ToolChoice,
    dump_messages,
    load_native,
    load_provider,
    load_tools,
    tools_left_out,
)
from tests.providers import LOOK, PROVIDERS, chat, user

SCHEMA: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {"title": {"type": "string"}},
    "required": ["title"],
    "additionalProperties": False,
}
LOG: Final = [{"role": "user", "content": "Hello"}]
PARAMETERS: Final[dict[str, Any]] = {"type": "object", "properties": {"place": {"type": "string"}}}


def _asked(found: Asked) -> tuple[list[Tool], ToolChoice | None, OutputSchema | None]:
    choice, form = found.get("tool_choice"), found.get("response_format")
    assert isinstance(choice, ToolChoice | None)
    assert isinstance(form, OutputSchema | None)
    return [tool for tool in found.get("tools") or [] if isinstance(tool, Tool)], choice, form


class TestLoading:
    def test_the_form_is_named_by_a_provider_or_is_the_provider(self) -> None:
        assert load_native("openai", LOG)[0].text == "Hello"
        assert load_native(load_provider("openai"), {"model": "m", "messages": LOG}) == load_native("openai", LOG)

    def test_our_own_form_is_one_of_them(self) -> None:
        msgs = [user("Hello")]
        assert load_native("agentkit", dump_messages(msgs)) == msgs

    def test_an_unknown_form_is_refused_with_those_that_there_are(self) -> None:
        with pytest.raises(ProviderError, match="anthropic"):
            load_native("nobody", LOG)

    def test_a_provider_that_loads_no_logs_says_so(self) -> None:
        one = load_provider("openai")
        with pytest.raises(ProviderError, match="cannot be loaded"):
            load_native(Provider("mine", one.chat, one.multi_agent), LOG)

    @pytest.mark.parametrize("provider", [*PROVIDERS, "agentscope", "langchain", "agentkit"])
    @pytest.mark.parametrize("found", [None, 3, {}, {"nothing": 1}, True])
    def test_what_is_no_log_is_refused_by_place(self, provider: str, found: Any) -> None:
        with pytest.raises(MessageError) as caught:
            load_native(provider, found)
        assert caught.value.place

    @pytest.mark.parametrize("provider", PROVIDERS)
    def test_a_conversation_comes_back_from_every_wire(self, provider: str) -> None:
        said = [Msg("system", "You are Friday.", "system"), user("Hello")]
        loaded = load_native(provider, chat(provider).lower(said).request)
        assert [(msg.role, msg.text) for msg in loaded] == [("system", "You are Friday."), ("user", "Hello")]


class TestTools:
    @pytest.mark.parametrize("provider", PROVIDERS)
    def test_tools_and_an_answers_schema_come_back_from_every_wire(self, provider: str) -> None:
        request = chat(provider).lower([user("Look.")], tools=[LOOK], response_format=SCHEMA).request
        tools, _, form = _asked(load_tools(request))
        assert [(tool.name, tool.description) for tool in tools] == [("look", LOOK.description)]
        assert tools[0].parameters["properties"] == LOOK.parameters["properties"]
        again = chat(provider).lower([user("Look.")], **load_tools(request)).request
        if form is None:  # said in a prompt, or as "some JSON"
            again.pop("response_format", None)
            request.pop("response_format", None)
        assert {**again, "messages": 0} == {**request, "messages": 0}

    @pytest.mark.parametrize("choice", ["auto", "none", "required", "look"])
    @pytest.mark.parametrize("provider", ["openai", "openai-responses", "gemini"])
    def test_the_choice_comes_back_from_wires_that_have_all(self, provider: str, choice: str) -> None:
        request = chat(provider).lower([user("Look.")], tools=[LOOK], tool_choice=choice).request
        _, found, _ = _asked(load_tools(request))
        assert (found.name or found.mode if found else "auto") == choice

    @pytest.mark.parametrize(
        "request_",
        [
            {"tools": [{"type": "function", "function": {"name": "look", "parameters": PARAMETERS}}]},
            {"tools": [{"type": "function", "name": "look", "parameters": PARAMETERS}]},
            {"tools": [{"name": "look", "input_schema": PARAMETERS}]},
            {"tools": [{"type": "custom", "name": "look", "input_schema": PARAMETERS}]},
            {"tools": [{"functionDeclarations": [{"name": "look", "parametersJsonSchema": PARAMETERS}]}]},
            {"config": {"tools": [{"function_declarations": [{"name": "look", "parameters": PARAMETERS}]}]}},
            {"parameters": {"tools": [{"function": {"name": "look", "parameters": PARAMETERS}}]}},
            {"functions": [{"name": "look", "parameters": PARAMETERS}]},
            {"extra_body": {"tools": [{"function": {"name": "look", "parameters": PARAMETERS}}]}},
        ],
    )
    def test_a_tool_is_one_in_every_spelling(self, request_: Any) -> None:
        assert _asked(load_tools(request_))[0] == [Tool("look", "", PARAMETERS)]

    def test_geminis_schemas_become_json_schemas(self) -> None:
        parameters = {
            "type": "OBJECT",
            "properties": {
                "type": {"type": "STRING", "nullable": True},
                "n": {"type": "ARRAY", "items": {"type": "NUMBER"}},
            },
        }
        request = {"tools": [{"functionDeclarations": [{"name": "f", "parameters": parameters}]}]}
        assert _asked(load_tools(request))[0][0].parameters == {
            "type": "object",
            "properties": {
                "type": {"type": ["string", "null"]},
                "n": {"type": "array", "items": {"type": "number"}},
            },
        }

    @pytest.mark.parametrize(
        ("said", "expected"),
        [
            ({"tool_choice": {"type": "function", "function": {"name": "look"}}}, ToolChoice("tool", "look")),
            ({"tool_choice": {"type": "function", "name": "look"}}, ToolChoice("tool", "look")),
            ({"tool_choice": {"type": "tool", "name": "look"}}, ToolChoice("tool", "look")),
            ({"tool_choice": {"type": "any"}}, ToolChoice("required")),
            ({"tool_choice": {"type": "allowed_tools", "mode": "required"}}, ToolChoice("required")),
            ({"tool_choice": "required"}, ToolChoice("required")),
            ({"function_call": {"name": "look"}}, ToolChoice("tool", "look")),
            ({"toolConfig": {"functionCallingConfig": {"mode": "ANY"}}}, ToolChoice("required")),
            (
                {"toolConfig": {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["look"]}}},
                ToolChoice("tool", "look"),
            ),
            ({"config": {"tool_config": {"function_calling_config": {"mode": "NONE"}}}}, ToolChoice("none")),
            ({"tool_choice": {"type": "tool", "name": "another"}}, None),
            ({"tool_choice": 3}, None),
            ({"tool_choice": "sometimes"}, None),
        ],
    )
    def test_a_choice_is_one_in_every_spelling(self, said: Mapping[str, Any], expected: ToolChoice | None) -> None:
        tools = [{"name": "look", "parameters": PARAMETERS}]
        assert _asked(load_tools({"tools": tools, **said}))[1] == expected

    def test_without_tools_there_is_nothing_to_choose(self) -> None:
        assert load_tools({"messages": [], "tool_choice": "auto"}) == {}
        assert load_tools(LOG) == {}

    @pytest.mark.parametrize(
        "said",
        [
            {"response_format": {"type": "json_schema", "json_schema": {"name": "output", "schema": SCHEMA}}},
            {"text": {"format": {"type": "json_schema", "name": "output", "schema": SCHEMA, "strict": True}}},
            {"output_config": {"format": {"type": "json_schema", "schema": SCHEMA}}},
            {"output_format": {"type": "json_schema", "schema": SCHEMA}},
            {"format": SCHEMA},
            {"config": {"response_json_schema": SCHEMA}},
            {"generationConfig": {"responseJsonSchema": SCHEMA}},
        ],
    )
    def test_a_schema_is_one_in_every_spelling(self, said: Any) -> None:
        form = _asked(load_tools(said))[2]
        assert form is not None
        assert form.schema == SCHEMA

    @pytest.mark.parametrize(
        "said",
        [
            {"response_format": {"type": "json_object"}},
            {"format": "json"},
            {"text": {"format": {"type": "text"}}},
            {"format": {"type": "array", "items": {}}},
            {"response_format": {"type": "json_schema", "json_schema": {"schema": {"properties": 3}}}},
        ],
    )
    def test_a_form_without_a_schema_of_an_object_is_left_out(self, said: Any) -> None:
        assert load_tools(said) == {}

    def test_tools_that_run_at_the_provider_are_left_out_and_named(self) -> None:
        request: dict[str, Any] = {
            "tools": [
                {"type": "web_search_20250305", "name": "web_search"},
                {"name": "look", "input_schema": PARAMETERS},
                {"google_search": {}},
                {"type": "custom", "name": "grammar", "format": {"type": "grammar"}},
            ]
        }
        assert [tool.name for tool in _asked(load_tools(request))[0]] == ["look"]
        assert tools_left_out(request) == [
            ("tools[0]", "web_search_20250305"),
            ("tools[2]", "google_search"),
            ("tools[3]", "custom text"),
        ]

    def test_a_tool_that_nobody_could_follow_is_refused_by_place(self) -> None:
        with pytest.raises(MessageError) as caught:
            load_tools({"tools": [{"name": "look", "input_schema": {"properties": 3}}]})
        assert caught.value.place.startswith("tools[0]")

    def test_what_is_no_request_asks_for_nothing(self) -> None:
        odd: list[Any] = [None, 3, "x", [], {"tools": 3}, {"tools": {}}, {"config": []}]
        for one in odd:
            assert load_tools(one) == {}
