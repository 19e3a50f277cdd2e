"""Tests of the differential tool itself; none needs the base version."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.differential.comparison import Comparison
from tests.differential.conversations import create_conversation
from tests.differential.vocabulary import PROVIDERS

CASE: dict[str, Any] = {"kind": "conversations", "seed": 1, "requests": [{"provider": "openai", "form": "chat"}]}
REASON = "msgs[0].content[0]", "text", "dropped", True, "it has none"


def write(**record: Any) -> str:
    """The line of a worker: the record about loading, and one request's."""
    return json.dumps([{"messages": []}, record])


def sections(base: str, candidate: str, **rules: Any) -> list[tuple[str, str]]:
    """Provider and section of each difference."""
    found = Comparison(**rules).compare(CASE, base, candidate)
    return [(difference.provider, difference.section) for difference in found]


def test_equal_records_have_no_difference() -> None:
    assert sections(write(request={"a": 1}), write(request={"a": 1})) == []


@pytest.mark.parametrize("request_", [{"a": 2}, {"a": 1.0}, {"a": True}, {"b": 1}, {"a": 1, "b": None}])
def test_a_planted_difference_is_found(request_: dict[str, Any]) -> None:
    assert sections(write(request={"a": 1}), write(request=request_)) == [("openai", "request")]


def test_another_order_of_keys_is_a_difference() -> None:
    base, candidate = write(request={"a": 1, "b": 2}), write(request={"b": 2, "a": 1})
    assert sections(base, candidate) == [("openai", "request")]


def test_an_error_in_place_of_a_request_is_a_difference() -> None:
    base, candidate = write(request={}), write(error="KeyError", facts={}, texts={"": "'x'"})
    assert sections(base, candidate) == [("openai", "outcome")]


def test_texts_of_errors_are_compared_on_demand() -> None:
    base = write(error="LossError", facts={"place": "x"}, texts={"": "old"})
    candidate = write(error="LossError", facts={"place": "x"}, texts={"": "new"})
    assert sections(base, candidate) == []
    assert sections(base, candidate, with_texts=True) == [("openai", "texts")]


def test_a_listed_ledger_reason_is_no_difference() -> None:
    base, candidate = write(entries=[[*REASON, []]]), write(entries=[[*REASON[:4], "no text: it", []]])
    assert sections(base, candidate) == [("openai", "entries")]
    assert sections(base, candidate, reasons=[(r"(\w+) has none", r"no text: \1")]) == []


def test_a_listed_text_of_a_request_is_no_difference() -> None:
    base, candidate = write(request={"a": "Go on."}, tokens=3), write(request={"a": "Continue."}, tokens=4)
    assert sections(base, candidate) == [("openai", "request"), ("openai", "tokens")]
    assert sections(base, candidate, texts=[(r"Go on\.", "Continue.")]) == []


def test_a_difference_is_shown_as_a_diff() -> None:
    (difference,) = Comparison().compare(CASE, write(request={"a": 1}), write(request={"a": 2}))
    assert '-  "a": 1' in str(difference) or '- "a": 1' in str(difference)
    assert str(difference).startswith("== conversations 1 openai chat")


def test_a_case_follows_from_its_seed() -> None:
    assert json.dumps(create_conversation(7)) == json.dumps(create_conversation(7))
    assert json.dumps(create_conversation(7)) != json.dumps(create_conversation(8))


def test_a_conversation_is_sent_to_every_provider_in_every_form() -> None:
    requests = create_conversation(3)["requests"]
    assert len({(options["provider"], options["form"]) for options in requests}) == len(PROVIDERS) * 3
