"""Cases for the comparison with DSPy: source code of a signature, values, and texts of replies."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

__all__ = ["CASES", "DIFFERENCES", "Case"]


class Case(NamedTuple):
    """One comparison. agentkit and DSPy run the same source code.

    Attributes:
        name: Name of the case.
        source: Source code that defines the signature `S`.
        inputs: Expression for the inputs of the request.
        demos: Expression for a list of examples.
        texts: Replies to parse, for each adapter.
    """

    name: str
    source: str
    inputs: str = "{}"
    demos: str = "[]"
    chat: tuple[str, ...] = ()
    json: tuple[str, ...] = ()


_TYPES: Final[dict[str, tuple[str, ...]]] = {
    "str": ("'a'", "''", "'two words'", "'one\\ntwo'", "'Ünïcode ☃'", "'{\"a\": 1}'"),
    "int": ("1", "-5", "10**20"),
    "float": ("0.5", "1e30", "-2.0"),
    "bool": ("True", "False"),
    "list[str]": ("['a', 'b']", "[]", "['x\\ny', '\"']"),
    "list[int]": ("[1, 2]",),
    "dict[str, int]": ("{'a': 1, 'ö': 2}", "{}"),
    "dict[str, list[float]]": ("{'a': [1.5]}",),
    "tuple[int, str]": ("(1, 'a')",),
    "Literal['a', 'b']": ("'a'", "'b'"),
    "Literal[1, 2]": ("1", "2"),
    "Literal['it\\'s', 'b']": ("'it\\'s'", "'b'"),
    "Literal['say \"hi\"', 'b']": ("'say \"hi\"'", "'b'"),
    "Literal['it\\'s \"hi\"', 'b']": ("'b'", "'it\\'s \"hi\"'"),
    "Literal[True, 'x', 3]": ("'x'", "3"),
    "Optional[int]": ("1", "2"),
    "int | None": ("1", "2"),
    "Optional[list[str]]": ("['a']",),
    "Union[int, list[int]]": ("1", "[1]"),
    "Any": ("1", "{'a': [1]}"),
    "Color": ("Color.RED", "Color.BLUE"),
    "Point": ("Point(x=1)", "Point(x=2, label='ü')"),
    "list[Point]": ("[Point(x=1), Point(x=2, label='b')]",),
    "dict[str, Point]": ("{'k': Point(x=1)}",),
    "Tree": ("Tree(name='a', inner=[Tree(name='b')])",),
    "Pair": ("{'a': 1, 'b': 'x'}",),
    "datetime.date": ("datetime.date(2026, 11, 26)",),
    "datetime.datetime": ("datetime.datetime(2026, 11, 26, 12, 0)",),
    "Code": ("Code(code='x = 1')",),
    "Code['sql']": ("Code['sql'](code='SELECT 1')",),
    "Reasoning": ("because",),
    "list[list[int]]": ("[[1], []]", "[]"),
    "dict[str, Any]": ("{'a': [1, None, 'x']}", "{}"),
    "Optional[Color]": ("Color.RED",),
    "list[Color]": ("[Color.RED, Color.BLUE]", "[]"),
    "list[Literal['a', 'b']]": ("['a']", "['b', 'a']"),
    "float | None": ("0.5", "2.0"),
    "tuple[int, ...]": ("(1, 2, 3)", "()"),
    "Optional[Point]": ("Point(x=1)",),
    "dict[str, Optional[int]]": ("{'a': None, 'b': 1}",),
    "list[Union[int, bool]]": ("[1, True]",),
    "datetime.time": ("datetime.time(12, 30)",),
}
"""Types of fields, each with the source code of some values."""

_CLASSES: Final = """
class Color(Enum):
    RED = "red"
    BLUE = "blue"

class Point(BaseModel):
    "A point."
    x: int
    label: str = Field(default="p", description="Its name.")

class Tree(BaseModel):
    name: str
    inner: list["Tree"] = []

class Pair(TypedDict):
    a: int
    b: str
"""

_TEXTS: Final[dict[str, tuple[str, ...]]] = {
    "int": ("5", " 5 ", "'7'", "3.0", "1e3", "five", "", "1,000", "[1]"),
    "float": ("0.5", "1_000.5", "123_456.789", "x"),
    "bool": ("True", "false", "yes", "no", "1", "maybe"),
    "list[str]": ('["a"]', "['a', 'b']", '["a", "b"', "a, b", '```json\n["a"]\n```', "[]", ""),
    "list[int]": ("[1, 2", "[1, 2,]", "(1, 2)", "1"),
    "dict[str, int]": ('{"a": 1}', "{'a': 1}", '{"a": 1', "a: 1"),
    "tuple[int, str]": ('[1, "a"]', "(1, 'a')"),
    "Literal['a', 'b']": ("a", " b ", "'a'", '"b"', "Literal['a']", "str[b]", "c", "A"),
    "Literal[1, 2]": ("1", "'2'", "3"),
    "int | None": ("4", "null", "None", "x"),
    "Color": ("red", "RED", "green", "Color.RED"),
    "Point": ('{"x": 1}', '{"x": "1", "label": "b"}', "{'x': 2}", '{"label": "b"}', '```\n{"x": 3}\n```', "1"),
    "list[Point]": ('[{"x": 1}, {"x": 2}]', '{"x": 1}'),
    "datetime.date": ("2026-11-26", "tomorrow"),
    "str": ("a", "  a  ", "two\nlines", "", "null", '"quoted"'),
    "Code": ("x = 1", "```python\nx = 1\n```", "Here:\n```\nx = 1\n```\nDone."),
}
"""Texts of an output, by type."""


_JSON: Final[dict[str, tuple[str, ...]]] = {
    "str": ('"a"', '" a "', "1", "true", "null", '{"a": 1}', "[1]"),
    "int": ("5", '"5"', "5.0", "5.5", "null", "true", '"x"'),
    "float": ("0.5", '"1e3"', "1", "null"),
    "bool": ("true", '"yes"', "1", '"maybe"', "null"),
    "list[str]": ('["a"]', "[]", '"a"', '["a", 1]', '"[\\"a\\"]"'),
    "list[int]": ("[1, 2]", '["1"]', '"[1, 2]"', "[1.5]"),
    "dict[str, int]": ('{"a": 1}', '{"a": "1"}', '{"a": "x"}', "{}", "[]"),
    "tuple[int, str]": ('[1, "a"]', "[1]", '["1", "a"]'),
    "Literal['a', 'b']": ('"a"', '"c"', '" a "', "1"),
    "Literal[1, 2]": ("1", '"2"', "3"),
    "int | None": ("4", "null", '"null"', '"x"'),
    "Color": ('"red"', '"RED"', '"green"', "1"),
    "Point": ('{"x": 1}', '{"x": "1", "label": "b"}', '{"label": "b"}', "1", '"{\\"x\\": 1}"'),
    "list[Point]": ('[{"x": 1}, {"x": 2}]', '{"x": 1}', "[]"),
    "datetime.date": ('"2026-11-26"', '"tomorrow"', "0"),
    "Code": ('"x = 1"', '{"code": "x = 1"}', '"```python\\nx = 1\\n```"'),
}
"""JSON values of an output, by type."""


def _list_cases() -> Iterator[Case]:
    for number, (annotation, values) in enumerate(_TYPES.items()):
        source = (
            f"{_CLASSES}\nclass S(Signature):\n"
            f"    'Do it.'\n    x: {annotation} = InputField(desc='the input')\n    n: int = InputField()\n"
            f"    y: {annotation} = OutputField()\n    z: str = OutputField(desc='why')\n"
        )
        texts = _TEXTS.get(annotation, ())
        first, last = values[0], values[-1]
        demos = (
            f"[{{'x': {first}, 'n': 1, 'y': {last}, 'z': 'so'}}, {{'x': {last}, 'y': {first}}}, "
            "{'n': 3, 'z': 'q'}, {'n': 5}]"
        )
        chat = tuple(f"[[ ## y ## ]]\n{text}\n\n[[ ## z ## ]]\nok\n\n[[ ## completed ## ]]\n" for text in texts)
        objects = tuple(f'{{"y": {value}, "z": "ok"}}' for value in _JSON.get(annotation, ()))
        yield Case(f"type {annotation}", source, f"{{'x': {first}, 'n': 2}}", demos, chat, objects)
        for index, value in enumerate(values[1:], 1):
            yield Case(f"value {index} of {annotation}", source, f"{{'x': {value}, 'n': {number}}}")


_NAMED: Final = (
    *("str", "int", "float", "bool", "list[str]", "list[int]", "dict[str, int]", "tuple[int, str]", "Any"),
    *("Literal['a', 'b']", "Literal[1, 2]", "Optional[int]", "int | None", "list[list[int]]", "dict[str, Any]"),
)
"""Types that a signature text may name."""


def _list_texts() -> Iterator[Case]:
    for annotation in _NAMED:
        value = _TYPES[annotation][0]
        source = f"S = Signature({f'x: {annotation} -> y: {annotation}, z'!r}, 'Do it.')"
        yield Case(
            f"text with {annotation}", source, f"{{'x': {value}}}", f"[{{'x': {value}, 'y': {value}, 'z': ''}}]"
        )


_TWO: Final = """
class S(Signature):
    '''Judge it.

    Be strict:
      - always'''
    q: str = InputField()
    ctx: list[str] = InputField(desc="the passages")
    verdict: Literal["a", "b"] = OutputField()
    score: int = OutputField(ge=0, le=10, desc="points")
    why: str = OutputField(min_length=2)
"""
_HISTORY: Final = """
class S(Signature):
    q: str = InputField()
    history: History = InputField()
    a: str = OutputField()
"""
_DEFAULTS: Final = """
class S(Signature):
    "Do it."
    a: str = InputField()
    b: str = OutputField()
    c: int = OutputField(default=4)
    d: Optional[int] = OutputField()
"""
_CONSTRAINTS: Final = """
class S(Signature):
    "Do it."
    a: float = InputField(gt=0, lt=1.5, allow_inf_nan=False)
    b: list[int] = OutputField(min_length=1, max_length=3)
    c: int = OutputField(multiple_of=5, description="described")
"""

_STRUCTURES: Final = (
    "[[ ## b ## ]]\nx",
    "[[ ## b ## ]] y\nx\n[[ ## q ## ]]\nz\n[[ ## b ## ]]\nagain",
    "Sure!\n[[ ## b ## ]]\nx\n\n[[ ## c ## ]]\n5\n\n[[ ## d ## ]]\nnull\n\n[[ ## completed ## ]]",
    "x",
    "",
    "[[ ## c ## ]]\n5",
    "[[ ## b ## ]]\nq\n[[ ## d ## ]]\n3\n[[ ## completed ## ]]\nbye",
    "[[ ## b ## ]]\nnot a [[ ## c ## ]] header\n[[ ## c ## ]]\n1",
    "[[ ## b ## ]]\nx\n[[ ## c ## ]]\nfive",
    "[[ ## b ## ]]\n\n\n  x  \n\n",
    "[[##b##]]\nx",
)
_OBJECTS: Final = (
    '{"b": "x"}',
    'Sure: {"b": "x", "c": "7", "z": 1} ok',
    '```json\n{"b": "x", "c": 7, "d": null}\n```',
    "{'b': 'x', 'c': 7}",
    '{"b": "x", "c": 7',
    "[1]",
    "none",
    "",
    '{"b": null, "c": 1}',
    '{"b": "x", "c": "q"}',
    '{"c": 1}',
    '{"b": {"k": 1}, "c": 1.0}',
    '{"b": "x", "d": "null"}',
)

CASES: Final = (
    *_list_cases(),
    *_list_texts(),
    Case(
        "several fields",
        _TWO,
        "{'q': 'hi', 'ctx': ['a', 'b']}",
        "[{'q': '1', 'ctx': ['x'], 'verdict': 'a', 'score': 3, 'why': 'w'}, "
        "{'q': '2', 'verdict': 'b'}, {'q': 'only'}]",
    ),
    Case("a missing input", _TWO, "{'q': 'hi'}"),
    Case("no input", _TWO),
    Case("None as an input", _TWO, "{'q': None, 'ctx': None}", "[{'q': None, 'ctx': ['x'], 'verdict': 'a'}]"),
    Case("a list for a text", _TWO, "{'q': ['a', 'two\\nlines', '«»'], 'ctx': []}"),
    Case("a list of one text for a text", _TWO, "{'q': ['a'], 'ctx': []}"),
    Case("an empty list for a text", _TWO, "{'q': [], 'ctx': []}"),
    Case(
        "history",
        _HISTORY,
        "{'q': 'hi', 'history': History(messages=[{'q': 'one', 'a': 'uno'}, {'q': 'two'}, {'a': 'tre'}])}",
        "[{'q': 'd', 'a': 'e'}]",
    ),
    Case("an empty history", _HISTORY, "{'q': 'hi', 'history': History(messages=[])}"),
    Case(
        "a text as signature", "S = Signature('question, context: list[str] -> answer: int')", "{'question': 'q'}"
    ),
    Case("a text with instructions", "S = Signature('a -> b, c: bool', 'Be brief.')", "{'a': 'x'}"),
    Case(
        "no instructions",
        "class S(Signature):\n    a: str = InputField()\n    b: str = OutputField()",
        "{'a': '1'}",
    ),
    Case("defaults", _DEFAULTS, "{'a': 'x'}", chat=_STRUCTURES, json=_OBJECTS),
    Case("constraints", _CONSTRAINTS, "{'a': 0.5}"),
    Case("edited", f"{_TWO}\nS = S.delete('ctx').append('extra', OutputField(desc='more'), float)", "{'q': 'x'}"),
    Case(
        "inserted",
        f"{_TWO}\nS = S.insert(1, 'mid', InputField(), bool).with_instructions('New.')",
        "{'mid': True}",
    ),
    Case("updated", f"{_TWO}\nS = S.with_updated_fields('why', desc='reason')", "{'q': 'x'}"),
)

_TEXT: Final = "S = Signature('x: Optional[str], n: int -> y', 'Do it.')"

DIFFERENCES: Final = (
    Case("the text None beside None", _TEXT, "{'x': 'None', 'n': 1}"),
    Case("outer white space", _TEXT, "{'x': ' a ', 'n': 1}"),
    Case("a line that looks like a section", _TEXT, "{'x': 'a\\n[[ ## n ## ]]\\n2', 'n': 1}"),
    Case(
        "NaN in a list", "S = Signature('x: list[float], n: int -> y', 'Do it.')", "{'x': [float('nan')], 'n': 1}"
    ),
)
"""Values that DSPy writes as the text of another value. agentkit escapes them (see `value_escapes`)."""
