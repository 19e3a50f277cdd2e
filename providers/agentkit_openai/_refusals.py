"""Texts in which a model refuses to answer.

A refusal arrives in the message key `refusal`, or in a content part of the type `refusal`. The formatter sends the
refusal back in the same way.
"""

from __future__ import annotations

from typing import Any

from agentkit.provider_kit import FinishReason, OpaqueState, TextBlock, get_state_fields

__all__ = [
    "REFUSAL_FIELD",
    "REFUSAL_PART",
    "get_refusal_reason",
    "is_refusal",
    "is_refusal_part",
    "refusal_block",
    "refusal_part",
]

REFUSAL_FIELD: dict[str, Any] = {"refusal": True}
"""Opaque state fields of a text that arrived in the message key `refusal`.

Source: openai-python, ChatCompletionMessage.refusal.
"""

REFUSAL_PART: dict[str, Any] = {"type": "refusal"}
"""Opaque state fields of a text that arrived as a content part of the type `refusal`.

Source: openai-python, ResponseOutputRefusal and ChatCompletionContentPartRefusalParam.
"""


def refusal_block(text: str, state: OpaqueState) -> TextBlock:
    """Creates the text block for a refusal that was read from a log."""
    return TextBlock(text, state=state, metadata={"refusal": True})


def is_refusal(block: TextBlock) -> bool:
    """Returns True if a text block must be sent back as a refusal."""
    return get_state_fields(block.state).get("refusal") is True or is_refusal_part(block)


def is_refusal_part(block: TextBlock) -> bool:
    """Returns True if a text block must be sent back as a content part of the type `refusal`."""
    return block.state is not None and get_state_fields(block.state).get("type") == "refusal"


def refusal_part(block: TextBlock) -> dict[str, Any]:
    """Writes a refusal as a content part of the type `refusal`."""
    return {"type": "refusal", "refusal": block.text}


def get_refusal_reason(reason: FinishReason) -> FinishReason:
    """Returns the finish reason for a reply with a refusal: REFUSAL instead of STOP or OTHER.

    OpenAI sends no special finish reason for a refusal. A reason such as LENGTH is returned unchanged.
    """
    return FinishReason.REFUSAL if reason in (FinishReason.STOP, FinishReason.OTHER) else reason
