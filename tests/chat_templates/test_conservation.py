"""Properties of chat templates: no content disappears, and equal inputs give equal texts."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final

from hypothesis import given
from hypothesis import strategies as st

from agentkit import Msg, MultiAgentHistory, TextBlock, ThinkingBlock, ToolResultBlock, ToolUseBlock
from agentkit.chat_templates import ChatTemplate
from tests.chat_templates.test_template_report import ALTERNATING, CALLS, EITHER, PARTS, THINKING
from tests.conversations import add_markers, histories
from tests.profiles import examples

FORGETFUL: Final = (
    "{% for message in messages %}<{{ message.role }}>"
    "{% if loop.last and message.thinking %}<think>{{ message.thinking }}</think>{% endif %}"
    "{{ message.content | trim }}{% endfor %}"
)
"""Template that writes only the thinking of the last message."""

TEMPLATES: Final = [
    *(ChatTemplate.builtin(name) for name in ("zephyr", "chatml", "llama_2", "torchtune_chatml")),
    *map(ChatTemplate, (CALLS, PARTS, THINKING)),
    ChatTemplate.from_tags({"user": ("U: ", "\n")}),
]


def list_texts(msgs: list[Msg]) -> Iterator[tuple[str, str]]:
    """Yields the place and the text of each text, thinking and tool result."""
    for index, msg in enumerate(msgs):
        for number, block in enumerate(msg.blocks):
            place = f"msgs[{index}].content[{number}]"
            if isinstance(block, TextBlock):
                yield place, block.text
            elif isinstance(block, ThinkingBlock):
                yield place, block.thinking
            elif isinstance(block, ToolResultBlock):
                yield place, block.text


@examples(300)
@given(st.sampled_from(TEMPLATES), histories(5))
def test_each_text_is_in_the_rendering_or_omitted(template: ChatTemplate, drawn: list[Msg]) -> None:
    msgs, _ = add_markers(drawn)
    rendered = template.render(msgs, validate=False)
    omitted = {item.place for item in rendered.omitted}
    for place, text in list_texts(msgs):
        assert place in omitted or all(line.strip() in rendered.text for line in text.split("\n")), place
    assert template.render(msgs, validate=False) == rendered
    ends = [end for span in rendered.spans for end in span]
    assert ends == sorted(ends)


_WORDS: Final = ("4", "It is 4.", "user", "think", "It is", "No. 4 it is.", "\U000f0000 it \U00100000")


@st.composite
def repeated_texts(draw: st.DrawFn) -> list[Msg]:
    """Conversations whose texts are parts of each other, and of the template."""
    words = st.sampled_from(_WORDS)
    msgs = [Msg("system", draw(words), "system")] if draw(st.booleans()) else []
    for number in range(draw(st.integers(1, 3))):
        blocks: list[Any] = [TextBlock(draw(words))]
        if draw(st.booleans()):
            blocks.insert(0, ThinkingBlock(draw(words)))
        msgs += [Msg("Bob", draw(words), "user"), Msg("Friday", blocks, "assistant")]
        if draw(st.booleans()):
            msgs[-1] = replace(
                msgs[-1], content=(*blocks, ToolUseBlock(f"call{number}", "get", {"x": draw(words)}))
            )
            msgs.append(Msg("tool", [ToolResultBlock(f"call{number}", "get", draw(words))], "user"))
    return msgs


def replace_text(msgs: list[Msg], index: int, number: int, text: str) -> list[Msg]:
    """Returns messages in which the text of one block is another text."""
    blocks = list(msgs[index].blocks)
    match blocks[number]:
        case TextBlock() as block:
            blocks[number] = replace(block, text=text)
        case ThinkingBlock() as block:
            blocks[number] = replace(block, thinking=text)
        case ToolResultBlock() as block:
            blocks[number] = replace(block, output=text)
        case _:
            pass
    return [*msgs[:index], replace(msgs[index], content=tuple(blocks)), *msgs[index + 1 :]]


@examples(200)
@given(st.sampled_from([*TEMPLATES, ChatTemplate(FORGETFUL)]), repeated_texts())
def test_a_text_that_stands_in_another_text_is_omitted_if_the_template_does_not_write_it(
    template: ChatTemplate, msgs: list[Msg]
) -> None:
    omitted = {item.place for item in template.render(msgs, validate=False).omitted}
    for place, _ in list_texts(msgs):
        index, number = map(int, re.findall(r"\d+", place))
        replaced = replace_text(msgs, index, number, "A text that stands nowhere else.")
        is_written = "A text that stands nowhere else." in template.render(replaced, validate=False).text
        assert (place in omitted) is not is_written, place


@examples(200)
@given(st.sampled_from([*TEMPLATES, ChatTemplate(ALTERNATING), ChatTemplate(EITHER)]), histories(5), st.booleans())
def test_each_text_is_in_the_prompt_or_in_the_ledger(
    template: ChatTemplate, drawn: list[Msg], has_viewer: bool
) -> None:
    msgs, _ = add_markers(drawn)
    formatter = template.formatter(history=MultiAgentHistory(viewer="Friday") if has_viewer else None)
    plan = formatter.lower(msgs)
    assert formatter.lower(msgs).request == plan.request
    carried = {
        entry.place for entry in plan.ledger.entries if entry.disposition.word in ("carried", "merged", "moved")
    }
    for place, text in list_texts(msgs):
        words = [word for word in text.split() if word.isalnum()]
        assert place not in carried or all(word in plan.request["prompt"] for word in words), place
