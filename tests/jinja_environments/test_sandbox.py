"""The sandbox: templates reach no Python object, and JSON values behave as in jinja's sandbox."""

from __future__ import annotations

import re
from contextlib import suppress
from typing import Any

import pytest
from jinja2 import Environment, UndefinedError
from jinja2.exceptions import SecurityError
from jinja2.sandbox import ImmutableSandboxedEnvironment

from tests.cases import each_case
from tests.jinja_environments.rendering import MODEL, render

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


# -- JSON values --------------------------------------------------------------------------------------------------

THEIRS = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True)
THEIRS.globals.update({name: MODEL.globals[name] for name in ("dict", "namespace")})

VALUES: dict[str, Any] = {
    "word": "ab c",
    "empty": "",
    "number": 3,
    "ratio": 1.5,
    "flag": True,
    "nothing": None,
    "items": [1, "a", None],
    "keys": {"a": 1, "items": 2, "b c": {"a": "x"}, "role": "user"},
    "messages": [{"role": "user", "content": "hi"}, {"role": "tool", "content": [{"type": "text"}]}],
}
NAMES = (*VALUES, "missing", "(1, 2)", "word|safe", "range(3)", "keys.items()", "namespace(a=1)", "dict")
ATTRIBUTES = ("a", "items", "role", "b c", "keys", "get", "upper", "format", "append", "real", "_a", "__class__")
METHODS = (
    "strip()",
    "strip(word)",
    "split('b')",
    "startswith('a')",
    "startswith(word)",
    "upper()",
    "replace('a', 'xy')",
    "join(items)",
    "join(['a', word])",
    "get('a')",
    "get(word, 1)",
    "items()",
    "index(1)",
    "format(1)",
    "append(1)",
    "strip(*items)",
    "get(**keys)",
)
OPERATORS = ("+", "-", "*", "//", "%", "~", "==", "<", "in", "not in", "and")
PAIRS = [
    f"{left} {operator} {right}" for operator in OPERATORS for left in VALUES for right in (*VALUES, "'a'", "0")
]
CHAINS = (
    "1 < number < 5",
    "word + 'a' + word + 'b'",
    "number + 1 + ratio",
    "'a' + number + word",
    "'a' ~ 1 ~ none ~ word",
)


def evaluate(environment: Environment, expression: str) -> str:
    try:
        text = environment.from_string(f"{{{{ {expression} }}}}|{{{{ ({expression}) is defined }}}}").render(
            VALUES
        )
    except Exception as error:  # any error is a result
        return type(error).__name__
    return re.sub(r"0x[0-9a-f]+|jinja2\.\S+|<\S*Namespace.*?>", "", text)


@pytest.mark.slow
@pytest.mark.parametrize(
    "expressions",
    [
        [f"({name}).{attribute}" for name in NAMES for attribute in ATTRIBUTES if " " not in attribute],
        [f"({name})['{attribute}']" for name in NAMES for attribute in ATTRIBUTES],
        [f"({name})[{index}]" for name in NAMES for index in ("0", "-1", "1:", "::-1", "number", "word", "items")],
        [f"({name}).{method}" for name in NAMES for method in METHODS],
        [f"({expression})" for expression in (*PAIRS, *CHAINS)],
    ],
    ids=["attributes", "items", "indexes", "methods", "operators"],
)
@pytest.mark.filterwarnings("ignore::SyntaxWarning")
def test_the_results_are_those_of_the_sandbox_of_jinja(expressions: list[str]) -> None:
    results = {expression: evaluate(MODEL, expression) for expression in expressions}
    expected = {expression: evaluate(THEIRS, expression) for expression in expressions}
    assert {item: (results[item], expected[item]) for item in expressions if results[item] != expected[item]} == {}


@pytest.mark.slow
def test_a_key_with_braces_is_not_a_format() -> None:
    key = "{0.__class__}'\"\\\n{}"
    source = "{{ keys[" + repr(key) + "] }}{{ keys['{0}'] }}"
    assert MODEL.from_string(source).render(keys={key: "a", "{0}": "b"}) == "ab"
