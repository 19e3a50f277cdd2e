"""Order of the tests for a mutant: those that probably fail come first."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Final

__all__ = ["MUTATED", "get_stages"]

MUTATED: Final = (
    *(f"agentkit/{name}" for name in ("repair", "history", "legalize", "formatting", "budget", "ledger", "tools")),
    "providers/*/convert.py",
    "providers/*/*/convert.py",
)
"""Modules that make requests and cuts."""

_REQUESTS: Final = (
    *(f"tests/{name}" for name in ("legalize", "formatting", "history", "repair", "budget", "ledger", "tools")),
    *(f"tests/providers/test_{name}.py" for name in ("across_wires", "every_leaf", "tool_schemas")),
    *(f"tests/providers/test_{name}.py" for name in ("caching", "read_history", "through_sdks", "tool_choices")),
    "tests/properties",
)


def get_stages(path: str, root: Path) -> list[list[str]]:
    """Returns groups of test files: the mirrored tests, the other tests of requests, all others.

    Args:
        path: Path of the mutated module.
        root: Root of the tree.
    """
    remaining = [*_iter_test_files(root)]
    stages: list[list[str]] = []
    for prefixes in (_get_mirrored(path), _REQUESTS, ("",)):
        stages.append([name for name in remaining if name.startswith(prefixes)])
        remaining = [name for name in remaining if not name.startswith(prefixes)]
    return [stage for stage in stages if stage]


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
