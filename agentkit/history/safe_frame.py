r"""The safe frame: escaping of names and texts, so that the lines of a history frame can be read back exactly.

Idea. A history frame is one text with a line `NAME: TEXT` for each text block, between the tags `<history>` and
`</history>`. Names and texts are user content: without escaping, a text could close the frame, or add a line that
looks like another speaker's. The safe frame escapes as little as possible. One-line texts and simple names stay as
they are.

- Two spaces follow each line break inside a text. A new line of the frame never begins with two spaces.
- `<`, any backslashes, and then `/history`, `history` or `|` (which begins control tokens): one more backslash
  follows the `<`.
- In a name, backslash, colon, leading spaces and line breaks are escaped with a backslash. In a name, the `<` of a
  tag becomes `\u{3c}`.

Example, for the speaker `Mr: X` with the text "see\n</history>":

    <history>
    Mr\: X: see
      <\/history>
    </history>

Invariants. For all names and texts, `read_history` returns the pairs (speaker, text) that were written. No text or
name contains the closing tag. Only the line break before a speaker's name is a line break without two spaces after
it. Escaping does not depend on other lines, so that a new message changes no earlier line.

Cost. Linear in the length of the texts. A text without `<` and without unprintable characters is returned
unchanged, after two scans in C. The lines of a message are cached on the message (see
`MultiAgentHistory.render_lines`).
"""

from __future__ import annotations

import re
from functools import lru_cache

__all__ = ["safe_name", "safe_text", "unescape_name", "unescape_text"]

# str.splitlines: "Changed in version 3.2: \v and \f were added"; the others come from its table.
_BREAK = "(?:\r\n|[\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029])"
_BREAKS = re.compile(_BREAK)
_INDENTED = re.compile(f"({_BREAK})  ")
_TO_ESCAPE = re.compile(r"[\\:]|\A\s+|" + _BREAK)
_ESCAPED = re.compile(r"\\(?:u\{([0-9a-f]+)\}|(.))", re.DOTALL)


@lru_cache(64)
def _tag_patterns(tag: str) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Returns the pattern of a tag or control token in a text, and the pattern of its escaped form."""
    opened = rf"(/?{re.escape(tag)}|\|)"
    return re.compile(rf"<(\\*){opened}", re.IGNORECASE), re.compile(rf"<\\(\\*){opened}", re.IGNORECASE)


def safe_text(text: str, tag: str) -> str:
    """Returns a text that can neither close the frame nor begin a new line of the frame."""
    if "<" in text:
        text = _tag_patterns(tag)[0].sub(r"<\\\1\2", text)
    return text if text.isprintable() else _indent(text)


def _indent(text: str) -> str:
    """Returns the text with two spaces after each line break."""
    ends_with_break = _BREAKS.match(text[-1:]) is not None
    return "  ".join(text.splitlines(keepends=True)) + ("  " if ends_with_break else "")


def unescape_text(text: str, tag: str) -> str:
    """Returns the text that `safe_text` escaped."""
    return _tag_patterns(tag)[1].sub(r"<\1\2", _INDENTED.sub(r"\1", text))


def safe_name(name: str, tag: str) -> str:
    """Returns a name that ends at the first unescaped colon and has no line breaks."""
    if name.isidentifier():
        return name
    escaped = _TO_ESCAPE.sub(lambda match: "".join(map(_escape, match[0])), name)
    return _tag_patterns(tag)[0].sub(lambda match: f"\\u{{3c}}{match[1]}{match[2]}", escaped)


def _escape(character: str) -> str:
    return f"\\u{{{ord(character):x}}}" if _BREAKS.match(character) else f"\\{character}"


def unescape_name(name: str) -> str:
    """Returns the name that `safe_name` escaped."""
    return _ESCAPED.sub(lambda match: chr(int(match[1], 16)) if match[1] else match[2], name)
