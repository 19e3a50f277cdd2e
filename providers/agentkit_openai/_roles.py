"""The two names that OpenAI has for the role of a system message."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from agentkit.provider_kit import Block, Feature, Msg, OpaqueState, TextBlock, get_state_fields

__all__ = ["as_developers", "role_of"]

DEVELOPER: dict[str, Any] = {"role": "developer"}
"""What the state of such a message's first text has in its `fields`: any other target gets a system message."""


def as_developers(blocks: list[Block], issuer: str) -> list[Block]:
    """The blocks of a developer's message, marked as one."""
    at = next((at for at, block in enumerate(blocks) if isinstance(block, TextBlock)), None)
    if at is None:
        return blocks
    block = blocks[at]
    assert isinstance(block, TextBlock)
    fields = {**get_state_fields(block.state), **DEVELOPER}
    return [
        *blocks[:at],
        replace(block, state=OpaqueState(issuer, fields=fields)),
        *blocks[at + 1 :],
    ]


def role_of(msg: Msg) -> str:
    """The role that a message goes back in (SDK: ChatCompletionDeveloperMessageParam, EasyInputMessageParam)."""
    if msg.role != "system" or not msg.features & Feature.STATE:
        return msg.role
    states = (block.state for block in msg.blocks if isinstance(block, TextBlock) and block.state)
    return "developer" if any(get_state_fields(state).get("role") == "developer" for state in states) else "system"
