"""Loading of dumps that AgentScope 1.0 and 2.0 and langchain-core 1.7 wrote."""

import json
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from typing import Any, Final, cast

import pytest
from hypothesis import given

from agentkit import (
    AudioBlock,
    Base64Source,
    Block,
    DocumentBlock,
    FinishReason,
    ImageBlock,
    InvalidBlock,
    LossError,
    MessageError,
    Msg,
    OpaqueBlock,
    OpaqueState,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
    URLSource,
    Usage,
    VideoBlock,
    load_native,
    load_provider,
)
from tests.cases import each_case
from tests.logs.agentscope_states import AGENT, SESSION
from tests.logs.langchain_dumps import CONSTRUCTORS, DICTS, PROVIDERS_OWN, VERSION_1
from tests.profiles import examples
from tests.providers import PNG, PNG_URL, PROVIDERS, WAV
from tests.providers.mangling import mangled

# -- AgentScope -----------------------------------------------------------------------------------------------


def _as1(name: str, role: str, content: Any, **more: Any) -> dict[str, Any]:
    stamp: dict[str, Any] = {"metadata": {}, "timestamp": "2026-11-20 10:00:00.000", "id": f"id-{name}"}
    return {"name": name, "role": role, "content": content, **stamp, **more}


AS1: Final[list[Any]] = [
    _as1("system", "system", "You are Friday."),
    _as1(
        "Bob",
        "user",
        [{"type": "text", "text": "Look."}, {"type": "image", "source": {"type": "url", "url": PNG_URL}}],
    ),
    _as1(
        "Friday",
        "assistant",
        [
            {"type": "thinking", "thinking": "Hm.", "signature": "sig"},
            {"type": "tool_use", "id": "c1", "name": "look", "input": {"at": 1}, "raw_input": '{"at": 1}'},
        ],
        invocation_id="inv-1",
    ),
    _as1(
        "system",
        "system",
        [{"type": "tool_result", "id": "c1", "name": "look", "output": [{"type": "text", "text": "A cat."}]}],
    ),
]


class TestAgentScope1:
    def test_messages_load_as_expected(self) -> None:
        system, bob, friday, answer = load_native("agentscope", AS1)
        assert (system.name, system.text, system.role) == ("system", "You are Friday.", "system")
        assert bob.blocks == (TextBlock("Look."), ImageBlock(URLSource(PNG_URL)))
        assert friday.blocks == (
            ThinkingBlock("Hm.", OpaqueState("anthropic", signature="sig")),
            ToolUseBlock("c1", "look", {"at": 1}, '{"at": 1}'),
        )
        assert (friday.id, friday.timestamp) == ("id-Friday", "2026-11-20 10:00:00.000")
        assert friday.metadata == {"invocation_id": "inv-1"}
        assert answer.blocks == (ToolResultBlock("c1", "look", (TextBlock("A cat."),)),)

    @each_case(
        "state",
        cast(
            "list[Any]",
            [
                {"content": AS1},
                {"content": [[message, []] for message in AS1]},
                {"memory": {"content": [[message, []] for message in AS1]}, "name": "Friday"},
                {"agent": {"memory": {"content": AS1}}},
                {"messages": AS1},
            ],
        ),
    )
    def test_messages_in_a_state_load(self, state: Any) -> None:
        assert load_native("agentscope", state) == load_native("agentscope", AS1)

    def test_a_single_message_loads(self) -> None:
        assert load_native("agentscope", AS1[1]) == load_native("agentscope", AS1)[1:2]

    def test_objects_load_like_their_dicts(self) -> None:
        class Object:
            def __init__(self, value: Any) -> None:
                self.found = value

            def to_dict(self) -> Any:
                return self.found

        assert load_native("agentscope", [Object(message) for message in AS1]) == load_native("agentscope", AS1)

    def test_a_compressed_summary_is_first_and_marks_become_metadata(self) -> None:
        state = {"_compressed_summary": "They met.", "content": [[AS1[1], ["hint"]]]}
        summary, bob = load_native("agentscope", state)
        assert (summary.name, summary.role, summary.text) == ("user", "user", "They met.")
        assert summary.metadata == {"compressed_summary": True}
        assert (bob.metadata or {})["marks"] == ["hint"]

    def test_an_invalid_block_does_not_affect_other_blocks(self) -> None:
        content = [{"type": "text", "text": "x"}, {"type": "hologram"}, 3, {"text": "no type"}]
        blocks = load_native("agentscope", [_as1("Bob", "user", content)])[0].blocks
        assert blocks[0] == TextBlock("x")
        places = [block.place for block in blocks[1:] if isinstance(block, InvalidBlock)]
        assert places == [f"messages[0].content[{index}]" for index in (1, 2, 3)]


def _as2(type: str, **fields: Any) -> dict[str, Any]:
    return {"type": type, "id": f"b-{type}", "created_at": "t0", "finished_at": None, **fields}


AS2: Final[dict[str, Any]] = {
    "name": "Friday",
    "role": "assistant",
    "id": "m1",
    "metadata": {},
    "created_at": "2026-11-20T10:00:00",
    "usage": {"input_tokens": 9, "output_tokens": 4, "cache_input_tokens": 3, "cache_creation_input_tokens": 0},
    "finished_at": None,
    "finished_reason": None,
    "content": [
        _as2("thinking", thinking="", redacted_thinking_data="sealed"),
        _as2("text", text="I look."),
        {**_as2("tool_call", name="look", input='{"at": 1}', state="finished", suggested_rules=[]), "id": "c1"},
        {
            **_as2("tool_result", name="look", state="error", metadata={}),
            "id": "c1",
            "output": [
                _as2("text", text="A cat."),
                _as2("data", source={"type": "base64", "media_type": "image/png", "data": PNG}, name=None),
            ],
        },
        _as2("hint", hint="Alice waits.", source="alice"),
        _as2(
            "data",
            source={"type": "url", "url": "https://x.example/a.pdf", "media_type": "application/pdf"},
            name="a.pdf",
        ),
        _as2("text", text="Done."),
    ],
}


class TestAgentScope2:
    def test_a_message_is_split_into_its_turns(self) -> None:
        called, answered, hint, reply = load_native("agentscope", {"summary": "", "context": [AS2]})
        assert [block.type for block in called.blocks] == ["thinking", "text", "tool_use"]
        assert (called.id, called.timestamp) == ("m1", "2026-11-20T10:00:00")
        assert called.usage == Usage(9, 4, cache_read_tokens=3)
        thought, _, call = called.blocks
        assert isinstance(thought, ThinkingBlock)
        assert thought.state == OpaqueState("anthropic", redacted_data="sealed")
        assert isinstance(call, ToolUseBlock)
        assert (call.id, call.input, call.raw_input) == ("c1", {"at": 1}, '{"at": 1}')
        (result,) = answered.tool_results
        assert (answered.role, result.id, result.is_error, result.text) == ("system", "c1", True, "A cat.")
        assert isinstance(result.items[1], ImageBlock)
        assert (hint.name, hint.role, hint.text) == ("alice", "user", "Alice waits.")
        document, done = reply.blocks
        assert isinstance(document, DocumentBlock)
        assert (document.title, isinstance(done, TextBlock), reply.id) == ("a.pdf", True, None)

    @each_case(
        ("media_type", "kind"),
        [
            ("image/png", ImageBlock),
            ("audio/wav", AudioBlock),
            ("video/mp4", VideoBlock),
            ("text/csv", DocumentBlock),
        ],
    )
    def test_a_data_block_becomes_media_of_its_media_type(self, media_type: str, kind: type[Block]) -> None:
        source = {"type": "base64", "media_type": media_type, "data": PNG}
        message = {**AS2, "role": "user", "content": [_as2("data", source=source)]}
        assert isinstance(load_native("agentscope", [message])[0].blocks[0], kind)

    def test_a_summary_may_be_blocks(self) -> None:
        state = {"summary": [_as2("text", text="They met.")], "context": []}
        assert [msg.text for msg in load_native("agentscope", state)] == ["They met."]

    def test_a_truncated_call_has_its_argument_text(self) -> None:
        message = {**AS2, "content": [{**_as2("tool_call", name="look", input='{"at'), "id": "c1"}]}
        assert load_native("agentscope", [message])[0].tool_uses[0].raw_is_broken


# -- dumps that AgentScope wrote ------------------------------------------------------------------------------


def test_each_block_of_a_session_of_agentscope_1_loads() -> None:
    summary, system, bob, calling, first, second, answer, nothing = load_native("agentscope", SESSION)
    assert (summary.role, summary.text) == ("user", "<summary>Before.</summary>")
    assert (system.name, system.text, system.role) == ("system", "You are Friday.", "system")
    assert bob.blocks == (
        TextBlock("What is in this?"),
        ImageBlock(URLSource("https://example.org/a.png")),
        ImageBlock(Base64Source("image/png", "iVBORw==")),
        AudioBlock(Base64Source("audio/wav", "UklGRg==")),
        VideoBlock(URLSource("https://example.org/v.mp4")),
    )
    assert bob.metadata == {"k": 1}
    assert calling.blocks == (
        ThinkingBlock("hm"),
        TextBlock("I look."),
        ToolUseBlock("c1", "look", {"place": "sea"}, '{"place": "sea"}'),
        ToolUseBlock("c2", "look", {}),
    )
    assert calling.metadata == {"marks": ["hint"]}
    picture = ImageBlock(URLSource("https://example.org/b.png"))
    assert first.blocks == (ToolResultBlock("c1", "look", (TextBlock("calm"), picture)),)
    assert second.blocks == (ToolResultBlock("c2", "look", "Error: no place"),)
    assert (answer.text, answer.metadata) == ("Calm.", {"answer": {"calm": True}})
    assert nothing.blocks == ()
    assert load_native("agentscope", json.dumps(SESSION)) == load_native("agentscope", SESSION)


def _without_generated_keys(block: Block) -> Block:
    """Returns a block without the times and ids of AgentScope."""
    bare: Any = replace(block, metadata=None)
    if isinstance(block, ToolResultBlock) and not isinstance(block.output, str):
        return cast("Block", replace(bare, output=tuple(map(_without_generated_keys, block.output))))
    return cast("Block", bare)


def test_each_block_of_a_state_of_agentscope_2_loads() -> None:
    msgs = load_native("agentscope", AGENT)
    summary, system, bob, calling, results, hint, reading, answer, failed = msgs
    assert [msg.text for msg in (summary, system, hint, reading, answer)] == [
        "Before.", "You are Friday.", "Answer now.", "see", "Calm.",
    ]  # fmt: skip
    assert [_without_generated_keys(block) for block in bob.blocks] == [
        TextBlock("What is in this?"),
        ImageBlock(URLSource("https://example.org/a.png", "image/png")),
        ImageBlock(Base64Source("image/png", "iVBORw==")),
        AudioBlock(Base64Source("audio/wav", "UklGRg==")),
        VideoBlock(URLSource("https://example.org/v.mp4", "video/mp4")),
        DocumentBlock(Base64Source("application/pdf", "JVBERg=="), title="paper.pdf"),
        DocumentBlock(URLSource("file:///notes/x.txt", "text/plain")),
    ]
    assert [_without_generated_keys(block) for block in calling.blocks] == [
        ThinkingBlock("hm", OpaqueState("anthropic", signature="EsQC")),
        ThinkingBlock("", OpaqueState("anthropic", redacted_data="xyz")),
        TextBlock("I look."),
        ToolUseBlock("c1", "look", {"place": "sea"}, '{"place": "sea"}'),
        ToolUseBlock("c2", "look", calling.tool_uses[1].input, '{"pla'),
    ]
    assert calling.usage == Usage(10, 5, cache_read_tokens=4)
    assert (calling.metadata or {})["structured_output"] == {"calm": True}
    picture = ImageBlock(URLSource("https://example.org/b.png", "image/png"))
    assert [_without_generated_keys(block) for block in results.blocks] == [
        ToolResultBlock("c1", "look", (TextBlock("calm"), picture)),
        ToolResultBlock("c2", "look", "no such place", is_error=True),
    ]
    assert (hint.name, hint.role, reading.name, reading.role) == ("alice", "user", "user", "user")
    assert (failed.metadata or {})["error"] == {"type": "unknown", "message": "it broke"}
    assert load_native("agentscope", {"session_id": "s", "observed_context": AGENT["context"]}) == msgs[1:]
    assert load_native("agentscope", {"id": "s", "agent_id": "a", "state": AGENT, "config": {"x": 1}}) == msgs


@each_case("state", {"1.x": SESSION, "2.x": AGENT})
@each_case("provider", PROVIDERS)
def test_agentscope_logs_convert_for_every_provider(provider: str, state: Any) -> None:
    msgs = load_native("agentscope", state)
    plan = load_provider(provider).chat_formatter().lower(msgs)
    text = json.dumps(plan.request, ensure_ascii=False)
    assert all(expected in text for expected in ("You are Friday.", "What is in this?", "I look.", "Calm."))
    assert "invalid" not in {entry.kind for entry in plan.ledger.entries}


def test_the_state_with_messages_is_selected_in_a_session() -> None:
    msgs = load_native("agentscope", SESSION)
    session: dict[str, Any] = {"toolkit": {"active_groups": []}, "empty": {}, "friday": SESSION["agent"]}
    assert load_native("agentscope", session) == msgs


def test_a_session_with_several_agents_is_an_error() -> None:
    session = {"friday": SESSION["agent"], "alice": SESSION["agent"]}
    with pytest.raises(MessageError, match=r"'friday', 'alice'.*one agent"):
        load_native("agentscope", session)


def test_a_memory_of_agentscope_loads_like_its_state() -> None:
    class Memory:
        def state_dict(self) -> Any:
            return SESSION["agent"]["memory"]

    assert load_native("agentscope", Memory()) == load_native("agentscope", SESSION)


def _load_version_2(*blocks: dict[str, Any]) -> list[Msg]:
    stamped = [
        {"id": f"b{index}", "created_at": "t0", "finished_at": None, **block} for index, block in enumerate(blocks)
    ]
    msg = {"name": "Friday", "role": "assistant", "content": stamped, "id": "m", "created_at": "t0"}
    return load_native("agentscope", [msg])


def test_a_reasoning_item_of_openai_is_one_block_and_is_sent_back_unchanged() -> None:
    parts = [{"type": "summary_text", "text": "First."}, {"type": "summary_text", "text": "Then."}]
    item = {"id": "rs_1", "type": "reasoning", "summary": parts, "encrypted_content": "gAAAA"}
    dumped = {"type": "thinking", "reasoning_item_id": "rs_1", "reasoning_item_raw": item}
    blocks = [{**dumped, "thinking": part["text"]} for part in parts]
    (msg,) = _load_version_2(*blocks, {"type": "text", "text": "Hello."})
    thinking, text = msg.blocks
    assert isinstance(thinking, ThinkingBlock)
    assert thinking.thinking == "First.\n\nThen."
    assert isinstance(text, TextBlock)
    request = load_provider("openai-responses").chat_formatter().lower([Msg("Bob", "Hi.", "user"), msg]).request
    assert request["input"][1] == {
        key: value for key, value in item.items() if key != "id"
    }  # the id is omitted, because the next item has none
    (bare,) = _load_version_2({"type": "thinking", "thinking": "", "reasoning_item_id": "rs_2"})
    assert cast("Any", bare.blocks[0]).state == OpaqueState("openai", item_id="rs_2")


def test_the_id_of_a_gemini_call_contains_its_signature() -> None:
    id = "gemini_ts:AAEC"
    calling, result = _load_version_2(
        {"type": "tool_call", "id": id, "name": "look", "input": "{}", "state": "finished"},
        {"type": "tool_result", "id": id, "name": "look", "output": "A cat.", "state": "success"},
    )
    assert calling.tool_uses[0].state == OpaqueState("gemini", thought_signature="AAEC")
    assert calling.tool_uses[0].id == cast("Any", result.blocks[0]).id
    request = load_provider("gemini").chat_formatter().lower([Msg("Bob", "Hi.", "user"), calling, result]).request
    assert request["contents"][1]["parts"][0]["thought_signature"] == "AAEC"


def test_an_empty_signature_means_no_signature() -> None:
    (msg,) = _load_version_2({"type": "thinking", "thinking": "Hm.", "signature": ""})
    assert cast("Any", msg.blocks[0]).state is None


@examples(100)
@given(mangled({"content": AS1}) | mangled({"context": [AS2]}))
def test_a_damaged_dump_of_agentscope_loads_or_raises_an_agentkit_error(dump: Any) -> None:
    with suppress(MessageError):
        msgs = load_native("agentscope", dump)
        assert all(Msg.from_dict(msg.to_dict()) == msg for msg in msgs)


# -- LangChain ------------------------------------------------------------------------------------------------

AI: Final[dict[str, Any]] = {
    "content": [
        {"type": "thinking", "thinking": "Hm.", "signature": "sig", "index": 0},
        {"type": "text", "text": "I look."},
        {"type": "tool_use", "id": "c1", "name": "look", "input": {"at": 1}},
    ],
    "type": "ai",
    "tool_calls": [
        {"name": "look", "args": {"at": 1}, "id": "c1", "type": "tool_call"},
        {"name": "hear", "args": {}, "id": "c2", "type": "tool_call"},
    ],
    "invalid_tool_calls": [
        {"type": "invalid_tool_call", "id": "c3", "name": "look", "args": '{"at', "error": "cut"}
    ],
    "usage_metadata": {
        "input_tokens": 9,
        "output_tokens": 4,
        "total_tokens": 13,
        "input_token_details": {"cache_read": 3},
        "output_token_details": {"reasoning": 2},
    },
    "response_metadata": {"stop_reason": "tool_use", "model_name": "claude", "model_provider": "anthropic"},
    "additional_kwargs": {},
    "id": "run-1",
}
LANGCHAIN: Final[list[dict[str, Any]]] = [
    {"content": "You are Friday.", "type": "system"},
    {
        "content": [
            {"type": "text", "text": "Look."},
            {"type": "image_url", "image_url": {"url": PNG_URL, "detail": "low"}},
        ],
        "type": "human",
        "name": "Bob",
    },
    AI,
    {"content": "A cat.", "type": "tool", "tool_call_id": "c1", "artifact": {"x": 1}, "status": "error"},
    {"content": [{"type": "text", "text": "x"}], "type": "tool", "tool_call_id": "c2", "name": "hear"},
    {"content": "A cat.", "type": "ai", "name": None, "tool_calls": []},
    {"content": "No.", "type": "chat", "role": "critic"},
]
_CLASSES: Final = {
    "system": "SystemMessage",
    "human": "HumanMessage",
    "ai": "AIMessage",
    "tool": "ToolMessage",
    "chat": "ChatMessage",
}


def _constructor(message: dict[str, Any]) -> dict[str, Any]:
    id = ["langchain", "schema", "messages", _CLASSES[message["type"]]]
    return {"lc": 1, "type": "constructor", "id": id, "kwargs": message}


class TestLangChain:
    def test_messages_load_as_expected(self) -> None:
        system, bob, called, first, second, reply, critic = load_native("langchain", LANGCHAIN)
        assert (system.name, system.role, system.text) == ("system", "system", "You are Friday.")
        picture = ImageBlock(Base64Source("image/png", PNG), metadata={"detail": "low"})
        assert (bob.name, bob.blocks) == ("Bob", (TextBlock("Look."), picture))
        assert called.blocks == (
            ThinkingBlock("Hm.", OpaqueState("anthropic", signature="sig")),
            TextBlock("I look."),
            ToolUseBlock("c1", "look", {"at": 1}),
            ToolUseBlock("c2", "hear", {}),
            ToolUseBlock("c3", "look", {}, '{"at', metadata={"error": "cut"}),
        )
        assert (called.id, called.finish_reason) == ("run-1", FinishReason.TOOL_USE)
        assert called.usage == Usage(9, 4, cache_read_tokens=3, reasoning_tokens=2)
        assert first.blocks == (ToolResultBlock("c1", "look", "A cat.", True),)
        assert first.metadata == {"artifact": {"x": 1}}
        assert second.blocks == (ToolResultBlock("c2", "hear", (TextBlock("x"),)),)
        assert (reply.name, reply.text, reply.role) == ("assistant", "A cat.", "assistant")
        assert (critic.name, critic.role) == ("critic", "user")

    def test_dumpd_and_messages_to_dict_load_as_equal_messages(self) -> None:
        expected = load_native("langchain", LANGCHAIN)
        constructors = [_constructor(message) for message in LANGCHAIN]
        assert load_native("langchain", constructors) == expected
        assert load_native("langchain", json.loads(json.dumps(constructors))) == expected
        assert (
            load_native("langchain", [{"type": message["type"], "data": message} for message in LANGCHAIN])
            == expected
        )
        assert load_native("langchain", {"messages": constructors}) == expected
        prompt = {"lc": 1, "type": "constructor", "id": ["ChatPromptValue"], "kwargs": {"messages": constructors}}
        assert load_native("langchain", prompt) == expected

    def test_short_formats_and_chunks_load(self) -> None:
        msgs = load_native(
            "langchain",
            ["Hi", ["ai", "Ho"], {"role": "user", "content": "Ha"}, {"type": "AIMessageChunk", "content": "He"}],
        )
        assert [(msg.role, msg.text) for msg in msgs] == [
            ("user", "Hi"), ("assistant", "Ho"), ("user", "Ha"), ("assistant", "He")
        ]  # fmt: skip

    @each_case(
        ("block", "expected"),
        [
            (
                {"type": "image", "base64": PNG, "mime_type": "image/png"},
                ImageBlock(Base64Source("image/png", PNG)),
            ),
            ({"type": "image", "url": "https://x.example/a"}, ImageBlock(URLSource("https://x.example/a"))),
            (
                {"type": "image", "source_type": "base64", "data": PNG, "mime_type": "image/png"},
                ImageBlock(Base64Source("image/png", PNG)),
            ),
            (
                {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}},
                ImageBlock(Base64Source("image/png", PNG)),
            ),
            (
                {"type": "image_url", "image_url": "https://x.example/a"},
                ImageBlock(URLSource("https://x.example/a")),
            ),
            (
                {"type": "audio", "base64": WAV, "mime_type": "audio/wav"},
                AudioBlock(Base64Source("audio/wav", WAV)),
            ),
            (
                {"type": "input_audio", "input_audio": {"data": WAV, "format": "wav"}},
                AudioBlock(Base64Source("audio/wav", WAV)),
            ),
            ({"type": "media", "mime_type": "video/mp4", "data": PNG}, VideoBlock(Base64Source("video/mp4", PNG))),
            (
                {"type": "file", "base64": PNG, "mime_type": "application/pdf", "extras": {"filename": "a.pdf"}},
                DocumentBlock(
                    Base64Source("application/pdf", PNG), title="a.pdf", metadata={"extras": {"filename": "a.pdf"}}
                ),
            ),
            (
                {"type": "file", "file": {"filename": "a.pdf", "file_data": f"data:application/pdf;base64,{PNG}"}},
                DocumentBlock(Base64Source("application/pdf", PNG), title="a.pdf"),
            ),
            (
                {"type": "text-plain", "text": "Hi", "title": "T"},
                DocumentBlock(Base64Source("text/plain", "SGk="), title="T"),
            ),
            (
                {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "Hi"}},
                DocumentBlock(Base64Source("text/plain", "SGk=")),
            ),
            (
                {"type": "redacted_thinking", "data": "x"},
                ThinkingBlock("", OpaqueState("anthropic", redacted_data="x")),
            ),
            ({"type": "reasoning", "reasoning": "Hm."}, ThinkingBlock("Hm.")),
            (
                {
                    "type": "reasoning",
                    "id": "rs_1",
                    "summary": [{"type": "summary_text", "text": "Hm."}],
                    "encrypted_content": "e",
                },
                ThinkingBlock("Hm.", OpaqueState("openai", encrypted_content="e", item_id="rs_1")),
            ),
            (
                {"type": "reasoning_content", "reasoning_content": {"text": "Hm.", "signature": "s"}},
                ThinkingBlock("Hm.", OpaqueState("anthropic", signature="s")),
            ),
            ({"type": "refusal", "refusal": "No."}, TextBlock("No.", metadata={"refusal": True})),
            (
                {"type": "text", "text": "x", "annotations": [{"url": "u"}]},
                TextBlock("x", metadata={"citations": [{"url": "u"}]}),
            ),
            (
                {"type": "web_search_call", "id": "ws"},
                OpaqueBlock("langchain", {"type": "web_search_call", "id": "ws"}),
            ),
            ({"type": "non_standard", "value": {"type": "text", "text": "x"}}, TextBlock("x")),
            ("bare", TextBlock("bare")),
            ({"type": "tool_result", "tool_use_id": "c", "content": "x"}, ToolResultBlock("c", "", "x")),
            ({"type": "tool_call", "id": "c", "name": "f", "args": {"a": 1}}, ToolUseBlock("c", "f", {"a": 1})),
            (
                {"type": "function_call", "id": "fc", "call_id": "c", "name": "f", "arguments": "{}"},
                ToolUseBlock("c", "f", {}, "{}"),
            ),
        ],
    )
    def test_a_content_block_loads_as_expected(self, block: Any, expected: Block) -> None:
        assert load_native("langchain", [{"type": "ai", "content": [block]}])[0].blocks == (expected,)

    @each_case(
        "block",
        [
            3,
            {},
            {"type": "text"},
            {"type": "image"},
            {"type": "image", "file_id": "f"},
            {"type": "file", "file": {"file_id": "f"}},
        ],
    )
    def test_an_unreadable_block_becomes_an_invalid_block_with_its_place(self, block: Any) -> None:
        loaded_block = load_native("langchain", [{"type": "human", "content": [block]}])[0].blocks[0]
        assert isinstance(loaded_block, InvalidBlock)
        assert loaded_block.place == "messages[0].content[0]"

    def test_additional_keys_of_providers_load(self) -> None:
        deepseek = {
            "type": "ai",
            "content": "x",
            "additional_kwargs": {"reasoning_content": "Hm."},
            "response_metadata": {"model_provider": "deepseek"},
        }
        assert load_native("langchain", [deepseek])[0].blocks[0] == ThinkingBlock("Hm.", OpaqueState("deepseek"))
        signed: dict[str, Any] = {
            "type": "ai",
            "content": "",
            "tool_calls": [{"name": "f", "args": {}, "id": "c1"}],
            "additional_kwargs": {"__gemini_function_call_thought_signatures__": {"c1": "c2ln"}},
        }
        call = load_native("langchain", [signed])[0].tool_uses[0]
        assert call.state == OpaqueState("gemini", thought_signature="c2ln")

    def test_calls_of_old_dumps_in_native_format_load(self) -> None:
        raw = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": '{"at": 1}'}}
        old = {"type": "ai", "content": "", "additional_kwargs": {"tool_calls": [raw]}}
        assert load_native("langchain", [old])[0].tool_uses == (
            ToolUseBlock("c1", "look", {"at": 1}, '{"at": 1}'),
        )
        older = {
            "type": "ai",
            "content": "",
            "additional_kwargs": {"function_call": {"name": "look", "arguments": "{}"}},
        }
        called, answered = load_native("langchain", [older, {"type": "function", "name": "look", "content": "x"}])
        assert called.tool_uses[0].id == answered.tool_results[0].id

    def test_an_unknown_item_becomes_an_invalid_block_with_its_place(self) -> None:
        blocks = [
            msg.blocks[0] for msg in load_native("langchain", [3, {"type": "remove", "id": "x", "content": ""}])
        ]
        assert [block.place for block in blocks if isinstance(block, InvalidBlock)] == [
            "messages[0]",
            "messages[1]",
        ]


# -- dumps that langchain-core wrote --------------------------------------------------------------------------


def test_each_block_of_langchain_loads() -> None:
    msgs = load_native("langchain", DICTS)
    system, bob, calling, calm, failed, reading, chunk, moderator, function, order, thanks, refused = msgs
    assert (system.role, system.text, bob.name, bob.id) == ("system", "You are Friday.", "Bob", "h1")
    assert [
        _without_generated_keys(block) for block in bob.blocks if not isinstance(block, InvalidBlock | OpaqueBlock)
    ] == [
        TextBlock("What is in this?"),
        ImageBlock(URLSource("https://example.org/a.png")),
        ImageBlock(Base64Source("image/png", "iVBORw==")),
        AudioBlock(Base64Source("audio/wav", "UklGRg==")),
        VideoBlock(URLSource("https://example.org/v.mp4")),
        DocumentBlock(Base64Source("application/pdf", "JVBERg==")),
        DocumentBlock(Base64Source("text/plain", "cGxhaW4gd29yZHM="), title="notes.txt"),
        ImageBlock(URLSource("https://example.org/c.png")),
    ]
    assert [type(block) for block in bob.blocks if isinstance(block, InvalidBlock | OpaqueBlock)] == [
        InvalidBlock,  # a file id, which is valid only in its store
        OpaqueBlock,
    ]
    thinking, text, call, ran, answer, broken = calling.blocks
    assert isinstance(thinking, ThinkingBlock)
    assert thinking.thinking == "hm"
    assert thinking.state == OpaqueState("openai", encrypted_content="gAAA", item_id="rs_1")
    assert _without_generated_keys(text) == TextBlock("I look.")
    assert call == ToolUseBlock("c1", "look", {"place": "sea"})
    assert isinstance(ran, OpaqueBlock)
    assert isinstance(answer, OpaqueBlock)
    assert _without_generated_keys(broken) == ToolUseBlock("c2", "look", {}, '{"pla')
    assert calling.finish_reason is FinishReason.TOOL_USE
    assert calling.usage == Usage(10, 5, cache_read_tokens=4, reasoning_tokens=2)
    assert calm.blocks == (ToolResultBlock("c1", "look", "calm"),)
    assert calm.metadata == {"artifact": {"raw": [1, 2]}}
    assert failed.blocks == (ToolResultBlock("c2", "look", "no such place", is_error=True),)
    assert [_without_generated_keys(item) for item in cast("Any", reading.blocks[0]).output] == [
        TextBlock("see"),
        ImageBlock(Base64Source("image/png", "iVBORw==")),
    ]
    assert (chunk.role, chunk.text, chunk.tool_uses[0].input) == ("assistant", "Cal", {"place": "sea"})
    assert (moderator.name, moderator.text) == ("moderator", "I am the moderator.")
    assert function.blocks == (ToolResultBlock("c4", "look", "found"),)
    assert isinstance(order.blocks[0], InvalidBlock)
    assert (thanks.role, thanks.text) == ("user", "Thanks.")
    assert refused.blocks == (TextBlock("I will not.", metadata={"refusal": True}),)


def _without_orders(msgs: list[Msg]) -> list[Msg]:
    return [msg for msg in msgs if not (msg.blocks and isinstance(msg.blocks[0], InvalidBlock))]


def test_all_formats_of_langchain_dumps_load_as_equal_messages() -> None:
    msgs = _without_orders(load_native("langchain", DICTS))
    dumped = [message["data"] for message in DICTS]  # `model_dump`
    prompt = {
        "lc": 1,
        "type": "constructor",
        "id": ["langchain", "prompts", "chat", "ChatPromptValue"],
        "kwargs": {"messages": CONSTRUCTORS},
    }
    for dump in (CONSTRUCTORS, json.dumps(CONSTRUCTORS), dumped, prompt, {"values": {"messages": CONSTRUCTORS}}):
        assert _without_orders(load_native("langchain", dump)) == msgs


@each_case("provider", PROVIDERS)
def test_langchain_logs_convert_for_every_provider(provider: str) -> None:
    msgs = load_native("langchain", DICTS)
    text = json.dumps(load_provider(provider).chat_formatter().lower(msgs).request, ensure_ascii=False)
    texts = ("You are Friday.", "What is in this?", "I look.", "no such place", "I am the moderator.", "Thanks.")
    assert all(expected in text for expected in texts)


API_BY_PROVIDER: Final = {"anthropic": "anthropic", "openai": "openai-responses", "google_genai": "gemini"}


def _without_openais_tool(dump: dict[str, Any]) -> list[Msg]:
    """Returns the messages of a dump without the server tool of OpenAI, whose status version 1 omits."""
    kwargs = dump["kwargs"]
    content = [block for block in kwargs["content"] if "ws_1" not in (block.get("id"), block.get("tool_call_id"))]
    return load_native("langchain", [{**dump, "kwargs": {**kwargs, "content": content}}])


@each_case("provider", [*API_BY_PROVIDER])
def test_both_versions_of_a_reply_are_sent_back_to_its_provider(provider: str) -> None:
    formatter = load_provider(API_BY_PROVIDER[provider]).chat_formatter()
    asked = Msg("Bob", "Hi.", "user")
    own, first = (_without_openais_tool(dump[provider]) for dump in (PROVIDERS_OWN, VERSION_1))
    requests = [formatter.lower([asked, *msgs]).request for msgs in (own, first)]
    assert requests[0] == requests[1]
    text = json.dumps(requests[0])
    marks = {"anthropic": ("sig", "xyz", "srv_1"), "openai": ("gAAA", "one", "two")}
    assert all(mark in text for mark in marks.get(provider, ("AAEC",)))


@each_case(
    ("dump", "omitted", "ids"),
    {
        "own": (PROVIDERS_OWN, "", ["rs_1", "ws_1", "msg_1", "fc_1"]),
        "own without a tool": (PROVIDERS_OWN, "web_search_call", ["rs_1", "msg_1", "fc_1"]),
        # the item of its tool cannot be sent, and the id of the reasoning needs the item after it
        "version 1": (VERSION_1, "", list[str]()),
        "version 1 without a tool": (VERSION_1, "server_tool", ["rs_1", "msg_1", "fc_1"]),
    },
)
def test_items_of_openai_are_sent_back_with_their_ids(dump: dict[str, Any], omitted: str, ids: list[str]) -> None:
    kwargs = dump["openai"]["kwargs"]
    content = [block for block in kwargs["content"] if not omitted or not block["type"].startswith(omitted)]
    msgs = load_native("langchain", [{**kwargs, "content": content}])
    request = load_provider("openai-responses").chat_formatter().lower([Msg("Bob", "Hi.", "user"), *msgs]).request
    assert [item["id"] for item in request["input"] if "id" in item] == ids


def test_a_generated_id_is_not_sent_as_an_item_id() -> None:
    part = {"type": "reasoning", "id": "lc_1", "reasoning": "Hm."}
    dump = {"type": "ai", "content": [part], "response_metadata": {"model_provider": "openai"}}
    (thinking,) = load_native("langchain", [dump])[0].blocks
    assert isinstance(thinking, ThinkingBlock)
    assert (thinking.thinking, cast("Any", thinking.state).item_id) == ("Hm.", None)


@each_case(
    ("block", "native"),
    [
        (
            {"type": "server_tool_call", "id": "s", "name": "code_interpreter", "args": {"code": "1"}},
            {"type": "server_tool_use", "id": "s", "name": "code_execution", "input": {"code": "1"}},
        ),
        (
            {
                "type": "server_tool_call",
                "id": "s",
                "name": "remote_mcp",
                "args": {"a": 1},
                "extras": {"tool_name": "look", "server_name": "sea"},
            },
            {"type": "mcp_tool_use", "id": "s", "name": "look", "server_name": "sea", "input": {"a": 1}},
        ),
        (
            {
                "type": "server_tool_result",
                "tool_call_id": "s",
                "status": "error",
                "output": [],
                "extras": {"block_type": "mcp_tool_result"},
            },
            {"type": "mcp_tool_result", "tool_use_id": "s", "content": [], "is_error": True},
        ),
    ],
)
def test_server_tools_of_anthropic_are_written_in_native_format(
    block: dict[str, Any], native: dict[str, Any]
) -> None:
    message = {"type": "ai", "content": [block], "response_metadata": {"model_provider": "anthropic"}}
    assert load_native("langchain", [message])[0].blocks == (OpaqueBlock("anthropic", native),)
    bare = {"type": "server_tool_result", "tool_call_id": "s", "status": "success"}
    message["content"] = [bare]
    assert load_native("langchain", [message])[0].blocks == (OpaqueBlock("langchain", bare),)


@examples(150)
@given(mangled({"messages": LANGCHAIN}) | mangled({"messages": [_constructor(message) for message in LANGCHAIN]}))
def test_a_damaged_dump_of_langchain_loads_or_raises_an_agentkit_error(dump: Any) -> None:
    with suppress(MessageError):
        msgs = load_native("langchain", dump)
        assert all(Msg.from_dict(msg.to_dict()) == msg for msg in msgs)


def _of_langchain(kind: str, *blocks: Any, **more: Any) -> Msg:
    message = {"type": kind, "content": list(blocks), "response_metadata": {"model_provider": "anthropic"}, **more}
    return load_native("langchain", [message])[0]


def test_blocks_of_langchain_itself_are_sent_to_no_provider() -> None:
    ran = {"type": "server_tool_call", "name": "web_search", "args": {"query": "x"}, "id": "s1"}
    server_result: dict[str, Any] = {
        "type": "server_tool_result",
        "tool_call_id": "s1",
        "status": "success",
        "output": [],
    }
    odd = {"type": "non_standard", "value": {"a": 1}}
    native: dict[str, Any] = {"type": "server_tool_use", "id": "s2", "name": "web_search", "input": {}}
    google = {"response_metadata": {"model_provider": "google_genai"}}
    msg = _of_langchain("ai", ran, server_result, odd, **google)
    blocks = [*msg.blocks, *_of_langchain("ai", {"type": "non_standard", "value": native}).blocks]
    assert [cast("OpaqueBlock", block).wire for block in blocks] == ["langchain"] * 3 + ["anthropic"]


def test_dropping_an_unknown_block_of_a_user_is_a_loss() -> None:
    msgs = load_native("langchain", [{"type": "human", "content": [{"type": "weird", "x": 1}]}])
    with pytest.raises(LossError, match="langchain"):
        load_provider("anthropic").chat_formatter(on_loss="raise").lower(msgs)


def test_content_of_another_type_becomes_an_invalid_block() -> None:
    (block,) = load_native("langchain", [{"type": "ai", "data": {"content": 5}}])[0].blocks
    assert isinstance(block, InvalidBlock)
    assert (block.data, block.place) == (5, "messages[0].content")


def test_the_calls_of_a_chunk_load() -> None:
    chunk = {"name": "look", "args": '{"at": "x"}', "id": "c1", "index": 0}
    msg = load_native("langchain", [{"type": "AIMessageChunk", "content": "", "tool_call_chunks": [chunk]}])[0]
    assert [(call.id, call.input) for call in msg.tool_uses] == [("c1", {"at": "x"})]


_F: Final[dict[str, Any]] = {"type": "tool_call", "name": "f", "args": {"a": 1}}
_G: Final[dict[str, Any]] = {"type": "tool_call", "name": "f", "args": {"a": 2}}


@each_case("id", ["x", None])
@each_case("named", [0, 1, 2])
def test_two_calls_with_the_same_id_or_without_ids_remain_two_calls(id: str | None, named: int) -> None:
    calls = [{**_F, "id": id}, {**_G, "id": id}]
    (msg,) = load_native("langchain", [{"type": "ai", "content": calls[:named], "tool_calls": calls}])
    assert [call.input for call in msg.tool_uses] == [{"a": 1}, {"a": 2}]


def test_two_calls_without_ids_in_the_content_get_different_ids() -> None:
    first, second = _of_langchain("ai", {**_F, "id": None}, {**_G, "id": None}).tool_uses
    assert first.id != second.id


def test_the_results_of_two_calls_with_the_same_id_match_in_order() -> None:
    calls = [{**_F, "id": "x"}, {**_G, "id": "x"}]
    results = [{"type": "tool", "content": text, "tool_call_id": "x"} for text in ("one", "two")]
    msgs = load_native("langchain", ["Hi.", {"type": "ai", "content": "", "tool_calls": calls}, *results])
    _, calling, *answered = load_provider("openai").chat_formatter().lower(msgs).request["messages"]
    ids = [call["id"] for call in calling["tool_calls"]]
    assert len(set(ids)) == 2
    assert [(message["tool_call_id"], message["content"]) for message in answered] == [
        (ids[0], "one"),
        (ids[1], "two"),
    ]


def _message_with_calls(*names: str) -> dict[str, Any]:
    calls = [
        {"type": "tool_call", "name": name, "args": {"at": index}, "id": None} for index, name in enumerate(names)
    ]
    return {"type": "ai", "content": "", "tool_calls": calls}


def _result(text: str, name: str | None, type: str = "tool") -> dict[str, Any]:
    return {"type": type, "content": text, "name": name, "tool_call_id": ""}


def _get_answers(*log: Any) -> list[tuple[str, str]]:
    """Returns the tool name and the result text of each call."""
    msgs = load_native("langchain", list(log))
    results = {result.id: result.text for msg in msgs for result in msg.tool_results}
    return [(call.name, results.get(call.id, "")) for msg in msgs for call in msg.tool_uses]


@pytest.mark.parametrize("kind", ["tool", "function"])
def test_a_result_without_an_id_answers_the_first_open_call_of_its_tool(kind: str) -> None:
    results = [_result("w", "wait", kind), _result("1", "look", kind), _result("2", "look", kind)]
    expected = [("look", "1"), ("wait", "w"), ("look", "2")]
    assert _get_answers(_message_with_calls("look", "wait", "look"), *results) == expected
    assert _get_answers(_message_with_calls("look", "wait"), _message_with_calls("look"), *results) == expected


def test_results_without_names_and_ids_answer_the_calls_in_order() -> None:
    msgs = load_native("langchain", [_message_with_calls("look", "wait"), _result("l", None), _result("w", None)])
    results = [(result.name, result.text) for msg in msgs for result in msg.tool_results]
    assert results == [("look", "l"), ("wait", "w")]


def test_a_result_without_an_id_answers_the_latest_turn_first() -> None:
    log = [
        _message_with_calls("look"),
        "Never mind. Look again.",
        _message_with_calls("look"),
        _result("2", "look"),
    ]
    assert _get_answers(*log) == [("look", ""), ("look", "2")]
    assert _get_answers(*log, _result("1", "look")) == [("look", "1"), ("look", "2")]


def test_a_result_without_an_open_call_answers_no_call() -> None:
    log = [_message_with_calls("look"), _result("l", "look"), _result("again", "look"), _result("w", "wait")]
    assert _get_answers(*log) == [("look", "l")]
    ids = {result.id for msg in load_native("langchain", log) for result in msg.tool_results}
    assert len(ids) == 3


def _audio_reply(**audio: Any) -> dict[str, Any]:
    fields = {"content": "", "additional_kwargs": {"audio": audio}}
    return {"type": "ai", "data": {**fields, "response_metadata": {"model_provider": "openai"}}}


@each_case(
    "audio",
    [
        {"id": "au", "data": WAV, "transcript": "Hello.", "expires_at": 1},
        {"transcript": "Hello."},
        {"id": "au"},
    ],
)
def test_an_audio_reply_loads_like_the_native_log(audio: dict[str, Any]) -> None:
    (msg,) = load_native("langchain", [_audio_reply(**audio)])
    (own,) = load_native("openai", [{"role": "assistant", "content": None, "audio": audio}])
    assert msg.blocks == own.blocks
    assert len(msg.blocks) == 1
    assert "audio" not in json.dumps(msg.metadata)


def test_an_audio_reply_is_sent_back_by_id_and_to_other_apis_as_a_transcript() -> None:
    sound = _audio_reply(id="au", data=WAV, transcript="Hello.", expires_at=1)
    msgs = load_native("langchain", ["Hi.", sound, "And?"])
    own, other = (load_provider(name).chat_formatter().lower(msgs).request for name in ("openai", "anthropic"))
    assert own["messages"][1]["audio"] == {"id": "au"}
    assert "Hello." in json.dumps(other["messages"][1])


_OLDER: Final[dict[str, Any]] = {
    "content": [{"type": "text", "text": "Hello."}],
    "additional_kwargs": {
        "reasoning": {"id": "rs", "type": "reasoning", "summary": [], "encrypted_content": "gAAA"},
        "tool_outputs": [
            {
                "type": "computer_call",
                "id": "cu",
                "call_id": "c2",
                "action": {"type": "wait"},
                "status": "completed",
            },
            {"type": "web_search_call", "id": "ws", "status": "completed"},
        ],
        "parsed": {"said": "Hello."},
    },
    "tool_calls": [{"name": "look", "args": {}, "id": "c1", "type": "tool_call"}],
    "id": "msg_1",
    "response_metadata": {"model_provider": "openai"},
}


def test_the_older_format_of_openai_items_loads_like_the_items() -> None:
    """Returns a reply in the format of langchain-openai with `output_version="v0"`."""
    (msg,) = load_native("langchain", [{"type": "ai", "data": _OLDER}])
    item = _OLDER["additional_kwargs"]["reasoning"]
    asks, ran = _OLDER["additional_kwargs"]["tool_outputs"]
    assert msg.blocks == (
        ThinkingBlock("", OpaqueState("openai", item_id="rs", encrypted_content="gAAA")),
        OpaqueBlock("openai-responses", ran),
        TextBlock("Hello."),
        ToolUseBlock("c1", "look", {}),
        OpaqueBlock("openai-responses", asks),
    )
    assert (msg.metadata or {})["additional_kwargs"] == {"parsed": {"said": "Hello."}}
    request = load_provider("openai-responses").chat_formatter().lower([Msg("Bob", "Hi.", "user"), msg]).request
    assert request["input"][1:3] == [item, ran]


def test_a_reasoning_item_without_a_type_loads_once() -> None:
    item = {"id": "rs", "summary": [{"type": "summary_text", "text": "Hm."}]}
    (msg,) = load_native("langchain", [{"type": "ai", "content": "x", "additional_kwargs": {"reasoning": item}}])
    thinking = ThinkingBlock("Hm.", OpaqueState("openai", item_id="rs"))
    assert msg.blocks == (thinking, TextBlock("x"))
    again = _of_langchain("ai", {**item, "type": "reasoning"}, additional_kwargs={"reasoning": item})
    assert again.blocks == (thinking,)


@each_case("key", ["reasoning", "audio", "tool_outputs"])
@each_case("odd", ["words", 3, {"effort": "high"}, [3]])
def test_unknown_values_of_openai_keys_become_metadata_or_blocks(key: str, odd: Any) -> None:
    (msg,) = load_native("langchain", [{"type": "ai", "content": "x", "additional_kwargs": {key: odd}}])
    is_in_metadata = (msg.metadata or {}).get("additional_kwargs") == {key: odd}
    assert is_in_metadata or len(msg.blocks) == 2
    assert TextBlock("x") in msg.blocks


def test_stream_indexes_are_sent_to_no_provider() -> None:
    item: dict[str, Any] = {
        "id": "rs",
        "type": "reasoning",
        "summary": [{"type": "summary_text", "text": "One."}, {"type": "summary_text", "text": "Two."}],
        "encrypted_content": "gAAA",
    }
    ran: dict[str, Any] = {"type": "web_search_call", "id": "ws", "status": "completed"}
    summary = [{**part, "index": index} for index, part in enumerate(item["summary"])]
    numbered: list[Any] = [{**item, "summary": summary, "index": 0}, {**ran, "index": 1}]
    text = {"type": "text", "text": "x", "index": 2}
    openai = {"response_metadata": {"model_provider": "openai"}}
    older = {"reasoning": numbered[0], "tool_outputs": numbered[1:]}
    for msg in (
        _of_langchain("ai", *numbered, text, **openai),
        _of_langchain("ai", text, additional_kwargs=older, **openai),
    ):
        request = (
            load_provider("openai-responses").chat_formatter().lower([Msg("Bob", "Hi.", "user"), msg]).request
        )
        assert request["input"][1:3] == [item, ran]


def _with_odd_values(value: Any, odd: Any) -> Iterator[Any]:
    """Yields copies of a value. In each copy, `odd` replaces another inner value."""
    yield odd
    if isinstance(value, dict):
        fields = cast("dict[str, Any]", value)
        yield from ({**fields, key: changed} for key in fields for changed in _with_odd_values(fields[key], odd))
    elif isinstance(value, list):
        items = cast("list[Any]", value)
        for index, item in enumerate(items):
            yield from ([*items[:index], changed, *items[index + 1 :]] for changed in _with_odd_values(item, odd))


@pytest.mark.parametrize("odd", [{"a": 1}, ["x"]], ids=["object", "list"])
@pytest.mark.parametrize(
    ("log_format", "log"),
    [
        ("agentscope", AS1),
        ("agentscope", {"context": [AS2]}),
        ("langchain", LANGCHAIN),
        ("langchain", [{"type": "ai", "data": _OLDER}]),
    ],
)
def test_an_object_or_a_list_anywhere_in_a_dump_loads_or_raises_an_agentkit_error(
    log_format: str, log: Any, odd: Any
) -> None:
    for changed in _with_odd_values(log, odd):
        with suppress(MessageError):
            load_native(log_format, changed)


def test_a_file_of_google_loads_like_the_native_part() -> None:
    stored = {"file_uri": "https://generativelanguage.googleapis.com/v1beta/files/abc", "mime_type": "image/png"}
    public = {"file_uri": "https://example.org/a.mp4", "mime_type": "video/mp4"}
    fields = {"video_metadata": {"fps": 2}}
    msg = _of_langchain("human", {"type": "media", **stored}, {"type": "media", **public, **fields})
    assert msg.blocks == (
        OpaqueBlock("gemini", {"file_data": stored}),
        VideoBlock(
            URLSource("https://example.org/a.mp4", "video/mp4"), state=OpaqueState("gemini", fields=fields)
        ),
    )


def test_an_older_item_without_content_becomes_an_invalid_block() -> None:
    outputs: list[Any] = [{"type": "message", "role": "assistant", "content": []}]
    (block,) = _of_langchain("ai", additional_kwargs={"tool_outputs": outputs}).blocks
    assert isinstance(block, InvalidBlock)
    assert block.place == "messages[0].additional_kwargs.tool_outputs[0]"


def test_a_tool_call_is_read_at_any_depth_of_the_content() -> None:
    call = {"type": "tool_use", "id": "c", "name": "look", "input": {"place": "sea"}}
    wrapped = {"type": "non_standard", "value": call}
    result = {"type": "tool_result", "tool_use_id": "r", "content": [call]}
    called, answered = _of_langchain("ai", wrapped, result).blocks
    assert called == ToolUseBlock("c", "look", {"place": "sea"})
    assert isinstance(answered, ToolResultBlock)
    assert isinstance(answered.output[0], InvalidBlock)


def test_a_wrapped_tool_call_that_is_also_listed_loads_once() -> None:
    call: dict[str, Any] = {"type": "tool_use", "id": "c", "name": "look", "input": {}}
    listed: dict[str, Any] = {"type": "tool_call", "id": "c", "name": "look", "args": {}}
    wrapped: dict[str, Any] = {"type": "non_standard", "value": call}
    for content in ([wrapped, "Look."], ["Look.", wrapped, listed], ["Look.", listed, wrapped]):
        msg = _of_langchain("ai", *content, tool_calls=[listed])
        assert sorted(block.type for block in msg.blocks) == ["text", "tool_use"]
        assert msg.tool_uses == (ToolUseBlock("c", "look", {}),)


def test_tool_calls_in_a_tool_message_are_not_read() -> None:
    answer: dict[str, Any] = {"type": "tool", "tool_call_id": "c", "content": "Sea.", "tool_calls": [None]}
    (msg,) = load_native("langchain", [answer])
    assert msg.blocks == (ToolResultBlock("c", "", "Sea."),)


def test_the_id_of_a_tool_use_block_is_not_an_item_id() -> None:
    call: dict[str, Any] = {"type": "tool_use", "id": "c", "name": "look", "input": {}}
    item: dict[str, Any] = {"id": "rs", "summary": [{"type": "summary_text", "text": "Hm."}]}
    for calls in ([], [call]):
        msg = _of_langchain("ai", call, tool_calls=calls, additional_kwargs={"reasoning": item})
        assert msg.blocks[1:] == (ToolUseBlock("c", "look", {}),)


def test_a_signature_of_gemini_belongs_to_the_call_with_its_id() -> None:
    additional = {"__gemini_function_call_thought_signatures__": {"c1": "AAEC"}}
    calls: list[Any] = [{"name": "look", "args": {}, "id": id} for id in ("c1", "c2")]
    msg = _of_langchain("ai", {"type": "tool_use", "id": "c1"}, tool_calls=calls, additional_kwargs=additional)
    states = [call.state for call in msg.tool_uses]
    assert states == [OpaqueState("gemini", thought_signature="AAEC"), None]


def test_a_text_instead_of_a_block_in_a_hint_is_loaded() -> None:
    hint = {"type": "hint", "hint": ["Look.", {"type": "text", "text": "Now."}]}
    (msg,) = load_native("agentscope", [{"name": "Friday", "role": "assistant", "content": [hint]}])
    unreadable, text = msg.blocks
    assert isinstance(unreadable, InvalidBlock)
    assert (unreadable.data, text) == ("Look.", TextBlock("Now."))
