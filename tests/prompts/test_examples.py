"""Examples: their completeness, their selection, and files of Delphyne and DSPy."""

from __future__ import annotations

import json
import pickle
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from agentkit import MessageError, MissingExtraError, OptionError
from agentkit.prompts.examples import Completeness, Example, ReplyText, load_examples, select_examples
from tests.cases import each_case
from tests.profiles import examples

AnyExample: Any = Example


# -- values ---------------------------------------------------------------------------------------------------


@each_case(
    ("inputs", "outputs", "completeness"),
    [
        ({"q": 1, "c": []}, {"a": "", "s": 0}, "complete"),
        ({"q": 1, "c": 2, "x": 3}, {"a": 4, "s": False, "y": 5}, "complete"),
        ({"q": 1, "c": None}, {"a": 4, "s": 5}, "incomplete"),
        ({"q": 1}, {"a": 4}, "incomplete"),
        ({"q": None}, {"s": None}, "incomplete"),
        ({"q": 1, "c": 2}, {}, "unusable"),
        ({}, {"a": 4, "s": 5}, "unusable"),
        ({"x": 1}, {"y": 2}, "unusable"),
    ],
)
def test_an_example_is_compared_with_the_fields_of_a_signature(
    inputs: dict[str, Any], outputs: dict[str, Any], completeness: Completeness
) -> None:
    assert Example(inputs, outputs).classify(["q", "c"], ["a", "s"]) == completeness


def test_an_example_of_a_signature_without_inputs_is_complete() -> None:
    assert Example({}, {"a": 1}).classify([], ["a"]) == "complete"
    assert Example({}, {"a": None}).classify([], ["a"]) == "unusable"


def test_an_example_does_not_change_and_shares_no_values() -> None:
    inputs: dict[str, Any] = {"q": ["a"]}
    example = Example(inputs, {"a": 1}, "direct", ("easy",), "because")
    inputs["q"].append("b")
    assert example.inputs == {"q": ["a"]}
    assert pickle.loads(pickle.dumps(example)) == example
    assert repr(example) == (
        "Example(inputs={'q': ['a']}, outputs={'a': 1}, mode='direct', tags=('easy',), note='because')"
    )
    with pytest.raises(AttributeError):
        example.mode = "x"  # type: ignore[misc]  # pyright: ignore[reportAttributeAccessIssue]


WRONG_ARGUMENTS: list[tuple[tuple[Any, ...], str]] = [
    (([], {}), r"Example\.inputs: expected Mapping, got list"),
    (({}, {1: 2}), r"Example\.outputs: expected str, got int"),
    (({}, {}, 1), r"Example\.mode: expected str, got int"),
    (({}, {}, None, [1]), r"Example\.tags: expected str, got int"),
    (({}, {}, None, 1), r"Example\.tags: expected .*, got int"),
    (({}, {}, None, (), 1), r"Example\.note: expected str, got int"),
]


@each_case(("arguments", "reason"), WRONG_ARGUMENTS)
def test_wrong_types_are_refused(arguments: tuple[Any, ...], reason: str) -> None:
    with pytest.raises(OptionError, match=reason):
        AnyExample(*arguments)


@each_case("tags", ["easy", ["easy"], ("easy",), {"easy"}])
def test_tags_become_a_tuple(tags: Any) -> None:
    assert AnyExample({}, {}, tags=tags).tags == ("easy",)


# -- selection ------------------------------------------------------------------------------------------------


class Point(BaseModel):
    x: int


NUMBERS = [Example({"n": n}, {"a": n}, tags=("even",) if n % 2 == 0 else ("odd", "prime")) for n in range(10)]


def numbers(selected: Sequence[Example]) -> list[int]:
    return [example.inputs["n"] for example in selected]


@each_case(
    ("options", "selected"),
    [
        ({}, [*range(10)]),
        ({"tags": "even"}, [0, 2, 4, 6, 8]),
        ({"tags": ["prime", "no"]}, [1, 3, 5, 7, 9]),
        ({"tags": ["even", "prime"]}, [*range(10)]),
        ({"tags": {"no"}}, []),
        ({"count": 3}, [0, 1, 2]),
        ({"count": 0, "seed": 1}, []),
        ({"count": 99, "seed": 1}, [*range(10)]),
        ({"tags": "odd", "count": 2}, [1, 3]),
        ({"exclude": {"n": 1}, "count": 2}, [0, 2]),
        ({"exclude": NUMBERS[0], "tags": "even"}, [2, 4, 6, 8]),
        ({"exclude": {"n": 1, "m": 2}}, [*range(10)]),
        ({"exclude": {"n": True}}, [*range(10)]),
        ({"count": 4, "seed": 7}, [2, 5, 6, 9]),
        ({"count": 4, "seed": 8}, [1, 3, 5, 6]),
    ],
)
def test_examples_are_selected_in_their_order(options: dict[str, Any], selected: list[int]) -> None:
    assert numbers(select_examples(NUMBERS, **options)) == selected


def test_excluded_inputs_are_compared_as_json() -> None:
    example = Example({"point": Point(x=1), "path": (1, 2)}, {"a": 1})
    assert select_examples([example], exclude={"path": [1, 2], "point": {"x": 1}}) == []
    assert select_examples([example], exclude={"path": [1, 2], "point": {"x": 2}}) == [example]


@each_case(
    ("options", "reason"),
    [
        ({"count": -1}, "count: must be an integer of at least 0, got -1"),
        ({"count": 1, "seed": "x"}, "seed: expected int, got str"),
        ({"tags": 1}, "tags: expected .*, got int"),
        ({"exclude": [1]}, "exclude: expected Mapping, got list"),
    ],
)
def test_invalid_options_are_refused(options: dict[str, Any], reason: str) -> None:
    with pytest.raises(OptionError, match=reason):
        select_examples(NUMBERS, **options)


def test_an_item_that_is_no_example_is_refused() -> None:
    invalid: Any = [NUMBERS[0], {"n": 1}]
    with pytest.raises(OptionError, match=r"examples\[1\]: expected Example, got dict"):
        select_examples(invalid)


@examples(100)
@given(st.integers(0, 12), st.integers())
def test_a_seed_selects_the_same_examples_in_their_order(count: int, seed: int) -> None:
    selected = numbers(select_examples(NUMBERS, count=count, seed=seed))
    assert selected == numbers(select_examples(iter(NUMBERS), count=count, seed=seed))
    assert selected == sorted(set(selected))
    assert len(selected) == min(count, 10)


# -- files of Delphyne ----------------------------------------------------------------------------------------

DEMONSTRATIONS = """\
- demonstration: first
  query: FindTide
  args: {port: Brest, day: 2026-01-02}
  answers:
    - answer: |
        ```
        7
        ```
      mode: cot
      tags: [easy, sea]
      justification: The moon.
    - answer: "8"
- query: FindTide
  args: {port: Nantes}
  answers:
    - answer: {hour: 7}
- query: FindTide
  args: {port: Rome}
  answers:
    - answer: "none"
      structured: true
- query: FindTide
  args: {port: Nice}
  answers:
    - answer: "skipped"
      example: false
    - answer: "also skipped"
- query: FindTide
  args: {}
  answers: []
- strategy: plan_trip
  args: {}
  tests: ["run | success"]
  queries:
    - query: Ask
      args: {x: 1}
      answers:
        - answer: ""
          call:
            - {tool: search, args: {q: tide}}
            - tool: stop
          example: true
"""
TIDES = [
    Example(
        {"port": "Brest", "day": "2026-01-02"}, {"answer": "```\n7\n```\n"}, "cot", ("easy", "sea"), "The moon."
    ),
    Example({"port": "Nantes"}, {"answer": {"hour": 7}}),
    Example({"port": "Rome"}, {"answer": "none"}),
]
CALLS: list[dict[str, Any]] = [{"name": "search", "args": {"q": "tide"}}, {"name": "stop", "args": {}}]
ASK = Example({"x": 1}, {"answer": "", "tool_calls": CALLS})


def write(folder: Path, name: str, text: str) -> Path:
    file = folder / name
    file.write_text(text, encoding="utf-8")
    return file


@each_case(("query", "expected"), [(None, [*TIDES, ASK]), ("FindTide", TIDES), ("Ask", [ASK]), ("No", [])])
@each_case("suffix", ["yaml", "yml"])
def test_the_first_answer_of_each_query_is_an_example(
    tmp_path: Path, query: str | None, expected: list[Example], suffix: str
) -> None:
    assert load_examples(write(tmp_path, f"tides.demo.{suffix}", DEMONSTRATIONS), query=query) == expected


def test_a_text_answer_is_the_text_of_a_reply(tmp_path: Path) -> None:
    loaded = load_examples(write(tmp_path, "tides.yaml", DEMONSTRATIONS))
    assert [type(example.outputs["answer"]) for example in loaded] == [ReplyText, dict, str, ReplyText]


@each_case(
    ("text", "error"),
    [
        ("a: [", r"tides\.yaml: invalid YAML \(.*line 1"),
        ("a: 1", r"tides\.yaml: expected a list, got \{'a': 1\}"),
        ("", r"tides\.yaml: expected a list, got None"),
        ("- 7", r"tides\.yaml\[0\]: expected a mapping, got 7"),
        ("- {args: {}, answers: []}", r"tides\.yaml\[0\]\.query: expected the name of a query, got None"),
        ("- {query: A, answers: []}", r"tides\.yaml\[0\]\.args: expected a mapping, got None"),
        ("- {query: A, args: {}}", r"tides\.yaml\[0\]\.answers: expected a list, got None"),
        ("- {query: A, args: {}, answers: [7]}", r"tides\.yaml\[0\]\.answers\[0\]: expected a mapping, got 7"),
        (
            "- {query: A, args: {}, answers: [{}]}",
            r"\[0\]\.answers\[0\]\.answer: expected an answer or a tool call, got None",
        ),
        (
            "- {query: A, args: {}, answers: [{answer: 1, mode: 2}]}",
            r"tides\.yaml\[0\]\.answers\[0\]: invalid Example\.mode \(expected str, got int 2\)",
        ),
        ("- {query: A, args: {}, answers: [{answer: 1, tags: [2]}]}", r"\[0\]: invalid Example\.tags"),
        ("- {query: A, args: {}, answers: [{call: [{}]}]}", r"call\[0\]\.tool: expected the name of a tool, got"),
        ("- {query: A, args: {}, answers: [{call: 1}]}", r"answers\[0\]\.call: expected a list, got 1"),
        (
            "- {query: A, args: {}, answers: [{call: [{tool: a, args: 1}]}]}",
            r"call\[0\]\.args: expected a mapping",
        ),
        ("- {query: A, args: {1: 2}, answers: [{answer: 1}]}", r"invalid Example\.inputs"),
        ("- {strategy: a}", r"tides\.yaml\[0\]\.queries: expected a list, got None"),
    ],
)
def test_an_invalid_demonstration_is_named_by_its_place(tmp_path: Path, text: str, error: str) -> None:
    with pytest.raises(MessageError, match=error):
        load_examples(write(tmp_path, "tides.yaml", text))


def test_loading_yaml_requires_a_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = write(tmp_path, "tides.yaml", "[]")
    monkeypatch.setitem(sys.modules, "yaml", None)
    with pytest.raises(MissingExtraError, match=r"agentkit-middleware\[prompts\]"):
        load_examples(file)


# -- files of DSPy --------------------------------------------------------------------------------------------

ROWS = [
    {"question": "q1", "context": ["c"], "answer": 1},
    {
        "augmented": True,
        "question": "q2",
        "reasoning": "r",
        "answer": None,
        "dspy_uuid": "u",
        "dspy_split": "train",
    },
    {"answer": 3, "augmented": "text"},
]
EXAMPLES = [
    Example({"question": "q1", "context": ["c"]}, {"answer": 1}),
    Example({"question": "q2"}, {"reasoning": "r", "answer": None}),
    Example({}, {"answer": 3, "augmented": "text"}),
]
STATE: dict[str, Any] = {
    "traces": [],
    "train": [],
    "demos": ROWS,
    "signature": {"instructions": "", "fields": []},
    "lm": None,
}


@each_case(
    ("name", "text"),
    [
        ("demos.json", json.dumps(ROWS, indent=2)),
        ("demos.json", "\N{ZERO WIDTH NO-BREAK SPACE}" + json.dumps(ROWS)),
        ("demos.jsonl", "\n".join(map(json.dumps, ROWS))),
        ("demos.ndjson", "\r\n\r\n".join(map(json.dumps, ROWS)) + "\r\n"),
        ("predictor.json", json.dumps(STATE)),
        ("program.JSON", json.dumps({"qa.predict": STATE, "metadata": {"dependency_versions": {}}})),
    ],
)
def test_the_rows_of_dspy_are_split_by_the_input_names(tmp_path: Path, name: str, text: str) -> None:
    assert load_examples(write(tmp_path, name, text), input_names=["question", "context"]) == EXAMPLES


@each_case(
    ("name", "text", "error"),
    [
        ("a.json", "[1", r"^a\.json: invalid JSON"),
        ("a.json", "7", r"^a\.json: expected a list of demos, got 7"),
        ("a.json", '[{}, "x"]', r"^a\.json\[1\]: expected a JSON object, got 'x'"),
        ("a.json", '{"demos": 1}', r"^a\.json\.demos: expected a list of demos, got 1"),
        ("a.json", '{"demos": [1]}', r"^a\.json\.demos\[0\]: expected a JSON object, got 1"),
        ("a.json", '{"p": {"demos": [1]}}', r"^a\.json\.p\.demos\[0\]: expected a JSON object, got 1"),
        ("a.json", '{"p": 1}', r"^a\.json: expected the demos of one predictor, got 0 predictors"),
        ("a.json", '{"p": {"demos": []}, "q": {"demos": []}}', r"^a\.json: .*, got 2 predictors"),
        ("a.jsonl", '{"q": 1}\n\n{"q":', r"^a\.jsonl, line 3: invalid JSON"),
        ("a.jsonl", '{"q": 1}\n[1]', r"^a\.jsonl, line 2: expected a JSON object, got \[1\]"),
    ],
)
def test_an_invalid_row_is_named_by_its_place(tmp_path: Path, name: str, text: str, error: str) -> None:
    with pytest.raises(MessageError, match=error):
        load_examples(write(tmp_path, name, text), input_names=["q"])


def test_a_line_separator_inside_a_text_does_not_end_the_line(tmp_path: Path) -> None:
    file = write(tmp_path, "a.jsonl", '{"q": "a\N{LINE SEPARATOR}b\x85c"}\n')
    assert load_examples(file, input_names="q") == [Example({"q": "a\N{LINE SEPARATOR}b\x85c"}, {})]


def test_rows_of_dspy_require_the_names_of_the_inputs(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="input_names: expected at least one name, got none"):
        load_examples(write(tmp_path, "a.json", "[]"))


def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match=r"path: the suffix of 'a\.txt' is unknown"):
        load_examples(write(tmp_path, "a.txt", "[]"))
    with pytest.raises(OptionError, match=r"path: cannot read .*no\.json"):
        load_examples(tmp_path / "no.json", input_names=["q"])
    no_path: Any = 1
    with pytest.raises(OptionError, match="path: expected Path, got int"):
        load_examples(no_path)
    file = tmp_path / "a.yaml"
    file.write_bytes(b"\xff")
    with pytest.raises(OptionError, match=r"path: cannot read .*a\.yaml"):
        load_examples(file)
