"""Tests of system messages for APIs that restrict them."""

from __future__ import annotations

from typing import Final

from agentkit import Msg, TextBlock
from tests.conftest import call, get_turns, ledger_lines, legalize, lower, result, text_msg, turn_lines

SYSTEM: Final = text_msg("Guide", "Be brief.", "system")
BOB: Final = text_msg("Bob", "hi")
FRIDAY: Final = text_msg("Friday", "yes?", "assistant")
CLOCK: Final = text_msg("clock", "noon", "system")
SAME: Final = "carried: sent unchanged"
MOVED: Final = "moved: moved into the first user turn, because the API has no system role"


def test_a_single_system_message_is_unchanged() -> None:
    assert get_turns(lower([SYSTEM, BOB], turns__one_system=True))[0]["content"] == "Be brief."


def test_the_system_prompt_begins_the_first_user_turn() -> None:
    blocks = Msg("Guide", [TextBlock("Be kind."), TextBlock("Be fair.")], "system")
    plan = lower([SYSTEM, blocks, BOB, FRIDAY, BOB], turns__system_role=False)
    assert turn_lines(plan) == [
        "user user: Be brief. | Be kind. | Be fair. | hi",
        "assistant Friday: yes?",
        "user Bob: hi",
    ]
    assert ledger_lines(plan) == [
        f"0.0 {MOVED}",
        f"1.0 {MOVED}",
        f"1.1 {MOVED}",
        f"2.0 {SAME}",
        f"3.0 {SAME}",
        f"4.0 {SAME}",
    ]


def test_the_system_prompt_joins_the_first_turn_if_the_last_turn_is_a_result() -> None:
    plan = lower([SYSTEM, BOB, call("c"), result("c")], turns__system_role=False)
    assert turn_lines(plan)[0] == "user user: Be brief. | hi"
    assert len(turn_lines(plan)) == 3


def test_the_system_prompt_is_a_turn_before_a_turn_of_the_assistant() -> None:
    calls = Msg("Bob", call("c").blocks, "user")
    for msgs, lines in (
        ([], []),
        ([FRIDAY, BOB], ["assistant Friday: yes?", "user Bob: hi"]),
        ([calls, result("c")], ["user Bob: call c", "system system: result c=found"]),
    ):
        plan = lower([SYSTEM, *msgs], turns__system_role=False)
        assert turn_lines(plan) == ["user user: Be brief.", *lines]


def test_a_conversation_without_system_prompt_is_unchanged() -> None:
    plan = lower([FRIDAY, BOB], turns__system_role=False)
    assert turn_lines(plan) == ["assistant Friday: yes?", "user Bob: hi"]


def test_a_later_system_message_is_a_user_message_with_the_speaker_name() -> None:
    late = [CLOCK, Msg("", [TextBlock("one"), TextBlock("two")], "system")]
    plan = lower([SYSTEM, BOB, *late, FRIDAY], turns__late_system="line")
    assert turn_lines(plan) == [
        "system Guide: Be brief.",
        "user Bob: hi",
        "user clock: clock: noon",
        "user : system: one | system: two",
        "assistant Friday: yes?",
    ]
    line = (
        "carried: system message after the start of the conversation, sent as user text that begins with the "
        "speaker name"
    )
    assert ledger_lines(plan) == [
        f"0.0 {SAME}",
        f"1.0 {SAME}",
        f"2.0 {line}",
        f"3.0 {line}",
        f"3.1 {line}",
        f"4.0 {SAME}",
    ]
    assert [(added.name, added.reason) for added in plan.ledger.syntheses] == [
        ("system line", "speaker name added to a system message that is sent as user text")
    ] * 2


def test_a_later_system_message_is_merged_with_the_turns_around_it() -> None:
    plan = lower([BOB, CLOCK, FRIDAY], turns__late_system="line", turns__merge=True)
    assert turn_lines(plan) == ["user Bob: hi | clock: noon", "assistant Friday: yes?"]
    assert turn_lines(lower([BOB, CLOCK], turns__late_system="line", turns__merge=True)) == [
        "user Bob: hi | clock: noon"
    ]


def test_new_call_ids_change_no_conversation_without_later_system_messages() -> None:
    msgs = [SYSTEM, call("d", "d"), result("d"), result("d"), BOB]
    assert turn_lines(lower(msgs, turns__late_system="line")) == turn_lines(lower(msgs))


def test_a_turn_with_the_system_prompt_has_the_origin_of_each_block() -> None:
    conversation = legalize([SYSTEM, BOB, FRIDAY], turns__system_role=False)
    assert conversation.turns.origins == [((0, 0), (1, 0)), 2]
