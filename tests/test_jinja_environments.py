"""Template environments: options, filters and functions, the sandbox, and the limits of texts and values."""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import suppress
from typing import Any
from unittest.mock import patch

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from jinja2 import DictLoader, Environment, TemplateError, TemplateRuntimeError, UndefinedError
from jinja2.exceptions import SecurityError

from agentkit import MissingExtraError, OptionError
from agentkit.jinja_environments import (
    TemplateRecord,
    dump_yaml,
    limits,
    model_environment,
    prompt_environment,
)
from agentkit.jinja_environments.sandbox import get_prompt_class, get_sandbox_class
from tests.cases import each_case
from tests.profiles import examples

PROMPT = prompt_environment()
MODEL = model_environment(strftime_now=lambda pattern: f"now:{pattern}")


def render(source: str, environment: Environment = PROMPT, /, **variables: Any) -> str:
    return environment.from_string(source).render(variables)


# -- options ------------------------------------------------------------------------------------------------


@each_case("environment", {"prompt": PROMPT, "model": MODEL})
@each_case(
    ("source", "text"),
    [
        ("{% if true %}\nyes\n{% endif %}\nend", "yes\nend"),
        ("  {% if true %}\n  yes\n  {% endif %}\nend", "  yes\nend"),
        ("one\n", "one"),
        ("one\n\n", "one\n"),
        ("{{ '<b> & \"' }}", '<b> & "'),
        ("{{ 'a' ~ 1 ~ none }}", "a1None"),
        ("{{ 'ab' * 2 }}{{ 2 * 'ab' }}{{ [0] * 2 }}{{ 6 * 7 }}", "abababab[0, 0]42"),
        (
            "{{ 2 ** 10 }} {{ 7 % 4 }} {{ '%s-%03d' % ('a', 7) }} {{ 1 + 2 }} {{ [1] + [2] }}",
            "1024 3 a-007 3 [1, 2]",
        ),
        ("{{ '%s!' | format('a') }} {{ '{:>3}{x}'.format('a', x=1234567) }}", "a!   a1234567"),
        ("{{ 'a' | center(5) }}|{{ 'a\nb' | indent(2) }}|{{ 'a'.ljust(3) }}|", "  a  |a\n  b|a  |"),
        ("{% set text %}a{{ 1 }}{% endset %}{{ text }}", "a1"),
        ("{% macro show(x) %}<{{ x }}>{% endmacro %}{{ show('a') ~ show('b') }}", "<a><b>"),
    ],
)
def test_both_environments_render_like_jinja(environment: Environment, source: str, text: str) -> None:
    assert render(source, environment) == text


@each_case("source", ["{{ name }}", "{{ query.name }}", "{% if name %}{% endif %}", "{{ name ~ 'a' }}"])
def test_an_undefined_name_in_a_prompt_is_an_error(source: str) -> None:
    with pytest.raises(UndefinedError, match="name"):
        render(source, query={})


@each_case("source", ["{{ name | yaml }}", "{{ name | json }}", "{{ [name] | json }}"])
def test_a_filter_does_not_write_an_undefined_value(source: str) -> None:
    with pytest.raises(UndefinedError, match="'name' is undefined"):
        render(source)


def test_a_prompt_can_test_if_a_name_is_defined() -> None:
    assert render("{{ name is defined }} {{ name | default('x') }}") == "False x"


def test_fail_ends_the_rendering() -> None:
    with pytest.raises(TemplateRuntimeError, match="no passages"):
        render("{% if not passages %}{{ fail('no passages') }}{% endif %}", passages=[])


def test_a_key_takes_precedence_over_a_method_of_a_dict() -> None:
    source = "{{ query.items }} {{ query.keys() | list }} {{ query.get('x', 0) }}"
    assert render(source, query={"items": "two"}) == "two ['items'] 0"


@each_case(
    ("source", "type_name"),
    [
        ("{{ fail }}", "function"),
        ("{{ query.items }}", "builtin_function_or_method"),
        ("{{ [1] | map('string') }}", "generator"),
        ("{{ namespace(a=1) }}", "Namespace"),
        ("{% macro a() %}{% endmacro %}{{ a }}", "Macro"),
    ],
)
def test_a_prompt_does_not_print_functions_and_generators(source: str, type_name: str) -> None:
    with pytest.raises(TemplateRuntimeError, match=f"a value of type {type_name} cannot be printed"):
        render(source, query={})


@pytest.mark.parametrize("source", ["{{ [1, 2] | random }}", "{{ lipsum() }}"])
def test_a_prompt_has_no_random_functions(source: str) -> None:
    with pytest.raises(TemplateError, match=r"No filter named 'random'|'lipsum' is undefined"):
        render(source)


def test_a_prompt_includes_templates_of_its_loader() -> None:
    environment = prompt_environment(DictLoader({"rules.jinja": "Be {{ word }}.\n"}))
    assert render("{% include 'rules.jinja' %}\nEnd", environment, word="brief") == "Be brief.End"


def test_a_chat_template_has_the_functions_of_transformers() -> None:
    source = (
        "{{ strftime_now('%d %b') }} {{ {'b': '<é>', 'a': 1} | tojson }} {{ missing }}{{ missing is defined }}"
    )
    assert render(source, MODEL) == 'now:%d %b {"b": "<é>", "a": 1} False'


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


def test_a_chat_template_can_break_a_loop_and_mark_the_text_of_the_model() -> None:
    source = """\
{% for item in items %}
  {% if item == 3 %}{% break %}{% endif %}
  {% generation %}
{{ item }};
  {% endgeneration %}
{% endfor %}"""
    assert render(source, MODEL, items=[1, 2, 3]) == "1;\n2;\n"


def test_a_chat_template_raises_its_own_error() -> None:
    with pytest.raises(TemplateError, match="roles must alternate"):
        render("{{ raise_exception('roles must alternate') }}", MODEL)


def test_a_missing_attribute_of_an_undefined_name_is_an_error_in_a_chat_template() -> None:
    with pytest.raises(UndefinedError, match="'missing' is undefined"):
        render("{{ missing.name }}", MODEL)


def test_the_default_time_is_the_local_time() -> None:
    assert render("{{ strftime_now('%Y') }}", model_environment()).isdigit()


@pytest.mark.parametrize("package", ["jinja2", "yaml"])
def test_a_missing_package_is_named_when_the_prompt_environment_is_created(
    package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    get_sandbox_class.cache_clear()
    get_prompt_class.cache_clear()
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingExtraError, match=r"agentkit-middleware\[prompts\]"):
        prompt_environment()


def test_a_missing_package_is_named_when_the_model_environment_is_created(monkeypatch: pytest.MonkeyPatch) -> None:
    get_sandbox_class.cache_clear()
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(MissingExtraError, match=r"agentkit-middleware\[templates\]"):
        model_environment()


def test_a_missing_package_is_named_when_a_chat_template_is_rendered() -> None:
    program = (
        "import sys; sys.modules['jinja2'] = None\n"
        "from agentkit import Msg\n"
        "from agentkit.chat_templates import ChatTemplate\n"
        "ChatTemplate.builtin('chatml').render([Msg('Bob', 'Hello.', 'user')])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.stderr.splitlines()[-1].startswith("agentkit.errors.MissingExtraError: Rendering a chat template")


# -- the sandbox ----------------------------------------------------------------------------------------------

ATTACKS = [
    "{{ ''.__class__.__mro__ }}",
    "{{ fail.__globals__ }}",
    "{{ raise_exception.__globals__ }}",
    "{{ range.__init__.__globals__ }}",
    "{{ cycler.__init__.__globals__.os.popen('id').read() }}",
    "{{ namespace.__init__ }}",
    "{{ joiner.__init__.__builtins__ }}",
    "{{ '{0.__class__}'.format(1) }}",
    "{{ '{x.__class__}'.format_map({'x': 1}) }}",
    "{{ ''['__class__'].mro() }}",
    "{{ ('' | attr('__class__')).mro() }}",
    "{{ self.__init__.__globals__ }}",
    "{{ self._TemplateReference__context }}",
    "{{ items.append(1) }}",
    "{{ query.update({'a': 1}) }}",
    "{% for item in items %}{{ loop.__class__ ~ '' }}{% endfor %}",
    "{% macro a() %}{% endmacro %}{{ a.__call__.__globals__ ~ '' }}",
]


@each_case("source", ATTACKS)
def test_a_prompt_reaches_no_python_object(source: str) -> None:
    items, query = [1], {"b": 2}
    with pytest.raises((SecurityError, UndefinedError)):
        render(source, items=items, query=query)
    assert (items, query) == ([1], {"b": 2})


@each_case("source", ATTACKS)
def test_a_chat_template_reaches_no_python_object_and_prints_nothing(source: str) -> None:
    items, query = [1], {"b": 2}
    with suppress(SecurityError, UndefinedError):
        assert render(source, MODEL, items=items, query=query) == ""
    assert (items, query) == ([1], {"b": 2})


# -- limits ---------------------------------------------------------------------------------------------------

BOMBS = [
    "{{ 'a' * 10000001 }}",
    "{{ 10000001 * 'a' }}",
    "{{ [0] * 10000001 }}",
    "{{ (0,) * 10000001 }}",
    "{{ 10 ** 10000000 }}",
    "{{ '%10000000d' % 1 }}",
    "{{ '%*d' % (10000000, 1) }}",
    "{{ '%10000000d' | format(1) }}",
    "{{ '{:10000000}'.format(1) }}",
    "{{ '{:{}}'.format(1, 10000000) }}",
    "{{ 'a'.ljust(10000000) }}",
    "{{ 'a'.center(width) }}",
    "{{ 'a' | center(10000000) }}",
    "{{ 'a\n' | indent(width=10000000) }}",
    "{{ [1] | batch(10000000, 0) | list }}",
    "{{ [1] | slice(10000000) | list }}",
    "{% set n = namespace(x='a') %}{% for i in range(99) %}{% set n.x = n.x ~ n.x %}{% endfor %}",
    "{% set n = namespace(x='a') %}{% for i in range(99) %}{% set n.x = n.x + n.x %}{% endfor %}",
    "{% set n = namespace(x='a') %}"
    "{% for i in range(99) %}{% set n.x %}{{ n.x }}{{ n.x }}{% endset %}{% endfor %}",
    "{% macro twice(x) %}{{ x }}{{ x }}{% endmacro %}{% set n = namespace(x='a') %}"
    "{% for i in range(99) %}{% set n.x = twice(n.x) %}{% endfor %}",
    "{% for i in range(10001) %}{{ text }}{% endfor %}",
]
LARGE_BOMBS = [
    "{% set n = namespace(x=10 ** 100000) %}{% for i in range(9) %}{% set n.x = n.x * n.x %}{% endfor %}",
    "{% set n = namespace(x=[1]) %}{% for i in range(99) %}{% set n.x = n.x + n.x %}{% endfor %}",
]
"""Templates that compute values of millions of digits or items before they fail."""


@pytest.mark.parametrize("environment", [PROMPT, MODEL], ids=["prompt", "model"])
@each_case("source", BOMBS)
def test_a_template_cannot_create_a_huge_value(environment: Environment, source: str) -> None:
    with pytest.raises(TemplateRuntimeError, match="too large"):
        render(source, environment, text="a" * 1_000, width=10_000_000)


@each_case(("environment", "source"), [*zip((PROMPT, MODEL), LARGE_BOMBS, strict=True)])
def test_a_template_cannot_double_a_value_without_a_limit(environment: Environment, source: str) -> None:
    with pytest.raises(TemplateRuntimeError, match="too large"):
        render(source, environment)


def test_a_loop_cannot_count_to_a_huge_number() -> None:
    with pytest.raises(OverflowError, match="100000"):
        render("{% for i in range(100001) %}{% endfor %}")


def test_a_large_text_below_the_limit_is_rendered() -> None:
    assert len(render("{% for i in range(10000) %}{{ text }}{% endfor %}", text="a" * 1_000)) == 10_000_000


# -- the filters `yaml` and `json` ----------------------------------------------------------------------------

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


# -- YAML -----------------------------------------------------------------------------------------------------


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


QUADRATIC = (
    "{% for message in messages %}{% set ns = namespace(last=0) %}{% for other in messages %}"
    "{% if other.role == 'user' and other.content %}{% set ns.last = loop.index %}{% endif %}{% endfor %}"
    "{% endfor %}{{ messages | length }}"
)


def test_the_limit_of_loops_over_all_pairs_of_messages_grows_with_the_messages() -> None:
    values = {"messages": [{"role": "user", "content": "Hi."}] * 100}
    with patch.object(limits, "_MAX_STEPS", 250_000):
        assert model_environment().from_string(QUADRATIC).render(values) == "100"
        printing = QUADRATIC.replace("{% if", "{{ '' }}{% if")
        assert model_environment().from_string(printing).render(values) == "100"
        for old, new in (
            ("{% if", "{{ '' * 500 }}{{ 'ab' * 500 }}{% if"),
            ("in messages %}{% if", "in messages * 30 %}{% if"),
        ):
            template = model_environment().from_string(QUADRATIC.replace(old, new))
            with pytest.raises(TemplateRuntimeError, match="limit of 750,000 steps"):
                template.render(values)


def test_indented_json_is_the_same_when_it_is_written_again() -> None:
    template = model_environment().from_string("{{ value | tojson(indent=2, ensure_ascii=ascii) }}")
    for value in ({"é": [1, 1.0, True, None]}, {"é": [1.0, 1, True, None]}, {1: "a", "1": "b"}, ["x" * 60_000]):
        for ascii in (False, True):
            expected = json.dumps(value, indent=2, ensure_ascii=ascii)
            assert [template.render(value=value, ascii=ascii) for _ in range(2)] == [expected] * 2
