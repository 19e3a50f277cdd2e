"""Tests of the rules for turns: filler turns and merged turns, each with its exact ledger."""

from __future__ import annotations

from typing import Any, Final

from agentkit import Msg, OpaqueBlock, TextBlock
from agentkit.legalize.alternating_turns import BEGIN_TURN, CONTINUE_TURN, RESULT_TURN
from tests.cases import each_case
from tests.conftest import call, ledger_lines, lower, result, text_msg, turn_lines
from tests.legalize.test_opaque_pairs import pair

SYSTEM: Final = text_msg("system", "Be brief.", "system")
BOB: Final = text_msg("Bob", "hi")
EVE: Final = text_msg("Eve", "ho")
FRIDAY: Final = text_msg("Friday", "yes?", "assistant")
CLOCK: Final = text_msg("clock", "noon", "system")
BLANK: Final = text_msg("Al", " ")
ASK: Final = Msg("Friday", [TextBlock("wait"), OpaqueBlock("echo", {"ask": 1})], "assistant")
REFUSED: Final = Msg("Friday", [*ASK.blocks, OpaqueBlock("echo", {"answer": 1})], "assistant")
SERVER_TOOLS: Final[dict[str, Any]] = {"wire": "echo", "opaque__pair_key": pair}

BEGIN: Final = f"user user: {BEGIN_TURN}"
CONTINUE: Final = f"user user: {CONTINUE_TURN}"
RESULT: Final = f"assistant assistant: {RESULT_TURN}"
PROMPT: Final = "system system: Be brief."
CALL: Final = "assistant Friday: call c"
FOUND: Final = "system system: result c=found"

AFTER_PROMPT: Final = "no turn to send, but the API requires one, so a user turn was added"
AT_START: Final = "the API requires a user turn at the start, so one was added"
AT_END: Final = "user turn added at the end, because the API refuses the request without this turn"
BETWEEN: Final = "the API requires an assistant turn between a tool result and a user turn"

FILLERS: Final[list[tuple[str, list[Msg], dict[str, Any], list[str], list[str]]]] = [
    ("a system prompt alone", [SYSTEM], {"first_user": True, "last_user": True, "resumable": True}, [PROMPT], []),
    ("… for a target that needs a user", [SYSTEM], {"needs_user": True}, [PROMPT, BEGIN], [AFTER_PROMPT]),
    ("no content at all", [BLANK], {}, [BEGIN], [AFTER_PROMPT]),
    (
        "a first turn of the assistant before one of a user",
        [FRIDAY, BOB],
        {"first_user": True},
        [BEGIN, "assistant Friday: yes?", "user Bob: hi"],
        [AT_START],
    ),
    ("no turn of a user", [FRIDAY], {"needs_user": True}, ["assistant Friday: yes?", CONTINUE], [AT_END]),
    (
        "… because results are none",
        [call("c"), result("c")],
        {"needs_user": True},
        [CALL, FOUND, CONTINUE],
        [AT_END],
    ),
    (
        "a last turn of results",
        [BOB, call("c"), result("c")],
        {"last_user": True, "needs_user": True},
        ["user Bob: hi", CALL, FOUND],
        [],
    ),
    (
        "an unfinished reply that the target continues",
        [BOB, ASK],
        {"last_user": True, "resumable": True},
        ["user Bob: hi", "assistant Friday: wait | <opaque>"],
        [],
    ),
    (
        "an unfinished reply without a user",
        [ASK],
        {"needs_user": True, "resumable": True},
        ["assistant Friday: wait | <opaque>", CONTINUE],
        [AT_END],
    ),
    (
        "a reply that the target cannot continue",
        [BOB, REFUSED],
        {"last_user": True},
        ["user Bob: hi", "assistant Friday: wait | <opaque>", CONTINUE],
        [AT_END],
    ),
]


@each_case(("msgs", "rules", "lines", "reasons"), {row[0]: row[1:] for row in FILLERS})
def test_turns_are_added_only_where_the_target_requires_them(
    msgs: list[Msg], rules: dict[str, Any], lines: list[str], reasons: list[str]
) -> None:
    changes = {f"turns__{name}": value for name, value in rules.items()}
    plan = lower(msgs, on_loss="drop", opaque__places=_refuse_answers, **SERVER_TOOLS, **changes)
    assert turn_lines(plan) == lines
    assert [added.reason for added in plan.ledger.syntheses if added.name == "filler turn"] == reasons


def _refuse_answers(data: Any) -> frozenset[str]:
    return frozenset() if "answer" in data else frozenset({"assistant"})


def test_an_assistant_turn_is_added_between_a_result_and_a_user_turn() -> None:
    msgs = [
        BOB,
        call("c"),
        result("c"),
        BOB,
        FRIDAY,
        call("c"),
        result("c"),
        FRIDAY,
        BOB,
        call("c"),
        result("c"),
        EVE,
    ]
    plan = lower(msgs, turns__alternate=True)
    assert turn_lines(plan) == [
        "user Bob: hi",
        CALL,
        FOUND,
        RESULT,
        "user Bob: hi",
        "assistant Friday: yes? | call c",
        FOUND,
        "assistant Friday: yes?",
        "user Bob: hi",
        CALL,
        FOUND,
        RESULT,
        "user Eve: ho",
    ]
    assert [added.reason for added in plan.ledger.syntheses] == [BETWEEN, BETWEEN]
    assert turn_lines(lower([BOB, call("c"), result("c")], turns__alternate=True)) == ["user Bob: hi", CALL, FOUND]


def test_an_added_turn_has_its_own_origin() -> None:
    plan = lower([text_msg("Fri day", "yes?", "assistant"), text_msg("B ob", "hi")], turns__first_user=True)
    assert [line.rpartition("_")[0] for line in ledger_lines(plan)] == [
        "0.0 carried: speaker name sent as 'Fri_day",
        "1.0 carried: speaker name sent as 'B_ob",
    ]


MERGED: Final[list[tuple[str, list[Msg], dict[str, Any], list[str]]]] = [
    (
        "only turns of one role",
        [BOB, FRIDAY, FRIDAY, BOB, EVE],
        {},
        ["user Bob: hi", "assistant Friday: yes? | yes?", "user Bob: hi | ho"],
    ),
    (
        "… although an earlier stage changed the turns",
        [SYSTEM, FRIDAY, BOB, EVE],
        {"turns.system_role": False},
        ["user user: Be brief.", "assistant Friday: yes?", "user Bob: hi | ho"],
    ),
    (
        "no system messages",
        [BOB, CLOCK, CLOCK, BOB, EVE],
        {},
        ["user Bob: hi", "system clock: noon", "system clock: noon", "user Bob: hi | ho"],
    ),
    (
        "… even at the start",
        [BLANK, CLOCK, BOB, EVE],
        {},
        ["system clock: noon", "user Bob: hi | ho"],
    ),
    (
        "no results if each needs a message",
        [call("a", "b"), result("a"), result("b"), BOB, EVE],
        {},
        [
            "assistant Friday: call a | call b",
            "system system: result a=found",
            "system system: result b=found",
            "user Bob: hi | ho",
        ],
    ),
    (
        "results and the turn after them if they share a message",
        [call("a", "b"), result("a"), result("b"), BOB],
        {"tools.results": "together"},
        ["assistant Friday: call a | call b", "user system: result a=found | result b=found | hi"],
    ),
]


@each_case(("msgs", "changes", "lines"), {row[0]: row[1:] for row in MERGED})
def test_consecutive_turns_of_one_role_are_merged(
    msgs: list[Msg], changes: dict[str, Any], lines: list[str]
) -> None:
    options: dict[str, Any] = {"turns.merge": True, **changes}
    assert turn_lines(lower(msgs, **options)) == lines


def test_the_ledger_notes_each_merged_turn_except_the_first() -> None:
    changed = Msg("Bob", (TextBlock(" "), TextBlock("hm")), "user")
    for first, second in ((BOB, changed), (changed, BOB)):
        plan = lower([first, second, first, second], turns__merge=True)
        entries = [line for line in ledger_lines(plan) if "white space" not in line]
        assert [line.split(" ", 1)[1].partition(";")[0] for line in entries] == [
            "carried: sent unchanged" if not index else "merged: merged into the previous turn of the same role"
            for index in range(4)
        ]
