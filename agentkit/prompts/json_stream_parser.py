r"""`JSONStreamParser`: finds the outputs in the JSON object of a streamed reply.

Idea
    A state machine reads the object. Each state is a method that reads some characters and returns the index after
    these characters. At the first place that is not JSON, the parser stops reading. At the end of the reply,
    `Adapter.parse` repairs the complete text, and `finish` adds the missing events.

Cost
    Each character is read once. The time is proportional to the length of the reply, however the reply is split.

Example:
    >>> from agentkit.prompts import JSONAdapter, Signature
    >>> parser = JSONAdapter().stream_parser(Signature("question -> answer: str, scores: list[int]"))
    >>> for piece in ('{"answer": "on', 'e \\"two\\', '"", "scores": ', '[1,', ' 2]}'):
    ...     print(parser.feed(piece))
    [FieldStart(name='answer'), FieldDelta(name='answer', text='on')]
    [FieldDelta(name='answer', text='e "two')]
    [FieldDelta(name='answer', text='"'), FieldEnd(name='answer', value='one "two"')]
    [FieldStart(name='scores'), FieldDelta(name='scores', text='[1,')]
    [FieldDelta(name='scores', text=' 2]'), FieldEnd(name='scores', value=[1, 2])]
    >>> parser.finish()
    {'answer': 'one "two"', 'scores': [1, 2]}
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias, cast

from agentkit.messages.blocks import ToolUseBlock
from agentkit.prompts.adapter import Adapter
from agentkit.prompts.field_stream_parser import FieldStreamParser
from agentkit.prompts.fields import SignatureField
from agentkit.prompts.lenient_json import read_strict_json
from agentkit.prompts.signature import Signature
from agentkit.prompts.tool_texts import as_tool_calls
from agentkit.prompts.type_names import is_tool_calls
from agentkit.prompts.value_types import as_json_value

__all__ = ["JSONStreamParser"]

_AnySignature: TypeAlias = type[Signature[Any]]

_SPACE: Final = re.compile(r"[ \t\n\r]*")
_AMBIGUOUS: Final = re.compile(r"""[\[\](){}"']""")
"""Brackets and quotes. If one of these characters precedes the object, `read_json` may find another object."""
_STRING_TEXT: Final = re.compile(r'[^"\\\ud800-\udfff]*')
_CONTROL: Final = re.compile(r"[\x00-\x1f]")
_ESCAPE: Final = re.compile(
    r'\\(?:["\\/bfnrt]|u(?![dD][89a-fA-F])[0-9a-fA-F]{4}'
    r"|u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2})"
)
_ESCAPE_START: Final = re.compile(r"\\(?:u[0-9a-fA-F]{0,4}|u[dD][89abAB][0-9a-fA-F]{2}\\(?:u[0-9a-fA-F]{0,4})?)?")
_SCALAR: Final = re.compile(r"[^ \t\n\r,}\]]*")
_STRUCTURE: Final = re.compile(r'["\[\]{}]')
_INNER_STRING_END: Final = re.compile(r'["\\]')
_INVALID: Final = object()


class JSONStreamParser(FieldStreamParser):
    r"""Parser of replies that are one JSON object, as `JSONAdapter` requests them.

    If a value is a JSON string, the deltas of its field contain the decoded text. For `"a\nb"`, this is the letter
    a, a line feed and the letter b. For any other value, the deltas contain the JSON text of the value. In DSPy,
    the deltas of strings are JSON text too, with quotes and escapes.

    The object may be in a code fence, or between other words. If the JSON is damaged, the remaining events come
    after `finish`, and have the values of the repaired JSON. If a key or the object occurs more than once, the
    first value of each key counts.
    """

    def __init__(self, adapter: Adapter, signature: _AnySignature) -> None:
        super().__init__(adapter, signature)
        self._state: Callable[[str, int], int] = self._find_object
        self._next: Callable[[], None] = self._end_key  # called when a string ends
        self._is_key = False  # True while a key is read
        self._key: list[str] = []
        self._escape = ""  # start of an incomplete escape sequence
        # White space at the end of a string. If the closing quote is missing, `read_json` removes the white space.
        self._space: list[str] = []
        self._text: list[str] = []  # decoded string or JSON text of the current value
        self._is_string = False  # True if the value began with a quote
        self._depth = 0  # number of open brackets in the current value
        self._in_string = False  # True inside a string in a list or an object
        self._is_escaped = False  # True after a backslash in a string in a list or an object
        self._is_exact = True  # False if `read_json` and this parser may find different values
        self._first_values: dict[str, Any] = {}  # first value of each key, up to the first error in the JSON

    @classmethod
    def read_first_values(cls, adapter: Adapter, signature: _AnySignature, text: str) -> dict[str, Any]:
        """Returns the first value of each key in the first JSON object of a text.

        Keys after the first error in the JSON are omitted.
        """
        parser = cls(adapter, signature)
        parser.read(text)
        return parser._first_values

    def read(self, text: str) -> None:
        """Reads the next piece of the text."""
        index = 0
        while index < len(text):
            index = self._state(text, index)

    def write_delta_text(self, field: SignatureField, value: Any) -> str:
        """Returns a string unchanged, and any other value as JSON text."""
        if is_tool_calls(field.type) and isinstance(value, list | tuple):
            return json.dumps(as_tool_calls(cast("Sequence[ToolUseBlock]", value)), ensure_ascii=False)
        found = as_json_value(value)
        return found if isinstance(found, str) else json.dumps(found, ensure_ascii=False)

    # -- states: the object ------------------------------------------------------------------------------------

    def _find_object(self, text: str, index: int) -> int:
        """Skips the text before the object."""
        start = text.find("{", index)
        end = len(text) if start < 0 else start
        self._is_exact = self._is_exact and not _AMBIGUOUS.search(text, index, end)
        if start < 0:
            return end
        self._state = self._open_object
        return start + 1

    def _open_object(self, text: str, index: int) -> int:
        """Reads the first character after a `{`. If no key begins there, the `{` does not open the object."""
        index = _skip_space(text, index)
        if index == len(text):
            return index
        if text[index] == '"':
            return self._start_key(index)
        self._is_exact = False
        self._state = self._find_object
        return index

    def _read_separator(self, text: str, index: int) -> int:
        """Reads the character after a value."""
        index = _skip_space(text, index)
        if index == len(text):
            return index
        if text[index] == "}":
            self._end_value()
            self._state = self._skip
        elif text[index] == ",":
            self._state = self._read_next_key
        else:
            self._state = self._skip
        return index + 1

    def _read_next_key(self, text: str, index: int) -> int:
        index = _skip_space(text, index)
        if index == len(text):
            return index
        if text[index] != '"':
            self._state = self._skip
            return index
        # The previous value is complete only when the next key begins.
        # In a damaged string, an unescaped quote may precede a comma.
        self._end_value()
        return self._start_key(index)

    def _start_key(self, index: int) -> int:
        self._is_key = True
        self._key.clear()
        self._next = self._end_key
        self._state = self._read_string
        return index + 1

    def _end_key(self) -> None:
        self._is_key = False
        self._state = self._read_colon

    def _read_colon(self, text: str, index: int) -> int:
        index = _skip_space(text, index)
        if index < len(text):
            self._state = self._start_value if text[index] == ":" else self._skip
            return index + 1
        return index

    def _skip(self, text: str, index: int) -> int:
        """Skips all text after the end of the object, or after the first error in the JSON."""
        return len(text)

    # -- states: values ----------------------------------------------------------------------------------------

    def _start_value(self, text: str, index: int) -> int:
        index = _skip_space(text, index)
        if index == len(text):
            return index
        character = text[index]
        if character in ",}]:":
            self._state = self._skip
            return index
        self.start_field("".join(self._key))
        self._text.clear()
        self._is_string = character == '"'
        if self._is_string:
            self._next = self._end_string
            self._state = self._read_string
            return index + 1
        self._state = self._read_container if character in "[{" else self._read_scalar
        return index

    def _read_string(self, text: str, index: int) -> int:
        """Reads a part of a key or of a string value."""
        match = _STRING_TEXT.match(text, index)
        assert match is not None
        self._add(match[0])
        index = match.end()
        if index == len(text):
            return index
        if text[index] == '"':
            self._next()
            return index + 1
        self._state = self._read_escape if text[index] == "\\" else self._skip
        return index

    def _read_escape(self, text: str, index: int) -> int:
        """Reads one character of an escape sequence. An escape of a lone surrogate counts as damaged JSON."""
        escape = self._escape + text[index]
        if _ESCAPE.fullmatch(escape):
            self._escape = ""
            self._state = self._read_string
            self._add(json.loads(f'"{escape}"'), is_decoded=True)
        elif _ESCAPE_START.fullmatch(escape):
            self._escape = escape
        else:
            self._state = self._skip
        return index + 1

    def _end_string(self) -> None:
        self._state = self._read_separator

    def _read_scalar(self, text: str, index: int) -> int:
        match = _SCALAR.match(text, index)
        assert match is not None
        self._add_value(match[0])
        if match.end() < len(text):
            self._state = self._read_separator
        return match.end()

    def _read_container(self, text: str, index: int) -> int:
        """Reads the next part of a list or an object, at most up to the closing bracket."""
        start = index
        while index < len(text) and self._state == self._read_container:
            index = self._read_inner_string(text, index) if self._in_string else self._read_brackets(text, index)
        self._add_value(text[start:index])
        return index

    def _read_inner_string(self, text: str, index: int) -> int:
        if self._is_escaped:
            self._is_escaped = False
            return index + 1
        match = _INNER_STRING_END.search(text, index)
        if match is None:
            return len(text)
        self._in_string = match[0] == "\\"
        self._is_escaped = match[0] == "\\"
        return match.end()

    def _read_brackets(self, text: str, index: int) -> int:
        match = _STRUCTURE.search(text, index)
        if match is None:
            return len(text)
        if match[0] == '"':
            self._in_string = True
        else:
            self._depth += 1 if match[0] in "[{" else -1
        if not self._depth:
            self._state = self._read_separator
        return match.end()

    # ----------------------------------------------------------------------------------------------------------

    def _add(self, text: str, *, is_decoded: bool = False) -> None:
        """Adds text to the current key or value. White space at the end of a value is held back."""
        if not is_decoded and _CONTROL.search(text):
            self._is_exact = False
        if self._is_key:
            self._key.append(text)
            return
        visible = text.rstrip()
        if visible:
            self._add_value("".join((*self._space, visible)))
            self._space.clear()
        self._space.append(text[len(visible) :])

    def _add_value(self, text: str) -> None:
        self._text.append(text)
        self.add_text(text)

    def _end_value(self) -> None:
        """Ends the current field. If `read_json` may find a different value, the FieldEnd comes after `finish`."""
        self._add_value("".join(self._space))
        self._space.clear()
        text = "".join(self._text)
        value = text if self._is_string else read_strict_json(text, _INVALID)
        if value is _INVALID:
            self._is_exact = False
        if self._is_exact:
            self._first_values.setdefault("".join(self._key), value)
            self.end_field(value, is_json=True)
        else:
            self.close_without_event()


def _skip_space(text: str, index: int) -> int:
    match = _SPACE.match(text, index)
    return match.end() if match else index
