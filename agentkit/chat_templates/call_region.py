"""`CallRegion`: one or several tool calls in the text of a reply."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple, cast

from agentkit.chat_templates.argument_types import cast_arguments
from agentkit.chat_templates.response_contents import apply_transform
from agentkit.chat_templates.response_fields import ResponseField
from agentkit.chat_templates.response_regions import TextRegion, parse_value
from agentkit.errors import MessageError
from agentkit.json_values import as_object, parse_arguments, parse_json
from agentkit.replies.builder import BlockKey, ReplyBuilder
from agentkit.tools.tool import Tool

__all__ = ["CallRegion"]

_NAME_FIRST: Final = re.compile(
    r'\s*\{\s*"name"\s*:\s*("(?:[^"\\]|\\.)*")\s*,\s*"(?:arguments|parameters)"\s*:\s*', re.DOTALL
)
_MARK: Final = re.compile(r'["{}\[\]]')
_STRING_END: Final = re.compile(r'(?:[^"\\]|\\.)*"', re.DOTALL)


class _Call(NamedTuple):
    """Tool call in a region: its name, id, and arguments as an object or as a text that may be damaged."""

    name: str
    id: str
    arguments: dict[str, Any] | str


class CallRegion:
    """One or several tool calls.

    If the marker has the name and the text is the JSON text of the arguments, pieces of the arguments go on at
    once. All other calls go on when the region ends.

    Args:
        builder: Builder of the reply.
        key: First part of the keys of the blocks.
        field: Field of the region.
        captures: Named groups of the marker before the region.
        marker: Text of this marker.
        tools: Tools by name. Their schemas decide the types of arguments.
        derive_id: Function that returns the id of the call with a number in the region.
        used_ids: Ids of all earlier calls of the reply.

    Attributes:
        is_damaged: True if the region has ended and the arguments of a call are not a JSON object.
    """

    def __init__(
        self,
        builder: ReplyBuilder,
        key: BlockKey,
        field: ResponseField,
        captures: Mapping[str, str],
        marker: str,
        tools: Mapping[str, Tool],
        derive_id: Callable[[int], str],
        used_ids: set[str],
    ) -> None:
        self._builder = builder
        self._key = key
        self._field = field
        self._marker = marker
        self._tools = tools
        self._derive_id = derive_id
        self._used_ids = used_ids
        self._pieces: list[str] = []
        self._arguments: TextRegion | None = None
        self.is_damaged = False
        form = _Form(field)
        if form.is_argument_text and (name := form.find_text("name", captures)):
            self._id = self._choose_id(form.find_text("id", captures), 0)
            builder.add_tool_call((*key, 0), self._id, name)
            self._arguments = _ArgumentRegion(builder, (*key, 0))

    def add(self, text: str) -> None:
        """Adds a piece of text."""
        self._pieces.append(text)
        if self._arguments is not None:
            self._arguments.add(text)

    def close(self, captures: Mapping[str, str], marker: str) -> None:
        """Ends the region. A text without the name of a tool becomes a text block, together with its markers."""
        text = "".join(self._pieces)
        calls = self._read_calls(text, captures)
        if not calls:
            self._builder.add_text((*self._key, 0), f"{self._marker}{text}{marker}")
            self._builder.close((*self._key, 0))
        for index, call in enumerate(calls):
            is_damaged = isinstance(call.arguments, str) and not _is_complete(call.arguments, marker)
            self.is_damaged = self.is_damaged or is_damaged
            self._add_call(call, index)
            if marker or not is_damaged:
                self._builder.close((*self._key, index))

    def _read_calls(self, text: str, captures: Mapping[str, str]) -> list[_Call]:
        """Returns the calls of the region. Returns an empty list if a call has no name."""
        form = _Form(self._field)
        try:
            calls = form.read_calls(text, captures)
        except (ValueError, RecursionError):
            name = form.find_text("name", captures)
            found = _find_arguments(text)
            calls = [_Call(name, "", text.strip())] if name else [found] if found else []
        return calls if all(call.name for call in calls) else []

    def _add_call(self, call: _Call, index: int) -> None:
        key, builder = (*self._key, index), self._builder
        if not builder.has_block(key):
            builder.add_tool_call(key, self._choose_id(call.id, index), call.name)
        if isinstance(call.arguments, str):
            builder.replace_arguments(key, call.arguments)
        else:
            tool = self._tools.get(call.name)
            arguments = cast_arguments(call.arguments, tool.parameters) if tool else call.arguments
            if self._arguments is None or arguments != call.arguments:
                builder.replace_arguments(key, arguments)

    def _choose_id(self, id: str, index: int) -> str:
        """Returns the id that the model wrote, if it is new, and a derived id otherwise."""
        chosen = id if id and id not in self._used_ids else self._derive_id(index)
        self._used_ids.add(chosen)
        return chosen


class _ArgumentRegion(TextRegion):
    """Argument text of a call. White space at both ends is removed."""

    def __init__(self, builder: ReplyBuilder, key: BlockKey) -> None:
        super().__init__(builder, key, is_thinking=False, strips=True)

    def add(self, text: str) -> None:
        if text := self._strip(text):
            self._builder.add_tool_call(self._key, piece=text)


class _Form:
    """Place of the name, the id and the arguments of a call in the transform of a field."""

    def __init__(self, field: ResponseField) -> None:
        self._field = field
        call = as_object(field.transform)
        self._parts: dict[str, Any] = {**as_object(call.get("function", call)), "id": call.get("id")}

    @property
    def is_argument_text(self) -> bool:
        """True if the text of the region is the JSON text of the arguments of one call."""
        field = self._field
        is_json = field.content == "json" and not field.content_args and not field.transform_each
        return is_json and self._parts.get("arguments") == "{content}"

    def find_text(self, part: str, captures: Mapping[str, str]) -> str:
        """Returns the name or the id of the call if the markers contain it. Otherwise, returns an empty text."""
        try:
            value = apply_transform(self._parts.get(part), captures)
        except ValueError:
            return ""
        return value if isinstance(value, str) else ""

    def read_calls(self, text: str, captures: Mapping[str, str]) -> list[_Call]:
        """Returns the calls of a region.

        Raises:
            ValueError: The text does not have the form of the field.
            RecursionError: The text is nested too deeply.
        """
        if self.is_argument_text:
            return [_Call(self.find_text("name", captures), self.find_text("id", captures), text.strip())]
        value = parse_value(self._field, text, captures)
        return [_read_call(item) for item in (cast("list[object]", value) if isinstance(value, list) else [value])]


def _is_complete(arguments: str, marker: str) -> bool:
    """Returns True if an argument text is a JSON object. An empty text is complete if a marker follows it."""
    return parse_arguments(arguments) is not None if arguments else bool(marker)


def _read_call(value: object) -> _Call:
    """Reads a call `{"function": {"name": …, "arguments": …}}` or `{"name": …, "arguments": …}`.

    Raises:
        ValueError: The value has another form.
    """
    if not isinstance(value, dict):
        raise ValueError("expected an object")
    call = cast("dict[str, Any]", value)
    function = call.get("function", call)
    if not isinstance(function, dict):
        raise ValueError("expected an object with a name")
    content = cast("dict[str, Any]", function)
    name, id = content.get("name"), call.get("id")
    arguments = content.get("arguments", content.get("parameters", {}))
    if isinstance(arguments, str):
        arguments = parse_arguments(arguments) if parse_arguments(arguments) is not None else arguments
    if not isinstance(arguments, dict | str):
        raise ValueError("expected an object of arguments")
    return _Call(name if isinstance(name, str) else "", id if isinstance(id, str) else "", arguments)


def _find_arguments(text: str) -> _Call | None:
    """Finds the name and the argument text in damaged JSON text of a call. Returns None if it has no name."""
    match = _NAME_FIRST.match(text)
    if match is None:
        return None
    try:
        name = parse_json(match[1])
    except MessageError:
        return None
    raw = text[match.end() : _find_end(text, match.end())].strip()
    return _Call(str(name), "", raw)


def _find_end(text: str, start: int) -> int:
    """Returns the index after the JSON value at `start`, or the length of the text if the value is incomplete."""
    depth, index = 0, start
    while match := _MARK.search(text, index):
        index = match.end()
        if match[0] == '"':
            string = _STRING_END.match(text, index)
            if string is None:
                return len(text)
            index = string.end()
        else:
            depth += 1 if match[0] in "{[" else -1
        if depth <= 0:
            return index
    return len(text)
