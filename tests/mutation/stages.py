"""Choice and order of the tests for a mutant: those that enter the changed code, and that probably fail first."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Final

import pytest

from tests.mutation.coverage import TestCoverage, count_blocks, find_block, instrument
from tests.mutation.mutants import iter_modules

__all__ = ["MUTATED", "Stage", "StagePlanner"]

MUTATED: Final = (
    *(f"agentkit/{name}" for name in ("repair", "history", "legalize", "formatting", "budget", "ledger", "tools")),
    "providers/*/convert.py",
    "providers/*/*/convert.py",
)
"""Modules that make requests and cuts."""


@dataclass(frozen=True, slots=True)
class Stage:
    """Group of tests.

    Attributes:
        files: Test files to collect.
        skipped: Ids of the tests of the files that do not run.
        seconds: Recorded durations of the tests that run, by test id. The fastest tests run first.
        time_limit: Seconds after which a change probably made a loop endless.
    """

    files: list[str]
    skipped: AbstractSet[str] = frozenset()
    seconds: Mapping[str, float] = field(default_factory=dict[str, float])
    time_limit: float = 3_600.0

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Selects and sorts the tests of a run."""
        chosen = [item for item in items if item.nodeid not in self.skipped]
        items[:] = sorted(chosen, key=lambda item: self.seconds.get(item.nodeid, 0))


class StagePlanner:
    """Groups the tests for a mutant by the record of the blocks that each test enters.

    Args:
        root: Root of the tree.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._files = [*_iter_test_files(root)]
        self._sources = {path: (root / path).read_text("utf-8") for path in iter_modules(root, MUTATED)}
        self._numbers: dict[str, int] = {}
        number = 0
        for path, source in self._sources.items():
            self._numbers[path] = number
            number += count_blocks(source)
        self.digest = hashlib.sha256("\0".join(self._sources.values()).encode()).hexdigest()

    def get_instrumented(self) -> dict[str, str]:
        """Returns the sources of all modules with a record of their entered blocks, by path."""
        return {path: instrument(source, self._numbers[path]) for path, source in self._sources.items()}

    def get_all(self) -> Stage:
        """Returns all tests."""
        return Stage(self._files)

    def get_stages(self, path: str, line: int, coverage: TestCoverage) -> list[Stage]:
        """Returns groups of tests: the mirrored tests that enter the changed code, the others that do, all others.

        The last group is only for code that runs at import, because each test may use its results. Tests that the
        record lacks run with the other tests of their file.

        Args:
            path: Path of the mutated module.
            line: Number of the changed line.
            coverage: Record of the blocks that each test enters.
        """
        first, count = self._numbers[path], count_blocks(self._sources[path])
        index = find_block(self._sources[path], line)
        blocks = frozenset(range(first, first + count) if index is None else [first + index])
        entering = coverage.find_tests(blocks)
        mirrored = [name for name in self._files if name.startswith(_get_mirrored(path))]
        others = [name for name in self._files if name not in mirrored]
        stages = [_select(mirrored, entering, coverage), _select(others, entering, coverage)]
        if index is None or blocks <= coverage.imported:
            stages.append(_select(self._files, coverage.tests.keys() - entering, coverage))
        return stages


def _select(files: Sequence[str], tests: Collection[str], coverage: TestCoverage) -> Stage:
    seconds = {
        name: coverage.tests[name][0] for name in {*tests} - coverage.failed if name.partition("::")[0] in files
    }
    needed = {name.partition("::")[0] for name in seconds}
    recorded = {name.partition("::")[0] for name in coverage.tests}
    collected = [name for name in files if name in needed or name not in recorded]
    skipped = (coverage.tests.keys() - seconds.keys()) | coverage.failed
    return Stage(collected, skipped, seconds, 120 + 5 * sum(seconds.values()))


def _iter_test_files(root: Path) -> Iterator[str]:
    skipped = ("tests/benchmarks/", "tests/conformance/", "tests/differential/", "tests/mutation/")
    for path in sorted(root.glob("tests/**/test_*.py")):
        name = path.relative_to(root).as_posix()
        if not name.startswith(skipped):
            yield name


def _get_mirrored(path: str) -> tuple[str, ...]:
    parts = PurePosixPath(path).parts
    if parts[0] == "agentkit":
        return (f"tests/{parts[1]}/",)
    folder = "/".join(parts[1:-1]).removeprefix("agentkit_")
    return (f"tests/providers/{folder}/", "tests/providers/test_requests.py")
