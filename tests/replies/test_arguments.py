"""ArgumentBuffer parses the received arguments without parsing the complete text after every piece."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic_core import from_json

from agentkit.replies import arguments as arguments_module
from agentkit.replies.arguments import ArgumentBuffer, split_objects
from tests.cases import each_case
from tests.profiles import examples

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)


def add_pieces(pieces: list[str]) -> tuple[ArgumentBuffer, list[int]]:
    arguments, lengths = ArgumentBuffer(), list[int]()
    for piece in pieces:
        arguments.add(piece)
        lengths.append(arguments.length)
    return arguments, lengths


def test_short_arguments_are_parsed_after_every_piece() -> None:
    arguments, lengths = add_pieces(['{"pla', 'ce": "Ber', 'lin", "days": 1', "2}"])
    assert [arguments.partial(length) for length in lengths] == [
        {},
        {"place": "Ber"},
        {"place": "Berlin", "days": 1},
        {"place": "Berlin", "days": 12},
    ]


@given(st.dictionaries(st.text(max_size=4), JSON, max_size=3), st.integers(1, 5))
@examples(100)
def test_late_parsing_returns_the_same_object(value: dict[str, Any], size: int) -> None:
    text = json.dumps(value)
    pieces = [text[start : start + size] for start in range(0, len(text), size)]
    live, immediate = ArgumentBuffer(), list[dict[str, Any]]()
    for piece in pieces:
        live.add(piece)
        immediate.append(live.partial(live.length))
    arguments, lengths = add_pieces(pieces)
    assert [arguments.partial(length) for length in reversed(lengths)] == immediate[::-1]
    if len(text) <= 250:
        assert immediate[-1] == value
    else:  # parsed only after some pieces, so a few characters may be missing
        lag = len(text) * 4 // 100
        nearly = [from_json(text[: len(text) - late], allow_partial="trailing-strings") for late in range(lag + 1)]
        assert immediate[-1] in nearly


def test_the_number_of_parses_grows_slower_than_the_arguments(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    read = list[int]()
    parse_beginning = arguments_module._parse_beginning  # pyright: ignore[reportPrivateUsage]

    def record(text: str) -> dict[str, object]:
        read.append(len(text))
        return parse_beginning(text)

    monkeypatch.setattr(arguments_module, "_parse_beginning", record)
    arguments = ArgumentBuffer()
    arguments.add('{"text": "')
    for _ in range(50_000):
        arguments.add("word")
        arguments.partial(arguments.length)
    assert sum(read) < 600 * 50_000
    lag = len(arguments.text) - 10 - len(arguments.partial(arguments.length)["text"])
    assert lag < len(arguments.text) / 50


@each_case("text", ["[1]", "nonsense", '"x"', "{'a': 1}", ""])
def test_a_text_that_begins_no_object_is_parsed_as_an_empty_object(text: str) -> None:
    arguments, _ = add_pieces([text])
    assert arguments.partial(arguments.length) == {}


def test_concatenated_objects_are_split() -> None:
    assert split_objects(' {"a": 1}\n{"b": {"c": "}{"}} {}') == [
        ({"a": 1}, '{"a": 1}'),
        ({"b": {"c": "}{"}}, '{"b": {"c": "}{"}}'),
        ({}, "{}"),
    ]


@each_case("text", ['{"a": 1}[2]', '{"a": 1}{"b"', "x{}", '{"a": "\\ud800"}', "[" * 100_000])
def test_text_after_an_object_prevents_a_split(text: str) -> None:
    assert split_objects(text) == []
