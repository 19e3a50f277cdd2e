"""Logs of Anthropic: written requests are restored unchanged, and requests of other programs are loaded."""

from __future__ import annotations

import base64
import json
from dataclasses import replace
from typing import Any, Final, cast

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from agentkit import (
    Base64Source,
    Block,
    DocumentBlock,
    EmptyConversationError,
    ImageBlock,
    InvalidBlock,
    MessageError,
    Msg,
    OpaqueBlock,
    OpaqueState,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
    URLSource,
    load_provider,
)
from agentkit_anthropic import PROVIDER, AnthropicChatFormatter, load_native
from tests.cases import each_case
from tests.conversations import histories, valid_histories
from tests.profiles import examples
from tests.providers import PDF, PNG, picture
from tests.providers.anthropic.test_replies import CITATION, REPLY, SEARCH, SEARCH_RESULT

# platform docs: tool-use, preserved-thinking, citations, prompt-caching; a log as an application stores it
LOG: Final[dict[str, Any]] = {
    "model": "claude-opus-5-5",
    "max_tokens": 1024,
    "system": [
        {"type": "text", "text": "You are Friday."},
        {"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}},
    ],
    "tools": [{"name": "look", "input_schema": {"type": "object", "properties": {}}}],
    "messages": [
        {"role": "user", "content": "Look, please."},
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "", "signature": "EsQC"},
                {"type": "redacted_thinking", "data": "Red=="},
                {"type": "text", "text": "I look."},
                {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {"at": "cat"}},
            ],
        },
        {
            "role": "user",
            "content": [
                {
                    "type": "tool_result",
                    "tool_use_id": "toolu_1",
                    "content": [
                        {"type": "text", "text": "A cat."},
                        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}},
                    ],
                    "cache_control": {"type": "ephemeral"},
                },
                {"type": "text", "text": "And the dog?"},
            ],
        },
        {
            "role": "assistant",
            "content": [SEARCH, SEARCH_RESULT, {"type": "text", "text": "A dog.", "citations": [CITATION]}],
        },
        {
            "role": "user",
            "content": [
                {"type": "document", "source": {"type": "url", "url": "https://example.com/a"}, "title": "A"},
                {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "Hi."}},
                {"type": "image", "source": {"type": "url", "url": "https://example.com/a.png"}},
            ],
        },
    ],
}


@pytest.mark.parametrize("there", [True, False])
def test_a_call_names_its_server_tool_call_only_if_the_request_contains_that_call(there: bool) -> None:
    ran: dict[str, Any] = {"type": "server_tool_use", "id": "s1", "name": "code_execution", "input": {}}
    caller = {"type": "code_execution_20260120", "tool_id": "s1"}
    log: list[dict[str, Any]] = [
        {"role": "user", "content": "Run it."},
        {
            "role": "assistant",
            "content": [
                *([ran] if there else []),
                {"type": "tool_use", "id": "c1", "name": "look", "input": {}, "caller": caller},
            ],
        },
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "Done."}]},
    ]
    sent = (
        load_provider("anthropic").chat_formatter().lower(load_native(log)).request["messages"][1]["content"][-1]
    )
    assert sent.get("caller") == (caller if there else None)


@pytest.mark.parametrize("odd", [["s1"], {"a": 1}, 5, None])
def test_a_caller_or_an_id_of_any_type_is_loaded_without_an_error(odd: Any) -> None:
    ran: dict[str, Any] = {"type": "server_tool_use", "id": odd, "name": "code_execution", "input": {}}
    calls: list[dict[str, Any]] = [
        {"type": "tool_use", "id": "c1", "name": "look", "input": {}, "caller": odd},
        {"type": "tool_use", "id": "c2", "name": "look", "input": {}, "caller": {"type": "x", "tool_id": odd}},
    ]
    log: list[dict[str, Any]] = [
        {"role": "user", "content": "Run it."},
        {"role": "assistant", "content": [ran, *calls]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "Done."}]},
    ]
    sent = load_provider("anthropic").chat_formatter().lower(load_native(log)).request["messages"][1]["content"]
    assert [block["id"] for block in sent if block["type"] == "tool_use"] == ["c1", "c2"]


def test_a_log_becomes_exactly_these_messages() -> None:
    ours = "anthropic"
    text = base64.b64encode(b"Hi.").decode()
    assert load_native(LOG) == [
        Msg("system", [TextBlock("You are Friday."), TextBlock("Be brief.")], "system"),
        Msg("user", "Look, please.", "user"),
        Msg(
            "assistant",
            [
                ThinkingBlock("", OpaqueState(ours, signature="EsQC")),
                ThinkingBlock("", OpaqueState(ours, redacted_data="Red==")),
                TextBlock("I look."),
                ToolUseBlock("toolu_1", "look", {"at": "cat"}),
            ],
            "assistant",
        ),
        Msg("system", [ToolResultBlock("toolu_1", "look", [TextBlock("A cat."), picture()])], "system"),
        Msg("user", [TextBlock("And the dog?")], "user"),
        Msg(
            "assistant",
            [
                OpaqueBlock(ours, SEARCH),
                OpaqueBlock(ours, SEARCH_RESULT),
                TextBlock(
                    "A dog.",
                    state=OpaqueState(ours, fields={"citations": [CITATION]}),
                    metadata={"citations": [CITATION]},
                ),
            ],
            "assistant",
        ),
        Msg(
            "user",
            [
                DocumentBlock(URLSource("https://example.com/a", "application/pdf"), title="A"),
                DocumentBlock(Base64Source("text/plain", text)),
                ImageBlock(URLSource("https://example.com/a.png")),
            ],
            "user",
        ),
    ]


def test_a_log_is_restored_except_for_cache_markers() -> None:
    def without_markers(value: Any) -> Any:
        if isinstance(value, dict):
            pairs = cast("dict[str, Any]", value).items()
            return {key: without_markers(item) for key, item in pairs if key != "cache_control"}
        return [without_markers(item) for item in cast("list[Any]", value)] if isinstance(value, list) else value

    expected = without_markers({"system": LOG["system"], "messages": LOG["messages"], "tools": LOG["tools"]})
    expected["messages"][0]["content"] = [{"type": "text", "text": "Look, please."}]
    request = AnthropicChatFormatter().lower(load_native(LOG), tools=LOG["tools"]).request
    assert request == expected


def test_sdk_objects_are_accepted_at_any_position() -> None:
    from anthropic._models import construct_type
    from anthropic.types import Message

    sdk_object = cast("Message", construct_type(value=json.loads(json.dumps(REPLY)), type_=Message))
    question = {"role": "user", "content": "Look."}
    expected = load_native([question, {"role": "assistant", "content": REPLY["content"]}])
    assert load_native([question, sdk_object.to_param()]) == expected
    assert load_native([question, sdk_object]) == expected
    assert load_native({"messages": (question, {"role": "assistant", "content": sdk_object.content})}) == expected


def test_a_list_of_messages_needs_no_request_around_it() -> None:
    assert load_native(LOG["messages"]) == load_native({"messages": LOG["messages"]})
    assert load_native({**LOG, "system": "Be brief."})[0] == Msg("system", "Be brief.", "system")


def test_a_late_system_message_becomes_a_system_message() -> None:
    log = [{"role": "user", "content": "Hi."}, {"role": "system", "content": "Be kind."}]
    assert load_native(log)[1] == Msg("system", "Be kind.", "system")


def test_further_fields_of_a_call_are_sent_back() -> None:
    call: dict[str, Any] = {
        "type": "tool_use",
        "id": "toolu_1",
        "name": "click",
        "input": {},
        "toolset_name": "browser",
    }
    log = [{"role": "user", "content": "Go."}, {"role": "assistant", "content": [call]}]
    request = AnthropicChatFormatter().lower(load_native(log)).request
    assert request["messages"][1]["content"] == [call]


def test_an_unreadable_block_becomes_an_invalid_block_with_its_place_and_affects_no_other() -> None:
    bad: list[Any] = [
        {"type": "image", "source": {"type": "nowhere"}},
        {"type": "image", "source": {"type": "base64", "media_type": "nonsense", "data": "AAAA"}},
        {"type": "text"},
        {"no": "type"},
        7,
    ]
    log = [{"role": "user", "content": [*bad, {"type": "text", "text": "Hi."}]}]
    (msg,) = load_native(log)
    places = [block.place for block in msg.blocks if isinstance(block, InvalidBlock)]
    assert places == [f"messages[0].content[{index}]" for index in range(5)]
    assert msg.blocks[-1] == TextBlock("Hi.")
    assert cast("InvalidBlock", msg.blocks[0]).data == bad[0]


_URL: Final = "https://example.com/a"
RESULT: Final[dict[str, Any]] = {
    "type": "search_result", "title": "Cats", "source": "https://example.com",
    "content": [{"type": "text", "text": "They purr."}], "citations": {"enabled": True},
}  # fmt: skip
PARTS: Final[dict[str, Any]] = {
    "type": "document",
    "source": {"type": "content", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
    "context": "c",
    "citations": {"enabled": True},
}
# platform docs: files, citations, search-results, vision, code-execution-tool
OF_THE_USERS: Final[tuple[dict[str, Any], ...]] = (
    {"type": "image", "source": {"type": "file", "file_id": "file_1"}},
    {"type": "document", "source": {"type": "file", "file_id": "file_2"}, "title": "A", "context": "c"},
    {"type": "container_upload", "file_id": "file_3"},
    {"type": "document", "source": {"type": "url", "url": _URL}, "context": "c", "citations": {"enabled": True}},
    {
        "type": "image",
        "source": {"type": "base64", "media_type": "image/png", "data": PNG},
        "transformations": {"oversized_image": "error"},
    },
    RESULT,
    PARTS,
    {
        **PARTS,
        "source": {"type": "content", "content": [{"type": "image", "source": {"type": "url", "url": _URL}}]},
    },
    {**PARTS, "source": {"type": "content", "content": "in one"}},
)
OF_RESULTS: Final[tuple[dict[str, Any], ...]] = (
    *(block for block in OF_THE_USERS if block["type"] != "container_upload"),
    {"type": "tool_reference", "tool_name": "look"},
    {"type": "browser_state", "tabs": []},
)


def _user_log(*blocks: dict[str, Any]) -> list[Any]:
    return [{"role": "user", "content": [*blocks, {"type": "text", "text": "x"}]}]


def _result_log(*blocks: dict[str, Any]) -> list[Any]:
    answer: dict[str, Any] = {"type": "tool_result", "tool_use_id": "toolu_1", "content": [*blocks]}
    call: dict[str, Any] = {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {}}
    question = {"role": "user", "content": [{"type": "text", "text": "x"}]}
    return [question, {"role": "assistant", "content": [call]}, {"role": "user", "content": [answer]}]


@each_case(
    "log",
    [
        *map(_user_log, OF_THE_USERS),
        _user_log(*OF_THE_USERS),
        *map(_result_log, OF_RESULTS),
        _result_log(*OF_RESULTS),
    ],
)
def test_blocks_of_a_user_or_a_tool_are_sent_back_unchanged(log: list[Any]) -> None:
    msgs = load_native(log)
    plan = AnthropicChatFormatter(on_loss="raise").lower(msgs)
    assert plan.request["messages"] == log
    assert not plan.ledger.losses
    stored = [Msg.from_dict(json.loads(json.dumps(msg.to_dict()))) for msg in msgs]
    assert AnthropicChatFormatter().lower(stored).request == plan.request
    marked = json.loads(
        json.dumps(log).replace('"type": "text"', '"cache_control": {"type": "ephemeral"}, "type": "text"')
    )
    assert load_native(marked) == msgs


@pytest.mark.parametrize("block", [block for block in OF_THE_USERS if "file_id" in json.dumps(block)])
def test_a_file_id_is_a_loss_for_other_providers(block: dict[str, Any]) -> None:
    plan = load_provider("openai").chat_formatter().lower(load_native(_user_log(block)))
    assert len(plan.ledger.losses) == 1
    assert "only anthropic accepts its format" in json.dumps(plan.request)


def test_a_search_result_of_the_user_is_its_text_for_other_providers() -> None:
    msgs = load_native(_user_log(RESULT))
    assert msgs[0].text == "Cats\nhttps://example.com\nThey purr.\nx"
    plan = load_provider("openai").chat_formatter(on_loss="raise").lower(msgs)
    assert "They purr." in json.dumps(plan.request)


def test_a_document_of_text_parts_becomes_a_document_of_their_text() -> None:
    (document,) = load_native(_user_log(PARTS))[0].media
    assert document.source == Base64Source("text/plain", base64.b64encode(b"a\nb").decode())
    pdf = {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": PDF}}
    assert load_native([{"role": "user", "content": [pdf]}])[0].media[0] == DocumentBlock(
        Base64Source("application/pdf", PDF)
    )


def test_the_native_block_is_sent_back_only_if_its_content_is_unchanged() -> None:
    (msg,) = load_native(_user_log(RESULT, PARTS))
    text, document, last = msg.blocks
    assert isinstance(text, TextBlock)
    assert isinstance(document, DocumentBlock)
    new = Base64Source("text/plain", base64.b64encode(b"new").decode())
    changed = replace(msg, content=(replace(text, text="new"), replace(document, source=new), last))
    content = AnthropicChatFormatter().lower([changed]).request["messages"][0]["content"]
    assert content[0] == {"type": "text", "text": "new"}
    assert content[1]["source"] == {"type": "text", "media_type": "text/plain", "data": "new"}


def test_a_document_whose_text_was_replaced_by_a_url_is_sent_with_the_url() -> None:
    (msg,) = load_native(_user_log(PARTS))
    document, last = msg.blocks
    assert isinstance(document, DocumentBlock)
    source = URLSource("https://x.org/a.pdf")
    changed = replace(msg, content=(replace(document, source=source), last))
    content = AnthropicChatFormatter().lower([changed]).request["messages"][0]["content"]
    assert content[0]["source"] == {"type": "url", "url": source.url}


def test_a_system_prompt_of_one_native_block_is_a_list() -> None:
    block = {"type": "tool_addition", "tool_name": "look"}
    msgs = [Msg("system", [OpaqueBlock("anthropic", block)], "system"), Msg("Bob", "Hi.", "user")]
    assert AnthropicChatFormatter().lower(msgs).request["system"] == [block]


def test_only_the_last_text_of_a_last_assistant_turn_loses_its_trailing_whitespace() -> None:
    thinking = ThinkingBlock("Hm.", OpaqueState("anthropic", signature="EsQC"))
    last = Msg("Friday", [thinking, TextBlock("One. "), TextBlock("Two. ")], "assistant")
    (_, message) = (
        AnthropicChatFormatter("claude-sonnet-4-5").lower([Msg("Bob", "Hi.", "user"), last]).request["messages"]
    )
    assert [part.get("text") for part in message["content"]] == [None, "One. ", "Two."]


def test_the_result_of_a_failed_tool_has_only_text() -> None:
    log = _result_log(RESULT)
    log[2]["content"][0]["is_error"] = True
    sent = AnthropicChatFormatter().lower(load_native(log)).request["messages"][2]["content"][0]
    assert [block["type"] for block in sent["content"]] == ["text"]


def test_citations_of_a_text_are_sent_only_in_assistant_turns() -> None:
    cited = {"type": "text", "text": "Cats.", "citations": [CITATION]}
    sent = AnthropicChatFormatter().lower(load_native(_user_log(cited))).request["messages"][0]["content"][0]
    assert sent == {"type": "text", "text": "Cats."}
    state = OpaqueState("anthropic", fields={"citations": [CITATION]})
    sent = AnthropicChatFormatter().lower([Msg("Bob", [TextBlock("Cats.", state=state)], "user")]).request
    assert sent["messages"][0]["content"] == [{"type": "text", "text": "Cats."}]


@each_case("log", [None, 3, "Hi.", {}, {"contents": []}, {"messages": "Hi."}, [{"role": "tool"}], [3]])
def test_a_value_that_is_not_an_anthropic_log_raises_an_error(log: object) -> None:
    with pytest.raises(MessageError, match="message"):
        load_native(log)


def test_the_provider_offers_its_loader() -> None:
    assert PROVIDER.load_native is load_native


# -- the round trip --------------------------------------------------------------------------------------------

_server: st.SearchStrategy[list[Block]] = st.sampled_from(
    (
        [OpaqueBlock("anthropic", SEARCH), OpaqueBlock("anthropic", SEARCH_RESULT), TextBlock("Cats.")],
        [OpaqueBlock("anthropic", SEARCH)],
        [OpaqueBlock("anthropic", SEARCH_RESULT)],
        [TextBlock("Cats.", state=OpaqueState("anthropic", fields={"citations": [CITATION]}))],
        [ToolUseBlock("c", "click", {}, state=OpaqueState("anthropic", fields={"toolset_name": "browser"}))],
        [ThinkingBlock("", OpaqueState("anthropic", signature="S")), OpaqueBlock("anthropic", SEARCH)],
    )
)
_loaded_logs = st.sampled_from([*map(_user_log, OF_THE_USERS), *map(_result_log, OF_RESULTS)]).map(load_native)
logs = st.lists(
    st.one_of(
        histories(3),
        valid_histories(3),
        _loaded_logs,
        _server.map(lambda blocks: [Msg("Friday", tuple(blocks), "assistant")]),
    ),
    min_size=1,
    max_size=4,
).map(lambda pieces: [msg for piece in pieces for msg in piece])


def test_server_tool_blocks_are_not_sent_in_a_user_turn() -> None:
    msg = Msg(
        "Bob", [TextBlock("x"), OpaqueBlock("anthropic", SEARCH), OpaqueBlock("anthropic", SEARCH_RESULT)], "user"
    )
    plan = AnthropicChatFormatter().lower([msg])
    assert plan.request["messages"][0]["content"] == [{"type": "text", "text": "x"}]
    assert not plan.ledger.losses


def test_half_a_pair_is_not_sent_if_media_are_moved_after_the_results() -> None:
    msgs = [
        Msg("Alice", "Look.", "user"),
        Msg("Friday", [OpaqueBlock("anthropic", SEARCH), picture(), ToolUseBlock("c", "look", {})], "assistant"),
        Msg("tool", [ToolResultBlock("c", "look", "A cat.")], "system"),
    ]
    plan = AnthropicChatFormatter().lower(msgs)
    assert "srvtoolu" not in json.dumps(plan.request)
    assert plan.ledger.entries[1].reason == "the matching request or response of the provider's tool is missing"
    assert AnthropicChatFormatter().lower(load_native(plan.request)).request == plan.request


@examples(100)
@given(logs, st.sampled_from((None, "claude-opus-4-1", "claude-opus-5-5")))
def test_a_loaded_request_gives_the_same_request(msgs: list[Msg], model: str | None) -> None:
    formatter = load_provider("anthropic").chat_formatter(model)
    request = formatter.lower(msgs).request
    again = load_native(request)
    assume(again)
    try:
        assert formatter.lower(again).request == request
    except EmptyConversationError:
        assume(False)
