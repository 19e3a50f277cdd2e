"""`PrefixRenderer`: the texts of all prefixes equal the texts of `render_chat`, in linear time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from random import Random
from typing import Any, Final
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentkit import Msg, TemplateError, TextBlock, ThinkingBlock, ToolResultBlock, ToolUseBlock
from agentkit.chat_templates import ChatTemplate
from agentkit.jinja_environments import limits, loop_recorder, recorded_messages
from agentkit.jinja_environments.prefix_rendering import PrefixRenderer
from tests.cases import each_case
from tests.profiles import examples
from tests.training.span_cases import CONVERSATIONS, check_prefixes
from tests.training.templates import MARKED, THINKING, UNMARKED

_NAMES: Final = ("im_start", "inst", "llama_2", "llama_3", "mistral", "phi_4", "zephyr")
_BUILTINS: Final = [replace(ChatTemplate.builtin(name), tags=None) for name in _NAMES]


def _change(*changes: tuple[str, str]) -> ChatTemplate:
    """Returns the template that does not mark replies with other texts."""
    source = UNMARKED.jinja or ""
    for old, new in changes:
        assert old in source
        source = source.replace(old, new)
    return replace(UNMARKED, jinja=source, name=repr(changes))


_LOOP: Final = "{%- for message in messages %}"
_END: Final = "{%- if add_generation_prompt %}"
VARIANTS: Final = {
    "reads the first message": _change((_LOOP, "{{- messages[0].role }}" + _LOOP)),
    "skips the first message": _change((_LOOP, "{%- for message in messages[1:] %}")),
    "numbers turns": _change(
        ("<|im_start|>' + message.role", "<|im_start|>' + message.role + loop.index | string")
    ),
    "trims": _change(("{{- message.content }}", "{{- message.content | trim }}")),
    "escapes": _change(("{{- message.content }}", "{{- message.content | tojson }}")),
    "upper case": _change(("{{- message.content }}", "{{- message.content | upper }}")),
    "looks ahead": _change(("<|im_end|>{%- endif %}", "{%- if loop.last %}!{% endif %}<|im_end|>{%- endif %}")),
    "looks ahead in replies": _change((_LOOP, _LOOP + "{%- if loop.last %}!{% endif %}")),
    "counts messages": _change((_LOOP, "{{- messages | length }}" + _LOOP)),
    "prints messages": _change((_LOOP, "{%- if 'Yes' in messages | string %}!{% endif %}" + _LOOP)),
    "compares messages": _change((_LOOP, "{%- if messages != [] %}!{% endif %}" + _LOOP)),
    "adds messages": _change((_LOOP, "{%- for message in messages + [] %}")),
    "writes JSON": _change((_LOOP, "{{- messages | tojson }}" + _LOOP)),
    "first reads all messages": _change((_LOOP, _LOOP + "{%- endfor %}" + _LOOP)),
    "ends with a token": _change((_END, "</s>" + _END)),
    "ends an open text with a token": _change((_END, _END + "!")),
    "opens thinking": _change(
        ("<|im_start|>assistant\n{% endif %}", "<|im_start|>assistant\n<think>\n{% endif %}")
    ),
    "writes a prompt in replies": _change((_LOOP, _LOOP + "{%- if add_generation_prompt %}!{% endif %}")),
    "has a bare prompt": _change(("<|im_start|>", "assistant"), ("assistantassistant", "assistant")),
    "has no stop token": _change(("<|im_end|>", "")),
    "captures": _change(
        (_LOOP, "{%- set text %}" + _LOOP),
        ("{%- endfor %}" + _END, "{%- endfor %}{%- endset %}{{- text }}" + _END),
    ),
    "writes replies late": _change(
        (_LOOP, "{%- set ns = namespace(text='') %}" + _LOOP + "{{- ns.text }}{%- set ns.text = '' %}"),
        ("{%- if message.role == 'assistant' %}", "{%- if message.role == 'assistant' %}{%- set ns.text = 'x' %}"),
    ),
}
"""Templates for which a simpler search for replies could find other texts."""
TEMPLATES: Final[list[ChatTemplate]] = [UNMARKED, MARKED, THINKING, *_BUILTINS, *VARIANTS.values()]


@pytest.mark.slow
@given(CONVERSATIONS, st.integers())
@examples(100)
def test_the_text_of_each_prefix_is_that_of_render(msgs: list[Msg], seed: int) -> None:
    for template in (*TEMPLATES, *_LINEAR.values(), *_STATEFUL.values()):
        check_prefixes(msgs, template, Random(f"{seed} {template.name}"))


_CALL: Final = ToolUseBlock("abcde1234", "look", {"q": "a"})
_RESULT: Final = Msg("tool", [ToolResultBlock("abcde1234", "look", "found")], "system")


def _build_turns(count: int, calls: int = 0) -> list[Msg]:
    """Returns turns with a thinking reply, each of which has tool calls first."""
    msgs: list[Msg] = []
    for number in range(count):
        msgs.append(Msg("Bob", f"Question {number}", "user"))
        for _ in range(calls):
            msgs += [Msg("Friday", [ThinkingBlock("So."), _CALL], "assistant"), _RESULT]
        msgs.append(Msg("Friday", [ThinkingBlock("Hm."), TextBlock(f"Answer {number}")], "assistant"))
    return msgs


def _create_renderer(template: ChatTemplate, msgs: list[Msg]) -> PrefixRenderer:
    return template.create_prefix_renderer(msgs)


def _count_iterations(template: ChatTemplate, msgs: list[Msg]) -> int:
    """Returns how many iterations of loops over messages run for all prefixes of a conversation."""
    positions: list[object] = []

    class Position(recorded_messages.LoopPosition):
        def __init__(self, items: Any, index0: int) -> None:
            positions.append(items)
            super().__init__(items, index0)

    with patch.object(loop_recorder, "LoopPosition", Position):
        renderer = _create_renderer(template, msgs)
        for count in range(len(msgs), 0, -1):
            for is_open in (False, True):
                renderer.render(count, add_generation_prompt=is_open)
    return len(positions)


_SCAN: Final = "{%- set last = namespace(index=0) %}{%- for message in messages %}"
_LINEAR: Final = {
    "unmarked": UNMARKED,
    "thinking": THINKING,
    "compares with other operators": replace(
        THINKING, jinja=(THINKING.jinja or "").replace("loop.index0 > last.index", "not last.index >= loop.index0")
    ),
    "compares for equality": _change(
        (
            _LOOP,
            _SCAN + "{%- if message.role == 'user' %}{% set last.index = loop.index %}{% endif %}"
            "{%- endfor %}" + _LOOP + "{%- if loop.index == last.index %}!{% endif %}",
        ),
    ),
    "collects texts": _change(
        (
            _LOOP,
            "{%- set ns = namespace(text='') %}" + _LOOP + "{%- if message.role == 'system' %}"
            "{% set ns.text = ns.text + message.content %}{% endif %}{% endfor %}{{- ns.text }}" + _LOOP,
        ),
    ),
    "searches later messages": _change(
        (
            _LOOP,
            _LOOP + "{%- set later = namespace(found=false) %}{%- for other in messages[loop.index:] %}"
            "{%- if other.content == 'Answer 1' %}{% set later.found = true %}{% endif %}{% endfor %}"
            "{%- if later.found %}!{% endif %}",
        ),
    ),
    "reads messages by index": _change(
        (_LOOP, "{%- for i in range(messages | length) %}{%- set message = messages[i] %}")
    ),
    "numbers turns": VARIANTS["numbers turns"],
    "looks ahead": VARIANTS["looks ahead"],
}

_COUNT: Final = (
    "{%- set ns = namespace(count=0) %}" + _LOOP + "{%- if message.role == 'user' %}"
    "{% set ns.count = ns.count + 1 %}{% endif %}{% endfor %}"
)
_STATEFUL: Final = {
    "reads an attribute after the loops": _change((_LOOP, _COUNT + _LOOP), (_END, "{{- ns.count }}" + _END)),
    "reads an attribute between the loops": _change(
        (_LOOP, _COUNT + "{%- set count = ns.count %}{{- count }}" + _LOOP)
    ),
    "sets an attribute between the loops": _change(
        (_LOOP, _COUNT + "{%- set ns.count = 2 %}" + _LOOP + "{%- if loop.index > ns.count %}!{% endif %}")
    ),
    "adds a namespace between the loops": _change(
        (
            _LOOP,
            _COUNT
            + "{%- set other = namespace(n=1) %}"
            + _LOOP
            + "{%- if loop.index == ns.count + other.n %}!{% endif %}",
        )
    ),
    "stops at a reply": _change(
        (_LOOP, _LOOP + "{%- if message.role == 'assistant' and loop.index > 3 %}Stop.{% break %}{% endif %}")
    ),
    "collects a list": _change(
        (
            _LOOP,
            "{%- set ns = namespace(roles=[]) %}" + _LOOP + "{%- set ns.roles = ns.roles + [message.role] %}"
            "{{- ns.roles | length }}",
        )
    ),
    "counts iterations": _change((_LOOP, _LOOP + "{{- loop.length }}")),
    "changes an attribute in the last loop": _change(
        (_LOOP, _COUNT + _LOOP + "{%- if ns.count > 1 %}{% set ns.count = ns.count - 1 %}!{% endif %}")
    ),
}
"""Templates in which loops have side effects, or cannot be recorded."""


@each_case("template", _LINEAR)
def test_the_number_of_iterations_grows_with_the_number_of_messages(template: ChatTemplate) -> None:
    for calls in (0, 3):
        few, many = (_count_iterations(template, _build_turns(count, calls)) for count in (3, 9))
        assert many <= 4 * few
    few, many = (_count_iterations(template, _build_turns(1, calls)) for calls in (8, 24))
    assert many <= 4 * few


@each_case("name", ["prints messages", "adds messages", "writes JSON", "counts messages"])
def test_unusual_templates_give_the_same_texts(name: str) -> None:
    msgs = _build_turns(3)
    renderer = _create_renderer(VARIANTS[name], msgs)
    for count in range(1, len(msgs) + 1):
        assert renderer.render(count) == VARIANTS[name].render_text(msgs[:count]).text


def test_an_error_of_the_template_is_the_error_of_a_prefix() -> None:
    source = "{% for message in messages %}{% if loop.last and message.role == 'user' %}"
    source += "{{ raise_exception('no reply') }}{% endif %}{{ message.content }}{% endfor %}"
    renderer = _create_renderer(ChatTemplate(source), _build_turns(2))
    assert renderer.render(2) == "Question 0Answer 0"
    with pytest.raises(TemplateError, match="no reply"):
        renderer.render(3)


def test_the_texts_of_messages_are_found_in_the_text() -> None:
    msgs = _build_turns(3)
    for template in (UNMARKED, THINKING):
        renderer = _create_renderer(template, msgs)
        for count in (6, 3):
            text = renderer.render(count)
            spans = renderer.list_spans(count)
            texts = [text[start:end] for start, end in spans.values()]
            assert list(spans) == list(range(count))
            assert "".join(texts) == text
            assert all(msg.text in part for msg, part in zip(msgs, texts, strict=False))
    macro = "{% macro write() %}" + (UNMARKED.jinja or "") + "{% endmacro %}{{ write() }}"
    assert _create_renderer(replace(UNMARKED, jinja=macro), msgs).list_spans(6) == {}


def test_a_text_that_starts_differently_has_no_end_of_a_prefix() -> None:
    msgs = _build_turns(3)
    text = UNMARKED.render_text(msgs).text
    renderer = _create_renderer(UNMARKED, msgs)
    assert renderer.find_end(text, 3) == len(renderer.render(3))
    assert renderer.find_end(text.replace("Question 1", "Question 2"), 3) is None
    assert renderer.find_end("", 3) is None


_FEW: Final = "{% if messages | length < 3 %}"
_SHORT_ONLY: Final = {
    "attributes": "{{ messages.start }}{{ messages.recorder }}{{ messages['recorder'] }}{{ messages.length }}",
    "filter attr": "{{ messages | attr('recorder') }}{{ [messages] | map(attribute='start') | list }}",
    "a large text": "{% set s = 'x' * 900_000 %}" + "{{ s }}" * 15,
    "many steps": "{% for i in range(5_000) %}" + "{{ '' }}" * 40 + "{% endfor %}",
}
"""Texts of templates that only the renderings of few messages reach."""


@each_case("part", _SHORT_ONLY)
def test_a_part_that_only_a_short_prefix_reaches_has_the_limits_of_a_plain_rendering(part: str) -> None:
    msgs, part = _build_turns(4), f"{_FEW}{part}{{% endif %}}"
    loop = "{% for m in messages %}{{ m.content }}"
    for source in (f"{loop}{{% endfor %}}{part}", f"{loop}{part}{{% endfor %}}" * 4):
        template = ChatTemplate(source)
        renderer = _create_renderer(template, msgs)
        with patch.object(limits, "_MAX_STEPS", 2_000_000):
            expected = _render_or_refuse(template.render_text, msgs[:2])
            assert _render_or_refuse(renderer.render, 2) == expected


def test_loops_are_not_recorded_if_the_template_refuses_the_messages() -> None:
    renderer = _create_renderer(ChatTemplate("{{ raise_exception('no') }}"), _build_turns(2))
    with patch.object(loop_recorder, "compile_recorded") as compile_recorded:
        with pytest.raises(TemplateError, match="no"):
            renderer.render(1)
        compile_recorded.assert_not_called()


def _render_or_refuse(render: Callable[[Any], Any], argument: Any) -> str:
    try:
        rendered = render(argument)
        return rendered if isinstance(rendered, str) else rendered.text
    except TemplateError as error:
        return f"error: {error}"


def test_a_conversation_without_text_has_an_end() -> None:
    loop = "{% for m in messages %}{{ m.content }}{% endfor %}"
    template = ChatTemplate(f"{{% if messages | length > 1 %}}{loop}{{% endif %}}")
    renderer = _create_renderer(template, _build_turns(2))
    assert renderer.find_end("Question 0", 1) == 0
