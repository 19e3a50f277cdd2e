"""Conversations whose replies are hard to find, and the comparison of the two methods that find them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from hypothesis import strategies as st

from agentkit import (
    AgentkitError,
    Block,
    ImageBlock,
    Msg,
    TemplateError,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
    URLSource,
)
from agentkit.chat_templates import ChatTemplate
from agentkit.training import Sample
from agentkit.training.block_spans import find_blocks, find_thinking
from agentkit.training.reply_spans import ReplySpans
from agentkit.training.text_spans import Span

__all__ = ["CONVERSATIONS", "compare_methods"]

_TEXTS: Final = st.sampled_from(
    [
        "",
        "Yes.",
        "There.",
        " \n There. \n",
        "assistant\n",
        "<|im_start|>assistant\n",
        "Hm.<|im_end|>",
        "<think>\n",
        "</s>",
        "<start_of_turn>model\n",
        '"quoted" \\n {{ text }}',
        "Grüße, 谢谢 🙂\u2028",
        "\U0010fffd\U0010ff00",
    ]
)
_IMAGE: Final = ImageBlock(URLSource("https://example.org/a.png"))


def look(q: int) -> str:
    """Looks.

    Args:
        q: Question.
    """
    return str(q)


def _build_call(text: str, thinking: str, argument: str) -> list[Msg]:
    call = ToolUseBlock("abcde1234", "look", {"q": argument})
    reply = Msg("Friday", [*_list_blocks(text, thinking), call], "assistant")
    result = Msg("tool", [ToolResultBlock("abcde1234", "look", argument or "found")], "system")
    return [reply, result]


def _list_blocks(text: str, thinking: str) -> list[Block]:
    return [*([ThinkingBlock(thinking)] if thinking else []), *([TextBlock(text)] if text else [])]


def _build_reply(text: str, thinking: str) -> list[Msg]:
    return [Msg("Friday", _list_blocks(text, thinking) or "", "assistant")]


def _build_turn(text: str) -> list[Msg]:
    return [Msg("Bob", "Where?", "user"), Msg("Friday", text, "assistant")]


def _build_question(text: str, has_image: bool) -> list[Msg]:
    return [Msg("Bob", [*([_IMAGE] if has_image else []), TextBlock(text)], "user")]


def _join(parts: list[list[Msg]], system: str | None) -> list[Msg]:
    first = [] if system is None else [Msg("system", system, "system")]
    return [*first, *(msg for part in parts for msg in part)]


_QUESTIONS: Final = st.builds(_build_question, _TEXTS, st.sampled_from([False, False, True]))
_REPLIES: Final = st.one_of(
    st.builds(_build_reply, _TEXTS, st.just("")),
    st.builds(_build_reply, _TEXTS, _TEXTS),
    st.builds(_build_call, _TEXTS, _TEXTS, _TEXTS),
)
_TURNS: Final = st.tuples(_QUESTIONS, _REPLIES).map(lambda pair: pair[0] + pair[1])
_PLAIN: Final = st.builds(_build_turn, st.sampled_from(["There.", "Yes."]))
CONVERSATIONS: Final = st.builds(
    _join,
    st.one_of(
        st.lists(_PLAIN, min_size=2, max_size=4),
        st.lists(_TURNS, min_size=2, max_size=4),
        st.lists(st.one_of(_QUESTIONS, _REPLIES), min_size=2, max_size=6),
    ),
    st.sampled_from([None, "Be brief.", "There."]),
)
"""Conversations with tools, thinking, media, empty and equal texts, and texts that templates write."""


def compare_methods(msgs: list[Msg], template: ChatTemplate) -> bool:
    """Compares the spans from one rendering with the spans from a rendering of each shorter conversation.

    Returns:
        True if one rendering proves where the replies are.
    """
    has_calls = any(msg.tool_uses for msg in msgs)
    traced, exact = (ReplySpans(Sample(msgs, [look] if has_calls else ()), template) for _ in range(2))
    vars(exact)["_traced"] = {}
    facts = _list_facts(traced, find_thinking), _list_facts(exact, _find_each_thinking)
    assert facts[0] == facts[1], (template.name, msgs)
    return bool(vars(traced).get("_traced"))


def _list_facts(spans: ReplySpans, find: Callable[[ReplySpans], list[Span]]) -> Any:
    """Returns the texts of replies, the replies that no later message changes, and the texts of thinking."""
    facts: list[Any] = []
    try:
        facts.append(spans.text)
    except TemplateError as error:
        return str(error)
    steps: tuple[Callable[[], object], ...] = (
        spans.find_all_replies,
        lambda: [spans.is_unchanged(index) for index in spans.sample.replies],
        lambda: find(spans),
    )
    for step in steps:
        try:
            facts.append(step())
        except AgentkitError as error:
            facts.append(str(error))
    return facts


def _find_each_thinking(spans: ReplySpans) -> list[Span]:
    """Returns the texts that the template writes because of thinking, with one rendering for each of them."""
    places = [
        (index, number)
        for index in spans.all_replies
        for number, block in enumerate(spans.sample.msgs[index].blocks)
        if block.type == "thinking"
    ]
    return [span for index, number in places for span in find_blocks(spans, index, [number]).values()]
