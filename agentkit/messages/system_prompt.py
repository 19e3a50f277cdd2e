"""Finds the system prompt of a conversation: the system messages at its start."""

from __future__ import annotations

from collections.abc import Sequence

from agentkit.messages.features import Feature
from agentkit.messages.message import Msg

__all__ = ["prompt_length"]


def prompt_length(msgs: Sequence[Msg]) -> int:
    """Returns the number of messages that form the system prompt.

    The system prompt consists of all messages before the first message with tool blocks or with a role other than
    `system`.
    """
    for index, msg in enumerate(msgs):
        if not msg.features & Feature.SYSTEM:
            return index
    return len(msgs)
