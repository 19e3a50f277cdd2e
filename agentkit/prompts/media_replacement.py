"""`replace_media`: puts texts in place of the media blocks and tools in a value, at any depth."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields, is_dataclass
from typing import Any, Final, cast

from pydantic import BaseModel

from agentkit.messages.blocks import MediaBlock
from agentkit.prompts.tool_texts import describe_tool
from agentkit.tools.tool import Tool, as_tools

__all__ = ["PLAIN_TYPES", "replace_media"]

PLAIN_TYPES: Final = frozenset({str, int, float, bool, type(None)})
"""Types whose values contain no media and no tools."""


def replace_media(value: object, mark: Callable[[MediaBlock], str]) -> object:
    """Replaces each media block in a value with a text, and each tool with a sentence about the tool.

    Args:
        value: Value to search. The search includes the items of lists, tuples, sets, dicts, pydantic models and
            dataclasses. A function counts as a tool.
        mark: Function that returns the text for a media block.

    Returns:
        The value itself if it contains no media blocks and no tools. For a media block or a tool, its text. For
        any other value, a list or a dict with these texts.

    Raises:
        RecursionError: The value is nested too deeply.
    """
    if _is_plain(value):
        return value
    if isinstance(value, MediaBlock):
        return mark(value)
    if isinstance(value, Tool):
        return describe_tool(value)
    if callable(value) and not isinstance(value, type):
        return describe_tool(as_tools([cast("Any", value)])[0])
    items = _list_items(value)
    replaced = {key: replace_media(item, mark) for key, item in items.items()}
    if all(item is items[key] for key, item in replaced.items()):
        return value
    return [*replaced.values()] if isinstance(value, list | tuple | set | frozenset) else replaced


def _is_plain(value: object) -> bool:
    """Returns True if a value is a string, a number, a boolean or None, or a list of such values."""
    if type(value) is list:
        return PLAIN_TYPES.issuperset(map(type, cast("list[object]", value)))
    return type(value) in PLAIN_TYPES


def _list_items(value: object) -> Mapping[Any, object]:
    """Returns a mapping with the items of a container, a pydantic model or a dataclass.

    The keys of the mapping are indexes, dict keys or field names. For any other value, the mapping is empty.
    """
    if isinstance(value, Mapping):
        return cast("Mapping[Any, object]", value)
    if isinstance(value, list | tuple | set | frozenset):
        return dict(enumerate(cast("Iterable[object]", value)))
    if isinstance(value, BaseModel):
        return {name: getattr(value, name) for name in type(value).model_fields}
    if is_dataclass(value) and not isinstance(value, type):
        return {item.name: getattr(value, item.name) for item in fields(value)}
    return {}
