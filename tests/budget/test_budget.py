"""Tests of budgets: which messages a cut drops, and how many requests are counted."""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping, Sequence
from math import log2
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from agentkit import (
    Budget,
    BudgetError,
    CharacterTokenCounter,
    CutStrategy,
    LocalTokenCounter,
    Msg,
    MultiAgentHistory,
    OldestFirst,
    OldestFirstInSteps,
    OptionError,
    Plan,
    TextBlock,
    TokenCounterBase,
    ToolResultBlock,
    Units,
)
from agentkit.budget.units import Weigher
from agentkit.provider_kit import LegalConversation, Request, RequestSpec, WireLayout
from tests.cases import each_case
from tests.conftest import EchoFormatter, call, dispositions, get_turns, result, text_msg

pytestmark = pytest.mark.anyio


class TenTokenCounter(LocalTokenCounter):
    """Local counter of ten tokens per message."""

    def __init__(self) -> None:
        self.weighed = 0
        self.measured = 0

    def measure(self, request: Mapping[str, Any]) -> int:
        self.measured += 1
        return 10 * len(request["messages"])

    def weigh(self, msg: Msg) -> int:
        self.weighed += 1
        return 10


class RemoteTenTokenCounter(TokenCounterBase):
    """Remote counter of ten tokens per message, which counts its calls."""

    def __init__(self) -> None:
        self.asked = 0

    async def count(self, request: Mapping[str, Any]) -> int:
        self.asked += 1
        await anyio.lowlevel.checkpoint()
        return 10 * len(request["messages"])


SYSTEM = text_msg("system", "Be brief.", "system")


def messages(count: int, start: int = 0) -> list[Msg]:
    return [text_msg("Bob" if number % 2 else "Al", str(number)) for number in range(start, start + count)]


async def plan(msgs: Sequence[Msg], tokens: int, counter: TokenCounterBase | None = None, **options: Any) -> Plan:
    options.setdefault("strategy", OldestFirst())
    budget = Budget(tokens, counter or TenTokenCounter(), **options)
    return await EchoFormatter(budget=budget).plan(msgs)


def texts(outcome: Plan) -> list[str]:
    return [
        msg["content"] if isinstance(msg["content"], str) else msg["content"][0]["type"]
        for msg in get_turns(outcome)
    ]


LOCAL_AND_REMOTE = each_case("counter", [TenTokenCounter, RemoteTenTokenCounter])

# -- the options -----------------------------------------------------------------------------------------


def test_a_budget_is_created_by_position_or_by_keyword() -> None:
    counter = TenTokenCounter()
    strategy = OldestFirst(keep_task=True)
    assert Budget(100, counter, 20, strategy) == Budget(
        max_tokens=100, counter=counter, reserve=20, strategy=strategy
    )
    assert Budget(100, reserve=20).limit == 80
    assert isinstance(Budget(100).counter, CharacterTokenCounter)
    assert Budget(100).strategy == OldestFirstInSteps()


@each_case(
    ("options", "place"),
    [
        ({"max_tokens": 0}, "budget.max_tokens"),
        ({"max_tokens": -1}, "budget.max_tokens"),
        ({"max_tokens": 10.5}, "budget.max_tokens"),
        ({"max_tokens": "10"}, "budget.max_tokens"),
        ({"max_tokens": True}, "budget.max_tokens"),
        ({"max_tokens": None}, "budget.max_tokens"),
        ({"max_tokens": float("nan")}, "budget.max_tokens"),
        ({"max_tokens": 10, "reserve": -1}, "budget.reserve"),
        ({"max_tokens": 10, "reserve": 1.0}, "budget.reserve"),
        ({"max_tokens": 10, "reserve": 10}, "budget.max_tokens"),
        ({"max_tokens": 10, "reserve": 11}, "budget.max_tokens"),
        ({"max_tokens": 10, "counter": "words"}, "budget.counter"),
        ({"max_tokens": 10, "counter": TenTokenCounter}, "budget.counter"),
        ({"max_tokens": 10, "strategy": "oldest"}, "budget.strategy"),
    ],
)
def test_an_error_about_an_option_of_a_budget_has_the_name_of_the_option(
    options: dict[str, Any], place: str
) -> None:
    with pytest.raises(OptionError) as caught:
        Budget(**options)
    assert caught.value.place == place
    assert caught.value.advice.endswith(".")


@pytest.mark.parametrize("budget", [1000, "1000", Budget])
def test_the_budget_of_a_formatter_must_be_a_budget(budget: Any) -> None:
    with pytest.raises(OptionError, match="budget"):
        EchoFormatter(budget=budget)


# -- what goes and what stays ----------------------------------------------------------------------------


@LOCAL_AND_REMOTE
async def test_a_conversation_within_the_budget_is_unchanged(counter: type[Any]) -> None:
    msgs = messages(5)
    outcome = await plan(msgs, 50, counter())
    assert (outcome.tokens, outcome.cut, outcome.history) == (50, None, tuple(msgs))
    assert texts(outcome) == ["0", "1", "2", "3", "4"]
    assert set(dispositions(outcome).values()) == {"carried"}


@LOCAL_AND_REMOTE
async def test_the_oldest_messages_are_dropped_first(counter: type[Any]) -> None:
    msgs = messages(10)
    outcome = await plan(msgs, 34, counter())
    assert texts(outcome) == ["7", "8", "9"]
    assert outcome.tokens == 30
    assert outcome.history == tuple(msgs[7:])
    assert outcome.cut is not None
    assert outcome.cut.dropped == tuple(f"msgs[{number}]" for number in range(7))
    assert outcome.cut.units == 7
    assert dispositions(outcome)["msgs[6].content[0]"] == "dropped"
    assert dispositions(outcome)["msgs[7].content[0]"] == "carried"
    assert outcome.ledger.losses == []


@LOCAL_AND_REMOTE
async def test_the_system_prompt_is_never_dropped(counter: type[Any]) -> None:
    assert texts(await plan([SYSTEM, SYSTEM, *messages(10)], 40, counter())) == [
        "Be brief.",
        "Be brief.",
        "8",
        "9",
    ]


@LOCAL_AND_REMOTE
async def test_pinned_messages_keep_their_position(counter: type[Any]) -> None:
    msgs = [*messages(3), text_msg("Eve", "pinned", pinned=True), *messages(6, 4)]
    assert texts(await plan(msgs, 30, counter())) == ["pinned", "8", "9"]


@LOCAL_AND_REMOTE
async def test_the_task_is_kept_if_the_option_says_so(counter: type[Any]) -> None:
    msgs = [SYSTEM, text_msg("Friday", "Hello.", "assistant"), text_msg("Bob", "the task"), *messages(6)]
    remaining = await plan(msgs, 40, counter(), strategy=OldestFirst(keep_task=True))
    assert texts(remaining) == ["Be brief.", "the task", "4", "5"]
    assert texts(await plan(msgs, 40, counter())) == ["Be brief.", "3", "4", "5"]


@LOCAL_AND_REMOTE
async def test_tool_calls_are_dropped_together_with_their_results(counter: type[Any]) -> None:
    msgs = [*messages(1), call("a", "b"), result("a"), result("b"), *messages(2, 1)]
    remaining = {limit: texts(await plan(msgs, limit, counter())) for limit in (60, 50, 40, 30, 20)}
    assert remaining[60] == ["0", "tool_use", "tool_result", "tool_result", "1", "2"]
    assert remaining[50] == ["tool_use", "tool_result", "tool_result", "1", "2"]
    assert remaining[40] == remaining[30] == remaining[20] == ["1", "2"]


@LOCAL_AND_REMOTE
@each_case("where", [0, 1, 2])
async def test_a_pinned_message_keeps_its_tool_calls_and_results(where: int, counter: type[Any]) -> None:
    exchange = [call("a", "b", pinned=where == 0), result("a", pinned=where == 1), result("b", pinned=where == 2)]
    assert texts(await plan([*messages(3), *exchange, *messages(5)], 40, counter())) == [
        "tool_use",
        "tool_result",
        "tool_result",
        "4",
    ]


async def test_a_pinned_call_without_a_result_keeps_its_added_result() -> None:
    assert texts(await plan([call("a", pinned=True), *messages(5)], 30)) == ["tool_use", "tool_result", "4"]


@LOCAL_AND_REMOTE
async def test_the_newest_unit_is_never_dropped(counter: type[Any]) -> None:
    msgs = [*messages(5), call("a", "b"), result("a"), result("b")]
    assert texts(await plan(msgs, 30, counter())) == ["tool_use", "tool_result", "tool_result"]


@LOCAL_AND_REMOTE
async def test_the_reserve_is_not_used_by_the_prompt(counter: type[Any]) -> None:
    assert len(texts(await plan(messages(10), 60, counter(), reserve=25))) == 3


@LOCAL_AND_REMOTE
async def test_a_larger_budget_keeps_every_message_that_a_smaller_budget_keeps(counter: type[Any]) -> None:
    msgs = [SYSTEM, *messages(6), call("a"), result("a"), text_msg("Eve", "pin", pinned=True), *messages(6, 6)]
    remaining = [set(texts(await plan(msgs, limit, counter()))) for limit in range(30, 170, 10)]
    assert all(small <= large for small, large in itertools.pairwise(remaining))


@LOCAL_AND_REMOTE
@each_case("limit", [30, 55, 80])
async def test_a_second_cut_changes_nothing(limit: int, counter: type[Any]) -> None:
    msgs = [SYSTEM, *messages(4), call("a"), result("a"), *messages(4, 4), call("b")]
    once = await plan(msgs, limit, counter())
    again = await plan(once.history, limit, counter())
    assert again.request == once.request
    assert again.cut is None
    assert again.history == once.history


async def test_the_cut_does_not_depend_on_earlier_plans_of_the_formatter() -> None:
    msgs = messages(40)
    formatter = EchoFormatter(budget=Budget(100, TenTokenCounter(), strategy=OldestFirst()))
    for end in range(1, 41):
        warm = await formatter.plan(msgs[:end])
        cold = await plan(msgs[:end], 100)
        assert warm.request == cold.request
        assert warm.cut == cold.cut


async def test_a_conversation_that_repair_empties_does_not_affect_the_next_plan() -> None:
    formatter = EchoFormatter(budget=Budget(40, TenTokenCounter()), on_loss="drop")
    assert (await formatter.plan([result("lost")])).ledger.losses
    assert texts(await formatter.plan(messages(2))) == ["0", "1"]


async def test_two_conversations_of_one_formatter_are_independent() -> None:
    formatter = EchoFormatter(budget=Budget(30, TenTokenCounter(), strategy=OldestFirst()))
    first, second = messages(10), messages(10, 50)
    assert texts(await formatter.plan(first)) == ["7", "8", "9"]
    assert texts(await formatter.plan(second)) == ["57", "58", "59"]
    assert texts(await formatter.plan(first[:2])) == ["0", "1"]
    assert texts(await formatter.plan([first[0], *second[1:4], *first[8:]])) == ["53", "8", "9"]


async def test_a_cut_does_not_change_the_input() -> None:
    msgs = [SYSTEM, *messages(10), call("a")]
    before = [msg.to_dict() for msg in msgs]
    await plan(msgs, 40)
    assert [msg.to_dict() for msg in msgs] == before


async def test_a_cut_conversation_has_a_history_frame() -> None:
    formatter = EchoFormatter(history=MultiAgentHistory(), budget=Budget(120))
    outcome = await formatter.plan([SYSTEM, *(text_msg(f"U{n}", "word " * 20) for n in range(20))])
    read = MultiAgentHistory().read(get_turns(outcome)[1]["content"])
    assert 0 < len(read) < 20
    assert read[-1][0] == "U19"
    assert outcome.tokens is not None
    assert outcome.tokens <= 120


async def test_tools_and_the_output_schema_count_toward_the_budget() -> None:
    msgs = [text_msg("Bob", "word " * 20) for _ in range(10)]
    formatter = EchoFormatter(budget=Budget(300))
    tool: dict[str, Any] = {"name": "search", "description": "x" * 400, "parameters": {}}
    bare = await formatter.plan(msgs)
    laden = await formatter.plan(msgs, tools=[tool])
    assert len(get_turns(laden)) < len(get_turns(bare))
    assert laden.tokens is not None
    assert laden.tokens <= 300


async def test_lower_does_not_apply_the_budget() -> None:
    outcome = EchoFormatter(budget=Budget(30, TenTokenCounter())).lower(messages(10))
    assert len(get_turns(outcome)) == 10
    assert (outcome.tokens, outcome.cut) == (None, None)


# -- nothing fits ----------------------------------------------------------------------------------------


@LOCAL_AND_REMOTE
@each_case("reserve", [6, 100])
async def test_the_error_has_the_limit_of_the_prompt(counter: type[Any], reserve: int) -> None:
    with pytest.raises(BudgetError) as caught:
        await plan([SYSTEM, *messages(5)], 19 + reserve, counter(), reserve=reserve)
    assert (caught.value.limit, caught.value.needed) == (19, 20)


@LOCAL_AND_REMOTE
@each_case("limit", [39, 10, 1])
async def test_the_error_has_the_smallest_request_and_its_size(limit: int, counter: type[Any]) -> None:
    msgs = [SYSTEM, *messages(3), text_msg("Eve", "pin", pinned=True), *messages(3), call("a"), result("a")]
    with pytest.raises(BudgetError) as caught:
        await plan(msgs, limit, counter())
    assert (caught.value.limit, caught.value.needed) == (limit, 40)
    assert caught.value.required == ("msgs[0]", "msgs[4]", "msgs[8]", "msgs[9]")
    assert caught.value.place == "msgs[9]"
    assert len(texts(await plan(msgs, 40, counter()))) == 4


async def test_the_error_with_keep_task_has_the_task() -> None:
    with pytest.raises(BudgetError) as caught:
        await plan([SYSTEM, *messages(9)], 25, strategy=OldestFirst(keep_task=True))
    assert (caught.value.needed, caught.value.required) == (30, ("msgs[0]", "msgs[1]", "msgs[9]"))


@LOCAL_AND_REMOTE
async def test_one_message_that_is_too_large_is_an_error(counter: type[Any]) -> None:
    with pytest.raises(BudgetError) as caught:
        await plan(messages(1), 9, counter())
    assert (caught.value.needed, caught.value.required) == (10, ("msgs[0]",))


# -- what it costs -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [10, 100, 1000])
@pytest.mark.parametrize("share", [0.05, 0.5, 0.95])
async def test_a_remote_counter_is_called_a_logarithmic_number_of_times(count: int, share: float) -> None:
    counter = RemoteTenTokenCounter()
    outcome = await plan(messages(count), max(10, int(10 * count * share)), counter)
    assert len(get_turns(outcome)) == max(1, int(count * share))
    assert counter.asked <= log2(count) + 4


async def test_a_remote_counter_is_called_once_if_the_conversation_fits() -> None:
    counter = RemoteTenTokenCounter()
    await plan(messages(100), 1000, counter)
    assert counter.asked == 1


class CountingFormatter(EchoFormatter):
    """Formatter that counts its conversions."""

    converted = 0

    def convert(self, legal: LegalConversation, task: RequestSpec) -> Request:
        type(self).converted += 1
        return super().convert(legal, task)


@pytest.mark.parametrize("count", [10, 100, 1000])
async def test_a_local_counter_measures_few_requests(count: int) -> None:
    CountingFormatter.converted = 0
    counter = TenTokenCounter()
    await CountingFormatter(budget=Budget(50, counter)).plan(messages(count))
    assert CountingFormatter.converted <= 3
    assert counter.measured <= 3


class RemoteEstimate(RemoteTenTokenCounter):
    """Remote counter with the numbers of the estimate by characters."""

    needs_layout = True

    async def count(self, request: Mapping[str, Any], layout: Any = None) -> int:
        await super().count(request)
        return CharacterTokenCounter().measure(request, layout)


class DeterministicRemoteEstimate(RemoteEstimate):
    deterministic = True


@pytest.mark.parametrize(("counter", "most"), [(RemoteEstimate, 40), (DeterministicRemoteEstimate, 25)])
async def test_a_request_that_was_too_large_is_not_counted_again(
    counter: type[RemoteTenTokenCounter], most: int
) -> None:
    """The local counter is always deterministic, the remote counter only if it declares that it is."""
    CountingFormatter.converted, remote = 0, counter()
    msgs = [text_msg("Bob" if number % 2 else "Al", "word " * 40) for number in range(120)]
    formatter = CountingFormatter(budget=Budget(3_000, remote, strategy=OldestFirstInSteps(step=500)))
    for end in range(100, 120):
        await formatter.plan(msgs[:end])
    assert remote.asked <= most
    assert CountingFormatter.converted <= most + 26


async def test_a_new_message_is_weighed_once() -> None:
    counter, msgs = TenTokenCounter(), messages(200)
    formatter = EchoFormatter(budget=Budget(500, counter))
    await formatter.plan(msgs[:100])
    before = counter.weighed
    for end in range(101, 201):
        await formatter.plan(msgs[:end])
    assert counter.weighed - before == 100


# -- units and strategies of one's own -------------------------------------------------------------------


def units(msgs: Sequence[Msg]) -> Units:
    return Weigher(TenTokenCounter()).units(list(msgs))


def test_units_are_messages_or_tool_calls_with_their_results() -> None:
    msgs = [SYSTEM, *messages(1), call("a", "b"), result("a"), result("b", pinned=True), *messages(1)]
    outcome = units(msgs)
    assert len(outcome) == 4
    assert [outcome.weight(number) for number in range(4)] == [10, 10, 30, 10]
    assert outcome.unit(2) == msgs[2:5]
    assert outcome.unit(3) == msgs[5:]
    assert (outcome.system, outcome.pinned) == (1, [2])


class ToolsFirst(CutStrategy):
    """Strategy that drops tool calls with their results first."""

    def order(self, units: Units) -> Sequence[int]:
        free = [number for number in range(len(units)) if number not in self.protected(units)]
        return sorted(free, key=lambda number: not units.unit(number)[0].tool_uses)


class HeaviestFirst(CutStrategy):
    """Strategy that drops the units with the most tokens first."""

    def order(self, units: Units) -> Sequence[int]:
        return sorted(super().order(units), key=lambda number: -units.weight(number))


@LOCAL_AND_REMOTE
async def test_a_custom_strategy_selects_the_units_to_drop_first(counter: type[Any]) -> None:
    msgs = [*messages(2), call("a"), result("a"), *messages(2, 2)]
    assert texts(await plan(msgs, 40, counter(), strategy=ToolsFirst())) == ["0", "1", "2", "3"]
    assert texts(await plan(msgs, 30, counter(), strategy=ToolsFirst())) == ["1", "2", "3"]
    assert texts(await plan(msgs, 60, counter(), strategy=ToolsFirst())) == texts(await plan(msgs, 60, counter()))


async def test_a_custom_strategy_can_use_the_weights_of_units() -> None:
    msgs = [*messages(2), call("a"), result("a"), *messages(2, 2)]
    assert texts(await plan(msgs, 45, strategy=HeaviestFirst())) == ["0", "1", "2", "3"]


@LOCAL_AND_REMOTE
async def test_the_base_strategy_drops_the_oldest_messages_first(counter: type[Any]) -> None:
    assert texts(await plan([SYSTEM, *messages(9)], 30, counter(), strategy=CutStrategy())) == [
        "Be brief.",
        "7",
        "8",
    ]


def _strategy_with_order(numbers: Sequence[int]) -> CutStrategy:
    class FixedStrategy(CutStrategy):
        def order(self, units: Units) -> Sequence[int]:
            return numbers

    return FixedStrategy()


@LOCAL_AND_REMOTE
@each_case("numbers", [[0], [99], [-1], [1, 1], [9], range(10), range(10, 11), [1, 2, 0]])
async def test_a_strategy_that_drops_a_protected_unit_is_an_error(
    numbers: Sequence[int], counter: type[Any]
) -> None:
    with pytest.raises(OptionError) as caught:
        await plan([SYSTEM, *messages(9)], 40, counter(), strategy=_strategy_with_order(numbers))
    assert caught.value.place == "budget.strategy"


async def test_a_custom_strategy_can_limit_the_units_to_drop() -> None:
    assert texts(await plan([SYSTEM, *messages(4)], 40, strategy=_strategy_with_order([2]))) == [
        "Be brief.",
        "0",
        "2",
        "3",
    ]
    with pytest.raises(BudgetError) as caught:
        await plan([SYSTEM, *messages(4)], 30, strategy=_strategy_with_order([2]))
    assert caught.value.needed == 40


async def test_the_character_estimate_keeps_a_request_within_the_limit() -> None:
    counter = CharacterTokenCounter()
    msgs: list[Msg] = []
    for number in range(60):
        msgs.append(text_msg("Bob", "lorem ipsum 漢字 " * (number % 7)))
        msgs.append(call(f"c{number}"))
        msgs.append(Msg("s", (ToolResultBlock(f"c{number}", "n", (TextBlock("x" * number * 5),)),), "system"))
    for limit in (200, 500, 2000):
        outcome = await plan(msgs, limit, counter)
        assert outcome.tokens == counter.measure(outcome.request, WireLayout()) <= limit
        json.dumps(outcome.request)
        bigger = outcome.cut.units if outcome.cut else 0
        assert bigger > 0
