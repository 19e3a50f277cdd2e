"""`python -m tests.benchmarks [NAME …] [--quick] [--write]`."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from importlib import import_module

from tests.benchmarks.pages import write
from tests.benchmarks.report import Report

NAMES = (
    "loop",
    "caching",
    "cutting",
    "conversion",
    "streams",
    "linear_parsing",
    "calling",
    "concurrent_replies",
    "media",
    "concurrent_formatting",
    "memory",
    "imports",
)


def main() -> None:
    """Run what was asked for, print its tables, and write the pages on performance if that was asked for too."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", choices=[[], *NAMES], metavar="name", help=", ".join(NAMES))
    parser.add_argument("--quick", action="store_true", help="tiny sizes, to see that everything runs")
    parser.add_argument("--write", action="store_true", help="write RESULTS.md and the summary in the README")
    given = parser.parse_args()
    if given.write and (given.names or given.quick):
        parser.error("--write runs everything at full size")
    reports: dict[str, Report] = {}
    for name in given.names or NAMES:
        run: Callable[[bool], Report] = import_module(f"tests.benchmarks.{name}").run
        reports[name] = run(given.quick)
        print(f"== {name}\n\n{reports[name]}", flush=True)
    if given.write:
        write(reports)


if __name__ == "__main__":
    main()
