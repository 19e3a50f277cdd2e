r"""Escaping of names and texts in history frames, so that `read_history` returns them exactly.

Idea. A history frame is one text with a line `NAME: TEXT` for each text block, between the tags `<history>` and
`</history>`. Names and texts are user content. Without escaping, a text could close the frame, or add a line that
seems to come from another speaker. Only special characters are escaped: texts of one line and simple names usually
stay unchanged.

- Inside a text, two spaces follow each line break. Each line of the frame starts with a name, and no escaped name
  begins with a space. The line breaks inside a text therefore differ from the line breaks between lines.
- A backslash is inserted after each `<` that precedes `/history`, `history` or `|`. `</history` and `<history`
  begin the tags, and `<|` begins control tokens. If backslashes already follow the `<`, one more backslash is
  added.
- In a name, a backslash precedes each backslash, colon and leading space. Line breaks, and the `<` of a tag,
  become escapes such as `\u{3c}`.

Example: the speaker `Mr: X` writes the text "see\n</history>".

    <history>
    Mr\: X: see
      <\/history>
    </history>

Invariants. For all names and texts, `read_history` returns the (speaker, text) pairs that were written. No escaped
text or name contains the closing tag. A line break is part of a text if and only if two spaces follow the line
break. A line does not depend on other lines, so that a new message changes no earlier line.

Cost. The time is linear in the length of the texts. A printable text without `<` is returned unchanged after two
fast scans. The lines of a message are cached on the message (see `MultiAgentHistory.render_lines`).
"""

from __future__ import annotations

import re
from functools import lru_cache

__all__ = ["safe_name", "safe_text", "unescape_name", "unescape_text"]

# The line breaks that `str.splitlines` recognizes, according to the table in the Python documentation.
_BREAK = "(?:\r\n|[\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029])"
_BREAKS = re.compile(_BREAK)
_INDENTED = re.compile(f"({_BREAK})  ")
_TO_ESCAPE = re.compile(r"[\\:]|\A\s+|" + _BREAK)
_ESCAPED = re.compile(r"\\(?:u\{([0-9a-f]+)\}|(.))", re.DOTALL)


@lru_cache(64)
def _tag_patterns(tag: str) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Returns two regular expressions: one matches text that must be escaped, the other matches escaped text."""
    opened = rf"(/?{re.escape(tag)}|\|)"
    return re.compile(rf"<(\\*){opened}", re.IGNORECASE), re.compile(rf"<\\(\\*){opened}", re.IGNORECASE)


def safe_text(text: str, tag: str) -> str:
    """Escapes a text so that it can neither close a history frame nor begin a new line of the frame."""
    if "<" in text:
        text = _tag_patterns(tag)[0].sub(r"<\\\1\2", text)
    return text if text.isprintable() else _indent(text)


def _indent(text: str) -> str:
    ends_with_break = _BREAKS.match(text[-1:]) is not None
    return "  ".join(text.splitlines(keepends=True)) + ("  " if ends_with_break else "")


def unescape_text(text: str, tag: str) -> str:
    """Returns the original of a text that `safe_text` escaped."""
    return _tag_patterns(tag)[1].sub(r"<\1\2", _INDENTED.sub(r"\1", text))


def safe_name(name: str, tag: str) -> str:
    """Escapes a name. The result has no line break and no unescaped colon, because either would end the name."""
    if name.isidentifier():
        return name
    escaped = _TO_ESCAPE.sub(lambda match: "".join(map(_escape, match[0])), name)
    return _tag_patterns(tag)[0].sub(lambda match: f"\\u{{3c}}{match[1]}{match[2]}", escaped)


def _escape(character: str) -> str:
    return f"\\u{{{ord(character):x}}}" if _BREAKS.match(character) else f"\\{character}"


def unescape_name(name: str) -> str:
    """Returns the original of a name that `safe_name` escaped."""
    return _ESCAPED.sub(lambda match: chr(int(match[1], 16)) if match[1] else match[2], name)
