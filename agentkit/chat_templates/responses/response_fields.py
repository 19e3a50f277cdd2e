"""`ResponseFields`: the checked declaration of a response template, with its fields and markers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, cast

from agentkit.argument_checks import check_choice, check_names, check_option
from agentkit.chat_templates.responses.response_contents import CONTENTS, check_content_args, check_transform
from agentkit.chat_templates.responses.response_markers import MarkerFinder, MarkerPattern, MarkerSide
from agentkit.errors import OptionError
from agentkit.replies.partial_blocks import PartialPlainText, PartialText, PartialThinking

__all__ = ["ResponseField", "ResponseFields", "THINKING_FIELDS"]

THINKING_FIELDS: Final = frozenset({"thinking", "reasoning", "reasoning_content"})
"""Names of fields that contain the thinking of the model."""

_KEYS: Final = ("version", "defaults", "fields", "start_anchor", "start_anchor_pattern")
_FIELD_KEYS: Final = (
    "open", "open_pattern", "close", "close_pattern", "content", "content_args", "repeats", "join", "optional",
    "transform", "transform_each",
)  # fmt: skip
_PLACE: Final = "response_template"


@dataclass(frozen=True, slots=True, eq=False)
class ResponseField:
    """One field of a response template.

    Attributes:
        name: Name of the field, such as `content`, `reasoning_content` or `tool_calls`.
        open: Marker before the text of the field. None for the field that contains the text outside all other
            fields.
        close: Marker after the text. None if only the end of the reply, or (for the field without `open`) the next
            marker, ends the text.
        content: Format of the text, such as `text` or `json`.
        content_args: Options of this format.
        is_required: True if each reply must have the field.
        transform: JSON value with placeholders such as `{content}`, which becomes the value of the field. None
            means that the parsed text is the value of the field.
        transform_each: True to transform each item of the parsed text, which must then be a list of objects.
        repeats: True to collect all values of the field in a list. False keeps the last value. A field that
            becomes blocks has one block for each value in both cases.
        join: Text between the values of the field, which then become one text. Requires `repeats`. None keeps the
            list.
        text_kind: Type of the blocks that contain the text of the field: text or thinking. None if the field
            becomes no such block.
        strips: True to remove white space before and after the text of such a block.
    """

    name: str
    open: MarkerPattern | None
    close: MarkerPattern | None
    content: str
    content_args: Mapping[str, Any]
    is_required: bool
    transform: Any
    transform_each: bool
    repeats: bool
    join: str | None
    text_kind: type[PartialText] | None
    strips: bool

    @classmethod
    def read(cls, name: str, spec: object) -> ResponseField:
        """Reads the declaration of a field.

        Raises:
            OptionError: A key or value is invalid.
        """
        place = f"{_PLACE}.fields.{name}"
        check_option(place, spec, dict, "Pass a dict.")
        options = cast("dict[str, Any]", spec)
        check_names(place, options, _FIELD_KEYS)
        content, arguments = options.get("content", "text"), options.get("content_args", {})
        check_choice(f"{place}.content", content, CONTENTS)
        check_option(f"{place}.content_args", arguments, dict)
        check_content_args(content, arguments, f"{place}.content_args")
        join, repeats = options.get("join"), options.get("repeats", False)
        check_option(f"{place}.join", join, str | None)
        if join is not None and not repeats:
            raise OptionError(f"{place}.join", "cannot be used without `repeats`", "Set `repeats` to true.")
        transform, each = options.get("transform"), options.get("transform_each", False)
        check_option(f"{place}.transform_each", each, bool)
        if each and transform is None:
            reason = "cannot be used without `transform`"
            raise OptionError(f"{place}.transform_each", reason, "Pass `transform` too.")
        check_transform(transform, f"{place}.transform")
        opened, closed = (MarkerPattern.read(options, key, place) for key in ("open", "close"))
        _check_groups(opened, closed, transform, place)
        kind = PartialThinking if name in THINKING_FIELDS else PartialPlainText if name == "content" else None
        return cls(
            name=name,
            open=opened,
            close=closed,
            content=content,
            content_args=arguments,
            is_required=not options.get("optional", True),
            transform=transform,
            transform_each=each,
            repeats=bool(repeats),
            join=join,
            text_kind=kind,
            strips=content != "text" or bool(arguments.get("strip", True)),
        )


def _check_groups(opened: MarkerPattern | None, closed: MarkerPattern | None, transform: Any, place: str) -> None:
    names = [name for marker in (opened, closed) if marker for name in marker.pattern.groupindex]
    if names and transform is None:
        reason = f"the group {names[0]!r} of a marker is not used"
        raise OptionError(f"{place}.transform", reason, f'Pass a transform with "{{{names[0]}}}".')


class ResponseFields:
    """Fields of a response template.

    Attributes:
        fields: The fields by name.
        outside_field: Field that contains the text outside all other fields. No marker precedes its text. None if
            the response template has no such field.
        anchor: Marker in the prompt after which a reply starts.
        defaults: Default values by field name, for fields that a reply does not contain.
        finders: Maps each field to the `MarkerFinder` for its text. If `outside_field` is None, the key None has
            the `MarkerFinder` for the text outside all fields.
        needs_context: True if the match of a marker may depend on the text before the marker.
    """

    def __init__(self, spec: Mapping[str, Any]) -> None:
        check_names(_PLACE, spec, _KEYS)
        if spec.get("version", 1) != 1:
            reason = f"unknown version {spec['version']!r:.80}"
            raise OptionError(f"{_PLACE}.version", reason, "Use version 1.")
        fields, defaults = spec.get("fields"), spec.get("defaults", {})
        check_option(f"{_PLACE}.defaults", defaults, dict)
        if not isinstance(fields, dict) or not fields:
            reason = f"expected a dict of fields by name, got {fields!r:.80}"
            raise OptionError(f"{_PLACE}.fields", reason, "Pass at least one field.")
        named = cast("dict[str, Any]", fields)
        self.fields = {name: ResponseField.read(name, item) for name, item in named.items()}
        self.defaults: dict[str, Any] = dict(defaults)
        unopened = [item for item in self.fields.values() if item.open is None]
        if len(unopened) > 1:
            reason = f"the fields {', '.join(item.name for item in unopened)} have no marker before their text"
            advice = "Pass `open` or `open_pattern` for all fields except one."
            raise OptionError(f"{_PLACE}.fields", reason, advice)
        self.outside_field = unopened[0] if unopened else None
        anchor = MarkerPattern.read(spec, "start_anchor", _PLACE)
        if anchor is None:
            advice = "Pass the text in the prompt after which a reply starts."
            raise OptionError(f"{_PLACE}.start_anchor", "is missing", advice)
        self.anchor = anchor
        self.finders = {item: self._create_finder(item) for item in {self.outside_field, *self.fields.values()}}
        self.needs_context = any(finder.needs_context for finder in self.finders.values())

    def _create_finder(self, current: ResponseField | None) -> MarkerFinder:
        if current is not None and current.open is not None:
            return MarkerFinder([("close", current, current.close)] if current.close else [])
        markers: list[tuple[MarkerSide, ResponseField, MarkerPattern]] = [
            ("open", item, item.open) for item in self.fields.values() if item.open is not None
        ]
        if current is not None and current.close is not None:
            return MarkerFinder([*markers, ("close", current, current.close)])
        return MarkerFinder(markers)
