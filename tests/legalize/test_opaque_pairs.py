"""Parts that belong together: half a pair is not sent, whatever took the other half."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import pytest

from agentkit import Msg, MultiAgentHistory, OpaqueBlock, TextBlock
from tests.conftest import call, fates, lower, result, said, says


def pair(data: Mapping[str, Any]) -> tuple[Literal["request", "response"], str] | None:
    """A wire of which `ask` asks and `answer` answers."""
    if "ask" in data:
        return "request", str(data["ask"])
    return ("response", str(data["answer"])) if "answer" in data else None


def reply(*parts: str, wire: str = "echo") -> Msg:
    """A reply of the assistant's: `ask 1` and `answer 1` are parts, `note 1` one by itself, all else is text."""
    blocks: list[OpaqueBlock | TextBlock] = []
    for part in parts:
        word, _, name = part.partition(" ")
        opaque = word in ("ask", "answer", "note")
        blocks.append(OpaqueBlock(wire, {word: name}) if opaque else TextBlock(part))
    return Msg("Friday", blocks, "assistant")


def sent(*msgs: Msg, **form: Any) -> list[str]:
    given: dict[str, Any] = {"wire": "echo", "opaque.pair_key": pair, **form}
    plan = lower([says("Bob", "Hi."), *msgs], **given)
    return said(plan)[1:]


def test_whole_pairs_and_parts_that_stand_alone_are_sent() -> None:
    assert sent(reply("ask 1", "answer 1", "note 1", "done")) == [
        "assistant Friday: <opaque> | <opaque> | <opaque> | done"
    ]


@pytest.mark.parametrize("half", ["ask 1", "answer 1"])
def test_half_a_pair_is_not_sent_and_the_ledger_says_so(half: str) -> None:
    assert sent(reply(half, "done"), says("Bob", "Go on.")) == ["assistant Friday: done", "user Bob: Go on."]
    plan = lower([says("Bob", "Hi."), reply(half, "done")], wire="echo", opaque__pair_key=pair)
    assert fates(plan)["msgs[1].content[0]"] == "dropped"


def test_a_message_that_was_nothing_but_a_half_goes() -> None:
    assert sent(reply("answer 1"), says("Bob", "Go on.")) == ["user Bob: Go on."]


def test_an_answer_may_come_with_a_later_reply_and_never_with_an_earlier() -> None:
    assert len(sent(reply("ask 1"), says("Bob", "Well?"), reply("answer 1", "done"))) == 3
    assert sent(reply("answer 1", "done"), says("Bob", "Well?"), reply("ask 1", "done")) == [
        "assistant Friday: done",
        "user Bob: Well?",
        "assistant Friday: done",
    ]


def test_of_two_that_ask_under_one_name_one_answer_answers_the_first() -> None:
    assert sent(reply("ask 1", "answer 1", "ask 1", "done"))[0].count("<opaque>") == 2


def test_a_target_that_goes_on_with_an_open_turn_gets_it_as_it_is() -> None:
    form: dict[str, Any] = {"turns.resumable": True, "turns.last_user": True}
    assert sent(reply("wait", "ask 1"), **form) == ["assistant Friday: wait | <opaque>"]
    assert sent(reply("wait", "ask 1")) == ["assistant Friday: wait"]
    assert sent(reply("ask 1"), reply("note 1", "ask 2"), **form) == [
        "assistant Friday: <opaque>",
        "assistant Friday: <opaque> | <opaque>",
    ]
    assert len(sent(reply("ask 1", "note 1"), **form)) == 2


def test_an_open_turn_that_something_stands_behind_is_open_no_more() -> None:
    form: dict[str, Any] = {"turns.resumable": True, "turns.last_user": True}
    assert sent(reply("ask 1", "done"), **form)[0] == "assistant Friday: done"
    assert sent(reply("wait", "ask 1"), says("Bob", "Go on."), **form)[0] == "assistant Friday: wait"
    assert sent(reply("ask 1", "done", "answer 2"), **form)[0] == "assistant Friday: done"
    assert sent(reply("wait", "ask 1"), Msg("Friday", [], "assistant"), **form)[0] == "assistant Friday: wait"


def test_an_open_turn_may_wait_for_the_results_of_the_clients_own_tools() -> None:
    asked = Msg("Friday", [*reply("ask 1").blocks, *call("c1").blocks], "assistant")
    assert sent(asked, result("c1"), turns__resumable=True)[0] == "assistant Friday: <opaque> | call c1"
    assert sent(asked, result("c1"))[0] == "assistant Friday: call c1"
    assert (
        sent(asked, result("c1"), says("Bob", "Go on."), turns__resumable=True)[0] == "assistant Friday: call c1"
    )


@pytest.mark.parametrize("viewer", [None, "Friday", "Bob"])
def test_what_answers_a_native_turn_is_native_too_and_changes_nothing_before(viewer: str | None) -> None:
    form: dict[str, Any] = {
        "wire": "echo",
        "opaque.pair_key": pair,
        "turns.resumable": True,
        "history": MultiAgentHistory(viewer=viewer, other_agents_tools="native"),
    }
    asked = Msg("Friday", [*reply("ask 1").blocks, *call("c1").blocks], "assistant")
    msgs = [says("Bob", "Hi."), asked, result("c1")]
    first = said(lower(msgs, **form))
    later = said(lower([*msgs, reply("answer 1", "done"), says("Bob", "Thanks."), reply("again")], **form))
    assert later[: len(first)] == first
    assert later[len(first)] == "assistant Friday: <opaque> | done"


def test_the_parts_of_another_wire_are_nobodys_half() -> None:
    assert sent(reply("ask 1", "done", wire="other")) == ["assistant Friday: done"]
    assert len(sent(reply("ask 1", "done"), opaque__pair_key=None)[0].split("|")) == 2
