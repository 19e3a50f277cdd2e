"""Tests of reading JSON, damaged JSON and Python literals."""

from __future__ import annotations

import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentkit import MissingExtraError
from agentkit.prompts import lenient_json
from agentkit.prompts.lenient_json import read_json, read_strict_json, require_json_repair
from tests.cases import each_case
from tests.profiles import examples


@each_case(
    ("text", "value"),
    [
        ("3", 3),
        (' {"a": 1} ', {"a": 1}),
        ('{"a": 1, "a": 2}', {"a": 2}),
        ("null", None),
        ("[1, 2", [1, 2]),
        ("{'a': None}", {"a": None}),
        ("```json\n[1]\n```", [1]),
        ("Here you are: [1, 2]. Good?", [1, 2]),
        ("[“a”]", ["a"]),
        ("1_000", 1000),
        ("0x10", 16),
        ("(3)", 3),
        ("1,2", (1, 2)),
        ("'it''s'", "its"),
        ("'7'", "7"),
        (r"'\d'", "\\d"),
        (r"'\\d'", "\\d"),
        ("b'a'", b"a"),
        ("b'[1]'", b"[1]"),
        ("True", True),
        ("set()", set[int]()),
        ("[" * 200 + "]" * 200, read_strict_json("[" * 200 + "]" * 200)),
    ],
)
def test_a_text_contains_this_value(text: str, value: object) -> None:
    assert read_json(text, "nothing") == value
    assert type(read_json(text, "nothing")) is type(value)


@each_case(
    "text",
    [
        "",
        "yes",
        "a, b",
        "- 1\n- 2",
        "3 apples",
        "1 000",
        "'a",
        "x = 1",
        "9" * 5_000,
        "1or 2",
        "-" * 100_000,
        "[" * 300,
    ],
)
def test_a_text_contains_no_value(text: str) -> None:
    assert read_json(text, "nothing") == "nothing"


def test_strict_json_is_not_repaired() -> None:
    assert read_strict_json("[1, 2]") == [1, 2]
    assert read_strict_json("[1, 2", "nothing") == "nothing"
    assert read_strict_json("\ud800", "nothing") == "nothing"


def test_lone_surrogates_become_replacement_characters() -> None:
    assert read_json('{"a": "\\ud800"}') == {"a": "\ufffd"}
    assert read_json("'\\ud800'") == "\ufffd"


@given(st.text(alphabet="[](){}\"'`,:\\-+.0123456789eaTrueNon \n", max_size=40))
@examples(500)
def test_no_text_raises_an_error_and_strict_json_has_its_own_value(text: str) -> None:
    strict = read_strict_json(text, "nothing")
    value = read_json(text, "nothing")
    assert strict == "nothing" or repr(value) == repr(strict)


def test_a_missing_package_is_an_error_that_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lenient_json, "find_spec", {"json_repair": None}.get)
    monkeypatch.delitem(sys.modules, "json_repair", raising=False)
    with pytest.raises(MissingExtraError, match=r"agentkit-middleware\[prompts\]") as caught:
        require_json_repair()
    assert (caught.value.package, caught.value.extra) == ("json-repair", "prompts")
    assert read_json("[1]") == [1]
    with pytest.raises(MissingExtraError):
        read_json("[1")
