r"""`ChatStreamParser`: finds the sections `[[ ## name ## ]]` in the text of a streamed reply.

Idea
    A section begins with a marker at the start of a line. A `_LineStart` holds back the start of each line until
    the first character that shows whether the line begins with a marker. The remaining part of the line is text.
    White space is held back until more text follows, because trailing white space is not part of a section.

Cost
    Each character is read once. The time is proportional to the length of the reply, however the reply is split
    into pieces.

Example:
    >>> from agentkit.prompts import ChatAdapter, Signature
    >>> parser = ChatAdapter().stream_parser(Signature("question -> answer: str, score: int"))
    >>> for piece in ("[[ ## ans", "wer ## ]]\nTwo [[ boats", " \n\n[[ ## score ## ]]\n9"):
    ...     print(parser.feed(piece))
    []
    [FieldStart(name='answer'), FieldDelta(name='answer', text='Two [[ boats')]
    [FieldEnd(name='answer', value='Two [[ boats'), FieldStart(name='score'), FieldDelta(name='score', text='9')]
    >>> parser.finish(), parser.drain()
    ({'answer': 'Two [[ boats', 'score': 9}, [FieldEnd(name='score', value=9)])
"""

from __future__ import annotations

import re
from typing import Any, Final, TypeAlias

from agentkit.prompts.adapter import Adapter
from agentkit.prompts.field_stream_parser import FieldStreamParser
from agentkit.prompts.signature import Signature

__all__ = ["ChatStreamParser"]

_AnySignature: TypeAlias = type[Signature[Any]]

# Characters that `str.splitlines` and `ChatAdapter.parse` treat as line breaks.
_BREAKS: Final = r"\n\v\f\r\x1c-\x1e\x85\u2028\u2029"
_LINE_BREAK: Final = re.compile(f"[{_BREAKS}]")


class ChatStreamParser(FieldStreamParser):
    r"""Parser of replies with one section for each field, as `ChatAdapter` requests them.

    Together, the deltas of a field are the text of its section. White space at the start and the end of the text
    is removed, and so is the first backslash before a marker. Only the first section of each output has events.
    """

    def __init__(self, adapter: Adapter, signature: _AnySignature) -> None:
        super().__init__(adapter, signature)
        # Start of the current line. None while the parser reads the remaining part of the line.
        self._start: _LineStart | None = _LineStart(can_open=True)

    def read(self, text: str) -> None:
        """Reads the next piece of the text."""
        index = 0
        while index < len(text):
            index = self._read_line(text, index) if self._start is None else self._read_start(text, index)

    def read_end(self) -> None:
        """Parses the buffered text, and ends the last section."""
        if self._start is not None:
            self.add_trimmed(self._start.text)
        self.end_field()

    def _read_line(self, text: str, index: int) -> int:
        """Reads up to the end of the line. Returns the index after the line."""
        match = _LINE_BREAK.search(text, index)
        end = match.end() if match else len(text)
        self.add_trimmed(text[index:end])
        if match:
            self._start = _LineStart(can_open=True)
        return end

    def _read_start(self, text: str, index: int) -> int:
        """Reads the start of a line. Returns the index after the part that was read."""
        start = self._start
        assert start is not None
        index = start.read(text, index)
        if start.is_marker is None:
            return index
        self._start = None
        if not start.is_marker:
            self.add_trimmed(start.text)
        elif start.is_escaped:
            self.add_trimmed(start.unescaped_text)
        elif start.can_open:
            self.end_field()
            self.start_field(start.name)
            self._start = _LineStart(can_open=False)
        else:
            self.add_trimmed(start.text)
        return index


_CLOSING: Final = " ## ]]"
_STEPS: Final[tuple[re.Pattern[str] | str, ...]] = (
    re.compile(rf"[^\S{_BREAKS}]*"),
    re.compile(r"\\*"),
    "[[ ## ",
    re.compile(r"\w*"),
    _CLOSING,
)
"""Parts of a line that begins with a marker: blanks, backslashes, and the marker in three parts."""
_BLANKS, _BACKSLASHES, _NAME = 0, 1, 3


class _LineStart:
    """Start of a line, up to the first character that shows whether the line begins with a marker.

    The text after a marker on the same line is treated as a line of its own.

    Attributes:
        can_open: True if a marker at this position opens a section. False directly after a marker.
        is_marker: True if the line begins with a marker. Backslashes may precede the marker. None until it is
            known whether the line begins with a marker.
    """

    __slots__ = ("_lengths", "_pieces", "_step", "can_open", "is_marker")

    def __init__(self, *, can_open: bool) -> None:
        self.can_open = can_open
        self.is_marker: bool | None = None
        self._pieces: list[str] = []
        self._step = 0
        self._lengths = [0] * len(_STEPS)

    def read(self, text: str, index: int) -> int:
        """Reads up to the end of the marker, or to the first character that is not part of a marker.

        Returns the index after the part that was read.
        """
        start = index
        while index < len(text) and self.is_marker is None:
            index = self._read_step(text, index)
        self._pieces.append(text[start:index])
        return index

    def _read_step(self, text: str, index: int) -> int:
        part = _STEPS[self._step]
        if isinstance(part, str):
            if text[index] != part[self._lengths[self._step]]:
                self.is_marker = False
                return index
            end, has_ended = index + 1, self._lengths[self._step] + 1 == len(part)
        else:
            match = part.match(text, index)
            end = match.end() if match else index
            has_ended = end < len(text)
        self._lengths[self._step] += end - index
        if has_ended:
            self._end_step()
        return end

    def _end_step(self) -> None:
        if self._step == _NAME and not self._lengths[_NAME]:
            self.is_marker = False
        elif self._step == len(_STEPS) - 1:
            self.is_marker = True
        self._step += 1

    @property
    def text(self) -> str:
        """The text that was read."""
        return "".join(self._pieces)

    @property
    def is_escaped(self) -> bool:
        """True if backslashes precede the marker."""
        return self._lengths[_BACKSLASHES] > 0

    @property
    def unescaped_text(self) -> str:
        """The text that was read, without the first of the backslashes before the marker."""
        text, blanks = self.text, self._lengths[_BLANKS]
        return f"{text[:blanks]}{text[blanks + 1 :]}"

    @property
    def name(self) -> str:
        """Name of the section that the marker begins."""
        return self.text[sum(self._lengths[:_NAME]) : -len(_CLOSING)]
