"""Tests of the texts of replies."""

from __future__ import annotations

import pytest

from agentkit import Msg, ParseError
from agentkit.messages.blocks import Block, TextBlock, ThinkingBlock, ToolUseBlock
from agentkit.prompts.reply_texts import check_reply_end, get_reply_text, read_reply_text
from tests.cases import each_case


def _reply(reason: str) -> Msg:
    return Msg("model", "a", "assistant", metadata={"reply": {"finish_reason": reason}})


def test_a_text_is_the_text_of_the_reply() -> None:
    assert read_reply_text("a") == get_reply_text("a") == "a"
    assert read_reply_text(Msg("model", [TextBlock("a"), TextBlock("b")], "assistant")) == "ab"


@pytest.mark.parametrize(
    ("blocks", "text"),
    [
        ([TextBlock("It "), TextBlock("rains"), TextBlock(".")], "It rains."),
        ([TextBlock("a"), ThinkingBlock("Hm."), TextBlock(""), TextBlock("b")], "a\nb"),
        ([ThinkingBlock("Hm."), TextBlock("a")], "a"),
        (
            [TextBlock("I think:"), TextBlock("[[ ## x ## ]]\n1"), TextBlock("[[ 2")],
            "I think:\n[[ ## x ## ]]\n1[[ 2",
        ),
    ],
)
def test_a_line_break_separates_texts_with_another_block_between_them(blocks: list[Block], text: str) -> None:
    assert get_reply_text(Msg("model", blocks, "assistant")) == text


@each_case(
    ("reason", "failure", "description"),
    [
        ("length", "cut_off", "the reply reached the maximum number of tokens"),
        ("interrupted", "cut_off", "the stream ended before the reply was complete"),
        ("error", "cut_off", "the provider reported an error inside the reply"),
        ("pause", "cut_off", "the provider paused the turn before the reply was complete"),
        ("refusal", "refused", "the model refused to answer"),
        ("content_filter", "filtered", "a filter of the provider withheld or truncated the reply"),
    ],
)
def test_a_reply_that_ended_early_is_an_error_with_the_reason(reason: str, failure: str, description: str) -> None:
    with pytest.raises(ParseError) as caught:
        check_reply_end(_reply(reason))
    error = caught.value
    assert (error.failure, error.description, error.text, error.message) == (
        failure,
        description,
        "a",
        _reply(reason),
    )


@each_case("reason", ["stop", "tool_use", "other", "unknown"])
def test_any_other_reply_is_complete(reason: str) -> None:
    check_reply_end(_reply(reason))
    assert read_reply_text(_reply(reason)) == "a"


def test_a_reply_with_tool_calls_has_no_text_to_read() -> None:
    calls = [ToolUseBlock("c1", "search", {}), ToolUseBlock("c2", "search", {}), ToolUseBlock("c3", "count", {})]
    with pytest.raises(ParseError, match="got tool calls: search, count") as caught:
        read_reply_text(Msg("model", calls, "assistant"))
    assert caught.value.failure == "no_structure"
