"""Tests of the units that a cut must keep."""

from __future__ import annotations

from collections.abc import Sequence

from agentkit import Msg, TextBlock, ToolResultBlock, Units
from agentkit.budget.protected_units import find_protected_units, find_summaries, find_task
from agentkit.budget.units import SUMMARY_MARK
from agentkit.repair.unmatched_results import UNMATCHED_MARK
from tests.conftest import call, result, text_msg

SYSTEM = text_msg("system", "Be brief.", "system")
TEXT = text_msg("Bob", "Hi.")


def create_units(msgs: Sequence[Msg]) -> Units:
    units = Units()
    units.extend(msgs, lambda msg: 10, frozenset())
    return units


def test_a_cut_keeps_the_system_prompt_pinned_units_the_newest_units_and_the_task() -> None:
    friday = text_msg("Friday", "Hi.", "assistant")
    units = create_units([SYSTEM, friday, TEXT, text_msg("Bob", "Remember.", pinned=True), TEXT, TEXT, friday])
    assert find_protected_units(units) == {0, 3, 6}
    assert find_protected_units(units, keep_task=True) == {0, 2, 3, 6}
    units.newest_visible = units.numbers[5]
    assert find_protected_units(units) == {0, 3, 5, 6}
    assert find_protected_units(create_units([SYSTEM, friday]), keep_task=True) == {0, 1}


def test_summaries_are_pinned_messages_with_the_mark() -> None:
    summary = Msg("summary", "told", "user", metadata={SUMMARY_MARK: "digest"}, pinned=True)
    unpinned = Msg("summary", "told", "user", metadata={SUMMARY_MARK: "digest"})
    other = Msg("Bob", "told", "user", metadata={"mark": 1}, pinned=True)
    exchange = [Msg("Friday", call("a").blocks, "assistant", metadata=summary.metadata), result("a", pinned=True)]
    assert find_summaries(create_units([summary, TEXT, unpinned, other, *exchange, summary, TEXT])) == [0, 5]


def test_the_task_is_the_first_message_of_a_user_that_is_no_result() -> None:
    unmatched = Msg("Bob", "lost", "user", metadata={UNMATCHED_MARK: True})
    mixed = Msg("Bob", [TextBlock("Hi."), ToolResultBlock("a", "search", "found")], "user")
    noted = Msg("Bob", "Go.", "user", metadata={"mark": 1})
    friday = text_msg("Friday", "Hi.", "assistant")
    assert find_task(create_units([SYSTEM, friday, unmatched, call("a"), mixed, noted, TEXT])) == 4
    assert find_task(create_units([SYSTEM, friday, unmatched])) is None
    asked = Msg("Bob", call("b").blocks, "user")
    assert find_task(create_units([SYSTEM, asked, result("b"), TEXT])) == 2
    assert find_task(create_units([TEXT])) == 0
