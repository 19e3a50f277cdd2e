"""`PromptMedia`: the media blocks in the variables of a template, and their places in the rendered text."""

from __future__ import annotations

import re
import secrets
from typing import Any, Final

from agentkit.messages.blocks import Block, MediaBlock, TextBlock
from agentkit.prompts.media_replacement import replace_media

__all__ = ["PromptMedia"]

_MARK: Final = f"\ue000{secrets.randbelow(10**30):030}"
"""Start of the mark that replaces a media block. No input contains this text, because its number is random."""
_PLACE: Final = re.compile(f"{_MARK}-([0-9]{{6}})\ue000")


class PromptMedia:
    """Media blocks of one prompt.

    Templates must not have access to Python objects, so a variable cannot contain a block. `replace` puts a mark
    (a unique text) in place of each block. `restore` puts the blocks in place of the marks in the rendered text.
    """

    def __init__(self) -> None:
        self._blocks: list[MediaBlock] = []

    def replace(self, value: object) -> Any:
        """Returns a value with a mark in place of each media block, and a sentence in place of each tool.

        A value without media blocks and tools is returned unchanged. A value that is nested too deeply is also
        returned unchanged, because `as_template_value` refuses such a value later.
        """
        try:
            return replace_media(value, self._mark)
        except RecursionError:
            return value

    def _mark(self, block: MediaBlock) -> str:
        self._blocks.append(block)
        return f"{_MARK}-{len(self._blocks) - 1:06}\ue000"

    def restore(self, text: str) -> str | tuple[Block, ...]:
        """Returns a rendered text as message content: the text, or a tuple of blocks if the text has marks."""
        if _MARK not in text:
            return text
        pieces = _PLACE.split(text)
        return tuple(
            self._blocks[int(piece)] if index % 2 else TextBlock(piece)
            for index, piece in enumerate(pieces)
            if piece
        )
