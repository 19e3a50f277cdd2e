"""`StreamedText`: reads the text of a reply from its stream events.

The result equals the text that `get_reply_text` returns for the complete reply.
"""

from __future__ import annotations

from typing import Final

from agentkit.history.frame_escaping import safe_name
from agentkit.history.speaker_prefix import strip_speaker_prefix
from agentkit.messages.message import Msg
from agentkit.prompts.value_escapes import MARKER_START
from agentkit.replies.events import StreamEvent, TextDelta, TextEnd, TextStart

__all__ = ["StreamedText"]

_MAX_PREFIX_SPACE: Final = 200  # maximum number of spaces and colons that are held back after a name


class StreamedText:
    """Text of a reply that is still arriving.

    The text blocks are in the order of the reply, even if pieces of several blocks arrive alternately. A line
    break precedes a text block that begins with a section marker. A line break also separates two text blocks with
    a block of another type between them. The first characters of a block are held back while they may begin a
    marker. The prefix `NAME:` with the viewer's name is omitted, so the first characters of the reply are held
    back until they differ from this prefix. White space at the start of the reply is omitted too.

    Args:
        viewer: Name of the agent for which the model replies. None if there is no viewer.
    """

    def __init__(self, viewer: str | None = None) -> None:
        self._viewer = viewer or ""
        self._spellings = (self._viewer, safe_name(self._viewer, "history")) if self._viewer.strip() else ()
        self._head = ""  # start of the text, held back while it may be the prefix `NAME:`
        self._has_head = bool(self._spellings)
        self._has_text = False
        self._needs_break = False  # True if a line break precedes the next text
        self._marker: str | None = None  # start of a block, held back while it may be a section marker
        self._last = -1  # index of the last text block
        self._current: int | None = None  # index of the block whose text is read
        self._waiting: dict[int, list[str]] = {}  # maps the indexes of later blocks to their texts
        self._ended: set[int] = set()

    def add_event(self, event: StreamEvent) -> str:
        """Adds an event. Returns the text that the event adds, without text that is still held back."""
        if isinstance(event, TextDelta):
            if event.index == self._current:
                return self._add(event.text)
            self._waiting.setdefault(event.index, []).append(event.text)
        elif isinstance(event, TextStart):
            self._waiting[event.index] = []
            return "" if self._current is not None else self._open_next()
        elif isinstance(event, TextEnd):
            self._ended.add(event.index)
            return self._end_block() + self._open_next() if event.index == self._current else ""
        return ""

    def _open_next(self) -> str:
        """Returns the text that arrived for the next blocks, including the first block that has not ended."""
        texts: list[str] = []
        while self._waiting:
            self._current = min(self._waiting)
            self._needs_break = self._has_text and (self._needs_break or self._current > self._last + 1)
            self._last, self._marker = self._current, "" if self._has_text else None
            texts += [self._add(text) for text in self._waiting.pop(self._current)]
            if self._current not in self._ended:
                return "".join(texts)
            texts.append(self._end_block())
        self._current = None
        return "".join(texts)

    def _add(self, text: str) -> str:
        if not self._has_text:
            text = text.lstrip()
        if self._marker is not None:
            text = self._marker + text
            self._marker = text if len(text) < len(MARKER_START) and MARKER_START.startswith(text) else None
            if self._marker is not None:
                return ""
            self._needs_break = self._needs_break or text.startswith(MARKER_START)
        if not text:
            return ""
        if self._needs_break:
            text = f"\n{text}"
            self._needs_break = False
        self._has_text = True
        return self._strip_prefix(text) if self._has_head else text

    def _end_block(self) -> str:
        """Ends the current block. Returns the text that was held back while it could begin a section marker."""
        text, self._marker = self._marker, None
        return self._add(text or "")

    def _strip_prefix(self, text: str) -> str:
        """Returns an empty string while the text may be the prefix, and then all text without the prefix."""
        self._head += text
        if any(map(self._can_be_prefix, self._spellings)):
            return ""
        self._has_head = False
        return strip_speaker_prefix(Msg(self._viewer, self._head, "assistant"), self._viewer).text

    def _can_be_prefix(self, spelling: str) -> bool:
        head = self._head
        if len(head) > len(spelling) + _MAX_PREFIX_SPACE:
            return False
        return spelling.startswith(head) or (
            head.startswith(spelling) and not head[len(spelling) :].strip(" \t\n:：")
        )
