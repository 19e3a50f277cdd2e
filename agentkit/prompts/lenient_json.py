"""`read_json`: reads JSON, damaged JSON and Python literals from the text of a model."""

from __future__ import annotations

import ast
import re
from importlib.util import find_spec
from typing import Any, Final

from pydantic_core import from_json

from agentkit.errors import MissingExtraError
from agentkit.json_values import replace_surrogates

__all__ = ["read_json", "read_strict_json", "require_json_repair"]


def require_json_repair() -> None:
    """Checks that the package json-repair is installed.

    An adapter or parser that may read damaged JSON calls this function when it is created.

    Raises:
        MissingExtraError: The package is not installed.
    """
    if find_spec("json_repair") is None:
        raise MissingExtraError("json-repair", "prompts", "Reading damaged JSON")


def read_json(text: str, default: object = None) -> Any:
    """Returns the JSON value that a text contains. Returns `default` if the text contains none.

    The text is read as strict JSON if possible. If this fails, the text is read as damaged JSON, or as JSON
    between other words. If this fails too, the text is read as a Python literal.

    Constants such as `NaN` are read as numbers. If a key repeats, its last value counts. Lone surrogates become
    U+FFFD. JSON that is nested more than 200 levels deep is not read.

    Raises:
        MissingExtraError: The text has brackets and is not strict JSON, and json-repair is not installed.

    Example:
        >>> read_json("[1, 2"), read_json("1_000"), read_json("Sure: {'x': 1}"), read_json("hello", "none")
        ([1, 2], 1000, {'x': 1}, 'none')
    """
    value = read_strict_json(text, _NOTHING)
    if value is not _NOTHING:
        return value
    is_bytes = text[:2] in ("b'", 'b"')  # json-repair would read brackets inside a bytes literal as JSON
    for read in (_read_literal, _repair_json) if is_bytes else (_repair_json, _read_literal):
        value = read(text, _NOTHING)
        if value is not _NOTHING:
            return value
    return default


_NOTHING: Final = object()


def read_strict_json(text: str, default: object = None) -> Any:
    """Returns the value of a text that is valid JSON. Returns `default` for any other text."""
    try:
        return from_json(text, cache_strings="keys")
    except (ValueError, TypeError):  # pydantic-core raises TypeError if the text has a lone surrogate
        return default


# -- damaged JSON ---------------------------------------------------------------------------------------------

_BRACKETS: Final = re.compile(r"[\[{(\]})]")
_MAX_DEPTH: Final = 200


def _repair_json(text: str, default: object) -> Any:
    """Reads damaged JSON. Skips a text without an opening bracket, because json-repair finds no value in it."""
    if not _has_brackets(text) or _is_too_deep(text):
        return default
    require_json_repair()
    import json_repair

    try:
        value: Any = json_repair.loads(text)
    except Exception:  # json-repair has no common error class, and raises RecursionError for some texts
        return default
    return default if value == "" else replace_surrogates(value, "reply")


def _has_brackets(text: str) -> bool:
    return "{" in text or "[" in text or "(" in text


def _is_too_deep(text: str) -> bool:
    """Returns True if more than 200 brackets are open at once.

    json-repair makes a recursive call for each open bracket. Brackets inside strings count too, because the ends
    of the strings are not certain in damaged JSON.
    """
    depth = 0
    for match in _BRACKETS.finditer(text):
        depth = depth + 1 if match[0] in "[{(" else max(depth - 1, 0)
        if depth > _MAX_DEPTH:
            return True
    return False


# -- Python literals ------------------------------------------------------------------------------------------

_CONSTANTS: Final = {"True": True, "False": False, "None": None}
_QUOTED: Final = re.compile(r"[bB]?['\"]")
_UNQUOTED: Final = re.compile(r"(?:[\da-fA-FxXoObB_.eEjJ+\-,() \t\r\n]|True|False|None|set\(\))+")
_ESCAPE: Final = re.compile(r"\\(.)", re.DOTALL)
_KNOWN_ESCAPES: Final = frozenset("\n\r\\'\"abfnrtvxuUN01234567")


def _read_literal(text: str, default: object) -> Any:
    """Reads a number, string, constant or tuple in Python's notation."""
    text = text.strip()
    if text in _CONSTANTS:
        return _CONSTANTS[text]
    if _QUOTED.match(text):
        # Python warns about an unknown escape such as `\d`. `\\d` has the same meaning and causes no warning.
        text = _ESCAPE.sub(lambda match: match[0] if match[1] in _KNOWN_ESCAPES else f"\\{match[0]}", text)
    elif not _UNQUOTED.fullmatch(text):
        return default
    try:
        return replace_surrogates(ast.literal_eval(text), "reply")
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return default
