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
    missing: set[str] = set()
    position = 0
    for path, content, type_ in written:
        content = content.strip()
        if type_ not in never_written and (not missing or content not in missing):
            # The next text is almost always near, and searching for its first characters there is faster.
            start = text.find(content[:16], position, position + 2_000)
            if start < 0 or not text.startswith(content, start):
                start = text.find(content, position)
            if start >= 0:
                position = start + len(content)
                continue
            if content in text or json.dumps(content, ensure_ascii=False)[1:-1] in text:
                continue  # the template changed the order of the texts, or wrote the text as JSON
            # A search is slow, and many blocks have the same tool name. So a missing text is not searched for
            # again.
            missing.add(content)
        omitted.append(OmittedBlock(path, "the chat template does not write this text"))
    return omitted
