"""`python -m tests.benchmarks [conversion|cutting|loop|imports|memory …] [--quick]`."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from importlib import import_module

NAMES = ("conversion", "cutting", "loop", "imports", "memory")


def main() -> None:
    """Run what was asked for, and print its tables."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", choices=[[], *NAMES], metavar="name", help=", ".join(NAMES))
    parser.add_argument("--quick", action="store_true", help="tiny sizes, to see that everything runs")
    given = parser.parse_args()
    for name in given.names or NAMES:
        run: Callable[[bool], str] = import_module(f"tests.benchmarks.{name}").run
        print(run(given.quick), flush=True)


if __name__ == "__main__":
    main()
