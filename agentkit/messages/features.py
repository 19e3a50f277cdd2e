"""What a message holds, as bits."""

from __future__ import annotations

import re
from typing import cast

from agentkit.messages.blocks import Block, TextBlock, ToolResultBlock, ToolUseBlock

__all__ = [
    "Feature",
    "RESERVED_NAMES",
    "said_traits",
    "scan_features",
]


class Feature:
    """What a message holds, as bits worked out once when it is made.

    Every later stage asks `msg.traits & mask` and lets the many messages that need nothing pass untouched.
    """

    BLANK = 1 << 0  # a text block, or the content string, is empty or white space
    EMPTY = 1 << 1  # no block at all
    THINKING = 1 << 2
    CALL = 1 << 3
    RESULT = 1 << 4
    IMAGE = 1 << 5
    AUDIO = 1 << 6
    VIDEO = 1 << 7
    DOCUMENT = 1 << 8
    INVALID = 1 << 9
    STATE = 1 << 10  # a text, of a result too, or a call carries opaque state
    RESULT_PARTS = 1 << 11  # a result whose output is a list
    RESULT_MEDIA = 1 << 12  # … that holds media, an opaque or an invalid block
    RESULT_ERROR = 1 << 13
    RESULT_BLANK = 1 << 14  # a result with no text, or with a blank text block
    RESULT_NAMELESS = 1 << 15
    ODD_ID = 1 << 16  # a call id that is not 1 to 40 of [A-Za-z0-9_-]
    ODD_NAME = 1 << 17  # a tool name that is not 1 to 63 of [A-Za-z0-9_-], begins with no letter or _
    ODD_ARGUMENTS = 1 << 18  # raw argument text that does not say what `input` says
    OTHER = 1 << 19  # anything but calls and results
    TEXT = 1 << 20
    REPEATED = 1 << 21  # calls of one id
    SYSTEM = 1 << 22  # role system, and no tool block: a system prompt, or a late system message
    ASSISTANT = 1 << 23  # the assistant's turn: calls, or its role without results

    RESERVED_NAME = 1 << 24  # a tool name that some wire keeps for itself
    OPAQUE = 1 << 25  # a part that only one wire knows

    TOOL = CALL | RESULT
    MEDIA = IMAGE | AUDIO | VIDEO | DOCUMENT


_MEDIA_TRAITS = {
    "image": Feature.IMAGE,
    "audio": Feature.AUDIO,
    "video": Feature.VIDEO,
    "document": Feature.DOCUMENT,
}

RESERVED_NAMES = frozenset({"search"})
"""Tool names that some wire keeps for itself."""

_plain_id = re.compile(r"[A-Za-z0-9_-]{1,40}", re.ASCII).fullmatch
_plain_name = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,62}", re.ASCII).fullmatch


def said_traits(text: str) -> int:
    """The traits of a text."""
    return Feature.TEXT | Feature.OTHER if _is_said(text) else Feature.OTHER | Feature.BLANK


def _is_said(text: str) -> bool:
    return bool(text) and not text.isspace()


def scan_features(blocks: tuple[Block, ...]) -> tuple[int, tuple[str, ...]]:
    """The traits of a content, and the ids of its calls and results in their order."""
    traits = 0 if blocks else Feature.EMPTY
    ids: list[str] = []
    for block in blocks:
        kind = block.type
        if kind == "text":
            traits |= _text_traits(cast("TextBlock", block))
        elif kind == "tool_use":
            ids.append(cast("ToolUseBlock", block).id)
            traits |= _call_traits(cast("ToolUseBlock", block))
        elif kind == "tool_result":
            ids.append(cast("ToolResultBlock", block).id)
            traits |= _result_traits(cast("ToolResultBlock", block))
        elif kind == "thinking":
            traits |= Feature.THINKING | Feature.OTHER
        elif kind == "invalid":
            traits |= Feature.INVALID | Feature.OTHER
        elif kind == "opaque":
            traits |= Feature.OPAQUE | Feature.OTHER
        else:
            traits |= _MEDIA_TRAITS[kind] | Feature.OTHER
    if traits & Feature.CALL and len(ids) > 1 and len({*ids}) < len(ids):
        traits |= Feature.REPEATED
    return traits, tuple(ids)


def _text_traits(block: TextBlock) -> int:
    traits = said_traits(block.text)
    return traits | Feature.STATE if block.state is not None else traits


def _call_traits(block: ToolUseBlock) -> int:
    traits = Feature.CALL
    if not _plain_id(block.id):
        traits |= Feature.ODD_ID
    if not _plain_name(block.name):
        traits |= Feature.ODD_NAME
    elif block.name in RESERVED_NAMES:
        traits |= Feature.RESERVED_NAME
    if block.raw_is_broken:
        traits |= Feature.ODD_ARGUMENTS
    return traits | Feature.STATE if block.state is not None else traits


def _result_traits(block: ToolResultBlock) -> int:
    traits = Feature.RESULT
    if not _plain_id(block.id):
        traits |= Feature.ODD_ID
    if not block.name:
        traits |= Feature.RESULT_NAMELESS
    elif not _plain_name(block.name):
        traits |= Feature.ODD_NAME
    elif block.name in RESERVED_NAMES:
        traits |= Feature.RESERVED_NAME
    if block.is_error:
        traits |= Feature.RESULT_ERROR
    if isinstance(block.output, str):
        return traits if _is_said(block.output) else traits | Feature.RESULT_BLANK
    traits |= Feature.RESULT_PARTS
    for item in block.output:
        if not isinstance(item, TextBlock):
            traits |= Feature.RESULT_MEDIA
        elif not _is_said(item.text):
            traits |= Feature.RESULT_BLANK
        elif item.state is not None:
            traits |= Feature.STATE
    return traits if block.output else traits | Feature.RESULT_BLANK
