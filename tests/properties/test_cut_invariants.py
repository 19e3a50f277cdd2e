"""Invariants of cuts, over generated conversations, targets, policies and pipelines.

`AGENTKIT_PROFILE=deep` runs each property over fifty times as many conversations, in another order each time.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio.lowlevel
import pytest
from hypothesis import event, given
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

from agentkit import (
    Budget,
    BudgetError,
    CharacterTokenCounter,
    ClearResults,
    CutStrategy,
    Disposition,
    DropMedia,
    HistoryPolicy,
    ImageBlock,
    Msg,
    OldestFirst,
    OldestFirstInSteps,
    Plan,
    ShrinkResults,
    Summarize,
    TextBlock,
    ThinkingBlock,
    TokenCounterBase,
    ToolResultBlock,
    ToolUseBlock,
    URLSource,
    dump_messages,
    load_messages,
    load_provider,
)
from agentkit.tokens.counters import count_request
from tests.conversations import (
    OnLoss,
    Target,
    histories,
    history_policies,
    losses,
    targets,
    valid_histories,
)
from tests.profiles import examples
from tests.properties.test_invariants import (
    JSONCounter,
    as_json,
    case,
    first_change,
    places,
    planned,
    problems,
    protected,
    repaired,
    turns_of,
    waited,
    without_end,
)

# -- strategies ------------------------------------------------------------------------------------------------


class Elsewhere(TokenCounterBase):
    """A counter that has to be waited for, and disagrees with the estimate by a factor."""

    def __init__(self, percent: int) -> None:
        self.percent = percent

    def __repr__(self) -> str:
        return f"Elsewhere({self.percent})"

    needs_layout = True

    async def count(self, request: Mapping[str, Any], provider: Any = None) -> int:
        await anyio.lowlevel.checkpoint()
        return -(-CharacterTokenCounter().measure(request, provider) * self.percent // 100)


counters: st.SearchStrategy[TokenCounterBase] = st.one_of(
    st.sampled_from((CharacterTokenCounter(), CharacterTokenCounter(media_tokens=7), JSONCounter())),
    st.integers(60, 170).map(Elsewhere),
)
shares = st.integers(-5, 105)
steps = st.sampled_from((0, 5, 25, 60, 200, None))
fixed_steps = st.sampled_from((0, 5, 25, 60, 200))
tool_names = st.frozensets(st.sampled_from(("search", "get_weather", "", "a.b", "検索")), max_size=2)


async def summarize_shortly(msgs: Sequence[Msg]) -> str:
    """Returns a summary that depends only on the summarized messages."""
    await anyio.lowlevel.checkpoint()
    return f"({len(msgs)} messages from {msgs[0].name!r} to {msgs[-1].name!r})"


def drops(steps: st.SearchStrategy[Any]) -> st.SearchStrategy[CutStrategy]:
    return st.one_of(
        st.builds(OldestFirst, st.booleans(), steps),
        st.builds(OldestFirstInSteps, st.booleans(), steps),
    )


def edits(steps: st.SearchStrategy[Any]) -> st.SearchStrategy[CutStrategy]:
    few = st.integers(0, 2)
    return st.one_of(
        st.builds(ClearResults, few, st.sampled_from((0, 10, 200)), steps),
        st.builds(ShrinkResults, st.sampled_from((0, 20, 300)), steps),
        st.builds(DropMedia, few, steps),
    )


def summarising(steps: st.SearchStrategy[Any]) -> st.SearchStrategy[CutStrategy]:
    return st.builds(Summarize, st.just(summarize_shortly), st.just(200), steps, st.booleans())


@st.composite
def pipelines(draw: DrawFn, steps: st.SearchStrategy[Any] = steps, written: bool = True) -> list[CutStrategy]:
    """One strategy or several, at most one of which writes summaries."""
    last = [drops(steps), drops(steps), edits(steps)]
    strategies = [*draw(st.lists(st.one_of(edits(steps), drops(steps)), max_size=2))]
    strategies.append(draw(st.one_of(*last, *([summarising(steps)] if written else []))))
    return draw(st.permutations(strategies))


async def sized(
    target: Target, msgs: Sequence[Msg], policy: HistoryPolicy, loss: OnLoss, budget: Budget, share: int
) -> int:
    """Returns a limit between the smallest and the complete request, as a percentage."""
    total = await count_request(
        budget.counter, await target.formatter(policy, loss).format(msgs), target.formatter(policy).layout
    )
    least = await planned(target.formatter(policy, loss, replace(budget, max_tokens=1)), msgs)
    needed = min(least.needed, total) if isinstance(least, BudgetError) else 1
    return max(1, needed + (total - needed) * share // 100)


@st.composite
def budgets(draw: DrawFn, written: bool = True, steps: st.SearchStrategy[Any] = steps) -> Budget:
    """Strategy for a budget that still needs a limit."""
    strategy = draw(pipelines(steps, written))
    return Budget(
        1, draw(counters), strategy=strategy if len(strategy) > 1 else strategy[0],
        never_cut=draw(tool_names), cut_first=draw(tool_names),
    )  # fmt: skip


# -- every cut is valid ----------------------------------------------------------------------------------------


@examples(90)
@given(histories(8), targets, history_policies, losses, budgets(), shares)
def test_every_cut_is_legal_fits_the_budget_and_is_in_the_ledger(
    msgs: list[Msg], target: Target, policy: HistoryPolicy, loss: OnLoss, budget: Budget, share: int
) -> None:
    before = as_json(dump_messages(msgs))

    async def check() -> None:
        limit = await sized(target, msgs, policy, loss, budget, share)
        formatter = target.formatter(policy, loss, replace(budget, max_tokens=limit))
        plan = await planned(formatter, msgs)
        if isinstance(plan, BudgetError):
            event("refused")
            assert plan.limit == limit < plan.needed
            assert plan.required
            return
        assert isinstance(plan, Plan)
        event("cut" if plan.cut else "whole")
        assert plan.tokens == await count_request(budget.counter, plan.request, formatter.layout) <= limit
        assert plan.history
        assert turns_of(plan.request)
        assert not problems(target, plan.request), case(target, formatter, problems(target, plan.request))
        repaired_msgs, _ = repaired(plan.history)
        assert [*map(id, repaired_msgs)] == [*map(id, plan.history)] or not plan.cut, "an exchange is not whole"
        entries = {entry.place: entry for entry in plan.ledger.entries}
        assert [*entries] == [place for place, _ in places(msgs)]
        if plan.cut is None:
            assert not any("budget" in entry.reason for entry in entries.values())
            return
        assert plan.cut.units or plan.cut.altered, case(target, formatter, plan.cut)
        for place in plan.cut.altered:
            assert entries[place].disposition <= Disposition.SHRUNK, case(target, formatter, entries[place])
        touched = {place for place, e in entries.items() if any("budget" in r for r in (e.reason, *e.details))}
        dropped = {f"msgs[{number}]" for number in plan.cut.numbers}
        for place in touched:
            message = place.partition(".")[0]
            assert message in dropped or any(place.startswith(altered) for altered in plan.cut.altered), place

    waited(check)
    assert as_json(dump_messages(msgs)) == before


@examples(60)
@given(valid_histories(8), targets, history_policies, budgets(), shares)
def test_remaining_messages_change_only_where_a_strategy_may_edit_them(
    msgs: list[Msg], target: Target, policy: HistoryPolicy, budget: Budget, share: int
) -> None:
    async def check() -> None:
        limit = await sized(target, msgs, policy, "describe", budget, share)
        formatter = target.formatter(policy, budget=replace(budget, max_tokens=limit))
        plan = await planned(formatter, msgs)
        if not isinstance(plan, Plan):
            return
        kinds = {type(strategy) for strategy in budget.strategies}
        dropped = {*(plan.cut.numbers if plan.cut else ())}
        remaining = iter([msg for index, msg in enumerate(msgs) if index not in dropped])
        summaries = 0
        for msg in plan.history:
            if "agentkit_summary" in (msg.metadata or {}):
                summaries += 1
                continue
            old = next(remaining)
            if msg is not old:
                thinks = bool(plan.cut and plan.cut.thinking)
                assert thinks or not old.pinned
                assert _unaltered(msg, kinds, thinks) == _unaltered(old, kinds, thinks), case(
                    target, formatter, (old, msg)
                )
        assert next(remaining, None) is None
        assert not summaries or Summarize in kinds
        task = all(getattr(s, "keep_task", True) for s in budget.strategies)
        must = protected(msgs, task, policy)
        assert not must & dropped, case(target, formatter, (must, dropped))
        named = {call.id for msg in msgs for call in msg.tool_uses if call.name in budget.never_cut}
        for index in dropped:
            calls = msgs[index].tool_uses
            assert not any(call.name in budget.never_cut for call in calls), (index, named)

    waited(check)


def _unaltered(msg: Msg, kinds: set[type[CutStrategy]], thinks: bool) -> Msg:
    """Returns a message without content that strategies may remove, and without thinking that cannot be sent."""
    blocks: list[Any] = []
    for block in msg.blocks:
        if thinks and isinstance(block, ThinkingBlock):
            continue
        if isinstance(block, ToolResultBlock) and kinds & {ClearResults, ShrinkResults}:
            blocks.append(replace(block, output=""))
        elif isinstance(block, ToolResultBlock) and not isinstance(block.output, str) and DropMedia in kinds:
            blocks.append(replace(block, output=tuple(item for item in block.output if _without_medium(item))))
        elif DropMedia in kinds and _without_medium(block) is None:
            continue
        else:
            blocks.append(block)
    return replace(msg, content=tuple(blocks))


def _without_medium(block: Any) -> Any:
    """Returns None for media and for texts that replace media."""
    if isinstance(block, TextBlock) and block.text.endswith(" left out to save space]"):
        return None
    return None if block.type in ("image", "audio", "video", "document") else block


@examples(80)
@given(histories(8), targets, history_policies, losses, budgets(), shares)
def test_an_adopted_history_becomes_the_same_request_without_a_cut(
    msgs: list[Msg], target: Target, policy: HistoryPolicy, loss: OnLoss, budget: Budget, share: int
) -> None:
    async def check() -> None:
        limit = await sized(target, msgs, policy, loss, budget, share)
        final = replace(budget, max_tokens=limit)
        plan = await planned(target.formatter(policy, loss, final), msgs)
        if not isinstance(plan, Plan):
            return
        formatter = target.formatter(policy, loss, final)
        again = await planned(formatter, plan.history)
        assert isinstance(again, Plan), case(target, formatter, again)
        assert again.cut is None, case(target, formatter, (plan.cut, again.cut))
        assert as_json(again.request) == as_json(plan.request), case(target, formatter, plan.cut)

    waited(check)


@examples(60)
@given(histories(8), targets, history_policies, budgets(written=False), shares)
def test_the_plan_of_a_history_is_the_same_with_and_without_a_warm_cache(
    msgs: list[Msg], target: Target, policy: HistoryPolicy, budget: Budget, share: int
) -> None:
    async def check() -> None:
        limit = await sized(target, msgs, policy, "describe", budget, share)
        final = replace(budget, max_tokens=limit)
        warm = target.formatter(policy, budget=final)
        for stop in range(1, len(msgs)):
            await planned(warm, msgs[:stop])
        warm_plan = await planned(warm, msgs)
        two = await planned(target.formatter(policy, budget=final), load_messages(dump_messages(msgs)))
        if isinstance(warm_plan, Plan) and isinstance(two, Plan):
            assert as_json(warm_plan.request) == as_json(two.request)
            assert as_json(warm_plan.ledger.to_dict()) == as_json(two.ledger.to_dict())
            assert (warm_plan.cut, warm_plan.history) == (two.cut, two.history)
        else:
            assert str(warm_plan) == str(two)

    waited(check)


@examples(80)
@given(histories(8), targets, history_policies, budgets(False, fixed_steps), st.tuples(shares, shares))
def test_a_larger_budget_retains_a_superset(
    msgs: list[Msg], target: Target, policy: HistoryPolicy, budget: Budget, two: tuple[int, int]
) -> None:
    async def check() -> None:
        limits = [await sized(target, msgs, policy, "describe", budget, share) for share in sorted(two)]
        small, large = [
            await planned(target.formatter(policy, budget=replace(budget, max_tokens=limit)), msgs)
            for limit in limits
        ]
        if not isinstance(small, Plan):
            return
        assert isinstance(large, Plan), (limits, large)
        less, more = ({*(plan.cut.numbers if plan.cut else ())} for plan in (large, small))
        assert less <= more, case(target, target.formatter(policy), (limits, small.cut, large.cut))

    waited(check)


@examples(60)
@given(histories(8), targets, history_policies, budgets(), st.integers(-20, 60))
def test_a_budget_of_the_size_that_an_error_names_succeeds(
    msgs: list[Msg], target: Target, policy: HistoryPolicy, budget: Budget, share: int
) -> None:
    async def check() -> None:
        limit = await sized(target, msgs, policy, "describe", budget, share)
        refused = await planned(target.formatter(policy, budget=replace(budget, max_tokens=limit)), msgs)
        if isinstance(refused, BudgetError):
            event("refused")
            enough = replace(budget, max_tokens=refused.needed)
            plan = await planned(target.formatter(policy, budget=enough), msgs)
            assert isinstance(plan, Plan), case(target, target.formatter(policy), (refused, plan))

    waited(check)


# -- cuts move in steps ----------------------------------------------------------------------------------------


def grown(msgs: Sequence[Msg]) -> list[list[Msg]]:
    """Every beginning of a valid conversation in which no exchange is open."""
    histories_: list[list[Msg]] = []
    for stop in range(1, len(msgs) + 1):
        part = list(msgs[:stop])
        if [*map(id, repaired(part)[0])] == [*map(id, part)]:
            histories_.append(part)
    return histories_


def chatter(speakers: Sequence[str], lengths: Sequence[int]) -> list[Msg]:
    """A long talk in which some turns are exchanges."""
    msgs = [Msg("system", "Be brief.", "system"), Msg("Bob", "Find the library.", "user")]
    for number, (speaker, length) in enumerate(zip(speakers, lengths, strict=True)):
        text = f"{number} " + "word " * length + "."
        if speaker == "tool":
            call = ToolUseBlock(f"c{number}", "look", {"at": number})
            msgs.append(Msg("Friday", [call], "assistant"))
            msgs.append(Msg("system", [ToolResultBlock(f"c{number}", "look", text)], "system"))
        else:
            msgs.append(Msg(speaker, text, "assistant" if speaker == "Friday" else "user"))
    return msgs


talks = st.lists(
    st.tuples(st.sampled_from(("Bob", "Friday", "Alice", "tool")), st.integers(0, 60)), min_size=10, max_size=40
).map(lambda turns: chatter([name for name, _ in turns], [length for _, length in turns]))


@examples(40)
@given(
    talks,
    targets,
    history_policies,
    st.one_of(st.just(CharacterTokenCounter()), st.integers(60, 170).map(Elsewhere)),
    st.integers(500, 900),
    st.sampled_from((None, 60, 120)),
)
def test_a_growing_conversation_is_cut_rarely_and_only_grows_between_two_cuts(
    msgs: list[Msg], target: Target, policy: HistoryPolicy, counter: TokenCounterBase, limit: int, step: int | None
) -> None:
    async def check() -> None:
        formatter = target.formatter(policy, budget=Budget(limit, counter, strategy=OldestFirstInSteps(step=step)))
        cuts: list[tuple[int, ...]] = []
        last: Plan | None = None
        for part in grown(msgs):
            plan = await planned(formatter, part)
            if not isinstance(plan, Plan):
                return
            cut = tuple(plan.cut.numbers) if plan.cut else ()
            if last is not None and cut == cuts[-1]:
                old = without_end(turns_of(last.request), policy, last)
                fault = first_change(
                    old, turns_of(plan.request), formatter.capabilities().turns.text_joining != "apart"
                )
                assert not fault, case(target, formatter, (fault, cut))
            elif last is not None:
                assert {*cuts[-1]} <= {*cut}, case(target, formatter, (len(part), cuts[-1], cut))
            cuts.append(cut)
            last = plan
        total = sum(map(CharacterTokenCounter().weigh, msgs))
        distinct = len(dict.fromkeys(cuts))
        event(f"{distinct} cuts")
        assert distinct <= total / (step or limit // 4) + 1, (distinct, total, cuts)

    waited(check)


# -- media of dropped messages are not loaded ------------------------------------------------------------------


class Opened:
    """The pictures that were opened while it looked: an audit hook sees every thread's `open`."""

    def __init__(self) -> None:
        self.names: set[str] = set()
        self.looking = False
        sys.addaudithook(self.see)

    def see(self, event: str, args: Any) -> None:
        if self.looking and event == "open" and str(args[0]).endswith(".png"):
            self.names.add(Path(args[0]).name)


_OPENED = Opened()


@pytest.mark.parametrize(
    "counter",
    [CharacterTokenCounter(), Elsewhere(100), Elsewhere(60), Elsewhere(170)],
    ids=["local", "equal", "low", "high"],
)
@pytest.mark.parametrize(
    "strategies",
    [
        [OldestFirst()], [OldestFirstInSteps()], [OldestFirstInSteps(), ShrinkResults()], [DropMedia()],
        [DropMedia(step=0), OldestFirst()], [ClearResults(), DropMedia(), OldestFirstInSteps()],
        [Summarize(summarize_shortly, 200)],
    ],
    ids=lambda strategies: "+".join(type(strategy).__name__ for strategy in strategies),
)  # fmt: skip
@pytest.mark.parametrize("provider", ["openai", "anthropic", "ollama"])
def test_a_file_of_a_dropped_message_is_not_opened(
    provider: str, strategies: list[CutStrategy], counter: TokenCounterBase, tmp_path: Path
) -> None:
    data = b"\x89PNG\r\n\x1a\n" + bytes(40)
    msgs = [Msg("system", "Be brief.", "system"), Msg("Bob", "Look at these.", "user")]
    for number in range(12):
        (tmp_path / f"{number}.png").write_bytes(data)
        picture = ImageBlock(URLSource((tmp_path / f"{number}.png").as_uri()))
        msgs.append(Msg("Bob", [TextBlock(f"{number} " + "word " * 40), picture], "user"))
    msgs.append(Msg("Bob", "What do they have in common?", "user"))
    formatter = load_provider(provider).chat_formatter(
        budget=Budget(5_500, counter, strategy=strategies), media_roots=[tmp_path]
    )
    _OPENED.names.clear()
    _OPENED.looking = True
    try:
        plan = waited(lambda: formatter.plan(msgs))
    finally:
        _OPENED.looking = False
    remaining = {Path(block.source.url).name for msg in plan.history for block in msg.media}
    assert plan.cut is not None
    assert remaining
    assert _OPENED.names == remaining
