"""Blocks: the typed parts of a message.

Blocks are immutable and validated on creation. Blocks that also exist in AgentScope have the same class names and
field names as in AgentScope.
"""

from __future__ import annotations

from typing import Annotated, TypeAlias

from pydantic import Discriminator

from agentkit.messages.basic_blocks import (
    InvalidBlock,
    OpaqueBlock,
    TextBlock,
    ThinkingBlock,
    build_trusted_text,
    build_trusted_thinking,
)
from agentkit.messages.media_blocks import AudioBlock, DocumentBlock, ImageBlock, MediaBlock, VideoBlock
from agentkit.messages.opaque_state import OpaqueState
from agentkit.messages.tool_blocks import ResultItem, ToolResultBlock, ToolUseBlock, build_parsed_call

__all__ = [
    "AudioBlock",
    "Block",
    "DocumentBlock",
    "ImageBlock",
    "InvalidBlock",
    "MediaBlock",
    "OpaqueBlock",
    "OpaqueState",
    "ResultItem",
    "TextBlock",
    "ThinkingBlock",
    "ToolResultBlock",
    "ToolUseBlock",
    "VideoBlock",
    "build_parsed_call",
    "build_trusted_text",
    "build_trusted_thinking",
]

Block: TypeAlias = Annotated[
    TextBlock
    | ThinkingBlock
    | ToolUseBlock
    | ToolResultBlock
    | ImageBlock
    | AudioBlock
    | VideoBlock
    | DocumentBlock
    | OpaqueBlock
    | InvalidBlock,
    Discriminator("type"),
]
"""Any block of a message."""
