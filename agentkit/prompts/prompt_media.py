"""`PromptMedia`: the media blocks in the variables of a template, and their places in the rendered text."""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass
from typing import Any, Final, cast

from pydantic import BaseModel

from agentkit.messages.blocks import Block, MediaBlock, TextBlock
from agentkit.prompts.template_values import MAX_DEPTH
from agentkit.prompts.tool_texts import describe_tool
from agentkit.tools.tool import Tool, as_tools

__all__ = ["PromptMedia"]

_SIMPLE: Final = frozenset({str, int, float, bool, type(None)})
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

        A value without media blocks and tools is returned unchanged. Values that are nested more than 100 levels
        deep are not changed, because `as_template_value` refuses them.
        """
        return self._replace(value, 0)

    def _replace(self, value: object, depth: int) -> Any:
        if type(value) in _SIMPLE or depth > MAX_DEPTH:
            return value
        if isinstance(value, MediaBlock):
            self._blocks.append(value)
            return f"{_MARK}-{len(self._blocks) - 1:06}\ue000"
        if isinstance(value, Tool):
            return describe_tool(value)
        if callable(value) and not isinstance(value, type):
            return describe_tool(as_tools([cast("Any", value)])[0])
        items = _list_items(value)
        replaced = {key: self._replace(item, depth + 1) for key, item in items.items()}
        if all(item is items[key] for key, item in replaced.items()):
            return value
        return [*replaced.values()] if isinstance(value, list | tuple) else replaced

    def restore(self, text: str) -> str | tuple[Block, ...]:
        """Returns a rendered text as message content: a tuple of blocks if the text has block placeholders."""
        if _MARK not in text:
            return text
        pieces = _PLACE.split(text)
        return tuple(
            self._blocks[int(piece)] if index % 2 else TextBlock(piece)
            for index, piece in enumerate(pieces)
            if piece
        )


def _list_items(value: object) -> Mapping[Any, object]:
    """Returns the items of a list, dict, model or dataclass by index or name. Any other value has no items."""
    if isinstance(value, Mapping):
        return cast("Mapping[Any, object]", value)
    if isinstance(value, list | tuple):
        return dict(enumerate(cast("Iterable[object]", value)))
    if isinstance(value, BaseModel):
        return {name: getattr(value, name) for name in type(value).model_fields}
    if is_dataclass(value) and not isinstance(value, type):
        return {item.name: getattr(value, item.name) for item in fields(value)}
    return {}
