"""`find_prompt_end`: finds the end of the prompt, where the last reply starts, in a rendered conversation."""

from __future__ import annotations

from collections.abc import Callable

from agentkit.errors import TemplateError
from agentkit.jinja_environments.chat_rendering import ChatVariables, Rendering

__all__ = ["find_prompt_end"]


def find_prompt_end(
    rendering: Rendering, chat: ChatVariables, render: Callable[[ChatVariables], Rendering]
) -> int | None:
    """Returns the index at which the prompt ends. Returns None if the index is unknown.

    `RenderedChat.prompt_end` describes this index.

    Args:
        rendering: Text that the template wrote for `chat`, and its spans.
        chat: Messages and other variables.
        render: Function that renders messages with the same template.
    """
    messages = chat.messages
    if chat.add_generation_prompt or messages[-1]["role"] != "assistant":
        return len(rendering.text)
    if rendering.spans:
        return rendering.spans[-1][0]
    if len(messages) == 1:
        return None
    try:
        prompt = render(chat._replace(messages=messages[:-1], add_generation_prompt=True)).text
    except TemplateError:
        return None
    return len(prompt) if rendering.text.startswith(prompt) else None
