"""The mutation tool finds changes of code, leaves declarations alone, and restores the tree after a run."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.cases import each_case
from tests.mutation.__main__ import sample_mutants
from tests.mutation.coverage import TestCoverage, count_blocks, find_block, instrument
from tests.mutation.mutants import Mutant, find_mutants, iter_mutants
from tests.mutation.stages import MUTATED, Stage, StagePlanner
from tests.mutation.workspace import Workspace

ROOT = Path(__file__).parents[2]


def _changes(source: str) -> set[str]:
    return {mutant.apply(source) for mutant in iter_mutants("module.py", source)}


@each_case(
    ("source", "change"),
    [
        ("a < b", "(a <= b)"),
        ("a is None", "(a is not None)"),
        ("a and b", "(a or b)"),
        ("a and b", "(b)"),
        ("not a", "(a)"),
        ("a + 1", "(a - 1)"),
        ("a[0]", "a[(1)]"),
        ("x = True", "x = (False)"),
        ("if a: b", "if (not a): b"),
        ("x = a if b else c", "x = (c if b else a)"),
        ("[a for a in b if c]", "[a for a in b if (True)]"),
        ("f(a, key=b)", "(f(a))"),
        ("f(a)", "pass"),
        ("def f(): return a", "def f(): return None"),
    ],
)
def test_an_operator_changes_the_source(source: str, change: str) -> None:
    assert change in _changes(source)


@each_case(
    "source",
    [
        "def f(a: int | str = b) -> int | None: ...",
        "raise E(a + 1)",
        "from a import b",
        "x = 'ä' + f'{a < b}'",
        "assert_never(a)",
    ],
)
def test_annotations_errors_imports_texts_and_checks_of_types_do_not_change(source: str) -> None:
    assert _changes(source) == set()


def test_a_change_after_wide_characters_has_the_right_place() -> None:
    assert "x = 'äöü', (2)" in _changes("x = 'äöü', 1")


def test_each_mutant_of_the_tree_is_valid_python_and_names_its_function() -> None:
    mutants = find_mutants(ROOT, ("agentkit/repair",))
    assert len({mutant.operator for mutant in mutants}) > 8
    for mutant in mutants:
        source = (ROOT / mutant.path).read_text("utf-8")
        compile(mutant.apply(source), mutant.path, "exec")
        assert mutant.diff(source)
    assert {mutant.function for mutant in mutants if mutant.function}


def test_a_sample_is_the_same_in_every_run() -> None:
    assert sample_mutants(["agentkit/repair"], 5, 7) == sample_mutants(["agentkit/repair"], 5, 7)


def test_each_equivalent_mutant_exists_and_has_a_reason() -> None:
    rows = json.loads((ROOT / "tests/mutation/equivalent.json").read_text("utf-8"))
    keys = {
        (mutant.path, mutant.function, mutant.operator, mutant.before, mutant.after)
        for mutant in find_mutants(ROOT, MUTATED)
    }
    for row in rows:
        assert row["reason"]
        assert (row["path"], row["function"], row["operator"], row["before"], row["after"]) in keys


SOURCE = """LIMIT = 3

def double(number):
    if number > LIMIT:
        return 2 * number
    return number
"""


@each_case(("line", "index"), [(1, None), (3, None), (4, 0), (5, 1), (6, 0)])
def test_a_line_belongs_to_the_innermost_block(line: int, index: int | None) -> None:
    assert find_block(SOURCE, line) == index
    assert count_blocks(SOURCE) == 2


@pytest.mark.parametrize(("number", "entered"), [(1, {7}), (5, {7, 8})])
def test_an_instrumented_module_records_the_blocks_that_run(number: int, entered: set[int]) -> None:
    namespace: dict[str, Any] = {}
    exec(instrument(SOURCE, 7), namespace)
    namespace["_entered"].clear()
    namespace["double"](number)
    assert namespace["_entered"] == entered


def test_the_mirrored_tests_that_enter_the_changed_code_run_first_and_the_fastest_of_them_first() -> None:
    planner = StagePlanner(ROOT)
    everything = frozenset(range(100_000))
    files = ("tests/history/test_policies.py", "tests/budget/test_budget.py", "tests/wire/test_wire_tools.py")
    tests = {f"{file}::{name}": (0.5, everything) for file in files for name in ("a", "b")}
    tests[f"{files[0]}::b"] = (0.1, everything)
    tests[f"{files[0]}::c"] = (0.1, frozenset())
    tests[f"{files[1]}::d"] = (0.1, everything)
    coverage = TestCoverage("", frozenset(), tests, frozenset({f"{files[1]}::d"}))
    source = (ROOT / "agentkit/history/framing.py").read_text("utf-8").splitlines()
    line = next(number for number, text in enumerate(source, 1) if text.lstrip().startswith("return "))
    first, second = planner.get_stages("agentkit/history/framing.py", line, coverage)
    assert sorted(first.seconds, key=lambda name: first.seconds[name]) == [f"{files[0]}::b", f"{files[0]}::a"]
    assert {*second.seconds} == {f"{file}::{name}" for file in files[1:] for name in ("a", "b")}
    assert {f"{files[0]}::c", f"{files[1]}::d"} <= first.skipped & second.skipped


def test_code_that_runs_at_import_may_fail_in_any_test() -> None:
    coverage = TestCoverage("", frozenset(), {"tests/tools/test_tool.py::a": (0.1, frozenset())}, frozenset())
    *_, last = StagePlanner(ROOT).get_stages("agentkit/history/framing.py", 1, coverage)
    assert [*last.seconds] == ["tests/tools/test_tool.py::a"]


@pytest.mark.slow
def test_a_run_finds_a_mutant_and_restores_the_tree(tmp_path: Path) -> None:
    source, folder = tmp_path / "source", tmp_path / "copy"
    (source / "tests").mkdir(parents=True)
    (source / "module.py").write_text("LIMIT = 1\n")
    (source / "tests/test_module.py").write_text("from module import LIMIT\ndef test_it(): assert LIMIT < 3\n")
    subprocess.run(["git", "init", "-q"], cwd=source, check=True)
    workspace = Workspace(source, folder)
    mutants = [Mutant("module.py", 1, "", "constant", "1", str(number), 8, 9) for number in (2, 3)]
    runs = [workspace.run_mutant(mutant, [Stage(["tests/test_module.py"])]) for mutant in mutants]
    assert [run.is_failed for run in runs] == [False, True]
    assert runs[1].failure == "tests/test_module.py::test_it"
    assert (folder / "module.py").read_text() == "LIMIT = 1\n"
