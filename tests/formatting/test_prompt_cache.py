"""Tests of prompt cache markers, and of blocks that remain equal in a longer conversation."""

from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentkit import Msg, OptionError
from agentkit.ledger.provenance import TracedConversation
from agentkit.provider_kit import place_cache_breakpoints, stable_blocks
from agentkit_anthropic import AnthropicChatFormatter
from agentkit_ollama import OllamaChatFormatter
from tests.conftest import texts_msg
from tests.profiles import examples


def _list_reached_positions(chosen: list[int], reach: int) -> set[int]:
    return {position for by in chosen for position in range(by - reach + 1, by + 1)}


@examples(200)
@given(
    st.sets(st.integers(0, 200), max_size=120).map(sorted),
    st.integers(1, 4),
    st.integers(1, 20),
    st.one_of(st.none(), st.integers(0, 220)),
)
def test_breakpoints_are_within_reach_of_every_candidate(
    candidates: list[int], limit: int, reach: int, turn: int | None
) -> None:
    chosen = place_cache_breakpoints(candidates, limit, reach=reach, turn=turn)
    assert len(chosen) <= limit
    assert chosen == sorted({*chosen} & {*candidates})
    if not candidates:
        return
    assert chosen[-1] == candidates[-1]
    bound = reach * (limit - 1) - 1
    assert {position for position in candidates if candidates[-1] - position <= bound} <= _list_reached_positions(
        chosen, reach
    )
    before = [position for position in candidates if turn is not None and position < turn]
    if before and limit > 1:
        assert before[-1] in chosen


def test_without_candidates_there_is_no_marker() -> None:
    assert place_cache_breakpoints([], 4, reach=20, turn=3) == []


def test_a_single_marker_is_on_the_last_candidate() -> None:
    assert place_cache_breakpoints([0, 5, 9], 1, reach=20, turn=6) == [9]


def test_an_unknown_value_is_an_error_that_lists_the_valid_values() -> None:
    with pytest.raises(OptionError, match="Use off, auto or auto-1h"):
        AnthropicChatFormatter(cache_breakpoints=cast("Any", "yes"))


def test_a_formatter_without_markers_accepts_only_off() -> None:
    assert OllamaChatFormatter(cache_breakpoints="off").cache_breakpoints == "off"
    with pytest.raises(OptionError, match="unknown value 'auto'"):
        OllamaChatFormatter(cache_breakpoints="auto")


def test_added_texts_that_the_next_request_omits_are_not_stable() -> None:
    msg, pair = Msg("Bob", "hi", "user"), texts_msg("Bob", "hi", "ho")
    names = ["filler turn", "tool choice", "output instruction", "frame", "interrupted", "line", "speaker"]
    conversation = TracedConversation(
        [msg, pair, *[msg] * 7], [0, ("line", "frame"), *[(name,) for name in names]]
    )
    flags = [(True,), (True, False), *[(False,)] * 5, (True,), (True,)]
    assert [*stable_blocks(conversation)] == [*zip(conversation.msgs, flags, strict=True)]
