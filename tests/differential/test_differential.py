"""Tests of the differential tool itself; none needs the base version."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from random import Random
from typing import Any

import pytest

from tests.cases import each_case
from tests.differential.comparison import Comparison
from tests.differential.conversations import create_conversation
from tests.differential.coverage import Coverage
from tests.differential.environment import Worker, create_media
from tests.differential.logs import create_logs, create_stored
from tests.differential.mutation import mutate_value
from tests.differential.streams import create_streams
from tests.differential.vocabulary import PROVIDERS

CASE: dict[str, Any] = {"kind": "conversations", "seed": 1, "requests": [{"provider": "openai", "form": "chat"}]}
REASON = "msgs[0].content[0]", "text", "dropped", True, "it has none"


def write(**record: Any) -> str:
    """The line of a worker: the record about loading, and one request's."""
    return json.dumps([{"messages": []}, record])


def sections(base: str, candidate: str, on_loss: str = "describe", **rules: Any) -> list[tuple[str, str]]:
    """Returns the provider and the section of each difference."""
    case = {**CASE, "requests": [{**CASE["requests"][0], "on_loss": on_loss}]}
    found = Comparison(**rules).compare(case, base, candidate)
    return [(difference.provider, difference.section) for difference in found]


def test_equal_records_have_no_difference() -> None:
    assert sections(write(request={"a": 1}), write(request={"a": 1})) == []


@each_case("request_", [{"a": 2}, {"a": 1.0}, {"a": True}, {"b": 1}, {"a": 1, "b": None}])
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


def refuse(needed: int) -> str:
    """Returns the line of a worker for a request that the budget of 100 tokens refuses."""
    return write(error="BudgetError", facts={"limit": 100, "needed": needed})


@each_case(
    ("plan", "is_equal"),
    [
        ({"tokens": 90, "cut": None}, True),
        ({"tokens": {"tokens": 100, "estimated": []}, "cut": None}, True),
        ({"tokens": 101, "cut": None}, False),
        ({"tokens": 90, "cut": {"units": 1}}, False),
    ],
)
def test_only_an_uncut_request_within_the_limit_may_replace_a_refusal(
    plan: dict[str, Any], is_equal: bool
) -> None:
    assert (sections(refuse(120), write(request={"a": 1}, **plan)) == []) == is_equal


def test_a_refusal_in_place_of_a_request_is_a_difference() -> None:
    assert sections(write(request={"a": 1}, tokens=90, cut=None), refuse(120)) == [("openai", "outcome")]


def test_sizes_of_refusals_differ_only_by_texts_of_requests() -> None:
    assert sections(refuse(120), refuse(140)) == []
    assert sections(refuse(120), refuse(161)) == [("openai", "facts")]
    assert sections(refuse(120), refuse(121), on_loss="drop") == [("openai", "facts")]
    assert sections(refuse(120), refuse(121), texts=()) == [("openai", "facts")]


@pytest.mark.parametrize("error", ["BudgetError", "LossError"])
def test_a_loss_error_may_name_more_losses_and_not_fewer(error: str) -> None:
    less = {"limit": 100, "losses": [["x", "reason"]] if error == "LossError" else []}
    old, new = (
        write(error=error, facts=less),
        write(error="LossError", facts={"losses": [["x", "reason"], ["y", "r"]]}),
    )
    assert sections(old, new) == []
    assert (
        sections(old, write(error="LossError", facts={"losses": [["z", "reason"]]})) != []
        or error == "BudgetError"
    )
    assert sections(new, old) != []


LINE = "written as a line `NAME: TEXT` in the user turn that contains the history"
CALLER = "caller omitted: the API has no field for it"


@each_case(
    ("reason", "before", "after", "is_equal"),
    [
        (LINE, [], [CALLER], True),
        ("moved", [LINE], [CALLER, LINE], True),
        ("moved", [], [CALLER], False),
        (LINE, [CALLER], [], False),
        (LINE, ["edited"], [CALLER], False),
        (LINE, [], ["speaker name 'A' omitted: the API has no field for it"], False),
    ],
)
def test_a_line_of_a_frame_may_omit_more_keys(
    reason: str, before: list[str], after: list[str], is_equal: bool
) -> None:
    base, candidate = (
        write(entries=[["msgs[0].content[0]", "tool_use", "merged", False, reason, details]], syntheses=[])
        for details in (before, after)
    )
    assert (sections(base, candidate) == []) == is_equal


def test_a_listed_ledger_reason_is_no_difference() -> None:
    base, candidate = write(entries=[[*REASON, []]]), write(entries=[[*REASON[:4], "no text: it", []]])
    assert sections(base, candidate) == [("openai", "entries")]
    assert sections(base, candidate, reasons=[(r"(\w+) has none", r"no text: \1")]) == []


def test_a_listed_reason_is_known_within_the_reason_of_an_invalid_block() -> None:
    base, candidate = write(losses=[["x", "invalid block: old"]]), write(losses=[["x", "invalid block: new"]])
    assert sections(base, candidate, reasons=[("old", "new")]) == []


def test_a_text_of_a_request_is_no_ledger_reason() -> None:
    same = write(request={"a": "old"})
    assert sections(same, f"{same} ", reasons=[("old", "new")]) == []


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


def test_streams_and_replies_of_every_provider_are_generated() -> None:
    cases = [create_streams(seed) for seed in range(12)]
    assert {run["provider"] for case in cases for run in case["runs"]} >= {*PROVIDERS}
    assert json.dumps(cases[3]) == json.dumps(create_streams(3))


def test_requests_of_the_base_version_are_logs_to_load() -> None:
    conversation = create_conversation(5)
    records: list[dict[str, Any]] = [{}, *({"request": {"messages": []}} for _ in conversation["requests"])]
    logs = create_logs(5, conversation, records)["logs"]
    assert {log["provider"] for log in logs if log["log"] == {"messages": []}} >= {*PROVIDERS}


def test_messages_that_the_base_version_loaded_are_stored_messages_to_load() -> None:
    loaded = [{"name": "Bob", "role": "user", "content": "Hello."}]
    cases = [create_stored(seed, {}, [{"messages": loaded}]) for seed in range(20)]
    assert any(case["messages"] == loaded for case in cases)
    assert all(len(case["requests"]) == len(PROVIDERS) for case in cases)


@each_case("loaded", [{}, [1], [{"name": 1}], {"messages": [{"name": "Bob", "content": 7}]}, "text"])
def test_options_are_drawn_for_messages_of_any_form(loaded: Any) -> None:
    assert all(len(create_stored(seed, {}, [{"messages": loaded}])["requests"]) == 9 for seed in range(9))


@each_case("value", [{"a": [1, {"b": None}]}, [[], {}], [1, 2, 3]])
def test_a_mutation_leaves_its_value_unchanged(value: Any) -> None:
    text = json.dumps(value)
    changed = [json.dumps(mutate_value(Random(seed), value)) for seed in range(20)]
    assert json.dumps(value) == text
    assert any(one != text for one in changed)


def test_coverage_counts_dispositions_and_reasons() -> None:
    coverage = Coverage()
    coverage.add([{"entries": [[*REASON, ["more"]]], "cut": None, "syntheses": [["frame", "tags"]], "losses": []}])
    assert coverage.dispositions == {"dropped, content lost": 1}
    assert coverage.reasons == {"it has none": 1, "more": 1, "tags": 1}


def test_a_worker_runs_a_case_in_this_version(tmp_path: Path) -> None:
    create_media(tmp_path)
    case = {**create_conversation(2), "requests": create_conversation(2)["requests"][:2]}
    with Worker(Path(sys.executable), tmp_path, 1) as worker:
        worker.send(case)
        records = json.loads(worker.receive())
    assert len(records) == 3
    assert all("request" in record or "error" in record for record in records[1:])
