"""Tests of the matches of tool results with tool calls."""

from __future__ import annotations

from agentkit import Msg, ToolResultBlock, ToolUseBlock
from agentkit.repair.matching import match_results
from tests.cases import each_case
from tests.conftest import text_msg


def msg(*parts: str) -> Msg:
    """Returns a message of calls and results: `+a` is a call, and `-a` is a result."""
    blocks = [
        ToolUseBlock(part[1:], "search", {}) if part[0] == "+" else ToolResultBlock(part[1:], "search", "found")
        for part in parts
    ]
    return Msg("Friday", blocks, "assistant")


@each_case(
    ("msgs", "results", "unmatched"),
    [
        ([msg("-a", "+a")], {(0, 1): (0, 0)}, []),
        ([msg("-a", "+a"), msg("-a")], {(0, 1): (0, 0)}, [(1, 0)]),
        ([msg("-a", "-a", "+a", "+a")], {(0, 2): (0, 0), (0, 3): (0, 1)}, []),
        ([msg("+a", "-a", "-a", "+a")], {(0, 0): (0, 1), (0, 3): (0, 2)}, []),
        ([msg("+a", "-a", "-a")], {(0, 0): (0, 1)}, [(0, 2)]),
        ([msg("-a", "+a", "+a"), msg("-a", "-a")], {(0, 1): (0, 0), (0, 2): (1, 0)}, [(1, 1)]),
        ([text_msg("Bob", "Hi."), msg("+a", "-a", "-a", "+a")], {(1, 0): (1, 1), (1, 3): (1, 2)}, []),
        ([msg("+a"), text_msg("Bob", "Hi."), msg("+a"), msg("-a", "-a")], {(2, 0): (3, 0)}, [(3, 1)]),
        ([msg("+a"), text_msg("Bob", "Hi."), msg("-a")], {(0, 0): (2, 0)}, []),
    ],
)
def test_a_result_belongs_to_the_oldest_open_call_or_to_a_later_call_of_its_message(
    msgs: list[Msg], results: dict[tuple[int, int], tuple[int, int]], unmatched: list[tuple[int, int]]
) -> None:
    matches = match_results(msgs)
    assert matches.results == results
    assert [*matches.unmatched] == unmatched
