"""Spans: the positions of the texts in blocks `{% generation %}` of a chat template.

Templates for training put the text that the model writes into a block `generation`. The environment prints a
mark at the start (U+0002) and at the end (U+0003) of such a block. `render_chat` removes the marks and returns
their positions. If a value contains a mark, or a filter changes a mark, the number of marks in the text is wrong.
The template is then rendered again with private-use characters that no value contains.

The variable for a mark is an iterator, and not a text. The generated code calls `next` to print the mark, so
`count_marks` can count the printed marks.

The positions are right in macros too, unlike those of transformers. If the template captures the output of a
block, for example with `set`, the marks could change the result of a filter. Then the template is also rendered
without marks. If the two texts differ, the result has no positions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import repeat
from operator import length_hint
from typing import Any, Final, cast

__all__ = [
    "MARKS",
    "NO_MARKS",
    "SPAN_END",
    "SPAN_START",
    "choose_marks",
    "count_marks",
    "create_mark_printer",
    "remove_marks",
]

SPAN_START: Final = "0_span_start"
"""Name of the iterator whose next character is printed at the start of each block `generation`.

The name starts with a digit, so that templates cannot read the variable.
"""
SPAN_END: Final = "0_span_end"
"""Name of the iterator whose next character is printed at the end of each block `generation`."""

NO_MARKS: Final[Mapping[str, Any]] = {SPAN_START: repeat(""), SPAN_END: repeat("")}
"""Values of the two variables for a rendering without marks."""

MARKS: Final = ("\x02", "\x03")
"""Characters at the start and at the end of a span, if no value contains them."""

_MAX_PRINTS: Final = 2**31  # more than the limits of renderings allow
_FIRST_MARK: Final = 0x10FF00  # first private-use character that can replace `MARKS`


def create_mark_printer(character: str) -> repeat[str]:
    """Returns an iterator that yields a character at the start, or at the end, of each span."""
    return repeat(character, _MAX_PRINTS)


def count_marks(printer: repeat[str]) -> int:
    """Returns the number of marks that the template printed with an iterator from `create_mark_printer`."""
    return _MAX_PRINTS - length_hint(printer)


def choose_marks(values: Any) -> tuple[str, str]:
    """Returns two private-use characters that none of the values contains."""
    texts = [*_list_texts(values)]
    code = _FIRST_MARK
    while any(chr(code) in text or chr(code + 1) in text for text in texts):
        code += 2
    return chr(code), chr(code + 1)


def _list_texts(value: Any) -> Iterator[str]:
    """Yields all texts in a JSON value, and the keys of its objects."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for key, item in cast("Mapping[str, Any]", value).items():
            yield key
            yield from _list_texts(item)
    elif isinstance(value, list | tuple):
        for item in cast("Iterable[Any]", value):
            yield from _list_texts(item)


def remove_marks(marked: str, start: str, end: str) -> tuple[str, tuple[tuple[int, int], ...]]:
    """Removes the characters at the start and at the end of spans. Returns the text and the spans in the text."""
    spans: list[tuple[int, int]] = []
    texts: list[str] = []
    depth = opened = removed = index = 0
    opening, closing = marked.find(start), marked.find(end)
    while opening >= 0 or closing >= 0:
        if 0 <= opening < closing or closing < 0:
            texts.append(marked[index:opening])
            index = opening + 1
            opened = opened if depth else opening - removed
            depth += 1
            opening = marked.find(start, index)
        else:
            texts.append(marked[index:closing])
            index = closing + 1
            depth -= 1
            if not depth:
                spans.append((opened, closing - removed))
            closing = marked.find(end, index)
        removed += 1
    return "".join([*texts, marked[index:]]), tuple(spans)
