"""`ChatVariables`: variables of a chat template, and the values that agentkit passes to the template."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from agentkit.jinja_environments.generation_spans import NO_MARKS
from agentkit.jinja_environments.limits import DICT

__all__ = ["ChatVariables", "REASONING_KEYS", "build_values"]

REASONING_KEYS: Final = ("reasoning_content", "thinking", "reasoning")
"""Keys of a message that may contain thinking. Templates read different keys."""
_REASONING_SET: Final = frozenset(REASONING_KEYS)


class ChatVariables(NamedTuple):
    """Variables of a chat template. All values are JSON values.

    Attributes:
        messages: Messages in the format of OpenAI Chat Completions. The arguments of tool calls are objects.
        tools: Declarations of tools. None if there are no tools.
        documents: Documents that the model may cite. None if there are no documents.
        add_generation_prompt: True to end the text with the start of an assistant turn.
        others: Further variables, such as special tokens and `enable_thinking`. A variable with the name of
            another attribute replaces this attribute.
    """

    messages: Sequence[Mapping[str, Any]]
    tools: Sequence[Mapping[str, Any]] | None = None
    documents: Sequence[Mapping[str, Any]] | None = None
    add_generation_prompt: bool = False
    others: Mapping[str, Any] = {}


def build_values(chat: ChatVariables) -> dict[str, Any]:
    """Returns the variables of a chat template by name, with the messages as transformers passes them.

    With these variables, the template prints no marks of spans.
    """
    return {
        "messages": [_prepare_message(message) for message in chat.messages],
        "tools": chat.tools,
        "documents": chat.documents,
        "add_generation_prompt": chat.add_generation_prompt,
        **chat.others,
        **NO_MARKS,
    }


def _prepare_message(message: Mapping[str, Any]) -> Mapping[str, Any]:
    if type(message) is DICT and None not in message.values() and _REASONING_SET.isdisjoint(message):
        return message  # needs no copy, because templates cannot change messages
    prepared = {key: value for key, value in message.items() if value is not None}
    for key in REASONING_KEYS:
        if key in prepared:
            return {"thinking": prepared[key], **prepared, "reasoning_content": prepared[key]}
    return prepared
