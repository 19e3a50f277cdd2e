"""Runs benchmarks: `python -m tests.benchmarks [NAME …] [--quick] [--write]`."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from importlib import import_module

from tests.benchmarks.pages import write_pages
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
    "prompts",
    "responses",
    "training",
    "rendering",
)


def main() -> None:
    """Runs the named benchmarks, prints their tables, and writes the result pages if asked."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.benchmarks", description="Run benchmarks and print their tables."
    )
    parser.add_argument(
        "names",
        nargs="*",
        choices=[[], *NAMES],
        metavar="name",
        help=f"Benchmark to run (default: all): {', '.join(NAMES)}.",
    )
    parser.add_argument(
        "--quick", action="store_true", help="Run with tiny sizes, to check that every benchmark works."
    )
    parser.add_argument("--write", action="store_true", help="Write RESULTS.md and the summary in the README.")
    options = parser.parse_args()
    if options.write and (options.names or options.quick):
        parser.error("--write: needs all benchmarks at full size. Use it without names and --quick.")
    reports: dict[str, Report] = {}
    for name in options.names or NAMES:
        run: Callable[[bool], Report] = import_module(f"tests.benchmarks.{name}").run
        reports[name] = run(options.quick)
        print(f"== {name}\n\n{reports[name]}", flush=True)
    if options.write:
        write_pages(reports)


if __name__ == "__main__":
    main()
