"""Tests of the token numbers of a cut, the input of summarizers, and the size in a BudgetError."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import anyio.lowlevel
import pytest

from agentkit import (
    Budget,
    BudgetError,
    CharacterTokenCounter,
    ClearResults,
    CutStrategy,
    DropMedia,
    Msg,
    MultiAgentHistory,
    OldestFirst,
    OldestFirstInSteps,
    Plan,
    ShrinkResults,
    Summarize,
    TextBlock,
    TokenCounterBase,
)
from tests.budget.test_strategies import PICTURE, SYSTEM, TASK, LetterCounter, Writer, chat, exchanges, plan
from tests.cases import each_case
from tests.conftest import EchoFormatter, text_msg

pytestmark = pytest.mark.anyio


# -- the size in an error -----------------------------------------------------------------------------------------


class ScaledCounter(TokenCounterBase):
    """Remote counter that counts more or fewer tokens than the estimate."""

    def __init__(self, percent: int) -> None:
        self.percent = percent

    needs_layout = True

    async def count(self, request: Mapping[str, Any], provider: Any = None) -> int:
        await anyio.lowlevel.checkpoint()
        return -(-CharacterTokenCounter().measure(request, provider) * self.percent // 100)


async def write_long_summary(msgs: Sequence[Msg]) -> str:
    return "word " * 400


def _image_messages(count: int) -> list[Msg]:
    return [Msg("Bob", [TextBlock(f"{number} " + "word " * 20), PICTURE], "user") for number in range(count)]


STRATEGIES: list[CutStrategy] = [
    OldestFirst(),
    OldestFirstInSteps(),
    ClearResults(1, 0),
    ClearResults(0, 10, step=200),
    ShrinkResults(20),
    ShrinkResults(20, step=None),
    DropMedia(0),
    Summarize(write_long_summary, 200),
]
LISTS = [*((item,) for item in STRATEGIES), *itertools.permutations(STRATEGIES, 2)]
COUNTERS: list[TokenCounterBase] = [
    CharacterTokenCounter(),
    ScaledCounter(60),
    ScaledCounter(170),
    ScaledCounter(400),
]


@pytest.mark.parametrize("counter", COUNTERS, ids=["local", "fewer", "more", "four times"])
@pytest.mark.parametrize("history", [None, MultiAgentHistory()], ids=["chat", "many agents"])
@pytest.mark.parametrize("limit", [1, 300])
@pytest.mark.parametrize(
    ("step", "anyio_backend"),
    [(5, "asyncio"), (5, "trio"), pytest.param(2, "asyncio", marks=pytest.mark.slow)],
    ids=["some-asyncio", "some-trio", "half-asyncio"],
)
async def test_the_same_call_succeeds_with_the_size_in_the_error(
    counter: TokenCounterBase, history: MultiAgentHistory | None, limit: int, step: int
) -> None:
    msgs = [SYSTEM, *exchanges(3, "word " * 300), *_image_messages(3), *exchanges(3, "word " * 200), *chat(3)]
    cut_first: list[tuple[str, ...]] = [(), ("search",)]
    errors = 0
    for index, strategies in enumerate(LISTS[COUNTERS.index(counter) % step :: step]):
        for first in cut_first if step == 2 else cut_first[index % 2 :][:1]:
            budget = Budget(limit, counter, strategy=strategies, cut_first=first)
            needed_size = await _find_needed_size(budget, history, msgs)
            if needed_size is not None:
                errors += 1
                sufficient_budget = Budget(needed_size + 7, counter, 7, strategies, cut_first=first)
                assert (await EchoFormatter(history=history, budget=sufficient_budget).plan(msgs)).tokens, (
                    strategies
                )
    assert errors > 20 // step


async def _find_needed_size(budget: Budget, history: MultiAgentHistory | None, msgs: Sequence[Msg]) -> int | None:
    try:
        await EchoFormatter(history=history, budget=budget).plan(msgs)
    except BudgetError as error:
        caught = error
    else:
        return None
    assert caught.needed > caught.limit == budget.limit
    return caught.needed


async def test_an_error_without_a_smaller_size_has_the_size_of_the_conversation(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("agentkit.formatting.budget_fitting._MAX_LIMITS", 0)
    msgs = [TASK, *exchanges(6, "word " * 300), text_msg("Bob", "so?")]
    budget = Budget(1, strategy=[ClearResults(0, 0), DropMedia(0)])
    assert await _find_needed_size(budget, None, msgs) == CharacterTokenCounter().measure(
        EchoFormatter().lower(msgs).request, EchoFormatter()
    )


# -- what the writer of summaries is given ------------------------------------------------------------------------


@each_case("before", [ClearResults(0, 0, step=0), ShrinkResults(10), DropMedia(0, step=0), OldestFirst()])
async def test_the_summarizer_gets_all_dropped_messages_and_no_others(before: CutStrategy) -> None:
    writer = Writer()
    msgs = [
        TASK,
        *exchanges(3, "word " * 200),
        *_image_messages(2),
        *chat(12),
        *exchanges(2, "word " * 50),
        text_msg("Bob", "so?"),
    ]
    outcome = await plan(msgs, 700, before, Summarize(writer, 200, step=0), counter=CharacterTokenCounter())
    assert outcome.cut is not None
    dropped_msgs = [msgs[number] for number in outcome.cut.numbers]
    summarized = [text for asked in writer.asked for text in asked]
    if isinstance(before, OldestFirst):
        assert summarized == []  # OldestFirst drops enough messages, so no summary is needed
    else:
        assert summarized == [msg.text for msg in dropped_msgs]
    remaining = {id(msg) for msg in outcome.history}
    assert not remaining & {id(msg) for msg in dropped_msgs}
    assert len(outcome.history) + len(dropped_msgs) == len(msgs) + len(writer.asked)


async def test_a_summary_that_is_too_large_moves_the_cut_by_one_unit() -> None:
    asked: list[int] = []

    async def write(msgs: Sequence[Msg]) -> str:
        asked.append(len(msgs))
        return "word " * 400

    strategy = Summarize(write, 200, 0)
    outcome = await plan([TASK, *chat(20)], 2_400, strategy, counter=ScaledCounter(800))
    assert outcome.cut is not None
    assert asked == [13, 1, 1, 1, 5]  # the last call gets four summaries and one message
    assert len(outcome.cut.numbers) == 17


# -- the token numbers of a cut -----------------------------------------------------------------------------------


def _sum_weights(msgs: Sequence[Msg]) -> int:
    return sum(LetterCounter().weigh(msg) for msg in msgs)


def _list_changed_messages(plan: Plan, msgs: Sequence[Msg]) -> list[int]:
    assert plan.cut is not None
    altered = [int(place[5 : place.index("]")]) for place in plan.cut.altered]
    return sorted({*plan.cut.numbers, *altered})


@each_case("limit", range(260, 900, 40))
@each_case(
    "strategies",
    [
        (ClearResults(0, 0, step=0), OldestFirst()),
        (ClearResults(2, 0, step=0), OldestFirst(keep_task=True)),
        (OldestFirst(), ClearResults(0, 0, step=0)),
        (ShrinkResults(40), OldestFirst()),
        (ShrinkResults(40), ClearResults(0, 0, step=0)),
        (DropMedia(0, step=0), OldestFirst()),
        (ClearResults(0, 0), OldestFirstInSteps()),
        (ClearResults(0, 0, step=100), OldestFirstInSteps(step=100)),
        (OldestFirst(),),
        (OldestFirstInSteps(),),
    ],
)
async def test_the_token_numbers_of_a_cut_are_differences_of_weights(
    strategies: tuple[CutStrategy, ...], limit: int
) -> None:
    msgs = [SYSTEM, TASK, *exchanges(2), *chat(3), *exchanges(3), *chat(3), text_msg("Bob", "so?")]
    try:
        outcome = await plan(msgs, limit, *strategies)
    except BudgetError:
        return
    if outcome.cut is None:
        return
    assert outcome.cut.tokens == _sum_weights(msgs) - _sum_weights(outcome.history)
    changed = _list_changed_messages(outcome, msgs)
    units = {id(msg) for msg in msgs[: _start_of_unit(msgs, changed[0])]}
    assert outcome.cut.uncached == _sum_weights([msg for msg in outcome.history if id(msg) not in units])
    assert outcome.cut.units == sum(msgs[number].tool_results == () for number in outcome.cut.numbers)


def _start_of_unit(msgs: Sequence[Msg], number: int) -> int:
    return number - 1 if msgs[number].tool_results else number


async def test_a_unit_that_is_cleared_and_then_dropped_saves_its_full_weight() -> None:
    msgs = [SYSTEM, *exchanges(4), text_msg("Bob", "so?")]
    cleared = await plan(msgs, 300, ClearResults(0, 0, step=0), OldestFirst())
    assert cleared.cut is not None
    assert cleared.cut.units == 0
    assert cleared.cut.altered
    dropped = await plan(msgs, 110, ClearResults(0, 0, step=0), OldestFirst())
    assert dropped.cut is not None
    assert (dropped.cut.units, dropped.cut.tokens) == (
        len(dropped.cut.numbers) // 2,
        _sum_weights(msgs) - _sum_weights(dropped.history),
    )
    assert dropped.cut.units
