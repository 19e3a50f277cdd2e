r"""`XMLStreamParser`: finds the tags of the outputs in the text of a streamed reply.

Idea
    Outputs that are texts are reported as they arrive. The events of nested values come last, because a repeated
    section can change such a value. The parser is outside of all elements, inside the element of an output, or
    inside another element, whose content is skipped. A `<` or `&` is held back until the text after it shows
    whether a tag or a reference begins.

    The meaning of some texts depends on the text that follows. Examples are a comment inside an element, and a tag
    with the name of the output that contains the tag. At the first such text, the parser stops, and `finish` adds
    the remaining events from the complete reply. If an element turns out to have no closing tag, its text is
    already in the events. FieldEnd then has the value of the section that `Adapter.parse` reads.

Cost
    Each character is read once. The pieces of a held-back text are joined when a character that can end a tag
    arrives. A held-back text has at most 1,000 characters.

Example:
    >>> from agentkit.prompts import Signature, XMLAdapter
    >>> parser = XMLAdapter().stream_parser(Signature("question -> answer: str, why: str"))
    >>> for piece in ("<think>Hm.</think><ans", "wer>a &l", "t; b </answer>\n<why>"):
    ...     print(parser.feed(piece))
    []
    [FieldStart(name='answer'), FieldDelta(name='answer', text='a')]
    [FieldDelta(name='answer', text=' < b'), FieldEnd(name='answer', value='a < b'), FieldStart(name='why')]
"""

from __future__ import annotations

import re
from functools import cached_property
from types import NoneType
from typing import Any, Final, TypeAlias, get_args

from agentkit.prompts.adapter import Adapter
from agentkit.prompts.field_stream_parser import FieldStreamParser
from agentkit.prompts.fields import SignatureField
from agentkit.prompts.signature import Signature
from agentkit.prompts.xml_elements import TAG, Element, is_open_tag, read_elements
from agentkit.prompts.xml_references import MARKUP_CLOSINGS, REFERENCE, decode_references
from agentkit.prompts.xml_values import is_text_field

__all__ = ["XMLStreamParser"]

_AnySignature: TypeAlias = type[Signature[Any]]

_SPECIAL: Final = re.compile("[<&]")
_TAG_END: Final = re.compile("[<>\"']")
_OPEN_REFERENCE: Final = re.compile("&(?:[a-z]{0,4}|#[0-9]{0,7}|#x[0-9a-fA-F]{0,6})")
_MAX_HELD: Final = 1_000
_KEYED: Final = "entry"
"""Tag whose attribute `key` may be the name of an output."""


class XMLStreamParser(FieldStreamParser):
    """Parser of replies with each output between its tags, as `XMLAdapter` requests them.

    If an output is a text, its deltas contain the text between the tags, without outer white space and with
    decoded references. The events of all other outputs come last.
    """

    def __init__(self, adapter: Adapter, signature: _AnySignature) -> None:
        super().__init__(adapter, signature)
        self._held: list[str] = []  # held-back `<` or `&` with the text after it, or a part of `_closing`
        self._held_length = 0
        self._element = ""  # name of the current element: an output, or an element that is skipped
        self._closing = ""  # closing text of the comment or CDATA section that is skipped
        self._is_output = False  # True inside the element of an output
        self._has_tags = False  # True after a tag inside the element of an output
        self._seen_names: set[str] = set()  # names of the elements that have begun
        self._has_stopped = False

    def read(self, text: str) -> None:
        """Reads the next piece of the text."""
        if self._has_stopped:
            return
        if self._held:
            is_tag = self._held[0][0] == "<"
            self._held.append(text)
            self._held_length += len(text)
            if is_tag and not _TAG_END.search(text) and self._held_length <= _MAX_HELD:
                return
            text = "".join(self._held)
            self._held.clear()
        index = 0
        while index < len(text) and not self._has_stopped:
            index = self._read_part(text, index)

    def read_end(self) -> None:
        """Closes the field that is still open at the end of the text. `finish` adds its last events."""
        self._stop()

    def write_delta_text(self, field: SignatureField, value: Any) -> str:
        """Returns the text between the tags of an output, if the output is a text.

        For any other output, see `FieldStreamParser`.
        """
        element = self._elements.get(field.name) if is_text_field(field) else None
        return super().write_delta_text(field, value) if element is None else element.text

    @cached_property
    def _elements(self) -> dict[str, Element]:
        """Maps each name to the first element with this name in the complete reply."""
        elements = [*read_elements("".join(self._pieces), self._fields)]
        return {element.name: element for element in reversed(elements)}

    def _stop(self) -> None:
        self._has_stopped = True
        self.close_without_event()

    def _read_part(self, text: str, index: int) -> int:
        """Reads the text up to the next `<` or `&`, or a tag or reference that begins at `index`.

        Returns the index after the part that was read.
        """
        if self._closing:
            return self._skip_comment(text, index)
        match = _SPECIAL.search(text, index)
        end = match.start() if match else len(text)
        if end > index:
            if self._is_output:
                self.add_trimmed(text[index:end])
            return end
        return self._read_tag(text, index) if text[index] == "<" else self._read_reference(text, index)

    def _skip_comment(self, text: str, index: int) -> int:
        found = text.find(self._closing, index)
        if found < 0:
            self._hold(text[max(index, len(text) - len(self._closing) + 1) :])
            return len(text)
        end = found + len(self._closing)
        self._closing = ""
        return end

    def _hold(self, text: str) -> None:
        """Holds text back until the next piece. If the text is too long, the parser stops."""
        if len(text) > _MAX_HELD:
            self._stop()
        elif text:
            self._held.append(text)
            self._held_length = len(text)

    def _read_reference(self, text: str, index: int) -> int:
        if not self._is_output:
            return index + 1
        match = REFERENCE.match(text, index)
        if match is None and _OPEN_REFERENCE.fullmatch(text, index):
            self._hold(text[index:])
            return len(text)
        if match is None:
            self.add_trimmed("&")
            return index + 1
        # `Adapter.parse` decodes a reference after a tag only if none of the tags before it has a closing tag.
        if self._has_tags:
            self._stop()
        else:
            self.add_untrimmed(decode_references(match[0]))
        return match.end()

    def _read_tag(self, text: str, index: int) -> int:
        match = TAG.match(text, index)
        if match is None:
            if is_open_tag(text, index):
                self._hold(text[index:])
                return len(text)
            if self._is_output:
                self.add_trimmed("<")
            return index + 1
        if match[0] in MARKUP_CLOSINGS:
            self._read_comment(match[0])
        else:
            self._read_element(match[0], match[2], is_closing=bool(match[1]), is_empty=match[3].endswith("/"))
        return match.end()

    def _read_comment(self, opening: str) -> None:
        if self._element:
            self._stop()
        else:
            self._closing = MARKUP_CLOSINGS[opening]

    def _read_element(self, tag: str, name: str, *, is_closing: bool, is_empty: bool) -> None:
        if name == _KEYED:
            self._stop()
        elif not self._element:
            self._open(name, is_closing=is_closing, is_empty=is_empty)
        elif name == self._element:
            self._end_element(is_closing=is_closing)
        elif self._is_output and "&" in tag:  # tags that follow decide whether the reference is decoded
            self._stop()
        elif self._is_output:
            self._has_tags = True
            self.add_trimmed(tag)

    def _open(self, name: str, *, is_closing: bool, is_empty: bool) -> None:
        if is_closing:
            return
        field = self._fields.get(name)
        is_first = name not in self._seen_names
        self._seen_names.add(name)
        if is_empty:
            return
        self._element = name
        if field is not None and is_first and is_text_field(field):
            self._is_output = True
            self._has_tags = False
            self.start_field(name)

    def _end_element(self, *, is_closing: bool) -> None:
        if not is_closing:  # a tag with the name of its parent: the next closing tag may end either element
            self._stop()
            return
        if self._is_output:
            field = self._fields[self._element]
            is_none = not self._has_text and NoneType in get_args(field.type)
            (self.close_without_event if is_none else self.end_field)()
        self._element, self._is_output = "", False
