"""`find_omitted_texts`: finds the blocks whose text a chat template did not write."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence

from agentkit.chat_templates.template_messages import OmittedBlock, WrittenText

__all__ = ["find_omitted_texts"]


def find_omitted_texts(
    text: str, written: Sequence[WrittenText], never_written: Collection[str]
) -> list[OmittedBlock]:
    """Finds the blocks whose text a chat template did not write.

    The function searches for each text after the end of the previous text, and then, if necessary, in all of the
    template's output. White space around a text may be missing, because many templates remove such white space.

    Args:
        text: Text that the template wrote.
        written: Texts of all blocks that the template received, in order.
        never_written: Types of blocks that the template never writes. The function does not search for the texts
            of these blocks, because a text of another block can contain the same words.
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
            continue  # the template changed the order of the texts, or wrote the text as JSON
        else:
            if item.type not in never_written:
                # A search is slow, and many blocks have the same tool name. So a missing text is not searched for
                # again.
                missing.add(content)
            omitted.append(OmittedBlock(item.path, "the chat template does not write this text"))
    return omitted


def _find_near(text: str, content: str, position: int) -> int:
    """Returns the result of `text.find(content, position)`, and is faster if `content` is near `position`."""
    start = text.find(content[:40], position, position + 2_000)
    return start if start >= 0 and text.startswith(content, start) else text.find(content, position)
