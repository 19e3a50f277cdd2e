"""`find_traced_replies`: one rendering gives the same texts as a rendering of each shorter conversation."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentkit import AgentkitError, Msg, TextBlock, ThinkingBlock
from agentkit.chat_templates import ChatTemplate
from agentkit.training import Sample, split_rewritten, tokenize
from tests.cases import each_case
from tests.profiles import examples
from tests.training.span_cases import CONVERSATIONS, compare_methods
from tests.training.templates import MARKED, THINKING, UNMARKED, encode, list_trained

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
TEMPLATES: Final = [UNMARKED, MARKED, THINKING, *_BUILTINS, *VARIANTS.values()]


@pytest.mark.slow
@given(CONVERSATIONS)
@examples(100)
def test_one_rendering_gives_the_spans_of_all_shorter_conversations(msgs: list[Msg]) -> None:
    for template in TEMPLATES:
        compare_methods(msgs, template)


_TURNS: Final = [
    msg
    for number in range(6)
    for msg in (
        Msg("Bob", f"Question {number}", "user"),
        Msg("Friday", [ThinkingBlock("Hm."), TextBlock(f"Answer {number}")], "assistant"),
    )
]


def _watch_renderings() -> Any:
    render = ChatTemplate.render_variables
    return patch.object(ChatTemplate, "render_variables", autospec=True, side_effect=render)


def _count_renderings(template: ChatTemplate, turns: int, **options: Any) -> int:
    """Returns how often a template is rendered for a conversation."""
    tokenize(Sample(_TURNS[:4]), template, encode, **options)  # the features of the template are then known
    with _watch_renderings() as render:
        tokenize(Sample(_TURNS[: 2 * turns]), template, encode, **options)
    return int(render.call_count)


_CASES: Final[dict[str, tuple[ChatTemplate, dict[str, Any]]]] = {
    "marked": (MARKED, {}),
    "unmarked": (UNMARKED, {}),
    "marked, without thinking": (MARKED, {"train_thinking": False}),
    "unmarked, without thinking": (UNMARKED, {"train_thinking": False}),
    "all": (UNMARKED, {"train_on": "all"}),
}


@each_case(("template", "options"), _CASES)
def test_the_number_of_renderings_does_not_grow(template: ChatTemplate, options: dict[str, Any]) -> None:
    assert _count_renderings(template, 6, **options) == _count_renderings(template, 2, **options) <= 6


@each_case(
    "name",
    ["reads the first message", "skips the first message", "numbers turns", "trims", "escapes"],
)
def test_common_templates_need_one_rendering(name: str) -> None:
    assert compare_methods(_TURNS, VARIANTS[name])


def test_the_thinking_of_a_reply_is_left_out_with_its_tags() -> None:
    thoughts = [ThinkingBlock("One."), ThinkingBlock("Two.")]
    reply = Msg("Friday", [*thoughts, TextBlock("There.")], "assistant")
    for msgs in ([_TURNS[0], reply], [_TURNS[0], reply, _TURNS[0], reply]):
        for template in (MARKED, UNMARKED):
            texts = list_trained(tokenize(Sample(msgs), template, encode, train_thinking=False))
            assert texts == ["There.<|im_end|>"] * (len(msgs) // 2)


def test_a_conversation_with_proven_replies_is_not_split() -> None:
    sample = Sample(_TURNS)
    with _watch_renderings() as render:
        assert split_rewritten(sample, UNMARKED) == [sample]
    assert render.call_count <= 3


@given(CONVERSATIONS, st.sampled_from(TEMPLATES))
@examples(60)
def test_the_start_of_a_text_that_a_trace_proves_is_the_start_of_each_shorter_text(
    msgs: list[Msg], template: ChatTemplate
) -> None:
    try:
        trace = template.trace(msgs)
    except AgentkitError:
        return
    whole = _try_render(template, msgs)
    if whole is None or trace.text != whole:
        return
    assert trace.ends == sorted(trace.ends)
    position = 0
    for index, msg in enumerate(msgs[:-1]):
        position += len(msg.tool_results) or 1
        proven = whole[: trace.ends[position - 1]]
        text = _try_render(template, msgs[: index + 1])
        assert text is None or text.startswith(proven), template.name


def _try_render(template: ChatTemplate, msgs: list[Msg]) -> str | None:
    try:
        return template.render(msgs, add_generation_prompt=True, validate=False).text
    except AgentkitError:
        return None
