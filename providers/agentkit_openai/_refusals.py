"""What a model refuses to say: text, which goes back in the field or the part in which it came."""

from __future__ import annotations

from typing import Any

from agentkit.provider_kit import OpaqueState, TextBlock, get_state_fields

__all__ = ["REFUSAL_FIELD", "REFUSAL_PART", "is_refusal", "is_refusal_part", "refusal_block", "refusal_part"]

REFUSAL_FIELD: dict[str, Any] = {"refusal": True}
"""The `fields` of a refusal that stood beside the content (SDK: ChatCompletionMessage.refusal)."""

REFUSAL_PART: dict[str, Any] = {"type": "refusal"}
"""Those of one that was a part of it (SDK: ResponseOutputRefusal, ChatCompletionContentPartRefusalParam)."""


def refusal_block(text: str, state: OpaqueState) -> TextBlock:
    """A refusal of a log."""
    return TextBlock(text, state=state, metadata={"refusal": True})


def is_refusal(block: TextBlock) -> bool:
    """Whether a text goes back as a refusal."""
    return get_state_fields(block.state).get("refusal") is True or is_refusal_part(block)


def is_refusal_part(block: TextBlock) -> bool:
    """Whether a text goes back as a part of the type `refusal`."""
    return get_state_fields(block.state).get("type") == "refusal"


def refusal_part(block: TextBlock) -> dict[str, Any]:
    """The part."""
    return {"type": "refusal", "refusal": block.text}
