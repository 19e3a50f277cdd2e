"""Blocks of text and thinking, blocks that only one API understands, and unreadable blocks."""

from __future__ import annotations

from dataclasses import field
from typing import Literal, cast

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
]


@validated_dataclass
class BlockBase(Validated):
    """Base class of blocks.

    Attributes:
        metadata: JSON object of the application. It is never sent to a provider.

    """

    metadata: JsonObject | None = field(default=None, kw_only=True, repr=False)


@validated_dataclass
class TextBlock(BlockBase):
    """Block of text.

    Attributes:
        state: Signature of the text (Gemini signs text parts), or further keys of the native text part.

    """

    text: Text
    type: Literal["text"] = "text"
    state: OpaqueState | None = None


def build_trusted_text(text: str) -> TextBlock:
    """Returns a text block without validation, for text that was validated before."""
    block = _new(TextBlock)
    _set_text(block, text)
    _set_type(block, "text")
    _set_state(block, None)
    _set_metadata(block, None)
    return block


def _build_ordinary_text(text: object) -> TextBlock | None:
    return build_trusted_text(cast("str", text)) if is_text(text) else None


ORDINARY_BUILDERS[TextBlock] = _build_ordinary_text
_new = object.__new__
_set_text = slot_setter(TextBlock, "text")
_set_type = slot_setter(TextBlock, "type")
_set_state = slot_setter(TextBlock, "state")
_set_metadata = slot_setter(BlockBase, "metadata")


@validated_dataclass
class ThinkingBlock(BlockBase):
    """Block of reasoning of a model.

    Attributes:
        thinking: Readable text; may be empty.
        state: Opaque state that proves the reasoning to its issuer.

    """

    thinking: Text
    state: OpaqueState | None = None
    type: Literal["thinking"] = "thinking"


@validated_dataclass
class OpaqueBlock(BlockBase):
    """Content that only one provider's API understands, such as a search that the provider ran, or a file id.

    Requests to that API contain `data` unchanged. Requests to any other API omit the block. That is a loss in user
    turns, in system turns and in tool results, but not in assistant turns.

    Attributes:
        wire: Name of the provider whose requests may contain `data`, such as `openai-responses`.
        data: Native content.

    """

    wire: Text
    data: JsonObject
    type: Literal["opaque"] = "opaque"


@validated_dataclass
class InvalidBlock(BlockBase):
    """Stored block that could not be read. The other blocks of its history remain readable.

    Attributes:
        data: The stored block, unchanged.
        reason: Reason why the block is invalid.
        place: Place of the block in the stored history.

    """

    data: Json
    reason: Text
    place: Text
    type: Literal["invalid"] = "invalid"
