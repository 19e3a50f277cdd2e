"""Choice between OpenAI's two roles for system messages, `system` and `developer`."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from agentkit.provider_kit import Block, Feature, Msg, OpaqueState, TextBlock, get_state_fields

__all__ = ["get_role", "mark_as_developer"]

_DEVELOPER: dict[str, Any] = {"role": "developer"}
"""Fields of the opaque state of the first text in a developer message.

Requests to targets without the role `developer` contain a system message instead.
"""


def mark_as_developer(blocks: list[Block], issuer: str) -> list[Block]:
    """Returns the blocks of a developer message. The opaque state of the first text records the role."""
    for index, block in enumerate(blocks):
        if isinstance(block, TextBlock):
            state = OpaqueState(issuer, fields={**get_state_fields(block.state), **_DEVELOPER})
            return [*blocks[:index], replace(block, state=state), *blocks[index + 1 :]]
    return blocks


def get_role(msg: Msg) -> str:
    """Returns the role of a message in a request to OpenAI.

    A system message has the role `developer` if the opaque state of a text in it records that role (openai-python:
    ChatCompletionDeveloperMessageParam, EasyInputMessageParam).
    """
    if msg.role != "system" or not msg.features & Feature.STATE:
        return msg.role
    states = (block.state for block in msg.blocks if isinstance(block, TextBlock) and block.state)
    return "developer" if any(get_state_fields(state).get("role") == "developer" for state in states) else "system"
