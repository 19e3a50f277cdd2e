"""Tests of call ids that several tool calls of one turn share."""

from __future__ import annotations

from typing import Any

import pytest

from agentkit.provider_kit import NameRule
from tests.conftest import call, legalize, result, turn_lines
from tests.conftest import lower as lower_messages


def lower(*ids: str, rule: NameRule | None = None) -> tuple[list[str], dict[str, str]]:
    """Returns the lines of the request with these calls, and the original id of each replaced id."""
    msgs = [call(*ids), *(result(id, output=str(number)) for number, id in enumerate(ids))]
    lines = turn_lines(lower_messages(msgs, tools__call_ids=rule))
    return lines, legalize(msgs, tools__call_ids=rule).call_ids


def expect(*ids: str) -> list[str]:
    calls = " | ".join(f"call {id}" for id in ids)
    return [f"assistant Friday: {calls}", *(f"system system: result {id}={n}" for n, id in enumerate(ids))]


SECOND, THIRD, FOURTH = (NameRule(prefix="call_").fit(f"d#{number}") for number in (2, 3, 4))


def test_each_repeated_id_gets_the_next_number() -> None:
    lines, originals = lower("d", "x", "d", "d", "x")
    other = NameRule(prefix="call_").fit("x#2")
    assert lines == expect("d", "x", SECOND, THIRD, other)
    assert originals == {SECOND: "d", THIRD: "d", other: "x"}


@pytest.mark.parametrize(
    ("ids", "new_ids"),
    [
        (("d", SECOND, "d"), ("d", SECOND, THIRD)),
        (("d", "d", SECOND), ("d", THIRD, SECOND)),
        (("d", SECOND, "d", THIRD, "d"), ("d", SECOND, FOURTH, THIRD, None)),
    ],
)
def test_a_new_id_is_no_id_of_the_turn(ids: Any, new_ids: Any) -> None:
    fifth = NameRule(prefix="call_").fit("d#5")
    assert lower(*ids)[0] == expect(*(id or fifth for id in new_ids))


def test_new_ids_obey_the_rule_of_the_target() -> None:
    rule = NameRule(pattern="[a-z0-9]+", limit=9)
    original = "D d"
    first = rule.fit(original)
    lines, originals = lower(original, original, rule=rule)
    assert lines == expect(first, rule.fit(f"{first}#2"))
    assert originals == {first: original, rule.fit(f"{first}#2"): original}


def test_new_ids_are_distinct_even_if_few_are_possible() -> None:
    calls, *_ = lower(*"aabbccddee", rule=NameRule(limit=1))[0]
    assert len({*calls.split(" | ")}) == 10
