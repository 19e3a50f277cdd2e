"""`ResponseReader`: reads the text of a reply, and adds its thinking, text and tool calls to a `ReplyBuilder`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from agentkit.chat_templates.responses.call_region import CallFormat, CallRegion
from agentkit.chat_templates.responses.reply_call_ids import ReplyCallIds
from agentkit.chat_templates.responses.response_fields import THINKING_FIELDS, ResponseField, ResponseFields
from agentkit.chat_templates.responses.response_regions import Region, TextRegion, ValueRegion
from agentkit.chat_templates.responses.response_splitter import ResponseSplitter
from agentkit.replies.builder import ReplyBuilder
from agentkit.tools.tool import Tool

__all__ = ["ResponseReader"]

_OUTSIDE: Final = (0,)


class ResponseReader(ResponseSplitter):
    """Reader of the text of one reply, which adds blocks to a `ReplyBuilder`."""

    def __init__(
        self,
        fields: ResponseFields,
        builder: ReplyBuilder,
        *,
        prompt: str,
        start: str,
        tools: Mapping[str, Tool],
    ) -> None:
        """Creates a reader.

        Args:
            fields: Fields of the response template.
            builder: Builder of the message.
            prompt: Text before the reply. New ids of tool calls depend on this text (see `ReplyCallIds`).
            start: Text at the end of the prompt that is already part of the reply, such as `<think>`.
            tools: Tools by name.
        """
        super().__init__(fields)
        self._builder = builder
        self._tools = tools
        self._ids = ReplyCallIds(prompt)
        calls = fields.fields.get("tool_calls")
        self._call_format = None if calls is None else CallFormat(calls)
        self._names: set[str] = set()  # names of the fields that the reply has
        self._count = 0
        self.feed(start)

    def finish(self) -> None:
        """Processes the end of the text. The caller must end the reply of the builder."""
        builder = self._builder
        super().finish()
        outside = self._fields.anchor.pattern.sub("", "".join(self.outside)).strip()
        if outside and self._names:
            builder.notes["outside"] = outside
        elif outside:
            builder.add_text(_OUTSIDE, outside)
            builder.close(_OUTSIDE)
        builder.add_late_text("".join(self.text_after_end))
        self._add_defaults()

    def _add_defaults(self) -> None:
        """Adds notes to the reply: defaults of fields that do not become blocks, and missing required fields."""
        notes, known = self._builder.notes, {"role", "content", "tool_calls", *THINKING_FIELDS}
        defaults = {name: value for name, value in self._fields.defaults.items() if name not in known}
        if defaults:
            notes["fields"] = {**defaults, **notes.get("fields", {})}
        required = [name for name, field in self._fields.fields.items() if field.is_required]
        if missing := [name for name in required if name not in {*self._names, *defaults}]:
            notes["missing_fields"] = missing

    # -- regions -----------------------------------------------------------------------------------------------

    def open_region(self, field: ResponseField, captures: Mapping[str, str], marker: str) -> Region:
        """Returns a new region for the text of a field."""
        self._count += 1
        self._names.add(field.name)
        builder, key = self._builder, (self._count,)
        if field.text_kind is not None:
            return TextRegion(builder, key, field.text_kind, field.strips)
        if self._call_format is not None and field is self._call_format.field:
            self._ids.add_text("".join(self.consumed))
            self.consumed.clear()
            return CallRegion(builder, key, self._call_format, captures, marker, self._tools, self._ids)
        return ValueRegion(builder, field, captures)
