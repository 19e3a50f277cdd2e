"""Tests of budget fitting: which requests are counted, what is read, and the sizes in errors."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from agentkit import (
    Budget,
    BudgetError,
    CharacterTokenCounter,
    CutStrategy,
    DocumentBlock,
    HistoryPolicy,
    ImageBlock,
    LocalTokenCounter,
    LossError,
    Msg,
    OldestFirst,
    OldestFirstInSteps,
    Plan,
    Summarize,
    TextBlock,
    ThinkingBlock,
    TokenCounterBase,
    Tool,
    URLSource,
)
from agentkit.media import loading
from agentkit.provider_kit import MediaLimits, MediaRule
from tests.cases import each_case
from tests.conftest import EchoFormatter, result, target, text_msg

pytestmark = pytest.mark.anyio

PNG = b"\x89PNG\r\n\x1a\n" + bytes(40)


def _measure(request: Mapping[str, Any]) -> int:
    """Returns the number of characters of all texts, and 1,000 for each loaded image."""
    blocks = [block for msg in request["messages"] for block in _list_blocks(msg["content"])]
    return sum(1_000 if block["type"] == "image" else len(block.get("text", "")) for block in blocks)


def _list_blocks(content: Any) -> list[dict[str, Any]]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


class Local(LocalTokenCounter):
    """Local counter of one token for each character, which counts its calls."""

    def __init__(self) -> None:
        self.measured = 0

    def measure(self, request: Mapping[str, Any]) -> int:
        self.measured += 1
        return _measure(request)

    def weigh(self, msg: Msg) -> int:
        return len(msg.text) + 1_000 * len(msg.media)


class Remote(TokenCounterBase):
    """Remote counter of a percentage of the tokens of the local counter, which counts its calls."""

    def __init__(self, percent: int = 100) -> None:
        self.percent = percent
        self.local = Local()
        self.asked = 0

    @property
    def local_counter(self) -> LocalTokenCounter:
        return self.local

    async def count(self, request: Mapping[str, Any]) -> int:
        self.asked += 1
        return _measure(request) * self.percent // 100


class Deterministic(Remote):
    deterministic = True


def talk(count: int, size: int = 100) -> list[Msg]:
    return [text_msg("Bob", "x" * size) for _ in range(count)]


async def plan(msgs: Sequence[Msg], limit: int, counter: TokenCounterBase, *strategies: CutStrategy) -> Plan:
    return await EchoFormatter(budget=Budget(limit, counter, strategy=strategies)).plan(msgs)


# -- how many requests are counted --------------------------------------------------------------------------------


@each_case("count", [40, 1_000])
@each_case("step", [0, 300])
async def test_a_local_counter_measures_the_smallest_request_and_two_others(count: int, step: int) -> None:
    counter = Local()
    outcome = await plan(talk(count), 3_000, counter, OldestFirst(step=step))
    assert (counter.measured, outcome.tokens) == (3, 2_800 if step else 3_000)


@pytest.mark.parametrize(
    ("percent", "asked", "messages"), [(100, 2, 28), (200, 4, 13), (50, 8, 58)], ids=["same", "more", "fewer"]
)
async def test_a_remote_counter_starts_at_the_cut_of_the_local_counter(
    percent: int, asked: int, messages: int
) -> None:
    counter = Remote(percent)
    outcome = await plan(talk(1_000), 3_000, counter, OldestFirst(step=300))
    assert (counter.asked, counter.local.measured, len(outcome.history)) == (asked, 3, messages)


@each_case(
    ("create", "step", "numbers"),
    {
        "every edit": (Local, 0, [1, 3, 2, 2, 2, 2, 2, 2]),
        "steps": (Local, 300, [1, 3, 1, 1, 2, 1, 1, 2]),
        "remote": (Remote, 300, [1, 2, 2, 2, 2, 2, 2, 2]),
        "deterministic": (Deterministic, 300, [1, 2, 1, 1, 2, 1, 1, 2]),
    },
)
async def test_requests_that_were_too_large_before_are_not_counted_again(
    create: Callable[[], Any], step: int, numbers: list[int]
) -> None:
    counter = create()
    formatter, msgs = EchoFormatter(budget=Budget(3_000, counter, strategy=OldestFirst(step=step))), talk(40)
    counted: list[int] = []
    for end in range(30, 38):
        before = _get_calls(counter)
        await formatter.plan(msgs[:end])
        counted.append(_get_calls(counter) - before)
    assert counted == numbers
    assert not isinstance(counter, Remote) or counter.local.measured == 12


def _get_calls(counter: Any) -> int:
    return int(counter.measured if isinstance(counter, Local) else counter.asked)


async def test_a_request_without_tools_is_not_too_large_because_a_request_with_tools_was() -> None:
    class Tools(Local):
        def measure(self, request: Mapping[str, Any]) -> int:
            return super().measure(request) + 1_000 * len(request.get("tools", ()))

    warm, cold = (EchoFormatter(budget=Budget(3_000, Tools(), strategy=OldestFirst())) for _ in range(2))
    msgs = talk(40)
    assert len((await warm.plan(msgs[:39], tools=[Tool("look")])).history) == 20
    assert (await warm.plan(msgs)).request == (await cold.plan(msgs)).request


class ShrinkingCounter(Local):
    """Local counter of requests that shrink by a number of tokens when a last message is added."""

    def __init__(self, saved: int) -> None:
        super().__init__()
        self.saved = saved

    def measure(self, request: Mapping[str, Any]) -> int:
        is_last = bool(request["messages"][-1]["content"] == "!")
        return max(0, super().measure(request) - is_last * (self.saved + 1))


@each_case("saved", [1, 63, 64])
@each_case("step", [0, 64])
async def test_a_request_may_shrink_by_64_tokens_when_messages_are_added(saved: int, step: int) -> None:
    strategy = OldestFirst(step=step)
    warm = EchoFormatter(budget=Budget(704 - saved, ShrinkingCounter(saved), strategy=strategy))
    msgs = [*talk(1, saved), *talk(20, 64)]
    await warm.plan(msgs[:12])
    later = [*msgs[:12], text_msg("Bob", "!")]
    cold = EchoFormatter(budget=Budget(704 - saved, ShrinkingCounter(saved), strategy=strategy))
    assert (await warm.plan(later)).request == (await cold.plan(later)).request


@pytest.mark.parametrize("first", [11, 12])
async def test_a_longer_conversation_that_cannot_fit_is_not_counted_without_a_cut(first: int) -> None:
    counter = Local()
    formatter, msgs = EchoFormatter(budget=Budget(1_000, counter, strategy=OldestFirst())), talk(first)
    assert (await formatter.plan(msgs)).tokens == 1_000
    counter.measured = 0
    with pytest.raises(BudgetError):
        await formatter.plan([*msgs, *talk(1, 2_000)])
    assert counter.measured == 4  # the first edit after those known to be too few, two further cuts, and all edits


@pytest.mark.parametrize(
    ("counter", "numbers"), [(Local(), (3, 1)), (Deterministic(), (2, 1)), (Remote(), (2, 2))]
)
async def test_a_conversation_that_does_not_grow_is_not_searched_again(
    counter: Any, numbers: tuple[int, int]
) -> None:
    formatter, msgs = EchoFormatter(budget=Budget(3_000, counter, strategy=OldestFirst(step=300))), talk(40)
    counted: list[int] = []
    for _ in range(2):
        before = _get_calls(counter)
        await formatter.plan(msgs)
        counted.append(_get_calls(counter) - before)
    assert counted == [*numbers]


@pytest.mark.parametrize(("count", "limit", "asked"), [(5, 400, 4), (5, 300, 4), (40, 1_000, 7)])
async def test_without_steps_a_remote_counter_counts_few_requests(count: int, limit: int, asked: int) -> None:
    counter = Remote()
    outcome = await plan(talk(count), limit, counter, OldestFirst())
    assert (outcome.tokens, counter.asked) == (limit, asked)


# -- media --------------------------------------------------------------------------------------------------------


@pytest.fixture
def loaded(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the files that are read."""
    names: list[str] = []

    async def load_media(msgs: Sequence[Msg], *args: Any) -> Any:
        names.extend(Path(block.source.url).name for msg in msgs for block in msg.media)  # type: ignore[union-attr]
        return await loading.load_media(msgs, *args)

    monkeypatch.setattr("agentkit.formatting.request_builder.load_media", load_media)
    return names


def create_pictures(folder: Path, count: int) -> list[Msg]:
    msgs: list[Msg] = []
    for number in range(count):
        path = folder / f"{number}.png"
        path.write_bytes(PNG)
        msgs.append(Msg("Bob", [TextBlock("x" * 100), ImageBlock(URLSource(path.as_uri()))], "user"))
    return msgs


@pytest.mark.parametrize("counter", [Local(), Remote(), Remote(300)], ids=["local", "remote", "three times"])
@pytest.mark.parametrize("step", [0, 300])
async def test_images_of_dropped_messages_are_never_read(
    counter: TokenCounterBase, step: int, tmp_path: Path, loaded: list[str]
) -> None:
    msgs = create_pictures(tmp_path, 12)
    budget = Budget(9_000, counter, strategy=OldestFirst(step=step))
    outcome = await EchoFormatter(budget=budget, media_roots=[tmp_path]).plan(msgs)
    assert 0 < len(outcome.history) < 12
    assert {*loaded} == {f"{number}.png" for number in range(12 - len(outcome.history), 12)}


@pytest.mark.parametrize("counter", [Local(), Remote()], ids=["local", "remote"])
@pytest.mark.parametrize("step", [0, 300])
async def test_if_no_cut_is_enough_only_the_images_that_must_remain_are_read(
    counter: TokenCounterBase, step: int, tmp_path: Path, loaded: list[str]
) -> None:
    msgs = create_pictures(tmp_path, 3)
    budget = Budget(500, counter, strategy=OldestFirst(step=step))
    with pytest.raises(BudgetError) as caught:
        await EchoFormatter(budget=budget, media_roots=[tmp_path]).plan(msgs)
    assert ({*loaded}, caught.value.needed) == ({"2.png"}, 1_100)


@pytest.mark.parametrize("counter", [Local(), Remote()], ids=["local", "remote"])
@pytest.mark.parametrize("step", [0, 300])
@pytest.mark.parametrize("limit", [500, 100_000])
async def test_a_certain_loss_is_raised_before_anything_is_read_or_counted(
    counter: Any, step: int, limit: int, tmp_path: Path, loaded: list[str]
) -> None:
    formatter = target(media__audio=None)(
        on_loss="raise",
        budget=Budget(limit, counter, strategy=OldestFirst(step=step)),
        media_roots=[tmp_path],
    )
    call_count = getattr(counter, "asked", 0)
    lost = Msg(
        "Bob", [{"type": "audio", "source": {"type": "base64", "media_type": "audio/wav", "data": "AAAA"}}], "user"
    )
    for msgs in ([*talk(9), lost], [*create_pictures(tmp_path, 3), lost]):
        with pytest.raises(LossError):
            await formatter.plan(msgs)
    assert loaded == []
    assert getattr(counter, "asked", 0) == call_count


@pytest.mark.parametrize(("limit", "asked"), [(4_600, 1), (4_599, 2)])
async def test_a_small_conversation_is_counted_once_although_it_has_media(
    limit: int, asked: int, tmp_path: Path
) -> None:
    counter, msgs = Remote(10), [*create_pictures(tmp_path, 1), *talk(12)]
    formatter = EchoFormatter(
        budget=Budget(limit, counter, strategy=OldestFirst(step=300)), media_roots=[tmp_path]
    )
    assert (await formatter.plan(msgs)).cut is None
    assert counter.asked == asked


@pytest.mark.parametrize(("create", "numbers"), [(Local, (0, 4)), (Remote, (2, 3))], ids=["local", "remote"])
async def test_only_a_remote_counter_is_compared_with_the_local_counter(
    create: Callable[[], Any], numbers: tuple[int, int], tmp_path: Path
) -> None:
    counter = create()
    budget = Budget(9_000, counter, strategy=OldestFirst(step=300))
    await EchoFormatter(budget=budget, media_roots=[tmp_path]).plan(create_pictures(tmp_path, 12))
    assert (getattr(counter, "asked", 0), counter.local_counter.measured) == numbers


@pytest.mark.parametrize(("tokens", "names"), [(1, {"2.png"}), (0, {"0.png", "1.png", "2.png"})])
async def test_a_local_counter_may_count_few_tokens_or_none(
    tokens: int, names: set[str], tmp_path: Path, loaded: list[str]
) -> None:
    class Images(Local):
        def measure(self, request: Mapping[str, Any]) -> int:
            return tokens * (_measure(request) // 1_000)

    counter = Remote()
    counter.local = Images()
    formatter = EchoFormatter(
        budget=Budget(2_000, counter, strategy=OldestFirst(step=300)), media_roots=[tmp_path]
    )
    outcome = await formatter.plan(create_pictures(tmp_path, 3))
    assert (outcome.tokens, {*loaded}) == (1_100, names)


class Base64(Local):
    """Local counter of one token for each character of texts and media."""

    def measure(self, request: Mapping[str, Any]) -> int:
        blocks = [block for msg in request["messages"] for block in _list_blocks(msg["content"])]
        return sum(len(block["text"] if "text" in block else block["source"]["data"]) for block in blocks)


@pytest.mark.parametrize(("step", "tokens"), [(0, 2_968), (300, 2_768)])
@pytest.mark.parametrize("on_loss", ["raise", "describe"])
async def test_the_cut_is_as_small_as_possible_although_a_text_file_remains(
    on_loss: Any, step: int, tokens: int, tmp_path: Path
) -> None:
    (tmp_path / "a.txt").write_text("y" * 2_000)
    msgs = [*talk(40), Msg("Bob", [DocumentBlock(URLSource((tmp_path / "a.txt").as_uri()))], "user")]
    budget = Budget(3_000, Base64(), strategy=OldestFirst(step=step))
    outcome = await EchoFormatter(budget=budget, media_roots=[tmp_path], on_loss=on_loss).plan(msgs)
    assert outcome.tokens == tokens


async def test_a_request_with_media_may_shrink_when_messages_are_added() -> None:
    """The target accepts one image, so that a small new image replaces a large image."""
    large, small = (
        Msg("Bob", [ImageBlock.from_bytes(PNG + bytes(size), "image/png")], "user") for size in (1_500, 0)
    )
    limited = target(media__image=MediaRule(limits=MediaLimits(count=1)))
    msgs = [*talk(20), large, small]
    warm, cold = (limited(budget=Budget(2_990, Base64(), strategy=OldestFirst())) for _ in range(2))
    assert (await warm.plan(msgs[:-1])).cut is not None
    assert (await warm.plan(msgs)).cut is (await cold.plan(msgs)).cut is None


# -- what a model does not see ------------------------------------------------------------------------------------


class FromReset(HistoryPolicy):
    """Policy that shows the messages from the last message `reset`."""

    def view(self, msgs: Sequence[Msg]) -> Sequence[Msg]:
        starts = [index for index, msg in enumerate(msgs) if msg.text == "reset"]
        return msgs[starts[-1] if starts else 0 :]


async def test_a_request_may_shrink_when_a_policy_hides_earlier_messages() -> None:
    msgs = [*talk(40), text_msg("Bob", "reset")]
    warm, cold = (
        EchoFormatter(budget=Budget(2_930, Local(), strategy=OldestFirst()), history=FromReset()) for _ in range(2)
    )
    assert (await warm.plan(msgs[:-1])).cut is not None
    assert (await warm.plan(msgs)).cut is (await cold.plan(msgs)).cut is None


# -- summaries ----------------------------------------------------------------------------------------------------


async def summarize(msgs: Sequence[Msg]) -> str:
    return "s" * 40


async def test_the_search_leaves_free_tokens_for_summaries() -> None:
    counter = Local()
    outcome = await plan(talk(50), 3_000, counter, Summarize(summarize, 200, 0))
    assert (outcome.tokens, counter.measured) == (2_840, 4)


async def test_a_cut_with_summaries_may_use_the_whole_limit() -> None:
    async def summarize_with_spaces(msgs: Sequence[Msg]) -> str:
        return "s" + " " * 200 + "s"

    msgs = [text_msg("Bob", "task"), *talk(9)]
    outcome = await plan(msgs, 506, Local(), Summarize(summarize_with_spaces, 200, 0))
    assert outcome.cut is not None
    assert (outcome.tokens, len(outcome.cut.numbers)) == (506, 6)


@pytest.mark.parametrize(
    ("count", "reason"),
    [
        (3, "replaces 1 message "),
        (4, "replaces 2 messages "),
    ],
)
async def test_the_ledger_has_the_number_of_summarized_messages(count: int, reason: str) -> None:
    outcome = await plan(talk(count, 250), 710, Local(), Summarize(summarize, 200, 0, keep_task=False))
    (synthesis,) = outcome.ledger.syntheses
    assert synthesis.reason.startswith(reason)


async def test_the_summary_is_at_the_first_dropped_message() -> None:
    pinned = text_msg("Bob", "pinned", pinned=True)
    msgs = [text_msg("Bob", "task"), *talk(2), pinned, *talk(4)]
    outcome = await plan(msgs, 450, Local(), Summarize(summarize, 200, 0))
    assert [msg.text[:6] for msg in outcome.history] == ["task", "s" * 6, "pinned", "x" * 6, "x" * 6]


async def test_summaries_that_do_not_fit_after_all_edits_are_an_error() -> None:
    async def summarize_at_length(msgs: Sequence[Msg]) -> str:
        return "s" * 400

    with pytest.raises(BudgetError) as caught:
        await plan(talk(5), 310, Local(), Summarize(summarize_at_length, 200, 0, keep_task=False))
    assert caught.value.limit == 310
    assert (
        await plan(talk(5), 329, Local(), Summarize(summarize_at_length, 200, 0, keep_task=False))
    ).tokens == 329


# -- the numbers of a cut and of an error -------------------------------------------------------------------------


@pytest.mark.parametrize(("mode", "tokens"), [("text", 104), ("never", 100)])
async def test_thinking_counts_as_dropped_if_requests_contain_it(mode: str, tokens: int) -> None:
    thought = Msg("Friday", [ThinkingBlock("a" * 25), TextBlock("x" * 100)], "assistant")
    budget = Budget(1_000, Local(), strategy=OldestFirst())
    outcome = await target(thinking__mode=mode)(budget=budget).plan([thought, *talk(10)])
    assert outcome.cut is not None
    assert outcome.cut.tokens == tokens


@pytest.mark.parametrize(
    ("pinned", "uncached"), [([], 1_000), ([0], 900), ([0, 2], 900)], ids=["none", "first", "between"]
)
async def test_the_tokens_after_the_first_change_are_not_in_the_prompt_cache(
    pinned: list[int], uncached: int
) -> None:
    msgs = [text_msg("Bob", "x" * 100, pinned=number in pinned) for number in range(12)]
    outcome = await plan(msgs, 1_000, Local(), OldestFirst())
    assert outcome.cut is not None
    assert outcome.cut.uncached == uncached


async def test_content_that_a_cut_drops_is_no_loss() -> None:
    lost = Msg(
        "Bob", [{"type": "audio", "source": {"type": "base64", "media_type": "audio/wav", "data": "AAAA"}}], "user"
    )
    formatter = target(media__audio=None)(on_loss="raise", budget=Budget(500, Local(), strategy=OldestFirst()))
    outcome = await formatter.plan([lost, *talk(9)])
    assert outcome.cut is not None
    assert outcome.cut.numbers[0] == 0


async def test_the_size_in_an_error_includes_the_tokens_for_summaries_only_if_messages_can_be_dropped() -> None:
    strategy, counter = Summarize(summarize, 200), CharacterTokenCounter()
    task, newest = text_msg("Bob", "task"), text_msg("Bob", "x " * 400)
    size = counter.measure(EchoFormatter().lower([task, newest]).request, EchoFormatter())
    for msgs, tokens in (([task, newest], 0), ([task, *talk(3), newest], 200)):
        with pytest.raises(BudgetError) as caught:
            await plan(msgs, 210, counter, strategy)
        assert caught.value.needed == size + tokens


async def test_the_error_names_the_message_of_an_unmatched_result() -> None:
    with pytest.raises(BudgetError) as caught:
        await plan([*talk(2), result("lost", output="x" * 500)], 100, Local(), OldestFirstInSteps())
    assert caught.value.required == ("msgs[0]", "msgs[2]")
