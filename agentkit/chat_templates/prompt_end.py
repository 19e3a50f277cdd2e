"""`find_prompt_end`: finds the end of the prompt, where the last reply starts, in a rendered conversation."""

from __future__ import annotations

from collections.abc import Callable

from agentkit.errors import TemplateError
from agentkit.jinja_environments.chat_rendering import Rendering
from agentkit.jinja_environments.chat_variables import ChatVariables

__all__ = ["find_prompt_end"]


def find_prompt_end(
    rendering: Rendering, chat: ChatVariables, render: Callable[[ChatVariables], Rendering]
) -> int | None:
    """Returns the index at which the prompt ends (`RenderedChat.prompt_end`), or None if the index is unknown.

    The prompt is the text of the messages before the last reply, with a generation prompt. The prompt ends at the
    first span of the reply instead if the template ignores `add_generation_prompt`, or if the text of `rendering`
    does not start with the prompt.

    Args:
        rendering: Text that the template wrote for `chat`, and the spans of its replies.
        chat: Messages and other variables.
        render: Function that renders messages with the same template.
    """
    (text, spans), messages = rendering, chat.messages
    if chat.add_generation_prompt or messages[-1]["role"] != "assistant":
        return len(text)
    if len(messages) == 1:
        return spans[0][0] if spans else None
    earlier = chat._replace(messages=messages[:-1])
    try:
        prompt = render(earlier._replace(add_generation_prompt=True)).text
        is_start = text.startswith(prompt)
        next_span = next((first for first, end in spans if end > len(prompt)), 0)
        if is_start and next_span <= len(prompt):
            return len(prompt)
        start = render(earlier).text if spans else ""
    except TemplateError:
        return None
    if is_start and prompt != start:
        return len(prompt)
    start = start.rstrip()  # some templates end each text with a line break
    return next((first for first, _ in spans if first >= len(start)), None) if text.startswith(start) else None
