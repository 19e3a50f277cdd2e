"""`parse_python_calls`: parses a list of calls in Python syntax, such as `[search(query="cats", n=3)]`."""

from __future__ import annotations

import re
from typing import Any, Final

__all__ = ["parse_python_calls"]

_TOKEN: Final = re.compile(
    r"""[ \t\n\r]*(?:
    (?P<string>'(?:[^'\\\n\r]|\\.)*'|"(?:[^"\\\n\r]|\\.)*")
    |(?P<number>-?(?:0|[1-9][0-9]*)(?P<fraction>\.[0-9]+)?(?P<exponent>[eE][+-]?[0-9]+)?)
    |(?P<name>[A-Za-z_][A-Za-z0-9_]*(?:[-.][A-Za-z0-9_]+)*)
    |(?P<mark>[\[\]{}(),:=])
    )""",
    re.VERBOSE | re.DOTALL,
)
_SPACE: Final = re.compile(r"[ \t\n\r]*")
_ESCAPE: Final = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.))", re.DOTALL)
_ESCAPES: Final = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "\\": "\\", "'": "'", '"': '"', "/": "/"}
_CONSTANTS: Final = {"True": True, "true": True, "False": False, "false": False, "None": None, "null": None}
_MAX_INTEGER: Final = 2**53 - 1
_MAX_DEPTH: Final = 100


def parse_python_calls(text: str) -> list[dict[str, Any]]:
    """Parses a list of calls with keyword arguments.

    The value of an argument is a string, a number, a list, a dict, or a constant: `True`, `true`, `False`,
    `false`, `None` or `null`.

    Returns:
        One dict with `name` and `arguments` for each call.

    Raises:
        ValueError: The text is not a valid list of calls, or a value is too large or nested too deeply.

    Example:
        >>> parse_python_calls('[search(query="cats", n=3)]')
        [{'name': 'search', 'arguments': {'query': 'cats', 'n': 3}}]
    """
    return _CallParser(text).parse()


class _CallParser:
    """Recursive-descent parser of a list of calls."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._index = 0

    def parse(self) -> list[dict[str, Any]]:
        self._expect("[")
        calls: list[dict[str, Any]] = []
        while not self._ends_items("]", is_first=not calls):
            name = self._read("name", "the name of a function")
            self._expect("(")
            arguments: dict[str, Any] = {}
            while not self._ends_items(")", is_first=not arguments):
                key = self._read("name", "the name of an argument")
                self._expect("=")
                self._add(arguments, key, self._value(0))
            calls.append({"name": name, "arguments": arguments})
        if self._skip_space() != len(self._text):
            self._fail("the end of the text")
        return calls

    def _fail(self, expected: str) -> None:
        text = self._text[self._index : self._index + 20]
        raise ValueError(f"expected {expected} at character {self._index}, got {text!r}")

    def _skip_space(self) -> int:
        match = _SPACE.match(self._text, self._index)
        self._index = match.end() if match else self._index
        return self._index

    def _next(self) -> re.Match[str] | None:
        return _TOKEN.match(self._text, self._index)

    def _read(self, kind: str, expected: str) -> str:
        match = self._next()
        if match is None or match[kind] is None:
            self._fail(expected)
            return ""
        self._index = match.end()
        return match[kind]

    def _takes(self, mark: str) -> bool:
        match = self._next()
        if match is None or match["mark"] != mark:
            return False
        self._index = match.end()
        return True

    def _expect(self, mark: str) -> None:
        if not self._takes(mark):
            self._fail(f"{mark!r}")

    def _ends_items(self, mark: str, *, is_first: bool) -> bool:
        """Returns True if a closing mark such as `]` is next, and reads the mark.

        Otherwise, reads the comma between two items.
        """
        if self._takes(mark):
            return True
        if not is_first:
            self._expect(",")
        return False

    def _add(self, values: dict[str, Any], key: str, value: Any) -> None:
        if key in values:
            raise ValueError(f"the argument or key {key!r} occurs twice")
        values[key] = value

    def _value(self, depth: int) -> Any:
        match = self._next()
        if match is None:
            return self._fail("a value")
        self._index = match.end()
        if match["string"] is not None:
            return _read_string(match["string"])
        if match["number"] is not None:
            return _read_number(match)
        if match["name"] in _CONSTANTS:
            return _CONSTANTS[match["name"]]
        if depth >= _MAX_DEPTH and match["mark"] in ("[", "{"):
            raise ValueError(f"lists and dicts are nested more than {_MAX_DEPTH} levels deep")
        if match["mark"] == "[":
            return self._list(depth + 1)
        return self._dict(depth + 1) if match["mark"] == "{" else self._fail("a value")

    def _list(self, depth: int) -> list[Any]:
        items: list[Any] = []
        while not self._ends_items("]", is_first=not items):
            items.append(self._value(depth))
        return items

    def _dict(self, depth: int) -> dict[str, Any]:
        values: dict[str, Any] = {}
        while not self._ends_items("}", is_first=not values):
            key = _read_string(self._read("string", "a key that is a string"))
            self._expect(":")
            self._add(values, key, self._value(depth))
        return values


def _read_number(match: re.Match[str]) -> int | float:
    text = match["number"]
    if match["fraction"] is None and match["exponent"] is None:
        if len(text) > 17 or abs(int(text)) > _MAX_INTEGER:
            raise ValueError(f"the integer {text:.40} is not between -(2^53 - 1) and 2^53 - 1")
        return int(text)
    number = float(text)
    if number in (float("inf"), float("-inf")):
        raise ValueError(f"the number {text:.40} is too large")
    return number


def _read_string(text: str) -> str:
    """Returns the value of a quoted string. Accepts the escapes of JSON, and an escaped single quote."""

    def unescape(match: re.Match[str]) -> str:
        if match[1] is not None:
            return chr(int(match[1], 16))
        if match[2] not in _ESCAPES:
            raise ValueError(f"unknown escape {match[0]!r} in a string")
        return _ESCAPES[match[2]]

    decoded = _ESCAPE.sub(unescape, text[1:-1])
    try:
        joined = decoded.encode("utf-16", "surrogatepass").decode("utf-16")
    except UnicodeDecodeError:
        raise ValueError("a string has a lone surrogate") from None
    return joined
