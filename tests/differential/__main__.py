"""Command `python -m tests.differential`: runs both versions, and prints how they differ."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeAlias

from tests.differential.comparison import Comparison, Difference, count_records, describe_record
from tests.differential.conversations import create_conversation
from tests.differential.coverage import Coverage
from tests.differential.environment import BASE, find_default_folder, prepare_environment
from tests.differential.logs import create_logs, create_stored
from tests.differential.runs import CHUNK, Case, Lane, Result, run_chunks
from tests.differential.streams import create_streams

__all__ = ["main"]

_Chunk: TypeAlias = tuple[str, Callable[[Lane], Sequence[Case]]]


def main(arguments: Sequence[str] | None = None) -> int:
    """Returns 0 if the versions are equal, and 1 if they differ."""
    options = _parse(arguments)
    started = time.monotonic()
    folder = options.environment or find_default_folder(options.base)
    base = options.python or prepare_environment(folder, options.base)
    lanes = [
        Lane(base, options.candidate, folder, uses_cache=not options.no_cache) for _ in range(max(1, options.jobs))
    ]
    coverage = Coverage() if options.coverage else None
    report = Report(Comparison(with_texts=options.texts), options.show, coverage)
    try:
        for results in run_chunks(lanes, list(_create_chunks(options.only, options.start, options.count))):
            report.add(results)
    finally:
        for lane in lanes:
            lane.close()
    if coverage is not None:
        print(coverage.describe(options.base))
    print(report)
    print(f"{time.monotonic() - started:.0f} seconds")
    return 1 if report.difference_count else 0


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.differential", description=__doc__)
    parser.add_argument("--base", default=BASE, metavar="REV", help="Git revision to compare with.")
    parser.add_argument(
        "--python", type=Path, metavar="PATH", help="Interpreter that has the base revision installed already."
    )
    parser.add_argument(
        "--candidate", type=Path, metavar="PATH", default=Path(sys.executable),
        help="Interpreter with the version under test (default: this one).",
    )  # fmt: skip
    parser.add_argument(
        "--environment",
        type=Path,
        metavar="FOLDER",
        help="Folder for the base revision's environment and records.",
    )
    parser.add_argument("--count", type=int, default=10_000, help="Number of conversations (default: 10000).")
    parser.add_argument("--start", type=int, default=0, help="Seed of the first case.")
    parser.add_argument(
        "--only", type=_parse_kinds, default=tuple(_KINDS), metavar="KINDS",
        help=f"Kinds of cases, separated by commas: {', '.join(_KINDS)}.",
    )  # fmt: skip
    parser.add_argument("--jobs", type=int, default=2, help="Number of cases to run at the same time.")
    parser.add_argument("--texts", action="store_true", help="Compare the texts of errors, too.")
    parser.add_argument("--show", type=int, default=20, metavar="N", help="Number of differences to print.")
    parser.add_argument(
        "--coverage", action="store_true", help="Print which dispositions and ledger reasons the cases reach."
    )
    parser.add_argument("--no-cache", action="store_true", help="Run the base version again.")
    return parser.parse_args(arguments)


def _parse_kinds(text: str) -> tuple[str, ...]:
    kinds = tuple(text.split(","))
    unknown = sorted({*kinds} - {*_KINDS})
    if unknown:
        raise argparse.ArgumentTypeError(f"unknown kinds: {', '.join(unknown)}. Use {', '.join(_KINDS)}.")
    return kinds


# -- chunks ----------------------------------------------------------------------------------------------------


def _name(kind: str, seeds: range) -> str:
    return f"{kind}-{seeds.start}-{len(seeds)}"


def _create_conversations(seeds: range, lane: Lane) -> list[Case]:
    return [create_conversation(seed) for seed in seeds]


def _create_streams(seeds: range, lane: Lane) -> list[Case]:
    return [create_streams(seed) for seed in seeds]


def _create_logs(seeds: range, lane: Lane) -> list[Case]:
    return _create_from_base(seeds, lane, "conversations", create_logs)


def _create_stored(seeds: range, lane: Lane) -> list[Case]:
    return _create_from_base(seeds, lane, "logs", create_stored)


def _create_from_base(
    seeds: range, lane: Lane, kind: str, create: Callable[[int, Case, list[Any]], Case]
) -> list[Case]:
    """Returns cases that are made from what the base version gives for the cases of another kind."""
    cases = _KINDS[kind](seeds, lane)
    lines = lane.run_base(_name(kind, seeds), cases)
    return [create(seed, case, json.loads(line)) for seed, case, line in zip(seeds, cases, lines, strict=True)]


_KINDS: Final[dict[str, Callable[[range, Lane], list[Case]]]] = {
    "conversations": _create_conversations,
    "streams": _create_streams,
    "logs": _create_logs,
    "stored": _create_stored,
}
"""By kind: a function that returns the cases with some seeds."""


def _create_chunks(kinds: Sequence[str], start: int, count: int) -> Iterator[_Chunk]:
    for kind in kinds:
        for first in range(start, start + count, CHUNK):
            seeds = range(first, min(first + CHUNK, start + count))
            yield _name(kind, seeds), partial(_KINDS[kind], seeds)


# -- report ----------------------------------------------------------------------------------------------------


class Report:
    """Number of records and differences by kind and provider, and the first differences."""

    def __init__(self, comparison: Comparison, shown: int, coverage: Coverage | None = None) -> None:
        self.difference_count = 0
        self._coverage = coverage
        self._comparison = comparison
        self._shown = shown
        self._records: Counter[tuple[str, str]] = Counter()
        self._differences: Counter[tuple[str, str]] = Counter()
        self._sections: Counter[str] = Counter()

    def add(self, results: Sequence[Result]) -> None:
        """Compares some results; prints the first differences at once."""
        for case, base, candidate in results:
            for number in range(count_records(case)):
                self._records[case["kind"], describe_record(case, number)[0]] += 1
            for difference in self._comparison.compare(case, base, candidate):
                self._note(case["kind"], difference)
            if self._coverage is not None:
                self._coverage.add(json.loads(base))

    def _note(self, kind: str, difference: Difference) -> None:
        self.difference_count += 1
        self._differences[kind, difference.provider] += 1
        self._sections[difference.section] += 1
        if self.difference_count <= self._shown:
            print(difference, flush=True)

    def __str__(self) -> str:
        """Returns a table with a row for each kind and provider, and the sum."""
        rows = [
            f"{kind:14} {provider:22} {count:>9,} records {self._differences[kind, provider]:>7,} differences"
            for (kind, provider), count in sorted(self._records.items())
        ]
        sections = ", ".join(f"{section} {count:,}" for section, count in self._sections.most_common())
        total = f"{sum(self._records.values()):,} records, {self.difference_count:,} differences"
        return "\n".join((*rows, f"{total} ({sections})" if sections else total))


if __name__ == "__main__":
    sys.exit(main())
