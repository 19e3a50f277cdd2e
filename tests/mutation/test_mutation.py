"""The mutation tool finds changes of code, leaves declarations alone, and restores the tree after a run."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests.mutation.__main__ import sample_mutants
from tests.mutation.mutants import Mutant, find_mutants, iter_mutants
from tests.mutation.stages import MUTATED, get_stages
from tests.mutation.workspace import Workspace

ROOT = Path(__file__).parents[2]


def _changes(source: str) -> set[str]:
    return {mutant.apply(source) for mutant in iter_mutants("module.py", source)}


@pytest.mark.parametrize(
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


@pytest.mark.parametrize(
    "source",
    ["def f(a: int | str = b) -> int | None: ...", "raise E(a + 1)", "from a import b", "x = 'ä' + f'{a < b}'"],
)
def test_annotations_errors_imports_and_texts_do_not_change(source: str) -> None:
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


def test_the_mirrored_tests_run_first_and_each_file_runs_once() -> None:
    stages = get_stages("providers/agentkit_openai/responses/convert.py", ROOT)
    assert stages[0][-1] == "tests/providers/test_requests.py"
    assert all(name.startswith("tests/providers/openai/responses/") for name in stages[0][:-1])
    files = [name for stage in stages for name in stage]
    assert len(files) == len({*files})
    assert get_stages("agentkit/history/framing.py", ROOT)[0] == [
        "tests/history/test_policies.py",
        "tests/history/test_speaker_prefix.py",
    ]


@pytest.mark.slow
def test_a_run_finds_a_mutant_and_restores_the_tree(tmp_path: Path) -> None:
    source, folder = tmp_path / "source", tmp_path / "copy"
    (source / "tests").mkdir(parents=True)
    (source / "module.py").write_text("LIMIT = 1\n")
    (source / "tests/test_module.py").write_text("from module import LIMIT\ndef test_it(): assert LIMIT < 3\n")
    subprocess.run(["git", "init", "-q"], cwd=source, check=True)
    workspace = Workspace(source, folder)
    mutants = [Mutant("module.py", 1, "", "constant", "1", str(number), 8, 9) for number in (2, 3)]
    runs = [workspace.run_mutant(mutant, [["tests/test_module.py"]], 60) for mutant in mutants]
    assert [run.is_failed for run in runs] == [False, True]
    assert runs[1].failure == "tests/test_module.py::test_it"
    assert (folder / "module.py").read_text() == "LIMIT = 1\n"
