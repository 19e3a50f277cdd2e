"""The ledger, with one primary disposition for every input block, and the plan."""

from __future__ import annotations

import json
import pickle
from dataclasses import replace
from typing import Any

from agentkit import (
    Disposition,
    DocumentBlock,
    ImageBlock,
    Ledger,
    Msg,
    MultiAgentHistory,
    OpaqueState,
    TextBlock,
    ThinkingBlock,
    Tool,
    ToolResultBlock,
    URLSource,
)
from agentkit.ledger.entries import Note
from agentkit.ledger.plan import Cut
from agentkit.provider_kit import MediaRule
from tests.cases import each_case
from tests.conftest import EchoFormatter, call, dispositions, lower, result, text_msg, texts_msg

IMAGE = ImageBlock(URLSource("https://example.com/a.png"))
IMAGE_RESULT = Msg("system", (ToolResultBlock("c", "camera", (TextBlock("here"), IMAGE)),), "system")


def test_the_dispositions_have_their_documented_order() -> None:
    words = [disposition.word for disposition in Disposition]
    assert words == ["dropped", "described", "shrunk", "repaired", "moved", "merged", "carried"]
    assert sorted(Disposition) == list(Disposition)


def test_an_unchanged_block_is_carried() -> None:
    (entry,) = Ledger([text_msg("Bob", "hi")]).entries
    assert entry.to_dict() == {
        "place": "msgs[0].content[0]",
        "kind": "text",
        "disposition": "carried",
        "reason": "sent unchanged",
        "lost": False,
        "details": [],
    }


def test_each_block_and_each_item_has_one_entry_in_input_order() -> None:
    msgs = [texts_msg("Bob", "a", "b"), call("c"), IMAGE_RESULT, Msg("Bob", (), "user")]
    assert [(entry.place, entry.kind) for entry in Ledger(msgs).entries] == [
        ("msgs[0].content[0]", "text"),
        ("msgs[0].content[1]", "text"),
        ("msgs[1].content[0]", "tool_use"),
        ("msgs[2].content[0]", "tool_result"),
        ("msgs[2].content[0].output[0]", "text"),
        ("msgs[2].content[0].output[1]", "image"),
    ]


def test_the_first_disposition_that_applies_is_primary() -> None:
    ledger = Ledger([text_msg("Bob", "hi")])
    ledger.note_messages([0], Note(Disposition.MERGED, "joined"))
    ledger.note((0, 0), Note(Disposition.MOVED, "moved"))
    ledger.note((0, 0), Note(Disposition.DESCRIBED, "too big", lost=True))
    ledger.note((0, 0), Note(Disposition.MOVED, "moved"))
    (entry,) = ledger.entries
    assert (entry.disposition, entry.reason, entry.lost) == (Disposition.DESCRIBED, "too big", True)
    assert entry.details == ("moved", "joined")


def test_an_item_shares_the_notes_of_its_result() -> None:
    ledger = Ledger([IMAGE_RESULT])
    ledger.note((0, 0), Note(Disposition.DROPPED, "an orphan"))
    assert [entry.disposition.word for entry in ledger.entries] == ["dropped"] * 3


def test_losses_are_places_and_reasons_in_input_order() -> None:
    ledger = Ledger([text_msg("Bob", "hi"), IMAGE_RESULT, text_msg("Bob", "ho"), text_msg("Eve", "hm")])
    ledger.note((1, 0, 1), Note(Disposition.DROPPED, "no images", lost=True))
    ledger.note((0, 0), Note(Disposition.DESCRIBED, "too long", lost=True))
    ledger.note((1, 0), Note(Disposition.CARRIED, "another id"))
    ledger.note_messages([3, 2], Note(Disposition.CARRIED, "no name", lost=True))
    assert ledger.losses == [
        ("msgs[0].content[0]", "too long"),
        ("msgs[1].content[0].output[1]", "no images"),
        ("msgs[2].content[0]", "no name"),
        ("msgs[3].content[0]", "no name"),
    ]
    assert [entry.place for entry in ledger.entries if entry.lost] == [place for place, _ in ledger.losses]


def test_content_that_a_cut_or_a_policy_omits_is_no_loss() -> None:
    ledger = Ledger([text_msg("Bob", "hi"), IMAGE_RESULT, text_msg("Bob", "ho")])
    for path in ((0, 0), (1, 0), (1, 0, 1)):
        ledger.note(path, Note(Disposition.DESCRIBED, "no image", lost=True))
    ledger.note((2, 0), Note(Disposition.DROPPED, "no image", lost=True))
    ledger.note_messages([0], Note(Disposition.DROPPED, "cut"))
    ledger.note((1, 0), Note(Disposition.DROPPED, "not visible"))
    assert ledger.losses == [("msgs[2].content[0]", "no image")]
    assert [entry.lost for entry in ledger.entries] == [False, False, False, False, True]


def test_a_copy_does_not_change_the_original() -> None:
    ledger = Ledger([text_msg("Bob", "hi")])
    ledger.note((0, 0), Note(Disposition.MOVED, "moved"))
    other = ledger.copy()
    other.note((0, 0), Note(Disposition.DROPPED, "dropped"))
    other.note_messages([0], Note(Disposition.MERGED, "merged"))
    other.add_synthesis("filler turn", "why")
    assert [entry.disposition.word for entry in ledger.entries] == ["moved"]
    assert ledger.syntheses == []


def test_a_ledger_is_json() -> None:
    plan = lower(
        [text_msg("Bob", "hi"), call("c"), IMAGE_RESULT, Msg("Bob", (IMAGE,), "user")],
        MultiAgentHistory(),
        media__image=None,
    )
    stored = plan.ledger.to_dict()
    assert json.loads(json.dumps(stored)) == stored
    assert {made["name"] for made in stored["syntheses"]} == {"preamble", "frame"}
    assert len(stored["blocks"]) == 6


DISPOSITIONS: list[tuple[str, list[Msg], dict[str, Any], str, bool]] = [
    ("sent unchanged", [text_msg("Bob", "hi")], {}, "carried", False),
    ("blank text", [text_msg("Bob", "x"), text_msg("Bob", " ")], {}, "dropped", False),
    ("an image described", [Msg("Bob", (IMAGE,), "user")], {"media.image": None}, "described", True),
    (
        "thinking",
        [text_msg("Bob", "x"), Msg("F", (ThinkingBlock("hm"),), "assistant")],
        {"thinking.mode": "never"},
        "dropped",
        False,
    ),
    ("joined turns", [text_msg("Bob", "x"), text_msg("Bob", "y")], {"turns.merge": True}, "merged", False),
    (
        "said inside an exchange",
        [call("c"), result("c"), call("d"), text_msg("Bob", "y"), result("d")],
        {},
        "moved",
        False,
    ),
]


@each_case(("msgs", "form", "word", "lost"), {row[0]: row[1:] for row in DISPOSITIONS})
def test_each_change_of_a_block_has_its_disposition(
    msgs: list[Msg], form: dict[str, Any], word: str, lost: bool
) -> None:
    plan = lower(msgs, **form)
    assert word in dispositions(plan).values()
    assert bool(plan.ledger.losses) is lost


# -- the plan ------------------------------------------------------------------------------------------


def test_a_plan_without_a_budget_has_neither_count_nor_cut() -> None:
    msgs = [text_msg("Bob", "hi")]
    plan = EchoFormatter().lower(msgs)
    assert (plan.tokens, plan.cut) == (None, None)
    assert plan.history == tuple(msgs)
    assert plan.history[0] is msgs[0]
    assert (plan.call_ids, plan.tool_names) == ({}, {})
    assert plan.request == {"messages": [{"role": "user", "name": "Bob", "content": "hi"}]}


def test_a_plan_maps_rewritten_ids_and_names_to_the_original_ones() -> None:
    from agentkit.provider_kit import NameRule

    msgs = [call("an id", tool="a tool"), result("an id")]
    plan = lower(msgs, tools__call_ids=NameRule(), tools__names=NameRule())
    (use,) = plan.request["messages"][0]["content"]
    assert plan.call_ids[use["id"]] == "an id"
    assert plan.tool_names[use["name"]] == "a tool"
    assert plan.request["messages"][1]["content"][0]["id"] == use["id"]
    assert dispositions(plan)["msgs[0].content[0]"] == "carried"


def test_the_caller_may_change_the_request_of_a_plan() -> None:
    formatter = EchoFormatter()
    msgs = [texts_msg("Bob", "a"), call("c"), result("c")]
    first = formatter.lower(msgs).request
    expected = json.dumps(first)
    first["messages"][0]["content"][0]["text"] = "changed"
    first["messages"][1]["content"][0]["input"]["q"] = "changed"
    first["messages"].clear()
    assert json.dumps(formatter.lower(msgs).request) == expected


# -- what a request has no place for ---------------------------------------------------------------------


def _details(msg: Msg, **form: Any) -> tuple[str, ...]:
    (entry,) = lower([msg], **form).ledger.entries
    assert (entry.reason, entry.lost) == ("sent unchanged", False)
    return entry.details


def test_details_name_citations_that_are_not_sent() -> None:
    cited = TextBlock("Cats.", metadata={"citations": [{"url": "https://example.com"}]})
    assert _details(Msg("Friday", [cited], "assistant")) == ("citations omitted: the API has no field for it",)


def test_details_name_a_title_that_the_api_has_no_field_for() -> None:
    document = DocumentBlock(URLSource("https://example.com/a.pdf"), title="A bill")
    takes = MediaRule(schemes=frozenset({"https"}))
    unsaid = _details(Msg("Bob", [document], "user"), media__document=takes)
    assert unsaid == ("title omitted: the API has no field for it",)
    passthrough = {"document": frozenset({"title", "title of a URL"})}
    assert (
        _details(Msg("Bob", [document], "user"), media__document=takes, opaque__passthrough_keys=passthrough) == ()
    )


def test_details_do_not_name_a_title_that_a_document_does_not_have() -> None:
    document = DocumentBlock(URLSource("https://example.com/a.pdf"))
    takes = MediaRule(schemes=frozenset({"https"}))
    assert _details(Msg("Bob", [document], "user"), media__document=takes) == ()


def test_details_do_not_name_a_title_that_another_key_of_the_document_states() -> None:
    document = DocumentBlock(
        URLSource("https://example.com/a.pdf"),
        title="A bill",
        state=OpaqueState("echo", fields={"name": "A bill"}),
    )
    changes: dict[str, Any] = {"issuer": "echo", "media__document": MediaRule(schemes=frozenset({"https"}))}
    msg = Msg("Bob", [document], "user")
    assert _details(msg, **changes, opaque__passthrough_keys={"document": frozenset({"name"})}) == ()


def test_details_name_further_keys_that_are_not_sent() -> None:
    state = OpaqueState("echo", fields={"phase": "final", "new": 1})
    said = Msg("Friday", [TextBlock("Cats.", state=state)], "assistant")
    assert _details(said, issuer="echo", opaque__passthrough_keys={"text": frozenset({"phase"})}) == (
        "new omitted: the API has no field for it",
    )
    assert _details(said, issuer="echo", opaque__passthrough_keys={"text": frozenset({"*", "-phase"})}) == (
        "phase omitted: the API has no field for it",
    )
    (entry,) = lower([said], issuer="another", opaque__passthrough_keys={"text": frozenset({"*"})}).ledger.entries
    assert entry.reason == "data issued by echo, such as a signature, was omitted"
    assert entry.details == (
        "phase omitted: the API has no field for it",
        "new omitted: the API has no field for it",
    )


def test_a_frame_line_and_a_late_system_line_name_the_speaker() -> None:
    msgs = [text_msg("Bob", "hi"), Msg("Guide", "Be brief.", "system"), Msg("Friday", "ho", "assistant")]
    framed = lower(msgs, MultiAgentHistory(viewer="Friday"), turns__speaker_names=False)
    assert [entry.details for entry in framed.ledger.entries] == [
        (),
        ("speaker name 'Guide' omitted: the API has no field for it",),
        (),
    ]
    lined = lower(msgs, turns__speaker_names=False, turns__late_system="line")
    assert lined.ledger.entries[1].details == ()


def test_a_dropped_block_has_no_further_details() -> None:
    document = DocumentBlock(URLSource("https://example.com/a.pdf"), title="A bill")
    (entry,) = lower(
        [Msg("Bob", [document], "user")], media__document=None, turns__speaker_names=False
    ).ledger.entries
    assert (entry.disposition, entry.details) == (Disposition.DESCRIBED, ())


def test_a_pickled_plan_keeps_its_ledger() -> None:
    policy = MultiAgentHistory(visible=lambda msg: True)
    plan = lower(
        [text_msg("Bob", "hi"), call("c", name="Friday"), result("c")], policy, turns__speaker_names=False
    )
    told = [entry.to_dict() for entry in plan.ledger.entries]
    assert told[1]["details"] == ["speaker name 'Friday' omitted: the API has no field for it"]
    stored = pickle.loads(pickle.dumps(plan))
    assert [entry.to_dict() for entry in stored.ledger.entries] == told
    assert stored.ledger == plan.ledger
    assert stored == plan


def test_tools_and_texts_of_frames_are_not_in_the_representation_of_a_plan() -> None:
    plan = lower([text_msg("Bob", "hi"), text_msg("Eve", "ho")], MultiAgentHistory())
    assert plan.frames is not None
    assert "frames" not in repr(plan)
    assert "tools" not in repr(replace(plan, tools=(Tool("look", "Look.", {}),)))


def test_a_cut_changes_no_block_and_no_cached_prefix_by_default() -> None:
    cut = Cut([3], 1, 5)
    assert (cut.altered, cut.uncached, cut.thinking) == ((), 0, ())


def test_plans_of_equal_formatters_are_equal() -> None:
    assert EchoFormatter().lower([text_msg("Bob", "hi")]) == EchoFormatter().lower([text_msg("Bob", "hi")])


def test_notes_are_selected_by_their_dispositions() -> None:
    ledger = Ledger([texts_msg("Bob", "a", "b")])
    ledger.note((0, 1), Note(Disposition.MOVED, "moved"))
    ledger.note((0, 0), Note(Disposition.DROPPED, "dropped"))
    assert ledger.notes(Disposition.MOVED) == [("msgs[0].content[1]", Disposition.MOVED, "moved")]
    assert [reason for _, _, reason in ledger.notes(*Disposition)] == ["dropped", "moved"]


def test_the_number_of_equal_syntheses_is_part_of_the_table() -> None:
    ledger = Ledger([text_msg("Bob", "Hi.")])
    ledger.add_synthesis("frame", "tags")
    assert "tags" in str(ledger)
    assert "×" not in str(ledger)
    assert "1 syntheses" in repr(ledger)
    ledger.add_synthesis("frame", "tags")
    assert "tags (×2)" in str(ledger)
    assert "2 syntheses" in repr(ledger)
    assert "syntheses" not in repr(Ledger([text_msg("Bob", "Hi.")]))


def test_a_cell_of_the_table_has_at_most_300_characters_of_a_text() -> None:
    ledger = Ledger([text_msg("Bob", "Hi."), text_msg("Bob", "Ho.")])
    for index, reason in enumerate(("a" * 225 + "b" * 75, "a" * 226 + "b" * 75)):
        ledger.note((index, 0), Note(Disposition.MOVED, reason))
    assert str(ledger).splitlines() == [
        "place               block  disposition  reason",
        "msgs[0].content[0]  text   moved        " + "a" * 225 + "b" * 75,
        "msgs[1].content[0]  text   moved        " + "a" * 225 + " … (301 characters) … " + "b" * 75,
    ]
