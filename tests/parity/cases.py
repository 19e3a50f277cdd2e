"""Cases for the comparison with DSPy: source code of a signature, values, and texts of replies."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, Literal, NamedTuple

__all__ = [
    "CASES",
    "DIFFERENCES",
    "MESSAGE_DIFFERENCES",
    "REPLY_DIFFERENCES",
    "Case",
    "ReplyDifference",
    "TOOL_ROWS",
    "write_sections",
    "write_source",
]


class Case(NamedTuple):
    """One comparison. agentkit and DSPy run the same source code.

    Attributes:
        name: Name of the case.
        source: Source code that defines the signature `S`.
        inputs: Expression for the inputs of the request.
        demos: Expression for a list of examples.
        chat: Replies to parse with the chat adapter.
        json: Replies to parse with the JSON adapter, in both schema styles.
        xml: Replies to parse with the XML adapter.
    """

    name: str
    source: str
    inputs: str = "{}"
    demos: str = "[]"
    chat: tuple[str, ...] = ()
    json: tuple[str, ...] = ()
    xml: tuple[str, ...] = ()


class ReplyDifference(NamedTuple):
    """A reply that adapters of agentkit and DSPy read differently.

    Attributes:
        reason: Why agentkit differs.
        annotation: Type of the output.
        body: Text of the section, between its tags. For the adapter `json`, the complete reply.
        dspy: Value in DSPy, as JSON value. None if DSPy refuses the reply.
        agentkit: Value in agentkit, as JSON value.
        adapter: Name of the adapter.
    """

    reason: str
    annotation: str
    body: str
    dspy: object
    agentkit: object
    adapter: Literal["json", "xml"] = "xml"


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

class Team(BaseModel):
    name: str = Field(alias="teamName")
    lead: Optional[Point] = None
    tags: list[str] = []
    note: Optional[str] = None

class Box(BaseModel):
    '''Names.

    In a box.'''
    names: list[int] = Field(alias="n")
    first: Point
    other: Optional[Point] = Field(default=None, description="Another point.")
    kind: Literal["a", 1, True, None] = "a"

class Nothing(BaseModel):
    pass
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


_TAGS: Final[dict[str, tuple[str, ...]]] = {
    "str": (
        "a &amp; b &lt; c &gt; &quot;&apos;",
        "<b>x</b>",
        "a &amp; <b>&amp;</b>",
        "<![CDATA[a </y> &amp; < b]]>",
        "a<!-- c -->b",
        "&#65;&#x42;",
        "",
        "  ",
    ),
    "Optional[str]": ("", "null", "a", "  "),
    "int": ("5", "<a>5</a>", ""),
    "bool": ("True", "no"),
    "list[str]": (
        "<item>a</item><item>b</item>",
        "<item>a</item>",
        "a",
        "",
        "a</y><y>b",
        '["a"]',
        "<item />",
        "<item><b>x</b></item>",
        "<item> a </item>",
        "<x>a</x>",
        "text <item>a</item>",
        "None",
    ),
    "list[int]": ("<item>1</item>", "1", "[1, 2", "<item>x</item>", "1</y><y>2"),
    "Optional[list[str]]": ("", "<item>a</item>", "a"),
    "Optional[list[int]]": ("", "None", "null", "<item>4</item>"),
    "dict[str, int]": (
        "<a>1</a><b>2</b>",
        '<entry key="a b">1</entry>',
        "",
        '{"a": 1}',
        "<a>1</a><a>2</a>",
        "<entry key='&lt;'>1</entry>",
    ),
    "dict[str, list[int]]": ("<a>1</a><a>2</a>", "<a><item>1</item></a>", "<a />", "<a>3</a>"),
    "dict[str, Any]": ("<a>x</a>", "<a><b>x</b></a>", "<b></b>"),
    "Point": (
        "<x>1</x>",
        "<x>1</x><label>b</label>",
        "<label>b</label>",
        '{"x": 1}',
        "<x>1</x><other>2</other>",
        "<x> 1 </x>\n<label>a &amp; b</label>",
        "",
        "<x><b>1</b></x>",
        "<x>1</x><label><b>q</b></label>",
    ),
    "Optional[Point]": ("", "None", "<x>1</x>"),
    "list[Point]": (
        "<item><x>1</x></item><item><x>2</x></item>",
        "<x>1</x>",
        "<x>1</x></y><y><x>2</x>",
        '<item>{"x": 1}</item>',
    ),
    "Tree": (
        "<name>a</name><inner><item><name>b</name><inner /></item></inner>",
        "<name>a</name><inner><name>b</name></inner>",
    ),
    "Team": (
        "<teamName>a</teamName>",
        "<name>a</name>",
        "<name>a</name><tags>x</tags><tags>z</tags>",
        "<name>a</name><lead /><tags><item>x</item></tags><note></note>",
        "<name>a</name><tags>x</tags><lead><x>1</x></lead>",
    ),
    "Pair": ("<a>1</a><b>x</b>",),
    "Union[int, list[int]]": ("1", "<item>1</item>", "[1]", "<item>1</item><item>2</item>"),
    "Union[list[str], str]": ("<item>a</item>",),
    "Union[Point, Team]": ("<x>1</x>", "<name>a</name><tags><item>1</item></tags>"),
    "list[Union[Point, Team]]": ("<item><x>2</x></item>",),
    "list[Union[str, int]]": ("<item>5</item><item>a</item>",),
    "list[Literal['a', 'b']]": ("<item>a</item>", "<item>c</item>"),
    "list[Color]": ("<item>red</item>", "<item>RED</item>"),
    "list[Optional[int]]": ("<item>1</item><item />",),
    "list[list[int]]": ("<item><item>1</item></item><item />", "<item>1</item>", "[[1],[]]"),
    "tuple[int, str]": ("<item>1</item><item>a</item>",),
    "set[int]": ("<item>1</item>", "[1]"),
    "list[bool]": ("<item>True</item><item>no</item>",),
    "list[float]": ("<item>1.50</item>",),
    "list[datetime.date]": ("<item>2026-11-26</item>",),
    "Any": ("5", "x", "", "[1]"),
    "Union[str, list[int], None]": ("a", "<item>1</item>", "<b>a</b>", ""),
    "Color": (" red ", "<b>red</b>"),
    "Literal['a', 'b']": ("<b>a</b>",),
    "Code": ("a &lt; b",),
}
"""Sections of an output with tags or references, by type."""

_REPLIES: Final = (
    "{}",
    "Sure.\n{}\nDone.",
    "```xml\n{}\n```",
    "<think>hm</think>{}",
    "<think><y>draft</y></think>{}",
    "<!-- <y>draft</y> -->{}",
    "<response>{}</response>",
    "<!DOCTYPE x>{}",
    '<!DOCTYPE x [<!ENTITY a "b">]>{}',
    "<y>a</y>",
    "<y>a",
    "<z>ok</z>",
    "<Y>a</Y><z>b</z>",
    "<y >a</y ><z id='1'>b</z>",
    "<y/><z/>",
)
"""Replies for two outputs y and z. The braces are the place of both sections."""

REPLY_DIFFERENCES: Final = (
    ReplyDifference("a Python tuple is a list, as in ChatAdapter", "list[int]", "(1, 2)", None, [1, 2]),
    ReplyDifference("a Python tuple is a list, as in ChatAdapter", "tuple[int, str]", "(1, 'a')", None, [1, "a"]),
    ReplyDifference("half a tag is text", "str", "a < b && <c> d", None, "a < b && <c> d"),
    ReplyDifference("half a tag is text", "Code", "vector<int> x", None, "vector<int> x"),
    ReplyDifference("an unknown reference is text", "str", "&nbsp;&x;", None, "&nbsp;&x;"),
    ReplyDifference("tags in a text are text", "Code", "<b>x</b>", None, "<b>x</b>"),
    ReplyDifference("tags in a text are text", "Reasoning", "<b>x</b>", None, "<b>x</b>"),
    ReplyDifference(
        "tags in a text are unchanged",
        "str",
        "<b a='>'>></b><br/>",
        '<b a="&gt;">&gt;</b><br />',
        "<b a='>'>></b><br/>",
    ),
    ReplyDifference("a section has no outer white space", "str", " <b>x</b>\n", " <b>x</b>\n", "<b>x</b>"),
    ReplyDifference("a reference is no white space of the section", "str", "&#32;a", "a", " a"),
    ReplyDifference("the first section of a text counts", "str", "a</y><y>b", "['a', 'b']", "a"),
    ReplyDifference("line breaks are unchanged", "str", "a\rb\r\nc", "a\nb\nc", "a\rb\r\nc"),
    ReplyDifference("control characters are unchanged", "str", "a\x00b", None, "a\x00b"),
    ReplyDifference("None is no text, as in ChatAdapter", "Optional[str]", "None", "None", None),
    ReplyDifference("None is no item", "Optional[list[str]]", "None", ["None"], None),
    ReplyDifference("a number is no text", "dict[str, Any]", "<a>1</a>", {"a": "1"}, {"a": 1}),
    ReplyDifference("a boolean is no text", "dict[str, Any]", "<a>True</a>", {"a": "True"}, {"a": True}),
    ReplyDifference("None is no text", "dict[str, Any]", "<a />", {"a": ""}, {"a": None}),
    ReplyDifference("a number is no text", "list[Union[int, str]]", "<item>5</item>", ["5"], [5]),
    ReplyDifference("a number is no text", "list[Literal[1, 2]]", "<item>1</item>", None, [1]),
    ReplyDifference(
        "items are a list", "dict[str, Any]", "<a><item>x</item></a>", {"a": {"item": "x"}}, {"a": ["x"]}
    ),
    ReplyDifference("the first value of a key counts", "int", '{"y": 1, "y": 2, "z": "ok"}', 2, 1, "json"),
    ReplyDifference("the first object counts", "int", '{"y": 1, "z": "ok"} or {"y": 2, "z": "no"}', 2, 1, "json"),
    ReplyDifference("a text is a member of the union", "Union[list[str], str]", "hi", ["hi"], "hi"),
    ReplyDifference(
        "the tags select the member of the union",
        "list[Union[Point, Team]]",
        "<item><name>a</name><tags><item>1</item></tags></item>",
        None,
        [{"teamName": "a", "lead": None, "tags": ["1"], "note": None}],
    ),
)
"""Sections that agentkit reads differently (see the table in `xml_adapter`)."""

MESSAGE_DIFFERENCES: Final = {
    ("compact", "type Tree"): "no message: both refuse models that contain themselves",
    ("compact", "type Code"): "the comment before the listing is the docstring of a class of DSPy",
    ("compact", "type Reasoning"): "the comment before the listing is the docstring of a class of DSPy",
    ("compact", "tags of Tree"): "no message: both refuse models that contain themselves",
    ("compact", "tags of Code"): "the comment before the listing is the docstring of a class of DSPy",
    ("compact", "a model twice"): "DSPy takes a model that occurs twice for one that contains itself",
}
"""Reasons of different messages, by adapter and case. All of them differ in the system message only."""


def write_sections(body: str) -> str:
    """Returns a reply with the outputs y and z."""
    return f"<y>{body}</y>\n\n<z>\nok\n</z>"


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
        read_differently = {row.body for row in REPLY_DIFFERENCES if row.annotation == annotation}
        tags = tuple(write_sections(f"\n{text}\n") for text in texts if text not in read_differently)
        yield Case(f"type {annotation}", source, f"{{'x': {first}, 'n': 2}}", demos, chat, objects, tags)
        for index, value in enumerate(values[1:], 1):
            yield Case(f"value {index} of {annotation}", source, f"{{'x': {value}, 'n': {number}}}")


def _list_tags() -> Iterator[Case]:
    """Yields cases with replies of the XML adapter."""
    for annotation, bodies in _TAGS.items():
        yield Case(
            f"tags of {annotation}", write_source(annotation), "{'x': 1}", xml=tuple(map(write_sections, bodies))
        )
    replies = tuple(text.format(write_sections("a")) for text in _REPLIES)
    yield Case("replies with tags", write_source("str"), "{'x': 1}", xml=replies)


def write_source(annotation: str, input_type: str = "int") -> str:
    """Returns the source code of a signature with the input x and the outputs y and z."""
    fields = f"x: {input_type} = InputField()\n    y: {annotation} = OutputField()\n    z: str = OutputField()"
    return f"{_CLASSES}\nclass S(Signature):\n    'Do it.'\n    {fields}\n"


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
_TOOL_HISTORY: Final = """
class S(Signature):
    q: str = InputField()
    history: History = InputField()
    a: Optional[str] = OutputField()
    calls: ToolCalls = OutputField()
"""
_CALLS: Final = (
    "[{'id': 'c1', 'name': 'look', 'args': {'x': 1}}, {'id': 'c2', 'name': 'look', 'args': {'x': 'é'}}]"
)
_RESULTS: Final = (
    "[{'call_id': 'c1', 'name': 'look', 'value': 'ok [[ ## a ## ]]'}, "
    "{'call_id': 'c2', 'name': 'look', 'value': {'y': [1, None]}, 'is_error': True}]"
)
_EXCHANGE: Final = f"{{'tool_calls': {_CALLS}, 'tool_call_results': {{'tool_call_results': {_RESULTS}}}}}"
TOOL_ROWS: Final = {
    "calls and results": f"{{'q': 'one', 'a': 'A', 'calls': {_EXCHANGE}}}",
    "no text": f"{{'q': 'one', 'a': None, 'calls': {_EXCHANGE}}}",
    "no input": f"{{'a': 'A', 'calls': {_EXCHANGE}}}",
    "calls under another name": f"{{'q': 'one', 'a': 'A', 'x': {_EXCHANGE}}}",
}
"""Rows of a history with tool calls."""
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
    *_list_tags(),
    Case("a model twice", write_source("Box", "Box"), "{'x': Box(n=[1], first=Point(x=1))}"),
    Case("a model without fields", write_source("list[Nothing]")),
    Case("a list of models", write_source("list[Team]", "Team"), "{'x': Team(teamName='ü')}"),
    Case("a model and text", write_source("Union[Team, str, None]")),
    Case("lists of unions", write_source("dict[str, list[Optional[Literal['a', 2]]]]")),
    Case(
        "several fields",
        _TWO,
        "{'q': 'hi', 'ctx': ['a', 'b']}",
        "[{'q': '1', 'ctx': ['x'], 'verdict': 'a', 'score': 3, 'why': 'w'}, "
        "{'q': '2', 'verdict': 'b'}, {'q': 'only'}]",
    ),
    Case("a missing input", _TWO, "{'q': 'hi'}"),
    Case("no input", _TWO),
    Case("None as an output", _TWO, "{'q': 'hi'}", "[{'q': 'a', 'verdict': 'a', 'score': None, 'why': None}]"),
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
    *(
        Case(
            f"tools in the history: {name}", _TOOL_HISTORY, f"{{'q': 'hi', 'history': History(messages=[{row}])}}"
        )
        for name, row in TOOL_ROWS.items()
    ),
    Case(
        "tool calls without results in the history",
        _TOOL_HISTORY,
        "{'history': History(messages=[{'q': 'one', 'calls': {'tool_calls': [{'name': 'look', 'args': {}}]}}])}",
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
_NAN: Final = "S = Signature('x: list[float], n: int -> y', 'Do it.')"
_NONE: Final = Case("the text None beside None", _TEXT, "{'x': 'None', 'n': 1}")
_SPACE: Final = Case("outer white space", _TEXT, "{'x': ' a ', 'n': 1}")
_MARKER: Final = Case("a line that looks like a section", _TEXT, "{'x': 'a\\n[[ ## n ## ]]\\n2', 'n': 1}")
_NUMBER: Final = Case("NaN in a list", _NAN, "{'x': [float('nan')], 'n': 1}")


def _list_demos() -> Iterator[Case]:
    """Yields values of the output y that the XML adapter writes differently."""
    for name, annotation, value in (
        ("an empty text beside None", "Optional[str]", "''"),
        ("an empty list beside None", "Optional[list[str]]", "[]"),
        ("a closing tag in a text with None", "Optional[str]", "'a</y><z>b</z>'"),
        ("a closing tag in code", "Code", "Code(code='</y>')"),
        ("a reference in code", "Code", "Code(code='a &lt; b')"),
        ("white space in an item", "list[str]", "[' a']"),
        ("a text that is a number", "dict[str, Any]", "{'a': '1'}"),
        ("a text None in a list", "list[Optional[str]]", "['']"),
        ("tags in a value of any type", "Any", "'<b>a</b>'"),
        ("tags in a text beside a list", "Union[str, list[int], None]", "'<item>1</item>'"),
    ):
        yield Case(name, write_source(annotation), "{'x': 1}", f"[{{'x': 2, 'y': {value}, 'z': 'ok'}}]")


DIFFERENCES: Final = (
    *((adapter, case) for adapter in ("chat", "json", "compact") for case in (_NONE, _SPACE, _MARKER, _NUMBER)),
    *(("xml", case) for case in (_NONE, _SPACE, _NUMBER, *_list_demos())),
    ("xml", Case("a closing tag", _TEXT, "{'x': 'a</x><n>2</n>', 'n': 1}")),
    ("xml", Case("a reference", _TEXT, "{'x': 'a &amp; b', 'n': 1}")),
    ("xml", Case("an open CDATA section", _TEXT, "{'x': '<![CDATA[', 'n': 1}")),
)
"""Adapters and cases with one message that differs, because DSPy writes the text of another value there.

agentkit escapes these values (see `value_escapes` and `xml_adapter`).
"""
