"""`StreamedText`: the text of a streamed reply equals the text of its message, without the speaker's name."""

from __future__ import annotations

from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentkit import Msg
from agentkit.history.speaker_prefix import strip_speaker_prefix
from agentkit.prompts.streamed_text import StreamedText
from agentkit.replies.events import MessageStart, TextDelta, TextEnd, TextStart, ThinkingDelta
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
        ([S(0), D(0, "a"), S(1), D(1, "b"), D(0, "c"), E(1, "b"), E(0, "ac")], "|a|||c||\nb"),
        (
            [S(0), D(0, "a"), S(2), S(1), D(2, "c"), D(1, "b"), E(0, "a"), D(1, "!"), E(1, "b!")],
            "|a|||||\nb|!|\nc",
        ),
        ([S(0), E(0, ""), S(1), D(1, "a"), E(1, "a"), S(2), E(2, ""), S(3), D(3, "b")], "|||a|||||\nb"),
        (
            [S(0), S(1), E(1, ""), E(0, ""), S(2), D(2, "b"), S(3), D(3, "c"), E(3, "c"), E(2, "b")],
            "|||||b||||\nc",
        ),
        ([S(0), S(1), D(1, "b"), E(1, "b"), D(0, "a"), E(0, "a"), S(2), D(2, "c")], "||||a|\nb||\nc"),
    ],
)
def test_blocks_are_in_order_and_joined_by_line_breaks(events: list[Any], expected: str) -> None:
    assert read(events) == expected.split("|")


@pytest.mark.parametrize(
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
