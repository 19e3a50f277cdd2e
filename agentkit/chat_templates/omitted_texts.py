"""`find_omitted_texts`: the texts that a chat template did not write."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence

from agentkit.chat_templates.template_messages import OmittedBlock, WrittenText

__all__ = ["find_omitted_texts"]


def find_omitted_texts(
    text: str, written: Sequence[WrittenText], never_written: Collection[str]
) -> list[OmittedBlock]:
    """Returns the blocks whose text is not in a rendering. Outer white space of a text may be missing.

    Args:
        text: The rendering.
        written: All texts that the template received, in order.
        never_written: Types of blocks that the template never writes. A search for such a text proves nothing,
            because another text can contain it.
    """
    omitted: list[OmittedBlock] = []
    missing = set[str]()
    position = 0
    for item in written:
        content = item.text.strip()
        is_missing = item.type in never_written or bool(missing and content in missing)
        start = -1 if is_missing else _find_near(text, content, position)
        if start >= 0:
            position = start + len(content)
        elif not is_missing and (content in text or json.dumps(content, ensure_ascii=False)[1:-1] in text):
            continue  # the template changes the order of texts, or writes the text as JSON
        else:
            if item.type not in never_written:
                missing.add(content)  # a search reads the whole text, and tool names often recur
            omitted.append(OmittedBlock(item.path, "the template does not write the text"))
    return omitted


def _find_near(text: str, content: str, position: int) -> int:
    """Returns `text.find(content, position)`. The search is faster if the content is near the position."""
    start = text.find(content[:40], position, position + 2_000)
    return start if start >= 0 and text.startswith(content, start) else text.find(content, position)
