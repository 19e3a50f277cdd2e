"""Tests of `Summarize`: which messages a summary replaces, its length, and the cached summaries."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from agentkit import Msg, Summarize
from agentkit.budget.units import SUMMARY_MARK
from tests.conftest import text_msg

pytestmark = pytest.mark.anyio

NOTE = "(Part of the summary was left out here.)"


class Writer:
    """Summarizer that stores the texts of each call."""

    def __init__(self, text: str = "") -> None:
        self.text = text
        self.asked: list[str] = []

    async def __call__(self, msgs: Sequence[Msg]) -> str:
        self.asked.append(" ".join(msg.text for msg in msgs))
        return self.text or f"<{self.asked[-1]}>"


def chat(count: int, start: int = 0) -> list[Msg]:
    return [text_msg("Bob", str(number)) for number in range(start, start + count)]


def texts(msgs: Sequence[Msg]) -> list[str]:
    return [msg.text for msg in msgs]


# -- the messages of a summary ------------------------------------------------------------------------------------


async def test_only_messages_without_a_summary_are_summarized() -> None:
    writer = Writer()
    strategy = Summarize(writer)
    assert texts(await strategy.summaries(chat(2))) == ["<0 1>"]
    assert texts(await strategy.summaries(chat(3))) == ["<0 1>", "<2>"]
    assert texts(await strategy.summaries(chat(7))) == ["<0 1>", "<2>", "<3 4 5 6>"]
    assert texts(await strategy.summaries(chat(5))) == ["<0 1>", "<2>", "<3 4>"]
    assert texts(await strategy.summaries(chat(1))) == ["<0>"]
    assert writer.asked == ["0 1", "2", "3 4 5 6", "3 4", "0"]


async def test_four_summaries_and_the_next_messages_get_one_summary() -> None:
    strategy = Summarize(Writer())
    for count in range(1, 5):
        assert len(await strategy.summaries(chat(count))) == count
    assert texts(await strategy.summaries(chat(6))) == ["<<0> <1> <2> <3> 4 5>"]


async def test_the_mark_of_a_summary_identifies_all_messages_that_it_stands_for() -> None:
    strategy = Summarize(Writer())
    marks = [
        [(msg.metadata or {})[SUMMARY_MARK] for msg in await strategy.summaries(dropped)]
        for dropped in (chat(2), chat(3), chat(2, 5), [*chat(1), *chat(1, 2)])
    ]
    assert marks[1][0] == marks[0][0]
    assert len({mark for row in marks for mark in row}) == 4
    again = await Summarize(Writer()).summaries(chat(2))
    assert (again[0].metadata or {})[SUMMARY_MARK] == marks[0][0]


# -- the cache ----------------------------------------------------------------------------------------------------


async def test_the_least_recently_used_summary_is_removed_from_a_full_cache(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("agentkit.budget.summaries._MAX_CACHED", 2)
    writer = Writer()
    strategy = Summarize(writer)
    for number in (1, 2, 1, 3, 1, 3, 2):
        await strategy.summaries(chat(1, number))
    assert writer.asked == ["1", "2", "3", "2"]


# -- the length ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "shortened"),
    [
        ("a" * 500, "a" * 500),
        ("a" * 500 + " ", f"{'a' * 250}\n{NOTE}\n{'a' * 249} "),
        ("a" * 1_000, f"{'a' * 250}\n{NOTE}\n{'a' * 250}"),
    ],
)
async def test_a_summary_keeps_as_many_characters_as_fit_into_its_tokens(text: str, shortened: str) -> None:
    """100 tokens for each of four summaries, less 20 tokens for the message, are 500 letters of 0.16 tokens."""
    assert texts(await Summarize(Writer(text), max_tokens=400).summaries(chat(1))) == [shortened]
