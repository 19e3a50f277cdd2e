"""Descriptions of a function and of its parameters, parsed from its docstring."""

from __future__ import annotations

import inspect
import re
from textwrap import indent
from typing import Any

from agentkit.errors import MissingExtraError

__all__ = ["split_docstring"]


def split_docstring(docstring: str) -> tuple[str, dict[str, str]]:
    """Splits a docstring in Google, NumPy, reST or Epydoc style.

    Returns the description without the sections, and the descriptions of the parameters by name. A docstring that
    fits no style is all description. Raises MissingExtraError without the package `docstring-parser`.
    """
    try:
        from docstring_parser import DocstringStyle, ParseError, parse
    except ImportError:
        raise MissingExtraError("docstring-parser", "tools", "Parsing the sections of a docstring") from None
    text = _with_indented_section(inspect.cleandoc(docstring))
    try:
        found: Any = parse(_FIRST_PARAGRAPH + text)
    except ParseError:
        return text, {}
    parameters: dict[str, str] = {}
    for parameter in found.params:
        for name in parameter.arg_name.split(","):  # NumPy: `x, y : int`
            if description := inspect.cleandoc(parameter.description or ""):
                parameters.setdefault(name.strip().lstrip("*"), description)
    description = (found.description or "").removeprefix(_FIRST_PARAGRAPH.strip()).strip()
    if found.style is DocstringStyle.GOOGLE and found.meta:
        description = "\n\n".join(filter(None, [description, *_prose_after_sections(text)]))
    return description, parameters


_FIRST_PARAGRAPH = "-\n\n"
"""Without a first paragraph the parser takes no section for one."""

_SECTION = re.compile(r"^[A-Z][\w ]*:[ \t]*$", re.MULTILINE)
_LONE_SECTION = re.compile(r"(Args|Arguments|Parameters|Params):\n(?=\S)")


def _with_indented_section(text: str) -> str:
    """The text with a section in its first line indented: `cleandoc` takes all but the first line to the left."""
    title = _LONE_SECTION.match(text)
    return text if title is None else title[0] + indent(text[title.end() :], "    ")


def _prose_after_sections(text: str) -> list[str]:
    """Paragraphs to the left of the sections that they follow, which the parser leaves out."""
    _, *sections = _SECTION.split(text)
    paragraphs = [part for section in sections for part in re.split(r"\n\s*\n", section.strip("\n"))]
    return [part for part in paragraphs if part and not part[0].isspace()]
