"""Tests of the units that strategies select to clear or shrink results or to replace media, and of the edits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from agentkit import (
    ClearResults,
    CutStrategy,
    DropMedia,
    ImageBlock,
    Msg,
    OptionError,
    ShrinkResults,
    Summarize,
    TextBlock,
    ToolResultBlock,
    Units,
)
from agentkit.budget.units import SUMMARY_MARK
from agentkit.messages.blocks import Block
from tests.cases import each_case
from tests.conftest import call, result, text_msg

IMAGE = ImageBlock.from_bytes(b"\x89PNG\r\n\x1a\n" + bytes(40), "image/png")


def create_units(msgs: Sequence[Msg]) -> Units:
    units = Units()
    units.extend(msgs, lambda msg: 1, frozenset())
    return units


def create_exchange(*outputs: str, pinned: bool = False) -> list[Msg]:
    ids = [f"c{number}" for number in range(len(outputs))]
    results = [result(id, output=output) for id, output in zip(ids, outputs, strict=True)]
    return [call(*ids, pinned=pinned), *results]


# -- which units --------------------------------------------------------------------------------------------------

TEXT = text_msg("Bob", "Hi.")
PICTURE = Msg("Bob", [IMAGE], "user")


@each_case(("keep", "recent"), [(0, 7), (1, 5), (2, 4), (3, 2), (4, 0), (5, 0)])
def test_the_newest_units_with_results_or_media_are_not_changed(keep: int, recent: int) -> None:
    exchange = create_exchange("found")
    units = create_units([TEXT, TEXT, *exchange, TEXT, *exchange, *exchange, TEXT, TEXT])
    assert len(units) == 8
    order = [number for number in (2, 4, 5) if number < recent]
    assert (ClearResults(keep).recent(units), ClearResults(keep).order(units)) == (recent, order)
    pictures = create_units([TEXT, TEXT, PICTURE, TEXT, PICTURE, PICTURE, TEXT, TEXT])
    assert (DropMedia(keep).recent(pictures), DropMedia(keep).order(pictures)) == (recent, order)


def test_pinned_results_and_media_are_not_changed() -> None:
    exchanges = [*create_exchange("found", pinned=True), *create_exchange("found"), TEXT]
    assert ClearResults(0).order(create_units(exchanges)) == [1]
    pictures = [Msg("Bob", [IMAGE], "user", pinned=True), PICTURE, TEXT]
    assert DropMedia(0).order(create_units(pictures)) == [1]


@each_case("strategy", [ClearResults(0), ClearResults(2), DropMedia(0), DropMedia(2)])
def test_only_the_newest_unit_is_recent_if_no_unit_can_change(strategy: CutStrategy) -> None:
    units = create_units([TEXT] * 4)
    assert (strategy.recent(units), strategy.order(units)) == (3, [])


def test_results_are_shrunk_in_portions_and_the_newest_result_stays_complete() -> None:
    long, short = "x" * 300, "x" * 210
    units = create_units(
        [
            text_msg("system", "Be brief.", "system"),
            *create_exchange(long, short, long),
            *create_exchange(long, pinned=True),
            TEXT,
            *create_exchange(*[long] * 17),
            *create_exchange(*[long] * 16),
            *create_exchange(long, long, long),
        ]
    )
    assert ShrinkResults(10).order(units) == [1, 1, *[4] * 9, *[5] * 16, 6, 6]
    assert ShrinkResults(101).order(units) == []
    assert ShrinkResults(99).order(units) == [1, 1, *[4] * 9, *[5] * 16, 6, 6]


# -- edits --------------------------------------------------------------------------------------------------------


def test_a_result_is_cleared_if_it_is_long_and_the_note_is_shorter() -> None:
    size = next(size for size in range(200) if len(_describe(size)) == size)
    for length, cleared in ((size - 1, False), (size, False), (size + 1, True)):
        (edited,) = ClearResults(0, characters=0).edit((result("a", output="x" * length),))
        assert edited.tool_results[0].output == (_describe(length) if cleared else "x" * length)
    for length, cleared in ((300, False), (301, True)):
        (edited,) = ClearResults(0, characters=300).edit((result("a", output="x" * length),))
        assert edited.tool_results[0].output == (_describe(length) if cleared else "x" * length)


def test_a_media_item_counts_as_a_thousand_characters() -> None:
    msg = Msg("system", [ToolResultBlock("a", "search", (TextBlock("x"), IMAGE))], "system")
    for characters, cleared in ((1_000, True), (1_001, False)):
        (edited,) = ClearResults(0, characters).edit((msg,))
        assert (edited is not msg) == cleared


def _describe(length: int) -> str:
    return f"(This result of {length:,} characters was cleared to save space. Call the tool again if you need it.)"


def test_only_the_results_of_a_message_change() -> None:
    msg = Msg("Bob", [TextBlock("y" * 400), ToolResultBlock("a", "search", "x" * 400)], "user")
    for strategy in (ClearResults(0), ShrinkResults(50)):
        (edited,) = strategy.edit((msg,))
        assert edited.blocks[0] == msg.blocks[0]
        assert len(edited.tool_results[0].text) < 250


def test_media_in_messages_and_in_results_are_replaced() -> None:
    note = TextBlock("[image left out to save space]")
    outputs: list[Any] = ["text", (TextBlock("text"), IMAGE)]
    blocks: list[Block] = [
        TextBlock("see"),
        IMAGE,
        *(ToolResultBlock("a", "search", output) for output in outputs),
    ]
    (edited,) = DropMedia(0).edit((Msg("Bob", blocks, "user"),))
    assert edited.blocks[:2] == (TextBlock("see"), note)
    assert [block.output for block in edited.tool_results] == ["text", (TextBlock("text"), note)]


def test_a_message_without_long_results_is_the_same_object() -> None:
    msgs = (call("a"), result("a"), Msg("Bob", [IMAGE], "user"))
    for strategy in (ClearResults(0), ShrinkResults(50), DropMedia(0)):
        edited = strategy.edit(msgs)
        changed = [after is not before for before, after in zip(msgs, edited, strict=True)]
        assert changed == [False, False, isinstance(strategy, DropMedia)]


# -- Summarize ----------------------------------------------------------------------------------------------------


async def summarize(msgs: Sequence[Msg]) -> str:
    return "told"


@each_case("max_tokens", [199, 500.0, "500", True, None])
def test_an_invalid_number_of_tokens_for_summaries_is_an_error(max_tokens: Any) -> None:
    with pytest.raises(OptionError) as caught:
        Summarize(summarize, max_tokens)
    assert caught.value.place == "strategy.max_tokens"


@pytest.mark.parametrize(("count", "is_surplus"), [(3, False), (4, True)])
def test_four_summaries_may_be_dropped_and_three_may_not(count: int, *, is_surplus: bool) -> None:
    summary = Msg("summary", "told", "user", metadata={SUMMARY_MARK: "digest"}, pinned=True)
    units = create_units([text_msg("system", "Be brief.", "system"), TEXT, *[summary] * count, TEXT, TEXT])
    strategy, summaries = Summarize(summarize), [*range(2, 2 + count)]
    assert [*strategy.order(units)] == [*(summaries if is_surplus else []), 2 + count]
    assert strategy.protected(units) == {0, 3 + count, *([] if is_surplus else summaries)}
