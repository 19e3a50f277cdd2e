"""Opaque state: data in a reply, such as a signature, that only the issuer of the data can read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from agentkit.messages.validation import JsonObject, Text, Validated, validated_dataclass

__all__ = ["OpaqueState", "get_state_fields"]


@validated_dataclass
class OpaqueState(Validated):
    """Opaque state of a block: data, such as a signature, that only the issuer of the data can read.

    The issuer is the system that produced the data. Later requests to the issuer contain the data unchanged.

    Attributes:
        issuer: Name of the issuer, such as `anthropic`, `gemini`, `openai`, `deepseek`, `vllm`, `ollama` or
            `dashscope`.
        signature: Signature of a thinking block (Anthropic).
        redacted_data: Encrypted thinking (Anthropic).
        encrypted_content: Encrypted reasoning item (OpenAI).
        thought_signature: Signature of any part, in standard base64 (Gemini).
        item_id: Id of an output item (OpenAI), such as a reasoning item, a message, a tool call or a generated
            image.
        model: Name of the model that produced the state.
        prefix: Digest (hash) of the request whose reply contained the state, computed by `prefix_digest`.
        fields: Further keys of the provider's block, which later requests contain unchanged. Examples are `phase`
            (OpenAI messages), `caller` (Anthropic tool calls), `detail` (images) and `fps` (videos). For a spoken
            reply, `audio` has the `id` that later requests contain instead of the audio data. `audio` also has the
            `transcript`, for requests that cannot contain audio.
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
        """True if the state proves that a model produced the block. User turns cannot contain such a proof."""
        return any(getattr(self, name) is not None for name in _PROOFS)


def get_state_fields(state: OpaqueState | None) -> Mapping[str, Any]:
    """Returns the `fields` of an opaque state, or an empty mapping if there is no state or no `fields`."""
    return (state.fields if state else None) or {}


_PROOFS: Final = ("signature", "redacted_data", "encrypted_content", "thought_signature", "item_id")
