"""Invariants of cuts, over generated conversations, targets, policies and strategies.

`AGENTKIT_PROFILE=deep` tests fifty times as many conversations, and other conversations in each run.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import anyio.lowlevel
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
from tests.cases import each_case
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
    describe_case,
    find_change,
    find_problems,
    get_places,
    get_protected,
    get_turns,
    remove_end,
    repair,
    run_async,
    try_plan,
)

# -- strategies ------------------------------------------------------------------------------------------------


class ScaledCounter(TokenCounterBase):
    """Counter that suspends the task and returns the estimate times a factor."""

    def __init__(self, percent: int) -> None:
        self.percent = percent

    def __repr__(self) -> str:
        return f"ScaledCounter({self.percent})"

    needs_layout = True

    async def count(self, request: Mapping[str, Any], provider: Any = None) -> int:
        await anyio.lowlevel.checkpoint()
        return -(-CharacterTokenCounter().measure(request, provider) * self.percent // 100)


counters: st.SearchStrategy[TokenCounterBase] = st.one_of(
    st.sampled_from((CharacterTokenCounter(), CharacterTokenCounter(media_tokens=7), JSONCounter())),
    st.integers(60, 170).map(ScaledCounter),
)
shares = st.integers(-5, 105)
steps = st.sampled_from((0, 5, 25, 60, 200, None))
fixed_steps = st.sampled_from((0, 5, 25, 60, 200))
tool_names = st.frozensets(st.sampled_from(("search", "get_weather", "", "a.b", "検索")), max_size=2)


async def summarize_shortly(msgs: Sequence[Msg]) -> str:
    """Returns a summary that depends only on the summarized messages."""
    await anyio.lowlevel.checkpoint()
    return f"({len(msgs)} messages from {msgs[0].name!r} to {msgs[-1].name!r})"


def dropping_strategies(steps: st.SearchStrategy[Any]) -> st.SearchStrategy[CutStrategy]:
    return st.one_of(
        st.builds(OldestFirst, st.booleans(), steps),
        st.builds(OldestFirstInSteps, st.booleans(), steps),
    )


def editing_strategies(steps: st.SearchStrategy[Any]) -> st.SearchStrategy[CutStrategy]:
    few = st.integers(0, 2)
    return st.one_of(
        st.builds(ClearResults, few, st.sampled_from((0, 10, 200)), steps),
        st.builds(ShrinkResults, st.sampled_from((0, 20, 300)), steps),
        st.builds(DropMedia, few, steps),
    )


def summarizing_strategies(steps: st.SearchStrategy[Any]) -> st.SearchStrategy[CutStrategy]:
    return st.builds(Summarize, st.just(summarize_shortly), st.just(200), steps, st.booleans())


@st.composite
def pipelines(draw: DrawFn, steps: st.SearchStrategy[Any] = steps, written: bool = True) -> list[CutStrategy]:
    """Draws one or more strategies. At most one of them writes summaries."""
    last = [dropping_strategies(steps), dropping_strategies(steps), editing_strategies(steps)]
    strategies = [*draw(st.lists(st.one_of(editing_strategies(steps), dropping_strategies(steps)), max_size=2))]
    strategies.append(draw(st.one_of(*last, *([summarizing_strategies(steps)] if written else []))))
    return draw(st.permutations(strategies))


async def get_limit(
    target: Target, msgs: Sequence[Msg], policy: HistoryPolicy, loss: OnLoss, budget: Budget, share: int
) -> int:
    """Returns a token limit: 0 % is the smallest possible request, 100 % the complete request."""
    total = await count_request(
        budget.counter, await target.formatter(policy, loss).format(msgs), target.formatter(policy).layout
    )
    least = await try_plan(target.formatter(policy, loss, replace(budget, max_tokens=1)), msgs)
    needed = min(least.needed, total) if isinstance(least, BudgetError) else 1
    return max(1, needed + (total - needed) * share // 100)


@st.composite
def budgets(draw: DrawFn, written: bool = True, steps: st.SearchStrategy[Any] = steps) -> Budget:
    """Draws budgets with a limit of 1 token, which a test replaces."""
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
        limit = await get_limit(target, msgs, policy, loss, budget, share)
        formatter = target.formatter(policy, loss, replace(budget, max_tokens=limit))
        plan = await try_plan(formatter, msgs)
        if isinstance(plan, BudgetError):
            event("refused")
            assert plan.limit == limit < plan.needed
            assert plan.required
            return
        assert isinstance(plan, Plan)
        event("cut" if plan.cut else "complete")
        assert plan.tokens == await count_request(budget.counter, plan.request, formatter.layout) <= limit
        assert plan.history
        assert get_turns(plan.request)
        assert not find_problems(target, plan.request), describe_case(
            target, formatter, find_problems(target, plan.request)
        )
        repaired_msgs, _ = repair(plan.history)
        assert [*map(id, repaired_msgs)] == [*map(id, plan.history)] or not plan.cut, "an exchange is incomplete"
        entries = {entry.place: entry for entry in plan.ledger.entries}
        assert [*entries] == [place for place, _ in get_places(msgs)]
        if plan.cut is None:
            assert not any("budget" in entry.reason for entry in entries.values())
            return
        assert plan.cut.units or plan.cut.altered, describe_case(target, formatter, plan.cut)
        for place in plan.cut.altered:
            assert entries[place].disposition <= Disposition.SHRUNK, describe_case(
                target, formatter, entries[place]
            )
        touched = {place for place, e in entries.items() if any("budget" in r for r in (e.reason, *e.details))}
        dropped = {f"msgs[{number}]" for number in plan.cut.numbers}
        for place in touched:
            message = place.partition(".")[0]
            assert message in dropped or any(place.startswith(altered) for altered in plan.cut.altered), place

    run_async(check)
    assert as_json(dump_messages(msgs)) == before


@examples(60)
@given(valid_histories(8), targets, history_policies, budgets(), shares)
def test_remaining_messages_change_only_where_a_strategy_may_edit_them(
    msgs: list[Msg], target: Target, policy: HistoryPolicy, budget: Budget, share: int
) -> None:
    async def check() -> None:
        limit = await get_limit(target, msgs, policy, "describe", budget, share)
        formatter = target.formatter(policy, budget=replace(budget, max_tokens=limit))
        plan = await try_plan(formatter, msgs)
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
                drops_thinking = bool(plan.cut and plan.cut.thinking)
                assert drops_thinking or not old.pinned
                assert _remove_editable(msg, kinds, drops_thinking) == _remove_editable(
                    old, kinds, drops_thinking
                ), describe_case(target, formatter, (old, msg))
        assert next(remaining, None) is None
        assert not summaries or Summarize in kinds
        task = all(getattr(s, "keep_task", True) for s in budget.strategies)
        required = get_protected(msgs, task, policy)
        assert not required & dropped, describe_case(target, formatter, (required, dropped))
        named = {call.id for msg in msgs for call in msg.tool_uses if call.name in budget.never_cut}
        for index in dropped:
            calls = msgs[index].tool_uses
            assert not any(call.name in budget.never_cut for call in calls), (index, named)

    run_async(check)


def _remove_editable(msg: Msg, kinds: set[type[CutStrategy]], drops_thinking: bool) -> Msg:
    """Returns a message without the content that its strategies may edit."""
    blocks: list[Any] = []
    for block in msg.blocks:
        if drops_thinking and isinstance(block, ThinkingBlock):
            continue
        if isinstance(block, ToolResultBlock) and kinds & {ClearResults, ShrinkResults}:
            blocks.append(replace(block, output=""))
        elif isinstance(block, ToolResultBlock) and not isinstance(block.output, str) and DropMedia in kinds:
            blocks.append(replace(block, output=tuple(item for item in block.output if _remove_media(item))))
        elif DropMedia in kinds and _remove_media(block) is None:
            continue
        else:
            blocks.append(block)
    return replace(msg, content=tuple(blocks))


def _remove_media(block: Any) -> Any:
    """Returns a block, or None for media and for texts that replace media."""
    if isinstance(block, TextBlock) and block.text.endswith(" left out to save space]"):
        return None
    return None if block.type in ("image", "audio", "video", "document") else block


@examples(80)
@given(histories(8), targets, history_policies, losses, budgets(), shares)
def test_an_adopted_history_becomes_the_same_request_without_a_cut(
    msgs: list[Msg], target: Target, policy: HistoryPolicy, loss: OnLoss, budget: Budget, share: int
) -> None:
    async def check() -> None:
        limit = await get_limit(target, msgs, policy, loss, budget, share)
        final = replace(budget, max_tokens=limit)
        plan = await try_plan(target.formatter(policy, loss, final), msgs)
        if not isinstance(plan, Plan):
            return
        formatter = target.formatter(policy, loss, final)
        again = await try_plan(formatter, plan.history)
        assert isinstance(again, Plan), describe_case(target, formatter, again)
        assert again.cut is None, describe_case(target, formatter, (plan.cut, again.cut))
        assert as_json(again.request) == as_json(plan.request), describe_case(target, formatter, plan.cut)

    run_async(check)


@examples(60)
@given(histories(8), targets, history_policies, budgets(written=False), shares)
def test_the_plan_of_a_history_is_the_same_with_and_without_a_warm_cache(
    msgs: list[Msg], target: Target, policy: HistoryPolicy, budget: Budget, share: int
) -> None:
    async def check() -> None:
        limit = await get_limit(target, msgs, policy, "describe", budget, share)
        final = replace(budget, max_tokens=limit)
        warm = target.formatter(policy, budget=final)
        for stop in range(1, len(msgs)):
            await try_plan(warm, msgs[:stop])
        warm_plan = await try_plan(warm, msgs)
        two = await try_plan(target.formatter(policy, budget=final), load_messages(dump_messages(msgs)))
        if isinstance(warm_plan, Plan) and isinstance(two, Plan):
            assert as_json(warm_plan.request) == as_json(two.request)
            assert as_json(warm_plan.ledger.to_dict()) == as_json(two.ledger.to_dict())
            assert (warm_plan.cut, warm_plan.history) == (two.cut, two.history)
        else:
            assert str(warm_plan) == str(two)

    run_async(check)


@examples(80)
@given(histories(8), targets, history_policies, budgets(False, fixed_steps), st.tuples(shares, shares))
def test_a_larger_budget_retains_a_superset(
    msgs: list[Msg], target: Target, policy: HistoryPolicy, budget: Budget, two: tuple[int, int]
) -> None:
    async def check() -> None:
        limits = [await get_limit(target, msgs, policy, "describe", budget, share) for share in sorted(two)]
        small, large = [
            await try_plan(target.formatter(policy, budget=replace(budget, max_tokens=limit)), msgs)
            for limit in limits
        ]
        if not isinstance(small, Plan):
            return
        assert isinstance(large, Plan), (limits, large)
        less, more = ({*(plan.cut.numbers if plan.cut else ())} for plan in (large, small))
        assert less <= more, describe_case(target, target.formatter(policy), (limits, small.cut, large.cut))

    run_async(check)


@examples(60)
@given(histories(8), targets, history_policies, budgets(), st.integers(-20, 60))
def test_a_budget_of_the_size_that_an_error_names_succeeds(
    msgs: list[Msg], target: Target, policy: HistoryPolicy, budget: Budget, share: int
) -> None:
    async def check() -> None:
        limit = await get_limit(target, msgs, policy, "describe", budget, share)
        refused = await try_plan(target.formatter(policy, budget=replace(budget, max_tokens=limit)), msgs)
        if isinstance(refused, BudgetError):
            event("refused")
            enough = replace(budget, max_tokens=refused.needed)
            plan = await try_plan(target.formatter(policy, budget=enough), msgs)
            assert isinstance(plan, Plan), describe_case(target, target.formatter(policy), (refused, plan))

    run_async(check)


# -- cuts move in steps ----------------------------------------------------------------------------------------


def get_complete_prefixes(msgs: Sequence[Msg]) -> list[list[Msg]]:
    """Returns all prefixes of a valid conversation without an open exchange."""
    histories_: list[list[Msg]] = []
    for stop in range(1, len(msgs) + 1):
        part = list(msgs[:stop])
        if [*map(id, repair(part)[0])] == [*map(id, part)]:
            histories_.append(part)
    return histories_


def build_conversation(speakers: Sequence[str], lengths: Sequence[int]) -> list[Msg]:
    """Returns a long conversation. The speaker `tool` stands for an exchange."""
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


conversations = st.lists(
    st.tuples(st.sampled_from(("Bob", "Friday", "Alice", "tool")), st.integers(0, 60)), min_size=10, max_size=40
).map(lambda turns: build_conversation([name for name, _ in turns], [length for _, length in turns]))


@examples(40)
@given(
    conversations,
    targets,
    history_policies,
    st.one_of(st.just(CharacterTokenCounter()), st.integers(60, 170).map(ScaledCounter)),
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
        for part in get_complete_prefixes(msgs):
            plan = await try_plan(formatter, part)
            if not isinstance(plan, Plan):
                return
            cut = tuple(plan.cut.numbers) if plan.cut else ()
            if last is not None and cut == cuts[-1]:
                old = remove_end(get_turns(last.request), policy, last)
                fault = find_change(
                    old, get_turns(plan.request), formatter.capabilities().turns.text_joining != "apart"
                )
                assert not fault, describe_case(target, formatter, (fault, cut))
            elif last is not None:
                assert {*cuts[-1]} <= {*cut}, describe_case(target, formatter, (len(part), cuts[-1], cut))
            cuts.append(cut)
            last = plan
        total = sum(map(CharacterTokenCounter().weigh, msgs))
        distinct = len(dict.fromkeys(cuts))
        event(f"{distinct} cuts")
        assert distinct <= total / (step or limit // 4) + 1, (distinct, total, cuts)

    run_async(check)


# -- media of dropped messages are not loaded ------------------------------------------------------------------


class OpenedFiles:
    """Names of the PNG files that any thread opens while `is_recording`."""

    def __init__(self) -> None:
        self.names: set[str] = set()
        self.is_recording = False
        sys.addaudithook(self.record)

    def record(self, event: str, args: Any) -> None:
        if self.is_recording and event == "open" and str(args[0]).endswith(".png"):
            self.names.add(Path(args[0]).name)


_OPENED_FILES = OpenedFiles()


_COUNTERS = (CharacterTokenCounter(), ScaledCounter(100), ScaledCounter(60), ScaledCounter(170))
_STRATEGIES: tuple[list[CutStrategy], ...] = (
    [OldestFirst()],
    [OldestFirstInSteps()],
    [OldestFirstInSteps(), ShrinkResults()],
    [DropMedia()],
    [DropMedia(step=0), OldestFirst()],
    [ClearResults(), DropMedia(), OldestFirstInSteps()],
    [Summarize(summarize_shortly, 200)],
)
_PROVIDERS = ("openai", "anthropic", "ollama")


@each_case(
    ("strategies", "counter", "provider"),
    # Each counter and each list of strategies occurs with each provider.
    [(*pair, _PROVIDERS[index % 3]) for index, pair in enumerate(product(_STRATEGIES, _COUNTERS))],
)
def test_a_file_of_a_dropped_message_is_not_opened(
    strategies: list[CutStrategy], counter: TokenCounterBase, provider: str, tmp_path: Path
) -> None:
    data = b"\x89PNG\r\n\x1a\n" + bytes(40)
    msgs = [Msg("system", "Be brief.", "system"), Msg("Bob", "Look at these.", "user")]
    for number in range(12):
        (tmp_path / f"{number}.png").write_bytes(data)
        image = ImageBlock(URLSource((tmp_path / f"{number}.png").as_uri()))
        msgs.append(Msg("Bob", [TextBlock(f"{number} " + "word " * 40), image], "user"))
    msgs.append(Msg("Bob", "What do they have in common?", "user"))
    formatter = load_provider(provider).chat_formatter(
        budget=Budget(5_500, counter, strategy=strategies), media_roots=[tmp_path]
    )
    _OPENED_FILES.names.clear()
    _OPENED_FILES.is_recording = True
    try:
        plan = run_async(lambda: formatter.plan(msgs))
    finally:
        _OPENED_FILES.is_recording = False
    remaining = {Path(block.source.url).name for msg in plan.history for block in msg.media}
    assert plan.cut is not None
    assert remaining
    assert _OPENED_FILES.names == remaining
