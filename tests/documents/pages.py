"""Runs the Python examples of a Markdown page in this process.

The examples of one page share their names, from top to bottom, as in an interactive shell. Where a block marked
`text` follows an example directly, the example must print exactly that text.
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

__all__ = ["GUIDES", "README", "ROOT", "Example", "read_examples", "run_page"]

ROOT: Final = Path(__file__).parents[2]
README: Final = ROOT / "README.md"
GUIDES: Final = sorted((ROOT / "examples" / "guides").glob("*.md"))

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


def run_page(page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs the examples of a page in the root folder of the project and compares their output.

    Raises:
        AssertionError: if an example prints another text than the page shows.

    """
    module = ModuleType(f"page_{page.stem}")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.chdir(ROOT)
    for example in read_examples(page.read_text("utf-8")):
        output = StringIO()
        code = compile("\n" * example.line + example.code, str(page), "exec", dont_inherit=True)
        with redirect_stdout(output):
            exec(code, module.__dict__)
        if example.output is not None:
            assert output.getvalue() == example.output, f"{page.name}, line {example.line}"
