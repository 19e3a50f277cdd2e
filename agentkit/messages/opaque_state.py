"""Opaque state: data of a reply that only its issuer can read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from agentkit.messages.validation import JsonObject, Text, Validated, validated_dataclass

__all__ = ["OpaqueState", "get_state_fields"]


@validated_dataclass
class OpaqueState(Validated):
    """State that only the system that issued it can read. It is sent back to that system byte for byte.

    Attributes:
        issuer: Name of the system: `anthropic`, `gemini`, `openai`, `deepseek`, `vllm`, `ollama` or `dashscope`.
        signature: Signature of a thinking block (Anthropic).
        redacted_data: Encrypted thinking (Anthropic).
        encrypted_content: Encrypted reasoning item (OpenAI).
        thought_signature: Signature of any part, in standard base64 (Gemini).
        item_id: Id of an output item (OpenAI): of reasoning, of a message or call after it, of a generated image.
        model: Model that produced the state.
        prefix: `prefix_digest` of the request that the reply answers.
        fields: Further keys that the block had and is sent back with, such as `phase` (OpenAI messages), `caller`
            (Anthropic calls), and in turns of any role `detail` (images) and `fps` (videos). `audio` of a spoken
            reply has the `id` that its issuer accepts in place of the data, and the `transcript` for requests that
            cannot have audio.

    """

    issuer: Text
    signature: Text | None = None
    redacted_data: Text | None = None
    encrypted_content: Text | None = None
    thought_signature: Text | None = None
    item_id: Text | None = None
    model: Text | None = None
    prefix: Text | None = None
    fields: JsonObject | None = None

    @property
    def is_proof(self) -> bool:
        """True if the state proves that a model produced the block: user turns cannot have such state."""
        return any(getattr(self, name) is not None for name in _PROOFS)


def get_state_fields(state: OpaqueState | None) -> Mapping[str, Any]:
    """Returns the `fields` of the state of a block. Empty if the block has no state, or the state no fields."""
    return (state.fields if state else None) or {}


_PROOFS: Final = ("signature", "redacted_data", "encrypted_content", "thought_signature", "item_id")
