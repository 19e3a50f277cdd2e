"""Limits of the texts, values and steps of a rendering."""

from __future__ import annotations

from datetime import datetime
from unittest.mock import patch

import pytest
from jinja2 import Environment, TemplateError, TemplateRuntimeError

from agentkit.jinja_environments import limits
from agentkit.jinja_environments.functions import create_clock
from tests.cases import each_case
from tests.jinja_environments.rendering import MODEL, PROMPT, render

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


@each_case(
    ("source", "text"),
    [
        ("{{ ('x' * 600_000) | center(10) | length }}", "600000"),
        ("{{ ('x' * 600_000).center(10) | length }}", "600000"),
        ("{{ 1234 | round(-2) }} {{ 1.25 | round(1) }} {{ 1.5 | round(method='ceil') }}", "1200 1.2 2.0"),
        ("{{ 1.5 | round(none) }}", "2"),
    ],
)
def test_a_filter_with_a_width_accepts_long_texts_and_numbers(source: str, text: str) -> None:
    assert render(source, MODEL) == text


@each_case(
    ("source", "text"),
    [
        ("{{ {'a': 1}.keys().isdisjoint(range(500) | list) }}", "True"),
        ("{{ range(5).count(['x'] * 400) }}", "0"),
    ],
)
def test_a_method_accepts_long_arguments(source: str, text: str) -> None:
    assert render(source, MODEL) == text


@each_case("now", [None, datetime(2026, 1, 2)])
def test_the_format_of_a_time_has_a_limit(now: datetime | None) -> None:
    source, clock = "{{ strftime_now('%Y' * 500) | length }}", create_clock(now)
    assert render(source, MODEL, strftime_now=clock) == "2000"
    with pytest.raises(TemplateRuntimeError, match=r"too large \(1,200 characters\). The limit is 1,000"):
        render(source.replace("500", "600"), MODEL, strftime_now=clock)


@each_case(
    "source",
    [
        "{{ 2 ** 1_000 }}",
        "{% set x = " + "9" * 400 + " %}",
        "{{ ('9' * 400) | int }}",
        "{{ 1 | round(-400) }}",
        "{% set n = namespace(x=9) %}{% for i in range(999) %}{% set n.x = n.x + n.x %}{% endfor %}",
        "{% set n = namespace(x=9) %}{% for i in range(999) %}{% set n.x = n.x * n.x %}{% endfor %}",
        "{% set n = namespace(x=9) %}{% for i in range(999) %}{% set n.x = n.x - (0 - n.x) %}{% endfor %}",
    ],
)
def test_an_integer_has_at_most_1000_bits(source: str) -> None:
    with pytest.raises(TemplateRuntimeError, match=r"a number of the template is too large .* The limit is 1,000"):
        render(source, MODEL)


@each_case(
    "source",
    [
        "{{ ([10 ** 249] * 40_000) | length }}",
        "{{ range(10 ** 249, 10 ** 249 + 90_000) | length }}",
        "{{ ([range(10 ** 249, 10 ** 249 + 1)] * 20_000) | length }}",
        "{{ ('%x' * 4_000) % ((10 ** 249,) * 4_000) }}",
        "{{ ('{0:b}' * 4_000).format(10 ** 249) }}",
    ],
)
def test_the_digits_of_integers_count_as_characters(source: str) -> None:
    with pytest.raises(TemplateRuntimeError, match="a value of the template is too large"):
        render(source, MODEL)


@pytest.mark.parametrize("environment", [PROMPT, MODEL], ids=["prompt", "model"])
@each_case("name", ["count_item", "add_loop", "walk_messages"])
def test_a_template_cannot_call_the_filters_of_generated_code(environment: Environment, name: str) -> None:
    with pytest.raises(TemplateError, match=f"No filter named '{name}'"):
        render(f"{{{{ 'a' | {name} }}}}", environment)


QUADRATIC = (
    "{% for message in messages %}{% set ns = namespace(last=0) %}{% for other in messages %}"
    "{% if other.role == 'user' and other.content %}{% set ns.last = loop.index %}{% endif %}{% endfor %}"
    "{% endfor %}{{ messages | length }}"
)


def test_the_limit_of_loops_over_all_pairs_of_messages_grows_with_the_messages() -> None:
    values = {"messages": [{"role": "user", "content": "Hi."}] * 100}
    with patch.object(limits, "_MAX_STEPS", 250_000):
        assert MODEL.from_string(QUADRATIC).render(values) == "100"
        printing = QUADRATIC.replace("{% if", "{{ '' }}{% if")
        assert MODEL.from_string(printing).render(values) == "100"
        for old, new in (
            ("{% if", "{{ '' * 500 }}{{ 'ab' * 500 }}{% if"),
            ("in messages %}{% if", "in messages * 30 %}{% if"),
        ):
            template = MODEL.from_string(QUADRATIC.replace(old, new))
            with pytest.raises(TemplateRuntimeError, match="limit of 750,000 steps"):
                template.render(values)
