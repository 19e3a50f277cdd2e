"""`StreamedText`: the text of a streamed reply equals the text of its message, without the speaker's name."""

from __future__ import annotations

from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentkit import Msg, TextBlock, ThinkingBlock
from agentkit.history.speaker_prefix import strip_speaker_prefix
from agentkit.prompts.reply_texts import get_reply_text
from agentkit.prompts.streamed_text import StreamedText
from agentkit.replies.events import MessageStart, TextDelta, TextEnd, TextStart, ThinkingDelta
from tests.cases import each_case
from tests.profiles import examples


def read(events: list[Any], viewer: str | None = None) -> list[str]:
    """Returns the text after each event."""
    text = StreamedText(viewer)
    return [*map(text.add_event, events)]


S: Final = TextStart
D: Final = TextDelta
E: Final = TextEnd


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        ([MessageStart(), S(0), D(0, " \na"), ThinkingDelta(1, "x"), D(0, "b "), E(0, "ab ")], "||a||b |"),
        ([S(0), D(0, "a"), E(0, "a"), S(2), D(2, ""), D(2, "b"), D(2, "c"), E(2, "bc")], "|a||||\nb|c|"),
        ([S(0), D(0, "a"), S(1), D(1, "b"), D(0, "c"), E(1, "b"), E(0, "ac")], "|a|||c||b"),
        (
            [S(0), D(0, "a"), S(2), S(1), D(2, "c"), D(1, "b"), E(0, "a"), D(1, "!"), E(1, "b!")],
            "|a|||||b|!|c",
        ),
        ([S(0), E(0, ""), S(1), D(1, "a"), E(1, "a"), S(2), E(2, ""), S(3), D(3, "b")], "|||a|||||b"),
        (
            [S(0), S(1), E(1, ""), E(0, ""), S(2), D(2, "b"), S(3), D(3, "c"), E(3, "c"), E(2, "b")],
            "|||||b||||c",
        ),
        ([S(0), S(1), D(1, "b"), E(1, "b"), D(0, "a"), E(0, "a"), S(2), D(2, "c")], "||||a|b||c"),
        ([S(0), D(0, "a"), E(0, "a"), S(1), D(1, "[["), D(1, " ## x"), E(1, "")], "|a||||\n[[ ## x|"),
        ([S(0), D(0, "a"), E(0, "a"), S(1), D(1, "[["), E(1, "[["), S(2), D(2, "b")], "|a||||[[||b"),
        ([S(0), D(0, "a"), E(0, "a"), S(2), D(2, "["), D(2, "1]"), E(2, "[1]")], "|a||||\n[1]|"),
    ],
)
def test_blocks_are_in_order_and_parts_of_one_text(events: list[Any], expected: str) -> None:
    assert read(events) == expected.split("|")


@each_case(
    ("pieces", "expected"),
    [
        (["Fri", "day", ":", " ", "He", "llo"], "||||He|llo"),
        (["Frid", "ge: x"], "|Fridge: x"),
        (["Friday :\n[[ "], "[[ "),
        (["Friday", " said: x"], "|Friday said: x"),
        (["Friday:", "  "], "|"),
        (["  ", " Fri"], "|"),
        (["Hello Friday: x"], "Hello Friday: x"),
        (["Friday: ", "Friday: x"], "|Friday: x"),
        (["Friday:", " " * 500, "x"], f"|Friday:{' ' * 500}|x"),
    ],
)
def test_the_prefix_with_the_name_is_held_back_and_omitted(pieces: list[str], expected: str) -> None:
    assert read([S(0), *(D(0, piece) for piece in pieces)], "Friday") == ["", *expected.split("|")]


def test_an_empty_name_has_no_prefix() -> None:
    assert read([S(0), D(0, ": x")], " ") == read([S(0), D(0, ": x")], "") == ["", ": x"]


@examples(300)
@given(
    st.lists(st.sampled_from(["Mr", ": X", "\\:", ":", "：", " ", "\n", "\t", "x", "Friday", "Fri"]), max_size=8),
    st.sampled_from(["Friday", "Mr: X", "Mr"]),
)
def test_the_text_equals_that_of_the_message_for_any_pieces(pieces: list[str], viewer: str) -> None:
    pieces = [*pieces, "."]  # the end of a prefix
    whole = strip_speaker_prefix(Msg(viewer, "".join(pieces), "assistant")).text
    assert "".join(read([S(0), *(D(0, piece) for piece in pieces)], viewer)).strip() == whole.strip()


@examples(300)
@given(
    st.lists(
        st.one_of(
            st.just(ThinkingBlock("Hm.")),
            st.lists(st.sampled_from(["[", "[ ## ", "[[ ## ", " ", "a", "\n", "x ## ]]"]), max_size=4),
        ),
        max_size=6,
    )
)
def test_the_text_equals_that_of_the_message_for_any_blocks(blocks: list[ThinkingBlock | list[str]]) -> None:
    events: list[Any] = []
    for index, block in enumerate(blocks):
        if isinstance(block, list):
            events += [S(index), *(D(index, piece) for piece in block), E(index, "".join(block))]
    content = [TextBlock("".join(block)) if isinstance(block, list) else block for block in blocks]
    assert "".join(read(events)).strip() == get_reply_text(Msg("F", content, "assistant")).strip()
