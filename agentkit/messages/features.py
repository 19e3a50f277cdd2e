"""Features of a message: properties such as the presence of images, stored as bits of an integer.

The features of a message are computed once. Each pipeline stage tests `msg.features & mask` to skip the messages
that the stage does not change.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

from agentkit.messages.blocks import Block, TextBlock, ToolResultBlock, ToolUseBlock

__all__ = [
    "Feature",
    "RESERVED_NAMES",
    "scan_features",
    "scan_text",
]


class Feature:
    """Bits of `Msg.features`. Each bit represents one property of a message."""

    BLANK = 1 << 0  # set if the content string or a text block is empty or has only white space
    EMPTY = 1 << 1  # set if the message has no blocks
    THINKING = 1 << 2
    CALL = 1 << 3
    RESULT = 1 << 4
    IMAGE = 1 << 5
    AUDIO = 1 << 6
    VIDEO = 1 << 7
    DOCUMENT = 1 << 8
    INVALID = 1 << 9
    STATE = 1 << 10  # set if a text block (also inside a tool result) or a tool call has opaque state
    RESULT_PARTS = 1 << 11  # set if the output of a tool result is a list
    RESULT_MEDIA = 1 << 12  # set if the output of a tool result has a media, opaque or invalid block
    RESULT_ERROR = 1 << 13
    RESULT_BLANK = 1 << 14  # set if the output of a tool result is blank or empty, or has a blank text block
    RESULT_NAMELESS = 1 << 15
    ODD_ID = 1 << 16  # set if a call id does not match [A-Za-z0-9_-]{1,40}
    ODD_NAME = 1 << 17  # set if a tool name does not match [A-Za-z_][A-Za-z0-9_-]{0,62}
    ODD_ARGUMENTS = 1 << 18  # set if `raw_input` of a tool call is not the JSON text of `input`
    OTHER = 1 << 19  # set if the message has blocks other than tool calls and tool results
    TEXT = 1 << 20
    REPEATED = 1 << 21  # set if two tool calls of the message have the same id
    SYSTEM = 1 << 22  # set if the message has the role `system` and no tool blocks
    ASSISTANT = 1 << 23  # set if the message has tool calls, or has the role `assistant` and no tool results
    RESERVED_NAME = 1 << 24  # set if a tool name is in RESERVED_NAMES
    OPAQUE = 1 << 25  # set if the message has opaque blocks

    TOOL = CALL | RESULT
    MEDIA = IMAGE | AUDIO | VIDEO | DOCUMENT


_MEDIA_FEATURES = {
    "image": Feature.IMAGE,
    "audio": Feature.AUDIO,
    "video": Feature.VIDEO,
    "document": Feature.DOCUMENT,
}

RESERVED_NAMES = frozenset({"search"})
"""Tool names that at least one API reserves for its own tools."""

_plain_id = re.compile(r"[A-Za-z0-9_-]{1,40}", re.ASCII).fullmatch
_plain_name = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,62}", re.ASCII).fullmatch


_TEXT = Feature.TEXT | Feature.OTHER
_BLANK = Feature.BLANK | Feature.OTHER


def scan_text(text: str) -> int:
    """Returns the `Feature` bits of content that is a string, without the bits that depend on the role."""
    return _TEXT if text and not text.isspace() else _BLANK


def _has_text(text: str) -> bool:
    return bool(text) and not text.isspace()


def scan_features(blocks: tuple[Block, ...]) -> int:
    """Returns the `Feature` bits of a sequence of blocks, without the bits that depend on the role."""
    features = 0 if blocks else Feature.EMPTY
    call_ids: list[str] = []
    block: Any  # Any, because a cast to the type of each block would take time
    for block in blocks:
        block_type = block.type
        if block_type == "text":
            text = block.text
            features |= _TEXT if text and not text.isspace() else _BLANK
            if block.state is not None:
                features |= Feature.STATE
        elif block_type == "tool_use":
            call_ids.append(block.id)
            features |= _call_features(block)
        elif block_type == "tool_result":
            features |= _result_features(block)
        elif block_type == "thinking":
            features |= Feature.THINKING | Feature.OTHER
        elif block_type == "invalid":
            features |= Feature.INVALID | Feature.OTHER
        elif block_type == "opaque":
            features |= Feature.OPAQUE | Feature.OTHER
        else:
            features |= _MEDIA_FEATURES[block_type] | Feature.OTHER
    if len(call_ids) > 1 and len({*call_ids}) < len(call_ids):
        features |= Feature.REPEATED
    return features


def _call_features(block: ToolUseBlock) -> int:
    features = _scan_name(block.name) | Feature.CALL
    if not _plain_id(block.id):
        features |= Feature.ODD_ID
    if block.raw_is_broken:
        features |= Feature.ODD_ARGUMENTS
    return features | Feature.STATE if block.state is not None else features


@lru_cache(maxsize=256)  # most conversations call a few tools again and again
def _scan_name(tool_name: str) -> int:
    if not _plain_name(tool_name):
        return Feature.ODD_NAME
    return Feature.RESERVED_NAME if tool_name in RESERVED_NAMES else 0


def _result_features(block: ToolResultBlock) -> int:
    features = _scan_name(block.name or "none") | Feature.RESULT
    if not _plain_id(block.id):
        features |= Feature.ODD_ID
    if not block.name:
        features |= Feature.RESULT_NAMELESS
    if block.is_error:
        features |= Feature.RESULT_ERROR
    if isinstance(block.output, str):
        return features if _has_text(block.output) else features | Feature.RESULT_BLANK
    features |= Feature.RESULT_PARTS
    for item in block.output:
        if not isinstance(item, TextBlock):
            features |= Feature.RESULT_MEDIA
        elif not _has_text(item.text):
            features |= Feature.RESULT_BLANK
        elif item.state is not None:
            features |= Feature.STATE
    return features if block.output else features | Feature.RESULT_BLANK
