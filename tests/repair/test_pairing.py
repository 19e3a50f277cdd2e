"""Tests of the repair: tool calls and results are paired and never separated."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations
from typing import Any

import pytest

from agentkit import (
    Budget,
    CharacterTokenCounter,
    ImageBlock,
    Ledger,
    LossError,
    Msg,
    MultiAgentHistory,
    OldestFirst,
    OldestFirstInSteps,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
    URLSource,
    load_provider,
)
from agentkit.ledger.provenance import TracedConversation
from agentkit.legalize.thinking_pairs import without_blocks
from agentkit.repair.normal_form import find_normal_form
from agentkit.repair.pairing import INTERRUPTED_RESULT, repair_pairing
from tests.cases import each_case
from tests.conftest import (
    AnyMsg,
    EchoFormatter,
    call,
    dispositions,
    ledger_lines,
    msg_lines,
    result,
    text_msg,
    texts_msg,
    turn_lines,
)
from tests.providers import MESSAGE_PROVIDERS

BOB = text_msg("Bob", "hi")
EVE = text_msg("Eve", "wait")
ADDED_RESULT = f"system system: result c1={INTERRUPTED_RESULT}"


def repair_lines(*msgs: Msg) -> list[str]:
    """Returns each message of the repaired conversation as one line."""
    return msg_lines(repair_pairing(TracedConversation.of(msgs), Ledger(msgs)).msgs)


def assistant_message(
    *blocks: ToolUseBlock | ToolResultBlock | TextBlock | ThinkingBlock, name: str = "Friday"
) -> Msg:
    return Msg(name, blocks, "assistant")


def call_block(id: str) -> ToolUseBlock:
    return ToolUseBlock(id, "search", {})


def result_block(id: str, output: str = "found") -> ToolResultBlock:
    return ToolResultBlock(id, "search", output)


NORMAL: list[Sequence[Msg]] = [
    [BOB],
    [BOB, EVE, text_msg("Friday", "yes", "assistant")],
    [BOB, call("c1"), result("c1"), BOB],
    [call("c1", "c2"), result("c1", "c2")],
    [call("c1", "c2"), result("c1"), result("c2")],
    [call("c1", "c2"), result("c2"), result("c1")],
    [call("c1"), result("c1"), call("c1"), result("c1")],
    [assistant_message(ThinkingBlock("hm"), TextBlock("I look."), call_block("c1")), result("c1")],
    [call("c1", "c1"), result("c1", "c1")],
]


@each_case("msgs", NORMAL)
def test_a_valid_conversation_is_unchanged(msgs: Sequence[Msg]) -> None:
    ledger = Ledger(msgs)
    conversation = TracedConversation.of(msgs)
    assert repair_pairing(conversation, ledger) is conversation
    assert {entry.disposition.word for entry in ledger.entries} == {"carried"}
    assert ledger.syntheses == []


REPAIRED: list[tuple[str, Sequence[Msg], list[str]]] = [
    (
        "a call and its result in one message are separated",
        [assistant_message(call_block("c1"), result_block("c1"))],
        ["assistant Friday: call c1", "assistant Friday: result c1=found"],
    ),
    (
        "a result before its call in one message is moved after the call",
        [assistant_message(result_block("c1"), call_block("c1"))],
        ["assistant Friday: call c1", "assistant Friday: result c1=found"],
    ),
    (
        "a text between a call and its result is moved after the exchange",
        [assistant_message(call_block("c1"), TextBlock("so"), result_block("c1"), TextBlock("done"))],
        ["assistant Friday: call c1 | so", "assistant Friday: result c1=found", "assistant Friday: done"],
    ),
    (
        "a message within an exchange is moved after the exchange",
        [call("c1"), EVE, result("c1")],
        ["assistant Friday: call c1", "system system: result c1=found", "user Eve: wait"],
    ),
    (
        "a message between parallel results is moved after the results",
        [call("c1", "c2"), result("c1"), EVE, result("c2")],
        [
            "assistant Friday: call c1 | call c2",
            "system system: result c1=found",
            "system system: result c2=found",
            "user Eve: wait",
        ],
    ),
    (
        "several messages within an exchange keep their order",
        [call("c1"), EVE, BOB, result("c1"), EVE],
        [
            "assistant Friday: call c1",
            "system system: result c1=found",
            "user Eve: wait",
            "user Bob: hi",
            "user Eve: wait",
        ],
    ),
    (
        "an empty message within an exchange is moved after the exchange",
        [call("c1"), Msg("Bob", [], "user"), result("c1"), EVE],
        ["assistant Friday: call c1", "system system: result c1=found", "user Bob: ", "user Eve: wait"],
    ),
    (
        "an empty message outside of exchanges is unchanged",
        [Msg("Bob", [], "user"), call("c1"), Msg("Eve", [], "system")],
        ["user Bob: ", "assistant Friday: call c1", ADDED_RESULT, "system Eve: "],
    ),
    (
        "a result without a call becomes a user text",
        [BOB, result("c1"), EVE],
        ["user Bob: hi", "user system: (result of search) found", "user Eve: wait"],
    ),
    (
        "a result before its call becomes a user text and the call gets an added result",
        [result("c1"), call("c1")],
        ["user system: (result of search) found", "assistant Friday: call c1", ADDED_RESULT],
    ),
    (
        "a different second result of a call becomes a user text",
        [call("c1"), result("c1", output="first"), result("c1", output="second")],
        [
            "assistant Friday: call c1",
            "system system: result c1=first",
            "user system: (result of search) second",
        ],
    ),
    (
        "an equal second result of a call is dropped",
        [call("c1"), result("c1"), result("c1"), EVE],
        ["assistant Friday: call c1", "system system: result c1=found", "user Eve: wait"],
    ),
    (
        "a later second result of a call becomes a user text",
        [call("c1"), result("c1"), EVE, result("c1")],
        [
            "assistant Friday: call c1",
            "system system: result c1=found",
            "user Eve: wait",
            "user system: (result of search) found",
        ],
    ),
    (
        "a result without a call in an open exchange follows the exchange",
        [call("c1"), result("c9"), result("c1")],
        [
            "assistant Friday: call c1",
            "system system: result c1=found",
            "user system: (result of search) found",
        ],
    ),
    (
        "consecutive results without calls become one message",
        [result("c8", "c9")],
        ["user system: (result of search) found | (result of search) found"],
    ),
    (
        "a result without a call splits its message",
        [assistant_message(TextBlock("one"), result_block("c9"), TextBlock("two"))],
        ["assistant Friday: one", "user Friday: (result of search) found", "assistant Friday: two"],
    ),
    (
        "a failed result without a name gets the name of its call",
        [call("c1"), result("c1"), Msg("tool", [ToolResultBlock("c1", "", "boom", True)], "user")],
        [
            "assistant Friday: call c1",
            "system system: result c1=found",
            "user tool: (result of search, an error) boom",
        ],
    ),
    (
        "a result without a name and a call names no tool",
        [Msg("tool", [ToolResultBlock("c1", "", "boom")], "user")],
        ["user tool: (result of a tool) boom"],
    ),
    (
        "a call without a result gets an added result",
        [call("c1"), EVE],
        ["assistant Friday: call c1", ADDED_RESULT, "user Eve: wait"],
    ),
    (
        "a last call without a result gets an added result",
        [BOB, call("c1")],
        ["user Bob: hi", "assistant Friday: call c1", ADDED_RESULT],
    ),
    (
        "only the parallel call without a result gets an added result",
        [call("c1", "c2"), result("c2"), EVE],
        ["assistant Friday: call c1 | call c2", "system system: result c2=found", ADDED_RESULT, "user Eve: wait"],
    ),
    (
        "equal ids in one turn are paired in their order",
        [call("d", "d"), result("d", output="one"), EVE, result("d", output="two")],
        [
            "assistant Friday: call d | call d",
            "system system: result d=one",
            "system system: result d=two",
            "user Eve: wait",
        ],
    ),
    (
        "a repeated id after other messages is a new call",
        [call("c1"), EVE, call("c1"), result("c1")],
        [
            "assistant Friday: call c1",
            ADDED_RESULT,
            "user Eve: wait",
            "assistant Friday: call c1",
            "system system: result c1=found",
        ],
    ),
    (
        "repeated ids are paired within their turn",
        [call("x"), result("x", output="1"), EVE, call("x"), BOB, result("x", output="2")],
        [
            "assistant Friday: call x",
            "system system: result x=1",
            "user Eve: wait",
            "assistant Friday: call x",
            "system system: result x=2",
            "user Bob: hi",
        ],
    ),
    (
        "concurrent calls of two agents keep their results",
        [call("a", name="Ann"), call("b", name="Ben"), result("b"), result("a")],
        [
            "assistant Ann: call a",
            "system system: result a=found",
            "assistant Ben: call b",
            "system system: result b=found",
        ],
    ),
    (
        "a text in a message of results is moved after the exchange",
        [call("c1"), assistant_message(result_block("c1"), TextBlock("so"), name="tool"), EVE],
        ["assistant Friday: call c1", "assistant tool: result c1=found", "assistant tool: so", "user Eve: wait"],
    ),
]


@each_case(("msgs", "expected"), {row[0]: row[1:] for row in REPAIRED})
def test_the_repaired_conversation_has_exactly_these_messages(msgs: Sequence[Msg], expected: list[str]) -> None:
    assert repair_lines(*msgs) == expected


@each_case("msgs", {row[0]: row[1] for row in REPAIRED})
def test_a_second_repair_changes_nothing(msgs: Sequence[Msg]) -> None:
    once = repair_pairing(TracedConversation.of(msgs), Ledger(msgs))
    ledger = Ledger(once.msgs)
    again = TracedConversation.of(once.msgs)
    assert repair_pairing(again, ledger) is again
    assert ledger.syntheses == []


@each_case("msgs", {row[0]: row[1] for row in REPAIRED})
def test_repair_does_not_change_the_input(msgs: Sequence[Msg]) -> None:
    before = [msg.to_dict() for msg in msgs]
    EchoFormatter().lower(msgs)
    assert [msg.to_dict() for msg in msgs] == before


def test_parallel_results_in_any_order_pair_with_their_calls() -> None:
    for order in permutations("abc"):
        msgs = [call("a", "b", "c"), *(result(id, output=id) for id in order)]
        plan = EchoFormatter().lower(msgs)
        assert set(turn_lines(plan)[1:]) == {f"system system: result {id}={id}" for id in "abc"}


def test_an_added_result_states_that_the_call_has_no_result() -> None:
    plan = EchoFormatter().lower([call("c1")])
    (block,) = plan.request["messages"][1]["content"]
    assert block["output"] == INTERRUPTED_RESULT
    assert block["is_error"] is True
    assert block["name"] == "search"
    assert [synthesis.name for synthesis in plan.ledger.syntheses] == ["interrupted"]
    assert "call 'c1' of tool 'search'" in plan.ledger.syntheses[0].reason


def test_the_ledger_lists_each_change_of_repair() -> None:
    plan = EchoFormatter().lower([call("c1"), EVE, result("c1"), result("c9")])
    assert dispositions(plan) == {
        "msgs[0].content[0]": "carried",
        "msgs[1].content[0]": "moved",
        "msgs[2].content[0]": "carried",
        "msgs[3].content[0]": "described",
    }
    assert plan.ledger.losses == [("msgs[3].content[0]", "no earlier tool call with id 'c9' needs a result")]


def test_the_ledger_notes_only_messages_that_moved() -> None:
    mixed = assistant_message(result_block("b"), TextBlock("done"))
    msgs = [BOB, call("a", "b"), EVE, result("a"), BOB, mixed, call("c1"), EVE]
    moved = "moved: was between tool calls and their results; moved after the results"
    plan = EchoFormatter().lower(msgs)
    assert ledger_lines(plan) == [
        "0.0 carried: sent unchanged",
        "1.0 carried: sent unchanged",
        "1.1 carried: sent unchanged",
        f"2.0 {moved}",
        "3.0 carried: sent unchanged",
        f"4.0 {moved}",
        "5.0 carried: sent unchanged",
        "5.1 carried: sent unchanged",
        "6.0 carried: sent unchanged",
        "7.0 carried: sent unchanged",
    ]
    assert [(added.name, added.reason) for added in plan.ledger.syntheses] == [
        ("interrupted", "call 'c1' of tool 'search' has no result, so an error result was added")
    ]


def test_an_added_result_is_marked_and_is_pinned_with_its_call() -> None:
    for pinned in (True, False):
        msgs = [call("c1", pinned=pinned)]
        _, added = repair_pairing(TracedConversation.of(msgs), Ledger(msgs)).msgs
        assert added.pinned is pinned
        assert [block.metadata for block in added.blocks] == [{"agentkit": "interrupted"}]


def test_a_growing_conversation_is_checked_from_its_new_messages(monkeypatch: pytest.MonkeyPatch) -> None:
    from agentkit.repair import pairing

    starts: list[int | None] = []

    def find(conversation: TracedConversation, start: int | None = None, prefix: Any = None) -> Any:
        starts.append(start)
        return find_normal_form(conversation, start, prefix)

    monkeypatch.setattr(pairing, "find_normal_form", find)
    system, reply = text_msg("Guide", "Be brief.", "system"), text_msg("Friday", "yes", "assistant")
    msgs = [system, BOB, reply, BOB, call("c1"), EVE, reply]
    repair = pairing.IncrementalRepair()
    for count in range(1, len(msgs) + 1):
        conversation = TracedConversation.of(msgs[:count])
        repair.repair(conversation, Ledger(msgs[:count]))
        assert conversation.normal_form == find_normal_form(TracedConversation.of(msgs[:count]))
    assert starts == [None, None, 2, 3, 4, None, None]


def test_a_repair_is_no_loss() -> None:
    plan = EchoFormatter(on_loss="raise").lower([call("c1"), EVE, result("c1"), result("c1"), call("c2"), BOB])
    assert turn_lines(plan)[0] == "assistant Friday: call c1"
    assert dispositions(plan)["msgs[3].content[0]"] == "dropped"
    assert plan.ledger.entries[3].reason == "duplicate of the result of call 'c1'"


UNMATCHED = ToolResultBlock("c9", "camera", (TextBlock("here"), ImageBlock(URLSource("https://a/b.png"))))


def test_a_result_without_a_call_is_a_loss_together_with_its_media() -> None:
    msgs = [BOB, Msg("system", [UNMATCHED], "system")]
    plan = EchoFormatter().lower(msgs)
    assert turn_lines(plan) == ["user Bob: hi", "user system: (result of camera) here | <image>"]
    assert [entry.disposition.word for entry in plan.ledger.entries] == [
        "carried",
        "described",
        "described",
        "moved",
    ]
    assert [place for place, _ in plan.ledger.losses] == [
        "msgs[1].content[0]",
        "msgs[1].content[0].output[0]",
        "msgs[1].content[0].output[1]",
    ]


def test_a_result_without_a_call_is_dropped_or_raises() -> None:
    msgs = [BOB, Msg("system", [UNMATCHED], "system")]
    plan = EchoFormatter(on_loss="drop").lower(msgs)
    assert turn_lines(plan) == ["user Bob: hi"]
    assert [entry.disposition.word for entry in plan.ledger.entries[1:]] == ["dropped"] * 3
    assert len(plan.ledger.losses) == 3
    with pytest.raises(
        LossError, match=r"msgs\[1\].content\[0\]: .* no earlier tool call with id 'c9' needs a result"
    ):
        EchoFormatter(on_loss="raise").lower(msgs)


async def test_results_that_a_budget_cuts_or_a_viewer_does_not_see_are_not_losses(anyio_backend: str) -> None:
    msgs = [result("c9"), *(text_msg("Bob", f"{number} {'word ' * 50}") for number in range(9))]
    formatter = EchoFormatter(on_loss="raise", budget=Budget(200, CharacterTokenCounter()))
    plan = await formatter.plan(msgs)
    assert plan.ledger.entries[0].disposition.word == "dropped"
    assert plan.ledger.losses == []
    policy = MultiAgentHistory(visible=lambda msg: msg.name == "Bob")
    plan = EchoFormatter(history=policy, on_loss="raise").lower(msgs)
    assert plan.ledger.losses == []
    assert not plan.ledger.entries[0].lost


async def test_the_history_of_a_plan_has_the_text_of_a_result_without_a_call(anyio_backend: str) -> None:
    msgs = [text_msg("Bob", "word " * 300), result("c9"), EVE]
    formatter = EchoFormatter(budget=Budget(100, CharacterTokenCounter(), strategy=OldestFirst()))
    plan = await formatter.plan(msgs)
    assert msg_lines(plan.history) == ["user system: (result of search) found", "user Eve: wait"]
    again = await formatter.plan(plan.history)
    assert again.request == plan.request
    assert again.ledger.losses == []


@each_case("provider", MESSAGE_PROVIDERS)
@each_case("kind", ["chat_formatter", "multi_agent_formatter"])
def test_a_conversation_of_only_one_result_gives_a_request_with_a_turn(provider: str, kind: str) -> None:
    formatter = getattr(load_provider(provider), kind)()
    plan = formatter.lower([Msg("tool", [ToolResultBlock("c9", "look_up", "It is 12 degrees.")], "user")])
    assert "(result of look_up) It is 12 degrees." in str(plan.request)
    assert plan.ledger.losses


def test_a_split_message_keeps_its_speaker_time_id_and_metadata() -> None:
    msg = AnyMsg(
        "tool",
        [result_block("c1"), TextBlock("and by the way")],
        "user",
        id="m1",
        timestamp="12:00",
        metadata={"to": ["Ann"]},
    )
    out = repair_pairing(TracedConversation.of([call("c1"), msg]), Ledger([call("c1"), msg]))
    assert [(part.name, part.id, part.timestamp, part.metadata) for part in out.msgs[1:]] == [
        ("tool", "m1", "12:00", {"to": ["Ann"]}),
        ("tool", "m1", "12:00", {"to": ["Ann"]}),
    ]


def test_results_with_media_pair_with_their_calls() -> None:
    shot = ToolResultBlock("c1", "camera", (TextBlock("here"), ImageBlock(URLSource("https://a/b.png"))))
    msgs = [call("c1"), EVE, Msg("system", (shot,), "system")]
    assert repair_lines(*msgs)[1] == "system system: result c1=here | <image>"


def test_a_text_beside_a_result_in_a_system_message_becomes_a_user_message() -> None:
    msgs = [call("c1"), Msg("tool", [result_block("c1"), TextBlock("later")], "system")]
    assert repair_lines(*msgs)[1:] == ["system tool: result c1=found", "user tool: later"]
    msgs[1] = Msg("tool", [result_block("c1"), call_block("c2")], "system")
    assert repair_lines(*msgs)[2] == "system tool: call c2"


async def test_keep_task_does_not_keep_a_result_without_a_call(anyio_backend: str) -> None:
    msgs = [result("c9"), text_msg("Bob", "The task."), *(text_msg("Eve", "word " * 50) for _ in range(9))]
    plan = await EchoFormatter(budget=Budget(200, CharacterTokenCounter(), strategy=OldestFirstInSteps())).plan(
        msgs
    )
    assert msg_lines(plan.history)[0] == "user Bob: The task."


def test_stale_blocks_are_removed_from_messages_that_repair_changed() -> None:
    talk = Msg(
        "Ann", [result_block("c1"), TextBlock("one"), TextBlock("two"), TextBlock("three")], "user", id="m2"
    )
    msgs = [BOB, call("c1"), talk, texts_msg("Eve", "four", "five"), EVE]
    conversation = repair_pairing(TracedConversation.of(msgs), Ledger(msgs))
    assert without_blocks(conversation, frozenset()) is conversation
    remaining = without_blocks(conversation, {(2, 2), (3, 1)})
    assert msg_lines(remaining.msgs) == [
        "user Bob: hi",
        "assistant Friday: call c1",
        "user Ann: result c1=found",
        "user Ann: one | three",
        "user Eve: four",
        "user Eve: wait",
    ]
    assert remaining.origins == [0, 1, ((2, 0),), ((2, 1), (2, 3)), ((3, 0),), 4]
    assert [msg.id for msg in remaining.msgs] == [None, None, "m2", "m2", None, None]
    assert remaining.msgs[2] is conversation.msgs[2]
    empty = without_blocks(conversation, {(2, 0), (3, 0), (3, 1)})
    assert empty.origins == [0, 1, ((2, 1), (2, 2), (2, 3)), 4]
    assert empty.msgs[2] is conversation.msgs[3]
