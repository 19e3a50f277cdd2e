"""Messages, replies and escapes of the XML adapter."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from agentkit import ImageBlock, Msg, OptionError, ParseError, TextBlock, ToolUseBlock, URLSource, load_provider
from agentkit.prompts import (
    Citation,
    Code,
    Example,
    History,
    InputField,
    OutputField,
    Reasoning,
    Signature,
    XMLAdapter,
)
from agentkit.prompts.xml_adapter import escape_section
from agentkit.prompts.xml_elements import read_elements
from tests.cases import each_case
from tests.profiles import examples
from tests.prompts.test_adapters import Color, Everything, Judge, draw_outputs

XML: Final = XMLAdapter()
INPUTS: Final[dict[str, Any]] = {"passages": ["It rains."], "answer": "Rain."}
USER: Final = '<passages>\n["It rains."]\n</passages>\n\n<answer>\nRain.\n</answer>'
REMINDER: Final = "Respond with the corresponding output fields wrapped in XML tags `<verdict>`, then `<score>`."


# -- messages -------------------------------------------------------------------------------------------------


def test_each_field_has_a_section_between_tags() -> None:
    system, user = XML.format(Judge, INPUTS)
    structure = (
        "All interactions will be structured in the following way, with the appropriate values filled in.\n\n"
        "<passages>\n{passages}\n</passages>\n\n"
        "<answer>\n{answer}\n</answer>\n\n"
        "<verdict>\n{verdict}        # note: the value you produce must exactly match (no extra characters) one "
        "of: grounded; invented\n</verdict>\n\n"
        "<score>\n{score}        # note: the value you produce must be a single int value\n</score>\n"
        "In adhering to this structure"
    )
    assert structure in system.text
    assert user.text == f"{USER}\n\n{REMINDER}"


def test_an_example_has_the_sections_of_its_outputs() -> None:
    rows = [Example(INPUTS, {"verdict": "grounded", "score": 9}), Example({"answer": "a"}, {"score": 1})]
    texts = [msg.text for msg in XML.format(Judge, INPUTS, examples=rows)[1:-1]]
    assert texts == [
        "This is an example of the task, though some input or output fields are not supplied.\n\n"
        "<answer>\na\n</answer>",
        "<verdict>\nNot supplied for this particular example. \n</verdict>\n\n<score>\n1\n</score>",
        USER,
        "<verdict>\ngrounded\n</verdict>\n\n<score>\n9\n</score>",
    ]


def test_an_output_that_is_none_is_not_missing() -> None:
    assert XML.format_assistant_message_content(Judge, {"verdict": None}, "Missing.") == (
        "<verdict>\nNone\n</verdict>\n\n<score>\nMissing.\n</score>"
    )


def test_a_prompt_without_outputs_has_no_reminder() -> None:
    signature = Judge.delete("verdict").delete("score")
    assert XML.format(signature, INPUTS)[-1].text == USER


class Stop(BaseModel):
    city: str
    notes: dict[str, str] = {}


class Trip(Signature):
    """Plan."""

    request: str = InputField()
    stops: list[Stop] = OutputField()
    best: Stop | None = OutputField()
    price: float = OutputField()


def test_nested_outputs_have_nested_tags() -> None:
    system, user = XML.format(Trip, {"request": "r"})
    stops = "<stops><item><city>...</city><notes>...</notes></item></stops>"
    best = "<best><city>...</city><notes>...</notes></best>"
    assert f"<request>\n{{request}}\n</request>\n\n{stops}\n\n{best}\n\n<price>\n{{price}}" in system.text
    assert user.text.endswith(
        "wrapped in XML tags `<stops>`, then `<best>`, then `<price>`. "
        f"Use this nested XML structure: {stops} {best}"
    )


def test_media_stand_between_the_tags() -> None:
    class Look(Signature):
        """Look."""

        pictures: list[ImageBlock] = InputField()
        answer: str = OutputField()

    picture = ImageBlock(URLSource("https://example.com/a.png"))
    assert XML.format(Look, {"pictures": [picture]})[-1].content == (
        TextBlock('<pictures>\n["'),
        picture,
        TextBlock(
            '"]\n</pictures>\n\nRespond with the corresponding output fields wrapped in XML tags `<answer>`.'
        ),
    )


def test_a_history_has_the_sections_of_its_rows() -> None:
    class Chat(Signature):
        """Chat."""

        question: str = InputField()
        history: History = InputField()
        answer: str = OutputField()

    rows = History([{"question": "one", "answer": "<uno>"}])
    texts = [msg.text for msg in XML.format(Chat, {"question": "two", "history": rows})[1:]]
    reminder = "Respond with the corresponding output fields wrapped in XML tags `<answer>`."
    assert texts == [
        f"<question>\none\n</question>\n\n{reminder}",
        "<answer>\n&lt;uno>\n</answer>",
        f"<question>\ntwo\n</question>\n\n{reminder}",
    ]


def test_the_api_is_asked_for_no_format() -> None:
    assert XML.request_options(Judge, load_provider("openai").chat_formatter().capabilities()) == {}


# -- exact texts of values --------------------------------------------------------------------------------------


def write(annotation: Any, value: object) -> str:
    signature: Any = Signature("x -> y").with_updated_fields("y", type=annotation)
    text = XML.format_assistant_message_content(signature, {"y": value})
    return text.removeprefix("<y>").removesuffix("</y>")


def read(annotation: Any, body: str) -> Any:
    signature: Any = Signature("x -> y").with_updated_fields("y", type=annotation)
    return XML.parse(signature, f"<y>{body}</y>")["y"]


@each_case(
    ("annotation", "value", "expected"),
    [
        (str, "a", "\na\n"),
        (str, "R&D <b>a</b>", "\nR&amp;D &lt;b>a&lt;/b>\n"),
        (str, " a", "\n\\ a\n"),
        (str, "", "\n\n"),
        (str | None, "", "\n<![CDATA[]]>\n"),
        (str | None, None, "\nNone\n"),
        (str | None, "None", "\n\\None\n"),
        (str | None, "a < b", "\na < b\n"),
        (str | None, "a</y><z>b</z>", "\na&lt;/y>&lt;z>b&lt;/z>\n"),
        (str | None, "&lt;", "\n&amp;lt;\n"),
        (str | None, "<![CDATA[", "\n&lt;![CDATA[\n"),
        (str | None, "<!-- a -->", "\n&lt;!-- a -->\n"),
        (Code, "a < b && c", "\na < b && c\n"),
        (Code, "<p>R&amp;D</p>", "\n<p>R&amp;D</p>\n"),
        (Code, "</y>", "\n&lt;/y>\n"),
        (Any, "<b>a</b>", "\n&lt;b>a&lt;/b>\n"),
        (tuple[int, str], (1, "<b>a</b>"), '\n[1, "<b>a</b>"]\n'),
        (list[str], ["a", "b & <c>"], "<item>a</item><item>b &amp; &lt;c></item>"),
        (list[str], [" a"], '\n[" a"]\n'),
        (list[str] | None, None, "\nNone\n"),
        (list[str] | None, [], "\n[]\n"),
        (list[str | None], ["a", None], "<item>a</item><item />"),
        (list[str | None], [""], '\n[""]\n'),
        (list[list[int]], [[1], []], "<item><item>1</item></item><item />"),
        (dict[str, int], {"a": 1, "b c": 2, "d-e": 3}, '<a>1</a><entry key="b c">2</entry><d-e>3</d-e>'),
        (
            dict[str, int],
            {'"': 1, "\n<&>": 2},
            '<entry key=\'"\'>1</entry><entry key="&#10;&lt;&amp;&gt;">2</entry>',
        ),
        (dict[str, int], {"'\"": 1}, '<entry key="\'&quot;">1</entry>'),
        (dict[str, int], {}, ""),
        (dict[str, Any], {"a": 1, "b": None, "c": ["x"]}, "<a>1</a><b /><c><item>x</item></c>"),
        (dict[str, Any], {"a": "1"}, '\n{"a": "1"}\n'),
        (list[Color], [Color.RED], "<item>1</item>"),
        (Stop, {"city": "a"}, "<city>a</city>"),
        (list[Citation], [Citation("page", "a")], None),
    ],
)
def test_a_value_has_exactly_this_text(annotation: Any, value: object, expected: str | None) -> None:
    text = write(annotation, value)
    assert text == expected or (expected is None and text.startswith('\n[{"type": "page"'))


def test_an_empty_list_is_an_empty_tag() -> None:
    assert write(list[str], []) == "<y />"


@each_case(
    ("text", "expected"),
    [
        ("a & b < c > d", "a & b < c > d"),
        ("<b>R&amp;D</b>", "<b>R&amp;D</b>"),
        ("<!DOCTYPE html><p>a<!-- b --></p>", "<!DOCTYPE html><p>a<!-- b --></p>"),
        ("&nbsp;", "&nbsp;"),
        ("R&amp;D", "R&amp;amp;D"),
        ("</x>", "&lt;/x>"),
        ("<x>", "&lt;x>"),
        ("<x>a</x>", "<x>a</x>"),
        ("</x ><x\n>", "&lt;/x >&lt;x\n>"),
        ("<!--", "&lt;!--"),
        ("<y>a</z>", "<y>a</z>"),
        ('<a b="', '<a b="'),
        ("]]>-->", "]]>-->"),
    ],
)
def test_an_input_is_escaped_only_if_it_would_be_read_as_another_text(text: str, expected: str) -> None:
    assert escape_section("x", text) == expected


# -- replies ----------------------------------------------------------------------------------------------------


@each_case(
    ("annotation", "body", "expected"),
    [
        (str, "\n a &amp; b &lt; c \n", "a & b < c"),
        (str, "<b>x</b> &amp; y", "<b>x</b> &amp; y"),
        (str, "if a < b && <c> d", "if a < b && <c> d"),
        (str, "use <y> here", "use <y> here"),
        (str, "<y>a</y> b", "<y>a</y> b"),
        (str, "<![CDATA[a </y> &lt;]]>", "a </y> &lt;"),
        (str, "&#0;&#xD800;&#x110000;&unknown;&#13;", "&#0;&#xD800;&#x110000;&unknown;\r"),
        (str, "a\rb\x00c", "a\rb\x00c"),
        (str | None, " ", None),
        (str | None, "<![CDATA[]]>", ""),
        (int, "5", 5),
        (list[str], "new", ["new"]),
        (list[str], "a</y><y>b", ["a", "b"]),
        (list[str], '["a", "b"]', ["a", "b"]),
        (list[str], "", []),
        (list[str] | None, "", None),
        (list[int], "(1, 2)", [1, 2]),
        (list[Stop], "<item><city>a</city></item>", [Stop(city="a")]),
        (Stop, "<city>a</city><notes><n>b</n></notes>", Stop(city="a", notes={"n": "b"})),
        (Stop, '{"city": "a"}', Stop(city="a")),
        (list[Literal[1, 2]], "<item>2</item>", [2]),
        (list[bool], "<item>True</item><item>no</item>", [True, False]),
        (dict[str, Any], "<a>x</a><b>2</b><c /><d><item>y</item></d>", {"a": "x", "b": 2, "c": None, "d": ["y"]}),
        (list[int] | Stop, "<city>a</city>", Stop(city="a")),
        (list[str] | str, "hi", "hi"),
        (Reasoning, "<b>x</b>", "<b>x</b>"),
    ],
)
def test_a_section_has_exactly_this_value(annotation: Any, body: str, expected: object) -> None:
    assert read(annotation, body) == expected


@each_case(
    ("text", "expected"),
    [
        ("So:\n```xml\n<verdict>grounded</verdict><score>1</score>\n```", ("grounded", 1)),
        ("<think><score>3</score></think><score>1</score> <verdict>invented</verdict>", ("invented", 1)),
        ("<!-- <score>3</score> --><score>1</score><verdict>invented</verdict>", ("invented", 1)),
        ("a < b & <c> <verdict >grounded</verdict\n><score id='1'>1</score></d>", ("grounded", 1)),
        ("<?xml version='1.0'?><verdict>grounded</verdict><score>1</score>", ("grounded", 1)),
    ],
)
def test_the_text_outside_the_sections_is_ignored(text: str, expected: tuple[object, ...]) -> None:
    assert tuple(XML.parse(Judge, text).values()) == expected


LAUGHS: Final = (
    '<!DOCTYPE a [<!ENTITY b0 "ha">'
    + "".join(f'<!ENTITY b{index} "{f"&b{index - 1};" * 10}">' for index in range(1, 12))
    + "]><verdict>&b11;</verdict><score>1</score>"
)
FILE: Final = '<!DOCTYPE a [<!ENTITY b SYSTEM "file:///etc/passwd">]><verdict>&b;</verdict><score>1</score>'


@each_case(
    ("text", "failure", "place", "partial"),
    [
        ("", "no_structure", "verdict", {}),
        ("grounded", "no_structure", "verdict", {}),
        ("<verdict>grounded</verdict><score>1", "no_structure", "score", {"verdict": "grounded"}),
        ("<reply><verdict>grounded</verdict></reply>", "no_structure", "verdict", {}),
        ("<verdict>grounded</verdict><score>11</score>", "wrong_value", "score", {"verdict": "grounded"}),
        ("<verdict>grounded</verdict><score><a>1</a></score>", "wrong_value", "score", {"verdict": "grounded"}),
        (LAUGHS, "no_structure", "reply", {}),
        (FILE, "no_structure", "reply", {}),
    ],
)
def test_a_reply_that_lacks_an_output_is_an_error(
    text: str, failure: str, place: str, partial: Mapping[str, Any]
) -> None:
    with pytest.raises(ParseError) as caught:
        XML.parse(Judge, text)
    error = caught.value
    assert (error.failure, error.place, error.partial) == (failure, place, partial)


def test_the_place_of_a_wrong_value_is_a_path() -> None:
    text = "<stops><item><city>a</city></item><item><notes /></item></stops><price>1</price>"
    with pytest.raises(ParseError) as caught:
        XML.parse(Trip, text)
    assert caught.value.place == "stops[1].city"


class Hostile(Signature):
    """Any reply."""

    question: str = InputField()
    text: str = OutputField()
    anything: Any = OutputField()


@pytest.mark.slow
@pytest.mark.parametrize(
    "piece",
    [
        *("<a>", "<text>", "<text></text>", "<text><text></text>", "<a><a></a>", "<a><b></a>", "<![CDATA["),
        *("<!--", "&amp;", "<a ", '<a b="', "<", "a", "<entry key="),
    ],
)
@pytest.mark.parametrize("suffix", ["", "</anything>"])
def test_a_long_hostile_reply_is_refused(piece: str, suffix: str) -> None:
    prefix = f"<{suffix[2:]}" if suffix else ""
    text = f"{prefix}{piece * (150_000 // len(piece))}{suffix}"
    with pytest.raises(ParseError):  # a quadratic reader needs many minutes
        XML.parse(Hostile, text)


def test_tags_that_are_nested_too_deep_are_text() -> None:
    depth = 50_000
    value = read(Any, "<a>" * depth + "</a>" * depth)
    for _ in range(90):
        value = value["a"]
    assert len(str(value)) > depth


def test_a_type_without_a_schema_is_refused_with_the_name_of_the_field() -> None:
    class Handle:
        """A class that pydantic does not know."""

    signature: Any = Signature("x -> y").with_updated_fields("y", type=list[Handle])
    with pytest.raises(OptionError, match=r"^y: "):
        XML.format(signature, {"x": "a"})


# -- tools ------------------------------------------------------------------------------------------------------


class Agent(Signature):
    """Answer, or call a tool."""

    question: str = InputField()
    calls: list[ToolUseBlock] = OutputField()


@pytest.mark.parametrize(
    "body",
    [
        '{"tool_calls": [{"name": "add", "args": {"a": 1}}]}',
        "<tool_calls><item><name>add</name><args><a>1</a></args></item></tool_calls>",
    ],
)
def test_tool_calls_are_json_or_tags(body: str) -> None:
    (call,) = XML.parse(Agent, f"<calls>{body}</calls>")["calls"]
    assert (call.name, call.input) == ("add", {"a": 1})


def test_tool_calls_are_written_as_json() -> None:
    text = XML.format_assistant_message_content(Agent, {"calls": [ToolUseBlock("c", "add", {"a": "</calls>"})]})
    assert text == ('<calls>\n{"tool_calls": [{"name": "add", "args": {"a": "&lt;/calls>"}}]}\n</calls>')
    assert XML.parse(Agent, text)["calls"][0].input == {"a": "</calls>"}


def test_a_reply_is_a_message_or_a_text() -> None:
    text = "<verdict>grounded</verdict><score>1</score>"
    assert XML.parse(Judge, Msg("assistant", text, "assistant")) == XML.parse(Judge, text)


# -- properties -------------------------------------------------------------------------------------------------


@dataclass
class Size:
    width: float
    label: str | None = None


class Node(BaseModel):
    item: str = ""
    y: list[Node] = []
    extra: dict[str, Any] = {}


class Others(Signature):
    """More kinds of types."""

    question: str = InputField()
    code: Code = OutputField()
    reasoning: Reasoning = OutputField()
    anything: Any = OutputField()
    listed: list[str] | None = OutputField()
    pair: tuple[int, str] = OutputField()
    mixed: list[int | str | None] = OutputField()
    union: list[str] | str = OutputField()
    several: str | list[str] | None = OutputField()
    flags: dict[str, bool | None] = OutputField()
    sizes: list[Size] = OutputField()
    node: Node | None = OutputField()
    choice: Literal["", "<a>"] | None = OutputField()


_pieces: Final = st.sampled_from(
    [
        *(
            "<text>",
            "</text>",
            "</text><number>7</number>",
            "<number>",
            "</code>",
            "</question>",
            "<first>",
            "</first>",
        ),
        *(
            "</second>",
            "<second>",
            "<item>a</item>",
            "<item />",
            "<b>",
            "</b>",
            '<a b="',
            "<entry key='",
            "'>",
            '">',
        ),
        *(
            "<![CDATA[",
            "]]>",
            "<!--",
            "-->",
            "<!DOCTYPE x>",
            "<!ENTITY",
            "<?xml ?>",
            "&",
            "&lt;",
            "&amp;",
            "&#13;",
        ),
        *("&#x20;", "&nbsp;", "<", ">", "<<", " ", "\n", "\r", "\r\n", "\x00", "\x1b", "\x85", "\u2028", "None"),
        *("null", "5", "1.0", "True", "[", "{", '["a"]', "\\", "[[ ## text ## ]]", "```", "é", "\U0001f600"),
    ]
)
_texts: Final = st.lists(_pieces, max_size=5).map("".join) | st.text()
_json: Final = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | _texts,
    lambda items: st.lists(items, max_size=2) | st.dictionaries(_texts, items, max_size=2),
    max_leaves=4,
)
_nodes: Final = st.recursive(
    st.builds(Node, item=_texts),
    lambda nodes: st.builds(
        Node, item=_texts, y=st.lists(nodes, max_size=2), extra=st.dictionaries(_texts, _json, max_size=2)
    ),
    max_leaves=3,
)
_everything: Final = draw_outputs(_texts)
_others: Final = st.fixed_dictionaries(
    {
        "code": _texts.map(Code),
        "reasoning": _texts.map(Reasoning),
        "anything": _json,
        "listed": st.none() | st.lists(_texts, max_size=2),
        "pair": st.tuples(st.integers(), _texts),
        "mixed": st.lists(st.integers() | _texts | st.none(), max_size=3),
        "union": st.lists(_texts, max_size=2) | _texts,
        "several": st.none() | st.lists(_texts, max_size=2) | _texts,
        "flags": st.dictionaries(_texts, st.none() | st.booleans(), max_size=2),
        "sizes": st.lists(st.builds(Size, width=st.floats(allow_nan=False), label=st.none() | _texts), max_size=2),
        "node": st.none() | _nodes,
        "choice": st.sampled_from([None, "", "<a>"]),
    }
)


@examples(300)
@given(_everything)
def test_the_values_of_a_reply_are_those_that_were_written(values: dict[str, Any]) -> None:
    assert XML.parse(Everything, XML.format_assistant_message_content(Everything, values)) == values


@examples(300)
@given(_others)
def test_values_of_other_types_are_those_that_were_written(values: dict[str, Any]) -> None:
    outputs = XML.parse(Others, XML.format_assistant_message_content(Others, values))
    assert {name: repr(value) for name, value in outputs.items()} == {
        name: repr(value) for name, value in values.items()
    }


@examples(300)
@given(st.dictionaries(st.sampled_from(["first", "second", "third"]), _texts))
def test_no_input_can_forge_the_section_of_another_field(inputs: dict[str, str]) -> None:
    signature: Any = Signature("first, second, third -> answer")
    mirrored: Any = Signature("question -> first, second, third")
    text = XML.format_user_message_content(signature, inputs)
    try:
        outputs = XML.parse(mirrored, text)
    except ParseError as error:
        outputs = error.partial
    assert {name: outputs[name] for name in inputs} == inputs


@examples(200)
@given(st.lists(_texts, max_size=3), _json, _texts)
def test_no_input_of_another_type_can_forge_a_section(listed: list[str], anything: Any, text: str) -> None:
    fields = "first: list[str], second: Any, third"
    signature: Any = Signature(f"{fields} -> answer")
    mirrored: Any = Signature(f"question -> {fields}")
    inputs = {"first": listed, "second": anything, "third": text}
    message = XML.format_user_message_content(signature, inputs)
    assert XML.parse(mirrored, message) == inputs


@examples(300)
@given(st.text("<>/!&;ab[]-\"'= ") | _texts)
def test_any_text_can_be_read(text: str) -> None:
    for element in read_elements(text, ["a"]):
        start, end = element.span
        assert element.source in text[start:end]
        assert len(element.text) <= len(element.source)
