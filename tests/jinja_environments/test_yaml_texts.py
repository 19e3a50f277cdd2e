"""`dump_yaml`, and the filter `yaml`, write JSON values as YAML."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from agentkit import OptionError
from agentkit.jinja_environments import dump_yaml
from tests.cases import each_case
from tests.jinja_environments.rendering import render
from tests.profiles import examples


@each_case(
    ("value", "text"),
    [
        (
            {"b": 1, "a": {"c": [1, [2, 3], {"d": None}]}},
            "b: 1\na:\n  c:\n    - 1\n    - - 2\n      - 3\n    - d: null\n",
        ),
        ({"a": [], "b": {}, "c": ""}, "a: []\nb: {}\nc: ''\n"),
        ("text", "text\n"),
        (None, "null\n"),
        (1.5, "1.5\n"),
        ("one\ntwo", "|-\n  one\n  two\n"),
        ("one\n...\n", "|\n  one\n  ...\n"),
        ({"code": "def f():\n    return 1\n"}, "code: |\n  def f():\n      return 1\n"),
        ({"code": "  a\nb"}, "code: |2-\n    a\n  b\n"),
        (["é 漢 😀", "a\nb"], "- é 漢 😀\n- |-\n  a\n  b\n"),
        (
            {"a": "true", "b": "1", "c": "x: y", "d": "2024-01-01"},
            "a: 'true'\nb: '1'\nc: 'x: y'\nd: '2024-01-01'\n",
        ),
        ("a\n\x85b", '"a\\n\\Nb"\n'),
        ("a\r\nb", '"a\\r\\nb"\n'),
        ("word " * 25 + "end", f"{'word ' * 20}word\n  {'word ' * 4}end\n"),
    ],
)
def test_yaml_has_blocks_and_keeps_the_order_of_keys(value: object, text: str) -> None:
    assert dump_yaml(value) == text


def test_equal_parts_are_written_twice_and_without_references() -> None:
    part = ["a"]
    assert dump_yaml({"x": part, "y": part}) == "x:\n  - a\ny:\n  - a\n"


FRAGILE = st.sampled_from(" \n\t\r-:#'\"|>?&*!%@`{}[],01=~\x85\u2028\u2029\ufeff\x00\x7f漢😀\ud800.")
TEXTS = st.text(st.characters() | FRAGILE, max_size=12)
LEAVES = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | TEXTS
JSON = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=12,
)


@examples(500)
@given(JSON)
def test_yaml_is_read_as_the_same_value(value: object) -> None:
    text = dump_yaml(value)
    assert yaml.safe_load(text) == value
    assert text.endswith("\n")


@examples(100)
@given(JSON)
def test_equal_values_have_equal_yaml(value: object) -> None:
    assert render("{{ value | yaml }}", value=value) == dump_yaml(value)


def test_a_value_that_is_no_json_is_refused() -> None:
    with pytest.raises(OptionError, match="Pass a JSON value"):
        dump_yaml({"a": object()})
    with pytest.raises(OptionError, match="Pass a JSON value"):
        dump_yaml(10**5_000)


def test_a_value_that_contains_itself_is_refused() -> None:
    value: list[Any] = []
    value.append(value)
    with pytest.raises(OptionError, match="nested too deeply"):
        dump_yaml(value)
