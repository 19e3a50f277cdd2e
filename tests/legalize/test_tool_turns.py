"""Tests of tool calls and results as texts, and of one call in each turn."""

from __future__ import annotations

from typing import Any, Final

import pytest

from agentkit import (
    Base64Source,
    ImageBlock,
    Msg,
    OpaqueBlock,
    OpaqueState,
    TextBlock,
    ToolResultBlock,
    ToolUseBlock,
)
from tests.conftest import call, get_turns, ledger_lines, lower, result, text_msg, turn_lines

IMAGE: Final = ImageBlock(Base64Source("image/png", "iVBORw0KGgo="))
BOB: Final = text_msg("Bob", "hi")
APART: Final = "moved: moved into a separate turn, because the API accepts only one tool call per turn"
SAME: Final = "carried: sent unchanged"


def test_each_call_has_its_own_turn_with_the_blocks_before_it() -> None:
    blocks = (TextBlock("1"), *call("a").blocks, TextBlock("2"), *call("b", "c").blocks, TextBlock("3"))
    msgs = [
        BOB,
        Msg("Friday", blocks, "assistant"),
        Msg("tool", tuple(ToolResultBlock(id, "search", id.upper()) for id in ("c", "a")), "system"),
        Msg("other tool", (ToolResultBlock("b", "search", "B"),), "system"),
        BOB,
    ]
    plan = lower(msgs, tools__parallel_calls=False, turns__speaker_refused="#")
    assert turn_lines(plan) == [
        "user Bob: hi",
        "assistant Friday: 1 | call a",
        "system tool: result a=A",
        "assistant Friday: 2 | call b",
        "system other tool: result b=B",
        "assistant Friday: call c | 3",
        "system tool: result c=C",
        "user Bob: hi",
    ]
    assert ledger_lines(plan) == [
        f"0.0 {SAME}",
        f"1.0 {SAME}",
        f"1.1 {SAME}",
        f"1.2 {APART}",
        f"1.3 {APART}",
        f"1.4 {APART}",
        f"1.5 {APART}",
        f"2.0 {APART}",
        f"2.1 {APART}",
        f"3.0 {APART}",
        f"4.0 {SAME}",
    ]


def test_calls_with_one_id_keep_their_results_in_their_order() -> None:
    msgs = [call("a", "a"), result("a", output="one"), result("a", output="two")]
    plan = lower(msgs, tools__parallel_calls=False)
    assert turn_lines(plan) == [
        "assistant Friday: call a",
        "system system: result a=one",
        "assistant Friday: call a",
        "system system: result a=two",
    ]
    assert ledger_lines(plan) == [f"0.0 {SAME}", f"0.1 {APART}", f"1.0 {APART}", f"2.0 {APART}"]


def test_a_single_call_keeps_its_turn() -> None:
    msgs = [call("a"), result("a"), call("b"), result("b")]
    plan = lower(msgs, tools__parallel_calls=False)
    assert turn_lines(plan) == turn_lines(lower(msgs))
    assert [line.partition(" ")[2] for line in ledger_lines(plan)] == [SAME] * 4


AS_TEXT: Final = "carried: written as text, because the API has no roles for tool calls and results"
REFUSED: Final = "the API accepts this type of block only in tool results, but tool results are sent as text here"


@pytest.mark.parametrize(("joining", "lead"), [("apart", "\n"), ("glued", "")])
def test_calls_and_results_are_written_as_text(joining: str, lead: str) -> None:
    state = OpaqueState("other", thought_signature="eA==")
    calls = (ToolUseBlock("a", "look", {"q": 1}), TextBlock("so"), ToolUseBlock("b", "snap", {}, state=state))
    results = (
        ToolResultBlock("b", "", (TextBlock("here"), IMAGE, OpaqueBlock("echo", {"x": 1}))),
        ToolResultBlock("a", "peek", "no", True),
    )
    msgs = [BOB, Msg("Friday", calls, "assistant"), Msg("tool", results, "system"), BOB]
    changes: dict[str, Any] = {"tools__role": False, "turns__text_joining": joining, "wire": "echo"}
    plan = lower(msgs, **changes)
    assert turn_lines(plan) == [
        "user Bob: hi",
        f'assistant Friday: (calls look with {{"q":1}}) | so | {lead}(calls snap with {{}})',
        "user user: (result of snap) here | <image> | "
        f"{lead}[part left out because only a tool result can contain it] | {lead}(result of peek, an error) no",
        "user Bob: hi",
    ]
    assert ledger_lines(plan) == [
        f"0.0 {SAME}",
        f"1.0 {AS_TEXT}",
        f"1.1 {SAME}",
        f"1.2 {AS_TEXT}; data issued by other, such as a signature, was omitted",
        f"2.0 {AS_TEXT}",
        f"2.0.0 {AS_TEXT}",
        f"2.0.1 {AS_TEXT}",
        f"2.0.2 described!: {REFUSED}; {AS_TEXT.partition(': ')[2]}",
        f"2.1 {AS_TEXT}",
        f"3.0 {SAME}",
    ]
    dropped = lower(msgs, on_loss="drop", **changes)
    assert "left out" not in str(dropped.request)
    assert ledger_lines(dropped)[7] == f"2.0.2 dropped!: {REFUSED}; {AS_TEXT.partition(': ')[2]}"


def test_the_text_of_an_added_result_has_no_place_in_the_ledger() -> None:
    plan = lower([call("a", "b"), result("b")], tools__role=False)
    assert turn_lines(plan) == [
        'assistant Friday: (calls search with {"q":"a"}) | \n(calls search with {"q":"b"})',
        "user user: (result of search) found",
        "user user: (result of search, an error) The call was interrupted: no result was recorded.",
    ]
    assert ledger_lines(plan) == [f"0.0 {AS_TEXT}", f"0.1 {AS_TEXT}", f"1.0 {AS_TEXT}"]


def test_a_turn_written_as_text_has_no_tool_blocks() -> None:
    plan = lower([call("a"), result("a")], tools__role=False)
    assert [block["type"] for turn in get_turns(plan) for block in turn["content"]] == ["text", "text"]
