"""`find_omitted_texts`: finds the blocks whose text a chat template did not write."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Final, TypeVar

from agentkit.chat_templates.rendered_chat import OmittedBlock
from agentkit.chat_templates.template_messages import CALL_TYPES, BlockText
from agentkit.errors import TemplateError
from agentkit.ledger.places import BlockPath
from agentkit.messages.blocks import Block, TextBlock, ThinkingBlock, ToolResultBlock
from agentkit.messages.message import Msg

__all__ = ["find_content", "find_omitted_texts"]

_AnyBlock = TypeVar("_AnyBlock", bound=Block)

_REASON: Final = "the chat template does not write this content"
_SHORT: Final = 32  # maximum length of a text that other texts are likely to contain
_PRIVATE_USE: Final = (range(0xF0000, 0xFFFFE), range(0x100000, 0x10FFFE))  # Unicode planes 15 and 16
_ROLES: Final = "system user assistant tool"  # a text that is a part of these names, such as "ant", is common


def find_omitted_texts(
    text: str,
    block_texts: Sequence[BlockText],
    never_written: Collection[str],
    source: str,
    msgs: Sequence[Msg],
    render: Callable[[Sequence[Msg]], str],
) -> list[OmittedBlock]:
    """Finds the blocks whose text a chat template did not write.

    The function searches for each text after the end of the previous text. White space next to a text may be
    missing, because many templates remove such white space. A short text can be part of the template or of another
    text, and a template can change the order of texts. In these cases, the function renders the messages again,
    with a private-use character at the start of each text.

    Args:
        text: Text that the template wrote.
        block_texts: Texts of all blocks that the template received, in order.
        never_written: Types of blocks that the template never writes. The function does not search for the texts
            of these blocks, because a text of another block can contain the same words.
        source: Text of the template.
        msgs: The messages that contain the blocks.
        render: Function that renders messages with the same template and options.
    """
    omitted, is_certain = _search_texts(text, block_texts, never_written, source)
    if is_certain:
        return omitted
    paths = dict.fromkeys(
        path for path, content, type_ in block_texts if type_ not in CALL_TYPES and content.strip()
    )
    used = set(text)
    unused = (mark for mark in map(chr, chain(*_PRIVATE_USE)) if mark not in used)
    marks = dict(zip(paths, unused, strict=False))
    if len(marks) < len(paths):
        return omitted
    try:
        marked = render([_mark_message(msg, index, marks) for index, msg in enumerate(msgs)])
    except TemplateError:
        return omitted
    unmarked = marked.translate(dict.fromkeys(map(ord, marks.values())))
    if unmarked != text:  # the template reads the start of a text, so the marks changed its output
        return omitted
    characters = set(marked)
    missing = {path for path, mark in marks.items() if mark not in characters}
    missing.update(item.path for item in omitted if item.path not in marks)
    return [OmittedBlock(path, _REASON) for path, _, _ in block_texts if path in missing]


def _search_texts(
    text: str, block_texts: Sequence[BlockText], never_written: Collection[str], source: str
) -> tuple[list[OmittedBlock], bool]:
    """Returns two values: the blocks whose text is missing, and True if no other text can be missing."""
    omitted: list[OmittedBlock] = []
    missing: set[str] = set()
    is_certain = True
    position = 0
    for path, content, type_ in block_texts:
        content = content.strip()
        if type_ in never_written or (missing and content in missing):
            omitted.append(OmittedBlock(path, _REASON))
            continue
        start = find_content(text, content, position)
        # If True, the template moved the text or wrote it as JSON, or another text contains the omitted text.
        is_elsewhere = start < 0 and (content in text or json.dumps(content, ensure_ascii=False)[1:-1] in text)
        if start >= 0:
            position = start + len(content)
        elif not is_elsewhere:
            # A missing text is searched for only once: searches are slow, and many blocks have the same tool name.
            missing.add(content)
            omitted.append(OmittedBlock(path, _REASON))
        if is_certain and (is_elsewhere or len(content) <= _SHORT) and type_ not in CALL_TYPES:
            is_certain = not (is_elsewhere or _is_common(content, type_, source))
    return omitted, is_certain


def _is_common(content: str, type_: str, source: str) -> bool:
    """Returns True if a short text is likely to be in other texts too."""
    return bool(content) and (type_ == "thinking" or content in source or content in _ROLES)


def find_content(text: str, content: str, start: int) -> int:
    """Returns the first position of `content` in a text from the index `start` on. Returns -1 if there is none."""
    # The content usually starts close to `start`. A search for its first characters is then faster.
    position = text.find(content[:16], start, start + 2_000)
    if position >= 0 and text.startswith(content, position):
        return position
    return text.find(content, start)


def _mark_message(msg: Msg, index: int, marks: Mapping[BlockPath, str]) -> Msg:
    if isinstance(msg.content, str):
        return replace(msg, content=_mark_text(msg.content, marks.get((index, 0), "")))
    blocks = (_mark_block(block, marks.get((index, number), "")) for number, block in enumerate(msg.content))
    return replace(msg, content=tuple(blocks))


def _mark_block(block: _AnyBlock, mark: str) -> _AnyBlock:
    if isinstance(block, TextBlock):
        return replace(block, text=_mark_text(block.text, mark))
    if isinstance(block, ThinkingBlock):
        return replace(block, thinking=_mark_text(block.thinking, mark))
    if isinstance(block, ToolResultBlock):
        output = block.output
        if isinstance(output, str):
            return replace(block, output=_mark_text(output, mark))
        return replace(block, output=tuple(_mark_block(item, mark) for item in output))
    return block


def _mark_text(text: str, mark: str) -> str:
    """Returns a text with a mark before its first character that is not white space."""
    content = text.lstrip()
    return f"{text[: len(text) - len(content)]}{mark}{content}" if content else text
