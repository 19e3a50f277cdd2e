"""Logs of Anthropic's: what was written comes back the same, and what others wrote is understood."""

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
from tests.conversations import histories, valid_histories
from tests.profiles import examples
from tests.providers import PDF, PNG, picture
from tests.providers.anthropic.test_replies import CITATION, FOUND, SEARCH, WHOLE

# platform docs: tool-use, preserved-thinking, citations, prompt-caching; an agent's log as its user keeps it
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
            "content": [SEARCH, FOUND, {"type": "text", "text": "A dog.", "citations": [CITATION]}],
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
def test_a_call_names_the_servers_tool_that_made_it_only_if_that_is_sent_too(there: bool) -> None:
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
def test_a_caller_or_an_id_of_any_shape_does_no_harm(odd: Any) -> None:
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


def test_a_log_is_exactly_this() -> None:
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
                OpaqueBlock(ours, FOUND),
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


def test_a_log_comes_back_the_same_but_for_cache_markers() -> None:
    def plain(found: Any) -> Any:
        if isinstance(found, dict):
            pairs = cast("dict[str, Any]", found).items()
            return {key: plain(item) for key, item in pairs if key != "cache_control"}
        return [plain(item) for item in cast("list[Any]", found)] if isinstance(found, list) else found

    expected = plain({"system": LOG["system"], "messages": LOG["messages"], "tools": LOG["tools"]})
    expected["messages"][0]["content"] = [{"type": "text", "text": "Look, please."}]
    request = AnthropicChatFormatter().lower(load_native(LOG), tools=LOG["tools"]).request
    assert request == expected


def test_sdk_objects_may_stand_anywhere() -> None:
    from anthropic._models import construct_type
    from anthropic.types import Message

    made = cast("Message", construct_type(value=json.loads(json.dumps(WHOLE)), type_=Message))
    asked = {"role": "user", "content": "Look."}
    expected = load_native([asked, {"role": "assistant", "content": WHOLE["content"]}])
    assert load_native([asked, made.to_param()]) == expected
    assert load_native([asked, made]) == expected
    assert load_native({"messages": (asked, {"role": "assistant", "content": made.content})}) == expected


def test_a_list_of_messages_needs_no_request_around_it() -> None:
    assert load_native(LOG["messages"]) == load_native({"messages": LOG["messages"]})
    assert load_native({**LOG, "system": "Be brief."})[0] == Msg("system", "Be brief.", "system")


def test_a_system_message_in_between_is_one() -> None:
    log = [{"role": "user", "content": "Hi."}, {"role": "system", "content": "Be kind."}]
    assert load_native(log)[1] == Msg("system", "Be kind.", "system")


def test_a_calls_caller_goes_back_with_it() -> None:
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


def test_a_bad_block_is_kept_with_its_place_and_harms_no_other() -> None:
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
    assert places == [f"messages[0].content[{at}]" for at in range(5)]
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


def _asking(*blocks: dict[str, Any]) -> list[Any]:
    return [{"role": "user", "content": [*blocks, {"type": "text", "text": "x"}]}]


def _answering(*blocks: dict[str, Any]) -> list[Any]:
    answer: dict[str, Any] = {"type": "tool_result", "tool_use_id": "toolu_1", "content": [*blocks]}
    call: dict[str, Any] = {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {}}
    asked = {"role": "user", "content": [{"type": "text", "text": "x"}]}
    return [asked, {"role": "assistant", "content": [call]}, {"role": "user", "content": [answer]}]


@pytest.mark.parametrize(
    "log",
    [*map(_asking, OF_THE_USERS), _asking(*OF_THE_USERS), *map(_answering, OF_RESULTS), _answering(*OF_RESULTS)],
)
def test_what_a_user_or_a_tool_gave_comes_back_as_it_was(log: list[Any]) -> None:
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
def test_a_file_that_is_only_at_the_provider_is_a_loss_elsewhere(block: dict[str, Any]) -> None:
    plan = load_provider("openai").chat_formatter().lower(load_native(_asking(block)))
    assert len(plan.ledger.losses) == 1
    assert "only anthropic knows it" in json.dumps(plan.request)


def test_a_search_result_of_the_callers_is_its_text_elsewhere() -> None:
    msgs = load_native(_asking(RESULT))
    assert msgs[0].text == "Cats\nhttps://example.com\nThey purr.\nx"
    plan = load_provider("openai").chat_formatter(on_loss="raise").lower(msgs)
    assert "They purr." in json.dumps(plan.request)


def test_a_document_of_text_parts_is_their_text_elsewhere() -> None:
    (found,) = load_native(_asking(PARTS))[0].media
    assert found.source == Base64Source("text/plain", base64.b64encode(b"a\nb").decode())
    pdf = {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": PDF}}
    assert load_native([{"role": "user", "content": [pdf]}])[0].media[0] == DocumentBlock(
        Base64Source("application/pdf", PDF)
    )


def test_what_a_block_was_made_from_goes_back_only_as_long_as_it_says_the_same() -> None:
    (msg,) = load_native(_asking(RESULT, PARTS))
    text, document, last = msg.blocks
    assert isinstance(text, TextBlock)
    assert isinstance(document, DocumentBlock)
    new = Base64Source("text/plain", base64.b64encode(b"new").decode())
    changed = replace(msg, content=(replace(text, text="new"), replace(document, source=new), last))
    told = AnthropicChatFormatter().lower([changed]).request["messages"][0]["content"]
    assert told[0] == {"type": "text", "text": "new"}
    assert told[1]["source"] == {"type": "text", "media_type": "text/plain", "data": "new"}


def test_the_result_of_a_failed_tool_is_text_alone() -> None:
    log = _answering(RESULT)
    log[2]["content"][0]["is_error"] = True
    told = AnthropicChatFormatter().lower(load_native(log)).request["messages"][2]["content"][0]
    assert [block["type"] for block in told["content"]] == ["text"]


def test_the_citations_of_a_text_stand_in_a_models_turn_alone() -> None:
    cited = {"type": "text", "text": "Cats.", "citations": [CITATION]}
    told = AnthropicChatFormatter().lower(load_native(_asking(cited))).request["messages"][0]["content"][0]
    assert told == {"type": "text", "text": "Cats."}
    state = OpaqueState("anthropic", fields={"citations": [CITATION]})
    told = AnthropicChatFormatter().lower([Msg("Bob", [TextBlock("Cats.", state=state)], "user")]).request
    assert told["messages"][0]["content"] == [{"type": "text", "text": "Cats."}]


@pytest.mark.parametrize(
    "found", [None, 3, "Hi.", {}, {"contents": []}, {"messages": "Hi."}, [{"role": "tool"}], [3]]
)
def test_what_is_no_log_is_refused(found: object) -> None:
    with pytest.raises(MessageError, match="message"):
        load_native(found)


def test_the_provider_offers_its_loader() -> None:
    assert PROVIDER.load_native is load_native


# -- the round trip --------------------------------------------------------------------------------------------

_server: st.SearchStrategy[list[Block]] = st.sampled_from(
    (
        [OpaqueBlock("anthropic", SEARCH), OpaqueBlock("anthropic", FOUND), TextBlock("Cats.")],
        [OpaqueBlock("anthropic", SEARCH)],
        [OpaqueBlock("anthropic", FOUND)],
        [TextBlock("Cats.", state=OpaqueState("anthropic", fields={"citations": [CITATION]}))],
        [ToolUseBlock("c", "click", {}, state=OpaqueState("anthropic", fields={"toolset_name": "browser"}))],
        [ThinkingBlock("", OpaqueState("anthropic", signature="S")), OpaqueBlock("anthropic", SEARCH)],
    )
)
_given = st.sampled_from([*map(_asking, OF_THE_USERS), *map(_answering, OF_RESULTS)]).map(load_native)
logs = st.lists(
    st.one_of(
        histories(3),
        valid_histories(3),
        _given,
        _server.map(lambda blocks: [Msg("Friday", tuple(blocks), "assistant")]),
    ),
    min_size=1,
    max_size=4,
).map(lambda found: [msg for piece in found for msg in piece])


def test_what_the_server_ran_stands_in_no_users_turn() -> None:
    msg = Msg("Bob", [TextBlock("x"), OpaqueBlock("anthropic", SEARCH), OpaqueBlock("anthropic", FOUND)], "user")
    plan = AnthropicChatFormatter().lower([msg])
    assert plan.request["messages"][0]["content"] == [{"type": "text", "text": "x"}]
    assert not plan.ledger.losses


def test_half_a_pair_is_not_sent_where_media_are_moved_behind_the_results() -> None:
    msgs = [
        Msg("Alice", "Look.", "user"),
        Msg("Friday", [OpaqueBlock("anthropic", SEARCH), picture(), ToolUseBlock("c", "look", {})], "assistant"),
        Msg("tool", [ToolResultBlock("c", "look", "A cat.")], "system"),
    ]
    plan = AnthropicChatFormatter().lower(msgs)
    assert "srvtoolu" not in json.dumps(plan.request)
    assert (
        plan.ledger.entries[1].reason == "the request or the response of a tool that the provider runs is missing"
    )
    assert AnthropicChatFormatter().lower(load_native(plan.request)).request == plan.request


@examples(100)
@given(logs, st.sampled_from((None, "claude-opus-4-1", "claude-opus-5-5")))
def test_what_our_formatter_wrote_is_written_again(msgs: list[Msg], model: str | None) -> None:
    formatter = load_provider("anthropic").chat_formatter(model)
    request = formatter.lower(msgs).request
    again = load_native(request)
    assume(again)
    try:
        assert formatter.lower(again).request == request
    except EmptyConversationError:
        assume(False)
