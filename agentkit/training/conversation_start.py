"""`find_start`: finds the end of the system messages and the tool declarations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from agentkit.errors import TemplateError
from agentkit.messages.message import Msg
from agentkit.tools.tool import ToolLike
from agentkit.training.rendered_sample import RenderedSample
from agentkit.training.text_differences import count_common_end, count_common_start

__all__ = ["find_start"]

_OTHER_TEXT: Final = "\U0010fffd"
"""Placeholder for the text of a message: a private-use character that messages usually do not contain."""


def find_start(rendered: RenderedSample) -> int:
    """Returns the position at which the system messages and the tool declarations end in the rendered text."""
    msgs = rendered.sample.msgs
    count = next((index for index, msg in enumerate(msgs) if msg.role != "system"), len(msgs))
    bos = rendered.template.special_tokens.get("bos_token") or ""
    start = len(bos) if rendered.text.startswith(bos) else 0
    written = _try_render(rendered, msgs[:count]) if count else None
    if written and msgs[0].text.strip() in written and rendered.text.startswith(written):
        return len(written)
    if count == len(msgs):
        return start
    if count or rendered.sample.tools:
        first = _try_render(rendered, msgs[: count + 1]) or ""
        other = _try_render(rendered, msgs[count : count + 1], tools=())
        end = len(first) - count_common_end(first, other or "")
        start = max(start, end) if other is not None and rendered.text.startswith(first[:end]) else start
    return max(start, _find_header(rendered, count, start))


def _find_header(rendered: RenderedSample, index: int, floor: int) -> int:
    """Returns the start of the header that the template writes before a message, such as `<|im_start|>user`.

    The headers of all roles begin with the same characters, such as `<|im_start|>`. The function therefore
    looks for the first characters of the generation prompt before the content of the message. Returns 0 if the
    header cannot be found.

    Args:
        rendered: Rendered sample.
        index: Index of the message.
        floor: Position in the rendered text. The header does not begin before this position.
    """
    other = _try_render(
        rendered, [*rendered.sample.msgs[:index], replace(rendered.sample.msgs[index], content=_OTHER_TEXT)]
    )
    end = count_common_start(rendered.text, other or "")
    generation_prompt = rendered.generation_prompts[0] if rendered.generation_prompts else ""
    for length in range(len(generation_prompt), 1, -1):
        position = rendered.text.rfind(generation_prompt[:length], floor, end)
        if position >= 0:
            return 0 if generation_prompt[:length].isalnum() else position
    return 0


def _try_render(
    rendered: RenderedSample, msgs: Sequence[Msg], tools: Sequence[ToolLike] | None = None
) -> str | None:
    try:
        return rendered.replace_msgs(msgs, tools).text
    except TemplateError:
        return None
