r"""Escapes of texts in prompts, with the table of all values that agentkit writes or reads differently from DSPy.

Idea. DSPy writes some pairs of different values as the same text, so that no parser can return the original value.
Each row of the table makes the texts of one kind of such pairs different. All other values are written as DSPy
3.4.1 writes them. For each value, `parse_value(write_value(value, type), type)` returns an equal value.

1. Text with outer white space. A backslash protects white space at the start or at the end of the text.
   `str`: " a" becomes `\ a`, and "a " becomes `a \`. DSPy removes the white space.
2. Text `None`, if the type also allows None. A backslash precedes this text. `None` without a backslash is None.
   `str | None`: "None" becomes `\None`, and None becomes `None`. DSPy writes and reads both as the text.
3. In a union of `str`, None and other types: text that looks like a value of another type. A backslash precedes
   the text.
   `str | int | None`: "5" becomes `\5`, and 5 becomes `5`. DSPy writes and reads both as the text.
4. In any other type: text that looks like another value. The text becomes a JSON string, which DSPy reads too.
   `int | str`: "3" becomes `"3"`, and 3 becomes `3`. DSPy writes `3` for both, and reads both as the number.
5. Text that looks like a number, boolean or None, if both are members of one type. The text becomes a JSON string.
   `Literal[1, "1"]`: 1 becomes `1`, and "1" becomes `"1"`. DSPy writes `1` for both, and reads both as the text.
6. Enum member whose value is not a text. The text of the value is read as the member.
   `IntEnum` with LOW = 1: LOW becomes `1`. DSPy writes the same, but reads only the name `LOW`.
7. Member of an enum or `Literal` without a unique text. An enum member becomes its name, and a member "1" of a
   `Literal` becomes `Literal["1"]`, which DSPy reads too.
   Enum with A = (1, 2) and B = [1, 2]: B becomes `B`. DSPy writes `[1, 2]` for both, and reads neither.
8. NaN and infinity. They become JSON constants in arrays and objects, and in types that also accept texts. In a
   part of a pydantic model with the type `Any`, they become null, as in DSPy.
   `list[float]`: [NaN] becomes `[NaN]`, and DSPy writes `[null]`. `float | str`: NaN becomes `NaN`, not `nan`.
9. Code that contains a fence, has outer white space, or is JSON that `Code` would parse. The code is written
   between longer fences.
   `Code`: " x" becomes a fence of four backticks with exactly " x" inside. DSPy writes ` x` and reads `x`.
10. Line that begins with a section marker, in any value. A backslash precedes the marker.
   `[[ ## score ## ]]` becomes `\[[ ## score ## ]]`. DSPy reads the line as the start of another field.
11. Carriage return and other line breaks. The text is unchanged, and a section keeps its line breaks.
   "a\rb" becomes the same three characters. DSPy reads a line feed instead of the carriage return.
12. Several values of one output in a JSON reply. The first value counts, because a stream has already sent it.
   `{"x": 1, "x": 2}` is read as 1, and so is `{"x": 1} or {"x": 2}`. DSPy reads 2.

In rows 1, 2, 3 and 10, one more backslash is added if backslashes already precede the text. In row 1, this also
applies to backslashes that follow the text. Rows 1 to 9 are part of `write_value` and `parse_value`. Row 10 is for
prompts with section markers: such a prompt contains `escape_markers(write_value(…))`, and a section is parsed with
`parse_value(unescape_markers(…))`.

>>> escape_text(" a\n")
'\\ a\n\\'
>>> unescape_text(escape_text(" a\n"))
' a\n'
>>> escape_text("None", {"None"}.__contains__)
'\\None'
>>> escape_markers("first\n[[ ## score ## ]]\n10")
'first\n\\[[ ## score ## ]]\n10'
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

__all__ = ["MARKER_START", "escape_markers", "escape_text", "unescape_markers", "unescape_text"]


def _is_never_special(text: str) -> bool:
    return False


def escape_text(text: str, is_special: Callable[[str], bool] = _is_never_special) -> str:
    """Escapes a text so that a parser keeps its outer white space and does not read the text as another value.

    Args:
        text: Any text.
        is_special: Function that returns True for a text that a parser would read as another value. The function
            receives the text without the backslashes at its start.
    """
    if is_special(text.lstrip("\\")):
        text = f"\\{text}"
    if text.lstrip("\\")[:1].isspace():
        text = f"\\{text}"
    return f"{text}\\" if text.rstrip("\\")[-1:].isspace() else text


def unescape_text(text: str, is_special: Callable[[str], bool] = _is_never_special) -> str:
    """Returns the original of a text that `escape_text` escaped. Returns a text without escapes unchanged."""
    if "\\" not in text:
        return text
    if text.endswith("\\") and text.rstrip("\\")[-1:].isspace():
        text = text[:-1]
    if text.startswith("\\") and text.lstrip("\\")[:1].isspace():
        text = text[1:]
    return text[1:] if text.startswith("\\") and is_special(text.lstrip("\\")) else text


_MARKER: Final = re.compile(r"(\s*)(\\*)(\[\[ ## \w+ ## \]\])")
MARKER_START: Final = "[[ ## "
"""Start of a section marker, such as `[[ ## score ## ]]`."""


def escape_markers(text: str) -> str:
    """Adds a backslash before each section marker at the start of a line, so that the marker starts no section.

    A line ends at any line break that `str.splitlines` recognizes. A marker in the middle of a line starts no
    section anyway, and stays unchanged.
    """
    if MARKER_START not in text:
        return text
    return "".join(map(_escape_line, text.splitlines(keepends=True)))


def _escape_line(line: str) -> str:
    match = _MARKER.match(line)
    return f"{match[1]}\\{line[match.end(1) :]}" if match else line


def unescape_markers(text: str) -> str:
    """Returns the original of a text that `escape_markers` escaped."""
    if MARKER_START not in text:
        return text
    return "".join(map(_unescape_line, text.splitlines(keepends=True)))


def _unescape_line(line: str) -> str:
    match = _MARKER.match(line)
    return f"{match[1]}{line[match.end(1) + 1 :]}" if match and match[2] else line
