"""Tests of the order of tool results, and of the messages that contain them."""

from __future__ import annotations

from typing import Any, Final

from agentkit import Msg, ToolResultBlock
from agentkit.provider_kit import NameRule
from tests.cases import each_case
from tests.conftest import call, lower, turn_lines

CALLS: Final = call("a", "b", "c")


def results(name: str, *ids: str) -> Msg:
    return Msg(name, tuple(ToolResultBlock(id, "search", id.upper()) for id in ids), "system")


ROWS: Final[list[tuple[str, list[Msg], dict[str, Any], list[str]]]] = [
    (
        "any order in any message",
        [results("x", "c", "a"), results("y", "b")],
        {},
        ["x: result c=C | result a=A", "y: result b=B"],
    ),
    (
        "in order, each in a message",
        [results("x", "c", "a"), results("y", "b")],
        {"tools.results_in_order": True},
        ["x: result a=A", "x: result b=B", "x: result c=C"],
    ),
    (
        "messages that are in order",
        [results("x", "a"), results("y", "b", "c")],
        {"tools.results_in_order": True},
        ["x: result a=A", "y: result b=B | result c=C"],
    ),
    (
        "together, in the order of the calls",
        [results("x", "c", "b", "a")],
        {"tools.results": "together"},
        ["x: result a=A | result b=B | result c=C"],
    ),
    (
        "together, from several messages",
        [results("x", "a"), results("y", "b"), results("z", "c")],
        {"tools.results": "together"},
        ["x: result a=A | result b=B | result c=C"],
    ),
]


@each_case(("msgs", "changes", "lines"), {row[0]: row[1:] for row in ROWS})
def test_results_have_the_order_and_the_messages_that_the_target_requires(
    msgs: list[Msg], changes: dict[str, Any], lines: list[str]
) -> None:
    for later in ([], [Msg("Bob", "hi", "user"), call("d"), results("x", "d")]):
        plan = lower([CALLS, *msgs, *later], **changes)
        expected = [f"system {line}" for line in lines]
        assert turn_lines(plan)[1 : len(lines) + 1] == expected
        assert len(turn_lines(plan)) == len(lines) + 1 + len(later)


def test_replaced_ids_do_not_change_the_order_of_results() -> None:
    rule = NameRule(pattern="[a-z]")
    plan = lower([call("a", "B"), results("x", "B"), results("y", "a")], tools__call_ids=rule)
    assert turn_lines(plan) == [
        f"assistant Friday: call a | call {rule.fit('B')}",
        f"system x: result {rule.fit('B')}=B",
        "system y: result a=A",
    ]
