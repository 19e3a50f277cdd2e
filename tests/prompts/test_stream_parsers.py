"""Parsers of streamed replies: events for any pieces, values and errors of `Adapter.parse`, and linear work."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import Enum
from itertools import pairwise
from typing import Any, Final, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentkit import Msg, OptionError, ParseError, TextBlock, ThinkingBlock, Tool, ToolUseBlock
from agentkit.prompts import (
    Adapter,
    ChatAdapter,
    Code,
    FieldDelta,
    FieldEnd,
    FieldStart,
    InputField,
    JSONAdapter,
    OutputField,
    Reasoning,
    Signature,
    XMLAdapter,
)
from agentkit.prompts.chat_adapter import read_sections
from agentkit.prompts.field_stream_parser import FieldStreamParser
from agentkit.prompts.value_escapes import unescape_markers
from tests.cases import each_case
from tests.profiles import examples

CHAT: Final = ChatAdapter()
JSON: Final = JSONAdapter()
XML: Final = XMLAdapter()


class Color(Enum):
    RED = "red"
    BLUE = "blue"


class Review(Signature):
    """Review the text."""

    text: str = InputField()
    why: str = OutputField()
    score: int = OutputField(ge=0, le=10)
    tags: list[str] = OutputField()
    color: Color | None = OutputField()


class Pair(Signature):
    """Write two texts."""

    topic: str = InputField()
    a: str = OutputField()
    b: str = OutputField()


class Search(Signature):
    """Search."""

    question: str = InputField()
    tools: list[Tool] = InputField()
    calls: list[ToolUseBlock] = OutputField()
    answer: str = OutputField()


def read(adapter: Adapter, signature: Any, pieces: Iterable[str]) -> tuple[list[Any], Any]:
    """Returns the events of all pieces, and the outputs or the text of the error."""
    parser = adapter.stream_parser(signature)
    events: list[Any] = [event for piece in pieces for event in parser.feed(piece)]
    try:
        result: Any = parser.finish()
    except ParseError as error:
        result = str(error), error.failure, error.place, error.partial
    return events + parser.drain(), result


def parse(adapter: Adapter, signature: Any, text: str) -> Any:
    try:
        return adapter.parse(signature, text)
    except ParseError as error:
        return str(error), error.failure, error.place, error.partial


def texts(events: Iterable[Any]) -> dict[str, str]:
    """Returns the joined deltas of each field that has a start."""
    found: dict[str, str] = {}
    for event in events:
        if isinstance(event, FieldStart):
            found[event.name] = ""
        elif isinstance(event, FieldDelta):
            assert event.text
            found[event.name] += event.text
    return found


def ends(events: Iterable[Any]) -> dict[str, Any]:
    return {event.name: event.value for event in events if isinstance(event, FieldEnd)}


def short(events: Iterable[Any]) -> list[Any]:
    """Returns the events as short values: `+name`, the text of a delta, and a pair of `-name` and the value."""
    return [
        f"+{event.name}"
        if isinstance(event, FieldStart)
        else event.text
        if isinstance(event, FieldDelta)
        else (f"-{event.name}", event.value)
        for event in events
    ]


def check_order(events: Iterable[Any]) -> None:
    """Checks that each field starts once and ends at most once, and that deltas belong to the open field."""
    started: list[str] = []
    ended: set[str] = set()
    for event in events:
        if isinstance(event, FieldStart):
            assert event.name not in started
            started.append(event.name)
        else:
            assert event.name in started
            assert event.name not in ended
            if isinstance(event, FieldEnd):
                ended.add(event.name)


def cut(text: str, points: Iterable[int]) -> list[str]:
    marks = [0, *sorted({point % (len(text) + 1) for point in points}), len(text)]
    return [text[start:end] for start, end in pairwise(marks)]


POINTS: Final = st.lists(st.integers(0, 200), max_size=12)

# -- chat -----------------------------------------------------------------------------------------------------


def test_a_delta_follows_each_piece_of_a_section() -> None:
    parser = CHAT.stream_parser(Pair)
    steps: list[tuple[str, list[Any]]] = [
        ("Let me think.\n", []),
        ("[[ ## a", []),
        (" ## ]]", ["+a"]),
        ("\n\n ", []),
        ("Two [[ bo", ["Two [[ bo"]),
        ("ats ]]  ", ["ats ]]"]),
        ("\n", []),
        ("and more\n", ["  \nand more"]),
        ("[[ ## ", []),
        ("not a marker", ["\n[[ ## not a marker"]),
        ("\n\n[[ ## b ## ]] x", [("-a", "Two [[ boats ]]  \nand more\n[[ ## not a marker"), "+b", "x"]),
        ("\n\n[[ ## completed ## ]]\n", [("-b", "x")]),
        ("ignored", []),
    ]
    assert [(piece, short(parser.feed(piece))) for piece, _ in steps] == steps
    assert parser.finish() == {"a": "Two [[ boats ]]  \nand more\n[[ ## not a marker", "b": "x"}
    assert parser.drain() == []


@each_case(
    ("text", "expected"),
    [
        ("[[ ## a ## ]]\nx\n[[ ## b ## ]]\ny", {"a": "x", "b": "y"}),
        ("[[ ## a ## ]] x [[ ## b ## ]]\n  [[ ## b ## ]]y", {"a": "x [[ ## b ## ]]", "b": "y"}),
        ("[[ ## a ## ]][[ ## b ## ]]\n[[ ## b ## ]]", {"a": "[[ ## b ## ]]", "b": ""}),
        ("[[ ## a ## ]]\\[[ ## b ## ]]\n[[ ## b ## ]]\ny", {"a": "[[ ## b ## ]]", "b": "y"}),
        ("[[ ## a ## ]]\n\\\\[[ ## b ## ]]\n[[ ## b ## ]]\ny", {"a": "\\[[ ## b ## ]]", "b": "y"}),
        ("[[ ## a ## ]]\nx\n \t\\[[ ## b ## ]]\n[[ ## b ## ]]\n", {"a": "x\n \t[[ ## b ## ]]", "b": ""}),
        ("[[ ## a ## ]]\n\\[[ ## b ##\n[[ ## b ## ]]\n\\", {"a": "\\[[ ## b ##", "b": "\\"}),
        ("[[ ## a ## ]]\n1\n[[ ## x ## ]]\n2\n[[ ## a ## ]]\n3\n[[ ## b ## ]]\n4", {"a": "1", "b": "4"}),
        ("[[ ## a ## ]]\r1\r\n2\u20283\u2028[[ ## b ## ]]\x854\x0b", {"a": "1\r\n2\u20283", "b": "4"}),
        ("[[ ## a ## ]]\n[[ ##  ## ]]\n[[ ## b ## ]]\n[[ ## completed ##", {"a": "[[ ##  ## ]]", "b": "[[ ## completed ##"}),  # noqa: E501
        ("[[ ## b ## ]]\ny\n[[ ## a ## ]]\nx", {"b": "y", "a": "x"}),
    ],
)  # fmt: skip
def test_sections_have_the_same_text_in_one_piece_and_in_characters(text: str, expected: dict[str, str]) -> None:
    assert CHAT.parse(Pair, text) == expected
    for pieces in ([text], [*text]):
        events, outputs = read(CHAT, Pair, pieces)
        assert texts(events) == expected
        assert ends(events) == outputs == expected


@pytest.mark.slow
def test_every_line_break_of_splitlines_can_precede_a_marker() -> None:
    spaces = [number for number in range(0x3100) if len(f"x{chr(number)}y".split()) == 2]
    breaks = [number for number in range(sys.maxunicode) if len(f"x{chr(number)}y".splitlines()) == 2]
    assert len(breaks) >= 10
    for character in map(chr, {*spaces, *breaks, *range(0x300), 0x200B, 0xFEFF, 0x1F600}):
        text = f"[[ ## a ## ]]\nx{character}[[ ## b ## ]]y"
        events, outputs = read(CHAT, Pair, text)
        assert outputs == parse(CHAT, Pair, text)
        assert ("b" in texts(events)) == (len(f"x{character}y".splitlines()) == 2)


def test_values_are_parsed_and_validated() -> None:
    text = '[[ ## why ## ]]\nok\n[[ ## score ## ]]\n7\n[[ ## tags ## ]]\n["x",\n"y"]\n[[ ## color ## ]]\nred'
    events, outputs = read(CHAT, Review, [text])
    assert short(events) == [
        "+why", "ok", ("-why", "ok"), "+score", "7", ("-score", 7), "+tags", '["x",\n"y"]', ("-tags", ["x", "y"]),
        "+color", "red", ("-color", Color.RED),
    ]  # fmt: skip
    assert outputs == {"why": "ok", "score": 7, "tags": ["x", "y"], "color": Color.RED}


def test_a_wrong_value_has_no_end_and_is_raised_by_finish() -> None:
    text = "[[ ## why ## ]]\nok\n[[ ## score ## ]]\n11\n[[ ## tags ## ]]\n[]\n[[ ## color ## ]]\nred"
    events, error = read(CHAT, Review, text)
    assert texts(events) == {"why": "ok", "score": "11", "tags": "[]", "color": "red"}
    assert ends(events) == {"why": "ok", "tags": [], "color": Color.RED}
    assert error == parse(CHAT, Review, text)
    assert error[1:] == ("wrong_value", "score", {"why": "ok"})


def test_a_default_has_events_at_the_end() -> None:
    signature = Signature("q -> a: str").append("b", OutputField(default="none"), str)
    events, outputs = read(CHAT, signature, ["[[ ## a ## ]]\nx"])
    assert short(events) == ["+a", "x", ("-a", "x"), "+b", "none", ("-b", "none")]
    assert outputs == {"a": "x", "b": "none"}


def test_thinking_and_tool_calls_have_events_at_the_end() -> None:
    call = ToolUseBlock("c", "look", {"q": 1})
    parser = ChatAdapter(native_tools=True).stream_parser(Search)
    assert parser.feed("Hm.") == []
    outputs = parser.finish(ChatAdapter(native_tools=True).parse(Search, Msg("F", [call], "assistant")))
    assert outputs == {"calls": [call], "answer": None}
    calls = '{"tool_calls": [{"name": "look", "args": {"q": 1}}]}'
    assert short(parser.drain()) == ["+calls", calls, ("-calls", [call]), "+answer", ("-answer", None)]

    signature = Signature("q -> why: Reasoning, a: str", types={"Reasoning": Reasoning})
    parser = CHAT.stream_parser(signature)
    events: list[Any] = parser.feed("[[ ## a ## ]]\nx")
    reply = Msg("F", [ThinkingBlock("Hm."), TextBlock("[[ ## a ## ]]\nx")], "assistant")
    parser.finish(CHAT.parse(signature, reply))
    assert short([*events, *parser.drain()]) == ["+a", "x", ("-a", "x"), "+why", "Hm.", ("-why", "Hm.")]


_CHAT_PARTS: Final = (
    "[[", "[[ ## ", "[[ ## na", "[[ ## a ## ]]", "[[ ## b ## ]]", "[[ ## c ## ]]", "[[ ## completed ## ]]",
    "\\[[ ## a ## ]]", "\\\\[[ ## b ## ]]", " ## ]]", "\\", "\n", "\r", "\r\n", "\u2028", "\x1c", "\x1f", "\x85",
    " ", "\t", "x", "é", "😀", "_", "None", '"', "{",
)  # fmt: skip
_CHAT_TEXT: Final = st.lists(st.sampled_from(_CHAT_PARTS), max_size=14).map("".join)
_SECTIONS: Final = st.tuples(_CHAT_TEXT, _CHAT_TEXT, _CHAT_TEXT).map(
    lambda parts: f"{parts[0]}\n[[ ## a ## ]]{parts[1]}\n[[ ## b ## ]]{parts[2]}"
)


@examples(300)
@given(_CHAT_TEXT | _SECTIONS, POINTS)
def test_the_deltas_of_a_section_are_the_text_of_its_value_for_any_pieces(text: str, points: list[int]) -> None:
    expected: dict[str, str] = {}
    for name, section in read_sections(text):
        if name in ("a", "b"):
            expected.setdefault(name, unescape_markers(section))
    for pieces in (cut(text, points), [text], [*text]):
        events, outputs = read(CHAT, Pair, pieces)
        check_order(events)
        assert texts(events) == expected
        assert outputs == parse(CHAT, Pair, text)
        if isinstance(outputs, dict):
            assert ends(events) == outputs


@examples(100)
@given(_CHAT_TEXT, _CHAT_TEXT, POINTS)
def test_written_values_are_streamed_back(first: str, second: str, points: list[int]) -> None:
    values = {"a": first, "b": second}
    for adapter in (CHAT, JSON, XML):
        reply = adapter.format_assistant_message_content(Pair, values)
        events, outputs = read(adapter, Pair, cut(reply, points))
        assert ends(events) == outputs == values


# -- JSON -----------------------------------------------------------------------------------------------------


def test_strings_are_decoded_and_other_values_are_json() -> None:
    parser = JSON.stream_parser(Review)
    steps: list[tuple[str, list[Any]]] = [
        ('{"wh', []),
        ('y": "a\\', ["+why", "a"]),
        ("nb\\u00e", ["\nb"]),
        ("9\\ud83d", ["é"]),
        ("\\ude00 ", ["😀"]),
        ('", ', []),
        ('"score"', [" ", ("-why", "a\nbé😀 ")]),
        (": ", []),
        ("1", ["+score", "1"]),
        ("0", ["0"]),
        (', "tags": ["x}', [("-score", 10), "+tags", '["x}']),
        ('\\"", {"y"', ['\\"", {"y"']),
        (": 1}]", [": 1}]"]),
        (', "color"', []),
        (': "blue" }', ["+color", "blue", ("-color", Color.BLUE)]),
        ("\n", []),
    ]
    assert [(piece, short(parser.feed(piece))) for piece, _ in steps] == steps
    with pytest.raises(ParseError, match=r"^tags\[1\]: "):
        parser.finish()
    assert parser.drain() == []


GOOD_JSON: Final = '{"why": "a \\"b\\"", "score": 9, "tags": ["x", "[y]"], "color": null}'
GOOD: Final = {"why": 'a "b"', "score": 9, "tags": ["x", "[y]"], "color": None}
GOOD_TEXTS: Final = {"why": 'a "b"', "score": "9", "tags": '["x", "[y]"]', "color": "null"}


@each_case(
    "text",
    [
        GOOD_JSON,
        f"  {GOOD_JSON}  ",
        f"```json\n{GOOD_JSON}\n```",
        f"Here you are: {GOOD_JSON} Done.",
        GOOD_JSON.replace(": ", ":").replace("}", "\n}").replace(', "s', ',\n\t"s'),
        GOOD_JSON.replace('"why"', '"other": {"why": "}"}, "w\\u0068y"'),
    ],
)
def test_an_object_has_the_same_events_in_one_piece_and_in_characters(text: str) -> None:
    for pieces in ([text], [*text]):
        events, outputs = read(JSON, Review, pieces)
        assert texts(events) == GOOD_TEXTS
        assert ends(events) == outputs == GOOD
    parser = JSON.stream_parser(Review)
    assert ends(event for piece in text for event in parser.feed(piece)) == GOOD  # all ends come before `finish`


@each_case(
    ("text", "early", "late"),
    [
        ('{"a": "x", "b": "he', ["+a", "x", ("-a", "x"), "+b", "he"], [("-b", "he")]),
        ('{"a": "x", "b": "he  ', ["+a", "x", ("-a", "x"), "+b", "he"], [("-b", "he")]),
        ('{"a": "say "hi" now", "b": "y"}', ["+a", "say"], [' "hi" now', ("-a", 'say "hi" now'), "+b", "y", ("-b", "y")]),  # noqa: E501
        ("{'a': 'x', 'b': 'y'}", [], ["+a", "x", ("-a", "x"), "+b", "y", ("-b", "y")]),
        ('{"a": "x",\n // why\n "b": "y"}', ["+a", "x"], [("-a", "x"), "+b", "y", ("-b", "y")]),
        ('{"a": "x\ny", "b": "z"}', ["+a", "x\ny", "+b", "z"], [("-a", "x\ny"), ("-b", "z")]),
        ('{"a": "\\ud800x", "b": "z"}', ["+a"], ["\ufffdx", ("-a", "\ufffdx"), "+b", "z", ("-b", "z")]),
        ('[{"a": "x", "b": "y"}]', ["+a", "x", "+b", "y"], [("-a", "x"), ("-b", "y")]),
        ('{{"a": "x", "b": "y"}}', ["+a", "x", "+b", "y"], [("-a", "x"), ("-b", "y")]),
        ('{"a": "x", "b": "y", }', ["+a", "x", ("-a", "x"), "+b", "y"], [("-b", "y")]),
        ('{"a": 1, "b": True}', ["+a", "1", ("-a", "1"), "+b", "True"], [("-b", "True")]),
        ('{"a": [1 2], "b": "y"}', ["+a", "[1 2]", "+b", "y"], [("-a", "[1, 2]"), ("-b", "y")]),
        ('{"a": "x", "a": "z", "b": "y"}', ["+a", "x", ("-a", "x"), "+b", "y", ("-b", "y")], []),
        ('{"a": "x", "\\u0061": "z", "b": "y"', ["+a", "x", ("-a", "x"), "+b", "y"], [("-b", "y")]),
    ],
)  # fmt: skip
def test_damaged_json_has_its_remaining_events_at_the_end(text: str, early: list[Any], late: list[Any]) -> None:
    parser = JSON.stream_parser(Pair)
    assert (short(parser.feed(text)), parser.finish()) == (early, JSON.parse(Pair, text))
    assert short(parser.drain()) == late


def test_repaired_values_have_one_delta_each() -> None:
    text = "{'why': 'é', 'score': 1, 'tags': ['é'], 'color': 'red'}"
    events, outputs = read(JSON, Review, text)
    assert short(events) == [
        "+why", "é", ("-why", "é"), "+score", "1", ("-score", 1), "+tags", '["é"]', ("-tags", ["é"]),
        "+color", "red", ("-color", Color.RED),
    ]  # fmt: skip
    assert outputs == ends(events)
    call = {"name": "look", "args": {"q": "é"}}
    events, outputs = read(JSONAdapter(native_tools=False), Search, f"{{'calls': [{call}], 'answer': 'x'}}")
    assert texts(events) == {"calls": json.dumps({"tool_calls": [call]}, ensure_ascii=False), "answer": "x"}
    assert ends(events) == outputs


def test_a_reply_without_an_object_has_no_events() -> None:
    for text in ("", "No.", "{}", "{x} {", "[1, 2]"):
        assert read(JSON, Pair, text) == ([], parse(JSON, Pair, text))
        assert parse(JSON, Pair, text)[1] == "no_structure"


def test_a_wrong_value_in_json_has_no_end() -> None:
    text = GOOD_JSON.replace("9", "11")
    events, error = read(JSON, Review, text)
    assert (texts(events)["score"], [*ends(events)]) == ("11", ["why", "tags", "color"])
    assert error == parse(JSON, Review, text)


_JSON_TEXT: Final = st.text('ab"\\{}[],:` \n\t\x00\u2028é😀', max_size=12)
_JSON_VALUE: Final = st.recursive(
    st.none() | st.booleans() | st.integers(-99, 99) | st.floats(allow_nan=False) | _JSON_TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_JSON_TEXT, inner, max_size=3),
    max_leaves=6,
)


class Open(Signature):
    """Write any values."""

    topic: str = InputField()
    a: Any = OutputField()
    b: Any = OutputField()


@examples(400)
@given(
    st.dictionaries(st.sampled_from(["a", "b", "c"]) | _JSON_TEXT, _JSON_VALUE),
    st.booleans(),
    st.sampled_from([None, 2]),
    st.sampled_from(["{}", "```json\n{}\n```", "Sure: {} Done."]),
    POINTS,
)
def test_the_deltas_of_a_key_are_the_text_of_its_value_for_any_pieces(
    values: dict[str, Any], ascii_only: bool, indent: int | None, frame: str, points: list[int]
) -> None:
    values = {"a": "", "b": 0, **values}
    text = frame.replace("{}", json.dumps(values, ensure_ascii=ascii_only, indent=indent))
    expected = {
        name: value if isinstance(value, str) else json.dumps(value, ensure_ascii=ascii_only, indent=indent)
        for name, value in values.items()
        if name in ("a", "b")
    }
    if indent:  # inner lines of a value are indented further than in a dump of the value alone
        expected = {
            name: part if isinstance(values[name], str) else part.replace("\n", "\n  ")
            for name, part in expected.items()
        }
    parsed = JSON.parse(Open, text)
    for pieces in (cut(text, points), [text], [*text]):
        parser = JSON.stream_parser(Open)
        events: list[Any] = [event for piece in pieces for event in parser.feed(piece)]
        check_order(events)
        assert texts(events) == expected
        assert ends(events) == parser.finish() == parsed
        assert parser.drain() == []


@examples(200)
@given(
    st.lists(st.tuples(st.sampled_from(["a", "b", "c"]), _JSON_VALUE), max_size=5),
    st.lists(st.tuples(st.sampled_from(["a", "b"]), _JSON_VALUE), max_size=2),
    st.booleans(),
    POINTS,
)
def test_the_first_value_of_a_key_counts(
    pairs: list[tuple[str, Any]], more: list[tuple[str, Any]], ascii_only: bool, points: list[int]
) -> None:
    first = [("a", "x"), *pairs, ("b", 1)]
    objects = [
        ", ".join(f'"{name}": {json.dumps(value, ensure_ascii=ascii_only)}' for name, value in part)
        for part in (first, more)
    ]
    text = f"{{{objects[0]}}} or {{{objects[1]}}}" if more else f"{{{objects[0]}}}"
    expected = {name: value for name, value in reversed(first) if name != "c"}
    assert JSON.parse(Open, text) == expected
    for pieces in (cut(text, points), [text], [*text]):
        events, outputs = read(JSON, Open, pieces)
        assert ends(events) == outputs == expected
        assert texts(events)["a"] == "x"


@examples(400)
@given(_JSON_TEXT, _JSON_TEXT, st.integers(0, 60), st.sampled_from(['"', "\\", "}", "\n", " x", ""]), POINTS)
def test_damaged_json_has_the_result_of_parse_for_any_pieces(
    first: str, second: str, place: int, damage: str, points: list[int]
) -> None:
    text = json.dumps({"a": first, "b": second}, ensure_ascii=False)
    for damaged in (text[:place], f"{text[:place]}{damage}{text[place:]}"):
        whole, outputs = read(JSON, Pair, [damaged])
        assert outputs == parse(JSON, Pair, damaged)
        for pieces in (cut(damaged, points), [*damaged]):
            events, again = read(JSON, Pair, pieces)
            check_order(events)
            assert (texts(events), ends(events), again) == (texts(whole), ends(whole), outputs)
        if isinstance(outputs, dict):
            assert ends(whole).keys() == outputs.keys()


# -- XML ------------------------------------------------------------------------------------------------------


def test_texts_between_tags_are_decoded_as_they_arrive() -> None:
    parser = XML.stream_parser(Review)
    steps: list[tuple[str, list[Any]]] = [
        ("<think>a < b", []),
        ("</think>So: <w", []),
        ("hy> R", ["+why", "R"]),
        ("&a", []),
        ("mp;D ", ["&D"]),
        ("< 2 &nope; <", [" < 2 &nope;"]),
        ("b>x</b>", [" <b>x</b>"]),
        (" </why", []),
        (">", [("-why", "R&D < 2 &nope; <b>x</b>")]),
        ("<score>9</score>", []),
        ("<tags><item>x</item></tags><color>red</color>", []),
    ]
    assert [(piece, short(parser.feed(piece))) for piece, _ in steps] == steps
    outputs = parser.finish()
    assert outputs == {"why": "R&D < 2 &nope; <b>x</b>", "score": 9, "tags": ["x"], "color": Color.RED}
    assert ends(parser.drain()) == {"score": 9, "tags": ["x"], "color": Color.RED}


@each_case(
    "text",
    [
        "<a>x<!-- <b>y</b> --></a><b>z</b>",
        "<a>x<![CDATA[</a>]]></a><b>z</b>",
        "<!-- <a>w</a> --><a>x</a><b>z</b>",
        "<!-- <a>w</a><b>z</b>",
        "<a>x <a>y</a> z</a><b>z</b>",
        "<a>x <a> y</a><b>z</b>",
        "<a>x <i>y</i> &amp; z</a><b>z</b>",
        "<a>x <i>y &amp; z</a><b>z</b>",
        "<a/><a>x</a><b>z</b>",
        '<entry key="a">x</entry><a>y</a><b>z</b>',
        "<c><a>w</a></c><a>x</a><b>z</b>",
        "<c><a>w</a><a>x</a><b>z</b>",
        "<c><c></c><a>w</a></c><a>x</a><b>z</b>",
        "</c><a>x</a></c><b>z</b>",
        "<a title='>'>x</a ><b>z</b>",
        "<a>&#32;x&#x20;</a><b>&#0;&#xD800;</b>",
        "<a>x</a><a>y</a><b>z</b>",
        "<a>x</b></a><b>z</b>",
        "<a></a><b> </b>",
    ],
)
def test_elements_have_the_same_text_in_one_piece_and_in_characters(text: str) -> None:
    for pieces in ([text], [*text]):
        events, outputs = read(XML, Pair, pieces)
        check_order(events)
        assert outputs == parse(XML, Pair, text)
        assert texts(events) == ends(events) == outputs


_XML_PARTS: Final = (
    "<a>", "</a>", "<b>", "</b>", "<a", ">", "<", "/", "</", "<c>", "</c>", "<c/>", "<a/>", "<!--", "-->",
    "<![CDATA[", "]]>", "<!", "&", "&amp;", "&lt", ";", "&#32;", "&#", "'", '"', "<entry key='a'>", "</entry>",
    "<i x='", "x", " ", "\n", "é", "\r",
)  # fmt: skip
_XML_TEXT: Final = st.lists(st.sampled_from(_XML_PARTS), max_size=10).map("".join)
_ELEMENTS: Final = st.tuples(_XML_TEXT, _XML_TEXT, _XML_TEXT, _XML_TEXT).map(
    lambda parts: f"{parts[0]}<a>{parts[1]}</a>{parts[2]}<b>{parts[3]}</b>"
)


@examples(1_000)
@given(_XML_TEXT | _ELEMENTS, POINTS)
def test_the_deltas_of_an_element_are_the_text_of_its_value_for_any_pieces(text: str, points: list[int]) -> None:
    expected = parse(XML, Pair, text)
    for pieces in (cut(text, points), [text], [*text]):
        events, outputs = read(XML, Pair, pieces)
        check_order(events)
        assert outputs == expected
        if isinstance(outputs, dict):
            assert ends(events) == outputs
            # With one of these texts, an element whose text has been sent may have no closing tag.
            assert any(part in text for part in ("<!--", "<![CDATA[", "<a/>")) or texts(events) == outputs


def test_code_and_escaped_texts_are_complete() -> None:
    signature = Signature("q -> page: Code, note: Optional[str]", types={"Code": Code["html"]})
    for text, expected in (
        (
            "<page>\n```html\n<p>Tom &amp; Jerry</p>\n```\n</page><note>x</note>",
            "```html\n<p>Tom &amp; Jerry</p>\n```",
        ),
        ("<page>a</page><note>\\ use <b c='&'>x</b> now</note>", "a"),
        ("<page>x <!-- c --> y</page><note>x</note>", "x  y"),
    ):
        for pieces in ([text], [*text]):
            events, outputs = read(XML, signature, pieces)
            assert texts(events)["page"] == expected
            assert ends(events) == outputs == parse(XML, signature, text)
    assert texts(read(XML, signature, ["<page>a</page><note>\\ use <b c='&'>x</b> now</note>"])[0])["note"] == (
        "\\ use <b c='&'>x</b> now"
    )


@pytest.mark.slow
@pytest.mark.parametrize("piece", ["<", "&", "if x < y: z\n", "<a ", "<x" + " " * 990])
def test_a_long_text_in_an_element_is_read(piece: str) -> None:
    text = f"<a>{piece * (200_000 // len(piece))}"
    for pieces in ([text], [text[start : start + 7] for start in range(0, len(text), 7)]):
        parser = XML.stream_parser(Pair)
        for part in pieces:  # a quadratic reader needs many minutes
            parser.feed(part)


def test_none_and_values_that_are_no_texts_have_events_at_the_end() -> None:
    signature = Signature("q -> a: Optional[str], n: int")
    parser = XML.stream_parser(signature)
    assert short(parser.feed("<a> </a><n>3</n>")) == ["+a"]
    assert parser.finish() == {"a": None, "n": 3}
    assert short(parser.drain()) == [("-a", None), "+n", "3", ("-n", 3)]


# -- all parsers ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class LineAdapter(ChatAdapter):
    """Adapter with a format of its own."""

    def parse_text(self, signature: Any, text: str) -> dict[str, Any]:
        return self.fill_outputs(signature, dict(line.split("=", 1) for line in text.split("\n")), text)


@dataclass(frozen=True)
class LineJSONAdapter(JSONAdapter):
    """Adapter with a format of its own."""

    def parse_text(self, signature: Any, text: str) -> dict[str, Any]:
        return LineAdapter().parse_text(signature, text)


@pytest.mark.parametrize("adapter", [LineAdapter(), LineJSONAdapter()])
def test_an_adapter_with_its_own_format_has_all_events_at_the_end(adapter: Adapter) -> None:
    parser = adapter.stream_parser(Pair)
    assert type(parser) is FieldStreamParser
    assert [parser.feed(piece) for piece in ("a=1\n[[ ## a ##", ' ]]=2\nb={"a": 1}')] == [[], []]
    assert parser.finish() == {"a": "1", "b": '{"a": 1}'}
    assert short(parser.drain()) == ["+a", "1", ("-a", "1"), "+b", '{"a": 1}', ("-b", '{"a": 1}')]


class LineParser(FieldStreamParser):
    """Parser of a format with one output on each line, which reports no values."""

    def read(self, text: str) -> None:
        name, is_pair, value = text.partition("=")
        if is_pair:
            self.start_field(name)
        self.add_text(value if is_pair else text)


def test_a_subclass_may_leave_the_values_to_the_adapter() -> None:
    parser = LineParser(LineAdapter(), Pair)
    events = [event for piece in ("a=x", "y", "\n", "b=z") for event in parser.feed(piece)]
    assert short(events) == ["+a", "x", "y", "\n", "+b", "z"]
    assert parser.finish() == {"a": "xy", "b": "z"}
    assert short(parser.drain()) == [("-a", "xy"), ("-b", "z")]


@each_case("adapter", [CHAT, JSON, LineAdapter()])
def test_a_parser_reads_one_reply_and_can_finish_again(adapter: Adapter) -> None:
    parser = adapter.stream_parser(Pair)
    values = {"a": "x", "b": "y"}
    has_lines = isinstance(adapter, LineAdapter)
    parser.feed("a=x\nb=y" if has_lines else adapter.format_assistant_message_content(Pair, values))
    assert parser.finish() == values
    parser.drain()
    assert parser.finish() == values
    assert parser.drain() == []
    with pytest.raises(OptionError, match=r"^text: `end` or `finish` was already called"):
        parser.feed("x")
    with pytest.raises(OptionError, match=r"^text: "):
        adapter.stream_parser(Pair).feed(b"x")  # type: ignore[arg-type]
    with pytest.raises(OptionError, match=r"^signature: "):
        adapter.stream_parser("q -> a")  # type: ignore[arg-type]


def test_code_and_literals_are_streamed_as_their_text() -> None:
    types = {"Code": Code, "Mood": Literal["calm", "wild"]}
    signature = Signature("q -> code: Code, mood: Mood", types=types)
    events, outputs = read(JSON, signature, '{"code": "```python\\nx = 1\\n```", "mood": "calm"}')
    assert texts(events) == {"code": "```python\nx = 1\n```", "mood": "calm"}
    assert ends(events) == outputs == {"code": "x = 1", "mood": "calm"}


LONG: Final = {
    "text in a section": ("chat", "[[ ## a ## ]]\n", "x", "\n[[ ## b ## ]]\ny"),
    "white space in a section": ("chat", "[[ ## a ## ]]\nx", " ", "\n[[ ## b ## ]]\ny"),
    "line breaks in a section": ("chat", "[[ ## a ## ]]\nx", "\n", "\n[[ ## b ## ]]\ny"),
    "backslashes before a marker": ("chat", "[[ ## a ## ]]\n", "\\", "[[ ## c ## ]]\n[[ ## b ## ]]\ny"),
    "name of a marker": ("chat", "[[ ## a ## ]]\n[[ ## ", "n", "\n[[ ## b ## ]]\ny"),
    "starts of markers": ("chat", "[[ ## a ## ]]\n", "\n[[ ## ", "\n[[ ## b ## ]]\ny"),
    "ignored text": ("chat", "", "x", "\n[[ ## a ## ]]\n[[ ## b ## ]]\ny"),
    "text in a string": ("json", '{"a": "', "x", '", "b": ""}'),
    "white space in a string": ("json", '{"a": "', " ", '", "b": ""}'),
    "escapes in a string": ("json", '{"a": "', "\\n", '", "b": ""}'),
    "items of a list": ("json", '{"a": ["x"', ',"x"', '], "b": ""}'),
    "text before an object": ("json", "", "{ x ", '{"a": "", "b": ""}'),
    "keys": ("json", '{"a": ""', ',"c": 1', ', "b": ""}'),
}


def _pieces(case: str, count: int) -> Iterator[str]:
    _, head, unit, tail = LONG[case]
    yield from head
    yield from (unit * count)[:count]
    yield from tail


@pytest.mark.slow
@pytest.mark.parametrize("case", LONG)
def test_fifty_thousand_single_characters_are_read(case: str) -> None:
    adapter = CHAT if LONG[case][0] == "chat" else JSON
    pieces = [*_pieces(case, 50_000)]
    parser = adapter.stream_parser(Pair)
    for piece in pieces:  # a parser with quadratic time needs hours
        parser.feed(piece)
    assert _outcome(parser.finish) == _outcome(lambda: adapter.parse(Pair, "".join(pieces)))


def _outcome(parse: Callable[[], object]) -> object:
    """Returns the outputs, or the description of the error."""
    try:
        return parse()
    except ParseError as error:
        return error.description
