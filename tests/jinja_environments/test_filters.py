"""Filters `yaml`, `json` and `tojson`."""

from __future__ import annotations

import json

import pytest
from jinja2 import TemplateRuntimeError

from agentkit.jinja_environments import TemplateRecord
from tests.cases import each_case
from tests.jinja_environments.rendering import MODEL, render

PORT = TemplateRecord(
    {"name": "Brest", "depth": None, "tides": [TemplateRecord({"hour": 7, "high": True}, ["high"])]}, ["depth"]
)


@each_case(
    ("options", "text"),
    [
        ("json", '{"name": "Brest", "depth": null, "tides": [{"hour": 7, "high": true}]}'),
        ("json(exclude_none=true)", '{"name": "Brest", "tides": [{"hour": 7, "high": true}]}'),
        ("json(exclude_defaults=true)", '{"name": "Brest", "tides": [{"hour": 7}]}'),
        ("json(exclude_fields='tides')", '{"name": "Brest", "depth": null}'),
        ("json(exclude_fields=['tides', 'name'])", '{"depth": null}'),
        ("json(exclude_fields=['name'], exclude_defaults=true)", '{"tides": [{"hour": 7}]}'),
        ("json(exclude_fields=['tides'], indent=1)", '{\n "name": "Brest",\n "depth": null\n}'),
        ("yaml(exclude_defaults=true)", "name: Brest\ntides:\n  - hour: 7\n"),
        ("yaml(exclude_fields=['name'])", "depth: null\ntides:\n  - hour: 7\n    high: true\n"),
    ],
)
def test_filters_exclude_fields(options: str, text: str) -> None:
    assert render(f"{{{{ port | {options} }}}}", port=PORT) == text


@each_case(
    ("source", "text"),
    [
        ("{{ 'é' | json }}", '"é"'),
        ("{{ [1, none] | map('string') | json }}", '["1", "None"]'),
        ("{{ (1, 2.5) | yaml }}", "- 1\n- 2.5\n"),
    ],
)
def test_filters_write_any_json_value(source: str, text: str) -> None:
    assert render(source) == text


@each_case(
    ("source", "reason"),
    [
        ("{{ port | json(exclude_fields=['nam']) }}", "there is no field 'nam'"),
        ("{{ 'a' | yaml(exclude_fields=['nam']) }}", "expected a dict with fields, got str"),
        ("{{ fail | yaml }}", "a value of type function cannot be printed"),
        ("{{ [fail] | json }}", "a value of type function cannot be printed"),
        ("{{ [1] | json(indent=100001) }}", "too large"),
    ],
)
def test_a_filter_refuses_unknown_fields_and_functions(source: str, reason: str) -> None:
    with pytest.raises(TemplateRuntimeError, match=reason):
        render(source, port=PORT)


@each_case(
    ("options", "text"),
    [
        ("", '{"b": "é", "a": [1]}'),
        ("ensure_ascii=True", '{"b": "\\u00e9", "a": [1]}'),
        ("indent=1", '{\n "b": "é",\n "a": [\n  1\n ]\n}'),
        ("separators=(',', ':'), sort_keys=True", '{"a":[1],"b":"é"}'),
    ],
)
def test_tojson_has_the_options_of_transformers(options: str, text: str) -> None:
    assert render(f"{{{{ value | tojson({options}) }}}}", MODEL, value={"b": "é", "a": [1]}) == text


def test_indented_json_is_the_same_when_it_is_written_again() -> None:
    template = MODEL.from_string("{{ value | tojson(indent=2, ensure_ascii=ascii) }}")
    for value in ({"é": [1, 1.0, True, None]}, {"é": [1.0, 1, True, None]}, {1: "a", "1": "b"}, ["x" * 60_000]):
        for ascii in (False, True):
            expected = json.dumps(value, indent=2, ensure_ascii=ascii)
            assert [template.render(value=value, ascii=ascii) for _ in range(2)] == [expected] * 2
