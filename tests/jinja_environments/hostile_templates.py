"""Templates that try to leave the sandbox, to run without end, or to use all memory.

`python -m tests.jinja_environments.hostile_templates` renders them in a process with limited memory and time, and
prints the result of each as JSON.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Final
from unittest.mock import patch

from agentkit.errors import TemplateError
from agentkit.jinja_environments import limits
from agentkit.jinja_environments.chat_rendering import render_chat
from agentkit.jinja_environments.chat_variables import ChatVariables
from agentkit.jinja_environments.functions import create_clock
from agentkit.jinja_environments.prefix_rendering import PrefixRenderer

__all__ = ["ENDLESS", "ESCAPES", "LARGE", "NESTED", "PREFIXES", "SLOW"]

_MEMORY: Final = 1_000_000_000  # bytes of address space
_SECONDS: Final = 60
_STEPS: Final = 2_000_000  # steps of a rendering, so that the templates end sooner

_NAMES: Final = "{% set n = namespace(x='ab', l=[1], d={'a': 1}) %}"
_BIG: Final = "{% set b = 'é' * 900000 %}"
_BIG_PAIR: Final = "{% set a = 'x' * 900000 %}{% set b = 'x' * 900000 %}"
_LONG: Final = "{% set a = 2 ** 49998 %}{% set a = a * a %}"
_MANY: Final = "{% for i in range(100000) %}"
_END: Final = "{% endfor %}"


def _repeat(body: str, start: str = _NAMES) -> str:
    return f"{start}{_MANY}{body}{_END}"


def _double(expression: str) -> str:
    return _repeat(f"{{% set n.x = {expression} %}}")


def _collect(expression: str) -> str:
    return _repeat(f"{{% set n.l = n.l + [{expression}] %}}", _NAMES + _BIG)


def _laugh(first: str, step: str, last: str) -> str:
    """Returns a template whose values contain the previous value twice: the last contains 2 ** 60 values."""
    steps = [f"{{% set a{i} = {step.replace('a0', f'a{i - 1}')} %}}" for i in range(1, 61)]
    return f"{{% set a0 = {first} %}}{''.join(steps)}{last}"


ESCAPES: Final = (
    "{{ ''.__class__.__mro__[1].__subclasses__() }}",
    "{{ ''['__class__']['__mro__'] }}",
    "{{ ''|attr('__class__')|attr('__mro__') }}",
    "{{ ['']|map(attribute='__class__')|list|first|attr('mro') }}",
    "{{ [1]|map('attr', '__class__')|list|first|attr('mro') }}",
    "{{ [[1]]|sort(attribute='__class__.__name__') }}{{ raise_exception('x') }}",
    "{{ [{'a': 1}]|groupby('__class__')|first|first|attr('mro') }}",
    "{{ {}.__class__ }}",
    "{{ {'__class__': 1}.__init__ }}",
    "{{ ().__class__.__base__ }}",
    "{{ (1).__class__ }}",
    "{{ 1.5.__class__ }}",
    "{{ true.__class__ }}",
    "{{ none.__class__ }}",
    "{{ messages.__class__ }}",
    "{{ messages[0].__class__ }}",
    "{{ messages[0]['__class__'] }}",
    "{{ messages[0].get.__self__ }}",
    "{{ messages[0].items.__self__ }}",
    "{{ messages[0].fromkeys.__self__ }}",
    "{{ ''.join.__self__ }}",
    "{{ ''.strip.__self__.__class__ }}",
    "{{ raise_exception.__globals__ }}",
    "{{ raise_exception.__code__ }}",
    "{{ strftime_now.__globals__ }}",
    "{{ strftime_now.__self__ }}",
    "{{ strftime_now.__closure__ }}",
    "{{ strftime_now.args }}",
    "{{ strftime_now.args[0].now() }}",
    "{{ dict.__class__ }}",
    "{{ dict.__init__.__globals__ }}",
    "{{ dict.fromkeys.__func__ }}",
    "{{ namespace.__init__.__globals__ }}",
    "{{ namespace(__class__=1) }}",
    "{{ namespace({'__self__': 'x', '__name__': '__class__'})() }}",
    "{% set n = namespace() %}{{ n.__class__ }}",
    "{% set n = namespace() %}{{ n.__init__ }}",
    "{% set n = namespace() %}{% set n.__self__ = 'x' %}",
    "{{ cycler.__init__.__globals__.os.popen('id').read() }}",
    "{{ cycler(1).__init__.__globals__ }}",
    "{{ cycler(1).next.__func__.__globals__ }}",
    "{{ joiner.__init__.__builtins__ }}",
    "{{ joiner().__call__.__globals__ }}",
    "{{ range.__init__.__globals__ }}",
    "{{ range.__wrapped__ }}{{ raise_exception('x') }}",
    "{{ self.__init__.__globals__ }}",
    "{{ self._TemplateReference__context }}",
    "{% block a %}{{ self.a.__func__ }}{% endblock %}",
    "{% for i in [1] %}{{ loop.__class__ }}{% endfor %}",
    "{% for i in [1] %}{{ loop._iterator }}{% endfor %}",
    "{% for i in [1] %}{{ loop._undefined }}{% endfor %}",
    "{% for i in [1] %}{{ loop['__init__'] }}{% endfor %}",
    "{% for i in [1] %}{{ loop.cycle.__func__.__globals__ }}{% endfor %}",
    "{% macro m() %}{% endmacro %}{{ m.__call__.__globals__ }}",
    "{% macro m() %}{% endmacro %}{{ m._func }}",
    "{% macro m() %}{% endmacro %}{{ m._environment }}",
    "{% macro m() %}{{ caller._func }}{% endmacro %}{% call m() %}{% endcall %}",
    "{{ missing._fail_with_undefined_error }}",
    "{{ '{0.__class__}'.format(1) }}",
    "{{ '{0[__class__]}'.format('') }}",
    "{{ '{x.__class__}'.format_map({'x': 1}) }}",
    "{{ ''.format.__self__ }}",
    "{{ ['{0.__class__}']|map('format', 1)|list|first|attr('mro') }}",
    "{{ ('{0.__class__}'|attr('format'))(1) }}",
    "{{ '{0.__class__}'['format'](1) }}",
    "{{ messages['{0.__class__}'] }}",
    "{{ messages[0]['\\'] or open(\\'/etc/passwd\\').read() or x[\\''] }}",
    "{{ messages.append(1) }}",
    "{{ messages[0].update({'a': 1}) }}",
    "{{ messages[0].pop('role') }}",
    "{{ messages[0].setdefault('a', 1) }}",
    "{{ messages[0].clear() }}",
    "{{ messages|attr('append') }}",
    "{% include '/etc/passwd' %}",
    "{% import 'os' as os %}",
    "{% from 'os' import system %}",
    "{% extends '/etc/passwd' %}",
    "{% debug %}",
    "{{ [1]|map('count_steps')|list }}",
    "{{ ''.encode('rot13') }}",
    "{{ open('/etc/passwd') }}",
    "{{ __import__('os') }}",
    "{{ environment.globals }}",
    "{{ context.environment }}",
    "{{ lipsum.__globals__ }}",
    "{{ now() }}",
    "{{ [1, 2]|random }}",
)
"""Templates that read or change what they must not. Each raises an error or prints nothing."""

ENDLESS: Final = {
    "loops": _MANY * 6 + "x" + _END * 6,
    "loops without text": _MANY * 4 + _END * 4,
    "loops over texts": "{% for a in 'a' * 90000 %}{% for b in 'a' * 90000 %}{% endfor %}{% endfor %}",
    "a loop with a false condition": _repeat("{% for j in range(100000) if false %}{% endfor %}"),
    "a recursive loop": "{% for i in [9] recursive %}{% if i %}{{ loop([i - 1] * 99) }}{% endif %}{% endfor %}",
    "macros": "{% macro m(d) %}{% if d %}{{ m(d - 1) }}{{ m(d - 1) }}{% endif %}{% endmacro %}{{ m(60) }}",
    "callers": (
        "{% macro m(d) %}{{ caller(d) }}{{ caller(d) }}{% endmacro %}"
        "{% macro k(d) %}{% if d %}{% call(x) m(d) %}{{ k(x - 1) }}{% endcall %}{% endif %}{% endmacro %}"
        "{{ k(30) }}"
    ),
    "blocks": (
        "{% set n = namespace(d=0) %}{% block a scoped %}{% set n.d = n.d + 1 %}"
        "{% if n.d < 30 %}{{ self.a() }}{{ self.a() }}{% endif %}{% set n.d = n.d - 1 %}{% endblock %}"
    ),
    "members of a text": _repeat("{{ 'x' in b }}", _BIG),
    "members of a list": _repeat("{{ 'x' in l }}", "{% set l = range(90000)|list %}"),
    "equal texts": _repeat("{{ a == b }}", _BIG_PAIR),
    "ordered texts": _repeat("{{ a < b }}", _BIG_PAIR),
    "a test of equal texts": _repeat("{{ a is eq b }}", _BIG_PAIR),
    "changed texts": _repeat("{{ loop.changed(b) }}", _BIG),
    "keys that are tuples": _repeat(
        "{{ d[t] }}{{ t in d }}{{ d.get(t) }}", "{% set t = (1,) * 90000 %}{% set d = {} %}"
    ),
    "count": _repeat("{{ b.count('ab') }}", _BIG),
    "find": _repeat("{{ b.find('aaaaaaaaaaab') }}", "{% set b = 'a' * 900000 %}"),
    "startswith": _repeat("{{ a.startswith(b) }}", _BIG_PAIR),
    "min": _repeat("{{ l|min }}", "{% set l = range(90000)|list %}"),
    "sort": _repeat("{{ l|sort|first }}", "{% set l = range(90000)|list %}"),
    "max of a range": _repeat("{{ range(99999)|max }}"),
    "sum of a range": _repeat("{{ range(99999)|sum }}"),
    "members of a range": _repeat("{{ 1.5 in range(99999) }}"),
    "count of a range": _repeat("{{ range(99999).count(1.5) }}"),
    "remainder of a long number": _repeat("{{ 7 ** 300 % 12345 }}"),
    "quotient of a long number": _repeat("{% set n.x = 7 ** 300 // 12345 %}", "{% set n = namespace(x=9) %}"),
    "float": _repeat("{{ b|float }}", "{% set b = '9' * 900000 %}"),
    "chains of filters": _repeat("{{ range(100000)" + "|select('number')" * 50 + "|list|length }}"),
    "long attributes": "{{ (['x'] * 90000)|map(attribute='" + ".".join("0" * 5_000) + "')|list|length }}",
    "striptags": "{{ ('<!--a-->' * 100000)|striptags }}",
    "wordwrap": "{{ ('a' * 900000)|wordwrap(1) }}",
    "urlize": "{{ ('(' * 90000)|urlize }}",
    "pprint": "{{ ([[1]] * 90000)|pprint }}",
}
"""Templates that need so many steps that they do not end."""

LARGE: Final = {
    "+": _double("n.x + n.x"),
    "~": _double("n.x ~ n.x"),
    "~ with autoescape": "{% autoescape true %}" + _double("n.x ~ n.x") + "{% endautoescape %}",
    "%": _double("'%s%s' % (n.x, n.x)"),
    "* of a text": "{{ 'a' * 10000001 }}",
    "* of a list": "{{ [0] * 10000001 }}",
    "* of a tuple": "{{ (0,) * 10000001 }}",
    "+ of lists": _repeat("{% set n.l = n.l + n.l %}"),
    "**": "{{ 10 ** 10000000 }}",
    "** twice": "{{ 2 ** 99999 ** 9 }}",
    "* of numbers": _repeat("{% set n.x = n.x * n.x %}", "{% set n = namespace(x=9) %}"),
    "** of a long number": "{{ 7 ** 30000 % 12345 }}",
    "- of numbers": _repeat("{% set n.x = n.x - (0 - n.x) %}", "{% set n = namespace(x=9) %}"),
    "a list of negative numbers": _repeat(f"{{% set n.l = n.l + [{'-a, ' * 3000}] %}}", _NAMES + _LONG),
    "long numbers in a format": _LONG + "{{ ('%x' * 40000) % ((a,) * 40000) }}",
    "long numbers of a range": _LONG + "{{ range(a, a + 60000)|list|length }}",
    "a hexadecimal number": "{{ ('f' * 900000)|int(base=16) }}",
    "round": "{{ 1.5|round(1000000000, 'ceil') }}",
    "round to a large number": "{{ 1|round(-90000000) }}",
    "join": _double("[n.x, n.x]|join"),
    "join with a separator": _BIG + "{{ range(100000)|join(b) }}",
    "join of an attribute": _BIG + "{{ ([{'a': b}] * 100)|join('', attribute='a') }}",
    "the method join": _double("''.join([n.x, n.x])"),
    "the method join with a separator": _BIG + "{{ b.join(['a'] * 90000) }}",
    "replace": _double("n.x|replace('a', 'aa')"),
    "the method replace": _double("n.x.replace('a', 'aa')"),
    "replace of nothing": "{{ ('a' * 900000).replace('', 'b' * 1000) }}",
    "format": _double("'%s%s'|format(n.x, n.x)"),
    "the method format": _double("'{0}{0}'.format(n.x)"),
    "the method format_map": _double("'{x}{x}'.format_map({'x': n.x})"),
    "fields of a namespace": _BIG + "{% set n = namespace(b=b) %}{{ ('{0.b}' * 90000).format(n) }}",
    "width": "{{ '%10000000d' % 1 }}",
    "width from an argument": "{{ '%*d' % (10000000, 1) }}",
    "many widths": "{{ '%99999d' * 10000 % ((1,) * 10000) }}",
    "width of a field": "{{ '{:10000000}'.format(1) }}",
    "width from a field": "{{ '{:{}}'.format(1, 10000000) }}",
    "ljust": "{{ 'a'.ljust(10000000) }}",
    "zfill": "{{ '1'.zfill(1000000000) }}",
    "center": "{{ 'a'|center(10000000) }}",
    "indent": "{{ ('\n' * 900000)|indent(1000) }}",
    "indent with a text": "{{ ('\n' * 90000)|indent('a' * 90000) }}",
    "batch": "{{ [1]|batch(10000000, 0)|list }}",
    "slice": "{{ [1]|slice(10000000)|list }}",
    "wordwrap with a text": "{{ ('a' * 90000)|wordwrap(1, wrapstring='x' * 90000) }}",
    "urlize with a target": "{{ ('http://a.com ' * 9000)|urlize(target='x' * 90000) }}",
    "tojson with an indent": "{{ ([1] * 9000)|tojson(indent=99999) }}",
    "tojson with a text": "{{ ([1] * 9000)|tojson(indent='a' * 90000) }}",
    "tojson with separators": "{{ ([1] * 9000)|tojson(separators=('a' * 90000, ':')) }}",
    "sum of lists": "{{ ([[1]] * 9000)|sum(start=[]) }}",
    "characters": "{{ ('é' * 9000000)|list|length }}",
    "groups of characters": "{{ ('é' * 9000000)|groupby(0)|length }}",
    "words": "{{ ('é ' * 4500000)|title|length }}",
    "arguments": "{{ dict(*('é' * 9000000)) }}",
    "bytes of a number": "{{ (1).to_bytes(1000000000, 'big') }}",
    "bytes of a text": "{{ ('é' * 90000).encode('punycode') }}",
    "expandtabs": "{{ ('\t' * 90000).expandtabs(90000) }}",
    "translate": "{{ ('a' * 900000).translate({97: 'b' * 90000}) }}",
    "the format of a time": "{{ strftime_now('%0256d' * 100000) }}",
    "a set block": _repeat("{% set n.x %}{{ n.x }}{{ n.x }}{% endset %}"),
    "a filter block": _repeat("{% set n.x %}{% filter upper %}{{ n.x }}{{ n.x }}{% endfilter %}{% endset %}"),
    "a macro": "{% macro m(x) %}{{ x }}{{ x }}{% endmacro %}" + _double("m(n.x)"),
    "output": _repeat("{{ b }}", _BIG),
    "a list of texts": _collect("b ~ i"),
    "a list of slices": _collect("b[i:]"),
    "a list of stripped texts": _collect("(' ' ~ b).strip()"),
    "a list of lower texts": _collect("b.lower()"),
    "a list of upper texts": _collect("b|upper"),
    "a list of safe texts": _collect("b|safe"),
    "a list of suffixes": _collect("b.removeprefix('é')"),
    "a list of numbers": _repeat("{% set n.l = n.l + [range(100000)|list] %}"),
    "texts of map": _BIG + "{{ range(100000)|map('center', 90000)|list|length }}",
    "many variables": _BIG + "".join(f"{{% set x{i} = b ~ {i} %}}" for i in range(200)),
    "a list that is printed often": _repeat("{{ n.l }}", "{% set n = namespace(l=['x' * 900000]) %}"),
    "a list that is escaped often": (
        "{% autoescape true %}"
        + _repeat("{{ n.l }}", "{% set n = namespace(l=['x' * 900000]) %}")
        + "{% endautoescape %}"
    ),
    "printed lists": _laugh("['x', 'x']", "[a0, a0]", "{{ a60 }}"),
    "printed dicts": _laugh("1", "{'a': a0, 'b': a0}", "{{ a60|tojson }}"),
    "printed dict()": _laugh("1", "dict(a=a0, b=a0)", "{{ a60 }}"),
    "printed views": _laugh("{'a': 1}", "{1: a0.items(), 2: a0.items()}", "{{ a60 }}"),
    "tuples as keys": _laugh("(1, 1)", "(a0, a0)", "{{ {a60: 1} }}"),
    "repeated lists": _laugh("[1]", "[a0] * 2", "{{ a60 }}"),
    "groups": _laugh("1", "[{'k': 1, 'v': a0}, {'k': 1, 'v': a0}]|groupby('k')", "{{ a60 }}"),
    "fromkeys": _laugh("1", "dict.fromkeys([1, 2], a0)", "{{ a60 }}"),
    "further arguments": (
        "{% macro m(d) %}{{ m(d - 1, varargs, varargs) if d else varargs }}{% endmacro %}{{ m(60, 1) }}"
    ),
    "further names": (
        "{% macro m(d) %}{{ m(d - 1, a=kwargs, b=kwargs) if d else kwargs }}{% endmacro %}{{ m(60, a=1) }}"
    ),
}
"""Templates that create large values from small ones."""

NESTED: Final = {
    "a macro": "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
    "a block": "{% block a %}{{ self.a() }}{% endblock %}",
    "a loop": "{% for i in [1] recursive %}{{ loop([1]) }}{% endfor %}",
    "a list": _repeat("{% set n.x = [n.x] %}") + "{{ n.x|tojson }}",
    "loops": "{% for a in messages %}" * 30 + "{% endfor %}" * 30,
    "conditions": "{% if a %}" * 300 + "{% endif %}" * 300,
    "parentheses": "{{ " + "(" * 5_000 + "1" + ")" * 5_000 + " }}",
    "lists": "{{ " + "[" * 5_000 + "]" * 5_000 + " }}",
    "not": "{{ " + "not " * 5_000 + "1 }}",
    "-": "{{ 1" + " - 1" * 5_000 + " }}",
    "attributes": "{{ a" + ".a" * 5_000 + " }}",
    "calls": "{{ a" + "()" * 5_000 + " }}",
    "filters": "{{ a" + "|upper" * 5_000 + " }}",
    "arguments": "{{ " + "a.split(" * 2_000 + "1" + ")" * 2_000 + " }}",
    "a number": "{{ " + "9" * 5_000 + " }}",
    "digits": "{{ [" + "9" * 500 + ", a] }}",
    "a text": "a" * 100_001,
    "a list of attributes": "{{ [" + "a.b," * 50_000 + "] }}",
}
"""Templates that are nested too deeply, or have too many digits or characters."""

SLOW: Final = ("loops without text", "macros", "float")
"""Names of endless templates that are rendered with the real number of steps too."""

PREFIXES: Final = {
    "format": "{{ ('{0}' * 40000).format(messages) }}",
    "%": "{{ ('%s' * 40000) % (messages,) }}",
    "a list of messages": "{{ [messages] * 40000 }}",
    "a field of a namespace": "{% set n = namespace(b='x') %}{{ '{0.b}'.format(n) }}",
    "equal messages": (
        "{% set x = [{'role': 'user', 'content': messages[0].content ~ ''}, messages[1]] %}"
        "{% for i in range(2000) %}{% if x == messages %}{% endif %}{% endfor %}"
    ),
}
"""Parts of templates that are refused, but only in a rendering of the first two messages."""


def _render(source: str) -> dict[str, object]:
    names = {"strftime_now": create_clock(datetime(2026, 1, 2))}
    variables = ChatVariables([{"role": "user", "content": "Hi."}], others=names)
    return _run(lambda: render_chat(source, variables).text[:100])


def _render_prefix(part: str) -> dict[str, object]:
    """Renders a part of a template that only the rendering of the first two messages reaches."""
    loop = "{% for message in messages %}{{ message.role }}{% endfor %}"
    messages = [{"role": "user", "content": "Q" * 20_000}, {"role": "assistant", "content": "A"}] * 2
    renderer = PrefixRenderer(f"{loop}{{% if messages|length == 2 %}}{part}{{% endif %}}", ChatVariables(messages))
    assert renderer._recorder is not None  # pyright: ignore[reportPrivateUsage] - the recorded loops are tested
    return _run(lambda: renderer.render(2)[:100])


def _run(render: Callable[[], str]) -> dict[str, object]:
    start = time.process_time()
    try:
        result = {"text": render()}
    except TemplateError as error:
        result = {"error": str(error)}
    return {**result, "seconds": time.process_time() - start}


def _main() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    resource.setrlimit(resource.RLIMIT_CPU, (_SECONDS, _SECONDS))
    # Large templates need the real number of steps, because some exceed the other limits only then.
    results = {f"large: {name}": _render(source) for name, source in LARGE.items()}
    results |= {f"slow: {name}": _render(ENDLESS[name]) for name in SLOW}
    with patch.object(limits, "_MAX_STEPS", _STEPS):
        results |= {f"escape: {source}": _render(source) for source in ESCAPES}
        results |= {f"endless: {name}": _render(source) for name, source in ENDLESS.items()}
        results |= {f"nested: {name}": _render(source) for name, source in NESTED.items()}
        results |= {f"prefixes: {name}": _render_prefix(part) for name, part in PREFIXES.items()}
    json.dump({"results": results, "peak": _find_peak()}, sys.stdout)


def _find_peak() -> int:
    """Returns the largest memory of this process, in bytes. `getrusage` counts the parent process too."""
    status = Path("/proc/self/status")
    if status.exists():
        return 1_024 * int(status.read_text().partition("VmHWM:")[2].split()[0])
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1_024


if __name__ == "__main__":
    _main()
