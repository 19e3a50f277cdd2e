"""Native values as plain JSON values, and the events in the raw bytes of a stream."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict

from agentkit import MessageError
from agentkit.provider_kit import as_text, ensure_json_safe, make_json_safe, native_to_json
from agentkit.replies.sse import EventBytes
from tests.cases import each_case
from tests.profiles import examples


class SDKObject(BaseModel):
    """Object of an SDK: a pydantic model that keeps unknown fields."""

    model_config = ConfigDict(extra="allow")
    id: str
    model: str | None = None


def events(pieces: list[bytes]) -> list[bytes]:
    reader = EventBytes()
    found = [data for piece in pieces for data in reader.feed(piece)]
    return [*found, *reader.finish()]


def test_an_sdk_object_is_read_without_unset_fields() -> None:
    found = SDKObject.model_validate({"id": "x", "more": {"a": [1]}})
    assert native_to_json(found) == {"id": "x", "more": {"a": [1]}}


def test_a_subclass_of_dict_and_any_mapping_are_plain_dicts() -> None:
    class Answer(dict[str, Any]):
        def __getattr__(self, name: str) -> Any:
            raise KeyError(name)

    found = native_to_json(Answer(a=1))
    assert type(found) is dict
    assert found == {"a": 1}


@each_case("text", ['{"a": 1}', b'{"a": 1}', bytearray(b'{"a": 1}')])
def test_json_text_is_parsed(text: Any) -> None:
    assert native_to_json(text) == {"a": 1}


def test_a_lone_surrogate_in_json_is_read_and_replaced_at_its_use() -> None:
    assert as_text(native_to_json('{"a": "x\\ud83d"}')["a"]) == "x\N{REPLACEMENT CHARACTER}"
    assert as_text("\ud83d\ude00") == "\N{GRINNING FACE}"


@each_case("found", [object(), 3, None, "{", "[" * 100_000])
def test_a_value_other_than_a_reply_is_refused_by_its_type(found: Any) -> None:
    with pytest.raises(MessageError):
        native_to_json(found)


def test_comments_names_and_blank_lines_between_events_are_ignored() -> None:
    stream = b': keep-alive\n\nevent: x\nid: 1\ndata: {"a": 1}\n\ndata:{}\n\nretry: 3\n\ndata: [DONE]\n\n'
    assert events([stream]) == [b'{"a": 1}', b"{}", b"[DONE]"]


def test_data_of_several_lines_is_joined() -> None:
    assert events([b"data: {\ndata: }\n\n"]) == [b"{\n}"]


def test_a_last_event_needs_no_blank_line() -> None:
    assert events([b"data: 1\n\ndata: 2"]) == [b"1", b"2"]
    assert events([b'{"a": 1}\n{"b": 2}']) == [b'{"a": 1}', b'{"b": 2}']


def test_a_byte_order_mark_is_passed_over() -> None:
    assert events([b"\xef", b"\xbb\xbf", b"data: 1\n\n"]) == [b"1"]


@given(
    st.lists(st.dictionaries(st.text(max_size=3), st.text(max_size=5), max_size=2), max_size=5),
    st.sampled_from(["\n", "\r\n", "\r"]),
    st.booleans(),
    st.lists(st.integers(1, 7), min_size=1, max_size=30),
)
@examples(100)
def test_any_cutting_of_the_bytes_gives_the_same_events(
    found: list[dict[str, str]], line_break: str, lines: bool, sizes: list[int]
) -> None:
    texts = [json.dumps(item, ensure_ascii=False) for item in found]
    if lines:
        stream = "".join(f"{text}{line_break}" for text in texts).encode()
    else:
        stream = "".join(f"event: e{line_break}data: {text}{line_break * 2}" for text in texts).encode()
    pieces, at, turn = list[bytes](), 0, 0
    while at < len(stream):
        size = sizes[turn % len(sizes)]
        pieces.append(stream[at : at + size])
        at, turn = at + size, turn + 1
    assert [json.loads(data) for data in events(pieces)] == found
    assert events([stream]) == events(pieces)


def test_a_long_line_in_many_pieces_costs_no_more_than_its_length() -> None:
    """100,000 pieces of one line: joined once, not at every piece."""
    text = json.dumps({"a": "x" * 400_000}).encode()
    pieces = [b"data: ", *(text[at : at + 4] for at in range(0, len(text), 4)), b"\n\n"]
    assert events(pieces) == [text]


def test_a_mapping_other_than_a_dict_is_read() -> None:
    class Fields(Mapping[str, int]):
        def __getitem__(self, key: str) -> int:
            return 1

        def __iter__(self) -> Any:
            return iter(["a"])

        def __len__(self) -> int:
            return 1

    assert native_to_json(Fields()) == {"a": 1}


PLAIN: list[Any] = [None, True, 1, -1.5, "a", "\u00e9", [], {}, [1, {"a": [None, {"b": "\U0001f600"}]}], 2**1023]


@each_case("value", PLAIN)
def test_plain_json_values_are_returned_without_a_copy(value: Any) -> None:
    assert ensure_json_safe(value) is value
    assert make_json_safe(value) == value


def _nest(depth: int) -> list[Any]:
    value: list[Any] = ["deep"]
    for _ in range(depth):
        value = [value]
    return value


UNSAFE: list[Any] = [
    "\ud800",
    {"\ud800": 1},
    {1: "a"},
    b"bytes",
    float("nan"),
    [float("inf")],
    2**1024,
    (1, 2),
    {"a": (1, 2)},
    SDKObject(id="x"),
    {"a": [{"b": SDKObject(id="x")}]},
    _nest(199),
    _nest(300),
]


@each_case("value", UNSAFE)
def test_other_values_are_converted(value: Any) -> None:
    safe = ensure_json_safe(value)
    assert safe == make_json_safe(value)
    assert json.loads(json.dumps(safe)) == safe
    json.dumps(safe, ensure_ascii=False).encode()


@each_case("depth", [0, 150, 197, 198, 199, 200, 201])
def test_the_depth_limit_does_not_depend_on_the_function(depth: int) -> None:
    assert ensure_json_safe(_nest(depth)) == make_json_safe(_nest(depth))
