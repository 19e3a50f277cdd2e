"""Tests of cut strategies: which units they drop or edit, and the ledger entries."""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from concurrent.futures import ThreadPoolExecutor
from typing import Any, cast

import anyio
import anyio.lowlevel
import pytest

from agentkit import (
    Budget,
    BudgetError,
    CharacterTokenCounter,
    ClearResults,
    CutStrategy,
    DropMedia,
    ImageBlock,
    LocalTokenCounter,
    Msg,
    MultiAgentHistory,
    OldestFirst,
    OldestFirstInSteps,
    OptionError,
    Plan,
    ShrinkResults,
    Summarize,
    TextBlock,
    TokenCounterBase,
    ToolResultBlock,
    ToolUseBlock,
    Units,
    dump_messages,
    load_messages,
)
from agentkit.tokens.counters import count_request
from agentkit.tokens.estimate import estimate_text
from tests.budget.test_budget import RemoteTenTokenCounter, TenTokenCounter
from tests.cases import each_case
from tests.conftest import EchoFormatter, call, dispositions, echo_json, get_turns, text_msg

pytestmark = pytest.mark.anyio

SYSTEM = text_msg("system", "Be brief.", "system")
TASK = text_msg("Bob", "the task")
PICTURE = ImageBlock.from_bytes(b"\x89PNG\r\n\x1a\n" + bytes(40), "image/png")


def answer(id: str, output: Any, tool: str = "search", **options: Any) -> Msg:
    return Msg("system", [ToolResultBlock(id, tool, output, **options)], "system")


def exchanges(count: int, output: Any = "x" * 400, tool: str = "search") -> list[Msg]:
    outcome: list[Msg] = []
    for number in range(count):
        outcome += [call(f"c{number}", tool=tool), answer(f"c{number}", output, tool)]
    return outcome


def messages(count: int, start: int = 0) -> list[Msg]:
    return [text_msg("Bob" if number % 2 else "Al", str(number)) for number in range(start, start + count)]


class LetterCounter(LocalTokenCounter):
    """Local counter: one token per four letters, three per message, a thousand per media item."""

    def measure(self, request: Mapping[str, Any]) -> int:
        return -(-sum(12 + _count_quarters(msg) for msg in request["messages"]) // 4)

    def weigh(self, msg: Msg) -> int:
        return -(-(12 + _count_quarters(echo_json(msg))) // 4)


def _count_quarters(value: Any) -> int:
    """Returns the size of a message in quarters of a token."""
    if isinstance(value, str):
        return len(value)
    if isinstance(value, list):
        return sum(map(_count_quarters, cast("list[Any]", value)))
    if not isinstance(value, dict):
        return 0
    pairs = cast("dict[str, Any]", value).items()
    if ("type", "image") in pairs:
        return 4_000
    return sum(_count_quarters(item) for key, item in pairs if key not in ("type", "role", "id"))


async def plan(
    msgs: Sequence[Msg],
    tokens: int,
    *strategies: CutStrategy,
    counter: TokenCounterBase | None = None,
    **options: Any,
) -> Plan:
    budget = Budget(tokens, counter or LetterCounter(), strategy=strategies, **options)
    return await EchoFormatter(budget=budget).plan(msgs)


def outputs(outcome: Plan) -> list[Any]:
    return [block.output for msg in outcome.history for block in msg.tool_results]


def get_texts(outcome: Plan) -> list[str]:
    return [msg.text for msg in outcome.history if not msg.tool_uses and not msg.tool_results]


async def summarize_briefly(msgs: Sequence[Msg]) -> str:
    return "told"


# -- options ---------------------------------------------------------------------------------------------------


@each_case("make", [OldestFirst, OldestFirstInSteps, ClearResults, ShrinkResults, DropMedia])
@each_case("step", [-1, 1.5, "10", True])
def test_a_step_that_is_not_a_number_of_tokens_is_an_error(make: Any, step: Any) -> None:
    with pytest.raises(OptionError) as caught:
        make(step=step)
    assert caught.value.place == "strategy.step"


@pytest.mark.parametrize(
    ("make", "place"),
    [
        (lambda: ClearResults(keep=-1), "strategy.keep"),
        (lambda: ClearResults(characters=-1), "strategy.characters"),
        (lambda: ShrinkResults(characters=-1), "strategy.characters"),
        (lambda: ShrinkResults(None), "strategy.characters"),  # type: ignore[arg-type] # pyright: ignore
        (lambda: DropMedia(keep=2.0), "strategy.keep"),  # type: ignore[arg-type] # pyright: ignore
        (lambda: Summarize("short"), "strategy.summarizer"),  # type: ignore[arg-type] # pyright: ignore
        (lambda: Summarize(summarize_briefly, max_tokens=199), "strategy.max_tokens"),
        (lambda: Summarize(summarize_briefly, step=-1), "strategy.step"),
        (lambda: Summarize(summarize_briefly, name=5), "strategy.name"),  # type: ignore[arg-type] # pyright: ignore
    ],
)
def test_an_error_about_an_option_of_a_strategy_has_the_name_of_the_option(make: Any, place: str) -> None:
    with pytest.raises(OptionError) as caught:
        make()
    assert caught.value.place == place


@each_case(
    ("strategy", "explicit"),
    [
        (OldestFirst(), OldestFirst(keep_task=False, step=0)),
        (OldestFirstInSteps(), OldestFirstInSteps(keep_task=True, step=None)),
        (ClearResults(), ClearResults(keep=3, characters=200, step=None)),
        (ShrinkResults(), ShrinkResults(characters=2_000, step=0)),
        (DropMedia(), DropMedia(keep=1, step=None)),
        (
            Summarize(summarize_briefly),
            Summarize(summarize_briefly, max_tokens=1_000, step=None, keep_task=True, name="summary"),
        ),
    ],
)
def test_a_strategy_without_options_has_the_documented_defaults(
    strategy: CutStrategy, explicit: CutStrategy
) -> None:
    assert strategy == explicit


@each_case(
    ("options", "place"),
    [
        ({"strategy": []}, "budget.strategy"),
        ({"strategy": [OldestFirstInSteps(), "oldest"]}, "budget.strategy[1]"),
        ({"strategy": OldestFirstInSteps}, "budget.strategy"),
        ({"strategy": [OldestFirstInSteps]}, "budget.strategy[0]"),
        ({"strategy": None}, "budget.strategy"),
        ({"strategy": b"Stepped"}, "budget.strategy[0]"),
        ({"never_cut": "search"}, "budget.never_cut"),
        ({"never_cut": [1]}, "budget.never_cut"),
        ({"never_cut": None}, "budget.never_cut"),
        ({"cut_first": "search"}, "budget.cut_first"),
        ({"cut_first": 5}, "budget.cut_first"),
    ],
)
def test_a_budget_accepts_only_strategies_and_collections_of_tool_names(
    options: dict[str, Any], place: str
) -> None:
    with pytest.raises(OptionError) as caught:
        Budget(100, **options)
    assert caught.value.place == place


def test_two_summarizing_strategies_in_one_budget_are_an_error() -> None:
    with pytest.raises(OptionError) as caught:
        Budget(100, strategy=[Summarize(summarize_briefly), Summarize(summarize_briefly)])
    assert caught.value.place == "budget.strategy"


def test_tool_names_can_be_any_iterable() -> None:
    names: Any = (name for name in ["search"])
    assert set(Budget(100, never_cut=names).never_cut) == {"search"}


# -- OldestFirst, OldestFirstInSteps ----------------------------------------------------------------------------


async def test_oldest_first_in_steps_keeps_the_task_and_moves_the_cut_in_steps() -> None:
    """A message has ten tokens, a step has 30 tokens, and the budget has space for eight messages."""
    msgs = [TASK, *messages(30)]
    cuts = [
        await plan(msgs[:end], 80, OldestFirstInSteps(step=30), counter=TenTokenCounter()) for end in range(1, 32)
    ]
    dropped = [list(outcome.cut.numbers) if outcome.cut else [] for outcome in cuts]
    assert dropped[7] == []
    assert dropped[8:10] == [[1, 2]] * 2, "the task is part of the first step"
    assert dropped[10:13] == [[1, 2, 3, 4, 5]] * 3
    assert dropped[13:16] == [[1, 2, 3, 4, 5, 6, 7, 8]] * 3
    assert len({*map(tuple, dropped)}) <= 310 // 30 + 1
    assert all(earlier == later[: len(earlier)] for earlier, later in itertools.pairwise(dropped))
    assert all(get_texts(outcome)[0] == "the task" for outcome in cuts)


async def test_the_default_step_is_a_quarter_of_the_prompt_limit() -> None:
    msgs = [TASK, *messages(20)]
    outcome = await plan(msgs, 120, OldestFirstInSteps(), counter=TenTokenCounter(), reserve=20)
    same = await plan(msgs, 120, OldestFirstInSteps(step=25), counter=TenTokenCounter(), reserve=20)
    assert outcome.cut == same.cut


async def test_a_step_larger_than_the_conversation_drops_every_unit_that_may_be_dropped() -> None:
    outcome = await plan(
        [SYSTEM, TASK, *messages(9)], 60, OldestFirstInSteps(step=10_000), counter=TenTokenCounter()
    )
    assert get_texts(outcome) == ["Be brief.", "the task", "8"]


@each_case("strategy", [OldestFirst(), OldestFirstInSteps(), ClearResults(), ShrinkResults(), DropMedia()])
@each_case(
    "counter",
    {
        "local": CharacterTokenCounter(),
        "remote": RemoteTenTokenCounter(),
    },
)
async def test_a_conversation_without_droppable_units_is_an_error_with_its_size(
    strategy: Any, counter: TokenCounterBase
) -> None:
    """The conversation has one message, only pinned messages, or only a system prompt."""
    for msgs in (
        [text_msg("Bob", "word " * 90)],
        [text_msg("Bob", "word " * 30, pinned=True) for _ in range(3)],
        [text_msg("system", "word " * 90, "system")],
        [SYSTEM, call("a"), answer("a", "word " * 90)],
    ):
        total = await count_request(counter, EchoFormatter().lower(msgs).request, EchoFormatter().layout)
        with pytest.raises(BudgetError) as caught:
            await plan(msgs, total - 1, strategy, counter=counter)
        assert caught.value.needed == total
        assert caught.value.required == tuple(f"msgs[{number}]" for number in range(len(msgs)))
        assert (await plan(msgs, total, strategy, counter=counter)).cut is None


async def test_tool_calls_without_results_at_the_end_are_the_newest_unit() -> None:
    outcome = await plan([TASK, *messages(9), call("a", "b")], 30, OldestFirst(), counter=TenTokenCounter())
    assert [len(msg.tool_uses) for msg in outcome.history] == [0, 2, 0]
    assert [block.is_error for block in outcome.history[-1].tool_results] == [True, True]


# -- conversations within the budget -----------------------------------------------------------------


@each_case("text", ["1\n2\n" * 60, "\n" * 300, "漢字かな" * 40, "{}" * 200, "word " * 90, "é" * 200, "🙂" * 60])
@each_case("strategy", [OldestFirst(), OldestFirstInSteps(), ClearResults(), ShrinkResults(), DropMedia()])
async def test_a_conversation_that_fits_is_unchanged_even_if_its_estimate_is_larger(
    text: str, strategy: CutStrategy
) -> None:
    msgs = [SYSTEM, *(text_msg("Bob", text) for _ in range(12)), call("a"), answer("a", text)]
    counter = CharacterTokenCounter()
    total = counter.measure(EchoFormatter().lower(msgs).request, EchoFormatter())
    assert (await plan(msgs, total, strategy, counter=counter)).cut is None


# -- ClearResults ----------------------------------------------------------------------------------------------


async def test_a_cleared_result_keeps_its_call_and_states_its_size() -> None:
    msgs = [SYSTEM, TASK, *exchanges(6)]
    outcome = await plan(msgs, 600, ClearResults(keep=2, step=0))
    note = "(This result of 400 characters was cleared to save space. Call the tool again if you need it.)"
    cleared = outputs(outcome).count(note)
    assert 0 < cleared <= 4
    assert outputs(outcome) == [note] * cleared + ["x" * 400] * (6 - cleared)
    assert outcome.cut is not None
    assert (outcome.cut.units, outcome.cut.numbers) == (0, [])
    assert outcome.cut.altered == tuple(f"msgs[{3 + 2 * index}].content[0]" for index in range(cleared))
    assert outcome.cut.tokens > 0
    kinds = dispositions(outcome)
    assert {kinds[place] for place in outcome.cut.altered} == {"shrunk"}
    assert outcome.history[:3] == tuple(msgs[:3])
    assert outcome.ledger.losses == []


@each_case(
    ("output", "error", "summarize_briefly"),
    [
        ("x" * 1_234, False, "This result of 1,234 characters was"),
        ("x" * 1_234, True, "This error message of 1,234 characters was"),
        ([TextBlock("x" * 900), PICTURE, PICTURE], False, "This result of 900 characters, 2 image was"),
        ([PICTURE], False, "This result of 0 characters, 1 image was"),
    ],
)
async def test_the_note_states_the_size_of_the_result(output: Any, error: bool, summarize_briefly: str) -> None:
    msgs = [TASK, call("a"), answer("a", output, is_error=error, metadata={"at": 5}), *exchanges(1, "short")]
    outcome = await plan(msgs, 150, ClearResults(keep=1))
    block = outcome.history[2].tool_results[0]
    assert isinstance(block.output, str)
    assert summarize_briefly in block.output
    assert (block.id, block.is_error, block.metadata) == ("a", error, {"at": 5})


@each_case("output", ["", " ", "ok", "x" * 200, [], [TextBlock("x" * 200)]])
async def test_short_and_blank_results_are_not_cleared(output: Any) -> None:
    msgs = [TASK, call("a"), answer("a", output), *exchanges(3)]
    with pytest.raises(BudgetError):
        await plan(msgs, 20, ClearResults(keep=0))
    outcome = await plan([*msgs, *messages(2)], 230, ClearResults(keep=0, step=0))
    assert outputs(outcome)[0] == msgs[2].tool_results[0].output


async def test_pinned_results_and_the_newest_results_are_not_cleared() -> None:
    pinned = [call("p", pinned=True), answer("p", "p" * 400)]
    outcome = await plan([TASK, *pinned, *exchanges(2)], 340, ClearResults(keep=0))
    assert [output[:5] for output in outputs(outcome)] == ["ppppp", "(This", "xxxxx"]


# -- ShrinkResults ---------------------------------------------------------------------------------------------


async def test_a_shrunk_result_has_its_start_its_end_and_the_number_of_omitted_characters() -> None:
    text = "HEAD" + "x" * 5_000 + "TAIL"
    outcome = await plan([TASK, *exchanges(1, text), *messages(1)], 400, ShrinkResults(characters=100))
    (output,) = outputs(outcome)
    assert output.startswith("HEAD")
    assert output.endswith("TAIL")
    assert "(4,908 characters left out here" in output
    assert len(output) < 350


async def test_results_of_the_newest_unit_are_shrunk_from_the_oldest_on() -> None:
    """The conversation has only one unit besides the task. The newest result is never shrunk."""
    ids = [f"c{number}" for number in range(20)]
    msgs = [TASK, call(*ids), *(answer(id, f"{id} " + "x" * 4_000) for id in ids)]
    outcome = await plan(msgs, 12_000, OldestFirstInSteps(), ShrinkResults(characters=200))
    lengths = [len(output) for output in outputs(outcome)]
    shrunk = sum(length < 1_000 for length in lengths)
    assert 0 < shrunk < 20
    assert all(length < 1_000 for length in lengths[:shrunk])
    assert all(length > 4_000 for length in lengths[shrunk:])
    least = await plan(msgs, 2_900, OldestFirstInSteps(), ShrinkResults(characters=200))
    assert [len(output) > 4_000 for output in outputs(least)] == [False] * 19 + [True]
    with pytest.raises(BudgetError):
        await plan(msgs, 1_000, OldestFirstInSteps(), ShrinkResults(characters=200))


@pytest.mark.parametrize("split", [True, False], ids=["a message each", "one message"])
@pytest.mark.parametrize(
    ("count", "anyio_backend"),
    [(600, "asyncio"), (600, "trio"), pytest.param(2_000, "asyncio", marks=pytest.mark.slow)],
)
async def test_many_parallel_results_are_planned_quickly(count: int, split: bool) -> None:
    ids = [f"c{number}" for number in range(count)]
    blocks = [ToolResultBlock(id, "search", "x" * 1_000) for id in ids]
    results = (
        [Msg("system", [block], "system") for block in blocks] if split else [Msg("system", blocks, "system")]
    )
    outcome = await plan(
        [TASK, call(*ids), *results], 150 * count, OldestFirstInSteps(), ShrinkResults(characters=100)
    )
    assert outcome.cut is not None
    assert len(outputs(outcome)) == count
    assert outputs(outcome)[-1] == "x" * 1_000
    assert len(outcome.cut.altered) == sum(len(output) < 1_000 for output in outputs(outcome))


async def test_texts_in_a_result_list_are_shrunk_and_its_media_are_kept() -> None:
    items = (TextBlock("a" * 3_000), PICTURE, TextBlock("short"))
    outcome = await plan([TASK, *exchanges(1, items), *messages(1)], 1_300, ShrinkResults(characters=100))
    ((text, picture, short),) = outputs(outcome)
    assert len(text.text) < 400
    assert (picture, short) == (PICTURE, TextBlock("short"))
    assert outcome.cut is not None
    assert outcome.cut.altered == ("msgs[2].content[0].output[0]",)


async def test_shrinking_twice_changes_nothing() -> None:
    msgs = [TASK, *exchanges(4, "y" * 5_000), *messages(1)]
    once = await plan(msgs, 700, ShrinkResults(characters=100))
    again = await plan(once.history, 700, ShrinkResults(characters=100))
    assert (again.cut, again.request) == (None, once.request)


# -- DropMedia -------------------------------------------------------------------------------------------------


async def test_old_media_are_replaced_and_the_newest_are_kept() -> None:
    pictures = [Msg("Bob", [TextBlock(f"{number}"), PICTURE], "user") for number in range(5)]
    outcome = await plan([*pictures, *messages(1)], 3_200, DropMedia(keep=1, step=0))
    media_counts = [len(msg.media) for msg in outcome.history]
    assert media_counts == [0, 0, 1, 1, 1, 0]
    assert outcome.history[0].text == "0\n[image left out to save space]"
    assert outcome.cut is not None
    assert outcome.cut.altered == ("msgs[0].content[1]", "msgs[1].content[1]")
    assert dispositions(outcome)["msgs[0].content[1]"] == "described"


async def test_the_newest_unit_with_media_keeps_its_media_by_default() -> None:
    pictures = [Msg("Bob", [PICTURE], "user") for _ in range(5)]
    outcome = await plan([*pictures, *messages(1)], 1_400, DropMedia(step=0))
    assert [len(msg.media) for msg in outcome.history] == [0, 0, 0, 0, 1, 0]


@pytest.mark.parametrize("keep", [1, 2, 3])
async def test_the_newest_units_with_media_keep_them_in_a_budget_that_is_too_small(keep: int) -> None:
    images = [Msg("Bob", [PICTURE], "user") for _ in range(5)]
    with pytest.raises(BudgetError) as caught:
        await plan([*images, *messages(1)], 900, DropMedia(keep, step=0))
    needed = caught.value.needed
    fitting = await plan([*images, *messages(1)], needed, DropMedia(keep, step=0))
    assert [len(msg.media) for msg in fitting.history] == [0] * (5 - keep) + [1] * keep + [0]


async def test_each_media_item_in_a_result_is_replaced() -> None:
    msgs = [TASK, call("a"), answer("a", (TextBlock("see"), PICTURE)), Msg("Bob", [PICTURE], "user"), *messages(1)]
    outcome = await plan(msgs, 1_100, DropMedia(keep=1))
    assert outputs(outcome) == [(TextBlock("see"), TextBlock("[image left out to save space]"))]
    assert outcome.cut is not None
    assert outcome.cut.altered == ("msgs[2].content[0].output[1]",)
    assert outcome.history[3].media == (PICTURE,)


# -- Summarize -------------------------------------------------------------------------------------------------


class Writer:
    """Summarizer that stores the messages of each call."""

    def __init__(self, text: Any = None) -> None:
        self.text = text
        self.asked: list[list[str]] = []

    async def __call__(self, msgs: Sequence[Msg]) -> str:
        self.asked.append([msg.text for msg in msgs])
        await anyio.lowlevel.checkpoint()
        if isinstance(self.text, Exception):
            raise self.text
        return f"summary {len(self.asked)}" if self.text is None else self.text


def chat(count: int, start: int = 0) -> list[Msg]:
    return [
        text_msg("Bob" if number % 2 else "Al", f"{number} " + "word " * 30)
        for number in range(start, start + count)
    ]


LOCAL_AND_REMOTE = each_case("remote", {"local": False, "remote": True})


class RemoteEstimate(TokenCounterBase):
    """Remote counter with the numbers of the estimate by characters."""

    needs_layout = True

    async def count(self, request: Any, provider: Any = None) -> int:
        await anyio.lowlevel.checkpoint()
        return CharacterTokenCounter().measure(request, provider)


@LOCAL_AND_REMOTE
@pytest.mark.parametrize("step", [0, 100, None])
async def test_a_summary_replaces_the_dropped_messages(step: int | None, remote: bool) -> None:
    writer = Writer()
    counter = RemoteEstimate() if remote else CharacterTokenCounter()
    outcome = await plan([SYSTEM, TASK, *chat(40)], 800, Summarize(writer, 200, step), counter=counter)
    assert len(writer.asked) == 1
    assert writer.asked[0][0].startswith("0 ")
    summary = outcome.history[2]
    assert (summary.name, summary.text, summary.role, summary.pinned) == ("summary", "summary 1", "user", True)
    assert get_texts(outcome)[3].startswith(f"{len(writer.asked[0])} ")
    assert [synthesis.name for synthesis in outcome.ledger.syntheses] == ["summary"]
    assert outcome.cut is not None
    assert len(outcome.cut.numbers) == len(writer.asked[0])
    assert "summary 1" in str(get_turns(outcome)[2])


async def test_the_summaries_of_a_strategy_are_not_part_of_its_value() -> None:
    values: list[tuple[bool, bool, str]] = []

    async def write(msgs: Sequence[Msg]) -> str:
        values.append((strategy == Summarize(write, 200), hash(strategy) == before, repr(strategy)))
        return "A summary."

    strategy = Summarize(write, 200)
    before, text = hash(strategy), repr(strategy)
    await plan([SYSTEM, TASK, *chat(40)], 800, strategy)
    await write([])
    assert values == [(True, True, text)] * 2
    assert [*inspect.signature(Summarize).parameters] == ["summarizer", "max_tokens", "step", "keep_task", "name"]


async def test_the_same_messages_get_the_same_summary_again() -> None:
    writer = Writer()
    budget = Budget(800, strategy=Summarize(writer, 200))
    msgs = [SYSTEM, TASK, *chat(40)]
    first = await EchoFormatter(budget=budget).plan(msgs)
    again = await EchoFormatter(budget=budget).plan(load_messages(dump_messages(msgs)))
    assert again.request == first.request
    assert len(writer.asked) == 1
    later = await EchoFormatter(budget=budget).plan([*msgs, *chat(12, 40)])
    assert len(writer.asked) == 2
    assert [msg.text for msg in later.history if msg.name == "summary"] == ["summary 1", "summary 2"]
    assert not {*writer.asked[0]} & {*writer.asked[1]}, "messages that are dropped later get another summary"


async def test_a_pinned_message_and_few_summaries_are_not_summarized_again() -> None:
    writer = Writer()
    formatter = EchoFormatter(budget=Budget(1_000, strategy=Summarize(writer, 200)))
    msgs = [SYSTEM, TASK, text_msg("Bob", "Mind the step.", pinned=True), *chat(60)]
    for number in range(7):
        msgs = [*(await formatter.plan(msgs)).history, *chat(40, 60 + 40 * number)]
        assert "Mind the step." in [msg.text for msg in msgs]
    assert not any("Mind the step." in text for texts in writer.asked for text in texts)
    again = [sum(text.startswith("summary") for text in texts) for texts in writer.asked]
    assert again[:4] == [0, 0, 0, 0]
    assert max(again) == 4


@pytest.mark.parametrize("adopt", ["always", "late", "stored"])
async def test_the_history_of_a_plan_is_an_ordinary_conversation(adopt: str) -> None:
    writer = Writer()
    formatter = EchoFormatter(budget=Budget(800, strategy=Summarize(writer, 200)))
    msgs = [SYSTEM, TASK]
    outcome = await formatter.plan(msgs)
    for number in range(80):
        msgs = [*msgs, *chat(1, number)]
        outcome = await formatter.plan(msgs)
        assert outcome.tokens is not None
        assert outcome.tokens <= 800
        if adopt == "always" or (adopt == "late" and number % 17 == 16):
            msgs = list(outcome.history)
        elif adopt == "stored":
            msgs = load_messages(dump_messages(outcome.history))
    asked = [line for lines in writer.asked for line in lines if not line.startswith("summary")]
    assert len(asked) == len({*asked}), "no message is summarized twice"
    summaries = [msg for msg in outcome.history if msg.name == "summary"]
    assert 1 <= len(summaries) <= 5
    assert get_texts(outcome)[1] == "the task"


async def test_too_many_summaries_get_one_summary() -> None:
    writer = Writer()
    formatter = EchoFormatter(budget=Budget(800, strategy=Summarize(writer, 200)))
    msgs = [SYSTEM, TASK]
    for number in range(120):
        msgs = [*(await formatter.plan([*msgs, *chat(1, number)])).history]
    assert any(lines[0].startswith("summary") for lines in writer.asked)


@LOCAL_AND_REMOTE
async def test_a_request_that_fits_without_a_cut_needs_no_free_tokens_for_summaries(remote: bool) -> None:
    counter, msgs = RemoteEstimate() if remote else CharacterTokenCounter(), [SYSTEM, TASK, *chat(5)]
    size = (await plan(msgs, 10_000, OldestFirst(), counter=CharacterTokenCounter())).tokens or 0
    strategy = Summarize(Writer(), 10_000)
    outcome = await plan(msgs, int(size), strategy, counter=counter)
    assert (outcome.tokens, outcome.cut, list(outcome.history)) == (size, None, msgs)
    with pytest.raises(BudgetError):
        await plan(msgs, int(size) - 1, strategy, counter=counter)


@LOCAL_AND_REMOTE
@pytest.mark.parametrize(
    "strategy", [OldestFirst(), OldestFirstInSteps(), Summarize(Writer(), 200), DropMedia(0, step=9)]
)
async def test_a_conversation_of_which_nothing_remains_needs_no_cut(strategy: CutStrategy, remote: bool) -> None:
    budget = Budget(360, RemoteEstimate() if remote else CharacterTokenCounter(), strategy=strategy)
    plan = await EchoFormatter(budget=budget, on_loss="drop").plan(
        [Msg("system", [ToolResultBlock("unknown", "x")], "user")]
    )
    assert plan.request == {
        "messages": [{"role": "user", "name": "user", "content": "(The conversation begins here.)"}]
    }
    assert plan.cut is None


async def test_an_error_of_the_summarizer_is_raised_and_the_next_call_tries_again() -> None:
    writer = Writer(RuntimeError("the model is away"))
    formatter = EchoFormatter(budget=Budget(800, strategy=Summarize(writer, 200)))
    msgs = [SYSTEM, TASK, *chat(40)]
    with pytest.raises(RuntimeError, match="the model is away"):
        await formatter.plan(msgs)
    writer.text = None
    assert (await formatter.plan(msgs)).history[2].text == "summary 2"


@each_case("text", ["", " \n", 5, b"x", ["x"], {}])
async def test_a_result_of_the_summarizer_that_is_not_a_text_is_an_error(text: Any) -> None:
    with pytest.raises(OptionError) as caught:
        await plan([SYSTEM, TASK, *chat(40)], 800, Summarize(Writer(text), 200))
    assert caught.value.place == "strategy.summarizer"


@LOCAL_AND_REMOTE
@pytest.mark.parametrize(
    "text", ["HEAD" + "x" * 100_000 + "TAIL", "漢字" * 50_000, "🙂" * 9_000, "a\nb\n" * 9_000], ids=ascii
)
async def test_a_summary_that_is_too_long_loses_its_middle(text: str, remote: bool) -> None:
    counter = RemoteEstimate() if remote else CharacterTokenCounter()
    outcome = await plan([SYSTEM, TASK, *chat(40)], 900, Summarize(Writer(text), 400), counter=counter)
    summary = outcome.history[2].text
    assert "left out" in summary
    assert (summary[0], summary[-1]) == (text[0], text[-1])
    assert outcome.tokens is not None
    assert outcome.tokens <= 900


async def test_a_summary_has_a_quarter_of_the_tokens_except_twenty_for_its_message() -> None:
    words = next(count for count in range(200) if estimate_text("word " * count) > 100 * (400 // 4 - 20))
    for count, is_shortened in ((words - 1, False), (words, True)):
        strategy = Summarize(Writer("word " * count), max_tokens=400)
        summary = (await plan([SYSTEM, TASK, *chat(40)], 900, strategy)).history[2].text
        assert ("left out" in summary) == is_shortened


async def test_two_concurrent_plans_call_the_summarizer_once() -> None:
    writer = Writer()
    budget = Budget(800, strategy=Summarize(writer, 200))
    msgs = [SYSTEM, TASK, *chat(40)]
    outcome: list[Plan] = []

    async def once() -> None:
        outcome.append(await EchoFormatter(budget=budget).plan(msgs))

    async with anyio.create_task_group() as group:
        for _ in range(5):
            group.start_soon(once)
    assert len(writer.asked) == 1
    assert all(earlier.request == outcome[0].request for earlier in outcome)


async def test_a_waiting_plan_writes_the_summary_if_the_first_plan_is_canceled() -> None:
    started, scope = anyio.Event(), anyio.CancelScope()
    answers = ["nothing", "bought by the second"]

    async def slow(msgs: Sequence[Msg]) -> str:
        text = answers.pop(0)
        if answers:
            started.set()
            await anyio.sleep_forever()
        return text

    budget = Budget(800, strategy=Summarize(slow, 200))
    msgs = [SYSTEM, TASK, *chat(40)]
    outcome: list[Plan] = []

    async def cancelled() -> None:
        with scope:
            await EchoFormatter(budget=budget).plan(msgs)

    async def patient() -> None:
        outcome.append(await EchoFormatter(budget=budget).plan(msgs))

    async with anyio.create_task_group() as group:
        group.start_soon(cancelled)
        await started.wait()
        group.start_soon(patient)
        await anyio.wait_all_tasks_blocked()
        scope.cancel()
    assert outcome[0].history[2].text == "bought by the second"


async def test_the_summarizer_can_plan_with_the_same_budget() -> None:
    """A summarizer often calls a model with the same budget."""

    async def write(msgs: Sequence[Msg]) -> str:
        return (await EchoFormatter(budget=budget).plan([SYSTEM, TASK, *msgs[:3]])).history[1].text

    budget = Budget(800, strategy=Summarize(write, 200))
    assert (await EchoFormatter(budget=budget).plan([SYSTEM, TASK, *chat(40)])).history[2].text == "the task"


def test_a_strategy_works_in_several_event_loops() -> None:
    budget = Budget(800, strategy=Summarize(Writer(), 200))
    for number, backend in enumerate(("asyncio", "trio", "asyncio")):
        outcome = anyio.run(
            EchoFormatter(budget=budget).plan, [SYSTEM, TASK, *chat(30 + 9 * number)], backend=backend
        )
        assert outcome.cut is not None


# -- never_cut and cut_first ---------------------------------------------------------------------


async def test_tool_calls_in_never_cut_are_unchanged() -> None:
    skill = [call("s", tool="skill"), answer("s", "rules " * 60, "skill")]
    msgs = [TASK, *exchanges(2), *skill, *exchanges(4), *messages(2)]
    for strategies in (
        (OldestFirstInSteps(),),
        (ClearResults(0), OldestFirstInSteps()),
        (ShrinkResults(20), OldestFirst()),
    ):
        outcome = await plan(msgs, 420, *strategies, never_cut=["skill"])
        assert "rules " * 60 in outputs(outcome)
        assert outcome.cut is not None


async def test_tool_calls_in_cut_first_are_dropped_before_older_messages() -> None:
    msgs = [TASK, *exchanges(2, "x" * 200), call("l"), answer("l", "y" * 200, "look"), *messages(2)]
    msgs[5] = call("l", tool="look")
    total = LetterCounter().measure(EchoFormatter().lower(msgs).request)
    outcome = await plan(msgs, total - 1, OldestFirst(keep_task=True), cut_first=["look"])
    assert outputs(outcome) == ["x" * 200] * 2
    both = await plan(msgs, total - 1, OldestFirst(keep_task=True), cut_first=["look"], never_cut=["look"])
    assert outputs(both) == ["x" * 200, "y" * 200], "what is never cut is not cut first"


async def test_tool_calls_of_both_a_protected_and_a_cheap_tool_are_kept() -> None:
    mixed = Msg("Friday", [ToolUseBlock("a", "look", {}), ToolUseBlock("b", "skill", {})], "assistant")
    msgs = [TASK, mixed, answer("a", "y" * 200, "look"), answer("b", "z" * 200, "skill"), *chat(9)]
    outcome = await plan(msgs, 260, OldestFirstInSteps(), cut_first=["look"], never_cut=["skill"])
    assert outputs(outcome) == ["y" * 200, "z" * 200]


# -- several strategies, custom strategies ---------------------------------------------------------------------


async def test_the_next_strategy_starts_after_all_edits_of_the_previous_strategy() -> None:
    msgs = [SYSTEM, TASK, *exchanges(8), *messages(1)]
    cleared = await plan(msgs, 900, ClearResults(keep=1, step=0), OldestFirst(keep_task=True))
    assert cleared.cut is not None
    assert cleared.cut.units == 0
    both = await plan(msgs, 300, ClearResults(keep=1, step=0), OldestFirst(keep_task=True))
    assert both.cut is not None
    assert both.cut.units > 0
    assert both.cut.altered
    assert get_texts(both) == ["Be brief.", "the task", "0"]


class HalvingStrategy(CutStrategy):
    """Strategy that halves each result several times."""

    repeats = True

    def order(self, units: Units) -> Sequence[int]:
        spared = self.protected(units)
        return [n for n in range(len(units)) if n not in spared and len(units.unit(n)) > 1 for _ in range(3)]

    def edit(self, unit: tuple[Msg, ...], newest: bool = False) -> Sequence[Msg]:
        block = unit[1].tool_results[0]
        return [unit[0], answer(block.id, str(block.output)[: len(str(block.output)) // 2])]


async def test_a_custom_strategy_can_edit_a_unit_several_times() -> None:
    outcome = await plan([TASK, *exchanges(3), *messages(1)], 190, HalvingStrategy())
    lengths = [len(output) for output in outputs(outcome)]
    assert lengths[0] == 50
    assert lengths == sorted(lengths), "the first result is halved three times before the second"
    assert {*lengths} <= {50, 100, 200, 400}


async def test_an_edit_must_return_all_messages_of_a_unit_or_none() -> None:
    class HalfEdit(HalvingStrategy):
        def edit(self, unit: tuple[Msg, ...], newest: bool = False) -> Sequence[Msg]:
            return unit[:1]

    with pytest.raises(OptionError) as caught:
        await plan([TASK, *exchanges(3), *messages(1)], 100, HalfEdit())
    assert caught.value.place == "budget.strategy"


async def test_an_edit_that_returns_no_messages_drops_the_unit() -> None:
    class DroppingStrategy(HalvingStrategy):
        repeats = False

        def order(self, units: Units) -> Sequence[int]:
            return [*dict.fromkeys(super().order(units))]

        def edit(self, unit: tuple[Msg, ...], newest: bool = False) -> Sequence[Msg]:
            return ()

    outcome = await plan([TASK, *exchanges(3), *messages(1)], 200, DroppingStrategy())
    assert len(outputs(outcome)) < 3
    assert outcome.cut is not None
    assert outcome.cut.units == 3 - len(outputs(outcome))


async def test_a_custom_strategy_can_have_a_step() -> None:
    class SteppedStrategy(CutStrategy):
        step = 40

    outcome = await plan(messages(20), 100, SteppedStrategy(), counter=TenTokenCounter())
    assert outcome.cut is not None
    assert outcome.cut.units % 4 == 0


async def test_an_edit_without_a_change_is_not_part_of_the_cut() -> None:
    class UnchangedStrategy(HalvingStrategy):
        def edit(self, unit: tuple[Msg, ...], newest: bool = False) -> Sequence[Msg]:
            return unit

    outcome = await plan([TASK, *exchanges(3), *messages(9)], 250, UnchangedStrategy(), OldestFirst())
    assert outcome.cut is not None
    assert not outcome.cut.altered
    with pytest.raises(BudgetError):
        await plan([TASK, *exchanges(3), *messages(9)], 250, UnchangedStrategy())


# -- invalid results of strategies and counters -----------------------------------------------------------------


class _ReturningStrategy(CutStrategy):
    """Strategy that returns the values that a test passes."""

    def __init__(self, order: Any, *, edit: Any = (), step: Any = 0, spares: bool = True) -> None:
        self.given = order
        self.left = edit
        self.step = step
        self.spares = spares

    def order(self, units: Units) -> Sequence[int]:
        return cast("Sequence[int]", self.given)

    def protected(self, units: Units) -> AbstractSet[int]:
        return super().protected(units) if self.spares else set()


class _Editing(_ReturningStrategy):
    def edit(self, unit: tuple[Msg, ...], newest: bool = False) -> Sequence[Msg]:
        return cast("Sequence[Msg]", self.left)


@pytest.mark.parametrize("sequence", [range(1, 9, 2), range(8, 1, -3), (2, 5, 7)], ids=str)
async def test_an_order_can_be_any_sequence_of_unit_numbers(sequence: Any) -> None:
    pinned = Msg("Bob", "pinned " * 30, "user", pinned=True)
    msgs = [*messages(4), pinned, *messages(5, 5)] if 4 not in sequence else messages(10)
    outcome = await plan(msgs, 80, _ReturningStrategy(sequence))
    assert outcome.cut is not None
    assert {*outcome.cut.numbers} == {*list(sequence)[: len(outcome.cut.numbers)]}


@each_case(
    "lying",
    [
        *(
            _ReturningStrategy(sequence)
            for sequence in (None, {1, 2}, iter([1]), "12", [1.0], ["1"], [[1]], [True], 5)
        ),
        *(_Editing([1, 2], edit=synthesis) for synthesis in (None, "x", [1], 5)),
        *(_ReturningStrategy([1, 2], step=step) for step in ("x", -5, 0.5, float("nan"), True)),
        _ReturningStrategy([0], spares=False),
    ],
)
async def test_an_invalid_result_of_a_strategy_is_an_error_with_its_place(lying: CutStrategy) -> None:
    msgs = [text_msg("system", "Be brief.", "system"), *messages(9)]
    with pytest.raises(OptionError) as caught:
        await plan(msgs, 40, lying)
    assert caught.value.place in ("budget.strategy", "strategy.step")


@each_case("count", [-1, True, 1.5, None, "9"])
async def test_an_invalid_count_is_an_error(count: Any) -> None:
    class InvalidCounter(TokenCounterBase):
        async def count(self, request: Mapping[str, Any]) -> int:
            return cast("int", count)

    with pytest.raises(OptionError, match=r"budget\.counter"):
        await plan(messages(3), 1_000, OldestFirstInSteps(), counter=InvalidCounter())


async def test_a_change_of_the_passed_list_does_not_affect_the_budget() -> None:
    sequence: list[CutStrategy] = [OldestFirstInSteps()]
    budget = Budget(100, strategy=sequence)
    sequence.clear()
    assert budget.strategies == (OldestFirstInSteps(),)
    assert hash(budget) == hash(Budget(100, budget.counter, strategy=(OldestFirstInSteps(),)))
    formatter = EchoFormatter(budget=budget)
    with pytest.raises(AttributeError):
        formatter.budget = None  # type: ignore[misc]


@pytest.mark.parametrize(
    ("count", "anyio_backend"),
    [(60, "asyncio"), (60, "trio"), pytest.param(300, "asyncio", marks=pytest.mark.slow)],
)
async def test_each_conversation_gets_its_summary_only_once(count: int) -> None:
    writer = Writer()
    budget = Budget(900, strategy=Summarize(writer, max_tokens=200))
    conversations = [
        [text_msg("Bob", f"conversation {k}, line {n} " * 12) for n in range(30)] for k in range(count)
    ]
    formatter = EchoFormatter(budget=budget)
    for _ in range(2):
        for msgs in conversations:
            await formatter.plan(msgs)
    assert len(writer.asked) == count


def test_two_event_loops_can_write_the_same_summary_at_the_same_time() -> None:
    async def write(dropped: Sequence[Msg]) -> str:
        await anyio.sleep(0.05)
        return "A summary."

    formatter = EchoFormatter(budget=Budget(900, strategy=Summarize(write, max_tokens=200)))
    msgs = [text_msg("Bob", f"line {n} " * 30) for n in range(60)]

    async def create_plan() -> Plan:
        return await formatter.plan(msgs)

    with ThreadPoolExecutor(2) as pool:
        plans = [pool.submit(anyio.run, create_plan) for _ in range(2)]
        assert len({str(synthesis.result(timeout=20).request) for synthesis in plans}) == 1


async def test_an_old_image_is_replaced_before_texts_are_dropped() -> None:
    msgs = [
        TASK,
        Msg("Bob", (TextBlock("see"), PICTURE), "user"),
        *(text_msg("Al", f"{n} " * 60) for n in range(20)),
    ]
    total = await plan(msgs, 100_000, OldestFirstInSteps())
    assert total.tokens is not None
    outcome = await plan(msgs, total.tokens - 500, DropMedia(keep=0), OldestFirstInSteps())
    assert outcome.cut is not None
    assert (outcome.cut.units, outcome.cut.altered) == (0, ("msgs[1].content[1]",))


async def test_the_newest_result_is_not_shrunk_if_another_call_has_no_result() -> None:
    msgs = [TASK, call("a", "b"), answer("a", "row " * 3_000)]
    with pytest.raises(BudgetError):
        await plan(msgs, 900, OldestFirstInSteps(), ShrinkResults(400))


async def test_the_last_message_that_the_viewer_sees_is_never_dropped() -> None:
    history = MultiAgentHistory(viewer="F", visible=lambda msg: msg.name != "Bob")
    msgs = [text_msg("Eve", "the report " * 60), text_msg("Bob", "secret")]
    formatter = EchoFormatter(history=history, budget=Budget(60, LetterCounter(), strategy=OldestFirst()))
    with pytest.raises(BudgetError):
        await formatter.plan(msgs)


@each_case("weight", [-1, 2.5, float("nan"), None])
async def test_an_invalid_weight_is_an_error(weight: Any) -> None:
    class InvalidCounter(LetterCounter):
        def weigh(self, msg: Msg) -> int:
            return cast("int", weight)

    with pytest.raises(OptionError, match=r"budget\.counter"):
        await plan(messages(3), 1_000, OldestFirstInSteps(), counter=InvalidCounter())


async def test_a_custom_order_does_not_depend_on_earlier_plans() -> None:
    class MiddleOut(CutStrategy):
        def order(self, units: Units) -> Sequence[int]:
            middle = len(units) // 2
            return sorted(super().order(units), key=lambda number: abs(number - middle))

    msgs = [text_msg("Bob", f"line {n} " * (1 + n % 9)) for n in range(60)]
    warm = EchoFormatter(budget=Budget(200, LetterCounter(), strategy=MiddleOut()))
    for end in range(1, 61):
        cold = EchoFormatter(budget=Budget(200, LetterCounter(), strategy=MiddleOut()))
        assert (await warm.plan(msgs[:end])).request == (await cold.plan(msgs[:end])).request


async def test_a_custom_order_may_change_completely_with_a_new_message() -> None:
    class LightestOrHeaviest(CutStrategy):
        def order(self, units: Units) -> Sequence[int]:
            return sorted(super().order(units), key=units.weight, reverse=len(units) % 2 == 1)

    msgs = [text_msg("Bob", f"line {number} " * (1 + 9 * (number % 9))) for number in range(31)]
    budget = Budget(900, LetterCounter(), strategy=LightestOrHeaviest())
    warm = EchoFormatter(budget=budget)
    for end in (30, 31):
        cold = await EchoFormatter(budget=budget).plan(msgs[:end])
        assert (await warm.plan(msgs[:end])).request == cold.request


async def test_a_descending_order_with_a_step_is_an_error() -> None:
    with pytest.raises(OptionError, match="must return ascending indexes"):
        await plan(messages(30), 40, _ReturningStrategy(list(range(20, 1, -1)), step=10))


async def test_a_second_plan_has_the_same_edits_as_the_first() -> None:
    # A repair writes an unmatched result as new blocks for each request, equal to the previous ones.
    msgs = [
        text_msg("Bob", "Hi"),
        Msg("tool", [ToolResultBlock("lost", "look", [TextBlock("a"), PICTURE])], "system"),
        text_msg("Bob", "x " * 400),
        text_msg("Friday", "yes", "assistant"),
        text_msg("Bob", "now"),
    ]
    formatter = EchoFormatter(budget=Budget(500, strategy=DropMedia(keep=0)))
    first, second = await formatter.plan(msgs), await formatter.plan(msgs)
    assert first.cut is not None
    assert second.cut == first.cut
    assert second.ledger.entries == first.ledger.entries
