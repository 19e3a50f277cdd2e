"""Tests of edited conversations: their messages, the origins of their blocks, and their ledger entries."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from agentkit import ImageBlock, Msg, TextBlock, ToolResultBlock
from agentkit.budget.cut_plan import UnitChange
from agentkit.budget.edits import EditedConversation
from agentkit.budget.units import UnitNumber, Units
from agentkit.ledger.entries import Disposition
from agentkit.ledger.ledger import Ledger
from agentkit.ledger.provenance import MessageOrigin, TracedConversation
from tests.cases import each_case
from tests.conftest import call, result, text_msg, texts_msg

IMAGE = ImageBlock.from_bytes(b"\x89PNG\r\n\x1a\n" + bytes(40), "image/png")
MSGS = [text_msg("Bob", str(number)) for number in range(7)]
SUMMARY = text_msg("summary", "So far so good.")


def create_edited(
    *changes: tuple[int, int, Sequence[Msg]],
    msgs: Sequence[Msg] = MSGS,
    origins: Sequence[MessageOrigin] | None = None,
) -> EditedConversation:
    units = Units()
    units.extend(msgs, lambda msg: 1, frozenset())
    conversation = TracedConversation([*msgs], [*range(len(msgs))] if origins is None else [*origins])
    numbered = [UnitChange(UnitNumber(first), UnitNumber(stop), tuple(left)) for first, stop, left in changes]
    return EditedConversation(conversation, units, numbered)


def record(edited: EditedConversation, msgs: Sequence[Msg] = MSGS) -> dict[str, str]:
    """Returns the dispositions of the blocks that a cut changes, by place."""
    ledger = Ledger(msgs)
    edited.record(ledger)
    entries = [entry for entry in ledger.entries if entry.disposition.word != "carried"]
    assert all(entry.reason.endswith("to keep the request within the budget") for entry in entries)
    return {entry.place: entry.disposition.word for entry in entries}


# -- messages and origins -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("replaced", [1, 2])
def test_summaries_are_inserted_once_at_the_dropped_unit_that_they_replace(replaced: int) -> None:
    edited = create_edited((1, 3, ()), (5, 6, ()))
    applied = edited.apply([SUMMARY], UnitNumber(replaced))
    assert applied.msgs == [MSGS[0], SUMMARY, MSGS[3], MSGS[4], MSGS[6]]
    assert applied.origins == [0, ("summary",), 3, 4, 6]
    assert edited.apply([SUMMARY], UnitNumber(5)).msgs == [MSGS[0], MSGS[3], MSGS[4], SUMMARY, MSGS[6]]
    assert edited.apply([SUMMARY]).msgs == [MSGS[0], MSGS[3], MSGS[4], MSGS[6]]


def test_an_edited_message_keeps_the_origin_of_the_message() -> None:
    msgs = [MSGS[0], call("a", "b"), result("a"), result("b"), MSGS[1]]
    origins: list[MessageOrigin] = [0, 1, ((2, 5),), 3, 4]
    short = result("a", output="so")
    applied = create_edited((1, 2, [msgs[1], short, msgs[3]]), msgs=msgs, origins=origins).apply()
    assert applied.msgs == [msgs[0], msgs[1], short, msgs[3], msgs[4]]
    assert applied.origins == origins


def test_a_message_that_loses_blocks_keeps_the_origins_of_the_other_blocks() -> None:
    before = texts_msg("Bob", "a", "b", "c")
    after = Msg("Bob", [before.blocks[2], TextBlock("new")], "user")
    for origin, expected in ((0, (0, 2)), (((4, 1), (3, 0), (5, 7)), (5, 7))):
        edited = create_edited((0, 1, [after]), msgs=[before, *MSGS], origins=[origin, *range(1, 8)])
        assert edited.apply().origins[0] == (expected, "cut strategy")
        ledger = Ledger([])
        edited.record(ledger)


# -- the first change ---------------------------------------------------------------------------------------------


def test_the_first_change_is_the_first_input_message_that_a_cut_changes() -> None:
    assert create_edited().first_change is None
    assert create_edited((2, 4, ()), (5, 6, ())).first_change == 2
    repaired: list[MessageOrigin] = [0, 1, ((4, 9), (3, 8), "repair"), 2, 5, 6, 7]
    assert create_edited((2, 3, ()), (4, 5, ()), origins=repaired).first_change == 3


# -- the ledger ---------------------------------------------------------------------------------------------------


def test_dropped_messages_are_counted_and_recorded() -> None:
    edited = create_edited((1, 3, ()), (5, 6, ()))
    assert record(edited) == {f"msgs[{number}].content[0]": "dropped" for number in (1, 2, 5)}
    assert (edited.dropped_messages, edited.dropped_units, edited.changed_places) == ([1, 2, 5], 3, [])


def test_dropped_blocks_of_repaired_messages_are_recorded_at_their_places() -> None:
    msgs = [MSGS[0], texts_msg("Bob", "a", "b"), texts_msg("Bob", "c", "d"), MSGS[1]]
    repaired = [MSGS[0], texts_msg("Bob", "b", "added", "d"), texts_msg("Bob", "a", "c"), MSGS[1]]
    origins: list[MessageOrigin] = [0, ((1, 1), "repair", (2, 1)), ((1, 0), (2, 0)), 3]
    edited = create_edited((0, 2, ()), msgs=repaired, origins=origins)
    assert record(edited, msgs) == {
        "msgs[0].content[0]": "dropped",
        "msgs[1].content[1]": "dropped",
        "msgs[2].content[1]": "dropped",
    }
    assert edited.dropped_messages == [0, 1, 2]


def _answer(*output: Any) -> Msg:
    return Msg("system", [ToolResultBlock("a", "search", output[0] if len(output) == 1 else output)], "system")


@each_case(
    ("before", "after", "changes"),
    [
        (_answer("long"), _answer("so"), {"msgs[1].content[0]": "shrunk"}),
        (_answer(TextBlock("a"), IMAGE), _answer("so"), {"msgs[1].content[0]": "shrunk"}),
        (_answer("long"), texts_msg("Bob", "so"), {"msgs[1].content[0]": "described"}),
        (texts_msg("Bob", "long"), _answer(TextBlock("so"), TextBlock("on")), {"msgs[1].content[0]": "described"}),
    ],
)
def test_an_edited_block_is_recorded_at_its_place(before: Msg, after: Msg, changes: dict[str, str]) -> None:
    msgs = [call("a"), before, MSGS[0]]
    edited = create_edited((0, 1, [msgs[0], after]), msgs=msgs)
    if before.tool_results == ():
        edited = create_edited((1, 2, [after]), msgs=msgs)
    ledger = Ledger(msgs)
    edited.record(ledger)
    notes = {place: disposition.word for place, disposition, _ in ledger.notes(*Disposition)}
    assert notes == changes
    assert edited.changed_places == [*changes]
    assert edited.dropped_units == 0


def test_each_edited_item_of_a_result_is_recorded_at_its_place() -> None:
    text = TextBlock("same")
    before = _answer(text, IMAGE, TextBlock("long"), TextBlock("last"))
    after = _answer(text, TextBlock("[image]"), TextBlock("so"))
    msgs = [call("a"), before, MSGS[0]]
    edited = create_edited((0, 1, [msgs[0], after]), msgs=msgs)
    ledger = Ledger(msgs)
    edited.record(ledger)
    assert [(place, disposition.word) for place, disposition, _ in ledger.notes(*Disposition)] == [
        ("msgs[1].content[0].output[1]", "described"),
        ("msgs[1].content[0].output[2]", "shrunk"),
    ]
