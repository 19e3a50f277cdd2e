"""Properties of chat templates: no content disappears, and equal inputs give equal texts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from hypothesis import given
from hypothesis import strategies as st

from agentkit import Msg, MultiAgentHistory, TextBlock, ThinkingBlock, ToolResultBlock
from agentkit.chat_templates import ChatTemplate
from tests.chat_templates.test_template_report import ALTERNATING, CALLS, EITHER, PARTS, THINKING
from tests.conversations import add_markers, histories
from tests.profiles import examples

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
