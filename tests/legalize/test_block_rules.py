"""Tests of the rules for single blocks: each test is about one block and has its exact ledger."""

from __future__ import annotations

from typing import Any, Final

import pytest

from agentkit import (
    InvalidBlock,
    Msg,
    OpaqueBlock,
    OpaqueState,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
)
from agentkit.provider_kit import NameRule
from tests.cases import each_case
from tests.conftest import call, get_turns, ledger_lines, legalize, lower, result, turn_lines

BLANK: Final = "dropped: the text is empty or has only white space"


def reply(*blocks: Any) -> Msg:
    return Msg("Friday", blocks, "assistant")


# -- texts -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["", " \n"])
def test_a_blank_text_is_sent_only_with_a_signature_of_its_part(text: str) -> None:
    for is_sent, state, signed_parts in (
        (True, OpaqueState("echo", thought_signature="eA=="), True),
        (False, OpaqueState("echo", thought_signature="eA=="), False),
        (False, OpaqueState("other", thought_signature="eA=="), True),
        (False, OpaqueState("echo"), True),
        (False, None, True),
    ):
        plan = lower([reply(TextBlock(text, state=state), TextBlock("x"))], opaque__signed_parts=signed_parts)
        assert turn_lines(plan) == [f"assistant Friday: {text} | x" if is_sent else "assistant Friday: x"]
        assert (BLANK.partition(": ")[2] in str(plan.ledger)) is not is_sent


@pytest.mark.parametrize("text", ["", " \n"])
def test_a_blank_text_in_a_tool_result_is_dropped(text: str) -> None:
    output = (TextBlock(text), TextBlock("x"))
    plan = lower([call("c"), Msg("tool", (ToolResultBlock("c", "search", output),), "system")])
    assert turn_lines(plan)[1] == "system tool: result c=x"
    assert ledger_lines(plan)[2:] == [f"1.0.0 {BLANK}", "1.0.1 carried: sent unchanged"]


def test_the_content_string_of_a_message_stays_a_string() -> None:
    (turn,) = get_turns(lower([Msg("Friday", "Hi.", "assistant")], turns__last_user=False))
    assert turn["content"] == "Hi."


# -- thinking ----------------------------------------------------------------------------------------------------

NO_PROOF: Final = "this thinking has no signature or encrypted data, but the API requires one of them"
THINKING: Final[list[tuple[str, str, OpaqueState | None, frozenset[str], str | None]]] = [
    ("unmarked", "hm", None, frozenset(), NO_PROOF),
    ("unmarked, with a required proof", "hm", None, frozenset({"signature"}), NO_PROOF),
    ("with another proof", "hm", OpaqueState("echo", item_id="rs_1"), frozenset({"signature"}), NO_PROOF),
    (
        "with one of two proofs",
        "hm",
        OpaqueState("echo", item_id="rs_1"),
        frozenset({"signature", "item_id"}),
        None,
    ),
    (
        "with a signature that is not base64 text",
        "hm",
        OpaqueState("echo", thought_signature="?"),
        frozenset(),
        "the signature of this thinking is not base64 text",
    ),
    ("with a signature", "hm", OpaqueState("echo", thought_signature="eA=="), frozenset(), None),
    ("with a signature alone", "", OpaqueState("echo", thought_signature="eA=="), frozenset(), None),
    ("with a text alone", "hm", OpaqueState("echo"), frozenset(), None),
    (
        "with neither",
        "",
        OpaqueState("echo"),
        frozenset(),
        "the thinking has neither text nor a signature",
    ),
    ("with only a required proof", "", OpaqueState("echo", signature="s"), frozenset({"signature"}), None),
    (
        "of another issuer",
        "hm",
        OpaqueState("other", signature="s"),
        frozenset({"signature"}),
        "the API does not accept thinking issued by other",
    ),
]


@each_case(("text", "state", "required", "reason"), {row[0]: row[1:] for row in THINKING})
def test_signed_thinking_is_sent_only_with_its_proof(
    text: str, state: OpaqueState | None, required: frozenset[str], reason: str | None
) -> None:
    msgs = [reply(ThinkingBlock(text, state), TextBlock("x"))]
    plan = lower(msgs, thinking__mode="signed", thinking__required_proof=required)
    assert turn_lines(plan) == ["assistant Friday: x" if reason else f"assistant Friday: {text} | x"]
    assert ledger_lines(plan)[0] == (f"0.0 dropped: {reason}" if reason else "0.0 carried: sent unchanged")


FINAL: Final = "dropped: the API requires a text or tool call after thinking, but neither follows in this message"


def test_a_message_of_thinking_alone_is_dropped_in_every_mode() -> None:
    thinking = ThinkingBlock("hm", OpaqueState("echo"))
    for mode in ("signed", "text"):
        plan = lower([reply(thinking, thinking), reply(TextBlock("x"))], thinking__mode=mode)
        assert turn_lines(plan) == ["assistant Friday: x"]
        assert ledger_lines(plan)[:2] == [f"0.0 {FINAL}", f"0.1 {FINAL}"]


# -- tool calls --------------------------------------------------------------------------------------------------


def test_the_conversation_maps_each_replaced_id_and_name_to_the_original() -> None:
    ids, names = NameRule(), NameRule(reserved=frozenset({"search"}))
    msgs = [call("a b", tool="look up"), result("a b"), call("c"), result("c"), call("d", tool="x")]
    conversation = legalize(msgs, tools__call_ids=ids, tools__names=names)
    plan = lower(msgs, tools__call_ids=ids, tools__names=names)
    call_id, look_up, search = ids.fit("a b"), names.fit("look up"), names.fit("search")
    assert conversation.call_ids == {call_id: "a b"}
    assert conversation.tool_names == {look_up: "look up", search: "search"}
    assert get_turns(plan)[0]["content"][0]["id"] == call_id
    replaced = "carried: call id or tool name replaced, because the API does not accept the original"
    assert ledger_lines(plan) == [
        f"0.0 {replaced}",
        "1.0 carried: sent unchanged",
        f"2.0 {replaced}",
        "3.0 carried: sent unchanged",
        "4.0 carried: sent unchanged",
    ]


def test_a_result_without_a_tool_name_stays_without_one() -> None:
    msgs = [call("c"), Msg("tool", (ToolResultBlock("c", "", ()),), "system")]
    (block,) = get_turns(lower(msgs, tools__names=NameRule()))[1]["content"]
    assert block.get("name", "") == ""


def test_broken_argument_text_is_sent_once() -> None:
    msgs = [reply(ToolUseBlock("c", "n", {}, '{"path": "READ')), result("c")]
    (block,) = get_turns(lower(msgs))[0]["content"]
    assert block == {"type": "tool_use", "id": "c", "name": "n", "input": {"raw_input": '{"path": "READ'}}


NAMES: Final = [
    ("a limit below the usual one", NameRule(limit=8), "search_tool"),
    ("another alphabet", NameRule(pattern="[a-z]+"), "tool_1"),
    ("a reserved name", NameRule(reserved=frozenset({"search"})), "search"),
    ("a reserved name that few APIs reserve", NameRule(reserved=frozenset({"look"})), "look"),
]


@each_case(("rule", "name"), {row[0]: row[1:] for row in NAMES})
def test_an_ordinary_name_is_replaced_if_the_target_refuses_it(rule: NameRule, name: str) -> None:
    msgs = [call("c", tool=name), Msg("tool", (ToolResultBlock("c", name, "x"),), "system")]
    names = [turn["content"][0]["name"] for turn in get_turns(lower(msgs, tools__names=rule))]
    assert names == [rule.fit(name)] * 2
    assert rule.fit(name) != name


@pytest.mark.parametrize("rule", [NameRule(limit=8), NameRule(pattern="[a-z]+")])
def test_an_ordinary_id_is_replaced_if_the_target_refuses_it(rule: NameRule) -> None:
    turns = get_turns(lower([call("call_number_1"), result("call_number_1")], tools__call_ids=rule))
    assert [turn["content"][0]["id"] for turn in turns] == [rule.fit("call_number_1")] * 2


# -- opaque and invalid blocks -----------------------------------------------------------------------------------


def test_an_opaque_item_of_an_error_is_sent_if_the_target_accepts_more_than_text() -> None:
    item = OpaqueBlock("echo", {"type": "part"})
    msgs = [call("c"), Msg("tool", (ToolResultBlock("c", "search", (item,), True),), "system")]
    plan = lower(msgs, wire="echo", media__error_results=True)
    assert ledger_lines(plan)[2:] == ["1.0.0 carried: sent unchanged"]


def test_a_block_of_a_reply_that_its_own_api_refuses_there_is_a_loss() -> None:
    block = OpaqueBlock("echo", {"type": "part"})

    def places(_: object) -> frozenset[str]:
        return frozenset({"user"})

    plan = lower([reply(block, TextBlock("x"))], wire="echo", opaque__places=places)
    assert turn_lines(plan) == [
        "assistant Friday: [part left out because Echo does not accept it in a message of role 'assistant'] | x"
    ]
    assert ledger_lines(plan)[0] == (
        "0.0 described!: Echo does not accept this type of block in a message of role 'assistant'"
    )


def test_an_invalid_item_of_a_tool_result_is_described() -> None:
    item = InvalidBlock({"type": "poem"}, "no such type", "there")
    plan = lower([call("c"), Msg("tool", (ToolResultBlock("c", "search", (item,)),), "system")])
    text = "[block left out because it could not be read when the history was loaded]"
    assert turn_lines(plan)[1] == f"system tool: result c={text}"
    assert ledger_lines(plan)[2:] == ["1.0.0 described!: invalid block: no such type"]
