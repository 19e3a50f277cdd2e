"""Tests of cut plans: the weights of cuts and the positions at which a cut may end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import pytest

from agentkit import ClearResults, CutStrategy, Msg, OldestFirst, OldestFirstInSteps, OptionError, Units
from agentkit.budget.cut_plan import NO_EDITS, CutPlan
from agentkit.budget.units import EditCount
from agentkit.messages.features import Feature
from tests.cases import each_case
from tests.conftest import call, result, text_msg

SYSTEM_WEIGHT = 5
WEIGHTS = [SYSTEM_WEIGHT, 7, 3, 10, 1, 25, 4, 10, 10, 2, 30]
"""Tokens of each unit. The first unit is the system prompt."""
HISTORY_WEIGHT = sum(WEIGHTS[1:])


def create_units(weights: Sequence[int]) -> Units:
    units = Units()
    msgs = [text_msg("Bob", str(weight)) for weight in weights]
    msgs[0] = text_msg("system", msgs[0].text, "system")
    units.extend(msgs, lambda msg: int(msg.text), frozenset())
    return units


def create_plan(*strategies: CutStrategy, weights: Sequence[int] = WEIGHTS, limit: int = 60) -> CutPlan:
    return CutPlan(strategies, create_units(weights), limit, lambda msg: int(msg.text))


class ChosenUnits(CutStrategy):
    """Strategy that drops the passed units."""

    def __init__(self, numbers: Sequence[int], step: int = 0) -> None:
        self.numbers = numbers
        self.step = step

    def order(self, units: Units) -> Sequence[int]:
        return self.numbers


SHORT = text_msg("Bob", "1")
LONG = text_msg("Bob", "99")


class ShorteningStrategy(ChosenUnits):
    """Strategy that shortens the passed units to one token."""

    def edit(self, unit: tuple[Msg, ...], newest: bool = False) -> Sequence[Msg]:
        return [SHORT]


class LengtheningStrategy(ChosenUnits):
    """Strategy that replaces the passed units with a longer message."""

    def edit(self, unit: tuple[Msg, ...], newest: bool = False) -> Sequence[Msg]:
        return [LONG]


PLANS = pytest.mark.parametrize(
    "strategies",
    [
        (OldestFirst(),),
        (OldestFirst(step=10),),
        (OldestFirst(step=13),),
        (OldestFirst(step=1_000),),
        (OldestFirstInSteps(step=10),),
        (OldestFirstInSteps(step=1),),
        (ChosenUnits([3, 5, 6, 9], step=10),),
        (ChosenUnits([6, 2, 8]), OldestFirst()),
        (OldestFirst(step=40), ChosenUnits([])),
        (ChosenUnits([2, 3]), OldestFirstInSteps(step=20)),
        (ChosenUnits([1, 4, 5], step=20), ChosenUnits([9, 2, 7])),
    ],
)


def list_positions(strategies: Sequence[CutStrategy], plan: CutPlan) -> list[int]:
    """Returns the numbers of edits after which a cut may end, found by a search through all grid lines."""
    units, positions, start = plan.units, {0}, 0
    edited: set[int] = set()
    for strategy in strategies:
        order = [number for number in strategy.order(units) if number not in edited]
        edited |= {*order}
        lines = range(0, HISTORY_WEIGHT + (strategy.step or 1), strategy.step or 1)
        ends = [sum(WEIGHTS[1 : number + 1]) for number in order]
        if strategy.step:
            positions |= {start + sum(end <= line for end in ends) for line in lines}
        else:
            positions |= {start + count for count in range(len(order) + 1)}
        start += len(order)
    return sorted(positions)


@PLANS
def test_the_next_and_the_previous_position_of_a_cut_are_on_the_grid(strategies: Sequence[CutStrategy]) -> None:
    plan = create_plan(*strategies)
    positions = list_positions(strategies, plan)
    assert positions[-1] == plan.end
    for count in map(EditCount, range(plan.end + 1)):
        after = [position for position in positions if position >= count]
        before = [position for position in positions if position < count]
        assert plan.position_from(count) == after[0]
        assert plan.position_before(count) == (before[-1] if before else -1)
        assert plan.position_after(count) == next((number for number in after if number > count), plan.end)


@PLANS
def test_the_weight_of_a_cut_is_the_weight_of_the_units_that_remain(strategies: Sequence[CutStrategy]) -> None:
    plan = create_plan(*strategies)
    weights: list[int] = []
    for count in map(EditCount, range(plan.end + 1)):
        dropped = [number for change in plan.changes(count) for number in range(change.first, change.stop)]
        assert len(dropped) == count
        weights.append(HISTORY_WEIGHT - sum(WEIGHTS[number] for number in dropped))
        assert plan.weight(count) == weights[-1]
    for weight in range(-1, HISTORY_WEIGHT + 2):
        assert plan.count_for(weight) == next(
            (count for count, remaining in enumerate(weights) if remaining <= weight), plan.end
        )


# -- the step -----------------------------------------------------------------------------------------------------


@each_case(("limit", "step"), [(60, 13), (57, 13), (56, 12), (13, 2), (12, 1), (8, 1), (1, 1)])
def test_the_default_step_is_a_quarter_of_the_tokens_after_the_system_prompt(limit: int, step: int) -> None:
    strategies = (OldestFirstInSteps(), OldestFirst(), OldestFirst(step=7))
    plan = create_plan(*strategies, limit=limit)
    assert (plan.steps, plan.is_exact) == ([step, 0, 7], False)
    assert create_plan(OldestFirst(), limit=limit).is_exact
    assert create_plan(*strategies, limit=999).with_limit(limit).steps == plan.steps


@pytest.mark.parametrize("recent", [0, 4, 11])
def test_a_unit_is_too_new_from_the_first_unit_to_the_number_of_units(recent: int) -> None:
    class Recent(ShorteningStrategy):
        def recent(self, units: Units) -> int:
            return recent

    plan = create_plan(Recent(range(1, 11), step=10), ChosenUnits([]))
    line = sum(WEIGHTS[1:recent]) // 10 * 10
    ends = [sum(WEIGHTS[1 : number + 1]) for number in range(1, 11)]
    assert plan.end == sum(end <= line for end in ends)


@each_case("recent", [-1, 12, None, "1", 2.0])
def test_an_invalid_index_of_the_first_unit_that_is_too_new_is_an_error(recent: Any) -> None:
    class Recent(ChosenUnits):
        def recent(self, units: Units) -> int:
            return cast("int", recent)

    with pytest.raises(OptionError, match=r"recent\(\) must return an integer from 0 to 11"):
        assert create_plan(Recent([1], step=10)).end


# -- the order of the edits ---------------------------------------------------------------------------------------


@each_case(
    ("strategy", "units"),
    [
        (ChosenUnits([0]), "protected units, got [0]"),
        (ChosenUnits([3]), "protected units, got [3]"),
        (ChosenUnits([1, 1]), "repeated units, got [1]"),
        (ChosenUnits([-1, 1]), "unknown units, got [-1]"),
        (ChosenUnits([1, 4]), "unknown units, got [4]"),
        (ChosenUnits(range(-1, 1)), "protected units, got [0]"),
        (ShorteningStrategy(range(2, 5)), "unknown units, got [4]"),
        (ShorteningStrategy(range(4, 6)), "unknown units, got [4, 5]"),
    ],
)
def test_an_invalid_order_is_an_error_with_the_indexes_of_the_units(strategy: CutStrategy, units: str) -> None:
    with pytest.raises(OptionError) as caught:
        assert create_plan(strategy, weights=[5, 10, 10, 10]).end
    assert units in str(caught.value)


def test_a_range_that_starts_before_the_first_unit_is_an_error() -> None:
    units = Units()
    units.extend([text_msg("Bob", "1"), text_msg("Al", "1"), text_msg("Bob", "1")], lambda msg: 1, frozenset())
    assert CutPlan([ChosenUnits(range(2))], units, 10, lambda msg: 1).end == 2
    with pytest.raises(OptionError, match="unknown units"):
        assert CutPlan([ChosenUnits(range(-1, 2))], units, 10, lambda msg: 1).end


@pytest.mark.parametrize(
    ("step", "order"),
    [
        (0, [3, 8, 9, 1, 2, 4, 5, 6, 7, 10, 11]),
        (10, [3, 8, 9, 1, 2, 4, 5, 6, 7, 10, 11]),
        (40, [3, 8, 1, 2, 4, 5, 6, 7, 9, 10, 11]),
    ],
)
def test_the_tools_in_cut_first_are_cut_first_up_to_the_last_grid_line(step: int, order: list[int]) -> None:
    """Each unit has ten tokens, so that unit n ends at 10 * n tokens. The newest unit begins at 110 tokens."""
    msgs: list[Msg] = [text_msg("system", "Be brief.", "system")]
    for number in range(1, 13):
        tool = "look" if number in (3, 8, 9) else "search"
        msgs += [call(str(number), tool=tool), result(str(number))]
    units = Units()
    units.extend(msgs, lambda msg: 5 * bool(msg.features & (Feature.CALL | Feature.RESULT)), frozenset())
    plan = CutPlan([OldestFirst(step=step)], units, 60, lambda msg: 5, frozenset(["look"]))
    dropped: list[int] = []
    for count in map(EditCount, range(1, plan.end + 1)):
        numbers = [number for change in plan.changes(count) for number in range(change.first, change.stop)]
        dropped += {*numbers} - {*dropped}
        assert len(numbers) == count
    assert dropped == order


@each_case(
    ("strategies", "cut_first", "is_stable"),
    [
        ([OldestFirst()], [], True),
        ([OldestFirstInSteps()], [], True),
        ([CutStrategy()], [], False),
        ([OldestFirst()], ["look"], False),
        ([OldestFirst(), ClearResults()], [], False),
        ([ClearResults(), OldestFirst()], [], False),
    ],
)
def test_a_plan_is_stable_if_new_messages_only_add_edits_at_its_end(
    strategies: Sequence[CutStrategy], cut_first: Sequence[str], *, is_stable: bool
) -> None:
    plan = CutPlan(strategies, create_units(WEIGHTS), 60, lambda msg: 1, frozenset(cut_first))
    assert plan.order_is_stable == is_stable


def test_neighboring_units_are_dropped_without_another_estimate() -> None:
    def refuse(msg: Msg) -> int:
        raise AssertionError

    plan = CutPlan([OldestFirst()], create_units(WEIGHTS), 60, refuse)
    assert plan.weight(plan.end) == WEIGHTS[-1]
    with pytest.raises(AssertionError):
        CutPlan([ChosenUnits([2, 5])], create_units(WEIGHTS), 60, refuse).weight(EditCount(1))


class RefusingStrategy(CutStrategy):
    """Strategy that must not be asked for edits."""

    def order(self, units: Units) -> Sequence[int]:
        raise AssertionError


def test_a_strategy_is_asked_for_edits_only_if_those_of_the_earlier_strategies_are_not_enough() -> None:
    plan = create_plan(ChosenUnits([2, 3]), RefusingStrategy())
    assert [plan.weight(EditCount(count)) for count in range(3)] == [102, 99, 89]
    assert [plan.count_for(weight) for weight in (103, 102, 99, 89)] == [0, 0, 1, 2]
    assert [plan.position_from(EditCount(count)) for count in range(3)] == [0, 1, 2]
    assert [plan.position_before(EditCount(count)) for count in range(3)] == [-1, 0, 1]
    assert [len(plan.changes(EditCount(count))) for count in range(3)] == [0, 1, 1]
    with pytest.raises(AssertionError):
        plan.weight(EditCount(3))


def test_an_uncut_conversation_needs_no_edits_of_any_strategy() -> None:
    plan = create_plan(RefusingStrategy())
    assert plan.weight(EditCount(0)) == plan.weight(NO_EDITS) == HISTORY_WEIGHT
    assert plan.count_for(HISTORY_WEIGHT) == plan.position_from(EditCount(0)) == NO_EDITS == 0
    assert plan.position_before(EditCount(0)) == -1


# -- changes ------------------------------------------------------------------------------------------------------


@each_case(
    ("strategies", "weights"),
    [
        ((ShorteningStrategy([1, 2]), OldestFirst()), [100, 91, 72, 71, 70, 40]),
        ((ShorteningStrategy(range(1, 4)),), [100, 91, 72, 43]),
        ((ShorteningStrategy([3]), ChosenUnits([3, 1])), [100, 71, 70, 60]),
        ((ChosenUnits([2]), ShorteningStrategy([2, 3])), [100, 80, 51]),
        ((LengtheningStrategy([1, 3]), ChosenUnits([3])), [100, 100, 100, 1]),
    ],
)
def test_an_edit_saves_the_tokens_that_it_removes(strategies: Sequence[CutStrategy], weights: list[int]) -> None:
    plan = create_plan(*strategies, weights=[5, 10, 20, 30, 40])
    assert [plan.weight(EditCount(count)) for count in range(plan.end + 1)] == weights


@each_case(
    ("strategies", "changes"),
    [
        ([ChosenUnits([1, 3, 4])], [(1, 2, ()), (3, 5, ())]),
        ([ChosenUnits([4, 3, 2])], [(2, 5, ())]),
        ([OldestFirst()], [(1, 10, ())]),
        ([OldestFirst(keep_task=True), OldestFirst()], [(1, 10, ())]),
        ([ShorteningStrategy([1]), ChosenUnits([3, 4])], [(1, 2, (SHORT,)), (3, 5, ())]),
        ([ShorteningStrategy([2]), ChosenUnits([1, 3])], [(1, 2, ()), (2, 3, (SHORT,)), (3, 4, ())]),
        ([ShorteningStrategy([2, 3]), ChosenUnits([2])], [(2, 3, ()), (3, 4, (SHORT,))]),
    ],
)
def test_neighboring_dropped_units_are_one_change(strategies: Sequence[CutStrategy], changes: list[Any]) -> None:
    plan = create_plan(*strategies)
    assert plan.changes(plan.end) == changes


def test_a_cut_without_edits_has_no_changes() -> None:
    assert create_plan(OldestFirst()).changes(NO_EDITS) == []
    assert create_plan(ChosenUnits([])).changes(NO_EDITS) == []


def test_an_edit_that_returns_the_same_messages_is_no_change() -> None:
    class UnchangingStrategy(ChosenUnits):
        def edit(self, unit: tuple[Msg, ...], newest: bool = False) -> Sequence[Msg]:
            return unit

    plan = create_plan(UnchangingStrategy([1, 2]), ShorteningStrategy([2]), ChosenUnits([4]))
    assert plan.changes(EditCount(2)) == []
    assert plan.changes(plan.end) == [(2, 3, (SHORT,)), (4, 5, ())]


def test_an_edit_knows_the_newest_unit() -> None:
    class Newest(ChosenUnits):
        def edit(self, unit: tuple[Msg, ...], newest: bool = False) -> Sequence[Msg]:
            return [LONG if newest else SHORT]

    plan = create_plan(Newest([1, 9, 10]))
    assert plan.changes(plan.end) == [(1, 2, (SHORT,)), (9, 10, (SHORT,)), (10, 11, (LONG,))]


def test_the_dropped_units_of_each_strategy_are_known() -> None:
    first, second = ChosenUnits([4, 2]), ChosenUnits([3])
    plan = create_plan(first, second)
    assert [plan.dropped_by(EditCount(count), first) for count in range(4)] == [[], [4], [2, 4], [2, 4]]
    assert [plan.dropped_by(EditCount(count), second) for count in range(4)] == [[], [], [], [3]]
