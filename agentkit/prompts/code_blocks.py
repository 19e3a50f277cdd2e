"""`find_last_code_block`: finds the last code block of a text, between fences of backticks."""

from __future__ import annotations

import re
from typing import Final

__all__ = ["find_last_code_block", "unfence"]

_FENCE: Final = re.compile(r"(?<!`)`{3,}+([^`\n]*)$", re.MULTILINE)
_ONE_FENCE: Final = re.compile(r"\s*```[^`\n]*\n(.*)```\s*", re.DOTALL)


def find_last_code_block(text: str) -> str | None:
    r"""Returns the content of the last code block in a text. Returns None if there is no code block.

    A fence consists of at least three backticks. A language may follow the backticks. A line break must follow
    the opening fence. If the last fence of the text has no language, it closes the block that the previous fence
    opens. If the last fence has a language, or is the only fence, it opens a block that ends with the text.
    Unmatched fences earlier in the text have no effect. The last line break of the block is removed.

    Example:
        >>> find_last_code_block("First:\n```py\na = 1\n```\nThen:\n```py\na = 2\n```\n")
        'a = 2'
    """
    text = text.replace("\r\n", "\n")
    fences = [*_FENCE.finditer(text)]
    last = fences[-1] if fences else None
    if last is None:
        return None
    if len(fences) > 1 and not last[1].strip():
        return text[fences[-2].end() + 1 : last.start()].removesuffix("\n")
    return text[last.end() + 1 :].removesuffix("\n") if text[last.end() : last.end() + 1] else None


def unfence(text: str) -> str:
    """Returns the content of a text that is exactly one code block. Returns any other text unchanged."""
    match = _ONE_FENCE.fullmatch(text)
    return match[1].removesuffix("\n") if match and "```" not in match[1] else text
