"""Runs the Python examples of a Markdown page in this process.

The examples of one page share their names, from top to bottom, as in an interactive shell. Where a block marked
`text` follows an example directly, the example must print exactly that text. An example that begins with a comment
such as `# package/module.py` is this file of a distribution, whose entry points are in a block marked `toml`.
"""

from __future__ import annotations

import re
import sys
from contextlib import redirect_stdout
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from types import ModuleType
from typing import Final

import pytest

__all__ = ["GUIDES", "README", "ROOT", "Example", "read_examples", "run_page", "write_distribution"]

ROOT: Final = Path(__file__).parents[2]
README: Final = ROOT / "README.md"
GUIDES: Final = sorted((ROOT / "examples" / "guides").glob("*.md"))

_FILE: Final = re.compile(r"# (\S+\.py)\n")
_ENTRY_POINTS: Final = re.compile(
    r'^```toml\n\[project\.entry-points\."(.*?)"\]\n(.*?)^```', re.MULTILINE | re.DOTALL
)
_EXAMPLE: Final = re.compile(r"^```python\n(.*?)^```\n(?:\n```text\n(.*?)^```$)?", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Example:
    """One block of Python.

    Attributes:
        line: number of lines before the code, so that a traceback names lines of the page.
        code: source text.
        output: text that the code must print; None if the page does not show it.

    """

    line: int
    code: str
    output: str | None


def read_examples(text: str) -> list[Example]:
    """Returns the Python examples of a page, in order."""
    return [Example(text.count("\n", 0, match.start(1)), match[1], match[2]) for match in _EXAMPLE.finditer(text)]


def write_distribution(text: str, folder: Path) -> bool:
    """Writes the files of a page to a folder, as an installed distribution. Returns True if there are any."""
    files = [(match[1], example.code) for example in read_examples(text) if (match := _FILE.match(example.code))]
    for name, code in files:
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(code, "utf-8")
    if points := _ENTRY_POINTS.search(text):
        info = folder / "guide-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: guide\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(f"[{points[1]}]\n{points[2].replace(chr(34), '')}")
    return bool(files)


def run_page(page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs the examples of a page in the root folder of the project and compares their output.

    Raises:
        AssertionError: if an example prints another text than the page shows.

    """
    module = ModuleType(f"page_{page.stem}")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.chdir(ROOT)
    for example in read_examples(page.read_text("utf-8")):
        if _FILE.match(example.code):
            continue
        output = StringIO()
        code = compile("\n" * example.line + example.code, str(page), "exec", dont_inherit=True)
        with redirect_stdout(output):
            exec(code, module.__dict__)
        if example.output is not None:
            printed = output.getvalue()
            assert printed == example.output, f"{page.name}, line {example.line} prints:\n{printed}"
