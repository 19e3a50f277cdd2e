"""Tests of units, and of the estimator that lets other tasks run while it estimates many messages."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import Any, Final

import pytest

from agentkit import LocalTokenCounter, Msg, OldestFirst, TextBlock, ThinkingBlock, Units
from agentkit.budget.cut_plan import CutPlan
from agentkit.budget.protected_units import find_task
from agentkit.budget.strategies import DropExamples
from agentkit.budget.units import EXAMPLE_MARK, EditCount, Weigher
from tests.cases import each_case
from tests.conftest import call, result, text_msg

pytestmark = pytest.mark.anyio

SYSTEM = text_msg("system", "Be brief.", "system")
TEXT = text_msg("Bob", "Hi.")


def create_units(msgs: Sequence[Msg], *never_cut: str) -> Units:
    units = Units()
    units.extend(msgs, lambda msg: 10, frozenset(never_cut))
    return units


# -- units --------------------------------------------------------------------------------------------------------


def test_the_first_system_messages_are_units_and_later_ones_belong_to_the_unit_before() -> None:
    units = create_units([SYSTEM, SYSTEM, TEXT, SYSTEM, TEXT, call("a"), result("a"), SYSTEM, SYSTEM, TEXT])
    assert (units.system, units.starts, units.sums) == (2, [0, 1, 2, 4, 5, 9], [0, 10, 20, 40, 50, 90, 100])
    assert [units.start(number) for number in range(2, 6)] == [0, 20, 30, 70]
    assert [units.end(number) for number in range(2, 6)] == [20, 30, 70, 80]
    assert create_units([TEXT, SYSTEM]).system == 0


def test_a_unit_with_pinned_messages_or_calls_of_kept_tools_is_pinned_once() -> None:
    pinned = text_msg("Bob", "Remember.", pinned=True)
    exchange = [call("a", "b", pinned=True), result("a", pinned=True), result("b", pinned=True)]
    assert create_units([TEXT, pinned, *exchange, TEXT, pinned, pinned]).pinned == [1, 2, 4, 5]
    msgs = [TEXT, call("a"), result("a"), call("b", tool="skill"), result("b", pinned=True), TEXT]
    assert create_units(msgs).pinned == [2]
    assert create_units(msgs, "skill").pinned == [2]
    assert create_units(msgs, "search").pinned == [1, 2]


# -- estimates ----------------------------------------------------------------------------------------------------


class Stopwatch(LocalTokenCounter):
    """Local counter that stores the thread of each estimate."""

    def __init__(self) -> None:
        self.threads: list[int] = []

    def measure(self, request: Mapping[str, Any]) -> int:
        return 0

    def weigh(self, msg: Msg) -> int:
        self.threads.append(threading.get_ident())
        return len(msg.text)


class Slow(Stopwatch):
    slow = True


@pytest.fixture
def weighed(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Numbers of messages that are estimated each time when other tasks may run."""
    numbers: list[int] = []

    async def checkpoint() -> None:
        numbers.append(len(COUNTERS[-1].threads))

    monkeypatch.setattr("agentkit.budget.units.anyio.lowlevel.checkpoint", checkpoint)
    return numbers


COUNTERS: list[Stopwatch] = []


def create_weigher(counter: Stopwatch) -> Weigher:
    COUNTERS[:] = [counter]
    return Weigher(counter)


def talk(count: int, text: str = "Hi.") -> list[Msg]:
    return [text_msg("Bob", text) for _ in range(count)]


@pytest.mark.parametrize(
    ("msgs", "pauses"),
    [
        (talk(16), []),
        (talk(17), [17]),
        (talk(200), [200]),
        (talk(450), [200, 400, 450]),
        (talk(2, "x" * 25_000), []),
        ([*talk(1, "x" * 50_000), *talk(1, "y")], [2]),
    ],
    ids=["few", "more", "many", "most", "short", "long"],
)
async def test_other_tasks_run_while_many_messages_are_estimated(
    msgs: list[Msg], pauses: list[int], weighed: list[int]
) -> None:
    counter = Stopwatch()
    weigher = create_weigher(counter)
    units = await weigher.weigh_units(msgs, thinking=False)
    assert (weighed, units.sums[-1]) == (pauses, sum(len(msg.text) for msg in msgs))
    assert len(counter.threads) == len(msgs), "each message is estimated once"


async def test_only_new_messages_of_the_last_conversation_are_estimated(weighed: list[int]) -> None:
    counter, first, second = Stopwatch(), talk(300), talk(299)
    weigher = create_weigher(counter)
    await weigher.weigh_units(first, thinking=False)
    await weigher.weigh_units([*first, *talk(16)], thinking=False)
    assert weighed == [200, 300]
    await weigher.weigh_units([*second, *talk(1)], thinking=False)
    assert weighed == [200, 300, 516, 616]
    assert len(counter.threads) == 616


@pytest.mark.parametrize(("counter", "is_main"), [(Stopwatch(), True), (Slow(), False)], ids=["fast", "slow"])
async def test_a_slow_counter_runs_in_a_worker_thread(counter: Stopwatch, *, is_main: bool) -> None:
    counter.threads.clear()
    await create_weigher(counter).weigh_units(talk(20), thinking=False)
    assert {number == threading.get_ident() for number in counter.threads} == {is_main}
    assert len(counter.threads) == 20


def test_thinking_is_estimated_if_requests_include_it() -> None:
    thought = Msg("Friday", [ThinkingBlock("a" * 25), TextBlock("Hi.")], "assistant")
    weigher = create_weigher(Stopwatch())
    msgs = [thought, TEXT]
    assert weigher.units(msgs).sums == [0, 3, 6]
    assert weigher.units(msgs, thinking=True).sums == [0, 7, 10]  # 25 letters of 0.16 tokens are 4 tokens
    longer = [Msg("Friday", [ThinkingBlock("a" * 26), TextBlock("Hi.")], "assistant"), TEXT]
    assert weigher.units(longer, thinking=True).sums == [0, 8, 11]


# -- examples of the task ---------------------------------------------------------------------------------------


def _example(number: int, text: str, role: Any = "user", pinned: bool = False) -> Msg:
    return Msg("user", text, role, metadata={EXAMPLE_MARK: number}, pinned=pinned)


EXAMPLES: Final = [
    Msg("system", "Judge.", "system"),
    _example(0, "a"),
    _example(0, "b", "assistant"),
    _example(1, "c", "assistant"),
    _example(2, "d"),
    _example(2, "e", "assistant"),
    Msg("Bob", "Hello.", "user"),
    Msg("Bob", "Now.", "user", pinned=True),
]


@each_case("split", range(len(EXAMPLES) + 1))
def test_the_messages_of_an_example_are_one_unit(split: int) -> None:
    units = Units()
    for part in (EXAMPLES[:split], EXAMPLES[split:]):
        units.extend(part, lambda msg: 1, frozenset())
    assert [[msg.text for msg in units.unit(number)] for number in units.numbers] == [
        ["Judge."],
        ["a", "b"],
        ["c"],
        ["d", "e"],
        ["Hello."],
        ["Now."],
    ]
    assert units.examples == [1, 2, 3]


def test_examples_are_dropped_after_the_history_and_never_are_the_task() -> None:
    units = Units()
    units.extend(EXAMPLES, lambda msg: 1, frozenset())
    assert find_task(units) == 4
    assert OldestFirst().order(units) == [4]
    assert DropExamples().order(units) == [1, 2, 3]
    plan = CutPlan([OldestFirst()], units, 100, lambda msg: 1)
    assert [change.first for change in plan.changes(EditCount(plan.end))] == [1]
    assert plan.weight(plan.end) == 1  # the pinned request; the system prompt is not counted


def test_all_examples_may_be_dropped_but_the_last_unit() -> None:
    units = Units()
    units.extend(EXAMPLES[:6], lambda msg: 1, frozenset())
    plan = CutPlan([DropExamples()], units, 100, lambda msg: 1)
    assert plan.weight(plan.end) == 2  # the last example has two messages; the system prompt is not counted


def test_a_pinned_example_stays() -> None:
    units = Units()
    pinned = [EXAMPLES[0], _example(0, "a", pinned=True), *EXAMPLES[2:]]
    units.extend(pinned, lambda msg: 1, frozenset())
    assert DropExamples().order(units) == [2, 3]


def test_a_copy_has_examples_of_its_own() -> None:
    units = Units()
    units.extend(EXAMPLES[:3], lambda msg: 1, frozenset())
    copy = units.copy()
    copy.extend(EXAMPLES[3:], lambda msg: 1, frozenset())
    assert (units.examples, copy.examples) == ([1], [1, 2, 3])
