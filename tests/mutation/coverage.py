"""Blocks of code that each test enters: a test that never enters a block cannot find its mutants."""

from __future__ import annotations

import ast
import builtins
import functools
import json
import sys
import time
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeAlias

import pytest

__all__ = ["Blocks", "CoverageRecorder", "TestCoverage", "count_blocks", "find_block", "instrument"]

Blocks: TypeAlias = "frozenset[int]"

_CACHED: Final = type(functools.lru_cache(len))
_IMPORT: Final = 'import builtins; _entered = builtins.__dict__.setdefault("_entered", set())'


@dataclass(frozen=True, slots=True)
class TestCoverage:
    """Record of one run of all tests.

    Attributes:
        digest: Digest of the modules at the time of the run.
        imported: Blocks that ran before the first test, for example in tables that are built at import.
        tests: Duration in seconds and entered blocks, by test id.
        failed: Ids of the tests that fail on instrumented modules, for example because they read the sources.
    """

    __test__ = False

    digest: str
    imported: Blocks
    tests: dict[str, tuple[float, Blocks]]
    failed: frozenset[str]

    @classmethod
    def load(cls, path: Path) -> TestCoverage:
        """Reads a record from a JSON file."""
        data = json.loads(path.read_text("utf-8"))
        tests = {name: (seconds, frozenset(blocks)) for name, (seconds, blocks) in data["tests"].items()}
        return cls(data["digest"], frozenset(data["imported"]), tests, frozenset(data["failed"]))

    def find_tests(self, blocks: Blocks) -> set[str]:
        """Returns the ids of the tests that enter one of the blocks."""
        return {name for name, (_, entered) in self.tests.items() if not blocks.isdisjoint(entered)}


class CoverageRecorder:
    """Plugin for pytest that writes the blocks of instrumented modules that each test enters."""

    def __init__(self, path: Path, digest: str) -> None:
        self._path = path
        self._data: dict[str, Any] = {"digest": digest, "imported": [], "tests": {}, "failed": []}
        self._entered: set[int] = builtins.__dict__.setdefault("_entered", set())
        self._cached: list[Any] = []

    def pytest_collection_finish(self) -> None:
        """Stores the blocks that ran at import, and finds the cached functions."""
        self._data["imported"] = sorted(self._entered)
        modules = [module for name, module in sys.modules.items() if name.startswith("agentkit")]
        values = [value for module in modules for value in vars(module).values()]
        self._cached = [value for value in values if isinstance(value, _CACHED)]

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        """Stores the duration and the blocks of a test, which starts without cached results."""
        for function in self._cached:
            function.cache_clear()
        self._entered.clear()
        start = time.perf_counter()
        result = yield
        seconds = round(time.perf_counter() - start, 4)
        self._data["tests"][item.nodeid] = seconds, sorted(self._entered)
        return result

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Stores the id of a failed test."""
        if report.failed:
            self._data["failed"].append(report.nodeid)

    def pytest_sessionfinish(self) -> None:
        """Writes the record."""
        self._path.write_text(json.dumps(self._data), "utf-8")


def count_blocks(source: str) -> int:
    """Returns the number of blocks: the lists of statements in the functions of a module."""
    return len([*_iter_blocks(ast.parse(source))])


def find_block(source: str, line: int) -> int | None:
    """Returns the index of the innermost block around a line. None if the line is outside of all functions."""
    spans = [(block[0].lineno, block[-1].end_lineno or 0) for block in _iter_blocks(ast.parse(source))]
    around = [index for index, (first, last) in enumerate(spans) if first <= line <= last]
    return max(around, key=lambda index: spans[index][0], default=None)


def instrument(source: str, number: int) -> str:
    """Returns the source of a module that records its entered blocks, numbered from `number`."""
    tree = ast.parse(source)
    for index, block in enumerate([*_iter_blocks(tree)]):
        has_docstring = isinstance(block[0], ast.Expr) and isinstance(block[0].value, ast.Constant)
        block.insert(int(has_docstring), ast.parse(f"_entered.add({number + index})").body[0])
    futures = [index for index, node in enumerate(tree.body) if ast.unparse(node).startswith("from __future__")]
    start = futures[-1] + 1 if futures else 0
    tree.body[start:start] = ast.parse(_IMPORT).body
    return ast.unparse(tree)


def _iter_blocks(node: ast.AST, is_function: bool = False) -> Iterator[list[ast.stmt]]:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        is_function = True
    elif isinstance(node, ast.ClassDef):
        is_function = False
    if is_function:
        for name in ("body", "orelse", "finalbody"):
            block = getattr(node, name, None)
            if isinstance(block, list) and block:
                yield block
    for child in ast.iter_child_nodes(node):
        yield from _iter_blocks(child, is_function)
