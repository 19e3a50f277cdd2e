"""Regions of a reply with text or other values, which add their content to a `ReplyBuilder`.

A region is the text between the markers of a field. The module `call_region` has the region of tool calls.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, cast

from agentkit.chat_templates.responses.response_contents import apply_transform, parse_content
from agentkit.chat_templates.responses.response_fields import ResponseField
from agentkit.replies.builder import BlockKey, ReplyBuilder
from agentkit.replies.partial_blocks import PartialText, PartialThinking
from agentkit.reprs import describe_value

__all__ = ["Region", "SpaceStripper", "TextRegion", "ValueRegion", "parse_value"]


class Region(Protocol):
    """Region of a reply: the text between two markers, which arrives in pieces.

    Attributes:
        is_cut_off: True if the region has ended without a marker and its content is not complete.
    """

    is_cut_off: bool

    def add(self, text: str) -> None:
        """Adds a piece of text."""
        ...

    def close(self, captures: Mapping[str, str], marker: str) -> None:
        """Ends the region.

        Args:
            captures: Named groups of the marker after the region.
            marker: Text of the marker after the region. Empty if there is no such marker.
        """
        ...


class SpaceStripper:
    """Removes white space at the start and at the end of a text that arrives in pieces.

    White space is buffered until other text follows.
    """

    def __init__(self) -> None:
        self._has_begun = False
        self._space: list[str] = []

    def strip(self, text: str) -> str:
        """Returns the buffered white space and the next piece, without white space at the end of the piece."""
        if not self._has_begun:
            text = text.lstrip()
            self._has_begun = bool(text)
        visible = text.rstrip()
        if visible == text and not self._space:
            return text
        if not visible:
            self._space.append(text)
            return ""
        space, suffix = "".join(self._space), text[len(visible) :]
        self._space = [suffix] if suffix else []
        return space + visible


class TextRegion:
    """Region of a reply with text or thinking, which becomes one block.

    If `strips` is True, the block neither starts nor ends with white space. Thinking without a marker at its end
    counts as incomplete (`is_cut_off`).
    """

    is_cut_off = False

    def __init__(self, builder: ReplyBuilder, key: BlockKey, kind: type[PartialText], strips: bool) -> None:
        self._builder = builder
        self._key = key
        self._kind = kind
        self._stripper = SpaceStripper() if strips else None

    def add(self, text: str) -> None:
        """Adds a piece of text."""
        if self._stripper is not None:
            text = self._stripper.strip(text)
        if text:
            self._builder.add_text(self._key, text, self._kind)

    def close(self, captures: Mapping[str, str], marker: str) -> None:
        """Ends the region."""
        self._builder.close(self._key)
        self.is_cut_off = self._kind is PartialThinking and not marker


class ValueRegion:
    """Region of a field whose value becomes an item of `metadata["reply"]["fields"]`, and not a block."""

    is_cut_off = False

    def __init__(self, builder: ReplyBuilder, field: ResponseField, captures: Mapping[str, str]) -> None:
        self._builder = builder
        self._field = field
        self._captures = captures
        self._pieces: list[str] = []

    def add(self, text: str) -> None:
        """Adds a piece of text."""
        self._pieces.append(text)

    def close(self, captures: Mapping[str, str], marker: str) -> None:
        """Ends the region. If the text cannot be parsed, the value of the field is the text."""
        field, text = self._field, "".join(self._pieces)
        try:
            value = parse_value(field, text, {**self._captures, **captures})
        except (ValueError, RecursionError):
            value = text
        fields = self._builder.notes.setdefault("fields", {})
        if field.join is not None:
            value = value if isinstance(value, str) else text
            fields[field.name] = f"{fields[field.name]}{field.join}{value}" if field.name in fields else value
        elif field.repeats:
            fields.setdefault(field.name, []).append(value)
        else:
            fields[field.name] = value


def parse_value(field: ResponseField, text: str, captures: Mapping[str, str]) -> Any:
    """Converts the text of a region to the value of its field. `captures` are the named groups of its markers.

    Raises:
        ValueError: The text does not have the format of the field, or a placeholder of the transform has no value.
        RecursionError: The text is nested too deeply.
    """
    value = parse_content(text, field.content, field.content_args)
    if field.transform is None:
        return value
    if not field.transform_each:
        return apply_transform(field.transform, {**captures, "content": value})
    if not isinstance(value, list):
        raise ValueError(f"`transform_each` requires a list, got {describe_value(value)}")
    items = cast("list[dict[str, Any]]", value)
    if not all(isinstance(item, dict) for item in items):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ValueError(f"`transform_each` requires a list of objects, got {items!r:.80}")
    return [apply_transform(field.transform, {**captures, **item}) for item in items]
