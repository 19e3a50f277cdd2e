"""Tests of speaker names for APIs without a name field: several names on one role are a loss."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from typing import Any

import pytest

from agentkit import (
    Budget,
    CharacterTokenCounter,
    ChatHistory,
    HistoryPolicy,
    LossError,
    ModelRules,
    Msg,
    MultiAgentHistory,
    OldestFirst,
    OpaqueState,
    Plan,
    TextBlock,
    ThinkingBlock,
    load_provider,
)
from tests.cases import each_case
from tests.conftest import call, lower, result, target, text_msg, texts_msg
from tests.providers import MESSAGE_PROVIDERS

BOB, ALICE = text_msg("Bob", "hi"), text_msg("Alice", "hello")
FRIDAY, JARVIS = text_msg("Friday", "yes?", "assistant"), text_msg("Jarvis", "no", "assistant")
SYSTEM = Msg("system", "Be brief.", "system")
GUIDE, JUDGE = Msg("Guide", "Be kind.", "system"), Msg("Judge", "Be fair.", "system")


def omission_reason(name: str) -> str:
    return f"speaker name '{name}' omitted: the API has no field for it"


def plan_without_names(msgs: Sequence[Msg], history: HistoryPolicy | None = None, **changes: Any) -> Plan:
    """Returns the plan for an API without a name field."""
    return lower(msgs, history, turns__speaker_names=False, **changes)


LOSSES: list[tuple[str, Sequence[Msg], HistoryPolicy, list[int]]] = [
    ("two users", [BOB, FRIDAY, ALICE], ChatHistory(), [0, 2]),
    ("three users", [BOB, ALICE, text_msg("Eve", "hm")], ChatHistory(), [0, 1, 2]),
    ("a named user and one without a name", [BOB, text_msg("", "hm"), FRIDAY], ChatHistory(), [0]),
    ("a named user and one named like the role", [BOB, text_msg("user", "hm"), FRIDAY], ChatHistory(), [0]),
    ("two names that differ in one space", [BOB, text_msg("Bob ", "hm")], ChatHistory(), [0, 1]),
    ("two assistants", [BOB, FRIDAY, JARVIS], ChatHistory(), [1, 2]),
    ("a caller and another assistant", [BOB, call("c1"), result("c1"), JARVIS], ChatHistory(), [1, 3]),
    ("two late system messages", [BOB, GUIDE, FRIDAY, JUDGE], ChatHistory(), [1, 3]),
    ("the exchanges of two agents", [call("a"), result("a"), call("b", name="Ann"), result("b")],
     MultiAgentHistory(), [0, 2]),
    ("another agent's native exchange", [call("a"), result("a"), call("b", name="Ann"), result("b")],
     MultiAgentHistory(viewer="Friday", other_agents_tools="native"), [2]),
    ("only the exchange of another agent", [BOB, call("b", name="Ann"), result("b")],
     MultiAgentHistory(viewer="Friday", other_agents_tools="native"), [1]),
    ("two users with a custom policy", [BOB, ALICE], HistoryPolicy(), [0, 1]),
]  # fmt: skip

NO_LOSSES: list[tuple[str, Sequence[Msg], HistoryPolicy]] = [
    ("one user and one assistant", [SYSTEM, BOB, FRIDAY, BOB], ChatHistory()),
    ("one user with two messages", [BOB, BOB], ChatHistory()),
    ("users without names", [text_msg("user", "hi"), text_msg("", "hm")], ChatHistory()),
    ("the names of results", [BOB, call("c1"), result("c1"), BOB, call("c2"),
     Msg("tool", result("c2").content, "user")], ChatHistory()),
    ("the name of a result without a call", [BOB, Msg("tool", result("c9").content, "user")], ChatHistory()),
    ("another user without content", [BOB, text_msg("Alice", " \n"), Msg("Eve", [], "user")], ChatHistory()),
    ("an agent with only thinking", [FRIDAY, Msg("Jarvis", [ThinkingBlock("hm")], "assistant")], ChatHistory()),
    ("names in the system prompt", [SYSTEM, GUIDE, BOB], ChatHistory()),
    ("a system prompt and one late message", [SYSTEM, BOB, GUIDE], ChatHistory()),
    ("frames", [BOB, ALICE, FRIDAY, call("c1"), result("c1"), text_msg("Jarvis", "no")], MultiAgentHistory()),
    ("a viewer", [BOB, ALICE, JARVIS, FRIDAY, call("b", name="Ann"), result("b"), call("a"), result("a")],
     MultiAgentHistory(viewer="Friday")),
    ("a message that the viewer does not see", [call("b", name="Ann"), result("b"), call("a"), result("a")],
     MultiAgentHistory(visible=lambda msg: msg.name != "Ann")),
]  # fmt: skip


@each_case(("msgs", "history", "places"), {row[0]: row[1:] for row in LOSSES})
def test_several_names_of_one_role_are_a_loss(
    msgs: Sequence[Msg], history: HistoryPolicy, places: list[int]
) -> None:
    losses = [(f"msgs[{index}].content[0]", omission_reason(msgs[index].name)) for index in places]
    for on_loss in ("describe", "drop"):
        plan = lower(msgs, history, on_loss, turns__speaker_names=False)
        assert plan.ledger.losses == losses
        assert [entry.place for entry in plan.ledger.entries if entry.lost] == [place for place, _ in losses]
        assert plan.request == lower(msgs, history).request
    with pytest.raises(LossError) as caught:
        lower(msgs, history, "raise", turns__speaker_names=False)
    assert caught.value.losses == tuple(losses)
    assert losses[0][0] in str(caught.value)
    assert lower(msgs, history, "raise").ledger.losses == []  # the API has a name field


@each_case(("msgs", "history"), {row[0]: row[1:] for row in NO_LOSSES})
def test_one_name_of_a_role_and_names_in_a_text_are_not_a_loss(
    msgs: Sequence[Msg], history: HistoryPolicy
) -> None:
    lost = [reason for _, reason in plan_without_names(msgs, history).ledger.losses if "speaker" in reason]
    assert lost == []


def test_the_text_of_a_late_system_message_states_the_speaker() -> None:
    msgs = [BOB, GUIDE, FRIDAY, JUDGE]
    assert plan_without_names(msgs, turns__late_system="line").ledger.losses == []
    assert len(plan_without_names(msgs, turns__late_system="native").ledger.losses) == 2


def test_every_block_of_a_message_loses_its_speaker() -> None:
    plan = plan_without_names([BOB, texts_msg("Alice", "one", "two")])
    assert [entry.reason for entry in plan.ledger.entries if entry.lost] == [
        omission_reason("Bob"), omission_reason("Alice"), omission_reason("Alice"),
    ]  # fmt: skip


def test_a_split_message_loses_its_speaker_too() -> None:
    talk = Msg("Eve", [*result("c1").blocks, TextBlock("so")], "user")
    plan = plan_without_names([BOB, call("c1"), talk])
    assert [place for place, _ in plan.ledger.losses] == ["msgs[0].content[0]", "msgs[2].content[1]"]


def test_the_only_name_of_a_role_is_a_detail_in_the_ledger() -> None:
    plan = plan_without_names([SYSTEM, BOB, FRIDAY])
    assert [entry.details for entry in plan.ledger.entries] == [
        (),
        (omission_reason("Bob"),),
        (omission_reason("Friday"),),
    ]
    assert not any(entry.lost for entry in plan.ledger.entries)


def test_a_name_field_names_no_other_speaker_of_a_joined_turn() -> None:
    rules = ModelRules(alternating_turns=True)
    formatter = load_provider("openai").chat_formatter(model_rules=rules)
    plan = formatter.lower([BOB, ALICE])
    assert all("name" not in turn for turn in plan.request["messages"])
    assert plan.ledger.losses == [
        ("msgs[0].content[0]", omission_reason("Bob")),
        ("msgs[1].content[0]", omission_reason("Alice")),
    ]
    assert formatter.lower([BOB, BOB]).ledger.losses == []
    assert not target(turns__merge=True).base.turns.speaker_names
    with pytest.raises(LossError):
        load_provider("openai").chat_formatter(on_loss="raise", model_rules=rules).lower([BOB, ALICE])


def _add_remark(text: str, role: str) -> tuple[str, ...]:
    return ("another remark",)


def test_the_ledger_has_a_lost_name_once_and_keeps_other_notes() -> None:
    plan = plan_without_names([BOB, ALICE], turns__text_notes=_add_remark)
    (bob, alice) = plan.ledger.entries
    assert (bob.reason, bob.details, bob.lost) == (omission_reason("Bob"), ("another remark",), True)
    assert alice.lost
    merged = plan_without_names([BOB, ALICE], turns__merge=True).ledger.entries[1]
    assert (merged.disposition.word, merged.details, merged.lost) == ("merged", (omission_reason("Alice"),), True)


def test_lost_names_are_part_of_a_pickled_ledger() -> None:
    ledger = plan_without_names([BOB, ALICE]).ledger
    stored = pickle.loads(pickle.dumps(ledger))
    assert stored.losses == ledger.losses != []
    assert stored.to_dict() == ledger.to_dict()
    assert ledger.copy().losses == ledger.losses


async def test_names_of_messages_that_a_budget_drops_are_not_a_loss(anyio_backend: str) -> None:
    msgs = [text_msg("Alice", "word " * 300), *(text_msg("Bob", f"line {index}") for index in range(3))]
    budget = Budget(120, CharacterTokenCounter(), strategy=OldestFirst())
    plan = await target(turns__speaker_names=False)(on_loss="raise", budget=budget).plan(msgs)
    assert plan.cut
    assert plan.ledger.losses == []
    with pytest.raises(LossError):
        await target(turns__speaker_names=False)(on_loss="raise", budget=Budget(100_000)).plan(msgs)


@each_case("provider", MESSAGE_PROVIDERS)
async def test_a_chat_of_two_users_raises_where_no_field_has_their_names(
    provider: str, anyio_backend: str
) -> None:
    msgs = [BOB, ALICE]
    chat = load_provider(provider).chat_formatter
    if chat().capabilities().turns.speaker_names:
        assert "Alice" in str((await chat(on_loss="raise").plan(msgs)).request)
    else:
        with pytest.raises(LossError, match=r"msgs\[0\]\.content\[0\]: .* speaker name 'Bob' omitted"):
            await chat(on_loss="raise").format(msgs)
        assert [entry.lost for entry in chat().lower(msgs).ledger.entries] == [True, True]
    assert (await load_provider(provider).multi_agent_formatter(on_loss="raise").plan(msgs)).ledger.losses == []


def test_a_message_with_results_has_no_note_about_its_speaker_name() -> None:
    msgs = [
        Msg("B ob", "Hi.", "user"),
        call("c"),
        Msg("B ob", result("c").blocks, "user"),
        Msg("B ob", "So?", "user"),
    ]
    reasons = [entry.reason for entry in lower(msgs).ledger.entries]
    assert [reason.startswith("speaker name sent as") for reason in reasons] == [True, False, False, True]


@pytest.mark.parametrize(("issuer", "is_omitted"), [("anthropic", False), ("openai", True), (None, True)])
def test_citations_are_omitted_unless_the_state_of_their_block_has_them(
    issuer: str | None, *, is_omitted: bool
) -> None:
    state = OpaqueState(issuer, fields={"citations": [{"type": "x"}]}) if issuer else None
    cited = TextBlock("Cats.", state=state, metadata={"citations": [{"type": "x"}]})
    msgs = [BOB, Msg("Friday", [cited], "assistant"), BOB]
    entry = load_provider("anthropic").chat_formatter().lower(msgs).ledger.entries[1]
    assert any(detail.startswith("citations omitted") for detail in entry.details) == is_omitted
