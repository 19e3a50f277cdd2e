"""Refusals of a model: texts that are sent back in the message key or the content part in which they arrived."""

from __future__ import annotations

from typing import Any

from agentkit.provider_kit import OpaqueState, TextBlock, get_state_fields

__all__ = ["REFUSAL_FIELD", "REFUSAL_PART", "is_refusal", "is_refusal_part", "refusal_block", "refusal_part"]

REFUSAL_FIELD: dict[str, Any] = {"refusal": True}
"""State fields of a refusal in a message key (openai-python: ChatCompletionMessage.refusal)."""

REFUSAL_PART: dict[str, Any] = {"type": "refusal"}
"""State fields of a refusal in a content part.

openai-python: ResponseOutputRefusal, ChatCompletionContentPartRefusalParam.
"""


def refusal_block(text: str, state: OpaqueState) -> TextBlock:
    """Returns the text block for a refusal in a log."""
    return TextBlock(text, state=state, metadata={"refusal": True})


def is_refusal(block: TextBlock) -> bool:
    """Returns True if the text is sent back as a refusal."""
    return get_state_fields(block.state).get("refusal") is True or is_refusal_part(block)


def is_refusal_part(block: TextBlock) -> bool:
    """Returns True if the text is sent back as a content part of the type `refusal`."""
    return get_state_fields(block.state).get("type") == "refusal"


def refusal_part(block: TextBlock) -> dict[str, Any]:
    """Returns the content part for a refusal."""
    return {"type": "refusal", "refusal": block.text}
