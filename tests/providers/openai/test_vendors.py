"""OpenAI-compatible vendors that are rows: their requests, replies, parameters, addresses and keys."""

from __future__ import annotations

from typing import Any, Final, cast

import pytest

from agentkit import (
    AudioBlock,
    AuthError,
    Base64Source,
    ChatModel,
    ContextLengthError,
    DocumentBlock,
    FinishReason,
    Msg,
    MultiAgentHistory,
    OpaqueState,
    OptionError,
    ThinkingBlock,
    Tool,
    load_native,
    load_provider,
)
from agentkit.provider_kit import Capabilities, MediaRule
from agentkit.testing import LoopbackError, LoopbackServer, Reply, check_provider
from agentkit_openai import VENDOR_CHAT, OpenAIChatFormatter, OpenAICompatible
from tests.cases import each_case
from tests.providers import LOOK, PDF, PNG, WAV, assistant, call, chat, picture, result, system, user
from tests.providers.calling import options

VENDORS: Final = ("azure", "compatible", "llamacpp", "mistral", "openrouter")
KEYS: Final = {"azure": "AZURE_OPENAI_API_KEY", "mistral": "MISTRAL_API_KEY", "openrouter": "OPENROUTER_API_KEY"}
HELLO: Final = [user("Hello?")]
CALL: Final = call("call_0123456789", place="Rome")
EXCHANGE: Final = [system("Be brief."), user("Rome?"), assistant(CALL), system(result("call_0123456789", "Sun."))]
NINE: Final = "ab14600fc"


@pytest.mark.parametrize("vendor", VENDORS)
def test_the_provider_of_each_row_passes_all_checks(vendor: str) -> None:
    check_provider(vendor, model="some-model")


@each_case("vendor", VENDORS)
def test_the_classes_of_a_row_have_the_name_of_the_vendor(vendor: str) -> None:
    provider = load_provider(vendor)
    formatter = cast("type[OpenAIChatFormatter]", provider.chat_formatter)
    title = formatter.vendor.title
    assert title.lower() == vendor
    assert formatter.__name__ == f"{title}ChatFormatter"
    assert provider.multi_agent_formatter.__name__ == f"{title}MultiAgentFormatter"
    assert isinstance(provider.multi_agent_formatter().history, MultiAgentHistory)
    assert (provider.parser.provider if provider.parser else "") == vendor


# -- requests -----------------------------------------------------------------------------------------------------

ASSISTANT: Final[dict[str, dict[str, Any]]] = {
    # An assistant turn with thinking of the vendor, a text and a tool call.
    "azure": {"content": "Soon.", "name": "Friday"},
    "compatible": {"content": "Soon."},
    "llamacpp": {"content": "Soon.", "reasoning_content": "Hm."},
    "mistral": {
        "content": [
            {"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}], "signature": "S", "closed": True},
            {"type": "text", "text": "Soon."},
        ]
    },
    "openrouter": {"content": "Soon.", "name": "Friday", "reasoning": "Hm."},
}
IDS: Final = {"compatible": NINE, "llamacpp": NINE, "mistral": NINE}
NAMED: Final = frozenset({"azure", "openrouter"})


@each_case("vendor", VENDORS)
def test_an_exchange_has_the_expected_json_for_each_vendor(vendor: str) -> None:
    thinking = ThinkingBlock("Hm.", OpaqueState(vendor, signature="S"))
    msgs = [*EXCHANGE[:2], assistant(thinking, "Soon.", CALL), EXCHANGE[3]]
    request = chat(vendor, "some-model").lower(msgs, tools=[LOOK]).request
    call_id = IDS.get(vendor, CALL.id)
    function = {"name": "look", "arguments": '{"place":"Rome"}'}
    speaker = {"name": "Bob"} if vendor in NAMED else {}
    assert request["messages"] == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Rome?", **speaker},
        {
            "role": "assistant",
            **ASSISTANT[vendor],
            "tool_calls": [{"id": call_id, "type": "function", "function": function}],
        },
        {"role": "tool", "tool_call_id": call_id, "content": "Sun."},
    ]
    assert [tool["function"]["name"] for tool in request["tools"]] == ["look"]


@each_case("vendor", VENDORS)
def test_loaded_messages_give_the_same_request(vendor: str) -> None:
    thinking = ThinkingBlock("Hm.", OpaqueState(vendor, signature="S"))
    formatter = chat(vendor, "some-model")
    msgs = [*EXCHANGE[:2], assistant(thinking, "Soon.", CALL), EXCHANGE[3]]
    request = formatter.lower(msgs, tools=[LOOK]).request
    assert formatter.lower(load_native(vendor, request), tools=[LOOK]).request == request


@each_case(
    ("vendor", "model", "call_id"),
    [
        *[(vendor, "some-model", IDS.get(vendor, CALL.id)) for vendor in VENDORS],
        ("openrouter", "mistralai/mistral-large-2512", NINE),
        ("openrouter", "anthropic/claude-opus-5", CALL.id),
    ],
)
def test_call_ids_follow_the_rule_of_the_model(vendor: str, model: str, call_id: str) -> None:
    messages = chat(vendor, model).lower(EXCHANGE, tools=[LOOK]).request["messages"]
    assert messages[-1]["tool_call_id"] == messages[-2]["tool_calls"][0]["id"] == call_id


@each_case(
    ("vendor", "choice", "sent"),
    [
        *[(vendor, "required", "required") for vendor in VENDORS],
        *[
            (vendor, "look", {"type": "function", "function": {"name": "look"}})
            for vendor in ("azure", "compatible", "mistral", "openrouter")
        ],
        (
            "llamacpp",
            "look",
            "required",
        ),  # the server treats an object as "auto"; therefore only this tool is declared
    ],
)
def test_a_tool_choice_has_a_value_that_the_vendor_accepts(vendor: str, choice: str, sent: object) -> None:
    request = chat(vendor, "some-model").lower(HELLO, tools=[LOOK, Tool("stop")], tool_choice=choice).request
    assert request["tool_choice"] == sent
    names = [tool["function"]["name"] for tool in request["tools"]]
    assert names == (["look"] if (vendor, choice) == ("llamacpp", "look") else ["look", "stop"])


@each_case("vendor", VENDORS)
def test_a_choice_among_some_tools_omits_the_other_tools(vendor: str) -> None:
    others = [Tool(name, "Another tool.", {"type": "object", "properties": {}}) for name in ("other", "third")]
    request = chat(vendor).lower(HELLO, tools=[LOOK, *others], tool_choice=["look", "other"]).request
    assert [tool["function"]["name"] for tool in request["tools"]] == ["look", "other"]
    assert request["tool_choice"] == "required"


@each_case("vendor", VENDORS)
def test_only_mistral_gets_the_key_prefix(vendor: str) -> None:
    last = chat(vendor, "some-model").lower([*HELLO, assistant("It is")]).request["messages"][-1]
    assert (last["role"], last["content"]) == ("assistant", "It is")
    assert last.get("prefix") == (True if vendor == "mistral" else None)


MEDIA: Final[dict[str, tuple[str, Any, dict[str, Any] | None]]] = {
    # By case: vendor and model, the block, and the part. None: the vendor does not accept the block.
    **{
        f"image {vendor}": (
            vendor,
            picture(),
            {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}"}},
        )
        for vendor in VENDORS
    },
    "pdf azure": ("azure", "pdf", None),
    "pdf llamacpp": ("llamacpp", "pdf", None),
    "pdf mistral": (
        "mistral",
        "pdf",
        {"type": "document_url", "document_url": f"data:application/pdf;base64,{PDF}", "document_name": "a.pdf"},
    ),
    "pdf openrouter": (
        "openrouter",
        "pdf",
        {"type": "file", "file": {"filename": "a.pdf", "file_data": f"data:application/pdf;base64,{PDF}"}},
    ),
    "wav mistral": ("mistral", "wav", None),
    "wav voxtral": ("mistral:voxtral-small", "wav", {"type": "input_audio", "input_audio": WAV}),
    "wav openrouter": (
        "openrouter",
        "wav",
        {"type": "input_audio", "input_audio": {"data": WAV, "format": "wav"}},
    ),
}


@each_case("case", [*MEDIA])
def test_media_have_the_expected_json_for_each_vendor(case: str) -> None:
    target, block, part = MEDIA[case]
    vendor, _, model = target.partition(":")
    if block == "pdf":
        block = DocumentBlock(Base64Source("application/pdf", PDF), title="a.pdf")
    elif block == "wav":
        block = AudioBlock(Base64Source("audio/wav", WAV))
    formatter = chat(vendor, model or None)
    plan = formatter.lower([user("Look:", block)])
    content = plan.request["messages"][0]["content"]
    if part is None:
        assert "left out because" in str(content)
        assert plan.ledger.losses
    else:
        assert content[1] == part
        assert formatter.lower(load_native(vendor, plan.request)).request["messages"][0]["content"] == content


def test_openrouter_marks_at_most_four_parts_for_the_prompt_cache() -> None:
    turns = [user("Q", name="Bob") if index % 2 else assistant("A") for index in range(1, 20)]
    request: Any = chat("openrouter", cache_breakpoints="auto").lower([system("Be brief."), *turns]).request
    parts: list[Any] = [
        part for message in request["messages"] for part in message["content"] if isinstance(part, dict)
    ]
    marked = [part for part in parts if "cache_control" in part]
    assert 1 < len(marked) <= 4
    assert all(part["cache_control"] == {"type": "ephemeral"} for part in marked)


# -- replies ------------------------------------------------------------------------------------------------------


def _chunk(**choice: Any) -> dict[str, Any]:
    return {"id": "r1", "model": "some-model", "choices": [{"index": 0, **choice}]}


def _stream(vendor: str, chunks: list[dict[str, Any]]) -> Msg:
    parser_class = load_provider(vendor).parser
    assert parser_class is not None
    parser = parser_class()
    for chunk in chunks:
        parser.feed(chunk)
    return parser.finish()


def test_thinking_parts_of_mistral_become_thinking() -> None:
    thinking = {
        "type": "thinking",
        "thinking": [{"type": "text", "text": "Hm."}],
        "closed": True,
        "signature": "S",
    }
    content = [thinking, {"type": "text", "text": "Sun."}]
    parser = load_provider("mistral").parser
    assert parser is not None
    reply = parser.parse_response(
        {
            "id": "r1",
            "model": "some-model",
            "choices": [{"message": {"content": content}, "finish_reason": "stop"}],
        }
    )
    streamed = _stream(
        "mistral",
        [
            _chunk(delta={"role": "assistant", "content": [{**thinking, "signature": None}]}),
            _chunk(delta={"content": [{"type": "thinking", "thinking": [], "signature": "S"}]}),
            _chunk(delta={"content": "Sun."}, finish_reason="stop"),
        ],
    )
    assert reply.content == streamed.content
    block = reply.content[0]
    assert isinstance(block, ThinkingBlock)
    assert block.thinking == "Hm."
    assert block.state is not None
    assert (block.state.issuer, block.state.signature) == ("mistral", "S")


def test_calls_of_mistral_without_an_index_are_separated_by_id() -> None:
    calls = [{"id": f"abcdefgh{number}", "function": {"name": "look", "arguments": "{}"}} for number in range(3)]
    msg = _stream("mistral", [_chunk(delta={"tool_calls": calls}, finish_reason="tool_calls")])
    assert [use.id for use in msg.tool_uses] == ["abcdefgh0", "abcdefgh1", "abcdefgh2"]


def test_a_full_context_of_mistral_is_the_finish_reason_length() -> None:
    msg = _stream("mistral", [_chunk(delta={"content": "And then"}, finish_reason="model_length")])
    assert msg.finish_reason is FinishReason.LENGTH


DETAILS: Final[list[dict[str, Any]]] = [
    {
        "type": "reasoning.text",
        "text": "Let me see.",
        "signature": "SIG",
        "format": "anthropic-claude-v1",
        "index": 0,
    },
    {"type": "reasoning.encrypted", "data": "AAAA", "format": "google-gemini-v1", "index": 1},
]


def test_reasoning_details_of_openrouter_are_joined_and_sent_back_unchanged() -> None:
    text, encrypted = DETAILS
    first = {**text, "text": "Let me ", "signature": None}
    second = {"type": "reasoning.text", "text": "see.", "index": 0}
    third = {"type": "reasoning.text", "signature": "SIG", "index": 0}
    function = {"index": 0, "id": "c1", "function": {"name": "look", "arguments": "{}"}}
    streamed = _stream(
        "openrouter",
        [
            _chunk(delta={"reasoning": "Let me ", "reasoning_details": [first]}),
            _chunk(delta={"reasoning": "see.", "reasoning_details": [second]}),
            _chunk(delta={"reasoning_details": [third, encrypted], "tool_calls": [function]}),
            _chunk(delta={}, finish_reason="tool_calls"),
            {**_chunk(delta={"content": ""}, finish_reason="tool_calls"), "usage": {"prompt_tokens": 3}},
        ],
    )
    block = streamed.content[0]
    assert isinstance(block, ThinkingBlock)
    assert block.thinking == "Let me see."
    msgs = [*HELLO, streamed, system(result("c1", "Sun."))]
    message = chat("openrouter", "some-model").lower(msgs, tools=[LOOK]).request["messages"][1]
    assert message["reasoning_details"] == DETAILS
    assert "reasoning" not in message
    assert load_native("openrouter", [message])[0].content[0] != block  # the log has no model name
    elsewhere = chat("deepseek").lower(msgs, tools=[LOOK]).request["messages"][1]
    assert "reasoning_details" not in elsewhere


@pytest.mark.parametrize(("field", "text"), [("summary", "In short."), ("data", "")])
def test_the_text_of_details_is_the_thinking_if_there_is_no_other_text(field: str, text: str) -> None:
    detail = {"type": "reasoning.x", field: text or "AAAA"}
    chunks = [_chunk(delta={"reasoning_details": [detail], "content": "Sun."}, finish_reason="stop")]
    msg = _stream("openrouter", chunks)
    block = msg.content[0]
    assert isinstance(block, ThinkingBlock)
    assert block.thinking == text
    sent = chat("openrouter").lower([*HELLO, msg]).request["messages"][-1]
    assert sent["reasoning_details"] == [detail]


# -- calls --------------------------------------------------------------------------------------------------------

LIMITS: Final = {"azure": "max_completion_tokens", "openrouter": "max_completion_tokens"}
PATHS: Final = {"azure": "/openai/v1/chat/completions"}


def _client(vendor: str, server: LoopbackServer) -> dict[str, Any]:
    client_options = options(vendor, server)
    return (
        {**client_options, "base_url": f"{server.url('azure')}/openai/v1/"}
        if vendor == "azure"
        else client_options
    )


@pytest.mark.anyio
@pytest.mark.parametrize("vendor", VENDORS)
async def test_complete_and_streamed_replies_of_each_vendor_are_parsed(vendor: str) -> None:
    reply = Reply("The sun.")
    with LoopbackServer([reply, reply]) as server:
        async with ChatModel(vendor, "some-model", client_options=_client(vendor, server), max_tokens=50) as model:
            native = await model.generate(HELLO, tools=[LOOK])
            async with model.stream(HELLO, tools=[LOOK]) as stream:
                streamed = await stream.finish()
    assert native.content == streamed.content
    assert native.text == "The sun."
    first, second = server.requests
    assert first.path.partition("?")[0] == PATHS.get(vendor, f"/{vendor}/v1/chat/completions")
    assert first.headers["authorization"] == "Bearer sk-loopback"
    limits = {key: item for key, item in first.body.items() if key.startswith("max_")}
    assert limits == {LIMITS.get(vendor, "max_tokens"): 50}
    asked = {"stream_options"} & second.body.keys()
    assert bool(asked) is (vendor != "mistral")
    assert streamed.metadata is not None
    assert streamed.metadata["reply"]["usage"]


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("vendor", "text"),
    [
        (
            "mistral",
            "Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum "
            "context length",
        ),
        (
            "openrouter",
            "This endpoint's maximum context length is 32768 tokens. However, you requested about 40000 tokens "
            "(30000 of text input, 10000 in the output).",
        ),
        (
            "llamacpp",
            "request (40000 tokens) exceeds the available context size (32768 tokens), try increasing it",
        ),
    ],
)
async def test_a_prompt_that_is_too_long_is_a_context_length_error(vendor: str, text: str) -> None:
    with LoopbackServer([LoopbackError(400, text)]) as server:
        async with ChatModel(vendor, "some-model", client_options=_client(vendor, server)) as model:
            with pytest.raises(ContextLengthError):
                await model.generate(HELLO)
    assert load_provider(vendor).error_patterns.parse_sizes(text) == (32768, 40000)


def _open_client(vendor: str, **fields: Any) -> Any:
    endpoint = load_provider(vendor).endpoint
    assert endpoint is not None
    return endpoint.open(**fields).client


@pytest.mark.parametrize(("vendor", "variable"), KEYS.items())
def test_the_key_is_read_from_the_variable_of_the_vendor(
    vendor: str, variable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-openai")
    monkeypatch.delenv(variable, raising=False)
    with pytest.raises(AuthError, match=variable):
        _open_client(vendor, base_url="http://localhost:1/v1")
    monkeypatch.setenv(variable, "k")
    assert _open_client(vendor, base_url="http://localhost:1/v1").api_key == "k"


@pytest.mark.parametrize("vendor", ["compatible", "llamacpp"])
def test_a_server_without_a_key_never_gets_the_key_of_openai(vendor: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-openai")
    assert _open_client(vendor, base_url="http://localhost:1/v1").api_key != "sk-of-openai"


@pytest.mark.parametrize(
    ("vendor", "variables", "address"),
    [
        ("openrouter", {}, "https://openrouter.ai/api/v1/"),
        ("mistral", {}, "https://api.mistral.ai/v1/"),
        ("llamacpp", {}, "http://localhost:8080/v1/"),
        (
            "azure",
            {"AZURE_OPENAI_ENDPOINT": "https://x.openai.azure.com/"},
            "https://x.openai.azure.com/openai/v1/",
        ),
        ("azure", {}, None),
        ("compatible", {"OPENAI_BASE_URL": "https://api.openai.com/v1"}, None),
    ],
)
def test_the_address_is_that_of_the_vendor(
    vendor: str, variables: dict[str, str], address: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AZURE_OPENAI_ENDPOINT", raising=False)
    for name, item in variables.items():
        monkeypatch.setenv(name, item)
    if address is None:
        with pytest.raises(OptionError, match="base_url"):
            _open_client(vendor, api_key="k")
    else:
        assert str(_open_client(vendor, api_key="k").base_url) == address


# -- the row of a third party -------------------------------------------------------------------------------------


def test_a_row_of_a_third_party_becomes_a_provider() -> None:
    capabilities: Capabilities = VENDOR_CHAT.override(
        {"name": "Acme", "issuer": "acme", "wire": "acme", "media.image": MediaRule()}
    )
    row = OpenAICompatible(name="acme", title="Acme", capabilities=capabilities, address="http://localhost:9/v1")
    provider = row.provider()
    check_provider(provider)
    assert provider.load_native is not None
    assert provider.load_native([{"role": "user", "content": "Hi"}]) == [Msg("user", "Hi", "user")]
    assert row.parser.parse_response(_reply("Sun.")).text == "Sun."


def _reply(text: str) -> dict[str, Any]:
    return {"choices": [{"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}]}
