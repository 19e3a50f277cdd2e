"""Parses the descriptions of a function and of its parameters from the docstring of the function."""

from __future__ import annotations

import inspect
import re
from textwrap import indent
from typing import Any

from agentkit.errors import MissingExtraError

__all__ = ["split_docstring"]


def split_docstring(docstring: str) -> tuple[str, dict[str, str]]:
    """Splits a docstring in Google, NumPy, reST or Epydoc style.

    Returns the description without the sections, and a dict from parameter names to descriptions. For a docstring
    in any other style, the description is the complete text, and the dict is empty.

    Raises:
        MissingExtraError: `docstring-parser` is not installed.
    """
    try:
        from docstring_parser import DocstringStyle, ParseError, parse
    except ImportError:
        raise MissingExtraError("docstring-parser", "tools", "Parsing the sections of a docstring") from None
    text = _indent_first_section(inspect.cleandoc(docstring))
    try:
        parsed: Any = parse(_FIRST_PARAGRAPH + text)
    except ParseError:
        return text, {}
    parameters: dict[str, str] = {}
    for parameter in parsed.params:
        for name in parameter.arg_name.split(","):  # NumPy style allows several names: `x, y : int`
            if description := inspect.cleandoc(parameter.description or ""):
                parameters.setdefault(name.strip().lstrip("*"), description)
    description = (parsed.description or "").removeprefix(_FIRST_PARAGRAPH.strip()).strip()
    if parsed.style is DocstringStyle.GOOGLE and parsed.meta:
        description = "\n\n".join(filter(None, [description, *_find_prose_after_sections(text)]))
    return description, parameters


_FIRST_PARAGRAPH = "-\n\n"
"""Paragraph that is inserted before a docstring. The parser finds sections only after a paragraph."""

_SECTION = re.compile(r"^[A-Z][\w ]*:[ \t]*$", re.MULTILINE)
_LONE_SECTION = re.compile(r"(Args|Arguments|Parameters|Params):\n(?=\S)")


def _indent_first_section(text: str) -> str:
    """Indents a section that starts on the first line, because `cleandoc` has removed its indentation."""
    title = _LONE_SECTION.match(text)
    return text if title is None else title[0] + indent(text[title.end() :], "    ")


def _find_prose_after_sections(text: str) -> list[str]:
    """Returns the unindented paragraphs that follow a section of a docstring. The parser omits such paragraphs."""
    _, *sections = _SECTION.split(text)
    paragraphs = [part for section in sections for part in re.split(r"\n\s*\n", section.strip("\n"))]
    return [part for part in paragraphs if part and not part[0].isspace()]
