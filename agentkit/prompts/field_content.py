"""`write_content`: writes the value of a field as message content, with media blocks between the texts.

A list or a pydantic model is written as JSON. As in DSPy 3.4.1, each media block splits this JSON text. For
example, a list of two images becomes the text `["`, the first image, the text `", "`, the second image, and the
text `"]`. A `Tool` becomes a sentence about the tool, and tool calls become JSON without ids.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Final, TypeAlias, cast

from agentkit.errors import OptionError
from agentkit.messages.blocks import Block, MediaBlock, TextBlock, ToolUseBlock
from agentkit.prompts.fields import SignatureField
from agentkit.prompts.media_replacement import PLAIN_TYPES, replace_media
from agentkit.prompts.tool_texts import as_tool_calls
from agentkit.prompts.type_names import is_tool_calls
from agentkit.prompts.value_texts import write_value

__all__ = ["Segment", "join_segments", "write_content"]

Segment: TypeAlias = str | MediaBlock
"""Part of the content of a message: a text or a media block."""

_MARKS: Final = tuple(map(chr, range(0xE000, 0xF900)))
"""Private use characters of Unicode.

`write_content` marks the media blocks in a value with one of these characters that the value does not contain.
"""


def write_content(field: SignatureField, value: object) -> list[Segment]:
    """Writes the value of a field as texts and media blocks.

    Raises:
        OptionError: The value cannot be written as a text.
    """
    if type(value) in PLAIN_TYPES:  # fast path: plain values contain no media and no tools
        return [write_value(value, field.annotation)]
    if is_tool_calls(field.type) and isinstance(value, list | tuple):
        return [json.dumps(as_tool_calls(cast("Sequence[ToolUseBlock]", value)), ensure_ascii=False)]
    for mark in _MARKS:
        media: list[MediaBlock] = []
        try:
            replaced = replace_media(value, partial(_mark, media, mark))
        except RecursionError:
            reason = "the value is nested too deeply"
            raise OptionError(field.name, reason, "Pass a value with fewer levels.") from None
        if replaced is value:
            return [write_value(value, field.annotation)]
        text = replaced if isinstance(replaced, str) else write_value(replaced, Any)
        pieces = text.split(mark)
        if len(pieces) == 2 * len(media) + 1:
            return [media[int(piece)] if index % 2 else piece for index, piece in enumerate(pieces)]
    reason = "the value contains all characters from U+E000 to U+F8FF, so none is left to mark the media"
    raise OptionError(field.name, reason, "Remove one of these characters.")


def join_segments(segments: Iterable[Segment]) -> str | tuple[Block, ...]:
    """Joins segments into the content of a message: a text, or blocks if there are media.

    White space at the start and the end is removed.
    """
    segments = [*segments]
    with suppress(TypeError):  # `join` raises TypeError if there are media blocks
        return "".join(cast("list[str]", segments)).strip()
    joined: list[Segment] = []
    for segment in segments:
        if isinstance(segment, str) and joined and isinstance(joined[-1], str):
            joined[-1] += segment
        else:
            joined.append(segment)
    if isinstance(joined[0], str):
        joined[0] = joined[0].lstrip()
    if isinstance(joined[-1], str):
        joined[-1] = joined[-1].rstrip()
    return tuple(TextBlock(item) if isinstance(item, str) else item for item in joined if item != "")


def _mark(media: list[MediaBlock], mark: str, block: MediaBlock) -> str:
    """Appends a block to `media`, and returns the text that marks its place."""
    media.append(block)
    return f"{mark}{len(media) - 1}{mark}"
