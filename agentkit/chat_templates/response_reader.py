"""`ResponseReader`: reads the text of a reply, and adds its thinking, text and tool calls to a `ReplyBuilder`."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Final

from agentkit.chat_templates.call_region import CallForm, CallRegion
from agentkit.chat_templates.response_fields import THINKING_FIELDS, ResponseField, ResponseFields
from agentkit.chat_templates.response_regions import Region, TextRegion, ValueRegion
from agentkit.chat_templates.response_splitter import ResponseSplitter
from agentkit.json_values import as_text
from agentkit.replies.builder import ReplyBuilder
from agentkit.replies.partial_blocks import PartialThinking
from agentkit.tools.tool import Tool

__all__ = ["ResponseReader"]

_OUTSIDE: Final = (0,)


class ResponseReader(ResponseSplitter):
    """Reader of the text of one reply.

    Attributes:
        is_cut_off: True if the reply ended inside thinking or inside a tool call that is not complete.
    """

    def __init__(
        self,
        fields: ResponseFields,
        builder: ReplyBuilder,
        *,
        prompt: str = "",
        start: str = "",
        tools: Mapping[str, Tool] | None = None,
    ) -> None:
        """Creates a reader.

        Args:
            fields: Fields of the response template.
            builder: Builder of the message.
            prompt: Text before the reply. If the model wrote no id for a tool call, its id depends on this text.
            start: Text at the end of the prompt that is already part of the reply, such as `<think>`.
            tools: Tools by name.
        """
        super().__init__(fields)
        self._builder = builder
        self._tools = dict(tools or {})
        self._digest = hashlib.sha256(prompt.encode("utf-8", "surrogatepass"))
        calls = fields.fields.get("tool_calls")
        self._form = None if calls is None else CallForm(calls)
        self._region: Region | None = None
        self._used_ids: set[str] = set()
        self._found: set[str] = set()
        self._outside: list[str] = []  # text that belongs to no field
        self._count = 0
        self._is_finishing = False
        self.is_cut_off = False
        self.feed(start)

    def finish(self) -> None:
        """Processes the end of the text. The caller must end the reply of the builder."""
        builder = self._builder
        self._is_finishing = True
        super().finish()
        outside = self._fields.anchor.pattern.sub("", "".join(self._outside)).strip()
        if outside and self._found:
            builder.notes["outside"] = outside
        elif outside:
            builder.add_text(_OUTSIDE, outside)
            builder.close(_OUTSIDE)
        if late := "".join(self.late).strip():
            builder.notes["behind_end"] = late
        self._add_defaults()

    def _add_defaults(self) -> None:
        """Stores default values of fields that do not become blocks, and names of missing required fields."""
        notes, known = self._builder.notes, {"role", "content", "tool_calls", *THINKING_FIELDS}
        defaults = {name: value for name, value in self._fields.defaults.items() if name not in known}
        if defaults:
            notes["fields"] = {**defaults, **notes.get("fields", {})}
        required = [name for name, field in self._fields.fields.items() if field.is_required]
        if missing := [name for name in required if name not in {*self._found, *defaults}]:
            notes["missing_fields"] = missing

    # -- regions -----------------------------------------------------------------------------------------------

    def open(self, field: ResponseField, captures: Mapping[str, str], marker: str) -> None:
        """Begins the region of a field."""
        self._count += 1
        self._found.add(field.name)
        builder, key = self._builder, (self._count,)
        if field.text_kind is not None:
            self._region = TextRegion(builder, key, field.text_kind, field.strips)
        elif self._form is not None and field is self._form.field:
            digest, tools, used = self._digest_text(), self._tools, self._used_ids
            self._region = CallRegion(builder, key, self._form, captures, marker, tools, digest, used)
        else:
            self._region = ValueRegion(builder, field)

    def _digest_text(self) -> str:
        """Returns a digest of the prompt and of the reply up to the end of the current marker."""
        self._digest.update(as_text("".join(self.consumed)).encode())
        self.consumed.clear()
        return self._digest.hexdigest()

    def add(self, text: str) -> None:
        """Adds a piece of text to the open region."""
        if self._region is None:
            self._outside.append(text)
        else:
            self._region.add(text)

    def close(self, captures: Mapping[str, str], marker: str) -> None:
        """Ends the open region."""
        if self._region is not None:
            self._region.close(captures, marker)
        if self._is_finishing and not marker:
            is_thinking = isinstance(self._region, TextRegion) and self._region.kind is PartialThinking
            is_damaged = isinstance(self._region, CallRegion) and self._region.is_damaged
            self.is_cut_off = is_thinking or is_damaged
        self._region = None
