"""Blocks for text and thinking, for content that only one API understands, and for content that cannot be read."""

from __future__ import annotations

from dataclasses import field
from typing import Any, Literal

from agentkit.messages.opaque_state import OpaqueState
from agentkit.messages.validation import (
    ORDINARY_BUILDERS,
    Json,
    JsonObject,
    Text,
    Validated,
    is_text,
    slot_setter,
    validated_dataclass,
)

__all__ = [
    "BlockBase",
    "InvalidBlock",
    "OpaqueBlock",
    "TextBlock",
    "ThinkingBlock",
    "build_trusted_text",
    "build_trusted_thinking",
]


@validated_dataclass
class BlockBase(Validated):
    """Base class of all blocks.

    Attributes:
        metadata: JSON object with data of the application. Requests never contain the metadata.
    """

    metadata: JsonObject | None = field(default=None, kw_only=True, repr=False)


@validated_dataclass
class TextBlock(BlockBase):
    """Block for text.

    Attributes:
        text: The text.
        state: Opaque state, such as a signature or additional keys of the provider's block. Gemini signs text
            parts.
    """

    text: Text
    type: Literal["text"] = "text"
    state: OpaqueState | None = None


def build_trusted_text(text: str, state: OpaqueState | None = None) -> TextBlock:
    """Creates a text block without validation. The caller guarantees that UTF-8 can encode the text."""
    block = _new(TextBlock)
    _set_text(block, text)
    _set_type(block, "text")
    _set_state(block, state)
    _set_metadata(block, None)
    return block


def _build_ordinary_text(text: Any, *, state: Any = None, metadata: Any = None) -> TextBlock | None:
    return build_trusted_text(text) if is_text(text) and state is None is metadata else None


ORDINARY_BUILDERS[TextBlock] = _build_ordinary_text
_new = object.__new__
_set_text = slot_setter(TextBlock, "text")
_set_type = slot_setter(TextBlock, "type")
_set_state = slot_setter(TextBlock, "state")
_set_metadata = slot_setter(BlockBase, "metadata")


@validated_dataclass
class ThinkingBlock(BlockBase):
    """Block for the reasoning of a model.

    Attributes:
        thinking: Readable text of the reasoning. Empty if the provider returned no readable text.
        state: Opaque state, such as a signature, by which the provider verifies the reasoning in later requests.
    """

    thinking: Text
    state: OpaqueState | None = None
    type: Literal["thinking"] = "thinking"


def build_trusted_thinking(thinking: str, state: OpaqueState | None = None) -> ThinkingBlock:
    """Creates a thinking block without validation. The caller guarantees that UTF-8 can encode the text."""
    block = _new(ThinkingBlock)
    _set_thinking(block, thinking)
    _set_thinking_state(block, state)
    _set_thinking_type(block, "thinking")
    _set_metadata(block, None)
    return block


def _build_ordinary_thinking(thinking: Any, state: Any = None, *, metadata: Any = None) -> ThinkingBlock | None:
    if not is_text(thinking) or not (state is None or type(state) is OpaqueState) or metadata is not None:
        return None
    return build_trusted_thinking(thinking, state)


ORDINARY_BUILDERS[ThinkingBlock] = _build_ordinary_thinking
_set_thinking = slot_setter(ThinkingBlock, "thinking")
_set_thinking_state = slot_setter(ThinkingBlock, "state")
_set_thinking_type = slot_setter(ThinkingBlock, "type")


@validated_dataclass
class OpaqueBlock(BlockBase):
    """Block for content that only one provider's API understands, such as a file id or the result of a web search.

    Requests to that API contain `data` unchanged. Requests to any other API omit the block. The ledger records an
    omission from a user turn, a system turn or a tool result as a loss. An omission from an assistant turn is not
    a loss.

    Attributes:
        wire: Name of the wire format whose requests may contain `data`, such as `openai-responses`.
        data: Content in that wire format.
    """

    wire: Text
    data: JsonObject
    type: Literal["opaque"] = "opaque"


@validated_dataclass
class InvalidBlock(BlockBase):
    """Placeholder for a stored block that cannot be read. The rest of the conversation can still be loaded.

    Attributes:
        data: The stored block, unchanged. If JSON cannot represent the stored block, its repr.
        reason: Reason why the block is invalid.
        place: Path of the block in the stored conversation, such as `messages[3].content[1]`.
    """

    data: Json
    reason: Text
    place: Text
    type: Literal["invalid"] = "invalid"
