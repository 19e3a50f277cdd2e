"""Loading of native logs, of request options, and of cache markers."""

import json
from collections.abc import Mapping
from importlib import import_module
from typing import Any, Final

import pytest

from agentkit import (
    MessageError,
    Msg,
    OpaqueState,
    ProviderError,
    RequestOptions,
    TextBlock,
    ThinkingBlock,
    Tool,
    ToolChoice,
    dump_messages,
    list_cache_markers,
    list_server_tools,
    load_native,
    load_provider,
    load_request_options,
)
from agentkit.provider_kit import OutputSchema, Provider, WireLayout
from tests.cases import each_case
from tests.providers import LOOK, PROVIDERS, chat, user

SCHEMA: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {"title": {"type": "string"}},
    "required": ["title"],
    "additionalProperties": False,
}
LOG: Final = [{"role": "user", "content": "Hello"}]
PARAMETERS: Final[dict[str, Any]] = {"type": "object", "properties": {"place": {"type": "string"}}}


def _read_options(options: RequestOptions) -> tuple[list[Tool], ToolChoice | None, OutputSchema | None]:
    choice, schema = options.get("tool_choice"), options.get("response_format")
    assert isinstance(choice, ToolChoice | None)
    assert isinstance(schema, OutputSchema | None)
    return [tool for tool in options.get("tools") or [] if isinstance(tool, Tool)], choice, schema


class TestLoading:
    def test_the_provider_is_a_name_or_a_provider(self) -> None:
        assert load_native("openai", LOG)[0].text == "Hello"
        assert load_native(load_provider("openai"), {"model": "m", "messages": LOG}) == load_native("openai", LOG)

    def test_stored_messages_of_agentkit_load(self) -> None:
        msgs = [user("Hello")]
        assert load_native("agentkit", dump_messages(msgs)) == msgs

    def test_the_error_for_an_unknown_provider_lists_all_providers(self) -> None:
        with pytest.raises(ProviderError, match="anthropic"):
            load_native("nobody", LOG)

    def test_a_provider_without_a_loader_is_an_error(self) -> None:
        provider = load_provider("openai")
        with pytest.raises(ProviderError, match="has no loader"):
            load_native(Provider("mine", provider.chat_formatter, provider.multi_agent_formatter), LOG)

    @each_case("provider", [*PROVIDERS, "agentscope", "langchain", "agentkit"])
    @each_case("value", [None, 3, {}, {"nothing": 1}, True])
    def test_the_error_for_any_other_value_names_the_place(self, provider: str, value: Any) -> None:
        with pytest.raises(MessageError) as caught:
            load_native(provider, value)
        assert caught.value.place

    @each_case("provider", PROVIDERS)
    def test_a_formatted_conversation_loads_for_every_provider(self, provider: str) -> None:
        msgs = [Msg("system", "You are Friday.", "system"), user("Hello")]
        loaded = load_native(provider, chat(provider).lower(msgs).request)
        assert [(msg.role, msg.text) for msg in loaded] == [("system", "You are Friday."), ("user", "Hello")]


class TestTools:
    @each_case("provider", PROVIDERS)
    def test_tools_and_an_output_schema_load_for_every_provider(self, provider: str) -> None:
        request = chat(provider).lower([user("Look.")], tools=[LOOK], response_format=SCHEMA).request
        tools, _, schema = _read_options(load_request_options(provider, request))
        assert [(tool.name, tool.description) for tool in tools] == [("look", LOOK.description)]
        assert tools[0].parameters["properties"] == LOOK.parameters["properties"]
        again = chat(provider).lower([user("Look.")], **load_request_options(provider, request)).request
        if schema is None:  # a text in the prompt, or "some JSON"
            again.pop("response_format", None)
            request.pop("response_format", None)
        assert {**again, "messages": 0} == {**request, "messages": 0}

    @each_case("choice", ["auto", "none", "required", "look"])
    @each_case("provider", ["openai", "openai-responses", "gemini"])
    def test_each_tool_choice_loads_for_providers_that_support_all(self, provider: str, choice: str) -> None:
        request = chat(provider).lower([user("Look.")], tools=[LOOK], tool_choice=choice).request
        _, tool_choice, _ = _read_options(load_request_options(provider, request))
        assert (tool_choice.name or tool_choice.mode if tool_choice else "auto") == choice

    @each_case(
        ("provider", "request_"),
        [
            ("openai", {"tools": [{"type": "function", "function": {"name": "look", "parameters": PARAMETERS}}]}),
            ("openai", {"tools": [{"type": "function", "name": "look", "parameters": PARAMETERS}]}),
            ("openai", {"functions": [{"name": "look", "parameters": PARAMETERS}]}),
            ("openai", {"extra_body": {"tools": [{"function": {"name": "look", "parameters": PARAMETERS}}]}}),
            ("openai-responses", {"tools": [{"type": "function", "name": "look", "parameters": PARAMETERS}]}),
            ("anthropic", {"tools": [{"name": "look", "input_schema": PARAMETERS}]}),
            ("anthropic", {"tools": [{"type": "custom", "name": "look", "input_schema": PARAMETERS}]}),
            (
                "gemini",
                {"tools": [{"functionDeclarations": [{"name": "look", "parametersJsonSchema": PARAMETERS}]}]},
            ),
            (
                "gemini",
                {"config": {"tools": [{"function_declarations": [{"name": "look", "parameters": PARAMETERS}]}]}},
            ),
            ("dashscope", {"parameters": {"tools": [{"function": {"name": "look", "parameters": PARAMETERS}}]}}),
            ("ollama", {"tools": [{"function": {"name": "look", "parameters": PARAMETERS}}]}),
        ],
    )
    def test_every_spelling_of_a_tool_loads(self, provider: str, request_: Any) -> None:
        assert _read_options(load_request_options(provider, request_))[0] == [Tool("look", "", PARAMETERS)]

    @each_case(
        ("provider", "tools"),
        [
            ("gemini", {"functionDeclarations": [{"name": "look", "parameters": PARAMETERS}]}),
            ("gemini", {"function_declarations": {"name": "look", "parametersJsonSchema": PARAMETERS}}),
            (
                "anthropic",
                {"name": "look", "input_schema": PARAMETERS, "cache_control": None, "type": None, "strict": None},
            ),
            (
                "dashscope",
                [
                    {
                        "type": "function",
                        "function": {"name": "look", "description": None, "parameters": PARAMETERS},
                    }
                ],
            ),
            ("openai", {"type": "function", "function": {"name": "look", "parameters": PARAMETERS}}),
            (
                "openai-responses",
                {
                    "type": "function",
                    "name": "look",
                    "parameters": PARAMETERS,
                    "strict": None,
                    "description": None,
                },
            ),
        ],
    )
    @each_case("in_container", [False, True])
    def test_a_single_tool_needs_no_list_and_null_means_absent(
        self, provider: str, tools: Any, in_container: bool
    ) -> None:
        request = {"tools": tools, "tool_choice": None, "functions": None}
        container = {"gemini": "config", "dashscope": "parameters"}.get(provider, "extra_body")
        log = {"tools": None, container: request} if in_container else request
        assert _read_options(load_request_options(provider, log))[0] == [Tool("look", "", PARAMETERS)]
        assert list_server_tools(provider, log) == []

    def test_a_dumped_config_of_the_gemini_sdk_loads(self) -> None:
        types: Any = import_module("google.genai.types")
        place = types.Schema(type="STRING")
        look = types.FunctionDeclaration(
            name="look", parameters=types.Schema(type="OBJECT", properties={"place": place})
        )
        calling = types.FunctionCallingConfig(mode="ANY", allowed_function_names=["look"])
        search, code = types.GoogleSearch(), types.ToolCodeExecution()
        tool = types.Tool(function_declarations=[look], google_search=search, code_execution=code)
        config = types.GenerateContentConfig(
            tools=[tool],
            tool_config=types.ToolConfig(function_calling_config=calling),
        )
        dumps: list[Any] = [config.model_dump(), config.model_dump(mode="json", by_alias=True), config]
        requests: list[Any] = [{"model": "m", "contents": [], "config": dump} for dump in dumps]
        for request in [*dumps, *requests]:
            tools, choice, _ = _read_options(load_request_options("gemini", request))
            assert tools == [Tool("look", "", PARAMETERS)]
            assert choice == ToolChoice("tool", "look")
            listed = {
                (place, kind.lower().replace("_", "")) for place, kind in list_server_tools("gemini", request)
            }
            assert listed == {("tools[0]", "codeexecution"), ("tools[0]", "googlesearch")}

    @each_case("tools", ["search", 3, True])
    def test_tools_of_another_type_are_an_error(self, tools: Any) -> None:
        for load in (load_request_options, list_server_tools):
            with pytest.raises(MessageError, match="tools"):
                load("openai", {"tools": tools})

    def test_schemas_of_gemini_become_json_schemas(self) -> None:
        parameters = {
            "type": "OBJECT",
            "properties": {
                "type": {"type": "STRING", "nullable": True},
                "n": {"type": "ARRAY", "items": {"type": "NUMBER"}},
            },
        }
        request = {"tools": [{"functionDeclarations": [{"name": "f", "parameters": parameters}]}]}
        assert _read_options(load_request_options("gemini", request))[0][0].parameters == {
            "type": "object",
            "properties": {
                "type": {"type": ["string", "null"]},
                "n": {"type": "array", "items": {"type": "number"}},
            },
        }

    @each_case(
        ("provider", "choice", "expected"),
        [
            (
                "openai",
                {"tool_choice": {"type": "function", "function": {"name": "look"}}},
                ToolChoice("tool", "look"),
            ),
            ("openai", {"tool_choice": "required"}, ToolChoice("required")),
            ("openai", {"function_call": {"name": "look"}}, ToolChoice("tool", "look")),
            ("openai", {"tool_choice": 3}, None),
            ("openai", {"tool_choice": "sometimes"}, None),
            (
                "openai-responses",
                {"tool_choice": {"type": "function", "name": "look"}},
                ToolChoice("tool", "look"),
            ),
            (
                "openai-responses",
                {"tool_choice": {"type": "allowed_tools", "mode": "required"}},
                ToolChoice("required"),
            ),
            ("anthropic", {"tool_choice": {"type": "tool", "name": "look"}}, ToolChoice("tool", "look")),
            ("anthropic", {"tool_choice": {"type": "any"}}, ToolChoice("required")),
            ("anthropic", {"tool_choice": {"type": "tool", "name": "another"}}, None),
            ("gemini", {"toolConfig": {"functionCallingConfig": {"mode": "ANY"}}}, ToolChoice("required")),
            (
                "gemini",
                {"toolConfig": {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["look"]}}},
                ToolChoice("tool", "look"),
            ),
            (
                "gemini",
                {"config": {"tool_config": {"function_calling_config": {"mode": "NONE"}}}},
                ToolChoice("none"),
            ),
        ],
    )
    def test_every_spelling_of_a_tool_choice_loads(
        self, provider: str, choice: Mapping[str, Any], expected: ToolChoice | None
    ) -> None:
        tools = [{"name": "look", "parameters": PARAMETERS}]
        request = {"tools": [{"functionDeclarations": tools}] if provider == "gemini" else tools, **choice}
        assert _read_options(load_request_options(provider, request))[1] == expected

    def test_without_tools_a_tool_choice_is_omitted(self) -> None:
        assert load_request_options("openai", {"messages": [], "tool_choice": "auto"}) == {}
        assert load_request_options("openai", LOG) == {}

    @each_case(
        ("provider", "output"),
        [
            (
                "openai",
                {"response_format": {"type": "json_schema", "json_schema": {"name": "output", "schema": SCHEMA}}},
            ),
            (
                "openai-responses",
                {"text": {"format": {"type": "json_schema", "name": "output", "schema": SCHEMA, "strict": True}}},
            ),
            ("anthropic", {"output_config": {"format": {"type": "json_schema", "schema": SCHEMA}}}),
            ("anthropic", {"output_format": {"type": "json_schema", "schema": SCHEMA}}),
            ("ollama", {"format": SCHEMA}),
            ("gemini", {"config": {"response_json_schema": SCHEMA}}),
            ("gemini", {"generationConfig": {"responseJsonSchema": SCHEMA}}),
        ],
    )
    def test_every_spelling_of_an_output_schema_loads(self, provider: str, output: Any) -> None:
        schema = _read_options(load_request_options(provider, output))[2]
        assert schema is not None
        assert schema.schema == SCHEMA

    @each_case(
        ("provider", "output"),
        [
            (
                "openai",
                {"response_format": {"type": "json_schema", "json_schema": {"schema": {"properties": 3}}}},
            ),
            ("openai", {"response_format": {"type": "text"}}),
            ("openai-responses", {"text": {"format": {"type": "text"}}}),
            ("ollama", {"format": "yaml"}),
        ],
    )
    def test_an_output_format_without_a_schema_is_omitted(self, provider: str, output: Any) -> None:
        assert load_request_options(provider, output) == {}

    @each_case(
        ("provider", "output"),
        [
            ("openai", {"response_format": {"type": "json_object"}}),
            ("openai-responses", {"text": {"format": {"type": "json_object"}}}),
            ("deepseek", {"response_format": {"type": "json_object"}}),
            ("ollama", {"format": "json"}),
            ("gemini", {"config": {"response_mime_type": "application/json"}}),
            ("gemini", {"generationConfig": {"responseMimeType": "application/json"}}),
        ],
    )
    def test_the_json_mode_of_each_api_loads(self, provider: str, output: Any) -> None:
        schema = _read_options(load_request_options(provider, output))[2]
        assert schema is not None
        assert schema.is_any_object

    def test_a_schema_of_a_list_loads_as_the_property_of_an_object(self) -> None:
        output: dict[str, Any] = {"format": {"type": "array", "items": {}}}
        schema = _read_options(load_request_options("ollama", output))[2]
        assert schema is not None
        assert schema.schema["properties"] == {"value": {"type": "array", "items": {}}}

    def test_tools_that_run_at_the_provider_are_omitted_and_listed(self) -> None:
        request: dict[str, Any] = {
            "tools": [
                {"type": "web_search_20250305", "name": "web_search"},
                {"name": "look", "input_schema": PARAMETERS},
            ]
        }
        assert [tool.name for tool in _read_options(load_request_options("anthropic", request))[0]] == ["look"]
        assert list_server_tools("anthropic", request) == [("tools[0]", "web_search_20250305")]
        custom = {"type": "custom", "name": "grammar", "format": {"type": "grammar"}}
        assert list_server_tools("openai", {"tools": [custom]}) == [("tools[0]", "custom")]
        search: dict[str, Any] = {"tools": [{"google_search": {}}]}
        assert list_server_tools("gemini", search) == [("tools[0]", "google_search")]

    def test_the_schema_of_a_tool_can_be_nested(self) -> None:
        layout = WireLayout(
            containers=("toolConfig",), tool_wrapper="toolSpec", tool_schemas=("inputSchema.json",)
        )
        schema = {"type": "object", "properties": {"place": {"type": "string"}}}
        request = {"toolConfig": {"tools": [{"toolSpec": {"name": "look", "inputSchema": {"json": schema}}}]}}
        assert load_request_options(layout, request) == {"tools": [Tool("look", "", schema)]}

    def test_a_tool_with_a_malformed_schema_is_an_error_with_its_place(self) -> None:
        with pytest.raises(MessageError) as caught:
            load_request_options("anthropic", {"tools": [{"name": "look", "input_schema": {"properties": 3}}]})
        assert caught.value.place.startswith("tools[0]")

    @each_case("provider", PROVIDERS)
    def test_any_other_value_has_no_options(self, provider: str) -> None:
        values: list[Any] = [None, 3, "x", [], {"tools": None}, {"tools": {}}, {"config": []}]
        for value in values:
            assert load_request_options(provider, value) == {}

    def test_a_request_may_be_json_text(self) -> None:
        request = chat("openai").lower([user("Look.")], tools=[LOOK]).request
        assert load_request_options("openai", json.dumps(request)) == load_request_options("openai", request)

    def test_options_stored_with_messages_of_agentkit_load(self) -> None:
        stored = {**dump_messages([user("Hello")]), "tools": [{"name": "look", "parameters": PARAMETERS}]}
        assert load_request_options("agentkit", stored) == {"tools": [Tool("look", "", PARAMETERS)]}

    def test_an_unknown_provider_is_an_error(self) -> None:
        for load in (load_request_options, list_server_tools, list_cache_markers):
            with pytest.raises(ProviderError, match="no such provider"):
                load("nowhere", {})


MARKER: Final = {"type": "ephemeral"}
MARKED: Final[dict[str, Any]] = {
    "anthropic": {
        "system": [{"type": "text", "text": "Be brief.", "cache_control": MARKER}],
        "messages": [{"role": "user", "content": [{"type": "text", "text": "hi", "cache_control": MARKER}]}],
        "tools": [{"name": "look", "input_schema": PARAMETERS, "cache_control": MARKER}],
    },
    "openai": {
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "hi", "prompt_cache_breakpoint": MARKER}]},
            {"role": "user", "content": "hi", "cache_control": MARKER},
        ]
    },
    "dashscope": {"input": {"messages": [{"role": "user", "content": [{"text": "hi", "cache_control": MARKER}]}]}},
}
PLACES: Final = {
    "anthropic": ["system[0]", "messages[0].content[0]", "tools[0]"],
    "openai": ["messages[0].content[0]", "messages[1]"],
    "dashscope": ["input.messages[0].content[0]"],
}


@pytest.mark.parametrize("provider", MARKED)
def test_cache_markers_of_a_loaded_request_are_reported(provider: str, caplog: pytest.LogCaptureFixture) -> None:
    assert list_cache_markers(provider, MARKED[provider]) == PLACES[provider]
    with caplog.at_level("INFO", "agentkit"):
        load_native(provider, MARKED[provider])
    assert f"{len(PLACES[provider])} cache marker(s) omitted; the first is at {PLACES[provider][0]}" in caplog.text


def test_call_arguments_and_nulls_are_not_cache_markers() -> None:
    call = {"type": "tool_use", "id": "c", "name": "n", "input": {"cache_control": MARKER}}
    log = [{"role": "assistant", "content": [call, {"type": "text", "text": "a", "cache_control": None}]}]
    assert list_cache_markers("anthropic", log) == []


SERVER_STATE: Final = [
    ("openai-responses", {"previous_response_id": "resp_1", "input": "hi"}, "previous_response_id"),
    ("openai-responses", {"conversation": {"id": "conv_1"}, "input": "hi"}, "conversation"),
    ("openai-responses", {"prompt": {"id": "pmpt_1"}, "input": "hi"}, "prompt"),
    ("openai-responses", {"prompt": {"id": "pmpt_1"}}, "prompt"),
    ("gemini", {"contents": "hi", "cachedContent": "cachedContents/1"}, "cachedContent"),
    ("gemini", {"contents": "hi", "config": {"cached_content": "cachedContents/1"}}, "cached_content"),
    ("dashscope", {"input": {"messages": LOG, "session_id": "s"}}, "session_id"),
    ("dashscope", {"messages": LOG, "memory_id": "s"}, "memory_id"),
]


@each_case(("provider", "request_", "key"), SERVER_STATE)
def test_a_request_that_continues_messages_on_the_server_is_an_error(
    provider: str, request_: dict[str, Any], key: str
) -> None:
    with pytest.raises(MessageError, match="identifies messages that are stored on the server") as caught:
        load_native(provider, request_)
    assert caught.value.place == key


def test_the_messages_of_a_continued_request_load_alone() -> None:
    items = [{"type": "function_call_output", "call_id": "c", "output": "found"}]
    assert load_native("openai-responses", items)[0].tool_results[0].text == "found"
    request = {"previous_response_id": None, "conversation": None, "prompt": None, "input": items}
    assert load_native("openai-responses", request) == load_native("openai-responses", items)


THOUGHTS: Final = [
    {"type": "thinking", "thinking": "First.", "signature": "c2ln"},
    {"type": "redacted_thinking", "data": "cmVk"},
]


@each_case("provider", ["openai", "deepseek", "vllm", "dashscope-compatible"])
def test_thinking_blocks_of_litellm_are_sent_back_to_anthropic(provider: str) -> None:
    reply = {"role": "assistant", "content": "Hi.", "reasoning_content": "First.", "thinking_blocks": THOUGHTS}
    msgs = load_native(provider, [{"role": "user", "content": "hi"}, reply, {"role": "user", "content": "And?"}])
    first, second, text = msgs[1].blocks
    assert first == ThinkingBlock("First.", OpaqueState("anthropic", signature="c2ln"))
    assert second == ThinkingBlock("", OpaqueState("anthropic", redacted_data="cmVk"))
    assert isinstance(text, TextBlock)
    content = chat("anthropic").lower(msgs).request["messages"][1]["content"]
    assert content[:2] == THOUGHTS
    again = chat(provider).lower(msgs).request["messages"][1]
    if provider == "openai":
        assert again["thinking_blocks"] == THOUGHTS
