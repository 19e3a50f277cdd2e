"""Conversations whose replies are hard to find, and the comparison of texts of their prefixes."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import accumulate
from random import Random
from typing import Any, Final

from hypothesis import strategies as st

from agentkit import (
    AgentkitError,
    Block,
    ImageBlock,
    Msg,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
    URLSource,
)
from agentkit.chat_templates import ChatTemplate
from agentkit.tools.tool import as_tools

__all__ = ["CONVERSATIONS", "check_prefixes"]

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


_TOOLS: Final = as_tools([look])


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


def check_prefixes(msgs: list[Msg], template: ChatTemplate, random: Random) -> int:
    """Compares the texts of all prefixes of a conversation with those of `render_text`.

    The order of the prefixes is random, because a rendering uses records of earlier renderings.

    Returns:
        The number of texts.
    """
    options: dict[str, Any] = {"tools": _TOOLS if any(msg.tool_uses for msg in msgs) else []}
    counts = [0, *accumulate(len(msg.tool_results) or 1 for msg in msgs)]
    cases = [(length, is_open) for length in range(1, len(msgs) + 1) for is_open in (False, True)]
    random.shuffle(cases)
    texts = {case: _try_render(partial(_render, template, msgs, *case, options)) for case in cases}
    whole = texts.get((len(msgs), False)) or _try_render(
        partial(_render, template, msgs, len(msgs), False, options)
    )
    renderer = template.create_prefix_renderer(msgs, **options)
    for length, is_open in cases:
        text = _try_render(partial(renderer.render, counts[length], add_generation_prompt=is_open))
        assert text == texts[length, is_open], (template.name, msgs, cases)
    for length, is_open in random.sample(cases, len(cases)):
        expected = texts[length, is_open]
        for text in () if expected.startswith("error: ") else (whole, f"{expected}!"):
            end = renderer.find_end(text, counts[length], add_generation_prompt=is_open)
            assert end == (len(expected) if text.startswith(expected) else None), (template.name, msgs, cases)
    return len(cases)


def _render(template: ChatTemplate, msgs: list[Msg], length: int, is_open: bool, options: dict[str, Any]) -> str:
    return template.render_text(msgs[:length], add_generation_prompt=is_open, **options).text


def _try_render(render: Callable[[], str]) -> str:
    try:
        return render()
    except AgentkitError as error:
        return f"error: {error}"
