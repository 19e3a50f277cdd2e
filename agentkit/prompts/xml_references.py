"""Functions that escape and decode XML references such as `&lt;`, and find comments and CDATA sections."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

__all__ = ["MARKUP_CLOSINGS", "REFERENCE", "decode_references", "escape_references", "scan_markup"]

MARKUP_CLOSINGS: Final = {"<!--": "-->", "<![CDATA[": "]]>"}
"""Maps the opening texts of comments and CDATA sections to their closing texts."""
REFERENCE: Final = re.compile(r"<!--|<!\[CDATA\[|&(?:(amp|lt|gt|quot|apos)|#([0-9]{1,7})|#x([0-9a-fA-F]{1,6}));")
_CHARACTERS: Final = {"amp": "&", "lt": "<", "gt": ">", "quot": '"', "apos": "'"}


def scan_markup(pattern: re.Pattern[str], text: str) -> Iterator[tuple[re.Match[str], int]]:
    """Yields each match of a pattern with the index of its end.

    A match that opens a comment or a CDATA section ends after the closing text. If there is no closing text, the
    match is skipped.
    """
    unclosed: set[str] = set()
    position = 0
    while match := pattern.search(text, position):
        position = match.end()
        closing = MARKUP_CLOSINGS.get(match[0])
        if closing is not None:
            end = -1 if closing in unclosed else text.find(closing, position)
            if end < 0:
                unclosed.add(closing)
                continue
            position = end + len(closing)
        yield match, position


def escape_references(text: str) -> str:
    """Replaces `&` and `<` with their references."""
    return text.replace("&", "&amp;").replace("<", "&lt;")


def decode_references(text: str) -> str:
    """Replaces references with their characters and CDATA sections with their texts, and removes comments.

    An unknown reference, such as `&nbsp;`, is text.

    >>> decode_references("a &lt; b&#33; <![CDATA[&lt;]]><!-- c -->&nbsp;")
    'a < b! &lt;&nbsp;'
    """
    if "&" not in text and "<!" not in text:
        return text
    pieces: list[str] = []
    position = 0
    for match, end in scan_markup(REFERENCE, text):
        pieces += (text[position : match.start()], _decode(match, end))
        position = end
    return "".join((*pieces, text[position:]))


def _decode(match: re.Match[str], end: int) -> str:
    if match[0] in MARKUP_CLOSINGS:
        return match.string[match.end() : end - 3] if match[0] == "<![CDATA[" else ""
    if match[1]:
        return _CHARACTERS[match[1]]
    code = int(match[2]) if match[2] else int(match[3], 16)
    is_character = 0 < code < 0xD800 or 0xDFFF < code <= 0x10FFFF
    return chr(code) if is_character else match[0]
