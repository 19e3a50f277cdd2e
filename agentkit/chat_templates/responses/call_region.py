"""`CallRegion`: region of a reply with one or several tool calls.

There are three formats of regions (`CallFormat`):

- The text is the JSON text of the arguments of one call, and the marker before the text has the name of the tool
  (`llama_3`, `mistral_v11`, `deepseek`, `kimi`, `gpt_oss`). The arguments are added while they arrive.
- The text is the JSON text of one call, or of a list of calls: `{"name": "f", "arguments": {}}` (`qwen3`,
  `mistral`). The arguments of the first call are added while they arrive, if the text begins with the name.
- The text has any other format, such as tags (`qwen3_coder`, `glm`). The calls are added when the region ends.

Arguments that are invalid JSON are added as text. `block_builder` (in `agentkit.replies`) stores this text as
`raw_input`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, NamedTuple, cast

from agentkit.chat_templates.responses.argument_types import cast_arguments
from agentkit.chat_templates.responses.reply_call_ids import ReplyCallIds
from agentkit.chat_templates.responses.response_fields import ResponseField
from agentkit.chat_templates.responses.response_regions import SpaceStripper, parse_value
from agentkit.errors import MessageError
from agentkit.json_values import as_object, as_text, parse_arguments, parse_json
from agentkit.replies.builder import BlockKey, ReplyBuilder
from agentkit.reprs import describe_value
from agentkit.tools.tool import Tool

__all__ = ["CallFormat", "CallRegion"]

_CALL_START: Final = re.compile(
    r'\s*(?:\[\s*)?\{\s*(?:"type"\s*:\s*"function"\s*,\s*)?'
    r'"name"\s*:\s*("(?:[^"\\]|\\.)*")\s*,\s*"(?:arguments|parameters)"\s*:\s*',
    re.DOTALL,
)
_CALL_END: Final = re.compile(r"\s*\}?\s*")
_MAX_START: Final = 500  # maximum number of characters before the arguments in the text of a region
_MARK: Final = re.compile(r'["{}\[\]]')
_STRING_MARK: Final = re.compile(r'["\\]')
_CALL_KEYS: Final = frozenset({"function", "id", "name", "type"})
_ARGUMENT_KEYS: Final = ({"arguments"}, {"parameters"}, set[str]())


class _Call(NamedTuple):
    """Tool call in the text of a reply.

    Attributes:
        name: Name of the tool.
        id: Id that the model wrote. May be empty.
        arguments: Arguments as an object, or as a text that may be invalid JSON.
        has_other_text: True if the text of the call contains more than a name, an id and arguments.
    """

    name: str
    id: str
    arguments: dict[str, Any] | str
    has_other_text: bool = False


class CallFormat:
    """Format of the tool calls in a field: the positions of the name, the id and the arguments of a call.

    Attributes:
        field: Field `tool_calls` of the response template.
        is_argument_text: True if the text of a region is the JSON text of the arguments of one call.
        needs_end: True if only the marker after a region shows that the arguments are complete.
        is_call_text: True if the text of a region is the JSON text of one call, or of a list of calls.
    """

    def __init__(self, field: ResponseField) -> None:
        self.field = field
        call = as_object(field.transform)
        function = call.get("function", call)
        parts = {**as_object(function), "id": call.get("id")}
        self._texts = {part: as_text(parts.get(part)) for part in ("name", "id")}
        self.needs_end = field.content in ("xml-inline", "kv-lines")
        is_json = field.content == "json" and not field.content_args and not field.transform_each
        self.is_argument_text = is_json and parts.get("arguments") == "{content}"
        self.is_call_text = is_json and (field.transform is None or "{content}" in (field.transform, function))

    def find_text(self, part: str, captures: Mapping[str, str]) -> str:
        """Returns the name or the id of a tool call, from a marker or from a constant in the response template.

        Returns an empty string if neither contains the value.

        Args:
            part: `name` or `id`.
            captures: Named groups of the markers.
        """
        text = self._texts[part]
        return captures.get(text[1:-1], "") if text.startswith("{") else text

    def read_calls(self, text: str, captures: Mapping[str, str], first: _Call | None) -> list[_Call]:
        """Returns the tool calls of a region.

        If the text is invalid or a call has no name, the list has at most the first call.

        Args:
            text: Text of the region.
            captures: Named groups of the markers before and after the region.
            first: First call of the region, if its arguments were added to the reply while they arrived. None
                otherwise.
        """
        try:
            value = parse_value(self.field, text, captures)
            calls = [
                _read_call(item) for item in (cast("list[object]", value) if isinstance(value, list) else [value])
            ]
        except (ValueError, RecursionError):
            name = self.find_text("name", captures)
            damaged = _Call(name, "", text.strip()) if name else first
            if damaged is None and self.is_call_text:
                damaged = _find_first_call(text)
            return [damaged] if damaged else []
        is_named = all(call.name for call in calls)
        if first is None:
            return calls if is_named else []
        return [_keep_streamed(first, calls[0]), *calls[1:]] if is_named else [first]

    def is_complete(self, call: _Call) -> bool:
        """Returns True if a tool call is complete although the reply ended before the marker after its region."""
        if self.needs_end:
            return False
        return not isinstance(call.arguments, str) or parse_arguments(call.arguments) is not None


class CallRegion:
    """Region of a reply with one or several tool calls.

    Args:
        builder: Builder of the reply.
        key: First items of the keys of the blocks. The last item of a key is the index of the call in the region.
        call_format: Format of the tool calls.
        captures: Named groups of the marker before the region.
        marker: Text of the marker before the region.
        tools: Tools by name. String arguments are converted to the types in the schemas of the tools.
        ids: Ids of the calls of the reply.

    Attributes:
        is_cut_off: True if the region has ended without a marker, and a call is incomplete or has further content
            (`_Call.has_other_text`).
    """

    def __init__(
        self,
        builder: ReplyBuilder,
        key: BlockKey,
        call_format: CallFormat,
        captures: Mapping[str, str],
        marker: str,
        tools: Mapping[str, Tool],
        ids: ReplyCallIds,
    ) -> None:
        self._builder = builder
        self._key = key
        self._call_format = call_format
        self._captures = captures
        self._marker = marker
        self._tools = tools
        self._ids = ids
        self._pieces: list[str] = []
        self._first: _StreamedCall | None = None
        self._is_searching = call_format.is_call_text
        self.is_cut_off = False
        if call_format.is_argument_text and (name := call_format.find_text("name", captures)):
            id = self._ids.choose(call_format.find_text("id", captures), 0)
            self._first = _StreamedCall(builder, (*key, 0), id, name)

    def add(self, text: str) -> None:
        """Adds a piece of text."""
        self._pieces.append(text)
        if self._first is not None:
            self._first.add(text)
        elif self._is_searching and "{" in text:  # without a brace, the arguments have not begun
            self._find_start("".join(self._pieces))

    def _find_start(self, text: str) -> None:
        """Begins the first tool call if the text contains its name and the start of its arguments."""
        match = _CALL_START.match(text)
        if match is None or match.end() == len(text):
            self._is_searching = len(text) < _MAX_START
            return
        self._is_searching = False
        start, name = match.end(), _read_name(match)
        if name and text[start] == "{" and start < _MAX_START:
            self._first = _StreamedCall(self._builder, (*self._key, 0), "", name, _ObjectScan(start))
            self._first.add(text[start:])

    def close(self, captures: Mapping[str, str], marker: str) -> None:
        """Ends the region. If the region has no tool call, the region and its markers become a text block."""
        text, first = "".join(self._pieces), self._first
        streamed = None if first is None else first.read(text)
        if streamed is not None and not streamed.has_other_text:
            calls = [streamed]
        else:
            calls = self._call_format.read_calls(text, {**self._captures, **captures}, streamed)
        if not calls:
            self._builder.add_text((*self._key, 0), f"{self._marker}{text}{marker}")
            self._builder.close((*self._key, 0))
        for index, call in enumerate(calls):
            key = (*self._key, index)
            self._add_call(key, call, index)
            if call.has_other_text:
                self._builder.add_metadata(key, reply_text=text)
            is_complete = bool(marker) or self._call_format.is_complete(call)
            self.is_cut_off = self.is_cut_off or not is_complete or (call.has_other_text and not marker)
            if is_complete:
                self._builder.close(key)

    def _add_call(self, key: BlockKey, call: _Call, index: int) -> None:
        builder, arguments = self._builder, call.arguments
        if not builder.get_call_id(key):
            builder.add_tool_call(key, self._ids.choose(call.id, index), call.name)
        if index or self._first is None:
            builder.replace_arguments(key, arguments)
        if tool := self._tools.get(call.name):
            parsed = parse_arguments(arguments) if isinstance(arguments, str) else arguments
            if parsed and (converted := cast_arguments(parsed, tool.parameters)) != parsed:
                builder.replace_arguments(key, converted)


class _StreamedCall:
    """Tool call whose argument text is added to the reply while the text arrives.

    White space before and after the argument text is removed.

    Args:
        builder: Builder of the reply.
        key: Key of the block.
        id: Id of the tool call. Empty if the id arrives later.
        name: Name of the tool.
        scan: Scanner that finds the end of the arguments. None if all text of the region belongs to the arguments.
    """

    def __init__(
        self, builder: ReplyBuilder, key: BlockKey, id: str, name: str, scan: _ObjectScan | None = None
    ) -> None:
        self._builder = builder
        self._key = key
        self._name = name
        self._scan = scan
        self._stripper = SpaceStripper()
        builder.add_tool_call(key, id, name)

    def add(self, text: str) -> None:
        if self._scan is not None:
            text = text[: self._scan.find_end(text)]
        if text := self._stripper.strip(text):
            self._builder.add_tool_call(self._key, None, None, text)

    def read(self, text: str) -> _Call:
        """Returns the tool call. `text` is the complete text of the region."""
        if self._scan is None:
            return _Call(self._name, "", text.strip())
        start, end = self._scan.start, self._scan.end
        return _Call(self._name, "", text[start:end].strip(), _CALL_END.fullmatch(text, end) is None)


class _ObjectScan:
    """Scanner that finds the end of a JSON value in a text that arrives in pieces.

    Attributes:
        start: Index of the first character of the value.
        end: Index after the last character of the value that has arrived.
        has_ended: True if the value is complete.
    """

    def __init__(self, start: int = 0) -> None:
        self.start = self.end = start
        self._depth = 0
        self._in_string = False
        self._is_escaped: bool = False
        self.has_ended = False

    def find_end(self, text: str) -> int:
        """Returns the number of characters at the start of the next piece of text that belong to the value."""
        if self.has_ended or not text:
            return 0
        index, self._is_escaped = int(self._is_escaped), False
        while match := (_STRING_MARK if self._in_string else _MARK).search(text, index):
            mark, index = match[0], match.end()
            if mark == '"':
                self._in_string = not self._in_string
            elif mark == "\\":
                self._is_escaped = index == len(text)
                index += 1
            else:
                self._depth += 1 if mark in "{[" else -1
            if not self._in_string and self._depth <= 0:
                self.has_ended = True
                index = match.start() if self._depth else index
                break
        else:
            index = len(text)
        self.end += index
        return index


def _read_call(value: object) -> _Call:
    """Reads a tool call `{"function": {"name": …, "arguments": …}}` or `{"name": …, "arguments": …}`.

    Raises:
        ValueError: The value is not such a tool call.
    """
    if not isinstance(value, dict):
        raise ValueError(f"expected an object with a tool call, got {describe_value(value)}")
    call = cast("dict[str, Any]", value)
    function = call.get("function", call)
    if not isinstance(function, dict):
        raise ValueError(f"expected an object as `function`, got {describe_value(function)}")
    content = cast("dict[str, Any]", function)
    texts = content.get("name"), call.get("id", content.get("id"))
    name, id = (item if isinstance(item, str) else "" for item in texts)
    arguments = content.get("arguments", content.get("parameters", {}))
    if isinstance(arguments, str):
        arguments = parse_arguments(arguments) if parse_arguments(arguments) is not None else arguments
    if not isinstance(arguments, dict | str):
        raise ValueError(f"expected an object or a string as arguments, got {describe_value(arguments)}")
    has_other_text = (call.keys() | content.keys()) - _CALL_KEYS not in _ARGUMENT_KEYS
    return _Call(name, id, arguments, has_other_text)


def _keep_streamed(first: _Call, call: _Call) -> _Call:
    """Returns the streamed tool call with the id of the parsed tool call.

    The arguments of the two calls can differ, for example if the JSON text repeats a key. `has_other_text` is then
    True.
    """
    is_equal = (first.name, parse_arguments(cast("str", first.arguments))) == (call.name, call.arguments)
    return first._replace(id=call.id, has_other_text=call.has_other_text or not is_equal)


def _read_name(match: re.Match[str]) -> str:
    """Returns the tool name in a match of `_CALL_START`. Returns an empty string if the name is invalid JSON."""
    try:
        return str(parse_json(match[1]))
    except MessageError:
        return ""


def _find_first_call(text: str) -> _Call | None:
    """Returns the tool call at the start of a JSON text: an object, or the first object of a list.

    Returns None if the text does not start with a tool call that has a name and arguments.
    """
    match = _CALL_START.match(text)
    name = _read_name(match) if match else ""
    if match is None or not name:
        return None
    end = match.end() + _ObjectScan().find_end(text[match.end() :])
    return _Call(name, "", text[match.end() : end].strip(), _CALL_END.fullmatch(text, end) is None)
