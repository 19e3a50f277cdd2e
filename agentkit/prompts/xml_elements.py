r"""`Element`: an XML element in the reply of a model. The reply need not be well-formed XML.

The parser expands only the five predefined entities of XML, and loads no files. The time is proportional to the
length of the text. An opening tag without a closing tag is text, and so is a closing tag without an opening tag.
Comments and CDATA sections contain no tags. Line breaks and control characters are unchanged.

>>> [(element.name, element.text) for element in read_elements("So: <a>1 < 2</a><b>R&amp;D</b>")]
[('a', '1 < 2'), ('b', 'R&D')]
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final, NamedTuple

from agentkit.prompts.xml_references import MARKUP_CLOSINGS, decode_references, scan_markup

__all__ = [
    "Element",
    "TAG",
    "has_declaration",
    "is_open_tag",
    "read_elements",
]

_NAME: Final = r"[^\W\d][^\s<>/=\"'&]*+"
_ATTRIBUTES: Final = r"(?:\"[^\"<]*\"|'[^'<]*'|[^<>\"'])*+"
TAG: Final = re.compile(rf"<!--|<!\[CDATA\[|<(/?)({_NAME})({_ATTRIBUTES})>")
_OPEN_TAG: Final = re.compile(rf"</?(?:{_NAME}(?:\"[^\"<]*\"|'[^'<]*'|[^<>\"'])*+(?:\"[^\"<]*|'[^'<]*)?)?")
_KEY: Final = re.compile(r"\skey\s*=\s*(?:\"([^\"]*)\"|'([^']*)')")
_DECLARATION: Final = re.compile(r"<!(?:DOCTYPE|ENTITY)", re.IGNORECASE)


def is_open_tag(text: str, start: int) -> bool:
    """Returns True if the `<` at `start` may become a tag, a comment or a CDATA section when more text follows."""
    if _OPEN_TAG.fullmatch(text, start):
        return True
    suffix = text[start : start + 10]  # 10 characters, because the longest opening text `<![CDATA[` has 9
    return any(opening.startswith(suffix) for opening in MARKUP_CLOSINGS)


class _Tag(NamedTuple):
    """Tag in a text. `kind` is `/` (closing tag), `empty` (such as `<a />`), or an empty string (opening tag)."""

    kind: str
    name: str
    start: int
    end: int


@dataclass(frozen=True, eq=False)
class _Document:
    """Text with its tags.

    Attributes:
        text: The text.
        tags: Tags in the order of the text.
        ends: Maps the index of an opening tag in `tags` to the index of its closing tag.
        closings: Maps the name of a tag to the indexes of all closing tags with this name in `tags`.
    """

    text: str
    tags: Sequence[_Tag]
    ends: dict[int, int]
    closings: dict[str, list[int]]

    @classmethod
    def read(cls, text: str) -> _Document:
        tags: list[_Tag] = []
        for match, end in scan_markup(TAG, text) if "<" in text else ():
            if match[0] not in MARKUP_CLOSINGS:
                kind = match[1] or ("empty" if match[3].endswith("/") else "")
                tags.append(_Tag(kind, match[2], match.start(), end))
        ends: dict[int, int] = {}
        closings: dict[str, list[int]] = {}
        opened: dict[str, list[int]] = {}
        for index, tag in enumerate(tags):
            if not tag.kind:
                opened.setdefault(tag.name, []).append(index)
            elif tag.kind == "/":
                closings.setdefault(tag.name, []).append(index)
                if indexes := opened.get(tag.name):
                    ends[indexes.pop()] = index
        return cls(text, tags, ends, closings)

    def list_elements(self, first: int, last: int, names: Collection[str] = ()) -> Iterator[Element]:
        """Yields the outermost elements whose tags have indexes from `first` to `last - 1`.

        If an opening tag with a name in `names` has no balanced closing tag, its element ends at the next closing
        tag of this name.
        """
        index = first
        while index < last:
            end = self._find_end(index, names)
            if end is None or end >= last:
                index += 1
                continue
            yield Element(self, index, end)
            index = end + 1

    def _find_end(self, index: int, names: Collection[str]) -> int | None:
        tag = self.tags[index]
        if tag.kind:
            return index if tag.kind == "empty" else None
        if index in self.ends or tag.name not in names:
            return self.ends.get(index)
        closings = self.closings.get(tag.name, [])
        position = bisect_left(closings, index)
        return closings[position] if position < len(closings) else None


@dataclass(frozen=True, eq=False)
class Element:
    """Element of a text: an opening tag, its closing tag, and the text between them.

    Attributes:
        document: The complete text with its tags.
        first: Index of the opening tag.
        last: Index of the closing tag. For an empty tag such as `<a />`, the index of this tag.
    """

    document: _Document
    first: int
    last: int

    @property
    def name(self) -> str:
        """Name of the tag. For a tag `<entry key="…">`, the value of the attribute `key`."""
        tag = self.document.tags[self.first]
        if tag.name == "entry" and (match := _KEY.search(self.document.text, tag.start, tag.end)):
            return decode_references(match[1] if match[1] is not None else match[2])
        return tag.name

    @property
    def is_empty_tag(self) -> bool:
        """True if the element is one empty tag, such as `<a />`."""
        return self.first == self.last

    @property
    def span(self) -> tuple[int, int]:
        """Start and end of the element in the complete text."""
        return self.document.tags[self.first].start, self.document.tags[self.last].end

    @property
    def source(self) -> str:
        """Text between the tags, unchanged."""
        tags = self.document.tags
        return "" if self.is_empty_tag else self.document.text[tags[self.first].end : tags[self.last].start]

    @cached_property
    def children(self) -> tuple[Element, ...]:
        """Outermost elements between the tags."""
        return tuple(self.document.list_elements(self.first + 1, self.last))

    @cached_property
    def text(self) -> str:
        """Text between the tags, without outer white space.

        References before the first child element are decoded. From the first child element on, the text stays
        unchanged.
        """
        if not self.children:
            return decode_references(self.source.strip())
        start, end = self.document.tags[self.first].end, self.document.tags[self.last].start
        middle = self.children[0].span[0]
        head, tail = self.document.text[start:middle], self.document.text[middle:end]
        return decode_references(head.lstrip()) + tail.rstrip()

    @property
    def is_blank(self) -> bool:
        """True if there is only white space between the tags. Even an empty CDATA section counts as a text."""
        return not self.source.strip()


def read_elements(text: str, names: Collection[str] = ()) -> Iterator[Element]:
    """Yields the outermost elements of a text.

    Args:
        text: Text of a reply.
        names: Names of the elements that may contain unbalanced tags of their own name. Such an element ends at
            its first closing tag.
    """
    document = _Document.read(text)
    yield from document.list_elements(0, len(document.tags), names)


def has_declaration(text: str, elements: Sequence[Element]) -> bool:
    """Returns True if a text declares a document type or an entity outside its elements."""
    spans = [element.span for element in elements]
    position = 0
    for start, end in (*spans, (len(text), len(text))):
        if _DECLARATION.search(text, position, start):
            return True
        position = end
    return False
