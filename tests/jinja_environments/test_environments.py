"""Template environments: options, functions, and the errors if a package is missing."""

from __future__ import annotations

import subprocess
import sys

import pytest
from jinja2 import DictLoader, Environment, TemplateError, TemplateRuntimeError, UndefinedError

from agentkit import MissingExtraError
from agentkit.jinja_environments import model_environment, prompt_environment
from tests.cases import each_case
from tests.jinja_environments.rendering import MODEL, PROMPT, render


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
    def write_pattern(pattern: str) -> str:
        return f"now:{pattern}"

    source = (
        "{{ strftime_now('%d %b') }} {{ {'b': '<é>', 'a': 1} | tojson }} {{ missing }}{{ missing is defined }}"
    )
    text = 'now:%d %b {"b": "<é>", "a": 1} False'
    assert render(source, MODEL, strftime_now=write_pattern) == text


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
    assert render("{{ strftime_now('%Y') }}", MODEL).isdigit()


@pytest.mark.parametrize("package", ["jinja2", "yaml"])
def test_a_missing_package_is_named_when_the_prompt_environment_is_created(
    package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingExtraError, match=r"agentkit-middleware\[prompts\]"):
        prompt_environment()


def test_a_missing_package_is_named_when_the_model_environment_is_created(monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_a_missing_package_is_named_when_the_first_messages_are_rendered() -> None:
    program = (
        "import sys; sys.modules['jinja2'] = None\n"
        "from agentkit import Msg\n"
        "from agentkit.chat_templates import ChatTemplate\n"
        "renderer = ChatTemplate.builtin('chatml').create_prefix_renderer([Msg('Bob', 'Hello.', 'user')])\n"
        "renderer.render(1)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.stderr.splitlines()[-1].endswith("pip install 'agentkit-middleware[templates]'")


def test_jinja_is_imported_when_the_first_template_is_compiled() -> None:
    program = (
        "import sys\n"
        "import agentkit.chat_templates, agentkit.jinja_environments.prefix_rendering, agentkit.prompts\n"
        "import agentkit.tokens.hugging_face, agentkit.training\n"
        "print('jinja2' in sys.modules)\n"
        "agentkit.chat_templates.ChatTemplate('{{ messages }}')\n"
        "print('jinja2' in sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "True"]
