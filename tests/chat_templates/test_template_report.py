"""`ChatTemplate.check`: each field of the report, shown by a small template."""

from __future__ import annotations

from typing import Any, Final

import pytest

from agentkit import Msg, TemplateError
from agentkit.chat_templates import ChatTemplate
from tests.cases import each_case

ROLES: Final = "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}"
CALLS: Final = (
    "{% for t in tools or [] %}{{ t | tojson }}{% endfor %}"
    "{% for m in messages %}{{ m.role }}: {{ m.content }}{% for c in m.tool_calls %}"
    "{{ c.function.name }} {{ c.function.arguments | tojson }}{% endfor %}\n{% endfor %}"
)
FIRST_CALL: Final = CALLS.replace("{% for c in m.tool_calls %}", "{% for c in (m.tool_calls or [])[:1] %}")
TEXT_CALLS: Final = CALLS.replace("c.function.arguments | tojson", "'' + c.function.arguments")
NAMES: Final = CALLS.replace("{{ m.role }}", "{{ m.name }}, {{ m.role }}")
"""Template that writes the names of all speakers."""
NINE: Final = CALLS.replace(
    "{{ c.function.name }}",
    "{% if c.id | length != 9 %}{{ raise_exception('ids have nine characters') }}{% endif %}{{ c.function.name }}",
)
ALTERNATING: Final = (
    "{% for m in messages %}{% if (m.role == 'user') != (loop.index0 % 2 == 0) %}"
    "{{ raise_exception('roles must alternate') }}{% endif %}{{ m.content | trim }}</s>{% endfor %}"
)
THINKING: Final = (
    "{% for m in messages %}{% if m.reasoning_content and loop.last %}<think>{{ m.reasoning_content }}</think>"
    "{% endif %}{{ m.content }}{% endfor %}"
)
PARTS: Final = (
    "{% for m in messages %}{% for p in m.content %}{% if p.type == 'image' %}<image>{% else %}{{ p['text'] }}"
    "{% endif %}{% endfor %}{% endfor %}"
)
EITHER: Final = (
    "{% for m in messages %}{% set later = messages[loop.index:] | selectattr('role', 'eq', 'user') | list %}"
    "{% if m.tool_calls and m.content and m.reasoning_content %}{{ raise_exception('either') }}{% endif %}"
    "{% if not (m.tool_calls and later) %}{{ m.reasoning_content }}{{ m.content }}{% endif %}"
    "{% for c in m.tool_calls %}{{ c.function.name }} {{ c.function.arguments | tojson }}{% endfor %}{% endfor %}"
)
"""Template that refuses thinking beside texts of calls, and that omits the texts of earlier calls."""
FIRST_IS_USER: Final = (
    "{% if tools %}user: {{ messages[0].content }}\n{% set messages = messages[1:] %}{% endif %}" + CALLS
)
"""Template that writes the first message as that of a user if there are tools, as those of Llama 3 do."""
NEEDS_USER: Final = (
    "{% if not messages | selectattr('role', 'eq', 'user') | list %}{{ raise_exception('no user') }}{% endif %}"
    + ROLES
)
LAST_SYSTEM: Final = (
    "{% for m in (messages | selectattr('role', 'eq', 'system') | list)[-1:] %}{{ m.content }}\n{% endfor %}"
    + ROLES.replace("in messages", "in messages if m.role != 'system'")
)
"""Template that writes only the last system message, as that of DeepSeek-R1 does."""
SYSTEM_OF_USER: Final = (
    "{% for m in messages if m.role != 'system' %}{% if loop.first and m.role == 'user' "
    "and messages[0].role == 'system' %}{{ messages[0].content }}\n{% endif %}{{ m.role }}: {{ m.content }}\n"
    "{% endfor %}"
)
"""Template that writes the system message only in the first turn, which must be a user's, as `llama_2` does."""
MARKED: Final = (
    "{% for m in messages %}{% if m.role == 'assistant' %}{% generation %}{{ m.content }}STOP{% endgeneration %}"
    "{% else %}{{ m.content }}{% endif %}{% endfor %}"
)


def test_a_report_about_a_slow_template_needs_few_steps() -> None:
    slow = "{% for i in range(9000) %}{% for j in range(90) %}{{ '' }}{% endfor %}{% endfor %}" + ROLES
    with pytest.raises(TemplateError, match="exceeds the limit of 100,000,050 steps"):
        ChatTemplate(slow.replace("9000", "90000")).render([Msg("Bob", "Hi.", "user")])
    assert ChatTemplate(slow).render([Msg("Bob", "Hi.", "user")]).text == "user: Hi.\n"
    assert not ChatTemplate(slow).check().system  # the small conversations have a lower limit


@each_case(
    ("source", "fields"),
    [
        (
            ROLES,
            {
                "system": True,
                "several_system": True,
                "late_system": True,
                "consecutive_roles": True,
                "assistant_first": True,
                "needs_user": False,
                "named_roles": frozenset[str](),
                "generation_prompt": False,
                "tools": False,
                "calls": False,
                "results": True,
                "thinking": False,
                "needs_parts": False,
                "media": frozenset[str](),
                "trims": False,
                "extends_prefix": True,
                "marks_spans": False,
                "ends_with_stop_token": None,
                "stop_token": "",
                "reads_clock": False,
            },
        ),
        (
            CALLS,
            {"tools": True, "calls": True, "parallel_calls": True, "any_call_id": True},
        ),
        (CALLS, {"call_texts": True, "call_thinking_and_text": True}),
        (
            EITHER,
            {
                "calls": True,
                "call_texts": True,
                "call_thinking": True,
                "call_thinking_and_text": False,
            },
        ),
        (FIRST_IS_USER, {"calls": True, "tools": True, "assistant_first": False, "needs_user": False}),
        (NEEDS_USER, {"system": True, "assistant_first": True, "needs_user": True}),
        (LAST_SYSTEM, {"system": True, "several_system": False, "late_system": False, "assistant_first": True}),
        (SYSTEM_OF_USER, {"system": True, "late_system": False, "assistant_first": False, "needs_user": True}),
        (FIRST_CALL, {"calls": True, "parallel_calls": False}),
        (TEXT_CALLS, {"calls": True, "parallel_calls": True}),
        (NAMES, {"named_roles": frozenset({"system", "user", "assistant"})}),
        (
            NAMES.replace("m.name", "(m.name if m.role != 'system')"),
            {"named_roles": frozenset({"user", "assistant"})},
        ),
        (NAMES.replace("m.name", "(m.name if not m.tool_calls)"), {"named_roles": frozenset({"system", "user"})}),
        (NAMES.replace("m.name", "(m.name if not tools)"), {"named_roles": frozenset[str]()}),
        (NINE, {"calls": True, "any_call_id": False}),
        (
            ALTERNATING,
            {
                "system": False,
                "consecutive_roles": False,
                "assistant_first": False,
                "needs_user": False,
                "trims": True,
                "stop_token": "</s>",
            },
        ),
        (THINKING, {"thinking": True, "earlier_thinking": False, "extends_prefix": False}),
        (
            THINKING.replace(" and loop.last", ""),
            {"thinking": True, "earlier_thinking": True, "extends_prefix": True},
        ),
        (PARTS, {"needs_parts": True, "parts": True, "media": frozenset({"image"}), "system": True}),
        (MARKED, {"marks_spans": True, "ends_with_stop_token": True, "stop_token": "STOP"}),
        (
            MARKED.replace("STOP{% endgeneration %}", "{% endgeneration %}STOP"),
            {"marks_spans": True, "ends_with_stop_token": False, "stop_token": "STOP"},
        ),
        (ROLES + "{{ strftime_now('%Y') }}", {"reads_clock": True}),
        (ROLES + "{{ strftime_now('%d %b') }}", {"reads_clock": True}),
        (ROLES + "{% if messages | length > 2 %}{{ strftime_now('%f') }}{% endif %}", {"reads_clock": True}),
        (ROLES + "{% if messages | length > 20 %}{{ strftime_now('%f') }}{% endif %}", {"reads_clock": True}),
        (
            "{% for m in messages %}{{ m.content | trim if m.role == 'assistant' else m.content }}{% endfor %}",
            {"trims": True},
        ),
        ("{{ strftime_now('%Y')[:0] }}" + ROLES, {"reads_clock": False}),
        (ROLES + "{% if add_generation_prompt %}bot:{% endif %}", {"generation_prompt": True}),
        (
            "{{ raise_exception('no') }}",
            {"system": False, "calls": False, "trims": False, "extends_prefix": False},
        ),
    ],
)
def test_a_report_says_what_a_template_writes(source: str, fields: dict[str, Any]) -> None:
    template = ChatTemplate(source)
    report = template.check()
    assert {name: getattr(report, name) for name in fields} == fields
    assert template.check() is report


@each_case(("source", "is_text"), [(CALLS, False), (TEXT_CALLS, True)])
def test_arguments_are_json_text_only_if_the_template_requires_it(source: str, is_text: bool) -> None:
    assert ChatTemplate(source).probe.needs_text_arguments is is_text
