"""Tests of paired opaque blocks: half a pair is never sent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import pytest

from agentkit import Msg, MultiAgentHistory, OpaqueBlock, TextBlock
from tests.conftest import call, dispositions, lower, result, text_msg, turn_lines


def pair(data: Mapping[str, Any]) -> tuple[Literal["request", "response"], str] | None:
    """Returns the pair key of blocks with the labels `ask` and `answer`."""
    if "ask" in data:
        return "request", str(data["ask"])
    return ("response", str(data["answer"])) if "answer" in data else None


def reply(*parts: str, wire: str = "echo") -> Msg:
    """Returns a reply: `ask 1` and `answer 1` are a pair, `note 1` is a single block, others are texts."""
    blocks: list[OpaqueBlock | TextBlock] = []
    for part in parts:
        word, _, name = part.partition(" ")
        opaque = word in ("ask", "answer", "note")
        blocks.append(OpaqueBlock(wire, {word: name}) if opaque else TextBlock(part))
    return Msg("Friday", blocks, "assistant")


def list_sent_blocks(*msgs: Msg, **changes: Any) -> list[str]:
    options: dict[str, Any] = {"wire": "echo", "opaque.pair_key": pair, **changes}
    plan = lower([text_msg("Bob", "Hi."), *msgs], **options)
    return turn_lines(plan)[1:]


def test_whole_pairs_and_unpaired_blocks_are_sent() -> None:
    assert list_sent_blocks(reply("ask 1", "answer 1", "note 1", "done")) == [
        "assistant Friday: <opaque> | <opaque> | <opaque> | done"
    ]


@pytest.mark.parametrize("half", ["ask 1", "answer 1"])
def test_half_a_pair_is_dropped_with_a_note(half: str) -> None:
    assert list_sent_blocks(reply(half, "done"), text_msg("Bob", "Go on.")) == [
        "assistant Friday: done",
        "user Bob: Go on.",
    ]
    plan = lower([text_msg("Bob", "Hi."), reply(half, "done")], wire="echo", opaque__pair_key=pair)
    assert dispositions(plan)["msgs[1].content[0]"] == "dropped"


def test_a_message_with_only_half_a_pair_is_dropped() -> None:
    assert list_sent_blocks(reply("answer 1"), text_msg("Bob", "Go on.")) == ["user Bob: Go on."]


def test_a_response_may_be_in_a_later_reply_but_not_in_an_earlier_one() -> None:
    assert len(list_sent_blocks(reply("ask 1"), text_msg("Bob", "Well?"), reply("answer 1", "done"))) == 3
    assert list_sent_blocks(reply("answer 1", "done"), text_msg("Bob", "Well?"), reply("ask 1", "done")) == [
        "assistant Friday: done",
        "user Bob: Well?",
        "assistant Friday: done",
    ]


def test_a_response_answers_the_first_of_two_requests_with_one_key() -> None:
    assert list_sent_blocks(reply("ask 1", "answer 1", "ask 1", "done"))[0].count("<opaque>") == 2


def test_a_second_request_with_the_key_of_an_answered_request_is_half_a_pair() -> None:
    assert list_sent_blocks(reply("ask 1", "first", "ask 1", "second", "answer 1", "done")) == [
        "assistant Friday: <opaque> | first | second | <opaque> | done"
    ]


def test_a_text_between_a_request_and_a_response_with_an_empty_key_is_no_response() -> None:
    assert list_sent_blocks(reply("ask ", "wait", "answer ", "done")) == [
        "assistant Friday: <opaque> | wait | <opaque> | done"
    ]


def test_only_the_last_turn_of_the_assistant_is_open() -> None:
    changes: dict[str, Any] = {"turns.resumable": True, "turns.last_user": True}
    assert list_sent_blocks(reply("wait", "ask 1"), text_msg("Bob", "Go on."), reply("ask 2"), **changes) == [
        "assistant Friday: wait",
        "user Bob: Go on.",
        "assistant Friday: <opaque>",
    ]


def test_an_open_turn_may_be_the_first_turn() -> None:
    plan = lower([reply("wait", "ask 1")], wire="echo", opaque__pair_key=pair, turns__resumable=True)
    assert turn_lines(plan) == ["assistant Friday: wait | <opaque>"]


def test_a_target_that_resumes_an_open_turn_gets_it_unchanged() -> None:
    changes: dict[str, Any] = {"turns.resumable": True, "turns.last_user": True}
    assert list_sent_blocks(reply("wait", "ask 1"), **changes) == ["assistant Friday: wait | <opaque>"]
    assert list_sent_blocks(reply("wait", "ask 1")) == ["assistant Friday: wait"]
    assert list_sent_blocks(reply("ask 1"), reply("note 1", "ask 2"), **changes) == [
        "assistant Friday: <opaque>",
        "assistant Friday: <opaque> | <opaque>",
    ]
    assert len(list_sent_blocks(reply("ask 1", "note 1"), **changes)) == 2


def test_a_turn_that_other_content_follows_is_not_open() -> None:
    changes: dict[str, Any] = {"turns.resumable": True, "turns.last_user": True}
    assert list_sent_blocks(reply("ask 1", "done"), **changes)[0] == "assistant Friday: done"
    assert (
        list_sent_blocks(reply("wait", "ask 1"), text_msg("Bob", "Go on."), **changes)[0]
        == "assistant Friday: wait"
    )
    assert list_sent_blocks(reply("ask 1", "done", "answer 2"), **changes)[0] == "assistant Friday: done"
    assert (
        list_sent_blocks(reply("wait", "ask 1"), Msg("Friday", [], "assistant"), **changes)[0]
        == "assistant Friday: wait"
    )


def test_an_open_turn_may_wait_for_results_of_client_tools() -> None:
    asked = Msg("Friday", [*reply("ask 1").blocks, *call("c1").blocks], "assistant")
    assert (
        list_sent_blocks(asked, result("c1"), turns__resumable=True)[0] == "assistant Friday: <opaque> | call c1"
    )
    assert list_sent_blocks(asked, result("c1"))[0] == "assistant Friday: call c1"
    assert (
        list_sent_blocks(asked, result("c1"), text_msg("Bob", "Go on."), turns__resumable=True)[0]
        == "assistant Friday: call c1"
    )


@pytest.mark.parametrize("viewer", [None, "Friday", "Bob"])
def test_the_response_to_a_native_turn_is_native_and_changes_no_earlier_turn(viewer: str | None) -> None:
    changes: dict[str, Any] = {
        "wire": "echo",
        "opaque.pair_key": pair,
        "turns.resumable": True,
        "history": MultiAgentHistory(viewer=viewer, other_agents_tools="native"),
    }
    asked = Msg("Friday", [*reply("ask 1").blocks, *call("c1").blocks], "assistant")
    msgs = [text_msg("Bob", "Hi."), asked, result("c1")]
    first = turn_lines(lower(msgs, **changes))
    later = turn_lines(
        lower([*msgs, reply("answer 1", "done"), text_msg("Bob", "Thanks."), reply("again")], **changes)
    )
    assert later[: len(first)] == first
    assert later[len(first)] == "assistant Friday: <opaque> | done"


def test_blocks_of_another_wire_format_are_not_half_a_pair() -> None:
    assert list_sent_blocks(reply("ask 1", "done", wire="other")) == ["assistant Friday: done"]
    assert len(list_sent_blocks(reply("ask 1", "done"), opaque__pair_key=None)[0].split("|")) == 2


def test_a_user_may_send_blocks_that_belong_to_a_pair() -> None:
    msg = Msg("Bob", reply("ask 1", "hi").blocks, "user")
    assert list_sent_blocks(msg) == ["user Bob: <opaque> | hi"]
