"""Command: `python -m tests.mutation --count 100`."""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from tests.mutation.coverage import TestCoverage
from tests.mutation.mutants import Mutant, find_mutants
from tests.mutation.stages import MUTATED, Stage, StagePlanner
from tests.mutation.workspace import TestRun, Workspace, preload_packages

_ROOT: Final = Path(__file__).parents[2]
_EQUIVALENT: Final = Path(__file__).with_name("equivalent.json")
_KEYS: Final = ("path", "function", "operator", "before", "after")


def main() -> int:
    """Runs the command. Returns 1 if too few of the mutants that change behavior are found."""
    options = _parse_options()
    mutants = sample_mutants(options.folders, options.count, options.seed)
    if options.list:
        for mutant in mutants:
            print(_describe(asdict(mutant)))
        return 0
    record = Path(options.record) if options.record else Path(tempfile.mkdtemp()) / "mutants.jsonl"
    waiting = _get_waiting(mutants, record, options.stages)
    if waiting:
        _run_jobs(waiting, record, options)
    rows = _read(record)
    return _report([rows[place] for mutant in mutants if (place := _place(asdict(mutant))) in rows])


def _parse_options() -> Any:
    parser = argparse.ArgumentParser(prog="python -m tests.mutation", description="Run the tests on mutants.")
    parser.add_argument("folders", nargs="*", default=MUTATED, help="Packages or modules to change.")
    parser.add_argument("--count", type=int, default=100, help="Mutants to sample.")
    parser.add_argument("--seed", type=int, default=0, help="Seed of the sample.")
    parser.add_argument("--jobs", type=int, default=1, help="Processes.")
    parser.add_argument("--stages", type=int, default=3, help="Groups of tests to run, of three.")
    parser.add_argument("--coverage", help="File of the blocks that each test enters. Written if it is missing.")
    parser.add_argument("--record", help="File of results. Mutants that it contains are not run again.")
    parser.add_argument("--list", action="store_true", help="Print the sample, and run nothing.")
    return parser.parse_args()


def sample_mutants(folders: Sequence[str], count: int, seed: int) -> list[Mutant]:
    """Returns a random sample of the mutants in folders or modules, without those listed as equivalent.

    A change of one function leaves the order of all other mutants as it was.
    """
    listed = {_key(row) for row in json.loads(_EQUIVALENT.read_text("utf-8"))}
    mutants = [mutant for mutant in find_mutants(_ROOT, tuple(folders)) if _key(asdict(mutant)) not in listed]
    return sorted(mutants, key=lambda mutant: random.Random(f"{seed} {_key(asdict(mutant))}").random())[:count]


def _get_waiting(mutants: Sequence[Mutant], record: Path, stages: int) -> list[tuple[Mutant, int]]:
    """Returns the mutants to run, each with the number of stages that it has survived already."""
    rows = _read(record)
    waiting: list[tuple[Mutant, int]] = []
    for mutant in mutants:
        row = rows.get(_place(asdict(mutant)), {"found": False, "stages": 0})
        if not row["found"] and row["stages"] < stages:
            waiting.append((mutant, row["stages"]))
    return waiting


def _key(row: dict[str, Any], names: Sequence[str] = _KEYS) -> tuple[str, ...]:
    return tuple(str(row[name]) for name in names)


def _place(row: dict[str, Any]) -> tuple[str, ...]:
    return _key(row, ("line", *_KEYS))


def _record_coverage(path: Path, planner: StagePlanner) -> TestCoverage:
    """Returns the record of all tests on the unchanged tree, from the file if it is about this tree."""
    if not path.exists() or TestCoverage.load(path).digest != planner.digest:
        preload_packages()
        with tempfile.TemporaryDirectory() as folder:
            Workspace(_ROOT, Path(folder)).record_coverage(planner, path)
    coverage = TestCoverage.load(path)
    print(f"{len(coverage.tests)} tests recorded; not run, because they fail: {[*coverage.failed]}", flush=True)
    return coverage


def _run_jobs(mutants: Sequence[tuple[Mutant, int]], record: Path, options: Any) -> None:
    planner = StagePlanner(_ROOT)
    coverage = _record_coverage(Path(options.coverage or record.with_suffix(".coverage.json")), planner)
    preload_packages()
    processes: list[int] = []
    for number in range(options.jobs):
        process = os.fork()
        if not process:
            try:
                job = [
                    (mutant, planner.get_stages(mutant.path, mutant.line, coverage)[survived : options.stages])
                    for mutant, survived in mutants[number :: options.jobs]
                ]
                _run_job(job, record, options.stages)
            finally:
                os._exit(0)
        processes.append(process)
    for process in processes:
        os.waitpid(process, 0)


def _run_job(mutants: Sequence[tuple[Mutant, Sequence[Stage]]], record: Path, stages: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        workspace = Workspace(_ROOT, Path(folder))
        for mutant, groups in mutants:
            start = time.monotonic()
            diff = mutant.diff((workspace.root / mutant.path).read_text("utf-8"))
            run = workspace.run_mutant(mutant, groups)
            outcome = {"found": run.is_failed, "failure": run.failure, "stages": stages}
            row = {**asdict(mutant), "diff": diff, **outcome}
            with record.open("a", encoding="utf-8") as file:
                file.write(json.dumps(row) + "\n")
            seconds = time.monotonic() - start
            print(f"{_outcome(run):8} {seconds:4.0f} s {_describe(row)}  {run.failure[:90]}", flush=True)


def _outcome(run: TestRun) -> str:
    return "found" if run.is_failed else "SURVIVED"


def _describe(row: dict[str, Any]) -> str:
    return f"{row['path']}:{row['line']} {row['operator']}"


def _read(record: Path) -> dict[tuple[str, ...], dict[str, Any]]:
    """Returns the last result of each mutant."""
    lines = record.read_text("utf-8").splitlines() if record.exists() else []
    return {_place(row): row for row in map(json.loads, lines)}


def _report(rows: list[dict[str, Any]]) -> int:
    survivors = [row for row in rows if not row["found"]]
    for row in survivors:
        print(f"\n{_describe(row)} in {row['function']}\n{row['diff']}")
    found = len(rows) - len(survivors)
    share = found / len(rows) if rows else 1.0
    print(f"\n{found} of {len(rows)} mutants found: {share:.1%}")
    return int(share < 0.97)


if __name__ == "__main__":
    sys.exit(main())
